"""Grouping: which rows of a large table are equal, without sorting it.

Columns are joined into one integer per row. Where few of the possible integers can occur they are
marked in a table, one pass over the rows; sorting is left for numbers that are too many for that.
The order of groups is that of the columns, so equal tables in any order have equal groups.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from rspmn.data.coding import Column
from rspmn.schema import Kind

__all__ = ["Groups", "column_groups", "joint_groups"]

Codes = NDArray[np.int32] | NDArray[np.int64]
#: A table of marks may be so many times as long as there are rows, or so long in any case.
SPARSE, SHORT = 4, 2**16
#: So many distinct numbers are looked for before sorting them all.
FEW = 16
#: Look at so many numbers to guess which there are.
GLANCE = 1024


class Groups:
    """The group of each row: equal numbers for equal rows, below `size`."""

    def __init__(self, codes: Codes, size: int) -> None:
        self.codes = codes  # [n], from 0
        self.size = size  # numbers below it may occur

    def __len__(self) -> int:
        return len(self.codes)

    def __mul__(self, other: "Groups") -> "Groups":
        """Return the groups of rows that are equal in both."""
        one = self
        if one.size * other.size > self._most:
            one = one.dense()
        if one.size * other.size > 2**62:
            other = other.dense()
        size = one.size * other.size
        if size >= 2**31:
            codes: Codes = one.codes.astype(np.int64)
        else:
            codes = one.codes.astype(np.int32)
        codes *= other.size
        codes += other.codes
        return Groups(codes, size)

    @property
    def _most(self) -> int:
        return max(SHORT, SPARSE * len(self))

    def dense(self) -> "Groups":
        """Return the groups that do occur, numbered without gaps in the same order."""
        if self.size > self._most:
            distinct, codes = np.unique(self.codes, return_inverse=True)
            return Groups(codes, len(distinct))
        occurs = np.zeros(self.size, dtype=bool)
        occurs[self.codes] = True
        if occurs.all():
            return self
        number = np.cumsum(occurs, dtype=np.int32) - 1
        return Groups(number[self.codes], int(number[-1]) + 1)

    def weights(self, weights: NDArray[np.int64] | None = None) -> NDArray[np.int64]:  # [size]
        """Return how many rows each group has, or what they weigh together."""
        if weights is None:
            return np.bincount(self.codes, minlength=self.size)
        total = np.zeros(self.size, dtype=np.int64)
        np.add.at(total, self.codes, weights)
        return total

    def members(self) -> NDArray[np.int64]:  # [size]
        """Return one row of each group; call it on dense groups."""
        row = np.zeros(self.size, dtype=np.int64)
        row[self.codes] = np.arange(len(self.codes))
        return row


def joint_groups(columns: Iterable[Column], rows: int) -> Groups:
    """Return the groups of rows that are equal in all of some columns, without gaps."""
    groups = Groups(np.zeros(rows, dtype=np.int32), 1)
    for column in columns:
        groups = groups * column_groups(column)
    return groups.dense()


def column_groups(column: Column) -> Groups:
    """Return the groups of rows with equal values, in their order, missing ones first."""
    if column.kind is Kind.CONTINUOUS:
        return _number_groups(column.data)
    if column.data.min(initial=0) >= 0:
        return Groups(column.data, max(1, len(column.domain)))
    return Groups(column.data + 1, len(column.domain) + 1)


def _number_groups(numbers: NDArray[np.float64]) -> Groups:
    """Return the groups of equal floats, in their order, NaN first."""
    few = _few_numbers(numbers)
    if few is not None:
        codes = np.zeros(len(numbers), dtype=np.int32)
        for number in few[1:]:
            codes += numbers >= number
        return Groups(codes, max(1, len(few)))
    distinct, number = np.unique(numbers, return_inverse=True)
    if len(distinct) and np.isnan(distinct[-1]):  # it is sorted last
        number = (number + 1) % len(distinct)
    return Groups(number, max(1, len(distinct)))


def _few_numbers(numbers: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return all distinct numbers, sorted, if they are few and none is NaN."""
    step = max(1, len(numbers) // GLANCE)
    few = np.unique(numbers[::step])
    if len(few) > FEW:
        return None
    known = np.zeros(len(numbers), dtype=bool)
    for number in few:
        known |= numbers == number
    if not known.all():
        rest = np.unique(numbers[~known])
        few = np.union1d(few, rest)
    return None if len(few) > FEW or np.isnan(few).any() else few
