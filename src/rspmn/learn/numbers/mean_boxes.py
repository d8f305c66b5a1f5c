"""Regression trees on binned features: means in boxes."""

from dataclasses import dataclass

import numpy as np

from rspmn.types import Array, Ints

#: The largest number of bins of a feature; borders between boxes lie between bins.
BINS = 64
#: A box holds at least this many steps.
LEAST = 20.0
#: The mean of a box is shrunk towards that of the box around it, worth this many steps.
SHRINKAGE = 5.0
#: The most splits on a way down.
DEPTH = 10
#: A split explains at least this many times the variance that remains: about what the best of
#: many useless splits explains by chance.
CHANCE = 12.0


@dataclass(frozen=True, eq=False)
class RegressionTree:
    """The mean of a number in boxes of features; box 0 is everything.

    A split sends feature values up to a border to the left, others and NaN to the right.
    """

    borders: tuple[Array, ...]  # of each feature
    feature: Ints  # [boxes], -1 where there is no split
    border: Ints  # [boxes]
    left: Ints  # [boxes]
    right: Ints  # [boxes]
    mean: Array  # [boxes]

    def __call__(self, features: Array) -> Array:  # [n]
        """Return the mean of the box of each row of features [n, features]."""
        return np.asarray(self.mean[self.boxes(features)])

    def boxes(self, features: Array) -> Ints:  # [n]
        """Return the smallest box that each row is in."""
        codes = _codes(features, self.borders)
        at = np.zeros(len(features), dtype=np.int64)
        rows = np.arange(len(features))
        while True:
            inner = self.feature[at] >= 0
            if not inner.any():
                return at
            code = codes[rows, np.maximum(self.feature[at], 0)]
            below = np.where(code <= self.border[at], self.left[at], self.right[at])
            at = np.where(inner, below, at)


def fit_tree(features: Array, target: Array, weights: Array) -> RegressionTree:
    """Return the tree that explains a number by features [n, features]."""
    borders = tuple(_borders(features[:, j]) for j in range(features.shape[1]))
    growth = _Growth(_codes(features, borders), target, weights)
    growth.grow(np.arange(len(target)), DEPTH, float(np.average(target, weights=weights)))
    boxes = np.array(growth.boxes)
    feature, border, left, right = boxes[:, :4].astype(np.int64).T
    return RegressionTree(borders, feature, border, left, right, boxes[:, 4])


def _borders(values: Array) -> Array:
    known = values[~np.isnan(values)]
    distinct = np.unique(known)
    if len(distinct) <= BINS:
        return np.asarray((distinct[:-1] + distinct[1:]) / 2)
    inner = np.quantile(known, np.arange(1, BINS) / BINS)
    return np.unique(inner)


def _codes(features: Array, borders: tuple[Array, ...]) -> Ints:
    codes = [np.searchsorted(b, features[:, j]) for j, b in enumerate(borders)]
    return np.stack(codes, axis=1) if codes else np.zeros((len(features), 0), dtype=np.int64)


class _Growth:
    def __init__(self, codes: Ints, target: Array, weights: Array) -> None:
        self.codes, self.target, self.weights = codes, target, weights
        self.boxes: list[list[float]] = []  # feature, border, left, right, mean

    def grow(self, rows: Ints, depth: int, around: float) -> int:
        """Add the box of some rows and those inside it."""
        weight = self.weights[rows]
        total = float(weight.sum())
        earned = weight * self.target[rows]
        mean = (float(earned.sum()) + SHRINKAGE * around) / (total + SHRINKAGE)
        me = len(self.boxes)
        self.boxes.append([-1, 0, 0, 0, mean])
        split = self._best_split(rows, weight, earned, total) if depth else None
        if split is not None:
            feature, border = split
            left = self.codes[rows, feature] <= border
            below = (self.grow(part, depth - 1, mean) for part in (rows[left], rows[~left]))
            self.boxes[me] = [feature, border, *below, mean]
        return me

    def _best_split(
        self, rows: Ints, weight: Array, earned: Array, total: float
    ) -> tuple[int, int] | None:
        target = self.target[rows]
        if total < 2 * LEAST or (target == target[0]).all():
            return None
        sum_all = float(earned.sum())
        within = float(earned @ target) - sum_all**2 / total
        best, found = CHANCE * within / total, None
        for feature in range(self.codes.shape[1]):
            code = self.codes[rows, feature]
            below = np.cumsum(np.bincount(code, weight))[:-1]
            sums = np.cumsum(np.bincount(code, earned))[:-1]
            can = (below >= LEAST) & (total - below >= LEAST)
            if not can.any():
                continue
            at = np.flatnonzero(can)
            gain = sums[at] ** 2 / below[at] + (sum_all - sums[at]) ** 2 / (total - below[at])
            gain -= sum_all**2 / total
            k = int(gain.argmax())
            if gain[k] > best:
                best, found = float(gain[k]), (feature, int(at[k]))
        return found
