"""Distributions of a return: quantiles, tails, the mean of the worst."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rspmn.errors import EvidenceError
from rspmn.explain.support import ROUNDING
from rspmn.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class ReturnDistribution:
    """How probable each return is.

    Made by `Policy.returns`. The mean is that of the model; quantiles are rounded by at most
    `error`.

    Examples
    --------
    >>> coin = ReturnDistribution(np.array([-1.0, 3.0]), np.array([0.25, 0.75]), steps=1)
    >>> coin.mean, coin.quantile(0.25), coin.cvar(0.5), coin.prob_below(0)
    (2.0, -1.0, 1.0, 0.25)
    """

    values: Array = field(repr=False)  # [n], ascending
    probabilities: Array = field(repr=False)  # [n], above 0, sum to 1
    steps: int  # of the horizon
    #: By so much quantiles are rounded at most: 0 where all returns are on the grid. That rewards
    #: which vary are taken to be normal is not part of it. Of a simulation, NaN: there it is
    #: chance that makes the error.
    error: float = 0.0
    episodes: int = 0  # drawn, if it was simulated
    #: The probability of the parts of which it was known what follows, until the end. What was not
    #: known is as the rest of the same branch.
    supported: float = 1.0

    @property
    def mean(self) -> float:
        """The expected return."""
        return float(self.probabilities @ self.values)

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        return float(np.sqrt(self.probabilities @ (self.values - self.mean) ** 2))

    def quantile(self, q: float) -> float:
        """Return the least return that is not exceeded with a probability of at least q."""
        if not 0 <= q <= 1:
            raise EvidenceError(f"quantile: expected a number from 0 to 1, found {q}")
        place = np.searchsorted(np.cumsum(self.probabilities), q - 1e-12)
        return float(self.values[min(int(place), len(self.values) - 1)])

    def cvar(self, share: float) -> float:
        """Return the mean of the worst share of returns: the conditional value at risk.

        With a share of 1 it is the mean; the smaller it is the closer to the worst return.
        """
        check_share(share)
        before = np.cumsum(self.probabilities) - self.probabilities
        taken = np.clip(share - before, 0.0, self.probabilities)
        return float(taken @ self.values / taken.sum())

    def prob_below(self, value: float) -> float:
        """Return the probability of a return below a value."""
        near = ROUNDING * float(np.abs(self.values).max())
        return float(self.probabilities[self.values < value - near].sum())

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the distribution; needs `rspmn[plot]`."""
        from rspmn.explain.picture import draw_returns

        return draw_returns(self, axes)

    def __str__(self) -> str:
        within = f"; quantiles within {self.error:.2g}" if self.error > 0 else ""
        how = f", {self.episodes} drawn episodes" if self.episodes else within
        levels = [(q, self.quantile(q)) for q in (0.05, 0.25, 0.5, 0.75, 0.95)]
        shown = ", ".join(f"{100 * q:g} % {value:.4g}" for q, value in levels)
        return (
            f"return over {self.steps} steps: mean {self.mean:.4g}, worst 10 % on average "
            f"{self.cvar(0.1):.4g}\nquantiles: {shown}{how}"
        )

    def to_dict(self) -> dict[str, object]:
        """Return the numbers as JSON has them."""
        return {
            "steps": self.steps,
            "mean": self.mean,
            "deviation": self.deviation,
            "quantiles": {str(q): self.quantile(q) for q in (0.05, 0.25, 0.5, 0.75, 0.95)},
            "cvar": {str(share): self.cvar(share) for share in (0.05, 0.1, 0.25)},
            "error": None if np.isnan(self.error) else self.error,
            "episodes": self.episodes,
            "supported": self.supported,
        }


def check_share(share: float) -> None:
    """Refuse a share of the worst returns that is not above 0 and at most 1."""
    if not 0 < share <= 1:
        raise EvidenceError(f"share: expected a number above 0 and at most 1, found {share}")
