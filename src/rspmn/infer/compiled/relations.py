"""Sparse relations: a sorted list of integers for each row, and what two lists have in common.

They stand for tables that are nearly empty: the values that a leaf lists, the successors of an S_L,
the interface nodes that a step may be in. Joining two of them takes time in proportion to the
shorter lists, whatever the size of the tables.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rspmn.circuit.node_arrays import ranges as ranges
from rspmn.data.distinct import find_sorted
from rspmn.types import Ints

#: A relation is also kept as a table if that is at most so many times as large.
ROOM = 8


@dataclass(frozen=True, eq=False)
class Relation:
    """Pairs of a row and an item, sorted."""

    starts: Ints  # [rows + 1]; row i has the entries starts[i]:starts[i + 1]
    items: Ints  # [entries], increasing within a row
    size: int  # all items are below it

    @classmethod
    def of_keys(cls, keys: Ints, rows: int, size: int) -> "Relation":
        """Return the relation of sorted keys, row · size + item."""
        row, item = np.divmod(keys, max(1, size))
        return cls(np.searchsorted(row, np.arange(rows + 1)), item, size)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def counts(self) -> Ints:  # [rows]
        """The number of items in each row."""
        return np.diff(self.starts)

    @cached_property
    def keys(self) -> Ints:  # [entries], increasing
        """Each entry as one integer: row · size + item."""
        return np.repeat(np.arange(len(self)), self.counts) * self.size + self.items

    def find(self, row: Ints, item: int | Ints) -> Ints:  # [n]
        """Return the entry of each pair, -1 if it is not there.

        >>> Relation(np.array([0, 2, 3]), np.array([4, 7, 4]), 10).find(
        ...     np.array([0, 1, 1]), np.array([7, 4, 7])
        ... )
        array([ 1,  2, -1])
        """
        wanted = row * self.size + item
        if self._table is not None:
            return np.asarray(self._table[wanted])
        return find_sorted(self.keys, wanted)

    @cached_property
    def _table(self) -> Ints | None:  # [rows · size]
        """The entry of every pair, -1 if it is not there; None if most are not."""
        if not len(self.items) or len(self) * self.size > ROOM * len(self.items) + ROOM:
            return None
        found = np.full(len(self) * self.size, -1)
        found[self.keys] = np.arange(len(self.items))
        return found

    def between(self, row: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """Return the entries of rows with items from low to high, as [starts, stops)."""
        start = np.searchsorted(self.keys, row * self.size + low)
        stop = np.searchsorted(self.keys, row * self.size + high, side="right")
        return start, np.maximum(start, stop)

    def transposed(self) -> tuple["Relation", Ints]:
        """Return the rows of each item, and which entry each of these pairs is here."""
        order = np.argsort(self.items, kind="stable")
        row = np.repeat(np.arange(len(self)), self.counts)[order]
        starts = np.searchsorted(self.items[order], np.arange(self.size + 1))
        return Relation(starts, row, len(self)), order


def common(one: Relation, row: Ints, other: Relation, other_row: Ints) -> tuple[Ints, Ints, Ints]:
    """Return where lists of two relations have items in common.

    For each k, row[k] of one is compared with other_row[k] of the other. Returned are, for each
    item in both, k, the entry of the one and that of the other; sorted by k, then by item.

    >>> one = Relation(np.array([0, 3]), np.array([1, 4, 6]), 10)
    >>> other = Relation(np.array([0, 1, 3]), np.array([4, 1, 6]), 10)
    >>> common(one, np.array([0, 0]), other, np.array([0, 1]))
    (array([0, 1, 1]), array([1, 0, 2]), array([0, 1, 2]))
    """
    shorter = one.counts[row] <= other.counts[other_row]
    if shorter.all():
        return _found(one, row, other, other_row, np.arange(len(row)))
    here = np.flatnonzero(~shorter)
    k, of_other, of_one = _found(other, other_row, one, row, here)
    if len(here) == len(row):
        return k, of_one, of_other
    rest = _found(one, row, other, other_row, np.flatnonzero(shorter))
    order = np.argsort(np.append(k, rest[0]), kind="stable")
    both = zip((k, of_one, of_other), rest, strict=True)
    k, of_one, of_other = (np.append(*parts)[order] for parts in both)
    return k, of_one, of_other


def _found(
    one: Relation, row: Ints, other: Relation, other_row: Ints, here: Ints
) -> tuple[Ints, Ints, Ints]:
    """Return what `common` does for some k, looking up items of the one in the other."""
    entry, first = ranges(one.starts[row[here]], one.starts[row[here] + 1])
    k = np.repeat(here, np.diff(first))
    found = other.find(other_row[k], one.items[entry])
    hit = np.flatnonzero(found >= 0)
    return k[hit], entry[hit], found[hit]
