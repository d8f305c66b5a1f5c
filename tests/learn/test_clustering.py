"""Clustering: values alike stay together, by the right statistics."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rspmn import Schema
from rspmn.learn import BehaviouralSplit, KMeansClustering
from rspmn.learn.structure.rows import Rows, read_rows
from rspmn.learn.structure.targets import targets_after, targets_within
from rspmn.learn.structure.value_groups import OutcomeTable, outcome_table

SCHEMA = Schema([["x"], ["a"]], ["a"], "u")


def groups_of(parts: list[Rows], name: str = "x") -> set[frozenset[object]]:
    return {frozenset(part.column(name).decode()) for part in parts}


@given(st.integers(0, 2**32 - 1))
def test_outcomes_are_compared_as_scipy_compares_tables(seed: int) -> None:
    """Two variables, the first in two strata; the smaller p-value, twice."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 6, (4, 9)).astype(float)
    block = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    owner = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1])
    table = OutcomeTable(counts, block, owner, 1e-300)
    found = table.p_values(counts[0], counts[1:])
    for other, p in zip(counts[1:], found, strict=True):
        totals = {0: np.zeros(3), 1: np.zeros(3)}  # of each variable: G, X², degrees of freedom
        for number in range(3):
            pair = np.array([counts[0], other])[:, block == number]
            pair = pair[:, pair.sum(axis=0) > 0]
            if (pair.sum(axis=1) == 0).any() or pair.shape[1] < 2:
                continue
            g = stats.chi2_contingency(pair, correction=False, lambda_="log-likelihood")
            x2 = stats.chi2_contingency(pair, correction=False).statistic
            n = pair.sum()
            totals[int(number == 2)] += [g.statistic, x2 * (n - 1) / n, g.dof]
        ps = [max(stats.chi2.sf(g, d), stats.chi2.sf(x, d)) for g, x, d in totals.values() if d > 0]
        assert p == pytest.approx(min(1.0, min(ps, default=1.0) * max(1, len(ps))), rel=1e-6)


def test_values_with_the_same_future_stay_together() -> None:
    rng = np.random.default_rng(0)
    x, a = rng.integers(0, 12, 12_000), rng.integers(0, 3, 12_000)
    rows, schema = read_rows({"x": x, "a": a, "u": 1.0 * (x % 3 == a)}, SCHEMA, bins=10)
    parts = BehaviouralSplit()(rows, ["x"], targets_after(rows, schema, 0, ("u",)), rng)
    assert groups_of(parts) == {frozenset(range(k, 12, 3)) for k in range(3)}
    assert sum(part.total for part in parts) == 12_000
    apart = BehaviouralSplit(alpha=1.0)(rows, ["x"], targets_after(rows, schema, 0, ("u",)), rng)
    assert len(apart) == 12


def test_a_number_line_is_cut_into_intervals() -> None:
    """What is earned changes at 0 and at 2; where x is -3 and where it is 3 is the same future."""
    rng = np.random.default_rng(1)
    x, a = rng.uniform(-4, 4, 6000), rng.integers(0, 2, 6000)
    good = ((x > 0) & (x < 2)).astype(int)
    rows, schema = read_rows({"x": x, "a": a, "u": 1.0 * (good == a)}, SCHEMA, bins=10)
    parts = BehaviouralSplit()(rows, ["x"], targets_after(rows, schema, 0, ("u",)), rng)
    ranges = sorted((part.column("x").data.min(), part.column("x").data.max()) for part in parts)
    assert all(one[1] < other[0] for one, other in pairwise(ranges))


def test_rows_that_lack_the_variable_are_left_out() -> None:
    x = [0.0] * 30 + [1.0] * 10 + [np.nan] * 20
    a = [0, 1] * 30
    u = [float(v == w) for v, w in zip(x, a, strict=True)]
    rows, schema = read_rows({"x": x, "a": a, "u": u}, SCHEMA, bins=10)
    parts = BehaviouralSplit(alpha=1.0)(
        rows, ["x"], targets_after(rows, schema, 0, ("u",)), np.random.default_rng(0)
    )
    assert sorted(part.total for part in parts) == [10.0, 30.0]


def test_nothing_to_divide_by() -> None:
    rng = np.random.default_rng(0)
    rows, _ = read_rows({"x": [1] * 9, "a": [0] * 9, "u": range(9)}, SCHEMA, bins=10)
    for clustering in (BehaviouralSplit(), KMeansClustering()):
        assert len(clustering(rows, ["x"], targets_within(rows, ("x", "u")), rng)) == 1


def test_k_means_divides_by_distance() -> None:
    rng = np.random.default_rng(2)
    near, far = rng.normal(0, 1, 50), rng.normal(100, 1, 30)
    table = {"x": np.concatenate([near, far]), "a": [0] * 80, "u": np.zeros(80)}
    rows, _ = read_rows(table, SCHEMA, bins=10)
    parts = KMeansClustering()(rows, ["x"], targets_within(rows, ("x",)), rng)
    assert sorted(part.total for part in parts) == [30.0, 50.0]
    kinds = {"x": ["a", "b", None] * 10, "a": [0] * 30, "u": np.zeros(30)}
    rows, _ = read_rows(kinds, SCHEMA, bins=10)
    parts = KMeansClustering(2)(rows, ["x"], targets_within(rows, ("x",)), rng)
    assert len(parts) == 2


def test_k_means_takes_numbers_as_they_are() -> None:
    """x is 1 or 3, y is 0, 5 or 10, all six pairs equally often.

    Divided by y, what is left of the variance is 1 in x and 2/3 · 6.25 = 4.2 in y; divided by x it
    is 50/3 in y. In standard deviations it would be 1 + 1/4 by y, and 1 by x.
    """
    schema = Schema([["x", "y"], ["a"]], ["a"], "u")
    table = {"x": [1, 3] * 30, "y": [0, 0, 5, 5, 10, 10] * 10, "a": [0] * 60, "u": np.zeros(60)}
    rows, _ = read_rows(table, schema, bins=10)
    rng = np.random.default_rng(0)
    parts = KMeansClustering()(rows, ["x", "y"], targets_within(rows, ("x", "y")), rng)
    assert groups_of(parts, "x") == {frozenset({1, 3})}
    one, other = groups_of(parts, "y")
    assert not one & other


def test_what_is_enough_reaches_the_clustering() -> None:
    """Values seen 20 times each are merged if 10 observations are enough, and not if 30 are."""
    x = np.repeat(np.arange(4), 20)
    table = {"x": x, "a": [0] * 80, "u": np.tile([0.0, 1.0], 40)}
    rows, schema = read_rows(table, SCHEMA, bins=10)
    counts = []
    for enough in (10.0, 30.0):
        targets = targets_after(rows, schema, 0, ("u",), enough=enough)
        groups = outcome_table(rows, "x", targets, alpha=0.01).group_values()
        counts.append(int(groups.max()) + 1)
    assert counts == [1, 4]


def test_values_seen_too_rarely_are_alone_beside_others_that_are_alike() -> None:
    """Two values seen 40 times are the same; two seen 8 times have the same share of each outcome.

    Of the rare ones 10 observations are wanted, so they are neither the same as the others nor as
    each other.
    """
    counts = np.array([[4.0, 4.0], [20.0, 20.0], [4.0, 4.0], [20.0, 20.0]])
    one = np.zeros(2, dtype=np.int64)
    table = OutcomeTable(counts, one, one, 0.01, enough=10.0)
    assert table.group_values().tolist() == [0, 1, 2, 1]
    assert OutcomeTable(counts, one, one, 0.01, enough=8.0).group_values().max() == 0
