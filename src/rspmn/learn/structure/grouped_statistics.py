"""G and X² of all pairs of two groups of variables, given strata, in many sets of rows at once.

Only strata in which variables of both groups vary are counted: others say nothing about dependence.
Cells are summed over strata before they are summed over the values of a variable, so the table of
all cells in all strata is read few times, in blocks that fit a cache.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.learn.structure.code_table import Codes
from rspmn.learn.structure.contingency import RARE, stratum_products
from rspmn.types import Array, Bools, Ints

#: Cells of all strata that are counted at once.
BLOCK = 150_000
#: Variables that lack values in different rows are tested class by class, if there are at most so
#: many pairs of classes.
FEW_CLASSES = 6
#: Rows of more cells are added up one by one.
LONG = 300
#: Matrix products take as long for a stratum as counting so many pairs of cells one by one.
COUNTED = 400
#: Added before a logarithm is taken, so that 0 · log 0 is 0; it changes no number above 1e-280.
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class GroupedStatistics:
    """Statistics of all pairs in each group of rows, summed over strata."""

    g: Array  # [groups, left, right]
    x2: Array  # [groups, left, right]
    freedom: Array  # [groups, left, right]
    weight: Array  # [groups, left, right], of the rows that have both


def grouped_statistics(
    left: Codes, right: Codes, strata: Ints, weights: Array, group: Ints, groups: int
) -> GroupedStatistics | None:
    """Return the statistics of all pairs; None if too many variables lack values in other rows.

    `left`, `right`: the variables. `strata`: what is given; all rows of a stratum are in one group,
    and strata are in the order of their groups [n]. `weights`: how often each row occurred [n].
    `group`: the set that each row is in [n]. `groups`: the number of sets.
    """
    ones, others = left.classes(), right.classes()
    if len(ones) * len(others) > FEW_CLASSES:
        return None
    found = GroupedStatistics(*np.zeros((4, groups, len(left.sizes), len(right.sizes))))
    rights = [_pooled_cells(right, *other, weights, group, groups) for other in others]
    for names, present in ones:
        one = _pooled_cells(left, names, present, weights, group, groups)
        for (other_names, also), other in zip(others, rights, strict=True):
            rows = _in_both(present, also)
            part = group if rows is None else group[rows]
            weight = weights if rows is None else weights[rows]
            total = group_weights(part, weight, groups)
            found.weight[:, names[:, None], other_names] = total[:, None, None]
            if len(one.kept) and len(other.kept):
                given = Strata.of(strata, group, rows)
                _add_complete(found, one, other, given, weights)
    return found


def _in_both(one: Bools | None, other: Bools | None) -> Ints | None:
    if one is None and other is None:
        return None
    both = other if one is None else one if other is None else one & other
    assert both is not None
    return np.flatnonzero(both)


@dataclass(frozen=True, eq=False)
class _Cells:
    """The values of several variables as cells, rare ones pooled."""

    cells: Ints  # [n, variables]
    owner: Ints  # [cells], the variable of each
    starts: Ints  # [variables], the first cell of each
    kept: Ints  # [variables], which of all variables they are: those of several cells

    def indicators(self, cells: Ints) -> Array:  # [rows, cells]
        """Return 1 in the cell of each variable of some rows."""
        return np.asarray(cells[:, self.owner] == np.arange(len(self.owner)), dtype=np.float64)


def _pooled_cells(
    of: Codes, names: Ints, present: Bools | None, weights: Array, group: Ints, groups: int
) -> _Cells:
    """Return the cells of variables, the rare values of each pooled within each group of rows.

    Only the cells of rows that have values mean anything.
    """
    codes, sizes = of.codes, of.sizes
    if len(names) < len(sizes):
        codes, sizes = codes[:, names], sizes[names]
    if present is not None:
        codes, weights = np.where(present[:, None], codes, 0), weights * present
    total, first = int(sizes.sum()), np.cumsum(sizes) - sizes
    owner = np.repeat(np.arange(len(sizes)), sizes)
    place = codes + (first + group[:, None] * total)  # [n, variables], a cell of a group
    weight = group_weights(place.ravel(), np.repeat(weights, len(sizes)), groups * total)
    if weight.min(initial=RARE) >= RARE and sizes.min(initial=2) > 1:  # all cells of all groups
        return _Cells(place % total if groups > 1 else place, owner, first, names)
    into = np.tile(np.arange(total), groups)  # [groups · cells], where each is counted
    rare = np.flatnonzero((weight > 0) & (weight < RARE))
    if len(rare) > 1:
        whose = rare // total * len(sizes) + owner[rare % total]  # sorted
        into[rare] = into[rare[np.searchsorted(whose, whose)]]
    used = np.zeros(total, dtype=bool)
    used[into[weight > 0]] = True
    varies = np.bincount(owner[used], minlength=len(sizes)) > 1
    used &= varies[owner]
    number = (np.cumsum(used) - 1)[into]
    kept = np.flatnonzero(varies)
    owners = (np.cumsum(varies) - 1)[owner[used]]
    cells = number[place if len(kept) == len(sizes) else place[:, kept]]
    return _Cells(cells, owners, np.searchsorted(owners, np.arange(len(kept))), names[kept])


@dataclass(frozen=True, eq=False)
class Strata:
    """Rows in the order of their strata; only strata of several rows."""

    rows: Ints  # [n]
    starts: Ints  # [strata + 1], among these rows
    group: Ints  # [strata]

    @classmethod
    def of(cls, strata: Ints, group: Ints, rows: Ints | None) -> "Strata":
        """Divide rows into strata."""
        keys = strata if rows is None else strata[rows]
        if keys.min(initial=0) >= 0 and keys.max(initial=0) < 2**16:
            keys = keys.astype(np.uint16)  # which are sorted by their digits
        order = np.argsort(keys, kind="stable")
        order = order if rows is None else rows[order]
        given = strata[order]
        starts = np.flatnonzero(np.append(True, given[1:] != given[:-1])[: len(given)])
        sizes = np.diff(starts, append=len(order))
        several = sizes > 1
        if not several.all():
            order, sizes = order[np.repeat(several, sizes)], sizes[several]
        ends = np.cumsum(sizes)
        return cls(order, np.append(0, ends), group[order[ends - sizes]])

    def varying(self, one: Ints, other: Ints) -> "Strata":
        """Return the strata in which both vary, as far as the narrower one says.

        Both are cells, [all rows, variables].
        """
        if not len(self.group):
            return self
        several = self._vary(one if one.shape[1] < other.shape[1] else other)
        if several.all():
            return self
        sizes = np.diff(self.starts)
        starts = np.append(0, np.cumsum(sizes[several]))
        return Strata(self.rows[np.repeat(several, sizes)], starts, self.group[several])

    def _vary(self, cells: Ints) -> Bools:  # [strata]
        of_rows = cells[self.rows]
        differs = (of_rows[1:] != of_rows[:-1]).any(axis=1)
        differs[self.starts[1:-1] - 1] = False
        return np.logical_or.reduceat(differs, self.starts[:-1])

    def blocks(self, cells: int) -> Iterator["Strata"]:
        """Divide the strata into blocks that have so many cells in each stratum."""
        step = max(1, BLOCK // cells)
        for first in range(0, len(self.group), step):
            starts = self.starts[first : first + step + 1]
            rows = self.rows[starts[0] : starts[-1]]
            yield Strata(rows, starts - starts[0], self.group[first : first + step])


def _add_complete(
    found: GroupedStatistics, left: _Cells, right: _Cells, strata: Strata, weights: Array
) -> None:
    """Add the statistics of variables that no row lacks."""
    at = (slice(None), left.kept[:, None], right.kept)
    strata = strata.varying(left.cells, right.cells)
    for block in strata.blocks(len(left.owner) * len(right.owner)):
        here = np.flatnonzero(np.append(True, block.group[1:] != block.group[:-1]))
        g, x2, freedom = _block_statistics(left, right, block, weights, here)
        for total, part in ((found.g, g), (found.x2, x2), (found.freedom, freedom)):
            total[(block.group[here][:, None, None], *at[1:])] += part


def _tables(
    left: _Cells, right: _Cells, block: Strata, weight: Array
) -> tuple[Array, Array, Array]:
    """Return the weights of cells of the left, of the right, and of pairs of them.

    Each by stratum: [strata, left cells], [strata, right cells], [strata, left cells, right cells].
    """
    one, other = left.cells[block.rows], right.cells[block.rows]  # [rows, variables]
    a, b, strata = len(left.owner), len(right.owner), len(block.group)
    stratum = np.repeat(np.arange(strata), np.diff(block.starts))[:, None]

    def weighed(cells: Ints, size: int) -> Array:
        each = np.repeat(weight, cells.size // max(1, len(weight)))
        return group_weights(cells.ravel(), each, strata * size)

    place = stratum * a + one
    row, column = weighed(place, a).reshape(-1, a), weighed(stratum * b + other, b).reshape(-1, b)
    pairs = one.shape[1] * other.shape[1]
    if len(weight) * pairs <= len(weight) * (a + b) + COUNTED * strata:
        both = weighed(place[:, :, None] * b + other[:, None, :], a * b)
        return row, column, both.reshape(-1, a, b)
    hot = left.indicators(one)
    hot *= weight[:, None]
    return row, column, stratum_products(hot, right.indicators(other), block.starts)


def _block_statistics(
    left: _Cells, right: _Cells, block: Strata, weights: Array, first: Ints
) -> tuple[Array, Array, Array]:  # [groups, left, right] each
    """Return G, X² and degrees of freedom; `first` is the first stratum of each group."""
    weight = weights[block.rows]
    row, column, counts = _tables(left, right, block, weight)
    total = np.add.reduceat(weight, block.starts[:-1])  # [strata]

    def by_group(of_strata: Array) -> Array:
        return np.asarray(np.add.reduceat(of_strata, first, axis=0))

    def by_pair(cells: Array) -> Array:  # [strata, left cells, right cells] -> [.., left, right]
        of_right = np.add.reduceat(_summed(cells, first), right.starts, axis=2)
        return np.asarray(np.add.reduceat(of_right, left.starts, axis=1))

    g = by_pair(_sparse_xlogx(counts))
    g -= by_group(np.add.reduceat(_xlogx(row), left.starts, axis=1))[:, :, None]
    g -= by_group(np.add.reduceat(_xlogx(column), right.starts, axis=1))[:, None, :]
    g += by_group(_xlogx(total))[:, None, None]
    # X² = N · (Σ n² / (row · column) - 1), and (N - 1)/N of it has the mean that it should
    # have by chance, however sparse the table is
    enough = np.maximum(total - 1, 0.0)
    counts *= counts
    counts *= (enough[:, None] / np.where(row > 0, row, 1.0))[:, :, None]
    counts *= (1 / np.where(column > 0, column, 1.0))[:, None, :]
    x2 = by_pair(counts) - by_group(enough)[:, None, None]
    seen = np.add.reduceat((row > 0).astype(np.float64), left.starts, axis=1) - 1
    also = np.add.reduceat((column > 0).astype(np.float64), right.starts, axis=1) - 1
    freedom = by_group(seen[:, :, None] * also[:, None, :])
    return np.maximum(2 * g, 0.0), np.maximum(x2, 0.0), freedom


def _summed(cells: Array, first: Ints) -> Array:  # [groups, ..]
    """Return the sums of the strata of each group; row after row, where rows are long."""
    if cells[0].size < LONG:
        return np.asarray(np.add.reduceat(cells, first, axis=0))
    found = np.empty((len(first), *cells.shape[1:]))
    for k, (start, stop) in enumerate(pairwise([*first.tolist(), len(cells)])):
        np.add.reduce(cells[start:stop], axis=0, out=found[k])
    return found


def _sparse_xlogx(counts: Array) -> Array:
    """Return n · log n; most counts are 0 or 1, of which it is 0."""
    found = np.zeros_like(counts)
    several = np.flatnonzero((counts != 0) & (counts != 1))
    numbers = counts.ravel()[several]
    found.ravel()[several] = numbers * np.log(numbers)
    return found


def _xlogx(x: Array) -> Array:
    return np.asarray(x * np.log(x + TINY))
