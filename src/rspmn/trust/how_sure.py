"""The uncertainty of a decision: values of actions in draws from the posterior.

In each draw of all weights, an action is taken now and the policy is followed afterwards. The draws
of a policy are made once and evaluated once for each number of steps to go; a query is a lookup.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rspmn.infer.actions import ActionValue, best_among
from rspmn.infer.compiled.mixture import Situation
from rspmn.infer.compiled.planned import Plan
from rspmn.infer.criterion import LEAST_KNOWN, TIE
from rspmn.infer.meu import show_share
from rspmn.memory import LIMIT
from rspmn.trust.drawn_worlds import Worlds, limit_of
from rspmn.trust.honest import tails_of
from rspmn.trust.rules import Recorded, Rule, rule_of
from rspmn.types import Array

#: Draws from the posterior, and the seed that they are made with.
DRAWS, SEED = 200, 0
#: Where draws are large, fewer are made, so that they fit into half the limit; at least so many.
LEAST_DRAWS = 20
#: A decision is too close to call if its action is best in a smaller share of draws.
SURE = 0.9
#: What branches are worth is kept for so many different numbers of steps to go.
KEPT = 8


@dataclass(frozen=True)
class ActionInterval:
    """The value of an action with an interval; NaN if nothing is known."""

    action: ActionValue  # with its value in the model, the logged steps behind it, its flags
    mean: float  # over draws
    low: float  # the 90 % interval
    high: float
    best: float  # the probability that it is the best; ties count for each
    notes: tuple[str, ...] = ()  # why not to trust it


@dataclass(frozen=True)
class HowSure:
    """The uncertainty of a decision, returned by `Policy.how_sure`."""

    actions: tuple[ActionInterval, ...]  # all values of the decision, as `action_values` has them
    notes: tuple[str, ...] = ()  # what was never logged of the state

    @property
    def recommended(self) -> ActionInterval | None:
        """The action of the policy; None if none is known."""
        best = best_among([each.action for each in self.actions])
        return next((each for each in self.actions if best and each.action is best[0]), None)

    @property
    def rivals(self) -> tuple[ActionInterval, ...]:
        """Other actions that may be as good as the recommended one, most probable first."""
        taken = self.recommended
        others = [a for a in self.actions if a is not taken and a.best > (1 - SURE) / 2]
        return tuple(sorted(others, key=lambda each: -each.best)) if taken else ()

    @property
    def too_close(self) -> bool:
        """Whether the decision is too close to call: another action may be best."""
        taken = self.recommended
        return taken is not None and taken.best < SURE


class DrawnPlan:
    """What the branches of a template are worth in draws, a plan being followed after them."""

    def __init__(self, planned: Plan, draws: int = DRAWS, seed: int = SEED) -> None:
        self.planned, self._most, self.seed = planned, draws, seed
        self._values: list[Array] = []  # with 1, 2, … steps to go, [draws, interfaces]
        self._worth: dict[int, Array] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: it makes the same draws again, from the seed."""
        return {
            **{name: part for name, part in self.__dict__.items() if name != "_worlds"},
            "_values": [],
            "_worth": {},
        }

    @cached_property
    def draws(self) -> int:
        """The number of draws."""
        model = self.planned.model
        if not model.is_counted:
            return self._most
        held = max(LEAST_DRAWS, LIMIT // 2 // 8 // max(1, model.source.floats))
        return model.source.affordable(min(self._most, held))

    @cached_property
    def _worlds(self) -> Worlds:
        rng = np.random.default_rng(self.seed)
        return self.planned.model.source.draw_worlds(self.draws, rng)[0]

    def worth(self, after: int) -> Array:  # [draws, branches + 1]
        """Return what branches are worth with so many steps after this one, as `Offers` has them.

        -∞ where it is not known what follows; the last is that of no branch.
        """
        found = self._worth.get(after)  # other threads may empty the table at any time
        if found is None:
            if len(self._worth) >= KEPT:
                self._worth.clear()
            found = self._worth[after] = self._in_order(after)
        return found

    def _in_order(self, after: int) -> Array:
        rule = Recorded(self._rule(after))
        last = self.planned.horizon is not None and after == 0
        self._worlds.update(self._following(after), self.planned.discount, last, rule)
        found = self.planned.in_order(tuple(worth.T for worth in rule.worth))
        found[-1] = -np.inf
        return found.T

    def _rule(self, after: int) -> Rule:
        return rule_of(self.planned.at(after).choices)

    def _following(self, after: int) -> Array:  # [draws, interfaces]
        """Return what interface nodes are worth a step later."""
        values = list(self._values)  # a list of its own: other threads may extend theirs
        if not values:
            shape = self.draws, self.planned.model.num_interfaces
            values = [np.zeros(shape) if self.planned.horizon else self._limit(shape)]
        for before in range(len(values) - 1, after):
            rule, discount = self._rule(before), self.planned.discount
            values.append(self._worlds.update(values[-1], discount, before == 0, rule))
        if len(values) > len(self._values):
            self._values = values
        return values[after]

    def _limit(self, shape: tuple[int, int]) -> Array:
        rule, discount = self._rule(0), self.planned.discount

        def update(values: Array) -> Array:
            return self._worlds.update(values, discount, False, rule)

        return limit_of(update, np.zeros(shape), "how sure")


def how_sure(
    answers: Sequence[ActionValue],
    plan: DrawnPlan,
    situation: Situation | None,
    after: int,
    notes: tuple[str, ...] = (),
) -> HowSure:
    """Return how sure a decision is; see `Policy.how_sure`.

    Parameters
    ----------
    answers
        The values of the decision.
    plan
        What branches are worth in draws.
    situation
        Which max nodes the state may be at; None where that cannot be said.
    after
        The number of steps after this one.
    notes
        Of the state.
    """
    worth = np.full((plan.draws, len(answers)), -np.inf)
    if situation is not None and len(situation.at):
        worth = _averages(plan.worth(after), situation)
        offered = situation.offers.values(situation.decision)
        worth = worth[:, [offered.index(answer.value) for answer in answers]]
    worth[:, [not answer.available for answer in answers]] = -np.inf
    known = np.isfinite(worth).all(axis=0)
    competes = known & _competing(answers)
    shares = _shares_best(np.where(competes, worth, -np.inf))
    drawn = np.where(known, worth, np.nan)
    mean = drawn.mean(axis=0)  # of few draws that are far off it may lie beyond the quantiles
    low, high = np.quantile(drawn, tails_of(), axis=0)
    low, high = np.minimum(low, mean).tolist(), np.maximum(high, mean).tolist()
    best = (shares if known.any() else np.full(len(answers), np.nan)).tolist()
    columns = zip(answers, mean.tolist(), low, high, best, strict=True)
    return HowSure(tuple(ActionInterval(*each, _notes(each[0])) for each in columns), notes)


def _averages(worth: Array, situation: Situation) -> Array:  # [draws, values]
    """Return what values are worth in each draw, averaged over the max nodes that offer them."""
    found = np.full((len(worth), situation.branches.shape[1]), -np.inf)
    for k, branches in enumerate(situation.branches.T):
        here = worth[:, branches]  # [draws, pairs]
        weights = np.where(np.isfinite(here), situation.beliefs.weights, 0.0)
        total = weights.sum(axis=1)
        sums = (weights * np.where(weights > 0, here, 0.0)).sum(axis=1)
        np.divide(sums, total, out=found[:, k], where=total > 0)
    return found


def _competing(answers: Sequence[ActionValue]) -> list[bool]:
    """Return which actions can be chosen: those of which about as much is known as of any."""
    most = max([answer.known for answer in answers if answer.available], default=0.0)
    return [answer.available > 0 and answer.known >= LEAST_KNOWN * most for answer in answers]


def _shares_best(worth: Array) -> Array:  # [values]
    """Return the share of draws in which each action is the best, or as good."""
    most = worth.max(axis=1, keepdims=True, initial=-np.inf)
    apart = TIE * np.abs(np.where(np.isfinite(most), most, 0.0))
    return np.asarray((np.isfinite(worth) & (worth >= most - apart)).mean(axis=0))


def _notes(answer: ActionValue) -> tuple[str, ...]:
    if answer.forbidden:
        return (f"forbidden: {answer.forbidden}",)
    if not answer.available:
        return ("not available",)
    found = [] if answer.tried else ["never tried here: extrapolated"]
    if math.isnan(answer.utility):
        found.append("unsupported: the successors are unknown")
    elif answer.supported < 1:
        found.append(f"supported {show_share(answer.supported)}")
    if answer.available < 1:
        found.append(f"available with probability {show_share(answer.available)}")
    return (*found, *map(str, answer.never_taken))
