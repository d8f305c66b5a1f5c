"""Expectations under products of factors, without multiplying them out.

What is wanted is, for many combinations of rows r of the factors' tables at once,

    E(r) = Σ over cells x of Π over components c: tables[c][r_c, x_c] · V(x).

Components are summed out one at a time. After some of them, a matrix is left: a row for each
distinct beginning of r, a column for each distinct ending of x. So the work is the sum over
components of (beginnings × endings), not (rows × cells). The order of the components is chosen so
that this is small. It is a bucket elimination in which only combinations that occur are looked at.
"""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rspmn.circuit import LatentFactors
from rspmn.data.distinct import count_distinct, distinct_integers, distinct_rows
from rspmn.infer.compiled.joined import Joined
from rspmn.types import Array, Bools, Ints

#: Beginnings are divided if a stage would make more floats than this: fewer fit a cache.
CHUNK = 200_000


@dataclass(frozen=True, eq=False)
class _Endings:
    """What cells end with, before and after a component is summed out."""

    classes: Ints  # [endings before], the class that each starts with; sorted by what follows it
    order: Ints  # [endings before], where each was
    starts: Ints  # [endings after], the first of those that end alike

    @cached_property
    def places(self) -> "list[tuple[Ints, Bools | None, Ints]] | None":
        """The first, second, … of the endings before that end alike, and their classes.

        Each has where they are, in the order of endings after; which of them lack, None if none
        does; and their classes, or the one class of all. None if many end alike in few ways: these
        are summed one after the other.
        """
        sizes = np.diff(np.append(self.starts, len(self.order)))
        most = int(sizes.max())
        if most > len(sizes) or most * len(sizes) > 2 * len(self.order):
            return None
        found: list[tuple[Ints, Bools | None, Ints]] = []
        for rank in range(most):
            there = rank < sizes
            place = np.where(there, self.starts + rank, 0)
            classes = self.classes[place]
            if (classes[there] == classes[there][0]).all():
                classes = classes[there][:1]
            found.append((self.order[place], None if there.all() else ~there, classes))
        return found

    @property
    def width(self) -> int:
        """How many numbers of a beginning are held at a time."""
        return len(self.order if self.places is None else self.starts)


@dataclass(frozen=True, eq=False)
class _Stage:
    """One component is summed out: [beginnings, endings] before and after."""

    component: int
    row: Ints  # [beginnings after], the row of the component's table
    parent: Ints  # [beginnings after], the beginning that each goes on from; sorted
    table: Array  # [..., rows, classes]
    endings: _Endings

    @property
    def work(self) -> int:
        """The number of products."""
        return len(self.parent) * len(self.endings.classes)

    def after(self, start: int, stop: int) -> tuple[int, int]:
        """Return which beginnings go on from some of those before."""
        first, last = np.searchsorted(self.parent, [start, stop]).tolist()
        return first, last

    def part(self, first: int, last: int) -> "_Stage":
        """Return the stage with some of the beginnings after it, and those that they go on from."""
        here = slice(first, last)
        parent = self.parent[here] - self.parent[first]
        return replace(self, row=self.row[here], parent=parent)

    def __call__(self, numbers: Array) -> Array:
        places = self.endings.places
        if places is not None:
            one_class = all(len(classes) == 1 for _, _, classes in places)
            single = one_class and numbers.ndim == self.table.ndim == 2
            return self._multiplied(numbers) if single else self._added_up(numbers)
        endings = self.endings
        products = numbers[..., endings.order][..., self.parent, :]
        products *= self._factors(endings.classes)
        return np.asarray(np.add.reduceat(products, endings.starts, axis=-1))

    def _multiplied(self, numbers: Array) -> Array:
        """Add up endings of one class each by a sparse matrix, in one pass over the numbers."""
        places = self.endings.places or []
        parts = np.empty((len(places), len(numbers), len(self.endings.starts)))
        for part, (at, lacking, _) in zip(parts, places, strict=True):
            np.take(numbers, at, axis=1, out=part, mode="clip")  # which writes without a copy
            if lacking is not None:
                part[:, lacking] = 0.0
        return np.asarray(self._matrix @ parts.reshape(-1, len(self.endings.starts)))

    def _factors(self, classes: Ints) -> Array:  # [..., beginnings after, classes]
        """Return what the table has of some classes. It is not kept: of all it may be large."""
        if len(classes) < self.table.shape[-1]:
            return np.asarray(self.table[..., self.row[:, None], classes])
        return np.asarray(self.table.take(self.row, axis=-2)[..., classes])

    @property
    def _matrix(self) -> Any:  # sparse [beginnings after, places · beginnings before]
        """The factors of the classes, at the beginnings that they go on from."""
        from scipy.sparse import csr_array

        classes = np.concatenate([classes for _, _, classes in self.endings.places or ()])
        before = int(self.parent[-1]) + 1
        column = self.parent[:, None] + before * np.arange(len(classes))
        pointers = len(classes) * np.arange(len(column) + 1)
        data = self._factors(classes).ravel(), column.ravel(), pointers
        return csr_array(data, shape=(len(column), before * len(classes)))

    def _added_up(self, numbers: Array) -> Array:
        """Add up endings that end alike as whole arrays, which is faster where they are few."""
        found: Array | float = 0.0
        for at, lacking, classes in self.endings.places or ():
            part = numbers.take(at, axis=-1)
            if lacking is not None:
                part[..., lacking] = 0.0
            part = part.take(self.parent, axis=-2)
            part = part * self._factors(classes)
            found = found + part
        return np.asarray(found)


@dataclass(frozen=True, eq=False)
class _Block:
    """Some beginnings that go through stages, and are then divided and go on one after the other.

    So they are used while they are in a cache, and few are held at a time.
    """

    stages: list[_Stage]
    parts: "list[tuple[slice, _Block]]"  # which of the beginnings go on in each

    @classmethod
    def of(cls, stages: Sequence[_Stage], first: int, last: int) -> "_Block":
        """Return what is left of the stages, for some of the beginnings after the first."""
        found: list[_Stage] = []
        start = int(stages[0].parent[first])  # of the beginnings before a stage
        for k, stage in enumerate(stages):
            if k:
                start, (first, last) = first, stage.after(first, last)
            if last - first > 1 and (last - first) * stage.endings.width > CHUNK:
                half = (first + last) // 2
                parts = []
                for one, other in ((first, half), (half, last)):
                    ends = stage.parent[[one, other - 1]] - start
                    part = cls.of(stages[k:], one, other)
                    parts.append((slice(int(ends[0]), int(ends[1]) + 1), part))
                return cls(found, parts)
            found.append(stage.part(first, last))
        return cls(found, [])

    def __call__(self, numbers: Array) -> Array:
        for stage in self.stages:
            numbers = stage(numbers)
        if not self.parts:
            return numbers
        found = [block(numbers[..., here, :]) for here, block in self.parts]
        return np.concatenate(found, axis=-2)


class Contraction:
    """Expectations under many products of the same factors.

    `factors`: the tables, and the cells of interface nodes. `rows`: of each product, the row of
    each component's table [products, components]. `order`: in which components are summed out; None
    to find one.

    Examples
    --------
    >>> coins = LatentFactors(3, [[0, 0], [0, 1], [1, 1]], [0, 1, 2], [1.0] * 3,
    ...     ([[0.5, 0.5]], [[0.25, 0.75], [1.0, 0.0]]))
    >>> Contraction(coins, np.array([[0, 0], [0, 1]]))(np.array([7.0, 0.0, 14.0]))
    array([7., 7.])
    """

    def __init__(
        self, factors: LatentFactors, rows: Ints, order: Sequence[int] | None = None
    ) -> None:
        self.factors, self.rows = factors, np.asarray(rows)
        self.distinct, self.of_rows = distinct_rows(self.rows)
        cells, self.cell = distinct_rows(factors.classes)
        self.cells = len(cells)
        order = order if order is not None else elimination_order(self.distinct, cells)
        assert order is not None  # as there is no limit
        endings = _endings(cells, order)
        self._stages, last = _stages(factors.tables, self.distinct, cells, endings, order)
        self.of_rows, self.cell = last[self.of_rows], endings[0][self.cell]

    def with_tables(self, tables: Sequence[Array]) -> "Contraction":
        """Return the same expectations under several tables: [draws, rows, classes] each."""
        found = copy(self)
        for name in ("kept", "_block"):
            found.__dict__.pop(name, None)
        found._stages = [replace(stage, table=tables[stage.component]) for stage in self._stages]
        return found

    @cached_property
    def kept(self) -> Array:  # [..., distinct rows]
        """The mass of each product on cells: what expectations are divided by."""
        several = self._stages[0].table.shape[:-2]
        return self._expect(np.broadcast_to(self.factors.share, (*several, len(self.cell))))

    @cached_property
    def _to_cells(self) -> Any:  # sparse [cells of all interface nodes, cells]
        from scipy.sparse import csr_array

        at = np.arange(len(self.cell)), self.cell
        return csr_array((np.ones(len(self.cell)), at), shape=(len(self.cell), self.cells))

    @property
    def work(self) -> int:
        """The number of products in an expectation of all."""
        return sum(stage.work for stage in self._stages)

    def __call__(self, values: Array) -> Array:  # [..., interfaces] to [..., products]
        """Return the expectation of what interface nodes are worth under each product."""
        found = self._expect(self.factors.share * values[..., self.factors.to])
        return np.asarray((found / self.kept)[..., self.of_rows])

    def matrix(self, used: Bools) -> Any:  # sparse [products, interfaces]
        """Return some of the products multiplied out; the rows of others are empty."""
        from scipy.sparse import csr_array

        place = np.flatnonzero(used)
        joined = Joined(self.factors, self.rows[place])
        put = np.ones(len(place)), (place, np.arange(len(place)))
        back = csr_array(put, shape=(len(used), len(place)))
        return csr_array(back @ joined.matrix(np.ones(len(place), dtype=bool)))

    def _expect(self, of_cells: Array) -> Array:  # [..., cells] to [..., distinct rows]
        return self._block(np.asarray(of_cells @ self._to_cells)[..., None, :])[..., 0]

    @cached_property
    def _block(self) -> _Block:
        return _Block.of(self._stages, 0, len(self._stages[0].parent))


def _stages(
    tables: Sequence[Array], rows: Ints, cells: Ints, endings: list[Ints], order: Sequence[int]
) -> tuple[list[_Stage], Ints]:
    """Return the stages of an order, and the place of each of the rows after the last of them."""
    before = np.zeros(len(rows), dtype=np.int64)  # of each of the rows, its beginning
    found = []
    for k, component in enumerate(order):
        size = len(tables[component])
        keys, after = distinct_integers(before * size + rows[:, component])
        parent, row = np.divmod(keys, size)
        members, then = endings[k], endings[k + 1]
        # an ending before is a class and an ending after; one cell has both
        first = np.zeros(int(members.max()) + 1, dtype=np.int64)
        first[members] = np.arange(len(members))
        following, classes = then[first], cells[first, component]
        sort = np.argsort(following, kind="stable")
        starts = np.flatnonzero(np.diff(following[sort], prepend=-1))
        endings_here = _Endings(classes[sort], sort, starts)
        found.append(_Stage(component, row, parent, np.asarray(tables[component]), endings_here))
        before = after
    return found, before


def _endings(cells: Ints, order: Sequence[int]) -> list[Ints]:
    """Return the number of each cell's ending from each place of an order on."""
    found = [np.zeros(len(cells), dtype=np.int64)]
    for component in reversed(order):
        key = found[-1] * (int(cells[:, component].max()) + 1) + cells[:, component]
        found.append(distinct_integers(key)[1])
    return found[::-1]


def elimination_order(rows: Ints, cells: Ints, most: float = math.inf) -> list[int] | None:
    """Return the order in which components are summed out: greedily, the least work first.

    Of each step, work is the number of beginnings after it times that of endings after it; with
    equal work, that which leaves fewer beginnings. None if this is more than `most` in all.
    """
    left, sizes = list(range(rows.shape[1])), rows.max(axis=0) + 1
    columns, cells = np.ascontiguousarray(rows.T), np.asfortranarray(cells)
    begun, order, work = np.zeros(len(rows), dtype=np.int64), list[int](), 0
    while left and work <= most:
        costs = []
        for component in left:
            beginnings = _count(begun * sizes[component] + columns[component])
            endings = _count_joint(cells[:, [c for c in left if c != component]])
            costs.append((beginnings * endings, beginnings, component))
        cost, _, best = min(costs)
        work += cost
        begun = distinct_integers(begun * sizes[best] + columns[best])[1]
        order.append(best)
        left.remove(best)
    return order if work <= most else None


def _count(keys: Ints) -> int:
    """Return how many numbers are distinct."""
    most = int(keys.max(initial=0)) + 1
    if most <= 8 * len(keys) + 1024:
        return int(np.count_nonzero(np.bincount(keys, minlength=1)))
    return count_distinct(keys)


def _count_joint(codes: Ints) -> int:
    """Return how many rows of codes are distinct."""
    key = np.zeros(len(codes), dtype=np.int64)
    for column in codes.T:
        key = key * (int(column.max(initial=0)) + 1) + column
        if int(key.max(initial=0)) > 2**31:
            key = distinct_integers(key)[1]
    return _count(key)
