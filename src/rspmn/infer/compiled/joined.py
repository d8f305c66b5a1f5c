"""Expectations under products of factors by a sparse matrix of their masses.

Where most components are nearly certain, a product has mass on few cells, however many there are.
Where products have mass on most cells, `rspmn.infer.compiled.contraction` takes less.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from rspmn.circuit import LatentFactors
from rspmn.data.distinct import distinct_rows
from rspmn.infer.compiled.cell_tree import CellTree
from rspmn.types import Array, Bools, Ints


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
        self._masses = CellTree(factors).masses(distinct).on  # sparse [distinct rows, interfaces]

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
