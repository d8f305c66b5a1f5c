"""Keys: one integer for each row of a table, equal for equal rows.

Only these integers are sorted to group rows. The values of a group are recovered from its integer,
so that no row has to be kept for each. Groups are in the order of the columns: equal tables in any
order of rows have equal groups.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.data.columns import Column, narrowest
from rspmn.data.distinct import distinct_integers
from rspmn.schema import Kind
from rspmn.types import Array, Ints

#: Numbers with at most this many distinct values are coded without sorting them all.
FEW = 16
#: The number of values that are looked at to guess which there are.
GLANCE = 4096
#: So many numbers at once are compared with each of few values.
BLOCK = 2**15
#: Joined integers stay below this.
LARGEST = 2**62


@dataclass(frozen=True, eq=False)
class Keys:
    """An integer for each row: equal integers for equal rows, in the order of the rows."""

    codes: NDArray[Any]  # [n], from 0
    size: int  # all are below it
    values: NDArray[Any] | None = None  # [size], of a single column: the value of each
    parts: tuple["Keys", "Keys"] | None = None  # the keys that were joined
    originals: Ints | None = None  # [size], the integers before `dense`

    def dense(self) -> "Keys":
        """Return the same keys, numbered without gaps in the same order."""
        distinct, codes = distinct_integers(self.codes)
        before = distinct.astype(np.int64)
        if self.originals is not None:
            before = self.originals[before]
        return replace(self, codes=codes, size=max(1, len(distinct)), originals=before)

    def read(self, integers: Ints) -> list[NDArray[Any]]:
        """Return the values of some integers, column by column."""
        if self.originals is not None:
            integers = self.originals[integers]
        if self.parts is None:
            return [integers if self.values is None else self.values[integers]]
        one, other = self.parts
        high, low = np.divmod(integers, other.size)
        return [*one.read(high), *other.read(low)]

    def members(self) -> Ints:  # [size]
        """Return a row of each integer; all integers of dense keys have one."""
        row = np.zeros(self.size, dtype=np.int64)
        row[self.codes] = np.arange(len(self.codes))
        return row


def joint_groups(columns: Collection[Column], rows: int) -> Keys:
    """Return dense keys of rows by some columns; of no size if there are no rows."""
    if not columns or not rows:
        return Keys(np.zeros(rows, dtype=np.int64), min(1, rows))
    return join([column_keys(column) for column in columns]).dense()


def group_weights(groups: NDArray[Any], weights: Array, size: int = 0) -> Array:  # [groups]
    """Return the weight of each group: of `size` groups or, if there are more, of all of them."""
    return np.bincount(groups, weights, size).astype(np.float64)


def joint_key(columns: Sequence[tuple[NDArray[Any], int]]) -> Ints:  # [n]
    """Return one integer for each row, given codes of its columns and how many codes there are."""
    return join([Keys(codes, size) for codes, size in columns]).codes.astype(np.int64)


def join(keys: Sequence[Keys]) -> Keys:
    """Return the keys of several columns together, in the narrowest type that holds them.

    Neighbours are joined in narrow types as far as possible, and then with each other: most of the
    work is done on short numbers.
    """
    runs: list[Keys] = []
    owned = False  # whether the last run's integers are our own to write to
    for key in keys:
        if runs and narrowest(runs[-1].size * key.size) is narrowest(runs[-1].size):
            runs[-1] = _joined(runs[-1], key, in_place=owned)
            owned = True
        else:
            runs.append(key)
            owned = False
    found = runs[0]
    for place, run in enumerate(runs[1:]):
        found = _joined(found, run, in_place=place > 0)
    return found


def _joined(one: Keys, other: Keys, in_place: bool) -> Keys:
    if one.size * other.size > LARGEST:
        one, in_place = one.dense(), True
    if one.size * other.size > LARGEST:
        other = other.dense()
    size = one.size * other.size
    codes = one.codes.astype(narrowest(size), copy=not in_place)
    codes *= codes.dtype.type(other.size)
    codes += other.codes
    return Keys(codes, size, parts=(one, other))


def column_keys(column: Column) -> Keys:
    """Return integers for a column's values, in their order, missing ones first."""
    if column.kind is Kind.CONTINUOUS:
        return _number_keys(column.data)
    size = max(1, len(column.domain))
    if column.data.min(initial=0) >= 0:
        return Keys(column.data, size, np.arange(size))
    codes = column.data.astype(narrowest(size + 1)) + 1
    return Keys(codes, size + 1, np.arange(-1, size))


def _number_keys(numbers: Array) -> Keys:
    """Return integers for floats, in their order, NaN first."""
    few = np.unique(numbers[:: max(1, len(numbers) // GLANCE)])
    while len(few) <= FEW and not np.isnan(few).any():
        codes, others = np.zeros(len(numbers), dtype=np.int8), []
        for start in range(0, len(numbers), BLOCK):
            part, into = (every[start : start + BLOCK] for every in (numbers, codes))
            for number in few[1:]:
                into += part >= number
            if sum(np.count_nonzero(part == number) for number in few) < len(part):
                others.append(part[few[into] != part])
        found = np.union1d(few, np.concatenate([few[:0], *others]))
        if len(found) == len(few):
            return Keys(codes, max(1, len(few)), few)
        few = found
    distinct, place = np.unique(numbers, return_inverse=True)
    if len(distinct) and np.isnan(distinct[-1]):  # it is sorted last
        place, distinct = (place + 1) % len(distinct), np.roll(distinct, 1)
    return Keys(place, max(1, len(distinct)), distinct)
