"""Planning against the posterior instead of one estimate.

The estimate of a branch that was tried twice counts as much as any other, and the highest of many
estimates is too high. A cautious plan is made for all draws of the posterior at once. In each step
an action is worth its mean over draws, which holds what a branch may lead to beyond what was
logged; the same action is taken in every draw, so that an error of one branch counts in all steps
that lead to it. The plan departs from that of maximum expected utility only for an action that was
not logged much less often, and only where it gains more than some deviations of the gain over
draws: what the posterior cannot tell stays as it is.
"""

import numpy as np

from rspmn.errors import EvidenceError
from rspmn.infer.compiled.bellman import Choices
from rspmn.infer.compiled.finite_horizon import StepValues
from rspmn.infer.compiled.linear_forms import Level
from rspmn.infer.compiled.planned import Plan
from rspmn.infer.criterion import Criterion, competing_of_each, decided
from rspmn.model import RSPMN
from rspmn.trust.drawn_worlds import Worlds, is_settled, limit_of
from rspmn.types import Array, Ints

#: Draws from the posterior, and the seed that they are made with.
DRAWS, SEED = 200, 1
#: An action is not taken instead of one with more than so many times its logged steps: what the
#: posterior says of it is mostly what others did.
RARER = 3.0
#: By this share of the largest worth a rarer action is worth less than the plain choice, at least.
BELOW = 1e-6
#: At most this many floats are held by the draws.
MOST_FLOATS = 40_000_000


class CautiousPlan(Plan):
    """The best choices over draws from the posterior.

    Parameters
    ----------
    model, horizon, discount, criterion
        As for `Plan`. The model has counts.
    caution
        How many standard deviations, over draws, an action must be better than that of maximum
        expected utility to be taken instead; it also needs a third of the logged steps.
    draws
        The number of draws.

    Examples
    --------
    >>> from rspmn.envs.random_mdp import random_mdp
    >>> from rspmn.infer.criterion import MEU
    >>> from rspmn.learn import learn_rspmn
    >>> model, _ = learn_rspmn(random_mdp(0).generate(10, 20, 0))
    >>> plain, cautious = Plan(model, 20, 1.0, MEU), CautiousPlan(model, 20, 1.0, MEU, 0.2)
    >>> plain.decisions(0, 19)[1] > cautious.decisions(0, 19)[1]
    True
    """

    def __init__(
        self,
        model: RSPMN,
        horizon: int | None,
        discount: float,
        criterion: Criterion,
        caution: float = 0.0,
        draws: int = DRAWS,
    ) -> None:
        if isinstance(caution, bool) or not 0 <= caution < np.inf:
            raise EvidenceError(f"caution: expected a number of 0 or more, found {caution!r}")
        if model.counts is None:
            raise EvidenceError(
                "caution: expected a model with counts and a policy without allow_untried: learn "
                "the model again, or omit caution"
            )
        self.caution = float(caution)
        posterior = model.posterior
        most = MOST_FLOATS // (3 * max(1, len(posterior.evidence.cells.to)))
        self.draws = posterior.affordable(max(20, min(draws, most)))
        self.plain = Plan(model, horizon, discount, criterion)
        self._estimates: list[list[Array]] = []  # with 0, 1, … steps after this; of each level
        super().__init__(model, horizon, discount, criterion)

    def _plan(self) -> StepValues:
        posterior = self.model.posterior
        worlds = posterior.worlds(posterior.draw(self.draws, np.random.default_rng(SEED)))
        values = np.zeros((self.draws, self.model.num_interfaces))
        if self.horizon is None:
            limit = limit_of(lambda before: self._step(worlds, before, 0), values, "caution")
            return StepValues({0: limit.mean(axis=0)}, 0)
        found: dict[int, Array] = {}
        last = self.horizon - 1
        same = self.plain.settled_from(last)  # from here on the plain choices stay the same
        for after in range(self.horizon):
            found[after] = values.mean(axis=0)
            before, values = values, self._step(worlds, values, after)
            if same < after < last and is_settled(before, values, last - after):
                return StepValues(found, after)
        return StepValues(found, last)

    def _step(self, worlds: Worlds, values: Array, after: int) -> Array:  # [draws, interfaces]
        """Return what interface nodes are worth a step earlier; keep what branches are worth."""
        last = self.horizon is not None and after == 0
        choices = self.plain.at(after).choices
        rule = _Cautious(self.caution, self.criterion, choices)
        found = worlds.update(values, self.discount, last, rule)
        self._estimates[after:] = [rule.estimates]
        return found

    def _settled_limit(self, values: Array) -> tuple[StepValues, StepValues]:
        """Return no delays, and that all is supported: draws are of what is known."""
        none = StepValues({0: np.zeros(len(values))}, 0)
        return none, StepValues({0: np.ones(len(values))}, 0)

    def _choose(self, after: int, delays: Array | None = None) -> Choices:
        last = self.horizon is not None and after == 0
        return self.model.bellman.choose(
            self._values[after], delays, self.discount, last, self.criterion,
            estimates=self._estimates[min(after, len(self._estimates) - 1)],
        )  # fmt: skip


class _Cautious:
    """The branch of highest mean over draws, less deviations of its gain on a plain choice.

    One with far fewer steps than the plain choice is not taken. The same branch is in each draw.
    """

    def __init__(self, caution: float, criterion: Criterion, plain: Choices) -> None:
        self.caution, self.criterion, self.plain = caution, criterion, plain
        self.estimates: list[Array] = []  # of each level, [branches]

    def settle(self, number: int, level: Level, worth: Array) -> Array:  # [draws, max nodes]
        """Return what the chosen branches are worth in each draw."""
        lost = np.asarray(np.isneginf(worth).any(axis=0))
        drawn = np.where(lost, 0.0, worth)
        gain = drawn - drawn[:, self.plain.chosen[number]][:, level.branches.node]
        estimate = drawn.mean(axis=0) - self.caution * gain.std(axis=0)
        estimate = self._no_more_than_plain(number, level, estimate)
        self.estimates.append(np.where(lost, -np.inf, estimate))
        known = self.plain.known[number]
        ranked = self.estimates[-1]
        if known is not None:
            ranked = competing_of_each(ranked, known, level.branches)
        found = decided(self.criterion, ranked, level.branches)
        chosen, taken = found.taken(np.zeros(len(ranked)), level.branches)
        known_node = found.best[chosen] & ~lost[chosen]  # else nothing is known of what follows
        return np.where(known_node, _averaged(drawn, level, chosen, taken), -np.inf)

    def _no_more_than_plain(self, number: int, level: Level, estimate: Array) -> Array:
        """Return estimates, those of much rarer branches below that of the plain choice."""
        steps, node = level.branches.steps, level.branches.node
        plain = self.plain.chosen[number][node]  # [branches]
        below = estimate[plain] - BELOW * (float(np.abs(estimate).max(initial=0.0)) or 1.0)
        rarer = RARER * steps < steps[plain]
        return np.where(rarer, np.minimum(estimate, below), estimate)


def _averaged(
    drawn: Array, level: Level, chosen: Ints, taken: Array | None
) -> Array:  # [draws, max nodes]
    """Return the worth of the branches that are taken, in each draw."""
    if taken is None:
        return drawn[:, chosen]
    return np.asarray((level.rows(chosen, taken) @ drawn.T).T)
