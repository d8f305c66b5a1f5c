"""The F-test: do the means of a number differ between the values of a variable."""

from typing import NamedTuple

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.types import Array, Ints


class FTest(NamedTuple):
    """How far the mean of a number depends on a variable."""

    explained: float  # the sum of squares that it explains beyond chance
    p_value: float


def f_test(codes: Ints, strata: Ints, target: Array, weights: Array, within: float = 0.0) -> FTest:
    """Test for equal means at all codes within each stratum.

    Parameters
    ----------
    codes
        The values of the variable, from 0. [n]
    strata
        What is given. [n]
    target
        The number. [n]
    weights
        How often each row occurred. [n]
    within
        The sum of squares within rows, if a row is the mean of several numbers.

    Examples
    --------
    >>> codes, strata = np.array([0, 0, 1, 1]), np.zeros(4, dtype=np.int64)
    >>> test = f_test(codes, strata, np.array([0.0, 2.0, 4.0, 6.0]), np.ones(4))
    >>> round(test.explained, 9), round(test.p_value, 6)  # 16 between, 4 within: F = 16 / (4 / 2)
    (14.0, 0.105573)
    """
    from scipy.special import fdtrc

    stratum = np.unique(strata, return_inverse=True)[1]
    cell = np.unique(stratum * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
    between = float(cell.max(initial=0) - stratum.max(initial=0))
    left_free = float(weights.sum() - cell.max(initial=0) - 1)
    u = target - weights @ target / weights.sum()  # against cancellation
    total = float(weights @ u**2) + within
    of_cells = _explained(cell, weights, u)
    explained, left = of_cells - _explained(stratum, weights, u), total - of_cells
    if between <= 0 or left_free <= 0 or not explained > 1e-12 * total:
        return FTest(0.0, 1.0)
    if not left > 1e-12 * total:
        return FTest(explained, 0.0)
    noise = left / left_free
    return FTest(
        explained - between * noise,
        float(fdtrc(between, left_free, (explained / between) / noise)),
    )


def _explained(group: Ints, weights: Array, u: Array) -> float:
    """Return the sum of squares that the groups' means explain."""
    return float((group_weights(group, weights * u) ** 2 / group_weights(group, weights)).sum())
