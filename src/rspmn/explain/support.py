"""The returns that are possible: all of them where they are few, else a grid.

Masses are at points. What is moved to between two points goes to both, in proportion, so that the
mean is kept; where all sums are points nothing is rounded.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from rspmn.types import Array, Ints

#: Returns that differ by no more than this share of the largest are one: sums are rounded so far.
ROUNDING = 1e-12
#: Numbers are multiples of a unit up to this share of the largest.
MULTIPLE = 1e-9
#: A unit that is less than this share of the largest number is none.
LEAST_UNIT = 1e-6


@dataclass(frozen=True, eq=False)
class Support:
    """Points for returns, ascending."""

    points: Array  # [size]

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def near(self) -> float:
        """Returns that are no further apart are one."""
        return ROUNDING * float(np.abs(self.points).max(initial=0.0))

    def with_sums(self, rewards: Array, most: int) -> tuple["Support", float]:
        """Return points for what is, and for what is with a reward on top; and the rounding.

        If they were more than `most`, they are a grid: then a move rounds by less than its unit.
        """
        sums = np.unique(
            np.concatenate([self.points, *(self.points + r for r in rewards.tolist())])
        )
        apart = np.append(True, np.diff(sums) > ROUNDING * np.abs(sums).max())
        if np.count_nonzero(apart) <= most:
            return Support(sums[apart]), 0.0
        unit = float(sums[-1] - sums[0]) / (most - 3)  # one point further: masses are rounded up
        return Support(sums[0] + unit * np.arange(-1, most - 1)), unit

    def between(self, values: Array) -> tuple[Ints, Ints, Array]:
        """Return the points next to each value, and how far it is on the way to the second.

        What is beyond the first or last point is there.
        """
        size = len(self.points)
        left = np.clip(np.searchsorted(self.points, values + self.near, side="right") - 1, 0, None)
        right = np.minimum(left + 1, size - 1)
        gap = np.where(right > left, self.points[right] - self.points[left], 1.0)
        share = np.clip((values - self.points[left]) / gap, 0.0, 1.0)
        share[np.abs(values - self.points[left]) <= self.near] = 0.0
        return left, right, share

    def at(self, values: Array) -> Any:  # sparse [values, size]
        """Return how values are divided between the points next to them.

        >>> Support(np.array([0.0, 1.0, 4.0])).at(np.array([1.0, 1.75, 9.0])).toarray()
        array([[0.  , 1.  , 0.  ],
               [0.  , 0.75, 0.25],
               [0.  , 0.  , 1.  ]])
        """
        from scipy.sparse import csr_array

        left, right, share = self.between(values)
        rows = np.arange(len(values))
        parts = np.concatenate([1 - share, share])
        places = np.concatenate([rows, rows]), np.concatenate([left, right])
        found = csr_array((parts, places), shape=(len(values), len(self)))
        found.eliminate_zeros()
        return found


@lru_cache(maxsize=8)
def normal_values(count: int) -> Array:  # [count]
    """Return values of equal probability with mean 0 and variance 1 in place of a normal number.

    Each is the mean of a part of the distribution; then they are scaled to variance 1.
    """
    from scipy.special import ndtri

    edges = ndtri(np.arange(count + 1) / count)
    means = -np.diff(np.exp(-(edges**2) / 2))  # of a normal density, up to a factor
    return np.asarray(means / np.sqrt((means**2).mean()))


def by_group(codes: Ints) -> Iterable[tuple[int, Ints]]:
    """Return each code, and where it is."""
    order = np.argsort(codes, kind="stable")
    firsts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    parts = np.split(order, firsts[1:])
    return ((int(codes[part[0]]), part) for part in parts if len(part))


def common_unit(numbers: Array) -> float:
    """Return the largest number that all are multiples of; 0 if there is none, or all are 0.

    >>> common_unit(np.array([0.0, 0.3, -0.45]))
    0.15
    """
    largest = float(np.abs(numbers).max(initial=0.0))
    found = 0.0
    for number in np.abs(numbers).tolist():
        larger, smaller = max(found, number), min(found, number)
        while smaller > MULTIPLE * largest:
            larger, smaller = smaller, larger - smaller * round(larger / smaller)
            smaller = abs(smaller)
        found = larger
        if 0 < found < LEAST_UNIT * largest:
            return 0.0
    return float(f"{found:.12g}")
