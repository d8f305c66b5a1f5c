"""The safe choice: a plan that departs from practice no further than the log supports.

Whoever logged was mostly right, so most actions were tried a few times, in odd places, or never. A
plan that trusts those few tries may be worse than practice. So the plan of maximum expected utility
is compared with plans that take, in each state, only actions of some logged steps, or only those
that were logged about as often as the most frequent one: of an expert's log these are what the
expert does, of a random log all. Each is compared with practice, in the same draws of all weights.
The one of the highest lower end is recommended if it raises that of the first.

Where states are numbers, a node has shares of steps that were logged farther off, and they say
little of what an action does there. So the first plan needs a few logged steps, too, and the lower
end of one that gets to states which the log does not have is not known.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rspmn.errors import ConvergenceError
from rspmn.infer.branches import Branches
from rspmn.infer.constraints import Constraints
from rspmn.infer.criterion import MEU, Criterion
from rspmn.trust.honest import InDraws, PlanInDraws, gain_over, values_in_draws
from rspmn.trust.practice import practice_of, practised, value_in_model
from rspmn.trust.product_draws import ProductDraws
from rspmn.types import Array
from rspmn.values import short

if TYPE_CHECKING:
    from rspmn.infer.policy import Policy

#: The plan of maximum expected utility is left only if that raises the lower end by more than this
#: share of what it is expected to gain.
WORTH = 0.05
#: Other plans are not valued if the lower end is this share of that: they raise it by little more,
#: if at all. Where states are numbers, values take longer, and intervals are wider.
SURE, SOFT_SURE = 0.9, -0.25
#: Plans that lose no more than this share of what practice earns are as good.
NEAR = 0.01
#: The draws in which plans are compared; so few where factors are not multiplied out, or if draws
#: hold more floats in all.
DRAWS, FEW_DRAWS, MOST_FLOATS = 100, 10, 20_000_000


@dataclass(frozen=True)
class Supported:
    """Nothing but actions of enough logged steps."""

    least: float | None = None  # steps that are enough
    share: float = 1.0  # of the steps of the most frequent action of the node, enough as well

    def scores(self, worth: Array, branches: Branches) -> Array:  # [branches]
        """Return what actions are worth, NaN for those of too few steps."""
        steps = np.where(np.isnan(worth), -1.0, branches.steps)  # what is forbidden is not practice
        most = np.maximum.reduceat(steps, branches.starts)[branches.node]
        enough = self.share * most
        enough = enough if self.least is None else np.minimum(self.least, enough)
        return np.where(steps >= enough, worth, np.nan)

    def __str__(self) -> str:
        if self.least is None:
            return "the best of the actions that are usual in each state"
        return f"the best of the actions of {self.least:g} logged steps, or most frequent"


#: The plans beside that of maximum expected utility. Where states are numbers, the first is in its
#: place.
PLANS = Supported(3), Supported(10), Supported(share=0.3)


class Gain(NamedTuple):
    """What a plan earns more than practice."""

    point: float  # what is expected
    low: float  # the lower end

    def __str__(self) -> str:
        worst = "no lower end is known" if math.isinf(self.low) else f"{short(self.low)} at worst"
        return f"{short(self.point)} more ({worst})"


def support_of(criterion: Criterion) -> Supported | None:
    """Return which logged steps a criterion needs, also beside constraints; None if none."""
    if isinstance(criterion, Constraints):
        criterion = criterion.criterion
    return criterion if isinstance(criterion, Supported) else None


@dataclass(frozen=True)
class SafeChoice:
    """Which of some plans is recommended, and why."""

    practice: float  # what practice is worth; NaN if plans were not compared with it
    gains: tuple[Gain, ...] = ()  # of each plan that was valued
    #: The first is recommended unless others are safer; None is that of maximum expected utility.
    plans: tuple[Supported | None, ...] = (None,)
    doubt: str = ""  # why plans were not compared

    @property
    def chosen(self) -> int:
        """Which of the plans is recommended."""
        if len(self.gains) < 2:
            return 0
        lows = np.array([gain.low for gain in self.gains])
        best, last = int(lows.argmax()), len(lows) - 1
        if math.isinf(lows[best]) or self.gains[best].point < 0:
            return last  # none is known to be as good as practice: the one nearest to it
        enough = lows[best] - lows[0] > WORTH * max(0.0, self.gains[0].point)
        return best if enough else 0

    @property
    def plan(self) -> Supported | None:
        """The plan that is recommended; None is that of maximum expected utility."""
        return self.plans[self.chosen]

    @property
    def is_plain(self) -> bool:
        """Whether the plan of maximum expected utility is recommended."""
        return self.plan is None

    @property
    def names(self) -> list[str]:
        """Return the plans in words."""
        return [
            "the plan of maximum expected utility" if plan is None else str(plan)
            for plan in self.plans
        ]

    @property
    def text(self) -> str:
        """Return the choice in words."""
        names = self.names
        if self.doubt:
            return f"{names[0]}, which was not compared with practice: {self.doubt}"
        k = self.chosen
        found = f"{names[k]}: practice earns {short(self.practice)}, this {self.gains[k]}"
        found = found if k == 0 else f"{found}; {names[0]} {self.gains[0]}"
        if max(gain.point for gain in self.gains) < -NEAR * abs(self.practice):
            found += "; no plan is expected to earn what practice does: decisions may depend on "
            found += "what the log does not have"
        return found


def safe_policy(
    of: "Callable[[Criterion], Policy]", known: dict[tuple[object, ...], SafeChoice]
) -> "Policy":
    """Return the policy to recommend, with its choice.

    `of`: returns the policy of a criterion. `known`: choices that were made before, by horizon,
    discount and rules; this one is added.
    """
    plain = of(MEU)
    key = plain.horizon, plain.discount, repr(plain.criterion)
    if key not in known:
        known[key] = _chosen(plain, of)
    policy = of(known[key].plan or MEU)
    policy.choice = known[key]
    return policy


def _chosen(plain: "Policy", of: "Callable[[Criterion], Policy]") -> SafeChoice:
    """Return which plan to recommend."""
    model = plain.model
    drawn = model.soft_counts is None and not model.overlaps
    plans = PLANS if model.soft_counts is not None else (None, *PLANS)
    try:
        practice = practice_of(model, plain.horizon, plain.discount)
        compare = _in_draws(plain, practice) if drawn else _by_honest_values(practice)
        found = [compare(of(plans[0] or MEU))]
        if found[0].low < (SURE if drawn else SOFT_SURE) * max(0.0, found[0].point):
            found += [compare(of(plan)) for plan in PLANS if plan is not plans[0]]
    except ConvergenceError as error:  # values of draws have no limit without a horizon
        return SafeChoice(math.nan, doubt=str(error))
    return SafeChoice(practice, tuple(found), plans)


def _in_draws(plain: "Policy", practice: float) -> "Callable[[Policy], Gain]":
    """Return what compares plans with practice, worth so much, in the same draws of all weights."""
    model, steps, discount = plain.model, plain.horizon, plain.discount
    posterior, bounds = model.posterior, model.posterior.bounds(steps, discount)
    more = practice - value_in_model(model, steps, discount)  # what it earns by more than the state
    spread = isinstance(posterior.evidence.factors, ProductDraws)
    fit = MOST_FLOATS // posterior.floats
    draws = FEW_DRAWS if spread else max(FEW_DRAWS, min(DRAWS, fit))
    now = PlanInDraws([practised(model)], steps, discount, None)

    def drawn(plan: PlanInDraws) -> InDraws:
        rng = np.random.default_rng(0)
        return values_in_draws(posterior, [plan], None, draws, rng, now.branches)[0]

    earned = drawn(now)

    def compare(policy: "Policy") -> Gain:
        plan = PlanInDraws.of(policy.planned, (steps or 1) - 1)
        point, low = gain_over(drawn(plan), earned, bounds)
        return Gain(point - more, low - more)

    return compare


def _by_honest_values(practice: float) -> "Callable[[Policy], Gain]":
    """Return what compares plans with practice, worth so much, by their honest values."""

    def compare(policy: "Policy") -> Gain:
        found = policy.honest_value(draws=DRAWS)
        low = -math.inf if found.leaves_log else found.low - practice
        return Gain(found.point - practice, low)

    return compare
