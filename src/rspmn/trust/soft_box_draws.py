"""Draws of what soft boxes are worth: errors of expected values, not of single weights.

The weights of an S_L of a grid stand for a point between nodes. The point is uncertain, the weights
given the point are not. So what is drawn is the error of what a branch is expected to be worth: of
its utility, its probability to end, and where it leads.
"""

import math
from functools import cached_property

import numpy as np

from rspmn.circuit import Utility
from rspmn.errors import EvidenceError
from rspmn.infer.compiled.outcomes import Outcomes, outcomes_of
from rspmn.model import RSPMN
from rspmn.trust.dirichlet import draw_dirichlet
from rspmn.trust.drawn_worlds import Worlds
from rspmn.trust.practice import doubt_of_practice
from rspmn.trust.utilities import range_of_returns
from rspmn.types import Array, Ints


class SoftPosterior:
    """The errors of what the branches of soft boxes are worth.

    Parameters
    ----------
    model
        A model of soft boxes, with counts.
    """

    caveats: tuple[str, ...] = (
        "states are interpolated between interface nodes: interpolation errors are not included",
    )

    def __init__(self, model: RSPMN) -> None:
        from scipy.sparse import csr_array

        counts = model.soft_counts
        if counts is None:
            raise EvidenceError("the model has no counts of soft boxes")
        self.model, self.bellman = model, model.bellman
        self.closed = self.bellman.levels[0].untried  # [branches]
        arrays, found = model.template.arrays, outcomes_of(model.template)
        if len(counts.steps) != len(found.nodes):
            raise EvidenceError(
                f"the model counts {len(counts.steps)} outcomes of soft boxes, but the template "
                f"has {len(found.nodes)}"
            )
        edges, _ = arrays.edges_of(self.bellman.levels[0].nodes)
        outcome = np.searchsorted(found.nodes, arrays.children[edges])  # [branches]
        sites, shape = found.sites, (len(found.sites.nodes), model.num_interfaces)
        leads = csr_array((sites.weights, sites.interfaces, sites.starts), shape=shape)
        self.leads = csr_array(leads[found.site[outcome]])  # [branches, interfaces]
        over = np.arange(model.num_interfaces) == model.end
        self.end = np.asarray(self.leads @ over.astype(np.float64))  # [branches]
        self.steps = np.array(counts.steps)[outcome]  # [branches]
        self.known = self.steps + counts.shared  # [branches]
        self.landing = np.array(counts.landing)[outcome]  # [branches]
        self.mean, self.variance = _utilities(model, found, outcome)  # [branches] each
        # If all episodes begin with a step that was left out, the model's start is all there is.
        self.starts = np.array(counts.starts if any(counts.starts) else model.starts)

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Why interpolated values may be wrong: they miss what practice is worth."""
        return doubt_of_practice(self.model)

    @property
    def ended(self) -> float:
        """About how many logged steps ended an episode."""
        return float(self.end @ self.steps)

    @property
    def floats(self) -> int:
        """About how many floats a draw holds."""
        return 6 * len(self.mean) + 2 * self.model.num_interfaces

    def affordable(self, draws: int) -> int:
        """Return so many draws."""
        return draws

    def draw_worlds(self, draws: int, rng: np.random.Generator) -> tuple[Worlds, Array]:
        """Return draws as worlds, and the start distribution in each: [draws, interfaces].

        Errors average to 0 over the draws, so that the mean value of a plan is that of the model.
        """
        errors = rng.standard_normal((2, draws, len(self.mean)))
        errors -= errors.mean(axis=1, keepdims=True)
        earned = self.mean + errors[0] * np.sqrt(self.variance / np.maximum(self.known, 1e-9))

        def expect(after: Array) -> Array:
            deviations = self.deviations(after.mean(axis=0))
            return np.asarray((self.leads @ after.T).T + errors[1] * deviations)

        return Worlds(self, earned, expect), self.draw_starts(draws, rng)

    def draw_starts(self, draws: int, rng: np.random.Generator) -> Array:  # [draws, interfaces]
        """Return draws of the start distribution."""
        return draw_dirichlet(self.starts, np.zeros(1, np.int64), draws, rng)

    def deviations(self, after: Array) -> Array:  # [branches]
        """Return the standard errors of what branches lead to, given what nodes are worth.

        A share e ends. What goes on is worth A on average. The variance of e · A is
        e (1 - e) A² / n, that of A is that of the weights over the draws they are worth.
        """
        on = np.maximum(1 - self.end, 1e-12)
        mean = np.asarray(self.leads @ after) / on  # END is worth nothing
        square = np.asarray(self.leads @ after**2) / on
        ends = self.end * (1 - self.end) * mean**2 / (self.known + 1)
        lands = on**2 * np.maximum(square - mean**2, 0) / (self.landing + 1)
        return np.asarray(np.sqrt(ends + lands))

    def bounds(self, steps: int | None, discount: float) -> tuple[float, float]:
        """Return what no plan earns less than, and no more than; see `range_of_returns`.

        Models that do not have the ranges of rewards: no branch earns less or more than another.
        """
        counts, nothing = self.model.soft_counts, (math.nan, math.nan)
        assert counts is not None, "checked at first"
        ranges = counts.going or nothing, counts.ending or nothing
        if not (counts.going or counts.ending):
            ranges = ((float(self.mean.min()), float(self.mean.max())), (0.0, 0.0))
        return range_of_returns(np.array(ranges), steps, discount)


def _utilities(model: RSPMN, found: Outcomes, outcome: Ints) -> Array:  # [2, branches]
    """Return mean and variance of the utility of each branch."""
    nodes = [model.template.nodes[k] for k in found.utility[outcome].tolist()]
    pairs = [(u.mean, u.variance) if isinstance(u, Utility) else (0.0, 0.0) for u in nodes]
    return np.array(pairs).reshape(-1, 2).T
