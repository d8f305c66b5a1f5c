"""The randomised dependence coefficient (Lopez-Paz et al., 2013), on weighted rows.

Each variable is ranked, a finite one as an indicator of each of its values, and transformed by
random sine waves. The coefficient is the largest correlation between a linear combination of one
variable's waves and one of the other's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.learn.structure.independence import Dependence
from rspmn.learn.structure.rows import Rows
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
        ranks, of_row, present = _ranks(rows, name)
        weights = np.where(present, rows.weights, 0.0)
        total = weights.sum()
        ranks = np.column_stack([ranks, np.ones(len(ranks))])
        projected = ranks @ rng.normal(
            scale=self.scale / ranks.shape[1], size=(ranks.shape[1], self.waves)
        )
        if not total > 0:
            return np.zeros((len(rows), self.waves))
        waves = np.sin(projected)[of_row]
        waves -= weights @ waves / total
        values, vectors = np.linalg.eigh((waves * weights[:, None]).T @ waves / total)
        used = values > 1e-10 * max(values.max(), 1e-300)
        if values.max() <= 1e-20:
            return np.zeros_like(waves)
        scaled = np.where(used, 1 / np.sqrt(np.where(used, values, 1.0)), 0.0)
        return np.asarray(np.sqrt(weights / total)[:, None] * (waves @ vectors * scaled))


def _ranks(rows: Rows, name: str) -> tuple[Array, Ints, Bools]:
    """Return the weighted ranks of each value, the value of each row, and which are not missing.

    Ranks are in (0, 1]. A variable whose values are tested in bins has one. Any other, integers
    too, has one for each of its values, as in the paper's code: the rank of an indicator, so that
    the order of values does not matter.
    """
    column = rows.column(name)
    present = ~column.missing
    values, of_present = np.unique(column.data[present], return_inverse=True)
    of_row = np.zeros(len(rows), dtype=np.int64)  # a missing value has weight 0: any will do
    of_row[present] = of_present
    weight = group_weights(of_present, rows.weights[present], len(values))
    share = weight / max(weight.sum(), 1e-300)
    if name in rows.table.ordered:
        return np.cumsum(share)[:, None], of_row, present
    return np.where(np.eye(len(values), dtype=bool), 1.0, 1 - share), of_row, present
