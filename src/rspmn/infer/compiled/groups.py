"""Draws from many distributions at once."""

import numpy as np

from rspmn.types import Array, Ints


class Groups:
    """Groups of masses, consecutive in one array, from which members are drawn."""

    def __init__(self, masses: Array, starts: Ints) -> None:
        """Take the masses of group k from masses[starts[k] : starts[k + 1]]."""
        self.starts, self.single = starts[:-1], np.diff(starts) == 1
        group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        # Shares are added up, not masses: small ones would be lost beside those of other groups.
        shares = masses / np.bincount(group, masses, len(starts) - 1)[group]
        sums = np.concatenate([[0.0], np.cumsum(shares)])
        #: The distribution function of each group plus its number: sorted.
        self.ends = group + (sums[1:] - sums[starts[group]])

    def draw(self, groups: Ints, rng: np.random.Generator) -> Ints:
        """Draw a member of each of some groups, never one of mass 0.

        A group of one takes no random number.
        """
        found = self.starts[groups]
        several = np.flatnonzero(~self.single[groups])
        group = groups[several]
        at = group + rng.random(len(group))
        below = np.nextafter(group + 1.0, 0.0)  # a sum may be rounded up into the next group
        found[several] = np.searchsorted(self.ends, np.minimum(at, below), side="right")
        return found


def drawn_columns(weights: Array, rng: np.random.Generator) -> Ints:  # [rows]
    """Return a column for each row of weights [rows, columns], which need not sum to 1."""
    rows, columns = weights.shape
    starts = np.arange(rows + 1) * columns
    found = Groups(weights.ravel(), starts).draw(np.arange(rows), rng)
    return np.asarray(found - starts[:-1])
