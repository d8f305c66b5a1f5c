"""Factors of the next interface node: distributions that many S_L share.

The states of an interface node are those with certain values of each component of the state. Seen
from one component, interface nodes that have the same values of it are of one *class*. A *cell* is
a combination of classes, one of each component, that interface nodes have. A row of a component's
table is a distribution of its class. One row of each table makes a distribution over cells, their
product, and so over interface nodes:

    P(i) = Σ over cells of i: share · Π over components c: tables[c][row of c, class of the cell]

divided by its sum over all i: what lies outside of all cells is left out.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import lt

import numpy as np

from rspmn.errors import CircuitError
from rspmn.types import Array, Ints


@dataclass(frozen=True, eq=False)
class LatentFactors:
    """Tables of the components of the next state, and which interface node each cell is of."""

    interfaces: int
    classes: Ints  # [cells, components]
    to: Ints  # [cells], the interface node
    share: Array  # [cells], of the cell; 1, unless several interface nodes have it
    tables: tuple[Array, ...]  # of each component, [rows, classes]

    def __post_init__(self) -> None:
        for name, kind in (("classes", np.int64), ("to", np.int64), ("share", np.float64)):
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=kind))
        tables = tuple(np.array(table, dtype=np.float64) for table in self.tables)
        object.__setattr__(self, "tables", tables)
        cells = len(self.to)
        if self.classes.shape != (cells, len(tables)) or self.share.shape != (cells,):
            raise CircuitError(
                f"LatentFactors: expected classes of {cells} cells and {len(tables)} components, "
                f"found shape {self.classes.shape}; and a share of each, found {self.share.shape}"
            )
        if not cells or self.to.min() < 0 or self.to.max() >= self.interfaces:
            raise CircuitError(
                f"LatentFactors: expected a cell or more, of interface nodes 0 to "
                f"{self.interfaces - 1}, found {sorted(set(self.to.tolist()))[-3:]}"
            )
        if not ((self.share > 0) & (self.share <= 1)).all():
            raise CircuitError("LatentFactors: expected shares above 0, at most 1")
        for number, table in enumerate(tables):
            self._check_table(number, table)

    def _check_table(self, number: int, table: Array) -> None:
        where, classes = f"LatentFactors, component {number}", self.classes[:, number]
        if table.ndim != 2 or not table.size:
            raise CircuitError(f"{where}: expected a table, found shape {table.shape}")
        if not (np.isfinite(table).all() and (table >= 0).all() and (table <= 1 + 1e-9).all()):
            raise CircuitError(f"{where}: expected probabilities")
        if classes.min() < 0 or classes.max() >= table.shape[1]:
            raise CircuitError(
                f"{where}: expected classes 0 to {table.shape[1] - 1}, found {classes.min()} to "
                f"{classes.max()}"
            )

    @cached_property
    def _content(self) -> bytes:
        """A digest of all arrays: factors of equal content are equal."""
        found = hashlib.blake2b(repr((self.interfaces, self.classes.shape)).encode())
        for part in (self.classes, self.to, self.share, *self.tables):
            found.update(repr(part.shape).encode() + part.tobytes())
        return found.digest()

    @cached_property
    def _sizes(self) -> list[int]:
        """The number of rows of each table."""
        return [len(table) for table in self.tables]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LatentFactors) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    def check_rows(self, rows: Sequence[int]) -> None:
        """Refuse rows that are not one of each table."""
        sizes = self._sizes
        fits = len(rows) == len(sizes) and min(rows, default=0) >= 0 and all(map(lt, rows, sizes))
        if not fits:
            raise CircuitError(
                f"FactoredLatents: expected a row of each of tables of {sizes} rows, found "
                f"{tuple(rows)}"
            )

    def masses(self, rows: Sequence[int]) -> Array:  # [interfaces]
        """Return what the product of some rows gives each interface node; at most 1 in all."""
        mass = self.share.copy()
        for table, row, classes in zip(self.tables, rows, self.classes.T, strict=True):
            mass *= table[row, classes]
        return np.bincount(self.to, mass, self.interfaces).astype(np.float64)

    def weights(self, rows: Sequence[int]) -> Array:  # [interfaces]
        """Return the distribution of interface nodes that some rows give.

        >>> coins = LatentFactors(3, [[0, 0], [0, 1], [1, 1]], [0, 1, 2], [1.0] * 3,
        ...     ([[0.5, 0.5]], [[0.25, 0.75], [1.0, 0.0]]))
        >>> coins.masses([0, 0]), coins.weights([0, 0]).round(3)
        (array([0.125, 0.375, 0.375]), array([0.143, 0.429, 0.429]))
        >>> coins.weights([0, 1])
        array([1., 0., 0.])
        """
        mass = self.masses(rows)
        total = float(mass.sum())
        if not total > 0:
            raise CircuitError(f"FactoredLatents: rows {tuple(rows)} lead to no interface node")
        return mass / total
