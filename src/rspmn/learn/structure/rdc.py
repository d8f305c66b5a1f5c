"""The randomised dependence coefficient (Lopez-Paz et al., 2013), on weighted rows.

Each variable is ranked and transformed by random sine waves. The coefficient is the largest
correlation between a linear combination of one variable's waves and one of the other's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.learn.structure.independence import Dependence
from rspmn.learn.structure.rows import Rows
from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints


@dataclass(frozen=True)
class RDC:
    """Two variables depend if their coefficient reaches a threshold, as in the paper's code."""

    threshold: float = 0.3
    waves: int = 10
    scale: float = 1 / 6

    def __call__(
        self,
        rows: Rows,
        left: Sequence[str],
        right: Sequence[str],
        strata: Ints,
        rng: np.random.Generator,
    ) -> Dependence:
        """Return all coefficients; over several strata, the root of their mean square."""
        squares = np.zeros((len(left), len(right)))
        if not squares.size:
            return Dependence(squares >= self.threshold, squares)
        for stratum in np.unique(strata):
            part = rows.where(strata == stratum)
            waves = {
                name: self._whitened(part, name, rng) for name in dict.fromkeys([*left, *right])
            }
            a = np.stack([waves[name] for name in left])  # [left, n, waves]
            b = np.stack([waves[name] for name in right])
            crossed = np.einsum("iap,jaq->ijpq", a, b, optimize=True)
            largest = np.linalg.norm(crossed, ord=2, axis=(2, 3))
            squares += part.total / rows.total * np.minimum(largest, 1.0) ** 2
        coefficients = np.sqrt(squares)
        return Dependence(coefficients >= self.threshold, coefficients)

    def _whitened(self, rows: Rows, name: str, rng: np.random.Generator) -> Array:  # [n, waves]
        """Return the waves of a variable, whitened; zero where it is missing."""
        ranks, present = _ranks(rows, name)
        weights = np.where(present, rows.weights, 0.0)
        total = weights.sum()
        ranks = np.column_stack([ranks, np.ones(len(ranks))])
        projected = ranks @ rng.normal(
            scale=self.scale / ranks.shape[1], size=(ranks.shape[1], self.waves)
        )
        waves = np.sin(projected)
        if not total > 0:
            return np.zeros_like(waves)
        waves -= weights @ waves / total
        values, vectors = np.linalg.eigh((waves * weights[:, None]).T @ waves / total)
        used = values > 1e-10 * max(values.max(), 1e-300)
        if values.max() <= 1e-20:
            return np.zeros_like(waves)
        scaled = np.where(used, 1 / np.sqrt(np.where(used, values, 1.0)), 0.0)
        return np.asarray(np.sqrt(weights / total)[:, None] * (waves @ vectors * scaled))


def _ranks(rows: Rows, name: str) -> tuple[Array, Bools]:
    """Return weighted ranks in (0, 1]; a category has a column for each value."""
    column = rows.column(name)
    present = ~column.missing
    numeric = column.kind in (Kind.CONTINUOUS, Kind.INTEGER)
    numbers = np.where(present, column.data, 0).astype(np.float64)
    if numeric:
        distinct, inverse = np.unique(numbers, return_inverse=True)
        weight = group_weights(inverse, np.where(present, rows.weights, 0.0), len(distinct))
        return (np.cumsum(weight) / max(weight.sum(), 1e-300))[inverse][:, None], present
    codes = np.where(present, column.data, -1)
    values = np.unique(codes[present])
    share = group_weights(
        np.searchsorted(values, codes[present]), rows.weights[present], len(values)
    ) / max(rows.weights[present].sum(), 1e-300)
    hot = codes[:, None] == values[None, :]
    return np.where(hot, 1.0, 1 - share[None, :]), present
