"""Which states have, for each two components, values that the log has together."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from rspmn.data.distinct import find_sorted
from rspmn.types import Bools, Ints

#: Two components of at most so many pairs of values have a table of them, others a sorted list.
MOST_PAIRS = 1_000_000


class SeenTogether:
    """Tells whether each two components of states have values that were seen together.

    `values`: the values of components in the states of the log [states, components]. `sizes`: the
    number of values of each component.

    >>> seen = SeenTogether(np.array([[0, 0, 1], [1, 1, 0], [0, 1, 0]]), [2, 2, 2])
    >>> seen(np.array([[0, 1, 0], [1, 0, 0], [0, 1, 1]]))
    array([ True, False, False])
    """

    def __init__(self, values: Ints, sizes: Sequence[int]) -> None:
        self.sizes, self._pairs = sizes, []
        self._alone = [np.unique(column) for column in values.T]
        for one, other in combinations(range(len(sizes)), 2):
            keys = self._keys(values, one, other)
            known: Bools | Ints
            if sizes[one] * sizes[other] <= MOST_PAIRS:
                known = np.zeros(sizes[one] * sizes[other], dtype=bool)
                known[keys] = True
            else:
                known = np.unique(keys)
            self._pairs.append((one, other, known))

    def _keys(self, values: Ints, one: int, other: int) -> Ints:
        return values[:, one] * np.int64(self.sizes[other]) + values[:, other]

    def __call__(self, values: Ints) -> Bools:  # [states]
        """Tell it of some states."""
        found = np.ones(len(values), dtype=bool)
        for one, other, known in self._pairs:
            keys = self._keys(values, one, other)
            found &= known[keys] if known.dtype == bool else find_sorted(known, keys) >= 0
        return found

    def alone(self, values: Ints) -> Bools:  # [states]
        """Tell which states have values of components that were all seen, though not together."""
        columns = zip(self._alone, values.T, strict=True)
        seen = [find_sorted(known, column) >= 0 for known, column in columns]
        return np.asarray(np.all(seen, axis=0))
