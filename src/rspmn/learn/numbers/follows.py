"""What follows a node and an action: the successor's numbers, categories, the end, the reward.

Steps of all nodes share one model of each: `displacements` give the next numbers, for each kind of
moves if numbers jump; how often moves are of each kind, the end and the reward are means in boxes
of this state and the expected next one. Each node adds what its own steps say beyond that, shrunk
by how few they are.
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
    chance: Array  # [nodes, actions, kinds], of each kind of moves; they sum to 1
    next_numbers: Array  # [nodes, actions, kinds, numbers], expected
    noise: list[list[Array]]  # of each action and kind, [draws, numbers] around what is expected
    #: The least and the most that a step earned, of those that went on and of those that ended.
    rewards: Array  # [2, 2]


def expected_next(
    grid: Grid, membership: Membership, log: Logged, displacements: Displacements
) -> Follows:
    """Return what follows every node of a grid and every action."""
    at_nodes = displacements.features(grid.points, grid.nodes[:, : len(grid.sizes)])
    at_rows = displacements.features(log.numbers, log.codes)
    next_of_nodes = grid.points[:, None, None] + displacements(at_nodes)
    next_of_rows = log.numbers[:, None] + displacements.of_actions(at_rows, log.action)
    steps, noise = np.empty((grid.size, log.actions)), list[list[Array]]()
    for a in range(log.actions):
        mine = log.action == a
        steps[:, a] = membership.sums(mine.astype(np.float64), log.counts)
        noise.append([])
        for k in range(displacements.kinds):
            known = mine & ~log.ended & (displacements.kind == k)
            left = np.where(known[:, None], log.next_numbers - next_of_rows[:, k], np.nan)
            local = _local(left, membership, log.counts)
            next_of_nodes[:, a, k] += local
            next_of_rows[mine, k] += membership.at_rows(local)[mine]
            noise[a].append((log.next_numbers - next_of_rows[:, k])[known])
    chance = _chance(at_nodes, at_rows, membership, log, displacements)
    end, mean, variance = _end_and_utility(
        (np.einsum("nak,nakj->naj", chance, next_of_nodes), next_of_nodes, at_nodes),
        (_of_rows(chance, next_of_rows, membership, log), next_of_rows, at_rows),
        chance, membership, log, displacements,
    )  # fmt: skip
    rewards = ranges_of(log.utility, log.ended)
    return Follows(steps, end, mean, variance, chance, next_of_nodes, noise, rewards)


def _chance(
    at_nodes: Array, at_rows: Array, membership: Membership, log: Logged,
    displacements: Displacements,
) -> Array:  # [nodes, actions, kinds]  # fmt: skip
    """Return the probability of each kind of moves."""
    found = np.ones((len(at_nodes), log.actions, displacements.kinds))
    if displacements.kinds == 1:
        return found
    left = (displacements.kind[:, None] == np.arange(displacements.kinds)).astype(np.float64)
    for a in range(log.actions):
        mine = log.action == a
        left[mine] -= displacements.chance(at_rows[mine], a)
        found[:, a] = displacements.chance(at_nodes, a)
    counts = np.where(log.ended, 0, log.counts)
    for k, target in enumerate(left.T):
        more = _Estimated(at_rows, log, target, counts, membership, by_action=True)
        for a in range(log.actions):
            found[:, a, k] = np.clip(found[:, a, k] + more.at_nodes(at_nodes, a), 0, 1)
    total = found.sum(axis=2, keepdims=True)
    return np.where(total > 0, found / np.where(total > 0, total, 1), 1 / displacements.kinds)


def _of_rows(
    chance: Array, of_kinds: Array, membership: Membership, log: Logged
) -> Array:  # [n, numbers]
    """Return the mean over the kinds of moves that the action of each row may have."""
    found = of_kinds[:, 0].copy()
    for a in range(log.actions if chance.shape[2] > 1 else 0):
        mine = log.action == a
        share = membership.at_rows(chance[:, a])[mine]
        found[mine] = np.einsum("nk,nkj->nj", share, of_kinds[mine])
    return found


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
    of_nodes: tuple[Array, Array, Array], of_rows: tuple[Array, Array, Array], chance: Array,
    membership: Membership, log: Logged, displacements: Displacements,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return the probability of the end, and mean and variance of rewards: [nodes, actions] each.

    `of_nodes`, `of_rows`: the expected next numbers, those of each kind of moves, and features.
    """
    next_of_nodes, by_kind, at_nodes = of_nodes
    end, mean, variance = np.zeros((3, *next_of_nodes.shape[:2]))
    features = np.hstack([of_rows[0], of_rows[2]])
    own = np.hstack([of_rows[1][np.arange(len(features)), displacements.kind], of_rows[2]])
    going, ending = np.where(log.ended, 0, log.counts), np.where(log.ended, log.counts, 0)
    ends = _Estimated(features, log, log.ended.astype(np.float64), log.counts, membership)
    last = _Estimated(features, log, log.utility, ending, membership, by_action=True)
    on = _Estimated(own, displacements.by_kind(log), log.utility, going, membership, by_action=True)
    for a in range(log.actions):
        asked = np.hstack([next_of_nodes[:, a], at_nodes])
        chance_of_end = ends.at_nodes(asked, a)
        mean[:, a] = chance_of_end * last.at_nodes(asked, a)
        for k in range(displacements.kinds):
            asked = np.hstack([by_kind[:, a, k], at_nodes])
            earned = on.at_nodes(asked, a * displacements.kinds + k)
            mean[:, a] += (1 - chance_of_end) * chance[:, a, k] * earned
        end[:, a] = chance_of_end
        counts = np.where(log.action == a, log.counts, 0.0)
        squares = log.spread + (log.utility - membership.at_rows(mean[:, a])) ** 2
        usual = STRENGTH * float(counts @ squares) / max(float(counts.sum()), 1e-300)
        weight = membership.sums(np.ones(len(counts)), counts)
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
