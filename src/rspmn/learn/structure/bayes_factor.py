"""Evidence for a split where tests have no power: how likely the data are with it and without.

Where the values of a variable were hardly seen, that no test finds it telling says nothing; to drop
it would pool states that may have nothing in common. Then marginal likelihoods are compared, under
Dirichlet priors that expect few outcomes: what follows each value by itself against what follows
all of them together.
"""

from collections.abc import Sequence

import numpy as np

from rspmn.learn.structure.contingency import Contingency, contingency
from rspmn.learn.structure.rows import Rows
from rspmn.learn.structure.targets import Seen
from rspmn.types import Array, Bools

#: The weight of the prior: that of one row.
STRENGTH = 1.0


def split_evidence(rows: Rows, names: Sequence[str], seen: Sequence[Seen]) -> Array:  # [names]
    """Return the logarithm of how much likelier the data are if each variable is split on.

    Of all that is seen later, each given the decisions in between, what gains most; 0 where no two
    rows can be compared.
    """
    gains = []
    for later in seen:
        table = contingency(rows, names, later.names, later.strata)
        gains.append(_gain(table).sum(axis=0))  # [names, later]
    found = np.hstack(gains)
    none = np.abs(found).max(axis=1) < 1e-9
    return np.where(none, 0.0, found.max(axis=1))


def seen_enough(rows: Rows, names: Sequence[str], seen: Seen, least: float) -> Bools:
    """Say which variables have each value seen so often with each of the decisions in between."""
    if not seen.names:
        return np.ones(len(names), dtype=bool)
    table = contingency(rows, names, (seen.names[0],), seen.strata)
    weight = table.counts.sum(axis=2)  # [strata, cells]
    often = (weight >= least).all(axis=0) | (table.left_weights == 0)
    return np.logical_and.reduceat(often, table.left.starts)


def _gain(table: Contingency) -> Array:  # [strata, left, right]
    """Return the log of the Bayes factor of each pair in each stratum."""
    from scipy.special import gammaln

    left, right, counts = table.left, table.right, table.counts
    prior = STRENGTH / np.bincount(right.owner)[right.owner]  # [right cells]

    def likelihood(cells: Array) -> Array:  # [strata, .., right cells] -> [strata, .., right]
        each = gammaln(cells + prior) - gammaln(prior)
        inside = np.add.reduceat(each, right.starts, axis=2)
        total = np.add.reduceat(cells, right.starts, axis=2)
        return np.asarray(inside + gammaln(STRENGTH) - gammaln(STRENGTH + total))

    apart = np.add.reduceat(likelihood(counts), left.starts, axis=1)
    together = likelihood(np.add.reduceat(counts, left.starts, axis=1))
    return np.asarray(apart - together)
