"""Weighted k-means, as the paper's code divides rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.learn.structure.rows import Rows
from rspmn.learn.structure.targets import Outlook
from rspmn.schema import Kind
from rspmn.types import Array


@dataclass(frozen=True)
class KMeansClustering:
    """scikit-learn's k-means with the rows' weights; what follows is not looked at."""

    clusters: int = 2

    @property
    def disjoint(self) -> bool:
        """Clusters are told apart by distance; each variable alone may overlap."""
        return False

    def __call__(
        self, rows: Rows, on: Sequence[str], follows: Outlook, rng: np.random.Generator
    ) -> list[Rows]:
        """Divide rows by their distance in the variables, numbers scaled and categories spread."""
        from sklearn.cluster import KMeans

        del follows
        points = np.column_stack([_coordinates(rows, name) for name in on])
        distinct, inverse = np.unique(points, axis=0, return_inverse=True)
        if len(distinct) < 2:
            return [rows]
        k = min(self.clusters, len(distinct))
        weights = np.bincount(inverse.ravel(), weights=rows.weights)
        means = KMeans(k, n_init=5, random_state=int(rng.integers(2**31)))
        labels = means.fit_predict(distinct, sample_weight=weights)[inverse.ravel()]
        # numbered by the first row in each, not by how the iteration happened to number them
        order = np.unique(labels, return_index=True)
        return [rows.where(labels == label) for label in order[0][np.argsort(order[1])]]


def _coordinates(rows: Rows, name: str) -> Array:  # [n, coordinates]
    """Return a number in standard deviations, a category as one coordinate for each value."""
    column = rows.column(name)
    gone = column.missing
    if column.kind in (Kind.CONTINUOUS, Kind.INTEGER):
        if column.kind is Kind.INTEGER:
            values = np.array([float(v) for v in column.domain] or [0.0])  # type: ignore[arg-type]
            numbers = values[np.where(gone, 0, column.data)]
        else:
            numbers = np.where(gone, 0.0, column.data)
        weights = np.where(gone, 0.0, rows.weights)
        mean = weights @ numbers / max(weights.sum(), 1e-300)
        spread = np.sqrt(weights @ (numbers - mean) ** 2 / max(weights.sum(), 1e-300))
        scaled = (numbers - mean) / (spread if spread > 0 else 1.0)
        return np.asarray(np.where(gone, 0.0, scaled)[:, None], dtype=np.float64)
    kinds = np.unique(column.data[~gone])
    share = np.array([rows.weights[column.data == v].sum() for v in kinds])
    hot = (column.data[:, None] == kinds[None, :]) * 1.0
    return np.asarray(np.where(gone[:, None], share / max(share.sum(), 1e-300), hot))
