"""Off-policy estimators as they are defined, one episode and one step at a time.

`rspmn.evaluate.importance` computes the same in arrays. An episode is a list of steps. Of each step
it is known how much likelier the target takes the logged decision than the log did (`ratio`), the
reward, and what the model says: `q`, what the logged decision is worth if the target follows, and
`v`, what the state is worth, the mean of q over the target's decisions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class Step:
    """A logged step, as estimators need it."""

    ratio: float  # π(a | s) / b(a | s)
    reward: float
    q: float = 0.0
    v: float = 0.0


Episode = Sequence[Step]


def per_decision(episodes: Sequence[Episode], horizon: int, discount: float) -> float:
    """Return the mean over episodes of Σ_t γ^t (ρ_0 … ρ_t) r_t (Precup et al., 2000)."""
    total = 0.0
    for episode in episodes:
        for t, step in enumerate(episode[:horizon]):
            total += discount**t * _weight(episode, t) * step.reward
    return total / len(episodes)


def weighted_per_decision(episodes: Sequence[Episode], horizon: int, discount: float) -> float:
    """Return Σ_t γ^t of the mean of r_t weighted by ρ_0 … ρ_t.

    An episode that is over earns nothing more, and keeps its weight.
    """
    total = 0.0
    for t in range(horizon):
        weights = [_weight(episode, t) for episode in episodes]
        earned = [episode[t].reward if t < len(episode) else 0.0 for episode in episodes]
        total += discount**t * _mean(weights, earned)
    return total


def doubly_robust(episodes: Sequence[Episode], horizon: int, discount: float) -> float:
    """Return the mean of V_0, where V_t = v_t + ρ_t (r_t + γ V_{t+1} - q_t).

    (Jiang and Li, 2016)
    """

    def value(episode: Episode, t: int) -> float:
        if t == min(horizon, len(episode)):
            return 0.0
        step = episode[t]
        later = step.reward + discount * value(episode, t + 1)
        return step.v + step.ratio * (later - step.q)

    return sum(value(episode, 0) for episode in episodes) / len(episodes)


def weighted_doubly_robust(episodes: Sequence[Episode], horizon: int, discount: float) -> float:
    """Return Σ_t γ^t (mean of r_t - q_t by ρ_0 … ρ_t, plus that of v_t by ρ_0 … ρ_{t-1}).

    (Thomas and Brunskill, 2016)
    """
    nothing = Step(1.0, 0.0)
    total = 0.0
    for t in range(horizon):
        steps = [episode[t] if t < len(episode) else nothing for episode in episodes]
        after, before = ([_weight(episode, k) for episode in episodes] for k in (t, t - 1))
        total += discount**t * (
            _mean(after, [step.reward - step.q for step in steps])
            + _mean(before, [step.v for step in steps])
        )
    return total


@dataclass(frozen=True)
class Move:
    """A logged step between groups of states, END among them.

    Shares, which sum to 1, say how far its states belong to each group.
    """

    at: Mapping[int, float]
    to: Mapping[int, float]
    reward: float
    ratios: Sequence[float]  # for each time of the horizon


def marginalised(
    starts: Mapping[int, float], moves: Sequence[Move], horizon: int, discount: float
) -> float:
    """Return Σ_t γ^t Σ_s d_t(s) r_t(s), d_t the probability of s at time t under the target.

    In each group of states, rewards and successors are the logged ones, weighted by ρ_t (Xie et
    al., 2019; steps of all times are taken together, as the process is stationary) and by how far
    they belong to the group. Where no logged decision is one of the target's, the group is left out
    and the others make up for it.
    """
    chances, total = dict(starts), 0.0
    for t in range(horizon):
        weight: dict[int, float] = {}
        for move in moves:
            for s, share in move.at.items():
                weight[s] = weight.get(s, 0.0) + share * move.ratios[t]
        known = sum(p for s, p in chances.items() if s == END or weight.get(s, 0.0) > 0)
        after = {END: chances.get(END, 0.0) / known} if known else {}
        for move in moves:
            for s, share in move.at.items():
                if not weight[s] or not known:
                    continue
                p = chances.get(s, 0.0) / known * share * move.ratios[t] / weight[s]
                total += discount**t * p * move.reward
                for to, part in move.to.items():
                    after[to] = after.get(to, 0.0) + p * part
        chances = after
    return total


#: The group of episodes that are over.
END = -1


def _weight(episode: Episode, t: int) -> float:
    """Return ρ_0 … ρ_t; 1 before the first step."""
    return prod(step.ratio for step in episode[: t + 1])


def _mean(weights: Sequence[float], numbers: Sequence[float]) -> float:
    """Return a weighted mean, NaN if there is no weight."""
    if not sum(weights):
        return float("nan")
    pairs = zip(weights, numbers, strict=True)
    return sum(weight * number for weight, number in pairs) / sum(weights)
