"""Products of factors multiplied out where they have mass, the heaviest beginnings first.

Beginnings of cells are a tree: components are joined one after the other, and only beginnings of
mass above 0 go on. What a beginning weighs is a bound of what all cells that begin so weigh
together. So the lightest are left out as long as they weigh no more than what may be cut of a
product, and what was cut at most is known.

What may be cut is a share of the mass on cells. That is not known before, so that products of which
most is on no cell are multiplied out again, with less to be cut.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rspmn.data.distinct import find_sorted
from rspmn.infer.compiled.layers import ranges
from rspmn.memory import IN_PASSING
from rspmn.types import Array, Bools, Ints

#: So much of a product is cut in any case, at most: less than what sums of its masses are rounded.
ROUNDED = 1e-15
#: At first so many products are multiplied out at once, then up to so many times as many, as long
#: as no more than IN_PASSING beginnings of cells are held.
FIRST, GROWTH = 32, 4
#: If a product may have n cells, so many times n of its beginnings go on.
BEAM = 4
#: About so many products are looked at to find out how many edges they have.
SAMPLE = 200


class FactorTables(Protocol):
    """Tables of components, and the cells of interface nodes: `LatentFactors`, or much like it."""

    @property
    def interfaces(self) -> int:
        """The number of interface nodes."""

    @property
    def classes(self) -> Ints:
        """The class of each component: [cells, components]."""

    @property
    def to(self) -> Ints:
        """The interface node of each cell."""

    @property
    def share(self) -> Array:
        """The share of each cell that is of the interface node."""

    @property
    def tables(self) -> Sequence[Any]:
        """Of each component, [rows, classes]: arrays or, if they are too large, sparse ones."""


@dataclass(frozen=True)
class Limit:
    """What is left out of each product.

    `cut`: the share of its mass on cells that may be left out, about; it is twice that at most.
    `most`: the number of cells that are kept at most, even if that leaves out more. Where they are
    too many, it may be more for either reason.
    """

    cut: float = ROUNDED
    most: float = math.inf


EXACT = Limit()


@dataclass(frozen=True, eq=False)
class Masses:
    """What products give interface nodes."""

    on: Any  # sparse [products, interfaces]
    cut: Array  # [products], the mass that is missing at most

    def with_more(self, masses: Any) -> "Masses":
        """Return the same with some more masses, sparse [products, interfaces]."""
        on = self.on.maximum(masses)
        added = np.asarray((on - self.on).sum(axis=1)).ravel()
        return Masses(on, np.maximum(self.cut - added, 0.0))


class CellTree:
    """The beginnings of cells, component by component: those of each length are numbered."""

    def __init__(self, factors: FactorTables) -> None:
        from scipy.sparse import issparse

        self.interfaces, self.to, self.share = factors.interfaces, factors.to, factors.share
        begun, self.levels = np.zeros(len(self.to), dtype=np.int64), list[_ByClass | _ByRow]()
        for component in _certain_first(factors.tables):
            table, classes = factors.tables[component], factors.classes[:, component]
            size = int(classes.max()) + 1
            keys, longer = np.unique(begun * size + classes, return_inverse=True)
            if issparse(table):
                self.levels.append(_ByRow(component, keys, size, table))
            else:
                before = int(begun.max(initial=0)) + 1
                first = np.searchsorted(keys // size, np.arange(before + 1))
                self.levels.append(_ByClass(component, first, keys % size, table))
            begun = longer.ravel()
        #: Cells that have all classes in common are those of one whole beginning.
        self.order = np.argsort(begun, kind="stable")
        self.starts = np.searchsorted(begun[self.order], np.arange(int(begun.max()) + 2))

    def masses(self, rows: Ints, limit: Limit = EXACT) -> Masses:
        """Return the masses of products on interface nodes, given rows [products, components]."""
        from scipy.sparse import csr_array, vstack

        parts, cut = [csr_array((0, self.interfaces))], np.zeros(len(rows))
        start, step = 0, FIRST
        while start < len(rows):
            here = slice(start, start + step)
            listed = self._listed(rows[here], limit)
            parts.append(self._on_interfaces(listed))
            cut[here] = listed.cut
            start += step
            step = max(1, min(GROWTH * step, step * IN_PASSING // max(1, listed.held)))
        return Masses(csr_array(vstack(parts, format="csr")), cut)

    def _listed(self, rows: Ints, limit: Limit) -> "_Listed":
        """Return the cells of products, but what is cut of them."""
        found = _Listed(rows, np.full(len(rows), limit.cut), limit.most).all_of(self.levels)
        mass = np.bincount(found.product, found.mass, len(rows))
        again = np.flatnonzero((found.light > 2 * limit.cut * mass) & (~found.full | (mass <= 0)))
        if len(again):
            part = _Listed(rows[again], np.asarray(limit.cut * mass[again]), limit.most)
            found.replace(again, part.all_of(self.levels))
        return found

    def mean_edges(self, rows: Ints, most: float = math.inf, limit: Limit = EXACT) -> float:
        """Return on how many cells a product has mass, on average over a sample of them.

        Above `most` it need not be exact.
        """
        sample, edges = np.asarray(rows)[:: max(1, len(rows) // SAMPLE)], 0
        for start in range(0, len(sample), SAMPLE // 8):
            edges += self.masses(sample[start : start + SAMPLE // 8], limit).on.nnz
            if edges > most * len(sample):
                break
        return edges / max(1, len(sample))

    def _on_interfaces(self, listed: "_Listed") -> Any:  # sparse [products, interfaces]
        from scipy.sparse import csr_array

        cell, offsets = ranges(self.starts[listed.begun], self.starts[listed.begun + 1])
        cell, counts = self.order[cell], np.diff(offsets)
        mass = np.repeat(listed.mass, counts) * self.share[cell]
        place = np.repeat(listed.product, counts), self.to[cell]
        return csr_array((mass, place), shape=(len(listed.rows), self.interfaces))


@dataclass(frozen=True, eq=False)
class _ByClass:
    """A component is joined by the classes that beginnings go on with."""

    component: int
    first: Ints  # [beginnings + 1], the first child of each
    classes: Ints  # [children]
    table: Array  # [rows, classes]

    def __call__(self, begun: Ints, row: Ints) -> tuple[Ints, Ints, Array]:
        """Return where beginnings with rows go on from, the longer beginnings, and their mass."""
        child, offsets = ranges(self.first[begun], self.first[begun + 1])
        before = np.repeat(np.arange(len(begun)), np.diff(offsets))
        return before, child, self.table[row[before], self.classes[child]]


@dataclass(frozen=True, eq=False)
class _ByRow:
    """A component is joined by the classes that rows of its table have mass on."""

    component: int
    keys: Ints  # [children], beginning · size + class; sorted
    size: int
    table: Any  # sparse [rows, classes]

    def __call__(self, begun: Ints, row: Ints) -> tuple[Ints, Ints, Array]:
        """Return where beginnings with rows go on from, the longer beginnings, and their mass."""
        entry, offsets = ranges(self.table.indptr[row], self.table.indptr[row + 1])
        before = np.repeat(np.arange(len(begun)), np.diff(offsets))
        classes = self.table.indices[entry].astype(np.int64)
        child = find_sorted(self.keys, begun[before] * self.size + classes)
        there = np.flatnonzero((child >= 0) & (classes < self.size))
        return before[there], child[there], self.table.data[entry[there]]


class _Listed:
    """Beginnings of cells that some products have mass on."""

    def __init__(self, rows: Ints, most_cut: Array, most: float) -> None:
        self.rows, self.most_cut, self.most, count = rows, most_cut, most, len(rows)
        self.product, self.begun = np.arange(count), np.zeros(count, dtype=np.int64)
        self.mass = np.ones(count)
        self.light = np.zeros(count)  # [products], what was cut as it is light
        self.cut = np.zeros(count)  # [products], what was cut
        self.full = np.zeros(count, dtype=bool)  # [products], whether there were too many
        self.held = count  # the most that were held at a time

    def all_of(self, levels: "Sequence[_ByClass | _ByRow]") -> "_Listed":
        """Join all components, and return itself."""
        for number, level in enumerate(levels):
            self.go_on(level, len(levels) - number)
        return self

    def go_on(self, level: _ByClass | _ByRow, left: int) -> None:
        """Join one more component; `left` of them are left, with this one."""
        row = self.rows[self.product, level.component]
        before, self.begun, mass = level(self.begun, row)
        self.product, self.mass = self.product[before], self.mass[before] * mass
        self.held = max(self.held, len(self.mass))
        counts = np.bincount(self.product, minlength=len(self.rows))
        # those that weigh no more than this weigh no more than a share of what may be cut
        least = np.maximum(self.most_cut - self.light, 0) / (left * np.maximum(counts, 1))
        heavier = self.cut
        self._keep(self.mass > least[self.product])
        self.light = self.light + (self.cut - heavier)
        most = self.most * (BEAM if left > 1 else 1)
        if counts.max(initial=0) > most:
            self.full |= np.bincount(self.product, minlength=len(self.rows)) > most
            # one number for the product, and within it for how light: their logarithms are to 1100
            order = np.argsort(self.product - np.log2(self.mass) / 1100, kind="stable")
            starts = np.searchsorted(self.product, np.arange(len(self.rows)))
            rank = np.empty(len(order), dtype=np.int64)
            rank[order] = np.arange(len(order)) - starts[self.product[order]]
            self._keep(rank < most)

    def _keep(self, kept: Bools) -> None:
        if kept.all():
            return
        self.cut = self.cut + np.bincount(self.product[~kept], self.mass[~kept], len(self.rows))
        self.product, self.begun, self.mass = self.product[kept], self.begun[kept], self.mass[kept]

    def replace(self, products: Ints, by: "_Listed") -> None:
        """Replace what is listed of some products."""
        others = ~np.isin(self.product, products)
        product = np.concatenate([self.product[others], products[by.product]])
        order = np.argsort(product, kind="stable")
        self.product = product[order]
        self.begun = np.concatenate([self.begun[others], by.begun])[order]
        self.mass = np.concatenate([self.mass[others], by.mass])[order]
        self.cut[products], self.light[products] = by.cut, by.light
        self.full[products] = by.full
        self.held = max(self.held, by.held)


def _certain_first(tables: Sequence[Any]) -> list[int]:
    """Return components by the mean share of classes that are possible in a row."""
    shares = [float((table > 0).sum()) / math.prod(table.shape) for table in tables]
    return sorted(range(len(tables)), key=shares.__getitem__)
