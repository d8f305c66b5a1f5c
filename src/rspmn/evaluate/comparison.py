"""The recommended policy beside current practice: values, agreement, and where they differ most.

The policy's value less that of practice is a sum over states: how often practice is in a state,
times what it loses there if it decides once more and the policy follows. So the states can be named
that the difference comes from.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rspmn.data.episodes import Episodes, Followed
from rspmn.data.keys import group_weights
from rspmn.evaluate.behaviour import estimated_behaviour
from rspmn.evaluate.importance import Estimate, interval
from rspmn.evaluate.logged import Joint, LoggedSteps, episodes_of, logged_steps
from rspmn.evaluate.model_value import draws_of, recentred, worths_of
from rspmn.evaluate.practice import check_draws, estimate_of, practice_value
from rspmn.evaluate.target_policies import AskedStates, Planned
from rspmn.infer.act_many import node_table
from rspmn.infer.bellman import check_steps
from rspmn.infer.policy import Policy
from rspmn.model import RSPMN
from rspmn.spmn import SPMN
from rspmn.trust import HonestValue
from rspmn.trust.drawn_worlds import OwnWorld
from rspmn.trust.honest import LEVEL, check_level, tails_of
from rspmn.trust.rules import Fixed, Rule
from rspmn.trust.safe_choice import SafeChoice
from rspmn.types import Array
from rspmn.values import Value, short, show


@dataclass(frozen=True)
class NodeComparison:
    """Practice and recommendation in the states of one interface node."""

    state: dict[str, Value]
    visits: float  # logged steps within the horizon
    practice: str  # the decision that the log takes most often
    practice_share: float
    recommended: str  # the decision that is recommended most often
    agreement: float  # the share of steps that took the recommended decision
    gain: float  # what the policy gains here in an episode

    def gain_per_visit(self, episodes: int) -> float:
        """Return what the policy gains here each time."""
        return self.gain * episodes / max(self.visits, 1e-300)


@dataclass(frozen=True)
class Comparison:
    """The recommended policy beside current practice."""

    horizon: int
    discount: float
    episodes: int
    #: What logged episodes earned; None if some were cut before the horizon.
    logged: Estimate | None
    practice: Estimate  # by the model or, where the model misses it, what the log earned
    policy: HonestValue
    difference: Estimate  # of the honest value and that of practice
    better: float  # the probability that the policy is better
    agreement: float  # the share of logged steps that took the recommended decision
    nodes: tuple[NodeComparison, ...]  # by what the policy gains in them, the most first
    level: float = LEVEL  # of the intervals
    notes: tuple[str, ...] = ()  # what to know before any of it is believed
    choice: SafeChoice | None = None  # which plan is recommended, and why


def compare(
    model: RSPMN | SPMN,
    log: Episodes | object,
    horizon: int | None = None,
    discount: float = 1.0,
    *,
    draws: int = 300,
    rng: int = 0,
    level: float = LEVEL,
) -> Comparison:
    """Return the recommended policy of a model beside the practice of a log.

    Parameters
    ----------
    model
        A learned model, with counts.
    log
        The log that it was learned from, or another of the same process: how often states are
        visited, and what is done in them. Of a model of single decisions, a table of these.
    horizon
        The number of steps; without one, that of the longest episode.
    discount
        Per step.
    draws
        The number of draws from the posterior.
    rng
        A seed.
    level
        The share of intervals that are meant to hold the value.

    Examples
    --------
    >>> from rspmn.envs.grid_universe import grid_universe
    >>> from rspmn.learn import learn_rspmn
    >>> log = grid_universe().generate(episodes=1000, horizon=8, rng=0)
    >>> found = compare(learn_rspmn(log)[0], log)
    >>> found.better, found.difference.low > 0
    (1.0, True)
    """
    model, log = episodes_of(model, log)
    steps = logged_steps(model, log)
    horizon = steps.longest if horizon is None else check_steps(horizon, least=1)
    policy, current = model.policy(horizon, discount), practice_value(model, horizon, discount)
    best: list[Rule] = [Fixed(policy.planned.at(after).choices.chosen) for after in range(horizon)]
    honest = policy.honest_value(draws=check_draws(draws), rng=rng, level=check_level(level))
    generator = np.random.default_rng(rng)
    rules = [current.drawn_rules(generator), lambda _: best]
    practised, recommended = draws_of(model, rules, discount, draws, generator)
    practised = recentred(practised, current.value)
    least, most = bounds = model.source.bounds(horizon, discount)
    now = estimate_of("practice", current.value, practised, bounds, level=level)
    logged = _logged(steps, horizon, discount, level)
    doubts = _about_practice(now, logged)
    if logged is not None and doubts:  # what the log earned is known, and the model misses it
        now = replace(logged, method="practice")
    apart = _as_wide_as(honest, recommended) - practised - (now.value - current.value)
    near = 1e-9 * float(np.abs(practised).max())
    better = float(np.mean(apart > near) + np.mean(np.abs(apart) <= near) / 2)
    gains = _gains(model, steps, best, current.rules(1), discount)
    agreement, nodes = _by_node(model, steps, policy, gains)
    difference = estimate_of(
        "difference", honest.point - now.value, apart, (least - most, most - least), level=level
    )
    return Comparison(
        horizon, discount, steps.episodes, logged, now, honest, difference, better, agreement,
        nodes, level, (*honest.caveats, *doubts), policy.choice,
    )  # fmt: skip


def _as_wide_as(honest: HonestValue, drawn: Array) -> Array:
    """Return draws around an honest value, no narrower than its interval.

    That holds more than draws do: states and successors that were never logged.
    """
    apart, ends = drawn - drawn.mean(), (honest.point - honest.low, honest.high - honest.point)
    low, high = np.quantile(apart, tails_of(honest.level))
    below, above = (
        max(1.0, end / each) if each > 0 else 1.0
        for end, each in zip(ends, (-low, high), strict=True)
    )
    return np.asarray(honest.point + np.where(apart < 0, below * apart, above * apart))


def _logged(steps: LoggedSteps, horizon: int, discount: float, level: float) -> Estimate | None:
    """Return what logged episodes earned; None if some were cut before the horizon."""
    if ((np.diff(steps.offsets) < horizon) & (steps.endings != Followed.END)).any():
        return None
    earned = np.where(steps.time < horizon, discount**steps.time * steps.reward, 0.0)
    returns = group_weights(steps.episode, earned, steps.episodes)
    influence = (returns - returns.mean()) / len(returns)
    return interval("logged", float(returns.mean()), influence, float(len(returns)), level)


def _about_practice(found: Estimate, logged: Estimate | None) -> list[str]:
    """Return whether the model says of practice what the log earned."""
    if logged is None or not (found.low > logged.high or found.high < logged.low):
        return []
    return [
        f"the mean logged return is {short(logged.value)}, but the model's value of current "
        f"practice is {short(found.value)}: the policy's value may be wrong, too"
    ]


def _gains(
    model: RSPMN,
    steps: LoggedSteps,
    best: Sequence[Rule],
    current: Sequence[Rule],
    discount: float,
) -> Array:  # [interfaces]
    """Return what the policy gains in each interface node, in an episode of practice."""
    world, worths = OwnWorld(model), worths_of(model, best, discount).nodes
    horizon, found = len(best), np.zeros(model.num_interfaces)
    situations = steps.situations
    for t in range(horizon):
        logged = np.bincount(steps.state[steps.time == t], minlength=situations.count)
        visits = situations.places.in_groups(logged.astype(np.float64))[:-1]
        last, after = t == horizon - 1, worths[t + 1][None, :]
        once = world.update(after, discount, last, current[horizon - 1 - t])[0]
        found += discount**t * visits / steps.episodes * (worths[t] - once)
    return found


def _by_node(
    model: RSPMN, steps: LoggedSteps, policy: Policy, gains: Array
) -> tuple[float, tuple[NodeComparison, ...]]:
    """Return the share of steps that agree, and the interface nodes."""
    situations, target = steps.situations, Planned(policy)
    asked, shape = AskedStates(situations, estimated_behaviour(steps)), steps.counts.shape
    taken, told = np.zeros(shape), np.zeros(shape)
    agrees = np.zeros(situations.count)
    assert policy.horizon is not None
    for t in range(policy.horizon):
        rows = np.flatnonzero(steps.time == t)
        if not len(rows):
            break
        chances = np.nan_to_num(target.probabilities(asked, t))
        state, made = steps.state[rows], steps.made[rows]
        np.add.at(taken, (state, made), 1.0)
        np.add.at(told, state, chances[state])
        np.add.at(agrees, state, chances[state, made])
    table = node_table(policy)
    states = {n: c for n, c in table.states.items() if n not in model.set_aside}
    of_nodes = [situations.places.in_groups(each) for each in (taken, told, agrees)]
    found = []
    for row, node in enumerate(table.node):
        did, should, agreed = (each[node] for each in of_nodes)
        visits = float(did.sum())
        if not visits:
            continue
        found.append(
            NodeComparison(
                {name: column[row] for name, column in states.items()}, visits,
                _named(situations.decisions[int(did.argmax())]), float(did.max() / visits),
                _named(situations.decisions[int(should.argmax())]) if should.any() else "",
                float(agreed / visits), float(gains[node]),
            )
        )  # fmt: skip
    found.sort(key=lambda each: -each.gain)
    return float(agrees.sum() / taken.sum()), tuple(found)


def _named(made: Joint) -> str:
    return ", ".join(show(value) for value in made if value is not None)
