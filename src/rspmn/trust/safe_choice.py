"""The safe choice: a plan that departs from practice no further than the log supports.

Whoever logged was mostly right, so most actions were tried a few times, in odd places, or never. A
plan that trusts those few tries may be worse than practice. The plan of maximum expected utility is
compared with one that takes, in each state, only actions that were logged about as often as the
most frequent one: of an expert's log these are what the expert does, of a random log all. Both are
compared with practice, in the same draws of all weights. The second one is recommended if it
raises the lower end of what is earned more than by practice.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rspmn.errors import ConvergenceError
from rspmn.infer.branches import Branches
from rspmn.infer.criterion import MEU, Criterion
from rspmn.trust.honest import InDraws, PlanInDraws, gain_over, values_in_draws
from rspmn.trust.practice import practice_of, practised, value_in_model
from rspmn.trust.product_draws import ProductDraws
from rspmn.types import Array
from rspmn.values import short

if TYPE_CHECKING:
    from rspmn.infer.policy import Policy

#: An action was logged about as often as the most frequent one of its node if it has this share of
#: its steps.
OFTEN = 0.3
#: The plan of maximum expected utility is left only if that raises the lower end by more than this
#: share of what it is expected to gain.
WORTH = 0.05
#: The other plan is not valued if the lower end is this share of that: it raises it by little more,
#: if at all. Where states are numbers, values take longer, and intervals are wider.
SURE, SOFT_SURE = 0.9, -0.25
#: The draws in which plans are compared; so few where factors are not multiplied out, or if draws
#: hold more floats in all.
DRAWS, FEW_DRAWS, MOST_FLOATS = 100, 10, 20_000_000


class Usual:
    """Nothing but actions that were logged about as often as the most frequent one of their node.

    `share`: of its steps, that are enough.
    """

    def __init__(self, share: float = OFTEN) -> None:
        self.share = share

    def scores(self, worth: Array, branches: Branches) -> Array:  # [branches]
        """Return what actions are worth, NaN for those of too few steps."""
        steps = np.where(np.isnan(worth), -1.0, branches.steps)  # what is forbidden is not practice
        most = np.maximum.reduceat(steps, branches.starts)[branches.node]
        return np.where(steps >= self.share * most, worth, np.nan)

    def __repr__(self) -> str:
        return f"Usual({self.share:g})"


class Gain(NamedTuple):
    """What a plan earns more than practice."""

    point: float  # what is expected
    low: float  # the lower end

    def __str__(self) -> str:
        return f"{short(self.point)} more ({short(self.low)} at worst)"


@dataclass(frozen=True)
class SafeChoice:
    """Which of two plans is recommended, and why."""

    practice: float  # what practice is worth; NaN if plans were not compared with it
    plain: Gain  # of the plan of maximum expected utility
    usual: Gain | None = None  # of the plan of usual actions; None if it was not valued
    doubt: str = ""  # why plans were not compared

    @property
    def is_plain(self) -> bool:
        """Whether the plan of maximum expected utility is recommended."""
        least = WORTH * max(0.0, self.plain.point)
        return self.usual is None or self.usual.low - self.plain.low <= least

    @property
    def text(self) -> str:
        """Return the choice in words."""
        plain, now = "the plan of maximum expected utility", short(self.practice)
        if self.doubt:
            return f"{plain}, which was not compared with practice: {self.doubt}"
        if self.is_plain:
            return f"{plain}: practice earns {now}, this {self.plain}"
        return (
            "the best of the actions that are usual in each state: practice earns "
            f"{now}, this {self.usual}; {plain} {self.plain}"
        )


def safe_policy(
    of: "Callable[[Criterion], Policy]", known: dict[tuple[object, ...], SafeChoice]
) -> "Policy":
    """Return the policy to recommend, with its choice.

    `of`: returns the policy of a criterion. `known`: choices that were made before, by horizon,
    discount and rules; this one is added.
    """
    plain, usual = of(MEU), cache(lambda: of(Usual()))
    key = plain.horizon, plain.discount, repr(plain.criterion)
    if key not in known:
        known[key] = _chosen(plain, usual)
    policy = plain if known[key].is_plain else usual()
    policy.choice = known[key]
    return policy


def _chosen(plain: "Policy", usual: "Callable[[], Policy]") -> SafeChoice:
    """Return which of two plans to recommend."""
    model = plain.model
    drawn = model.soft_counts is None and not model.overlaps
    try:
        practice = practice_of(model, plain.horizon, plain.discount)
        compare = _in_draws(plain, practice) if drawn else _by_honest_values(practice)
        found = compare(plain)
        if found.low >= (SURE if drawn else SOFT_SURE) * max(0.0, found.point):
            return SafeChoice(practice, found)
        return SafeChoice(practice, found, compare(usual()))
    except ConvergenceError as error:  # values of draws have no limit without a horizon
        return SafeChoice(math.nan, Gain(math.nan, math.nan), doubt=str(error))


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
        return Gain(found.point - practice, found.low - practice)

    return compare
