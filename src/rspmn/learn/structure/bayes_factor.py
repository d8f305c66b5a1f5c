"""Bayes factors of a split, for variables that were observed too rarely for tests.

That no test finds such a variable relevant says nothing, and dropping it would pool states that
may have nothing in common. So marginal likelihoods are compared under Dirichlet priors that expect
few outcomes: the outcomes of each value by itself against those of all values together.
"""

from collections.abc import Sequence

import numpy as np

from rspmn.learn.structure.contingency import Contingency, contingency
from rspmn.learn.structure.rows import Rows
from rspmn.learn.structure.targets import Target
from rspmn.types import Array, Bools

#: The weight of the prior: that of one row.
STRENGTH = 1.0


def log_bayes_factors(
    rows: Rows, names: Sequence[str], outcomes: Sequence[Target]
) -> Array:  # [names]
    """Return the log Bayes factor of splitting on each variable, against not splitting.

    It is that of the target that gains most, given the decisions in between; 0 where no two rows
    can be compared.
    """
    gains = []
    for later in outcomes:
        table = contingency(rows, names, later.names, later.strata)
        gains.append(_gain(table).sum(axis=0))  # [names, later]
    found = np.hstack(gains)
    none = np.abs(found).max(axis=1) < 1e-9
    return np.where(none, 0.0, found.max(axis=1))


def observed_enough(rows: Rows, names: Sequence[str], target: Target, least: float) -> Bools:
    """Return which variables have every value observed so often with each decision in between."""
    if not target.names:
        return np.ones(len(names), dtype=bool)
    table = contingency(rows, names, (target.names[0],), target.strata)
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
