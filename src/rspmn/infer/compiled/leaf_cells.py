"""The leaves of a variable by cell: which are possible where, and their densities.

The ends of all leaves divide the line into cells, open intervals and the ends between them. In a
cell the same leaves are possible everywhere, so that only those need be evaluated. Values that
leaves list, as categories, are cells of their own.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from rspmn.circuit import Distribution
from rspmn.circuit.distributions import as_numbers
from rspmn.data.columns import Column
from rspmn.infer.compiled.leaf_tables import ListedValues, members_of
from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints
from rspmn.values import Mark, Value


class LeafCells:
    """The leaves of one variable.

    A cell is a number: the code of a listed value, or of none, and of the place on the line.
    """

    def __init__(self, leaves: Sequence[Distribution]) -> None:
        self.values = ListedValues(leaves)
        self.atoms, self.listed = self.values.codes, self.values.listed
        self.is_listed: Bools = np.array([leaf.atoms() is not None for leaf in leaves], dtype=bool)
        self.pieces = Pieces(leaves)
        self.others = {  # ranges of numbers of families that are not linear in pieces
            row: leaf
            for row, leaf in enumerate(leaves)
            if not self.is_listed[row] and leaf.pieces() is None
        }
        #: Whether a leaf is possible everywhere between its ends. [leaves]
        self.is_solid = self.is_listed | self.pieces.is_solid
        #: Whether a leaf is possible at the values that it lists and nowhere else. [leaves]
        self.is_closed = self.is_listed & np.isneginf(self.values.others)
        self._find_ends(leaves)
        numbers = as_numbers(list(self.atoms)).astype(np.float64)
        self._atom_codes = np.argsort(numbers)[: np.count_nonzero(~np.isnan(numbers))]
        self._atom_numbers = numbers[self._atom_codes]  # sorted; NaN, for text, comes last

    def _find_ends(self, leaves: Sequence[Distribution]) -> None:
        """Find the places on the line: 2k is before the end k, 2k + 1 the end itself."""
        spans = [(math.inf, -math.inf)] * len(leaves)
        for row, leaf in enumerate(leaves):
            if not self.is_listed[row]:
                low, high = as_numbers(leaf.support()).tolist()
                spans[row] = low, high
        low, high = np.array(spans, dtype=np.float64).reshape(-1, 2).T
        ranges = ~self.is_listed
        ends = np.unique(np.concatenate([low[ranges], high[ranges]]))
        self.ends: list[float] = ends[np.isfinite(ends)].tolist()
        self.places = 2 * len(self.ends) + 2  # the last one is for what is no number
        first, last = (2 * np.searchsorted(self.ends, end) + 1 for end in (low, high))
        first = np.where(np.isneginf(low), 0, first + self.pieces.is_open[0])
        last = np.where(np.isposinf(high), self.places - 2, last - self.pieces.is_open[1])
        self.first = np.where(ranges, first, 0)  # [leaves], the first place
        self.last = np.where(ranges, last, self.places - 1)  # [leaves], the last place

    @property
    def size(self) -> int:
        """The number of cells."""
        return (len(self.atoms) + 1) * self.places

    def cell(self, value: Value) -> int:
        """Return the cell of a value."""
        found = self._listed_cells.get(value)
        return self._cell(value, len(self.atoms)) if found is None else found

    @cached_property
    def _listed_cells(self) -> dict[Value, int]:
        return {value: self._cell(value, atom) for value, atom in self.atoms.items()}

    def _cell(self, value: Value, atom: int) -> int:
        """Return the cell of a value that is listed under a code."""
        if isinstance(value, str | Mark):
            return (atom + 1) * self.places - 1
        k = bisect_left(self.ends, value)
        on = k < len(self.ends) and self.ends[k] == value
        return atom * self.places + 2 * k + on

    def cells(self, column: Column) -> Ints:  # [n]
        """Return the cell of each value of a column, -1 where it is missing."""
        if column.kind is not Kind.CONTINUOUS:
            return np.asarray(np.array([*map(self.cell, column.domain), -1])[column.data])
        numbers = column.data
        k = np.searchsorted(self.ends, numbers)
        on = np.append(self.ends, np.nan)[k] == numbers
        found = 2 * k + on
        if self.atoms:
            found += len(self.atoms) * self.places
        if len(self._atom_numbers):
            near = np.minimum(
                np.searchsorted(self._atom_numbers, numbers), len(self._atom_numbers) - 1
            )
            here = self._atom_numbers[near] == numbers
            found[here] += (self._atom_codes[near[here]] - len(self.atoms)) * self.places
        missing = np.isnan(numbers)
        return np.where(missing, -1, found) if missing.any() else found

    def possible(self, leaf: Ints, cell: int | Ints) -> Bools:  # [n]
        """Return which leaves are possible in their cells."""
        place = cell % self.places
        between = (self.first[leaf] <= place) & (place <= self.last[leaf])
        if not self.atoms:
            return np.asarray(between)
        return np.asarray(between & (self.logs_of_atoms(leaf, cell) > -np.inf))

    def leaves_in(self, cell: int) -> Ints:
        """Return the leaves that are possible in a cell."""
        leaf = self._open
        atom = cell // self.places
        if atom < len(self.atoms):
            of_atoms, _ = self.values.leaves_of_codes
            here = of_atoms.items[of_atoms.starts[atom] : of_atoms.starts[atom + 1]]
            leaf = np.union1d(leaf, here)
        return leaf[self.possible(leaf, cell)]

    @cached_property
    def _open(self) -> Ints:
        return np.flatnonzero(~self.is_closed)

    def logs_of_atoms(self, leaf: Ints, cell: int | Ints) -> Array:  # [n]
        """Return the log-probability of a cell's listed value; 0 for leaves that list none."""
        found = self.values.log_probs(leaf, cell // self.places)
        return np.where(self.is_listed[leaf], found, 0.0)

    def logs(self, leaf: Ints, cells: Ints, numbers: Array) -> Array:  # [n]
        """Return the log-density of values under leaves; 0 in cell -1, a missing value."""
        with np.errstate(divide="ignore"):
            found = np.log(self.pieces.densities(leaf, numbers))
        if self.atoms:
            found += self.logs_of_atoms(leaf, cells)
        if self.others:
            for distribution, here in members_of(self.others, leaf):
                found[here] = distribution.log_probs(numbers[here])
        return found if cells.min(initial=0) >= 0 else np.where(cells < 0, 0.0, found)


class Pieces:
    """Densities that are linear in pieces, those of all leaves in one row.

    Leaves of other kinds have one piece, of density 1.
    """

    def __init__(self, leaves: Sequence[Distribution]) -> None:
        linear = [leaf.pieces() for leaf in leaves]
        knots = [pieces[0] if pieces else (0.0,) for pieces in linear]
        densities = [pieces[1] if pieces else (1.0,) for pieces in linear]
        counts = np.array([max(1, len(of_leaf) - 1) for of_leaf in knots], dtype=np.int64)
        sizes = np.array([len(of_leaf) for of_leaf in knots], dtype=np.int64)
        self.start = np.cumsum(sizes) - sizes  # [leaves], the first piece
        self.last = self.start + counts - 1  # [leaves], the last one
        self.knots = np.array([k for of_leaf in knots for k in of_leaf], dtype=np.float64)
        self.heights = np.array([density for of_leaf in densities for density in of_leaf])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            slopes = np.diff(self.heights, append=0.0) / np.diff(self.knots, append=np.inf)
        slopes[self.start + sizes - 1] = 0.0
        self.slopes = slopes
        self.halvings = int(counts.max(initial=1) - 1).bit_length()
        self._middle = np.maximum((self.start + self.last + 1) >> 1, self.start)
        self._middle_knot = np.where(self._middle > self.start, self.knots[self._middle], np.inf)
        ends = [(of_leaf[0], of_leaf[-1]) for of_leaf in densities]
        self.is_open = (np.array(ends).reshape(-1, 2).T == 0).astype(int)  # [2, leaves]
        inside = [min(of_leaf[1:-1], default=1.0) > 0 for of_leaf in densities]
        is_linear = [pieces is not None for pieces in linear]
        self.is_solid = np.array(inside, dtype=bool) & np.array(is_linear, dtype=bool)

    def densities(self, leaf: Ints, numbers: Array) -> Array:  # [n]
        """Return the density at numbers that are not beyond the ends of the leaves."""
        right = self._middle_knot[leaf] <= numbers
        piece = np.where(right, self._middle[leaf], self.start[leaf])
        if self.halvings > 1:
            last = np.where(right, self.last[leaf], self._middle[leaf] - 1)
        for _ in range(self.halvings - 1):
            middle = (piece + last + 1) >> 1
            right = self.knots[middle] <= numbers
            piece, last = np.where(right, middle, piece), np.where(right, last, middle - 1)
        found = self.heights[piece] + self.slopes[piece] * (numbers - self.knots[piece])
        return np.asarray(np.maximum(found, 0.0))
