"""What follows a node and an action: the successor's numbers, categories, the end, the reward.

Steps of all nodes share one model of each: `displacements` give the next numbers, the end and the
reward are means in boxes of this state and the expected next one. Each node adds what its own steps
say beyond that, shrunk by how few they are.
"""

from dataclasses import dataclass

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.learn.flows import ranges_of
from rspmn.learn.numbers.displacements import Displacements, Logged
from rspmn.learn.numbers.grid import Grid, Membership
from rspmn.learn.numbers.mean_boxes import RegressionTree, fit_tree
from rspmn.types import Array, Bools

#: The shared models are worth at least this many steps to a node.
STRENGTH = 10.0


@dataclass(frozen=True, eq=False)
class Follows:
    """What follows each node and action; arrays start with [nodes, actions]."""

    steps: Array  # logged
    end: Array  # the probability that the episode ends
    mean: Array  # of the utility
    variance: Array
    next_numbers: Array  # [nodes, actions, numbers], expected
    noise: list[Array]  # of each action, [draws, numbers] around what is expected
    #: The least and the most that a step earned, of those that went on and of those that ended.
    rewards: Array  # [2, 2]


def expected_next(
    grid: Grid, membership: Membership, log: Logged, displacements: Displacements
) -> Follows:
    """Return what follows every node of a grid and every action."""
    on = ~log.ended
    at_nodes = displacements.features(grid.points, grid.nodes[:, : len(grid.sizes)])
    at_rows = displacements.features(log.numbers, log.codes)
    size, actions = grid.size, log.actions
    next_of_nodes, next_of_rows = np.empty((size, actions, grid.numbers)), log.numbers.copy()
    steps = np.empty((size, actions))
    noise: list[Array] = []
    moved_nodes, moved_rows = displacements(at_nodes), displacements.of_actions(at_rows, log.action)
    for a in range(actions):
        mine = log.action == a
        left = np.where((mine & on)[:, None], log.next_numbers - log.numbers - moved_rows, np.nan)
        local = _local(left, membership, log.counts)
        steps[:, a] = membership.sums(mine.astype(np.float64), log.counts)
        next_of_nodes[:, a] = grid.points + moved_nodes[:, a] + local
        next_of_rows[mine] += moved_rows[mine] + membership.at_rows(local)[mine]
        noise.append((log.next_numbers - next_of_rows)[mine & on])
    end, mean, variance = _end_and_utility(
        grid, membership, log, next_of_nodes, next_of_rows, at_nodes, at_rows
    )
    rewards = ranges_of(log.utility, log.ended)
    return Follows(steps, end, mean, variance, next_of_nodes, noise, rewards)


def _local(left: Array, membership: Membership, counts: Array) -> Array:  # [nodes, numbers]
    """Return the mean residual of each node, shrunk by empirical Bayes."""
    known = ~np.isnan(left)
    r = np.where(known, left, 0.0)
    weight, sums = membership.sums(known.astype(np.float64), counts), membership.sums(r, counts)
    noise = (counts @ r**2) / np.maximum(counts @ known, 1e-300)
    found = [shrunk_sums(w, s, v) for w, s, v in zip(weight.T, sums.T, noise.tolist(), strict=True)]
    return np.stack(found, axis=1)


def shrunk_sums(weight: Array, sums: Array, variance: float) -> Array:  # [nodes]
    """Return means shrunk towards 0: by the share of their variance that is noise.

    Of two variances, that between nodes and that within, the first is what the means vary by
    beyond noise. A node of n steps keeps n / (n + κ) of its mean, κ = within / between.
    """
    has = weight > 1e-9
    if not has.any() or variance <= 0:
        return np.zeros(len(weight))
    means = np.where(has, sums / np.where(has, weight, 1.0), 0.0)
    n = weight[has]
    beyond = float(n @ means[has] ** 2 - variance * has.sum()) / float(n.sum())
    if beyond <= 0:
        return np.zeros(len(weight))
    strength = max(STRENGTH, variance / beyond)
    return np.asarray(means * weight / (weight + strength))


# ---- end and reward ------------------------------------------------------------------


def _end_and_utility(
    grid: Grid, membership: Membership, log: Logged, next_of_nodes: Array, next_of_rows: Array,
    at_nodes: Array, at_rows: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    size = grid.size
    end, mean, variance = np.zeros((3, size, log.actions))
    features = np.hstack([next_of_rows, at_rows])
    over = log.ended.astype(np.float64)
    ends = _Estimated(features, log, over, log.counts, membership)
    earned = [
        _Estimated(features, log, log.utility, of, membership, by_action=True)
        for of in (np.where(log.ended, 0, log.counts), np.where(log.ended, log.counts, 0))
    ]
    for a in range(log.actions):
        mine = log.action == a
        asked = np.hstack([next_of_nodes[:, a], at_nodes])
        chance = ends.at_nodes(asked, a)
        on, last = (each.at_nodes(asked, a) for each in earned)
        end[:, a], mean[:, a] = chance, (1 - chance) * on + chance * last
        counts = np.where(mine, log.counts, 0.0)
        squares = log.spread + (log.utility - float(np.average(log.utility, weights=counts))) ** 2
        weight = membership.sums(mine.astype(np.float64), log.counts)
        usual = STRENGTH * float(np.average(squares, weights=counts))
        variance[:, a] = (membership.sums(squares, counts) + usual) / (weight + STRENGTH)
    return end, mean, variance


class _Estimated:
    """A number that follows a step: means in boxes, to which nodes add what is their own.

    Boxes are those of a tree for all actions; with `by_action`, a tree of each action adds what
    that leaves: an effect of actions may be the opposite elsewhere, which one tree does not find.
    """

    def __init__(
        self, features: Array, log: Logged, target: Array, counts: Array, membership: Membership,
        by_action: bool = False,
    ) -> None:  # fmt: skip
        self.log, self.counts, self.membership = log, counts, membership
        known = counts > 0
        self.low, self.high = (
            (float(target[known].min()), float(target[known].max())) if known.any() else (0.0, 0.0)
        )
        self.left, self.trees = np.zeros(len(target)), dict[int, list[RegressionTree]]()
        if self.low == self.high:
            return
        self.left[known] = target[known]
        features = np.hstack([features, log.action[:, None]])
        actions = range(log.actions)
        shared = self._fitted(features, known)
        own = [self._fitted(features, known & (log.action == a)) for a in actions if by_action]
        self.trees = {a: [*shared, *(own[a] if by_action else ())] for a in actions}

    def _fitted(self, features: Array, rows: Bools) -> list[RegressionTree]:
        """Return a tree of what is left of some rows, and take it away; none without rows."""
        if not rows.any():
            return []
        tree = fit_tree(features[rows], self.left[rows], self.counts[rows])
        self.left[rows] -= tree(features[rows])
        return [tree]

    def at_nodes(self, asked: Array, action: int) -> Array:  # [nodes]
        """Return what is expected of an action at each node; never beyond what was seen."""
        if not self.trees:
            return np.full(len(asked), self.low)
        asked = np.hstack([asked, np.full((len(asked), 1), float(action))])
        counts = np.where(self.log.action == action, self.counts, 0.0)
        weight = self.membership.sums((counts > 0).astype(np.float64), counts)
        sums = self.membership.sums(self.left, counts)
        noise = float(counts @ self.left**2) / max(float(counts.sum()), 1e-300)
        found = sum(tree(asked) for tree in self.trees[action]) + shrunk_sums(weight, sums, noise)
        return np.clip(found, self.low, self.high)


def next_categories(
    grid: Grid, membership: Membership, log: Logged, category: int
) -> Array:  # [nodes, actions, codes]
    """Return the distribution of a category's next value: that of its own value and action.

    Each node adds its own steps.
    """
    size, codes = grid.size, grid.sizes[category]
    found = np.zeros((size, log.actions, codes))
    known = (log.next_codes[:, category] >= 0) & ~log.ended & (log.codes[:, category] >= 0)
    here = np.maximum(log.codes[:, category], 0)
    after = np.maximum(log.next_codes[:, category], 0)
    weight = np.where(known, log.counts, 0.0)
    key = (log.action * codes + here) * codes + after
    pooled = group_weights(key, weight, log.actions * codes * codes)
    pooled = pooled.reshape(log.actions, codes, codes) + 1e-9 * np.eye(codes)
    pooled /= pooled.sum(axis=2, keepdims=True)
    own = grid.nodes[:, category]
    indicator = (after[:, None] == np.arange(codes)).astype(np.float64)
    for a in range(log.actions):
        mine = np.where(log.action == a, weight, 0.0)
        sums = membership.sums(indicator, mine)
        total = sums.sum(axis=1)
        prior = STRENGTH * pooled[a, own]
        found[:, a] = (sums + prior) / (total + STRENGTH)[:, None]
    return found
