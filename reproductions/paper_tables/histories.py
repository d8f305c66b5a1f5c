"""The best plan by the means of logged histories: what the SPMN of whole sequences comes to."""

import numpy as np

from reproductions.paper_tables.bcq import numbered
from rspmn.data.episodes import Episodes
from rspmn.envs.mdp import MDP
from rspmn.types import Array, Ints


def plan_of_histories(log: Episodes, mdp: MDP) -> tuple[float, float]:
    """Return what the best plan by a padded log promises, and what it is worth.

    A history is all that was observed and done in an episode so far. The plan takes the action
    after which the logged episodes of this history earned most. Where it leaves the logged
    histories, actions are random.
    """
    steps = int(log.lengths[0])
    at = numbered(log, mdp.states, mdp.schema.information_sets[0]).reshape(-1, steps)
    made = numbered(log, mdp.actions, mdp.schema.decisions).reshape(-1, steps)
    histories, branches = _paths(at, made)
    earned = log.columns[mdp.schema.utility].data.reshape(-1, steps).sum(axis=1)
    chosen: list[Ints] = []
    for history, branch in zip(reversed(histories), reversed(branches), strict=True):
        mean = np.bincount(branch, weights=earned) / np.bincount(branch)
        owner = history[_first(branch)]
        order = np.lexsort((-mean, owner))
        chosen.insert(0, order[_first(owner[order])])
        earned = mean[chosen[0]][history]
    return float(earned.mean()), _worth(mdp, at, made, histories, branches, chosen)


def _paths(at: Ints, made: Ints) -> tuple[list[Ints], list[Ints]]:
    """Return the history of each episode before each decision, and after it, as numbers."""
    histories: list[Ints] = []
    branches: list[Ints] = []
    path = np.zeros(len(at), dtype=np.int64)
    for state, action in zip(at.T, made.T, strict=True):
        histories.append(np.unique(path * (at.max() + 1) + state, return_inverse=True)[1])
        path = np.unique(histories[-1] * (made.max() + 1) + action, return_inverse=True)[1]
        branches.append(path)
    return histories, branches


def _first(groups: Ints) -> Ints:
    """Return the first place of each group."""
    return np.asarray(np.unique(groups, return_index=True)[1])


def _worth(
    mdp: MDP, at: Ints, made: Ints, histories: list[Ints], branches: list[Ints], chosen: list[Ints]
) -> float:
    """Return what the plan is worth in the world: histories by their true probability."""
    likely, rewards = _tables(mdp)
    steps, worth = at.shape[1], 0.0
    left = [np.zeros(len(mdp.states))]  # by steps to go, the values of random actions
    for _ in range(steps):
        left.append((rewards + likely @ left[-1]).mean(axis=1))
    chance = mdp.start[at[_first(histories[0]), 0]]
    for t in range(steps):
        row = _first(branches[t])[chosen[t]]
        s, a, later = at[row, t], made[row, t], left[steps - t - 1]
        worth += float(chance @ (rewards[s, a] + likely[s, a] @ later))
        if t + 1 < steps:
            row = _first(histories[t + 1])
            before, now = histories[t][row], at[row, t + 1]
            taken = chosen[t][before] == branches[t][row]
            chance = taken * chance[before] * likely[at[row, t], made[row, t], now]
            worth -= float(chance @ later[now])
    return worth


def _tables(mdp: MDP) -> tuple[Array, Array]:  # [S, A, S], [S, A]
    """Return probabilities and mean rewards of all transitions."""
    shape = len(mdp.states), len(mdp.actions)
    row = np.repeat(np.arange(shape[0] * shape[1]), np.diff(mdp.indptr))
    likely = np.zeros((shape[0] * shape[1], shape[0]))
    np.add.at(likely, (row, mdp.successors), mdp.probabilities)
    rewards = np.zeros(shape[0] * shape[1])
    np.add.at(rewards, row, mdp.probabilities * mdp.rewards)
    return likely.reshape(*shape, shape[0]), rewards.reshape(shape)
