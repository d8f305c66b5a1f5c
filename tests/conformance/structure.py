"""What every test of independence, and every clustering of rows, must satisfy."""

from collections.abc import Mapping

import numpy as np

from rspmn.learn.structure.independence import Dependence, IndependenceTest
from rspmn.learn.structure.rows import Rows, read_rows
from rspmn.learn.structure.split import RowClustering
from rspmn.learn.structure.targets import targets_within
from rspmn.schema import Schema
from rspmn.types import Ints


def rows_of(columns: Mapping[str, object], weights: str | None = None) -> Rows:
    """Return a table of variables as rows; `weights` names the column of their weights."""
    names = [name for name in columns if name != weights]
    size = len(next(iter(columns.values())))  # type: ignore[arg-type]
    table = {**columns, "utility": np.zeros(size)}
    return read_rows(table, Schema([names], [], "utility"), bins=10, weights=weights)[0]


def mixed_table(rng: np.random.Generator, size: int = 2000) -> dict[str, object]:
    """Return columns of every kind, some with missing values.

    `copy` equals `x`, `noise` is independent of everything, `number` grows with `x`, `gaps` is
    `x` with a third of its values missing, and `constant` has one value.
    """
    x = rng.integers(0, 3, size)
    gaps = x.astype(object)
    gaps[rng.random(size) < 1 / 3] = None
    return {
        "x": x,
        "copy": np.array(["a", "b", "c"])[x],
        "noise": rng.integers(0, 3, size),
        "number": x + 0.1 * rng.normal(size=size),
        "gaps": gaps,
        "constant": np.ones(size, dtype=np.int64),
    }


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


NAMES = ("x", "copy", "noise", "number", "gaps", "constant")


def check_row_clustering(clustering: RowClustering) -> None:
    """Check that a clustering can be used as `LearnConfig(clustering=clustering)`.

    >>> from rspmn.learn import KMeansClustering
    >>> check_row_clustering(KMeansClustering())
    """
    rows = rows_of(mixed_table(np.random.default_rng(0), 400))
    for on in (["x"], ["copy", "number"], ["gaps"], ["x", "constant"]):
        _check_clusters(clustering, rows, on)
    alone = _clusters(clustering, rows, ["constant"])
    assert len(alone) == 1, f"a constant variable was divided into {len(alone)} clusters"
    divided = _clusters(clustering, rows, ["copy"])
    assert len(divided) > 1, "rows whose outcomes depend on a variable were not divided by it"


def _clusters(clustering: RowClustering, rows: Rows, on: list[str]) -> list[Rows]:
    return clustering(rows, on, targets_within(rows, NAMES), np.random.default_rng(0))


def _check_clusters(clustering: RowClustering, rows: Rows, on: list[str]) -> None:
    """Check that no row is in two clusters, and only rows with missing values are in none."""
    clusters = _clusters(clustering, rows, on)
    assert clusters, f"no clusters by {on}"
    assert all(len(part) for part in clusters), f"an empty cluster by {on}"
    places = np.concatenate([part.origin for part in clusters])
    assert len(np.unique(places)) == len(places), f"a row is in two clusters by {on}"
    weight = dict(zip(rows.origin.tolist(), rows.weights.tolist(), strict=True))
    for part in clusters:
        own = [weight[place] for place in part.origin.tolist()]
        assert part.weights.tolist() == own, f"weights changed by {on}"
    lost = rows.where(~np.isin(rows.origin, places))
    missing = np.any([lost.column(name).missing for name in on], axis=0)
    assert missing.all(), f"rows without missing values are in no cluster by {on}"
    if clustering.disjoint and len(clusters) > 1:
        assert any(_is_divided_by(name, clusters) for name in on), (
            f"disjoint, but every variable of {on} has a value in two clusters"
        )
    again = [part.origin.tolist() for part in _clusters(clustering, rows, on)]
    assert again == [part.origin.tolist() for part in clusters], "the same rng, other clusters"


def _is_divided_by(name: str, clusters: list[Rows]) -> bool:
    values = [set(part.column(name).decode()) for part in clusters]
    return sum(map(len, values)) == len(set().union(*values))
