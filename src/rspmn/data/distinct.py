"""Distinct integers: by counting where they are close to each other, else by sorting."""

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
    places = _from_lowest(numbers)
    if places is None:
        distinct, inverse = np.unique(numbers, return_inverse=True)
        return distinct, inverse
    there = np.bincount(places) > 0
    distinct = (np.flatnonzero(there) + numbers.min()).astype(numbers.dtype)
    return distinct, (np.cumsum(there) - 1)[places]


def distinct_counts(numbers: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """Return the sorted distinct integers, and how often each occurs.

    >>> distinct_counts(np.array([7, 5, 7]))
    (array([5, 7]), array([1, 2]))
    """
    places = _from_lowest(numbers)
    if places is None:
        return np.unique(numbers, return_counts=True)
    counts = np.bincount(places)
    there = np.flatnonzero(counts)
    return (there + numbers.min()).astype(numbers.dtype), counts[there]


def _from_lowest(numbers: NDArray[Any]) -> Ints | None:
    """Return how far integers are above the lowest; None if they are far apart, or no integers."""
    if numbers.dtype.kind != "i" or not len(numbers):
        return None
    low = int(numbers.min())
    if int(numbers.max()) - low > SPAN * len(numbers) + MORE:
        return None
    return numbers.astype(np.int64) - low if low else numbers


def count_distinct(numbers: Ints) -> int:
    """Return how many numbers are distinct.

    >>> count_distinct(np.array([3, 1, 3]))
    2
    """
    in_order = np.sort(numbers)
    return int(np.count_nonzero(in_order[1:] != in_order[:-1])) + int(len(numbers) > 0)


def distinct_rows(table: Ints) -> tuple[Ints, Ints]:
    """Return the distinct rows of a table, sorted, and which of them each row is.

    Rows are compared by a hash, and with the first row of the same hash. If some rows of one hash
    differ, all are sorted instead.

    >>> distinct_rows(np.array([[2, 0], [1, 5], [2, 0]]))
    (array([[1, 5],
           [2, 0]]), array([1, 0, 1]))
    """
    key = np.zeros(len(table), dtype=np.uint64)
    for column in table.T:  # a polynomial in an odd number, modulo 2⁶⁴
        key *= np.uint64(0x9E3779B97F4A7C15)
        key += column.astype(np.uint64)
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    rows, which = table[first], which.ravel()
    if not all(np.array_equal(column[first][which], column) for column in table.T):
        found, which = np.unique(table, axis=0, return_inverse=True)
        return found, which.ravel()
    order = np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(len(rows))
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = np.arange(len(rows))
    return rows[order], place[which]
