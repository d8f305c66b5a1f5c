"""What every clustering of rows must satisfy."""

import numpy as np

from rspmn.learn.structure.rows import Rows
from rspmn.learn.structure.split import RowClustering
from rspmn.learn.structure.targets import targets_within
from rspmn.testing.tables import mixed_table, rows_of

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
