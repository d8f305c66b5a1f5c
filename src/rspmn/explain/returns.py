"""The distribution of the return of a policy, in the model.

Masses over pairs (interface node, return so far) are passed on step by step, as a plan chooses in
each interface node. The mean is the value that the plan promises.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.end_nodes import weighted_top
from rspmn.errors import EvidenceError
from rspmn.explain.distribution import ReturnDistribution
from rspmn.explain.flow import Flow, Move
from rspmn.explain.outcome_rows import OutcomeRows
from rspmn.explain.support import Support, by_group, normal_values
from rspmn.infer.bellman import check_steps
from rspmn.infer.compiled.planned import Planned
from rspmn.infer.policy import Policy
from rspmn.types import Array, Ints

#: At most so many points of a grid, and so many masses at a time.
POINTS, MASSES = 10_000, 20_000_000
#: Episodes are drawn where what a step earns cannot be told apart by outcome.
EPISODES = 10_000
#: A grid has at least so many points.
LEAST = 5
#: A reward of which mean and variance are known is normal. In one step it has so many values of
#: equal probability; in several, fewer, but at least the latter.
NORMAL, LEAST_NORMAL = 32, 3
#: A deviation of less than this share of the largest reward is rounding.
NO_DEVIATION = 1e-6


class Rewards:
    """What outcomes earn: values of equal probability.

    Parameters
    ----------
    rows
        The outcomes.
    steps
        The number of steps: in many, few values of a normal reward are enough.
    """

    def __init__(self, rows: OutcomeRows, steps: int) -> None:
        deviation = np.sqrt(rows.variance)
        deviation[deviation <= NO_DEVIATION * max(1.0, np.abs(rows.earned).max(initial=0.0))] = 0.0
        count = max(LEAST_NORMAL, math.ceil(NORMAL / steps)) if deviation.any() else 1
        noise = normal_values(count) if count > 1 else np.zeros(1)
        found = rows.earned + deviation * noise[:, None]
        self.values, code = np.unique(found, return_inverse=True)  # the different rewards
        self.code = code.reshape(found.shape)  # [noise, outcomes]

    def of(self, outcomes: Ints) -> Array:
        """Return the different rewards of some outcomes."""
        return np.asarray(self.values[np.unique(self.code[:, outcomes])])

    def mover(self, support: Support, discount: float) -> Move:
        """Return what moves masses by rewards, discounted."""
        matrices: dict[int, Any] = {}

        def move(mass: Array, outcomes: Ints) -> Array:
            found = np.zeros_like(mass)
            for codes in self.code[:, outcomes]:
                for code, rows in by_group(codes):
                    if code not in matrices:
                        (matrices[code],) = support.moves(discount * self.values[[code]])
                    found[rows] += (matrices[code].T @ mass[rows].T).T
            return found / len(self.code)

        return move


class Stages:
    """The steps of a plan, one after the other.

    Parameters
    ----------
    planned
        The plan.
    afters
        Of each step, how many steps follow it.
    """

    def __init__(self, planned: Planned, afters: Sequence[int]) -> None:
        self.planned, self.afters = planned, afters
        self.rows = OutcomeRows(planned.model, planned.offers)
        self.rewards = Rewards(self.rows, len(afters))

    def distribution(self, start: Array, points: int) -> ReturnDistribution:
        """Return the distribution of the return, given the interface nodes at the start."""
        most = max(LEAST, min(points, MASSES // len(start)))
        support, over, error = Support(np.zeros(1)), np.zeros(1), 0.0
        mass = self._known(start)[:, None]
        for t, after in enumerate(self.afters):
            discount = self.planned.discount**t
            rewards = discount * self.rewards.of(self._reached(mass, after))
            wider, rounding = support.with_sums(rewards, most)
            into = wider.at(support.points)
            mass, over = mass @ into, over @ into
            mass, ended = self._step(mass, after, self.rewards.mover(wider, discount))
            over, error = over + ended, error + 2 * rounding  # to the new points, and a move
            used = mass.any(axis=0) | (over > 0)
            support, mass, over = Support(wider.points[used]), mass[:, used], over[used]
        total = mass.sum(axis=0) + over
        return ReturnDistribution(support.points, total / total.sum(), len(self.afters), error)

    def _known(self, start: Array) -> Array:  # [interfaces]
        """Return the part of the start of which it is known what follows."""
        choices = self.planned.at(self.afters[0]).choices
        known = self.planned.model.bellman.roots(choices.values, choices.shares)[1]
        found = start if known is None else start * known
        if not found.any():
            raise EvidenceError("returns: it is not known what follows any decision in this state")
        return found

    def _step(self, mass: Array, after: int, move: Move) -> tuple[Array, Array]:
        """Pass masses on by one step."""
        choices = self.planned.at(after).choices
        last = self.planned.horizon is not None and after == 0
        flow = Flow(self.rows, self.rows.shares(choices), last)
        chosen = self.rows.chosen(choices)
        mass = instead_of_frontier(mass, self.planned.model.bellman.copied(choices))
        return flow(mass, lambda numbers, here: (chosen[numbers], here), move)

    def _reached(self, mass: Array, after: int) -> Ints:
        """Return the outcomes that a step may have."""
        found: list[Ints] = []

        def record(here: Array, outcomes: Ints) -> Array:
            found.append(np.unique(outcomes[here.any(axis=1)]))
            return here

        self._step(mass.sum(axis=1, keepdims=True), after, record)
        return np.unique(np.concatenate(found))


def instead_of_frontier(mass: Array, worst: Ints) -> Array:
    """Move the mass of frontier nodes to the node that they are valued as."""
    moved = np.flatnonzero(worst != np.arange(len(worst)))
    if not mass[moved].any():
        return mass
    found = mass.copy()
    found[moved] = 0.0
    np.add.at(found, worst[moved], mass[moved])
    return found


def policy_returns(
    policy: Policy,
    horizon: int | None,
    state: object,
    t: int,
    episodes: int | None,
    rng: np.random.Generator,
    points: int,
) -> ReturnDistribution:
    """Return the distribution of the return of a policy; see `Policy.returns`."""
    planned = policy.planned
    left = None if policy.horizon is None else planned.after(t) + 1
    steps = left if horizon is None else check_steps(horizon, least=1)
    if steps is None or (left is not None and steps > left):
        expected = "a number of steps" if left is None else f"at most {left} steps"
        raise EvidenceError(f"returns: expected {expected} as horizon, found {horizon}")
    start = policy.nodes(state)
    if not start.any():
        raise EvidenceError("returns: the model never saw this state")
    if episodes is None and OutcomeRows.serves(policy.model.template):
        return returns_of_plan(planned, start, [planned.after(t + k) for k in range(steps)], points)
    now = Policy(policy.model, left, policy.discount, policy.otherwise, criterion=policy.criterion)
    return simulated_returns(now, start, steps, episodes or EPISODES, rng)


def returns_of_plan(
    planned: Planned, start: Array, afters: Sequence[int], points: int = POINTS
) -> ReturnDistribution:
    """Return the distribution of the return of a plan.

    Parameters
    ----------
    planned
        The plan.
    start
        How probable each interface node is. [interfaces]
    afters
        Of each step, how many steps follow it.
    points
        The different returns that are kept apart, at most.
    """
    return Stages(planned, afters).distribution(start, points)


def simulated_returns(
    policy: Policy, start: Array, steps: int, episodes: int, rng: np.random.Generator
) -> ReturnDistribution:
    """Return the returns of drawn episodes, in which the policy acts on the states that it sees."""
    model = replace(policy.model, top=weighted_top((start / start.sum()).tolist()))
    log = model.sample(episodes, steps, rng, policy)
    earned = log.columns[model.schema.utility].data
    time = np.arange(len(earned)) - np.repeat(log.offsets[:-1], log.lengths)
    of_episode = np.repeat(np.arange(len(log)), log.lengths)
    found = group_weights(of_episode, earned * policy.discount**time, len(log))
    values, counts = np.unique(found, return_counts=True)
    return ReturnDistribution(values, counts / len(found), steps, math.nan, len(found))
