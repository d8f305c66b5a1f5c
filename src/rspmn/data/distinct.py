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


def _from_lowest(numbers: NDArray[Any]) -> Ints | None:
    """Return how far integers are above the lowest; None if they are far apart, or no integers."""
    if numbers.dtype.kind != "i" or not len(numbers):
        return None
    low = int(numbers.min())
    if int(numbers.max()) - low > SPAN * len(numbers) + MORE:
        return None
    return numbers.astype(np.int64) - low
