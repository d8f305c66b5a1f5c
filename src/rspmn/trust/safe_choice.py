"""The safe choice: a plan that departs from practice no further than the log supports.

Whoever logged was mostly right, so most actions were tried a few times, in odd places, or never. A
plan that trusts those few tries may be worse than practice. Candidates are the plan of maximum
expected utility; plans that take, in each state, only actions of k logged steps or the most
frequent one; and the most frequent one alone. Each is compared with practice, in the same draws of
all weights: by its gain, and by the lower end of that. The plan of maximum expected utility is
taken if what it may lose is little beside what it is expected to gain. Else it is the candidate of
the highest lower end, if that raises the lower end by more than a like share of what it gives up.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
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

#: The logged steps of an action that the candidates require, unless it is the most frequent one.
#: Where states are numbers, values take longer, and a node has shares of steps: fewer are tried.
LEVELS: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, math.inf)
SOFT_LEVELS: tuple[float, ...] = (10.0, 100.0, math.inf)
#: The share of an expected gain that a possible loss may be.
WORTH = 0.25
#: The draws in which plans are compared; so few where factors are not multiplied out, or if draws
#: hold more floats in all.
DRAWS, FEW_DRAWS, MOST_FLOATS = 100, 10, 20_000_000


class Supported:
    """Nothing but actions of enough logged steps, and the most frequent one of each node.

    `least`: the steps that are enough; infinite for the most frequent one alone. `criterion`: which
    of them is best.
    """

    def __init__(self, least: float, criterion: Criterion = MEU) -> None:
        self.least, self.criterion = least, criterion

    def scores(self, worth: Array, branches: Branches) -> Array:  # [branches]
        """Return the scores of the criterion, NaN for actions of too few steps."""
        steps = np.where(np.isnan(worth), -1.0, branches.steps)  # what is forbidden is not practice
        most = np.maximum.reduceat(steps, branches.starts)[branches.node]
        kept = (steps >= self.least) | (steps >= most)
        return np.where(kept, self.criterion.scores(worth, branches), np.nan)

    def __repr__(self) -> str:
        return f"Supported({self.least:g}, {self.criterion!r})"


class Candidate(NamedTuple):
    """A plan that may be recommended."""

    least: float  # the logged steps that it requires of actions; 0 for none
    gain: float  # what it is expected to earn more than practice
    low: float  # the lower end of that


@dataclass(frozen=True)
class SafeChoice:
    """Which of some plans is recommended, and why."""

    practice: float  # what practice is worth; NaN if plans were not compared with it
    candidates: tuple[Candidate, ...]  # the first is the plan of maximum expected utility
    least: float  # the logged steps that the recommended plan requires of actions
    doubt: str = ""  # why plans were not compared

    @property
    def is_plain(self) -> bool:
        """Whether the plan of maximum expected utility is recommended."""
        return self.least == 0

    @property
    def text(self) -> str:
        """Return the choice in words."""
        if self.doubt:
            return f"{_named(0.0)}, which was not compared with practice: {self.doubt}"
        plain, now = self.candidates[0], short(self.practice)
        chosen = next(each for each in self.candidates if each.least == self.least)
        found = (
            f"{_named(self.least)}: practice earns {now}, this {short(chosen.gain)} more "
            f"({short(chosen.low)} at worst)"
        )
        if self.is_plain:
            return found
        return f"{found}; {_named(0.0)} {short(plain.gain)} ({short(plain.low)} at worst)"


def _named(least: float) -> str:
    """Return in words which plan requires so many logged steps."""
    if least == 0:
        return "the plan of maximum expected utility"
    if math.isinf(least):
        return "the most frequent action of each state"
    return f"only actions of {least:g} logged steps, or the most frequent one"


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
    choice = known[key]
    policy = plain if choice.is_plain else of(Supported(choice.least))
    policy.choice = choice
    return policy


def _chosen(policy: "Policy", of: "Callable[[Criterion], Policy]") -> SafeChoice:
    """Return which of some plans to recommend; `policy` is that of maximum expected utility."""
    model, soft = policy.model, policy.model.soft_counts is not None
    drawn = not soft and not model.overlaps
    try:
        practice = practice_of(model, policy.horizon, policy.discount)
        compare = _in_draws(policy, practice) if drawn else _by_honest_values(practice)
        found = compare([(0.0, policy)])
        plain = found[0]
        if plain.low < -WORTH * max(0.0, plain.gain):
            found += compare((k, of(Supported(k))) for k in (LEVELS if drawn else SOFT_LEVELS))
    except ConvergenceError as error:  # values of draws have no limit without a horizon
        return SafeChoice(math.nan, (), 0.0, str(error))
    best = max(found, key=lambda each: each.low)
    raises, gives_up = best.low - plain.low, plain.gain - best.gain
    return SafeChoice(practice, tuple(found), best.least if raises > WORTH * gives_up else 0.0)


#: Compares plans with practice.
Compare = Callable[[Iterable[tuple[float, "Policy"]]], list[Candidate]]


def _in_draws(policy: "Policy", practice: float) -> Compare:
    """Compare plans with practice, worth so much, in the same draws of all weights."""
    model, steps, discount = policy.model, policy.horizon, policy.discount
    now = PlanInDraws([practised(model)], steps, discount, None)
    more = practice - value_in_model(model, steps, discount)  # what it earns by more than the state
    bounds, compared = model.posterior.bounds(steps, discount), dict[bytes, InDraws]()
    spread = isinstance(model.posterior.evidence.factors, ProductDraws)
    fit = MOST_FLOATS // model.posterior.floats
    draws = FEW_DRAWS if spread else max(FEW_DRAWS, min(DRAWS, fit))

    def compare(policies: "Iterable[tuple[float, Policy]]") -> list[Candidate]:
        plans = {now.key: (math.nan, now)}
        for k, each in policies:
            plan = PlanInDraws.of(each.planned, 0 if steps is None else steps - 1)
            plans.setdefault(plan.key, (k, plan))
        new = {key: each for key, each in plans.items() if key not in compared}
        rng, every = np.random.default_rng(0), [plan for _, plan in new.values()]
        found = values_in_draws(model.posterior, every, None, draws, rng, now.branches)
        compared.update(zip(new, found, strict=True))
        gains = (
            (k, *gain_over(compared[key], compared[now.key], bounds))
            for key, (k, _) in new.items() if key != now.key
        )  # fmt: skip
        return [Candidate(k, gain - more, low - more) for k, gain, low in gains]

    return compare


def _by_honest_values(practice: float) -> Compare:
    """Compare plans with practice, worth so much, by their honest values."""

    def compare(policies: "Iterable[tuple[float, Policy]]") -> list[Candidate]:
        found = ((k, each.honest_value(draws=DRAWS)) for k, each in policies)
        return [Candidate(k, each.point - practice, each.low - practice) for k, each in found]

    return compare
