"""Tests of independence: against scipy's, calibrated, and all pairs at once."""

import time

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from rspmn import Schema
from rspmn.learn import RDC, GTest
from rspmn.learn.structure import contingency
from rspmn.learn.structure.independence import _all_at_once, _pair_by_pair, pair_statistics
from rspmn.learn.structure.rows import Rows, read_columns, read_rows


def rows_of(**columns: object) -> Rows:
    size = len(next(iter(columns.values())))  # type: ignore[arg-type]
    table = {**columns, "u": np.zeros(size), "row": np.arange(size)}
    # an identifier keeps equal rows apart, so that strata can be given row by row
    return read_rows(table, Schema([[*columns, "row"]], [], "u"), bins=10)[0]


def in_order(rows: Rows, values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Put values given in the order of the input into that of the rows."""
    return np.asarray(values[rows.column("row").data])


@pytest.mark.parametrize("seed", range(5))
def test_g_and_x2_are_scipy_s(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y, z = rng.integers(0, 3, 400), rng.integers(0, 4, 400), rng.integers(0, 2, 400)
    y = np.where(rng.random(400) < 0.3, x, y)
    rows = rows_of(x=x, y=y)
    found = pair_statistics(rows, ["x"], ["y"], in_order(rows, z))
    g, x2, freedom = 0.0, 0.0, 0
    for stratum in range(2):
        table = np.zeros((3, 4))
        np.add.at(table, (x[z == stratum], y[z == stratum]), 1)
        result = stats.chi2_contingency(table, correction=False, lambda_="log-likelihood")
        g, freedom = g + result.statistic, freedom + result.dof
        n = table.sum()
        x2 += stats.chi2_contingency(table, correction=False).statistic * (n - 1) / n
    assert found.g[0, 0] == pytest.approx(g)
    assert found.x2[0, 0] == pytest.approx(x2)
    assert found.freedom[0, 0] == freedom
    p = max(stats.chi2.sf(g, freedom), stats.chi2.sf(x2, freedom))
    assert found.p_values()[0, 0] == pytest.approx(p)


@pytest.mark.parametrize("seed", range(5))
def test_both_ways_of_counting_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gappy = [None if rng.random() < 0.2 else str(rng.integers(0, 9)) for _ in range(300)]
    rows = rows_of(a=rng.integers(0, 3, 300), b=gappy, c=rng.normal(size=300))
    strata = in_order(rows, rng.integers(0, 4, 300))
    names = ["a", "b", "c"]
    one, other = (count(rows, names, names, strata) for count in (_pair_by_pair, _all_at_once))
    for field in ("g", "x2", "freedom"):
        assert getattr(one, field) == pytest.approx(getattr(other, field), abs=1e-9)


def test_false_alarms_are_as_rare_as_promised() -> None:
    """Pure noise, 300 calls of 12 pairs in 6 strata: alpha = .05 of them, binomially."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(300):
        rows = rows_of(a=rng.integers(0, 3, 120), b=rng.integers(0, 2, 120), c=rng.normal(size=120))
        strata = in_order(rows, rng.integers(0, 6, 120))
        test = GTest(alpha=0.05)(rows, ["a", "b"], ["c"], strata, rng)
        alarms += bool(test.dependent.any())
    assert alarms <= stats.binom.ppf(0.9999, 300, 0.05)


def test_identifiers_and_constants_depend_on_nothing() -> None:
    rng = np.random.default_rng(1)
    rows = rows_of(id=np.arange(500), one=np.ones(500, int), x=rng.integers(0, 2, 500))
    strata = np.zeros(len(rows), dtype=np.int64)
    for test in (GTest(),):
        found = test(rows, ["id", "one"], ["x"], strata, rng)
        assert not found.dependent.any()
    names = [f"case {k}" for k in range(500)]
    rows = rows_of(id=names, x=rng.integers(0, 2, 500))
    assert not GTest()(rows, ["id"], ["x"], strata, rng).dependent.any()


def test_missing_values_take_no_part() -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(0, 2, 600)
    y = np.where(rng.random(600) < 0.5, x, rng.integers(0, 2, 600)).astype(float)
    gone = rng.random(600) < 0.4
    rows = rows_of(x=x, y=np.where(gone, np.nan, y))
    complete = rows_of(x=x[~gone], y=y[~gone])
    some = pair_statistics(rows, ["x"], ["y"], np.zeros(len(rows), np.int64))
    all_there = pair_statistics(complete, ["x"], ["y"], np.zeros(len(complete), np.int64))
    assert some.g[0, 0] == pytest.approx(all_there.g[0, 0])


def test_rdc_finds_what_is_there() -> None:
    rng = np.random.default_rng(3)
    x, noise, other = rng.normal(size=(3, 1500))
    kind = rng.choice(["a", "b", "c"], 1500)
    rows = rows_of(
        x=x, square=x**2 + 0.1 * other, noise=noise, kind=kind, same=np.char.add(kind, "!")
    )
    names = ["x", "square", "noise", "kind", "same"]
    found = RDC()(rows, names, names, np.zeros(len(rows), np.int64), rng)
    assert np.allclose(found.strength, found.strength.T, atol=1e-6)
    dependent = {
        (a, b) for i, a in enumerate(names) for j, b in enumerate(names) if found.dependent[i, j]
    }
    assert dependent == {
        *((n, n) for n in names),
        ("x", "square"), ("square", "x"), ("kind", "same"), ("same", "kind"),
    }  # fmt: skip
    strata = in_order(rows, rng.integers(0, 3, 1500))
    given = RDC()(rows, ["x"], ["square", "noise"], strata, rng)
    assert given.dependent.tolist() == [[True, False]]


def test_rdc_does_not_order_finite_values() -> None:
    """Integers are as dependent as names for them are: y says whether x is the middle value."""
    x = np.tile(np.arange(5), 200)
    y = (x == 2).astype(int)
    for seen in ({"x": x, "y": y}, {"x": np.array([*"cadbe"])[x], "y": np.array([*"no"])[y]}):
        rows = rows_of(**seen)
        test = RDC()(rows, ["x"], ["y"], np.zeros(len(rows), np.int64), np.random.default_rng(0))
        assert test.strength[0, 0] == pytest.approx(1)  # y is a function of x


def test_rdc_of_a_log_twice_is_that_of_the_log() -> None:
    """Names of more values than there are waves, so that it matters how far apart they are."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 20, 60)
    y = (x + rng.integers(0, 10, 60)) % 20
    found = []
    for times in (1, 2):
        columns = {"x": np.tile(x, times), "y": np.tile(y, times)}
        names = {name: np.char.add("v", column.astype(str)) for name, column in columns.items()}
        rows = read_columns(names, None, 10)
        assert rows.total == 60 * times
        strata = np.zeros(len(rows), np.int64)
        found.append(RDC()(rows, ["x"], ["y"], strata, np.random.default_rng(0)).strength)
    assert found[1] == pytest.approx(found[0], rel=1e-6)


def test_forty_thousand_pairs_in_one_call() -> None:
    rng = np.random.default_rng(4)
    names = [f"x{k}" for k in range(200)]
    rows = read_rows(
        {**{n: rng.integers(0, 2, 2000) for n in names}, "u": np.zeros(2000)},
        Schema([names], [], "u"),
        bins=10,
    )[0]
    start = time.process_time()
    found = GTest()(rows, names, names, np.zeros(len(rows), np.int64), rng)
    assert time.process_time() - start < 5  # 0.5 s is measured by the benchmark, undisturbed
    assert found.dependent.sum() == pytest.approx(200, abs=2)  # each on itself


def test_many_pairs_are_counted_in_blocks_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too wide to keep all indicators: the same counts as pair by pair, missing values too."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (50, 21)).astype(object)
    bits[rng.random(bits.shape) < 0.1] = None
    rows = read_columns({f"x{k}": column for k, column in enumerate(bits.T)}, None, 10)
    names, strata = list(rows.table.columns), rng.integers(0, 3, len(rows))
    expected = contingency._pair_by_pair(
        rows, contingency.cells_of(rows, names), contingency.cells_of(rows, names), strata
    )
    monkeypatch.setattr(contingency, "KEPT", 600)  # 7 rows at a time
    found = contingency.contingency(rows, names, names, strata)
    assert np.array_equal(found.counts, expected.counts)
    assert np.array_equal(found.left_weights, expected.left_weights)
    assert np.array_equal(found.right_weights, expected.right_weights)


def test_with_every_dependence_and_nothing_on_one_side() -> None:
    rows = rows_of(x=[0, 1], y=[1, 1])
    found = GTest(1.0)(rows, [], ["x", "y"], np.zeros(2, np.int64), np.random.default_rng(0))
    assert found.dependent.shape == (0, 2)
    assert found.dependent.dtype == bool
