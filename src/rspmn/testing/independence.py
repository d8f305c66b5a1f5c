"""What every test of independence must satisfy."""

import numpy as np

from rspmn.learn.structure.independence import Dependence, IndependenceTest
from rspmn.learn.structure.rows import Rows
from rspmn.testing.tables import mixed_table, rows_of
from rspmn.types import Ints


def check_independence_test(test: IndependenceTest) -> None:
    """Check that a test of independence can be used as `LearnConfig(independence=test)`.

    >>> from rspmn.learn import GTest
    >>> check_independence_test(GTest())
    """
    rows = rows_of(mixed_table(np.random.default_rng(0)))
    _check_form(test, rows)
    _check_verdicts(test, rows)
    _check_weights(test)
    _check_strata(test)


def _run(
    test: IndependenceTest, rows: Rows, left: list[str], right: list[str], strata: Ints
) -> Dependence:
    return test(rows, left, right, strata, np.random.default_rng(0))


def _check_form(test: IndependenceTest, rows: Rows) -> None:
    """Check shapes, types, and that the same question has the same answer."""
    strata = np.zeros(len(rows), dtype=np.int64)
    before = rows.weights.copy()
    for left, right in ((["x", "noise"], ["copy", "number", "gaps"]), ([], ["x"]), (["x"], [])):
        found = _run(test, rows, left, right, strata)
        shape = (len(left), len(right))
        assert found.dependent.shape == found.strength.shape == shape, (
            f"expected arrays of shape {shape}, found {found.dependent.shape} and "
            f"{found.strength.shape}"
        )
        assert found.dependent.dtype == bool, f"dependent has dtype {found.dependent.dtype}"
        assert (found.strength >= 0).all(), "a strength is below 0 or NaN"
        again = _run(test, rows, left, right, strata)
        assert (found.dependent == again.dependent).all(), "the same rng gives another answer"
    assert (rows.weights == before).all(), "the test changed the rows' weights"


def _check_verdicts(test: IndependenceTest, rows: Rows) -> None:
    """Check that what depends is found, whatever its kind, and noise and constants are not."""
    strata = np.zeros(len(rows), dtype=np.int64)
    names = ["copy", "number", "gaps", "noise", "constant"]
    found = _run(test, rows, ["x"], names, strata)
    for name, dependent in zip(names, found.dependent[0].tolist(), strict=True):
        expected = name not in ("noise", "constant")
        assert dependent == expected, f"x and {name!r}: expected dependent={expected}"


def _check_strata(test: IndependenceTest) -> None:
    """Check that variables that depend only by way of the strata are independent given them."""
    rng = np.random.default_rng(1)
    stratum = rng.integers(0, 2, 4000)
    x, y = ((rng.random(4000) < 0.1 + 0.8 * stratum).astype(int) for _ in range(2))
    rows = rows_of({"x": x, "y": y, "stratum": stratum})
    assert _run(test, rows, ["x"], ["y"], np.zeros(len(rows), dtype=np.int64)).dependent.all(), (
        "x and y depend on each other over all rows"
    )
    given = rows.codes("stratum").astype(np.int64)
    assert not _run(test, rows, ["x"], ["y"], given).dependent.any(), (
        "x and y are independent given the strata"
    )


def _check_weights(test: IndependenceTest) -> None:
    """Check that a row of weight n counts as n equal rows."""
    columns = {"x": [0, 0, 1, 1], "y": [0, 1, 0, 1], "n": [400, 100, 100, 400]}
    rows = rows_of(columns, weights="n")
    strata = np.zeros(len(rows), dtype=np.int64)
    assert _run(test, rows, ["x"], ["y"], strata).dependent.all(), (
        "1,000 weighted rows in which x and y agree four times in five: expected dependent"
    )
