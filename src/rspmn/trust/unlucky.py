"""Worlds in which what was never logged turns out badly.

A plan that was chosen as the best relies on branches whose few logged steps went well. Their
unlucky successors were never logged, so they are no interface nodes, and no draw leads there: mass
that factors put on states of no interface node is shared out, and of a branch that was always lucky
nothing else is known. Here that mass, and a share of every rare branch, leads to the worst node.
"""

import numpy as np

from rspmn.availability import usual_decisions
from rspmn.trust.drawn_worlds import Worlds
from rspmn.trust.posterior import Draws, Posterior
from rspmn.types import Array, Bools, Ints

#: Of a logger who is not careful, a mistake has less than this share of the steps that branches of
#: its node have on average.
RARE = 0.25
#: The share of a mistake of n steps that may lead to the worst node: Beta(UNSEEN, n).
UNSEEN = 0.3


class Unlucky:
    """Makes draws of a posterior unlucky.

    Parameters
    ----------
    posterior
        The posterior, of all branches or of some.
    """

    def __init__(self, posterior: Posterior) -> None:
        self.posterior, evidence = posterior, posterior.evidence
        nodes = posterior.model.num_interfaces
        #: The steps of each branch; what was never tried counts as tried once.
        self.steps = np.where(evidence.extrapolated, 1.0, evidence.steps)
        self.rare = _mistakes(evidence.node, evidence.steps, self.steps > 0, nodes)
        #: Interface nodes that the log got to.
        self.arrived = np.zeros(nodes, dtype=bool)
        self.arrived[evidence.counted.to] = True
        self.arrived |= np.array(posterior.model.starts) > 0
        self.least = float(evidence.utilities.mean.min(initial=0.0))

    def lost(self, draws: Draws, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return which share of each branch is lost, [draws, branches]: less, and more unlucky.

        The mass of no node, of mistakes; and with it a share of what else they lead to.
        """
        outside = np.where(self.rare, self.posterior.outside(draws), 0.0)
        steps = np.maximum(self.steps, 1e-9)
        unseen = np.where(self.rare, rng.beta(UNSEEN, np.broadcast_to(steps, outside.shape)), 0.0)
        return outside, np.maximum(outside, unseen)

    def world(self, lost: Array, draws: Draws, drawn: Worlds) -> Worlds:
        """Return worlds in which a share of each branch, [draws, branches], is lost.

        `drawn`: the worlds of the draws themselves.
        """
        pays = draws.earned
        if self.posterior.novelty.paid_on_arrival:
            pays = np.minimum(pays, self.least)

        def expect(after: Array) -> Array:
            found, worst = drawn.expect(after), after[:, self.arrived].min(axis=1, keepdims=True)
            known = np.isfinite(found)
            return np.where(known, (1 - lost) * np.where(known, found, 0.0) + lost * worst, found)

        earned = (1 - lost) * draws.earned + lost * pays
        return Worlds(self.posterior.evidence, earned, expect)


def _mistakes(node: Ints, steps: Array, offered: Bools, nodes: int) -> Bools:  # [branches]
    """Return the branches that are taken by mistake: of a careful logger all that are not usual."""
    total, width = (np.bincount(node, weight, nodes)[node] for weight in (steps, offered))
    usual, careful = usual_decisions(node, steps, width.astype(np.float64))
    seldom = np.maximum(steps, 1) < RARE * total / np.maximum(width, 1)
    return offered & ~usual & (careful | seldom)
