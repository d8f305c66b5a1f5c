"""Off-policy estimators in arrays; tests compare them with their definitions.

An estimate comes with the influence of each episode: to first order, by how much the estimate would
change with the weight of the episode. The standard error is the root of the summed squares. For a
mean that is the usual one; for weighted estimators it is the delta method.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.trust.honest import LEVEL
from rspmn.types import Array, Bools, Ints

SAMPLING = "importance sampling"


@dataclass(frozen=True)
class Estimate:
    """What a target is worth by one estimator, with an interval."""

    method: str
    value: float  # NaN if it is not defined
    low: float
    high: float
    #: So many episodes, all of one weight, would be as good; of products of ratios, at the time at
    #: which they are the fewest. NaN where episodes have no weights.
    effective: float = float("nan")


@dataclass(frozen=True, eq=False)
class Weighable:
    """Logged steps as estimators need them, sorted by time."""

    episodes: int
    horizon: int
    discount: float
    episode: Ints  # [steps]
    first: Ints  # [horizon + 1], where the steps of each time start
    ratio: Array  # [steps], π(a | s) / b(a | s)
    reward: Array  # [steps]
    q: Array  # [steps], what the model says of the decision
    v: Array  # [steps], and of the state

    def times(self) -> Iterator[tuple[int, slice]]:
        """Return each time with its steps."""
        for t in range(self.horizon):
            yield t, slice(int(self.first[t]), int(self.first[t + 1]))


def per_decision(log: Weighable, normalised: bool, model: bool, level: float = LEVEL) -> Estimate:
    """Return an estimate by products of ratios.

    `normalised` divides the weights of each time by their mean. `model` takes what the model says
    as a control variate, which makes the estimate doubly robust. `level` is that of the interval.
    """
    weight, influence = np.ones(log.episodes), np.zeros(log.episodes)
    value, effective = 0.0, float(log.episodes)
    for t, rows in log.times():
        here, factor = log.episode[rows], log.discount**t
        parts = [(weight.copy(), log.v[rows])] if model else []
        weight[here] *= log.ratio[rows]
        parts.append((weight, log.reward[rows] - (log.q[rows] if model else 0.0)))
        for weights, numbers in parts:
            found, each = _mean(weights, here, numbers, normalised)
            value += factor * found
            influence += factor * each
        effective = min(effective, effective_size(weight))
    name = ("weighted " if normalised else "") + ("doubly robust" if model else SAMPLING)
    return interval(name, value, influence, effective, level)


def final_weights(log: Weighable) -> Array:  # [episodes]
    """Return the product of all ratios of each episode. Its expectation is 1."""
    weight = np.ones(log.episodes)
    for _, rows in log.times():
        weight[log.episode[rows]] *= log.ratio[rows]
    return weight


def _mean(weights: Array, here: Ints, numbers: Array, normalised: bool) -> tuple[float, Array]:
    """Return the weighted mean over episodes, 0 in all but `here`, and each one's influence."""
    size = len(weights)
    scale = weights.sum() if normalised else float(size)
    if scale == 0:
        return np.nan, np.full(size, np.nan)
    each = np.zeros(size)
    each[here] = weights[here] * numbers / scale
    found = float(each.sum())
    each -= found * (weights / scale if normalised else 1 / size)
    return found, each


def effective_size(weights: Array) -> float:
    """Return how many episodes of one weight are as good, (Σ w)² / Σ w² (Kish)."""
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares else 0.0


def interval(
    method: str, value: float, influence: Array, effective: float, level: float = LEVEL
) -> Estimate:
    """Return an estimate with a normal interval; one episode gives none."""
    size = len(influence)
    if size < 2 or not np.isfinite(value):
        return Estimate(method, value, np.nan, np.nan, effective)
    error = float(np.sqrt(influence @ influence * size / (size - 1)))
    error *= NormalDist().inv_cdf((1 + level) / 2)
    return Estimate(method, value, value - error, value + error, effective)


@dataclass(frozen=True, eq=False)
class Moves:
    """Logged steps with a known successor, between groups of states.

    A state may belong to several groups: shares are rows that sum to 1. The last column is that of
    episodes that are over.
    """

    groups: int
    starts: Any  # sparse [episodes, groups + 1], the shares of each first state
    episode: Ints  # [moves]
    at: Any  # sparse [moves, groups + 1]
    to: Any  # sparse [moves, groups + 1]
    reward: Array  # [moves]
    ratios: Callable[[int], Array]  # of a time, [moves]

    @property
    def episodes(self) -> int:
        """The number of episodes."""
        return int(self.starts.shape[0])


def marginalised(
    log: Moves, horizon: int, discount: float, level: float = LEVEL
) -> tuple[Estimate, float]:
    """Return the estimate by marginal probabilities of states, and the share that is lost.

    Lost is the probability, over the horizon, of states in which no logged decision is one of the
    target's; all else makes up for it.
    """
    chances = np.asarray(log.starts.mean(axis=0))
    steps = _Weights(log)
    by_time, kept = [], 1.0
    value = 0.0
    for t in range(horizon):
        ratios, each, known = steps.at(t)
        mass = float(chances[known].sum())
        kept *= mass
        chances = np.where(known, chances / max(mass, 1e-300), 0.0)
        by_time.append(chances)
        moved = ratios * (log.at @ (chances * each))
        value += discount**t * float(moved @ log.reward)
        after = np.asarray(log.to.T @ moved)
        after[-1] += chances[-1]
        chances = after
    if kept == 0:
        return Estimate("marginalised", np.nan, np.nan, np.nan, 0.0), 1.0
    influence, effective = _influences(log, steps, by_time, discount)
    return interval("marginalised", value, influence, effective, level), 1 - kept


class _Weights:
    """What moves weigh in their groups, by time; what is the same is computed once."""

    def __init__(self, log: Moves) -> None:
        self.log = log
        self._found: tuple[Array, Array, Bools] | None = None

    def at(self, t: int) -> tuple[Array, Array, Bools]:  # [moves], [groups + 1] twice
        """Return ratios, one over their sum in each group, and which groups have any.

        What is over stays so.
        """
        ratios = self.log.ratios(t)
        if self._found is None or ratios is not self._found[0]:
            total = np.asarray(self.log.at.T @ ratios)
            known = total > 0
            each = np.where(known, 1 / np.where(known, total, 1.0), 0.0)
            known[-1] = True
            self._found = ratios, each, known
        return self._found


def _influences(
    log: Moves, steps: _Weights, chances: list[Array], discount: float
) -> tuple[Array, float]:
    """Return the influence of each episode, and the effective number of episodes."""
    values, found = np.zeros(log.groups + 1), np.zeros(log.episodes)
    weights = np.zeros(log.episodes)
    for t in reversed(range(len(chances))):
        ratios, each, known = steps.at(t)
        worth = log.reward + discount * (log.to @ values)
        values = each * (log.at.T @ (ratios * worth))
        values[~known] = chances[t] @ values  # they are left out: the others make up for them
        here = chances[t] * each
        moved = ratios * (log.at @ here)
        apart = moved * worth - ratios * (log.at @ (here * values))
        found += discount**t * group_weights(log.episode, apart, log.episodes)
        weights += discount**t * group_weights(log.episode, moved, log.episodes)
    begins = np.asarray(log.starts @ values)
    found += (begins - begins.mean()) / log.episodes
    return found, effective_size(weights)
