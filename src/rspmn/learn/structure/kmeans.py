"""Weighted k-means: the clustering of the paper's code."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.learn.structure.rows import Rows
from rspmn.learn.structure.targets import Targets
from rspmn.schema import Kind
from rspmn.types import Array, Ints

#: Lloyd's iterations stop here at the latest. They end on their own as soon as no label changes.
MOST_ITERATIONS = 300


@dataclass(frozen=True)
class KMeansClustering:
    """Cluster rows by the distance of their values, without looking at what follows them.

    Numbers are taken as they are, as in the paper's code: a variable of larger numbers counts for
    more.

    Parameters
    ----------
    clusters
        The number of clusters, fewer if there are fewer distinct points.
    restarts
        How often the iterations start anew; the clustering of least inertia is returned.
    """

    clusters: int = 2
    restarts: int = 10

    @property
    def disjoint(self) -> bool:
        """Clusters are separated by distance, so the values of one variable may overlap."""
        return False

    def __call__(
        self, rows: Rows, on: Sequence[str], targets: Targets, rng: np.random.Generator
    ) -> list[Rows]:
        """Return the clusters, numbered by their first rows."""
        del targets
        points = np.column_stack([_coordinates(rows, name) for name in on])
        distinct, inverse = np.unique(points, axis=0, return_inverse=True)
        if len(distinct) < 2:
            return [rows]
        weights = group_weights(inverse.ravel(), rows.weights)
        found = kmeans(distinct, weights, min(self.clusters, len(distinct)), self.restarts, rng)
        labels = found[inverse.ravel()]
        order = np.unique(labels, return_index=True)
        return [rows.where(labels == label) for label in order[0][np.argsort(order[1])]]


def kmeans(
    points: Array, weights: Array, k: int, restarts: int, rng: np.random.Generator
) -> Ints:  # [n]
    """Return the labels of the weighted k-means of least inertia over several restarts.

    >>> points = np.array([[0.0], [1.0], [9.0]])
    >>> labels = kmeans(points, np.ones(3), 2, 3, np.random.default_rng(0))
    >>> bool(labels[0] == labels[1] != labels[2])
    True
    """
    seeds = (_spread_seeds(points, weights, k, rng) for _ in range(restarts))
    runs = [_lloyd(points, weights, centres) for centres in seeds]
    return min(runs, key=lambda run: run[1])[0]


def _spread_seeds(points: Array, weights: Array, k: int, rng: np.random.Generator) -> Array:
    """Draw k points, each in proportion to its squared distance from those before (k-means++)."""
    chosen = [int(rng.choice(len(points), p=weights / weights.sum()))]
    while len(chosen) < k:
        mass = weights * _squared_distances(points, points[chosen]).min(axis=1)
        chosen.append(int(rng.choice(len(points), p=mass / mass.sum())))
    return points[chosen]


def _lloyd(points: Array, weights: Array, centres: Array) -> tuple[Ints, float]:
    """Assign points and move centres until no label changes; return labels and inertia."""
    labels = np.full(len(points), -1)
    for _ in range(MOST_ITERATIONS):
        distances = _squared_distances(points, centres)
        nearest = distances.argmin(axis=1)
        if (nearest == labels).all():
            break
        labels = nearest
        total = group_weights(labels, weights, len(centres))
        sums = np.zeros_like(centres)
        np.add.at(sums, labels, points * weights[:, None])
        centres = np.where(total[:, None] > 0, sums / np.maximum(total, 1e-300)[:, None], centres)
    inertia = weights @ _squared_distances(points, centres)[np.arange(len(points)), labels]
    return labels, float(inertia)


def _squared_distances(points: Array, centres: Array) -> Array:  # [n, centres]
    return np.asarray(((points[:, None] - centres[None]) ** 2).sum(axis=2))


def _coordinates(rows: Rows, name: str) -> Array:  # [n, coordinates]
    """Return a number or a boolean as it is, and a category as one coordinate for each value.

    A missing number is put at the mean, a missing category at the shares of the values.
    """
    column = rows.column(name)
    missing = column.missing
    if column.kind is not Kind.CATEGORICAL:
        numbers, weights = column.numbers(), rows.weights
        mean = np.average(numbers[~missing], weights=weights[~missing]) if not missing.all() else 0
        return np.where(missing, mean, numbers)[:, None]
    values = np.unique(column.data[~missing])
    share = np.array([rows.weights[column.data == v].sum() for v in values])
    hot = (column.data[:, None] == values[None, :]) * 1.0
    return np.asarray(np.where(missing[:, None], share / max(share.sum(), 1e-300), hot))
