"""The F-test: do the means of a number differ between the values of a variable."""

from typing import NamedTuple

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.types import Array, Ints


class FTests(NamedTuple):
    """How far the mean of a number depends on each of several variables, in sets of rows."""

    explained: Array  # [groups, variables]
    p_value: Array  # [groups, variables]


def f_tests(
    codes: Ints, strata: Ints, target: Array, weights: Array, within: Array, group: Ints
) -> FTests:
    """Test for equal means at all codes of each of several variables, in several sets of rows.

    `codes`: the values of the variables, from 0 [n, variables]. `strata`: what is given; all rows
    of a stratum are in one group [n]. `target`: the number [n]. `weights`: how often each row
    occurred [n]. `within`: the sum of squares within the rows of each group [groups]. `group`: the
    set that each row is in [n].

    Examples
    --------
    >>> codes, one = np.array([[0], [0], [1], [1]]), np.zeros(4, dtype=np.int64)
    >>> test = f_tests(codes, one, np.array([0.0, 2.0, 4.0, 6.0]), np.ones(4), np.zeros(1), one)
    >>> test.explained.round(9), test.p_value.round(6)  # 16 between, 4 within: F = 16 / (4 / 2)
    (array([[14.]]), array([[0.105573]]))
    """
    from scipy.special import fdtrc

    groups, variables = len(within), codes.shape[1]
    stratum = np.unique(strata, return_inverse=True)[1]
    of_stratum = np.zeros(int(stratum.max(initial=-1)) + 1, dtype=np.int64)
    of_stratum[stratum] = group  # [strata], the group of each
    in_all = group_weights(group, weights, groups)
    middle = group_weights(group, weights * target, groups) / np.maximum(in_all, 1e-300)
    u = target - middle[group]  # against cancellation
    total = (group_weights(group, weights * u**2, groups) + within)[:, None]
    of_cells, cells = _explained(codes, stratum, of_stratum, groups, weights, u)
    none = np.zeros((len(u), 1), dtype=np.int64)
    of_strata, num_strata = _explained(none, stratum, of_stratum, groups, weights, u)
    between, left_free = cells - num_strata, in_all[:, None] - cells  # [groups, variables]
    explained, left = of_cells - of_strata, total - of_cells
    tested = (between > 0) & (left_free > 0) & (explained > 1e-12 * total)
    certain = tested & ~(left > 1e-12 * total)
    tested &= ~certain
    noise = np.where(tested, left, 0.0) / np.where(tested, left_free, 1.0)
    p_value = np.where(certain, 0.0, np.ones((groups, variables)))
    ratio = explained[tested] / between[tested] / noise[tested]
    p_value[tested] = fdtrc(between[tested], left_free[tested], ratio)
    return FTests(np.where(tested | certain, explained - between * noise, 0.0), p_value)


def _explained(
    codes: Ints, stratum: Ints, of_stratum: Ints, groups: int, weights: Array, u: Array
) -> tuple[Array, Array]:  # [groups, variables] each
    """Return the sum of squares that means of cells explain, and the number of cells."""
    variables, strata = codes.shape[1], len(of_stratum)
    size = int(codes.max(initial=0)) + 1
    key = ((np.arange(variables) * strata + stratum[:, None]) * size + codes).ravel()
    found = np.arange(variables * strata * size)
    if len(found) > 4 * len(key) + 1000:  # hardly any cell has a row
        found, key = np.unique(key, return_inverse=True)
    each, earned = (np.repeat(part, variables) for part in (weights, weights * u))
    weight, mass = group_weights(key, each, len(found)), group_weights(key, earned, len(found))
    used = np.flatnonzero(weight)
    variable, of = np.divmod(found[used] // size, strata)
    owner = of_stratum[of] * variables + variable
    squares = group_weights(owner, mass[used] ** 2 / weight[used], groups * variables)
    cells = np.bincount(owner, minlength=groups * variables).astype(np.float64)
    return squares.reshape(groups, variables), cells.reshape(groups, variables)
