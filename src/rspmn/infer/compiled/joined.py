"""Products of factors multiplied out where they are not 0: a sparse matrix of their masses.

Where most components are nearly certain, a product has mass on few cells, however many there are.
Beginnings of cells are a tree: components are joined one after the other, and only beginnings of
mass above 0 go on. Where products have mass on most cells, `rspmn.infer.compiled.contraction` takes
less.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from rspmn.circuit import LatentFactors
from rspmn.data.distinct import distinct_rows
from rspmn.infer.compiled.layers import ranges
from rspmn.types import Array, Bools, Ints

#: At most about this many pairs (product, beginning of a cell) are held per chunk of products.
CHUNK = 2_000_000
#: Masses below this are left out.
LEAST = 1e-15
#: About so many products are looked at to find out how many edges they have.
SAMPLE = 200


class Joined:
    """Expectations under many products of the same factors, by a sparse matrix.

    `factors`: the tables, and the cells of interface nodes. `rows`: of each product, the row of
    each component's table [products, components].

    Examples
    --------
    >>> coins = LatentFactors(3, [[0, 0], [0, 1], [1, 1]], [0, 1, 2], [1.0] * 3,
    ...     ([[0.5, 0.5]], [[0.25, 0.75], [1.0, 0.0]]))
    >>> Joined(coins, np.array([[0, 0], [0, 1]]))(np.array([7.0, 0.0, 14.0]))
    array([7., 7.])
    """

    def __init__(self, factors: LatentFactors, rows: Ints) -> None:
        self.factors, self.rows = factors, np.asarray(rows)
        distinct, self.of_rows = distinct_rows(self.rows)
        self._masses = _Tree(factors).masses(distinct)  # sparse [distinct rows, interfaces]

    def with_tables(self, tables: Sequence[Array]) -> "SeveralJoined":
        """Return the same expectations under several tables: [draws, rows, classes] each."""
        worlds = zip(*tables, strict=True)
        return SeveralJoined([Joined(replace(self.factors, tables=t), self.rows) for t in worlds])

    @cached_property
    def kept(self) -> Array:  # [distinct rows]
        """The mass of each product on cells: what expectations are divided by."""
        return np.asarray(self._masses.sum(axis=1)).ravel()

    @property
    def work(self) -> int:
        """The number of products in an expectation of all."""
        return int(self._masses.nnz)

    def __call__(self, values: Array) -> Array:  # [..., interfaces] to [..., products]
        """Return the expectation of what interface nodes are worth under each product."""
        return np.asarray(((self._masses @ values.T).T / self.kept)[..., self.of_rows])

    def matrix(self, used: Bools) -> Any:  # sparse [products, interfaces]
        """Return the weights of some of the products; the rows of others are empty."""
        from scipy.sparse import csr_array, diags_array

        kept = self.kept[self.of_rows]
        scale = diags_array(np.divide(used, kept, out=np.zeros(len(kept)), where=kept > 0))
        found = csr_array(scale @ self._masses[self.of_rows])
        found.eliminate_zeros()
        return found


class SeveralJoined:
    """Expectations under the same products of several factors."""

    def __init__(self, worlds: Sequence[Joined]) -> None:
        self.worlds, self.of_rows = worlds, worlds[0].of_rows
        self.kept = np.stack([world.kept for world in worlds])  # [draws, distinct rows]

    def __call__(self, values: Array) -> Array:  # [draws, interfaces] to [draws, products]
        """Return the expectation of what interface nodes are worth under each product."""
        pairs = zip(self.worlds, values, strict=True)
        return np.stack([world(row) for world, row in pairs])


def mean_edges(factors: LatentFactors, rows: Ints, most: float = math.inf) -> float:
    """Return on how many cells a product has mass, on average over a sample of them.

    Above `most` it need not be exact.
    """
    tree, sample = _Tree(factors), np.asarray(rows)[:: max(1, len(rows) // SAMPLE)]
    edges = 0
    for start in range(0, len(sample), SAMPLE // 8):
        edges += tree.masses(sample[start : start + SAMPLE // 8]).nnz
        if edges > most * len(sample):
            break
    return edges / max(1, len(sample))


class _Tree:
    """The beginnings of cells, component by component: those of each length are numbered."""

    def __init__(self, factors: LatentFactors) -> None:
        self.factors, classes = factors, factors.classes
        self.order = _certain_first(factors.tables)
        begun = np.zeros(len(classes), dtype=np.int64)
        #: Of each length, the first child of each beginning, and the class of each child.
        self.levels: list[tuple[Ints, Ints]] = []
        for component in self.order:
            size = int(classes[:, component].max()) + 1
            keys, longer = np.unique(begun * size + classes[:, component], return_inverse=True)
            before = int(begun.max(initial=0)) + 1
            first = np.searchsorted(keys // size, np.arange(before + 1))
            self.levels.append((first, keys % size))
            begun = longer.ravel()
        order = np.argsort(begun, kind="stable")
        #: Cells that have all classes in common are those of one whole beginning.
        self.cells = order, np.searchsorted(begun[order], np.arange(int(begun.max()) + 2))

    def masses(self, rows: Ints) -> Any:  # sparse [products, interfaces]
        """Return the masses of products on interface nodes."""
        from scipy.sparse import csr_array, vstack

        parts, start, step = [], 0, 64
        while start < len(rows):
            product, to, mass, most = self._join(rows[start : start + step])
            shape = len(rows[start : start + step]), self.factors.interfaces
            parts.append(csr_array((mass, (product, to)), shape=shape))
            start += step
            step = max(1, min(65_536, step * CHUNK // max(1, most)))
        none = csr_array((0, self.factors.interfaces))
        return csr_array(vstack(parts, format="csr")) if parts else none

    def _join(self, rows: Ints) -> tuple[Ints, Ints, Array, int]:
        """Return pairs of products and interface nodes with their mass, and the most pairs held."""
        product, begun = np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64)
        mass, most = np.ones(len(rows)), len(rows)
        for component, (first, classes) in zip(self.order, self.levels, strict=True):
            child, offsets = ranges(first[begun], first[begun + 1])
            counts = np.diff(offsets)
            product = np.repeat(product, counts)
            table = self.factors.tables[component]
            mass = np.repeat(mass, counts) * table[rows[product, component], classes[child]]
            here = np.flatnonzero(mass > LEAST)
            most = max(most, len(mass))
            product, begun, mass = product[here], child[here], mass[here]
        order, starts = self.cells
        cell, offsets = ranges(starts[begun], starts[begun + 1])
        cell, counts = order[cell], np.diff(offsets)
        mass = np.repeat(mass, counts) * self.factors.share[cell]
        return np.repeat(product, counts), self.factors.to[cell], mass, most


def _certain_first(tables: Sequence[Array]) -> list[int]:
    """Return components by the mean share of classes that are possible in a row."""
    shares = [float(np.mean(table > 0)) for table in tables]
    return sorted(range(len(tables)), key=shares.__getitem__)
