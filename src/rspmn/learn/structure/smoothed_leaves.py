"""Leaves in which no value is impossible: shrunk towards the whole table, with tails.

A leaf estimated from n rows is mixed with the distribution of the variable in all rows of the
table, which has the weight of some more rows, the pseudo-rows. Values beyond all that was seen have
a small probability:

- A category that is not listed has the share of values that were seen once (Good and Turing), and
  1/N² more, N being the number of rows.
- A number below the lowest or above the highest of N comes with probability 2/(N + 2). A tail of
  this weight is added to the density: Student's t around all numbers, or bins of integers that
  double in width.
"""

import numpy as np

from rspmn.circuit import Distribution, IntegerHistogram, NetworkBuilder, StudentT
from rspmn.circuit.distributions import Values, as_numbers
from rspmn.data.keys import group_weights
from rspmn.learn.structure.leaves import Families, fit_leaf
from rspmn.learn.structure.rows import Rows
from rspmn.schema import Kind
from rspmn.types import Array, Ints

#: Integers are less than this.
LARGEST = 2**62
#: A leaf of numbers is fitted to the values of codes that have at least this share of the most
#: frequent one.
RELEVANT = 0.02


class SmoothedLeaves:
    """The leaves of one variable of a table."""

    def __init__(self, rows: Rows, name: str, families: Families) -> None:
        self.name = name
        #: The distribution in all rows.
        self.whole: Distribution = fit_leaf(rows, name, families).distribution
        column, codes = rows.column(name), rows.codes(name)
        present = np.flatnonzero(~column.missing)
        found, first, group = np.unique(
            column.data[present], return_index=True, return_inverse=True
        )
        self._values: Values = found  # sorted
        if column.kind is not Kind.CONTINUOUS:
            self._values = [column.domain[code] for code in found.tolist()]
        self._weights = group_weights(group, rows.weights[present], len(found))
        self._codes = codes[present][first].astype(np.int64)  # [values]
        self._by_code = group_weights(self._codes, self._weights, rows.table.sizes[name])
        self.total = float(self._weights.sum())
        self._tail = self._tail_of(column.kind) if self.total else None

    def _tail_of(self, kind: Kind) -> Distribution | None:
        """Return numbers beyond those that were seen; None if the leaf itself has some."""
        if self.whole.atoms() is not None or not self._is_bounded:
            return None
        if kind is Kind.INTEGER:
            return integers_around(self._values)
        return StudentT.fit(self._values, self._weights)

    @property
    def _is_bounded(self) -> bool:
        return bool(np.isfinite(as_numbers(self.whole.support())).any())

    def add(self, builder: NetworkBuilder, counts: Array, pseudo_rows: float) -> int:
        """Add the leaf of so many rows of each code, smoothed by so many rows of the table."""
        if not self.total:
            return builder.leaf(self.name, self.whole)
        weights = self._weights * (counts / np.maximum(self._by_code, 1e-300))[self._codes]
        if self.whole.atoms() is not None:
            return self._add_categories(builder, weights, pseudo_rows)
        # codes that hardly occur are left to the pseudo-rows, at least one
        main = np.flatnonzero((counts >= RELEVANT * counts.max())[self._codes] & (weights > 0))
        parts = [self.whole]
        shares = [max(pseudo_rows, 1.0)]
        if len(main):
            parts.append(type(self.whole).fit(self._some_values(main), weights[main]))
            shares.append(float(counts.sum()))
        if self._tail is not None:
            parts.append(self._tail)
            shares.append(sum(shares) * 2 / self.total)
        leaves = [builder.leaf(self.name, part) for part in parts]
        return builder.sum(leaves, (np.array(shares) / sum(shares)).tolist())

    def _add_categories(self, builder: NetworkBuilder, weights: Array, pseudo_rows: float) -> int:
        weights = weights + self._weights * (pseudo_rows / self.total)
        leaf = self.whole.reestimated(self.whole.statistics(self._values, weights))
        once = float((self._weights == 1).sum())
        return builder.leaf(self.name, leaf.opened(min(0.5, (once + 1 / self.total) / self.total)))

    def _some_values(self, chosen: Ints) -> Values:
        if isinstance(self._values, np.ndarray):
            return np.asarray(self._values[chosen])
        return [self._values[k] for k in chosen.tolist()]

    def add_whole(self, builder: NetworkBuilder) -> int:
        """Add the leaf of all rows."""
        return self.add(builder, self._by_code, 1.0)


def integers_around(values: Values) -> IntegerHistogram:
    """Return integers below and above some sorted ones, in bins that double in width.

    Each bin has a quarter of the mass of the one before, so the mean exists.

    >>> tail = integers_around([0, 9])  # 10 to 19, 20 to 39, ... and -10 to -1, -30 to -11, ...
    >>> tail.log_prob(5), round(float(np.exp(tail.log_prob(12))), 4)
    (-inf, 0.0375)
    """
    numbers = as_numbers(values)
    low, high = int(numbers[0]), int(numbers[-1]) + 1
    reach = [(high - low) * (2**k - 1) for k in range(63)]
    below = [low - each for each in reach if low - each >= -LARGEST]
    above = [high + each for each in reach if high + each <= LARGEST]
    masses = [*(4.0**-k for k in range(len(below) - 1))][::-1]
    masses += [0.0, *(4.0**-k for k in range(len(above) - 1))]
    total = sum(masses)
    return IntegerHistogram((*below[::-1], *above), tuple(mass / total for mass in masses))
