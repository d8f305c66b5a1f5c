"""The test of means: whether the mean of the utility depends on a variable.

Tests of independence use bins of the utility, which do not show how large its tail is; decisions
depend on its mean.
"""

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.learn.structure.rows import Rows
from rspmn.types import Array, Ints


def mean_p_value(rows: Rows, name: str, utility: str, strata: Ints) -> float:
    """Return the p-value of the F-test for equal means at all values of a variable."""
    from scipy.special import fdtrc

    codes = rows.codes(name)
    here = codes >= 0
    if not here.any():
        return 1.0
    weights = rows.weights[here]
    stratum = np.unique(strata[here], return_inverse=True)[1]
    size = int(codes.max()) + 1
    cell = np.unique(stratum * size + codes[here], return_inverse=True)[1]
    earned = rows.column(utility)
    raw = earned.data[here]
    u = raw - weights @ raw / weights.sum()  # against cancellation
    total = float(weights @ u**2)
    if earned.spread is not None:  # a row stands for several utilities
        total += float(weights @ earned.spread[here])
    explained = _explained(cell, weights, u) - _explained(stratum, weights, u)
    left = total - _explained(cell, weights, u)
    between = float(cell.max() - stratum.max())
    within = float(weights.sum() - cell.max() - 1)
    if between <= 0 or within <= 0 or not explained > 1e-12 * total:
        return 1.0
    if not left > 1e-12 * total:
        return 0.0
    return float(fdtrc(between, within, (explained / between) / (left / within)))


def _explained(group: Ints, weights: Array, u: Array) -> float:
    """Return the sum of squares that the groups' means explain."""
    return float((group_weights(group, weights * u) ** 2 / group_weights(group, weights)).sum())
