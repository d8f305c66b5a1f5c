"""The steps of a policy in the model, one after the other: how returns add up.

Masses over pairs (interface node, return so far) are passed on step by step. The mean of the return
is the value that the plan promises.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.end_nodes import weighted_top
from rspmn.errors import EvidenceError
from rspmn.explain.outcome_rows import MixtureRows, OutcomeRows
from rspmn.explain.return_distribution import ReturnDistribution
from rspmn.explain.support import Support, by_group, normal_values
from rspmn.infer.bellman import check_steps
from rspmn.infer.compiled.planned import Plan
from rspmn.infer.policy import Policy
from rspmn.types import Array, Ints

#: Moves masses by what outcomes earn: (masses [n, size], outcomes [n]) to masses.
Move = Callable[[Array, Ints], Array]
#: Says what is done with masses that are at max nodes: (max nodes [n], masses [n, size]) to the
#: branches that are taken, as `Offers` numbers them, and the mass of each.
Decide = Callable[[Ints, Array], tuple[Ints, Array]]


class Flow:
    """One step from interface nodes to those of the next step.

    Where it is not known what follows, mass earns what its outcome earns and then goes on as the
    rest of its branch: the mean is that of `rspmn.infer.evaluation`.

    `rows`: the template by outcome. `shares`: how much is known of what follows at each max node
    [max nodes]. `last`: whether nothing follows this step: then it need not be known.
    """

    def __init__(self, rows: OutcomeRows, shares: Array, last: bool) -> None:
        self.rows, self.shares = rows, shares
        self.unknown = np.zeros(len(rows.earned)) if last else rows.unknown
        self.leads = rows.leads.copy()
        if rows.model.unknown is not None and not last:
            self.leads.data[self.leads.indices == rows.model.unknown] = 0.0

    def __call__(self, mass: Array, decide: Decide, move: Move) -> tuple[Array, Array]:
        """Return the masses after the step: of interface nodes, and where nothing follows.

        They are [interfaces, size] and [size].
        """
        self._next, self._over = np.zeros_like(mass), np.zeros(mass.shape[1])
        self._waiting = np.zeros((len(self.shares), mass.shape[1]))
        self._move = move
        here = np.flatnonzero(mass.any(axis=1))
        self._pass(self.rows.roots[here], mass[here])
        for numbers in reversed(self.rows.levels):
            numbers = numbers[self._waiting[numbers].any(axis=1)]
            branches, taken = decide(numbers, self._waiting[numbers])
            self._pass(self.rows.branches[branches], taken)
        return self._next, self._over

    def _pass(self, rows: MixtureRows, mass: Array) -> None:
        """Pass on the mass of mixtures."""
        entries, decisions = rows.outcomes.tocoo(), rows.decisions
        row, outcome = entries.coords
        moved = self._move(entries.data[:, None] * mass[row], outcome)
        self._next += self.leads[outcome].T @ moved
        self._waiting += (decisions * self.shares[None, :]).T @ mass
        parts = rows.outcomes.sum(axis=1) + decisions.sum(axis=1)
        rest = np.where(parts > 1 - 1e-9, 0.0, 1 - parts)
        self._over += rest @ mass
        lost = np.asarray(decisions @ (1 - self.shares))[:, None] * mass
        gone = np.flatnonzero(self.unknown[outcome] > 0)
        np.add.at(lost, row[gone], self.unknown[outcome[gone], None] * moved[gone])
        if lost.any():
            self._go_on(rows, rest, lost)

    def _go_on(self, rows: MixtureRows, rest: Array, lost: Array) -> None:
        """Send mass of which it is not known what follows where the rest of its row goes."""
        decisions = rows.decisions * self.shares[None, :]
        known = rows.outcomes @ (1 - self.unknown) + decisions.sum(axis=1) + rest
        lost = lost / np.maximum(known, 1e-300)[:, None]
        self._next += (rows.outcomes @ self.leads).T @ lost
        self._waiting += decisions.T @ lost
        self._over += rest @ lost


#: At most so many points of a grid, and so many masses at a time.
POINTS, MASSES = 10_000, 20_000_000
#: A grid has at least so many points.
LEAST = 5
#: A reward of which mean and variance are known is normal. In one step it has so many values of
#: equal probability; in several, fewer, but at least the latter.
NORMAL, LEAST_NORMAL = 32, 3

#: Returns what is decided in a step, given its number and the returns so far.
Decider = Callable[[int, Support], Decide]


class Rewards:
    """What outcomes earn: values of equal probability.

    `rows`: the outcomes. `steps`: the number of steps: in many, few values of a normal reward are
    enough.
    """

    def __init__(self, rows: OutcomeRows, steps: int) -> None:
        deviation = np.sqrt(rows.variance)
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
                        matrices[code] = support.at(support.points + discount * self.values[code]).T
                    found[rows] += (matrices[code] @ mass[rows].T).T
            return found / len(self.code)

        return move


class PolicyStages:
    """The steps of a policy, one after the other.

    `rows`: the template by outcome. `planned`: what is best on average. `afters`: of each step, how
    many steps follow it. `decider`: what is done; by default, what is planned.
    """

    def __init__(
        self,
        rows: OutcomeRows,
        planned: Plan,
        afters: Sequence[int],
        decider: Decider | None = None,
    ) -> None:
        self.planned, self.afters, self.rows = planned, afters, rows
        self.rewards = Rewards(rows, len(afters))
        self._decider = decider or self._as_planned

    def _as_planned(self, t: int, _: Support) -> Decide:
        chosen = self.rows.chosen(self.planned.at(self.afters[t]).choices)
        return lambda numbers, mass: (chosen[numbers], mass)

    def distribution(self, start: Array, points: int) -> ReturnDistribution:
        """Return the distribution of the return, given the interface nodes at the start."""
        most = max(LEAST, min(points, MASSES // len(start)))
        support, over, error = Support(np.zeros(1)), np.zeros(1), 0.0
        mass = known_part(self.planned, self.afters[0], start)[:, None]
        for t in range(len(self.afters)):
            discount = self.planned.discount**t
            rewards = discount * self.rewards.of(self._reached(mass, t, support))
            wider, rounding = support.with_sums(rewards, most)
            into = wider.at(support.points)
            mass, over = mass @ into, over @ into
            mass, ended = self._step(mass, t, wider, self.rewards.mover(wider, discount))
            over, error = over + ended, error + 2 * rounding  # to the new points, and a move
            used = mass.any(axis=0) | (over > 0)
            support, mass, over = Support(wider.points[used]), mass[:, used], over[used]
        total = mass.sum(axis=0) + over
        return ReturnDistribution(support.points, total / total.sum(), len(self.afters), error)

    def _step(self, mass: Array, t: int, support: Support, move: Move) -> tuple[Array, Array]:
        """Pass masses on by one step."""
        after = self.afters[t]
        choices = self.planned.at(after).choices
        last = self.planned.horizon is not None and after == 0
        flow = Flow(self.rows, self.rows.shares(choices), last)
        mass = instead_of_frontier(mass, self.planned.model.bellman.copied(choices))
        return flow(mass, self._decider(t, support), move)

    def _reached(self, mass: Array, t: int, support: Support) -> Ints:
        """Return the outcomes that a step may have."""
        found: list[Ints] = []

        def record(here: Array, outcomes: Ints) -> Array:
            found.append(np.unique(outcomes[here.any(axis=1)]))
            return here

        self._step(mass, t, support, record)
        return np.unique(np.concatenate(found))


def known_part(planned: Plan, after: int, start: Array) -> Array:  # [interfaces]
    """Return the part of a start of which it is known what follows."""
    choices = planned.at(after).choices
    known = planned.model.bellman.roots(choices.values, choices.shares)[1]
    found = start if known is None else start * known
    if not found.any():
        raise EvidenceError("the successors of all decisions in this state are unknown")
    return np.asarray(found / found.sum())


def instead_of_frontier(mass: Array, worst: Ints) -> Array:
    """Move the mass of frontier nodes to the node that they are valued as."""
    moved = np.flatnonzero(worst != np.arange(len(worst)))
    if not mass[moved].any():
        return mass
    found = mass.copy()
    found[moved] = 0.0
    np.add.at(found, worst[moved], mass[moved])
    return found


#: Episodes are drawn where what a step earns cannot be told apart by outcome.
EPISODES = 10_000


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
        raise EvidenceError("returns: this state was never observed")
    afters = [planned.after(t + k) for k in range(steps)]
    divided = planned.divides(afters)
    if divided and state is not None:
        raise EvidenceError(
            "returns: rules tell states of one interface node apart: ask from the start of an "
            "episode, or for the value of the state"
        )
    if episodes is None and not divided and OutcomeRows.serves(policy.model.template):
        rows = OutcomeRows(policy.model, planned.offers)
        return PolicyStages(rows, planned, afters).distribution(start, points)
    now = Policy(policy.model, left, policy.discount, policy.otherwise, criterion=policy.criterion)
    return simulated_returns(now, start, steps, episodes or EPISODES, rng)


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
