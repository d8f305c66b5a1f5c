"""Distinct integers: by counting where they are close to each other, else by sorting."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.types import Ints

#: Counting takes an entry for each integer of the range: at most so many for each number, and more.
SPAN, MORE = 4, 1024


def distinct_integers(numbers: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """Return the sorted distinct integers, and of each number its place among them.

    >>> distinct_integers(np.array([7, 5, 7]))
    (array([5, 7]), array([1, 0, 1]))
    """
    countable = _countable(numbers)
    if countable is None:
        distinct, inverse = np.unique(numbers, return_inverse=True)
        return distinct, inverse
    places, low = countable
    there = np.bincount(places) > 0
    distinct = (np.flatnonzero(there) + low).astype(numbers.dtype)
    return distinct, (np.cumsum(there) - 1)[places]


def distinct_counts(numbers: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """Return the sorted distinct integers, and how often each occurs.

    >>> distinct_counts(np.array([7, 5, 7]))
    (array([5, 7]), array([1, 2]))
    """
    countable = _countable(numbers)
    if countable is None:
        return np.unique(numbers, return_counts=True)
    places, low = countable
    counts = np.bincount(places)
    there = np.flatnonzero(counts)
    return (there + low).astype(numbers.dtype), counts[there]


def find_sorted(keys: NDArray[Any], asked: NDArray[Any]) -> Ints:  # as `asked`
    """Return the place of each number that is asked for among sorted ones, -1 if it is not there.

    >>> find_sorted(np.array([2, 5, 7]), np.array([7, 3]))
    array([ 2, -1])
    """
    if not len(keys):
        return np.full(np.shape(asked), -1)
    place = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    return np.where(keys[place] == asked, place, -1)


def is_countable(span: int, numbers: int) -> bool:
    """Return whether so many numbers, which differ by a span at most, are counted, not sorted."""
    return span <= SPAN * numbers + MORE


def _countable(numbers: NDArray[Any]) -> tuple[NDArray[Any], int] | None:
    """Return how far integers are above one of them, and that; None if they are far apart.

    Or if they are no integers. It is 0 if all are near it, else the lowest.
    """
    if numbers.dtype.kind != "i" or not len(numbers):
        return None
    low, high = int(numbers.min()), int(numbers.max())
    if low >= 0 and is_countable(high, len(numbers)):
        return numbers, 0
    if not is_countable(high - low, len(numbers)):
        return None
    return numbers.astype(np.int64) - low, low


def count_distinct(numbers: Ints) -> int:
    """Return how many numbers are distinct.

    >>> count_distinct(np.array([3, 1, 3]))
    2
    """
    in_order = np.sort(numbers)
    return int(np.count_nonzero(in_order[1:] != in_order[:-1])) + int(len(numbers) > 0)


def distinct_rows(table: Ints) -> tuple[Ints, Ints]:
    """Return the distinct rows of a table, sorted, and which of them each row is.

    Rows are compared by a number for each: if 64 bits hold all that are possible, in the order of
    rows. Otherwise it is a hash, and rows are compared with the first row of the same hash; if
    some rows of one hash differ, all are sorted instead.

    >>> distinct_rows(np.array([[2, 0], [1, 5], [2, 0]]))
    (array([[1, 5],
           [2, 0]]), array([1, 0, 1]))
    """
    columns = np.ascontiguousarray(table.T, dtype=np.int64)
    if not columns.size:
        return table[:1], np.zeros(len(table), dtype=np.int64)
    lows = columns.min(axis=1)
    sizes = (columns.max(axis=1).astype(object) - lows + 1).tolist()
    exact = math.prod(sizes) < 2**63
    key = np.zeros(len(table), dtype=np.uint64)
    for column, low, size in zip(columns, lows, sizes, strict=True):
        key *= np.uint64(size if exact else 0x9E3779B97F4A7C15)  # a polynomial, modulo 2⁶⁴
        key += (column - low).view(np.uint64)
    order = np.argsort(key)
    begins = np.append(True, np.diff(key[order]) != 0)
    first, which = order[begins], np.empty(len(key), dtype=np.int64)
    which[order] = np.cumsum(begins) - 1
    rows = table[first]
    if exact:
        return rows, which
    if not all(np.array_equal(column[first][which], column) for column in columns):
        found, which = np.unique(table, axis=0, return_inverse=True)
        return found, which.ravel()
    order = np.lexsort(rows.T[::-1])
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = np.arange(len(rows))
    return rows[order], place[which]
