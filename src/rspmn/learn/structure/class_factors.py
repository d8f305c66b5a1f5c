"""What classes of contexts consist of: their numbers, categories and utilities, fitted to rows.

Each is fitted to rows that belong to several classes with weights, the step of maximisation, and
says how likely rows are in each class, the step of expectation.
"""

from collections.abc import Sequence

import numpy as np

from rspmn.circuit import Categorical, Leaf, StudentT
from rspmn.learn.structure.rows import Prior, Rows
from rspmn.schema import Kind
from rspmn.types import Array, Ints

#: The weight of the prior of a leaf's spread and of its categories, in rows.
PRIOR_ROWS = 2.0
#: The least variance of a number in a class, relative to that in all rows.
LEAST_VARIANCE = 1e-3
#: The least scale of an integer in a class: then no integer has a density above 1.
LEAST_INTEGER_SCALE = 0.375
#: The least variance of the utility in a class, relative to that in all rows: utilities alone do
#: not make a class.
LEAST_NOISE = 0.02
#: Passes of the estimate of variances.
MOST_PASSES = 30
#: The degrees of freedom of `StudentT`.
FREEDOM = 4.0


class Numbers:
    """All numbers of the contexts: a `StudentT` for each class and variable."""

    def __init__(self, names: Sequence[str], rows: Rows, scale: Rows) -> None:
        """Take the numbers of some rows, in the mean and standard deviation of others."""
        self.names = names
        raw = np.array([scale.numbers(name) for name in names]).T  # [n, variables]
        weights = scale.weights[:, None] * ~np.isnan(raw)
        total = np.maximum(weights.sum(axis=0), 1e-300)
        filled = np.nan_to_num(raw)
        self.middle = (weights * filled).sum(axis=0) / total
        spread = np.sqrt((weights * (filled - self.middle) ** 2).sum(axis=0) / total)
        self.spread = np.where(spread > 0, spread, 1.0)
        self.points = self.points_of(rows)
        known = ~np.isnan(self.points)
        self._known = None if known.all() else known
        integer = [rows.table.columns[name].kind is Kind.INTEGER for name in names]
        least = np.where(integer, (LEAST_INTEGER_SCALE / self.spread) ** 2, 0.0)
        self._least = np.maximum(least, LEAST_VARIANCE)  # [variables]
        self.centres = self.squares = np.zeros((0, len(names)))  # [classes, variables]

    def points_of(self, rows: Rows) -> Array:  # [n, variables]
        """Return numbers in standard deviations from the mean, NaN where they are missing."""
        raw = np.array([rows.numbers(name) for name in self.names]).T
        return np.asarray((raw - self.middle) / self.spread)

    def fit(self, weighted: Array) -> None:
        """Estimate centres and squared scales, given the weight of each row in each class."""
        shape, old = (weighted.shape[1], len(self.names)), (self.centres, self.squares)
        self.centres, self.squares, masses = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        points = self.points if self._known is None else np.nan_to_num(self.points)
        for z, weight in enumerate(weighted.T):
            share = weight[:, None] if self._known is None else weight[:, None] * self._known
            masses[z] = share.sum(axis=0)
            if len(old[0]):  # rows far out count less
                away = (points - old[0][z]) ** 2 / old[1][z]
                share = share * ((FREEDOM + 1) / (FREEDOM + away))
            total = np.maximum(share.sum(axis=0), 1e-300)
            self.centres[z] = (share * points).sum(axis=0) / total
            self.squares[z] = (share * (points - self.centres[z]) ** 2).sum(axis=0)
        pooled = self.squares.sum(axis=0) / np.maximum(masses.sum(axis=0), 1e-300)
        squares = (self.squares + PRIOR_ROWS * pooled) / (masses + PRIOR_ROWS)
        self.squares = np.maximum(squares, self._least)

    def log_probs(self, points: Array) -> Array:  # [n, classes]
        """Return the log-likelihood of points in each class, up to a constant."""
        found = np.empty((len(points), len(self.centres)))
        add = np.nansum if np.isnan(points).any() else np.sum
        for z, (centre, square) in enumerate(zip(self.centres, self.squares, strict=True)):
            away = np.log1p((points - centre) ** 2 / (FREEDOM * square))
            found[:, z] = add(-(FREEDOM + 1) / 2 * away - 0.5 * np.log(square), axis=1)
        return found

    def leaves(self) -> list[list[Leaf]]:
        """Return the leaves of each variable, one for each class."""
        centres = self.middle + self.spread * self.centres
        scales = self.spread * np.sqrt(self.squares)
        return [
            [Leaf(name, StudentT(*pair)) for pair in zip(own.tolist(), wide.tolist(), strict=True)]
            for name, own, wide in zip(self.names, centres.T, scales.T, strict=True)
        ]


class Categories:
    """One variable of few values: a `Categorical` for each class, of all its values."""

    def __init__(self, name: str, rows: Rows) -> None:
        self.names = [name]
        self._domain = rows.table.columns[name].domain
        self._hot = self.points_of(rows)
        overall = rows.weights @ self._hot
        # values of the table that these rows lack are possible too
        self._overall = (overall + 1 / len(overall)) / (overall.sum() + 1)
        self._shares = np.zeros((0, len(overall)))  # [classes, values]

    @property
    def points(self) -> Array:  # [n, values]
        """The value of each row."""
        return self._hot

    def points_of(self, rows: Rows) -> Array:  # [n, values]
        """Return 1 at the value of each row, 0 elsewhere."""
        codes = rows.column(self.names[0]).data.astype(np.int64)
        hot = np.zeros((len(rows), len(self._domain)))
        hot[np.flatnonzero(codes >= 0), codes[codes >= 0]] = 1.0
        return hot

    def fit(self, weighted: Array) -> None:
        """Estimate the shares of the values in each class."""
        counts = weighted.T @ self._hot + PRIOR_ROWS * self._overall
        self._shares = counts / counts.sum(axis=1, keepdims=True)

    def log_probs(self, points: Array) -> Array:  # [n, classes]
        """Return the log-likelihood of points in each class."""
        return np.asarray(points @ np.log(self._shares).T)

    def leaves(self) -> list[list[Leaf]]:
        """Return the leaves of the variable, one for each class."""
        new = 1 / (self._hot.sum() + 1)  # as if the next row had a value never seen
        leaves = (Categorical(self._domain, tuple(p)).opened(new) for p in self._shares.tolist())
        return [[Leaf(self.names[0], leaf) for leaf in leaves]]


class Earned:
    """Decisions and the utility: shares, a mean for each class and decision, and one variance."""

    def __init__(self, rows: Rows, strata: Ints, utility: str) -> None:
        self._earned = rows.column(utility).data.astype(np.float64)
        self._stratum = np.unique(strata, return_inverse=True)[1]
        self._made = np.eye(int(self._stratum.max()) + 1)[self._stratum]  # [n, strata]
        counts = rows.weights @ self._made
        self._of_all = (rows.weights * self._earned) @ self._made / counts  # [strata]
        apart = rows.weights @ (self._earned - self._of_all[self._stratum]) ** 2
        self._noise = self._whole = max(float(apart / rows.weights.sum()), 1e-300)
        self._strength = 1.0
        self._means = np.zeros((0, len(counts)))  # [classes, strata]
        self._usual = (counts + 1) / (counts + 1).sum()  # [strata]
        self._shares = np.zeros((0, len(counts)))  # [classes, strata]

    def fit(self, weighted: Array) -> None:
        """Estimate shares, the means and the variance, and how far means are shrunk.

        Means of classes vary around that of their decision. Their variance, beyond what chance
        explains, says how many rows the mean over all classes is worth.
        """
        counts = weighted.T @ self._made  # [classes, strata]
        shares = counts + PRIOR_ROWS * self._usual
        self._shares = shares / shares.sum(axis=1, keepdims=True)
        sums = (weighted * self._earned[:, None]).T @ self._made
        self._means = (sums + self._strength * self._of_all) / (counts + self._strength)
        apart = (self._earned[:, None] - self._means[:, self._stratum].T) ** 2
        residual = float((weighted * apart).sum() / weighted.sum())
        self._noise = max(residual, LEAST_NOISE * self._whole)
        raw = sums / np.maximum(counts, 1e-300)
        between = float((counts * (raw - self._of_all) ** 2).sum())
        cells, total = float((counts > 0.5).sum()), float(counts.sum())
        varied = (between - self._noise * cells) / max(total - (counts**2).sum() / total, 1e-300)
        self._strength = min(self._noise / max(varied, 1e-300), total)

    def log_probs(self) -> Array:  # [n, classes]
        """Return the log-likelihood of each row's decision and utility, up to a constant."""
        apart = (self._earned[:, None] - self._means[:, self._stratum].T) ** 2
        made = np.log(self._shares[:, self._stratum]).T
        return np.asarray(made - apart / (2 * self._noise))

    def regressed(self, shares: Array, weights: Array) -> tuple[Array, float]:
        """Return the mean of each class and stratum, as a regression on P(z | x), and the noise.

        Where classes overlap, averages over their rows would be too much alike. The means of a
        stratum are random effects around its mean over all rows; their variance and that of the
        noise are those of highest likelihood, which expectation maximisation finds. No mean is
        beyond the least or the largest utility.
        """
        forms = [_Form(shares[own], weights[own], self._earned[own] - self._of_all[k])
                 for k, own in enumerate(self._made.T.astype(bool))]  # fmt: skip
        noise = varied = self._whole
        for _ in range(MOST_PASSES):
            found = [form.solved(noise, varied) for form in forms]
            varied = max(float(np.mean([square for _, square, _ in found])), 1e-12 * self._whole)
            noise = sum(left for _, _, left in found) / float(weights.sum())
            noise = max(noise, 1e-12 * self._whole)
        ends = self._earned.min() - self._of_all, self._earned.max() - self._of_all  # [strata]
        effects = [f.bounded(noise, varied, *e) for f, *e in zip(forms, *ends, strict=True)]
        return self._of_all + np.array(effects).T, noise

    def prior(self, means: Array, noise: float) -> Prior:
        """Return the means of a class, by stratum, as what is known of each row: for certain."""
        return Prior(means[self._stratum], np.inf, noise)


class _Form:
    """The normal equations of one stratum, diagonal."""

    def __init__(self, shares: Array, weights: Array, earned: Array) -> None:
        roots, self._basis = np.linalg.eigh((shares * weights[:, None]).T @ shares)
        self._roots = np.maximum(roots, 0.0)
        self._right = self._basis.T @ (shares.T @ (weights * earned))
        self._whole = float(weights @ earned**2)

    def solved(self, noise: float, varied: float) -> tuple[Array, float, float]:
        """Return effects, the mean of their squares, and the squares that they leave.

        The squares are expected ones: what is not known of the effects is counted.
        """
        below = self._roots + noise / varied
        effect = self._right / below
        left = self._whole - 2 * effect @ self._right + self._roots @ effect**2
        left += noise * float((self._roots / below).sum())
        square = float(np.mean(effect**2 + noise / below))
        return self._basis @ effect, square, max(float(left), 0.0)

    def bounded(self, noise: float, varied: float, low: float, high: float) -> Array:
        """Return the effects between two bounds that fit best."""
        from scipy.optimize import lsq_linear

        roots = np.sqrt(self._roots + noise / varied)
        found = (self._basis / roots) @ (self._right / roots)
        if (found >= low).all() and (found <= high).all():
            return np.asarray(found)
        margin = 1e-9 * max(abs(low), abs(high), 1e-300)
        square = lsq_linear(roots[:, None] * self._basis.T, self._right / roots,
                            (low - margin, high + margin))  # fmt: skip
        return np.asarray(np.clip(square.x, low, high))
