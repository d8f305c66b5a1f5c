"""What the recommended policy is worth, without the optimism of choosing and valuing on one log.

MEU is the highest of many noisy values, so it promises too much where data are few. The posterior
has no such preference: the recommended policy is valued in draws of all weights, with what was
never seen. That it was chosen because it looks best leaves some optimism, e: by so much, on
average, the best policy of a draw is worth more in its draw than in the mean. Half of it is taken
from the point, all of it from the lower end of the interval.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rspmn.errors import EvidenceError
from rspmn.infer.compiled.planned import Plan
from rspmn.infer.criterion import LEAST_KNOWN, Criterion
from rspmn.infer.meu import show_share
from rspmn.successor_counts import HeldOutRows
from rspmn.trust.drawn_worlds import Worlds, is_settled, limit_of
from rspmn.trust.followed_states import FollowedStates
from rspmn.trust.held_out import value_of
from rspmn.trust.posterior import Posterior
from rspmn.trust.product_draws import ProductDraws
from rspmn.trust.rules import Best, Fixed, Mixed, rule_of
from rspmn.trust.soft_box_draws import SoftPosterior
from rspmn.trust.unlucky import Unlucky
from rspmn.types import Array, Ints

if TYPE_CHECKING:
    from rspmn.infer.policy import Policy
    from rspmn.trust.step_kernel import KernelValue

#: The share of intervals that are meant to hold the value.
LEVEL = 0.9
#: Of so many draws the optimism is computed; of fewer where branches have many edges in all, but at
#: least of some.
FOR_OPTIMISM, EDGES_FOR_OPTIMISM, LEAST_FOR_OPTIMISM = 100, 2_000_000, 20
#: At most this many floats are held per chunk of draws.
CHUNK = 10_000_000
#: Sums are rounded to this share of the largest.
ROUNDING = 1e-12
#: Where states are numbers, a plan is said to leave the log if its states are farther from logged
#: ones than so many standard deviations, on average.
FAR = 0.2
#: Where states are numbers, ends are told apart in boxes of at least this many steps.
FEW_ENDS = 20.0


#: What is said of schemas with laws where states are numbers.
LAWS = "laws about numbers: near their borders, decisions that they forbid are counted"


@dataclass(frozen=True)
class HonestValue:
    """An estimate of the true value of a policy, with an interval."""

    point: float
    low: float
    high: float
    promise: float  # what the policy is worth in the model
    optimism: float  # the mean promise of policies beyond their worth, when both are of one log
    deviation: float  # the standard deviation over draws
    caveats: tuple[str, ...] = ()  # why the interval may not hold the value
    level: float = LEVEL  # of the interval
    leaves_log: bool = False  # whether the policy gets to states of which the log says little

    def __float__(self) -> float:
        return self.point

    def __str__(self) -> str:
        share = f"{100 * self.level:g} %"
        return f"{self.point:.4g} ({share} interval {self.low:.4g} to {self.high:.4g})"

    @property
    def kept(self) -> bool:
        """Whether the promise is within one standard deviation, or 0.1 %, of the point."""
        same = 1e-3 * max(abs(self.promise), abs(self.point))
        return abs(self.promise - self.point) <= self.deviation + same


def honest_value(
    policy: "Policy",
    state: object = None,
    t: int = 0,
    draws: int = 300,
    rng: np.random.Generator | int = 0,
    level: float = LEVEL,
) -> HonestValue:
    """Return what a policy is worth; see `Policy.honest_value`."""
    check_level(level)
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 2:
        raise EvidenceError(f"draws: expected 2 or more, found {draws!r}")
    rng, promise = np.random.default_rng(rng), policy.value(state, t)
    nodes = None if state is None else policy.nodes(state)
    if not math.isfinite(promise):
        return HonestValue(math.nan, math.nan, math.nan, float(promise), math.nan, math.nan)
    if state is not None and policy.planned.divides([policy.planned.after(t)]):
        caveat = (
            "rules tell states of one interface node apart: the optimism of choosing is not known"
        )
        return _of_the_decision(policy, float(promise), state, t, level, (caveat,))
    counts = policy.model.counts
    if counts is not None and counts.held_out is not None:
        if nodes is None:
            return _of_held_out(policy, counts.held_out, float(promise), level)
        between = "the context is between classes: errors of averaging them are not included"
        told = (between,) * bool(nodes.max() < 1 - ROUNDING)
        return _of_the_decision(policy, float(promise), state, t, level, told)
    if policy.model.soft_counts is not None:
        return _of_soft_boxes(policy, float(promise), state, t, int(draws), rng, level)
    posterior, plan = (
        policy.model.posterior,
        PlanInDraws.of(policy.planned, policy.planned.after(t)),
    )
    (found,) = values_in_draws(posterior, [plan], nodes, int(draws), rng, plan.branches)
    bounds = posterior.bounds(plan.steps, plan.discount)
    caveats = _caveats(posterior, promise.supported)
    return _summary(found.worlds, found.optimism, float(promise), bounds, caveats, level)


def _of_the_decision(
    policy: "Policy", promise: float, state: object, t: int, level: float,
    caveats: tuple[str, ...] = (),
) -> HonestValue:  # fmt: skip
    """Return what the decision in a state is worth, where that is not what a node is worth."""
    if level != LEVEL:
        raise EvidenceError(f"level: of a state that shares nodes, expected {LEVEL}, found {level}")
    found = policy.how_sure(state, t).recommended
    if found is None:
        return HonestValue(math.nan, math.nan, math.nan, promise, math.nan, math.nan)
    deviation = (found.high - found.low) / (2 * NormalDist().inv_cdf(tails_of(level)[1]))
    return HonestValue(
        found.mean, found.low, found.high, promise, math.nan, deviation, caveats, level
    )


def _of_held_out(policy: "Policy", rows: HeldOutRows, promise: float, level: float) -> HonestValue:
    """Return what a policy of single decisions is worth by rows held out."""
    bounds = policy.model.posterior.bounds(1, policy.discount)
    found = value_of(rows, policy.planned)
    ends = found.interval(NormalDist().inv_cdf(tails_of(level)[1]))
    point, low, high = np.clip([found.point, *ends], *bounds).tolist()
    caveats = (LAWS,) * bool(policy.model.schema.laws)
    noise = max(found.error, _rounding(bounds))
    return HonestValue(point, low, high, promise, 0.0, noise, caveats, level)


def _of_soft_boxes(
    policy: "Policy", promise: float, state: object, t: int, draws: int,
    rng: np.random.Generator, level: float,
) -> HonestValue:  # fmt: skip
    """Return what a policy is worth where states lie between interface nodes."""
    planned, posterior = policy.planned, policy.model.soft_posterior
    after, nodes = planned.after(t), None if state is None else policy.nodes(state)
    counts, caveats = policy.model.soft_counts, list[str]()
    if counts is not None and counts.jumps:  # walks would go on from what is expected, in between
        drawn = _interpolated(posterior, planned, after, nodes, draws, rng)
        caveats += posterior.doubts
    else:
        followed = FollowedStates(posterior, planned)
        drawn = followed.values(nodes, policy.known(state), after, draws, rng)
    bounds = posterior.bounds(None if planned.horizon is None else after + 1, planned.discount)
    drawn = np.clip(drawn, *bounds)
    low, high = np.quantile(drawn, tails_of(level)).tolist()
    point, noise = float(drawn.mean()), max(float(drawn.std()), _rounding(bounds))
    found = HonestValue(point, min(low, point), max(high, point), promise, 0.0, noise, (), level)
    kernel = None if t else policy.kernel
    if kernel is not None:
        other = kernel.value(nodes, policy.known(state))
        found, said = _with_steps(found, other, bounds)
        caveats += said
    if policy.model.schema.laws:
        caveats.append(LAWS)
    if 0 < posterior.ended < FEW_ENDS:
        caveats.append(
            f"about {posterior.ended:.2g} logged steps ended an episode: which states these are, "
            "and what it takes to get there, is hardly known"
        )
    if not found.kept and not found.low <= promise <= found.high:
        caveats.append(
            "interface nodes are far apart: with values interpolated between them it is "
            f"{promise:.4g}, with moves interpolated it is this; errors of interpolated moves are "
            "not included"
        )
    return replace(found, caveats=tuple(caveats))


def _interpolated(
    posterior: SoftPosterior,
    planned: Plan,
    after: int,
    nodes: Array | None,
    draws: int,
    rng: np.random.Generator,
) -> Array:  # [draws]
    """Return what a plan is worth in draws, with values interpolated between interface nodes."""
    worlds, starts = posterior.draw_worlds(draws, rng)
    values = PlanInDraws.of(planned, after).values(worlds, draws)
    return _averaged(values, starts if nodes is None else nodes)


def _with_steps(
    found: HonestValue, other: "KernelValue", bounds: tuple[float, float]
) -> tuple[HonestValue, list[str]]:
    """Return a value by the model and by logged steps alone: an interval that holds both.

    They err in different ways. Where they disagree beyond both intervals, that is said.
    """
    width = NormalDist().inv_cdf(tails_of(found.level)[1]) * other.error
    low, high = (min(max(other.point + x, bounds[0]), bounds[1]) for x in (-width, width))
    said = []
    if high < found.low or found.high < low:
        said.append(
            f"two estimates disagree: {found.point:.4g} by the model, {other.point:.4g} by logged "
            "steps: neither is to be relied on"
        )
    if other.far > FAR:
        said.append(
            "the plan gets to states that the log does not have: what it is worth there cannot "
            "be told"
        )
    point = (found.point + min(max(other.point, bounds[0]), bounds[1])) / 2
    return replace(
        found, point=point, low=min(found.low, low), high=max(found.high, high),
        deviation=max(found.deviation, other.error), leaves_log=other.far > FAR,
    ), said  # fmt: skip


class PlanInDraws:
    """A plan of a number of steps, or for ever, as it is valued in several worlds at once.

    Parameters
    ----------
    rules
        What it does with 0, 1, … steps after the step; the last one is for all further steps, too.
    steps
        The number of steps; None for ever.
    discount
        Per step.
    criterion
        The one that it is best by; None if it is the best by none.
    """

    def __init__(
        self, rules: Sequence[Fixed | Mixed], steps: int | None, discount: float,
        criterion: Criterion | None,
    ) -> None:  # fmt: skip
        self.rules, self.steps, self.discount, self.criterion = rules, steps, discount, criterion
        #: The branches of last decisions that it ever takes.
        self.branches = np.unique(np.concatenate([rule.taken_last for rule in rules]))

    @property
    def key(self) -> bytes:
        """What it does, to tell plans apart."""
        parts = (r.choice if isinstance(r, Fixed) else r.probabilities for r in self.rules)
        return b"".join(np.asarray(part).tobytes() for parts_ in parts for part in parts_)

    @classmethod
    def of(cls, planned: Plan, after: int) -> "PlanInDraws":
        """Return a plan, from a step on that so many steps follow."""
        rules = [rule_of(planned.at(k).choices) for k in range(planned.settled_from(after) + 1)]
        steps = None if planned.horizon is None else after + 1
        return cls(rules, steps, planned.discount, planned.criterion)

    def values(self, worlds: Worlds, count: int) -> Array:  # [draws, interfaces]
        """Return what interface nodes are worth if the plan is followed."""

        def update(values: Array, after: int, last: bool) -> Array:
            rule = self.rules[min(after, len(self.rules) - 1)]
            return worlds.update(values, self.discount, last, rule)

        return self._repeated(update, np.zeros((count, worlds.bellman.interfaces)))

    def best_and_its_worth(self, worlds: Worlds, mean: Worlds, count: int) -> Array:
        """Return the best values in each draw, and what its best choices are worth in the mean.

        They are [2, draws, interfaces], both 0 for a plan that is the best by no criterion.
        """
        found, criterion = np.zeros((2, count, worlds.bellman.interfaces)), self.criterion
        if criterion is None:
            return found

        def update(values: Array, after: int, last: bool) -> Array:  # noqa: ARG001
            rule = Best(criterion)
            best = worlds.update(values[0], self.discount, last, rule)
            return np.stack([best, mean.update(values[1], self.discount, last, Fixed(rule.taken))])

        return self._repeated(update, found)

    def _repeated(self, update: Callable[[Array, int, bool], Array], values: Array) -> Array:
        """Update values for each step, the last first, or until they settle."""
        if self.steps is not None:
            for after in range(self.steps):
                before, values = values, update(values, after, after == 0)
                if len(self.rules) <= after and is_settled(before, values, self.steps - 1 - after):
                    break
            return values
        return limit_of(lambda before: update(before, 0, False), values, "honest value")


class InDraws(NamedTuple):
    """What a plan is worth in draws of all weights."""

    #: In the draws themselves; where what is new leads to any node; and in the unlucky worlds of
    #: `rspmn.trust.unlucky`. [draws] each
    worlds: list[Array]
    optimism: float  # by how much the best plan of a draw promises too much


def values_in_draws(
    posterior: Posterior, plans: Sequence[PlanInDraws], nodes: Array | None, draws: int,
    rng: np.random.Generator, branches: Ints,
) -> list[InDraws]:  # fmt: skip
    """Return what several plans are worth in the same draws.

    `nodes`: the probability of each interface node at first, None if episodes begin. `branches`:
    those of which all is drawn, also where draws are many; the plans take no others.
    """
    mean = posterior.mean_world()
    start = np.array(posterior.model.starts) if nodes is None else nodes
    values: list[list[list[Array]]] = [[[], [], [], []] for _ in plans]
    optimism: list[list[Array]] = [[] for _ in plans]
    for source, count in _chunks(posterior, branches, posterior.affordable(draws)):
        found = source.draw(count, rng)
        begins = found.starts if nodes is None else nodes
        anywhere, unlucky = source.anywhere(found, rng), Unlucky(source)
        outside, more = unlucky.lost(found, rng)
        of_all = posterior.worlds(found) if source is posterior else None
        unseen = _unseen_starts(posterior, count, rng) if nodes is None else np.zeros(count)
        for plan, parts, extra in zip(plans, values, optimism, strict=True):
            drawn = source.worlds(found, plan.branches)
            worlds = [drawn, source.worlds(anywhere, plan.branches)]
            if unlucky.rare[plan.branches].any():
                worlds += [unlucky.world(lost, found, drawn) for lost in (outside, more)]
            of_worlds = [plan.values(each, count) for each in worlds]
            of_worlds += [of_worlds[0]] * (4 - len(worlds))
            for k, (part, each) in enumerate(zip(parts, of_worlds, strict=True)):
                usual = _averaged(each, begins)
                worst = each[:, unlucky.arrived].min(axis=1)
                part.append(usual + unseen * (worst - usual) if k > 1 else usual)
            if of_all is not None:
                best, worth = plan.best_and_its_worth(of_all, mean, count)
                extra.append(_averaged(best, begins) - worth @ start)
    return [
        InDraws(
            [
                np.clip(np.concatenate(part), *posterior.bounds(plan.steps, plan.discount))
                for part in parts
            ],
            max(0.0, float(np.concatenate(extra).mean())),
        )
        for plan, parts, extra in zip(plans, values, optimism, strict=True)
    ]


def _unseen_starts(posterior: Posterior, count: int, rng: np.random.Generator) -> Array:  # [draws]
    """Return draws of the probability that an episode begins where none of the log did.

    If a of n episodes began where no other did, it is drawn from Beta(a, n).
    """
    starts = np.array(posterior.evidence.counts.starts)
    alone = float(((starts > 0) & (starts <= 1)).sum())
    return rng.beta(alone, starts.sum(), count) if alone else np.zeros(count)


def gain_over(plan: InDraws, other: InDraws, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return by how much a plan is worth more than another: a point, and a lower end.

    In each draw both are in the same world, as lucky or unlucky for one as for the other. `bounds`:
    what no plan earns less than, and no more than.
    """
    apart = [x - y for x, y in zip(plan.worlds, other.worlds, strict=True)]
    usual = float(other.worlds[0].mean())
    within = bounds[0] - usual, bounds[1] - usual
    found = _summary(apart, plan.optimism, math.nan, within, (), LEVEL)
    return found.point, found.low


def _summary(
    of_worlds: list[Array], optimism: float, promise: float, bounds: tuple[float, float],
    caveats: tuple[str, ...], level: float,
) -> HonestValue:  # fmt: skip
    """Return an honest value by what the plan is worth in draws.

    `of_worlds`: in the draws themselves; where what is new leads to any node; and in the unlucky
    worlds of `rspmn.trust.unlucky`. What is lost there lowers the mean, but what rare branches lose
    only widens the interval: on average it is too much.
    """
    values, anywhere, lost, rare = of_worlds
    below, above = tails_of(level)
    unlucky = float(lost.mean() + np.quantile(rare, below) - rare.mean())
    low = min(unlucky, *(float(np.quantile(x, below)) for x in (values, anywhere)))
    point = max(float(values.mean()) - optimism / 2, bounds[0])
    low = min(max(low - optimism, bounds[0]), point)
    high = max(float(np.quantile(values, above)), point)
    noise = max(float(values.std()), _rounding(bounds))
    return HonestValue(point, low, high, promise, optimism, noise, caveats, level)


def _rounding(bounds: tuple[float, float]) -> float:
    """Return how far values are rounded, given the least and the most that can be earned."""
    return ROUNDING * max((abs(end) for end in bounds if math.isfinite(end)), default=0.0)


def check_level(level: float) -> float:
    """Return the level of an interval, which is between 0 and 1."""
    if isinstance(level, bool) or not 0 < level < 1:
        raise EvidenceError(f"level: expected a number between 0 and 1, found {level!r}")
    return float(level)


def tails_of(level: float = LEVEL) -> tuple[float, float]:
    """Return the shares of draws below and not above an interval.

    The tails are half of what the level allows: draws know nothing of errors of structure.

    >>> tails_of(0.9)
    (0.025, 0.975)
    """
    tail = round((1 - level) / 4, 12)
    return tail, 1 - tail


def _caveats(posterior: Posterior, supported: float) -> tuple[str, ...]:
    """Return what no interval can make up for."""
    found = [*posterior.caveats]
    if supported < LEAST_KNOWN:
        found.append(f"only {show_share(supported)} of the future is known")
    return tuple(found)


def _chunks(posterior: Posterior, branches: Ints, draws: int) -> list[tuple[Posterior, int]]:
    """Divide the draws into chunks that fit in memory.

    The first are of all branches, so that the optimism can be computed, the others only of some.
    """
    evidence = posterior.evidence
    edges = len(evidence.cells.to)
    if isinstance(evidence.factors, ProductDraws):
        edges += evidence.factors.expect.work
    of_all = min(draws, max(LEAST_FOR_OPTIMISM, min(FOR_OPTIMISM, EDGES_FOR_OPTIMISM // edges)))
    found = _same_source(posterior, of_all)
    return (
        found if of_all == draws else found + _same_source(posterior.only(branches), draws - of_all)
    )


def _same_source(posterior: Posterior, draws: int) -> list[tuple[Posterior, int]]:
    floats = posterior.floats + 3 * len(posterior.evidence.cells.to)
    most = max(1, min(FOR_OPTIMISM, CHUNK // floats))
    return [(posterior, min(most, draws - first)) for first in range(0, draws, most)]


def _averaged(values: Array, nodes: Array) -> Array:  # [draws]
    """Return the mean of values of interface nodes, by their probability."""
    return np.asarray((values * nodes).sum(axis=1))
