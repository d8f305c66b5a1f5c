"""Ties without a horizon: choices that earn what is promised.

Without discount it is not enough to choose what is worth most. At the start of a corridor
with a reward at its end, to stay is worth as much as to go, if one goes later; a policy that always
stays earns nothing. Let V be the limit and call a branch greedy if it is worth V. A policy π of
greedy branches, with rewards r and moves P, has V = r + P V, so by repetition

    V = r + P r + … + Pʰ⁻¹ r + Pʰ V :

it earns V if and only if Pʰ V, what is still promised after h steps, goes to 0. That is so if V is
0 on average in every part of the chain that is never left. (It is never less there: a policy cannot
earn more than V.) So of the greedy branches those are chosen that make

    D = Σ_{t ≥ 1} γᵗ Pᵗ V,   γ slightly below 1,

least, which is a Markov decision problem with a discount, solved by policy iteration. *If any
stationary policy earns V, this one does, for γ close enough to 1*: one that earns V is greedy, and
its D stays bounded for γ → 1, as Pᵗ V goes to 0 geometrically; of a policy that does not earn V, D
grows like c / (1 - γ) in a part with the average c > 0. There are finitely many policies, so from
some γ on the least D belongs to one that earns V. Whether it does is checked by solving for what
the policy earns; if not, γ is moved closer to 1.

For γ = 1, Σ_{t ≥ 1} Pᵗ V is also the expected sum of t · u_t, how late utility is earned. So this
is the rule that is used with a horizon, too: of equally good actions, the one that earns sooner.
"""

from dataclasses import dataclass

import numpy as np

from rspmn.errors import ConvergenceError
from rspmn.infer.compiled.bellman import Bellman, Choices
from rspmn.infer.compiled.infinite_horizon import MOST_ROUNDS, settle
from rspmn.infer.compiled.limit_by_updates import (
    MOST_UPDATES,
    SETTLED,
    is_large,
    keeps_promises,
)
from rspmn.infer.compiled.sparse_equations import solved
from rspmn.infer.criterion import MEU, TIE, Criterion
from rspmn.model import RSPMN
from rspmn.types import Array

#: The γ that ties are broken with are 1 - 2⁻ᵏ for these k. A policy whose way to the end takes T
#: steps needs a 1 - γ of about 1 / T.
PATIENCE = (10, 17, 24, 31)
#: Equations of many interface nodes with more edges each than this fill up when they are solved.
DENSE = 8


def delays_of_limit(
    model: RSPMN, values: Array, bound: float, discount: float, criterion: Criterion = MEU
) -> Array:  # [interfaces]
    """Return by what ties are broken without a horizon: D as above, of every interface node.

    Raised is a `ConvergenceError` where no stationary policy is found that earns the limit.
    """
    bellman = model.bellman
    values = np.where(np.isfinite(values), values, 0.0)
    tied = _Tied(bellman, values, criterion, within=2 * bound)
    for power in PATIENCE:
        gamma = 1 - 2.0**-power if discount == 1 else discount
        delays = tied.least_delays(gamma)
        if discount < 1 or _earns(bellman, tied.choose(delays), values, bound):
            return delays
    raise ConvergenceError(
        "no stationary policy attains the limit of the values: the best actions depend on the "
        "number of steps to go; give a horizon or a discount below 1"
    )


@dataclass(frozen=True)
class _Tied:
    """The choice between branches that are all greedy."""

    bellman: Bellman
    values: Array  # [n], the limit
    criterion: Criterion
    within: float

    def choose(self, delays: Array) -> Choices:
        """Return the branches of least delay."""
        return self.bellman.choose(
            self.values, delays, 1.0, False, self.criterion, within=self.within
        )

    def least_delays(self, gamma: float) -> Array:  # [n]
        """Return the least D, by policy iteration, unless chains are too dense to be solved."""
        from scipy.sparse import identity

        delays, before = self._start(gamma), None
        if self.bellman.factored and is_large(self.bellman):
            return self._by_updates(delays, gamma)
        for _ in range(MOST_ROUNDS + len(delays)):
            chosen = self.choose(delays)
            if before is not None and _same(chosen, before):
                break
            follows = self.bellman.chain(chosen).follows
            if is_large(self.bellman) and follows.nnz > DENSE * len(delays):
                return self._by_updates(delays, gamma)
            system = identity(len(delays), format="csc") - gamma * follows
            delays = solved(system, gamma * (follows @ self.values))
            before = chosen
        return delays

    def _by_updates(self, delays: Array, gamma: float) -> Array:  # [n]
        """Return the least D by updates: ranks of delays matter, not their last digits."""
        for _ in range(MOST_UPDATES):
            before, delays = delays, gamma * self.bellman.settle(self.choose(delays))[1]
            change = delays - before
            if np.ptp(change) <= SETTLED * (1 - gamma) * np.abs(delays).max():
                break
        return delays

    def _start(self, gamma: float) -> Array:  # [n]
        """Return delays to start from: those of staying where one is, and of ways out of there.

        A way of k steps to where nothing is promised is found by k updates, which cost much less
        than a round of policy iteration.
        """
        delays, before = self.values * gamma / (1 - gamma), None
        for _ in range(len(delays)):
            chosen = self.choose(delays)
            if before is not None and _same(chosen, before):
                break
            before, (_, late) = chosen, self.bellman.settle(chosen)
            delays = gamma * late
        return delays


def _same(one: Choices, other: Choices) -> bool:
    return all(map(np.array_equal, one.chosen, other.chosen))


def _earns(bellman: Bellman, chosen: Choices, values: Array, bound: float) -> bool:
    """Tell whether choices earn the values, but for what ties may lose in each step."""
    if is_large(bellman):
        return keeps_promises(
            bellman, chosen, values, TIE * float(np.abs(values).max()) + 2 * bound
        )
    earned, patience, _ = settle(bellman.chain(chosen), np.zeros(len(values)))
    if earned is None:
        return False
    lost = TIE * np.abs(values).max(initial=0.0) + 2 * bound
    return bool((earned >= values - patience * lost).all())
