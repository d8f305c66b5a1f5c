"""The weights of every S_L, where on a grid the expected successor lies; the counts behind them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.learn.flows import known_ranges
from rspmn.learn.numbers.follows import STRENGTH, Follows
from rspmn.learn.numbers.grid import Grid
from rspmn.memory import IN_PASSING
from rspmn.successor_counts import SoftCounts
from rspmn.types import Array, Ints

#: A successor without noise is interpolated between all corners of its cell, if they are at most
#: so many, any other between d + 1 of them.
MOST_CORNERS = 16
#: Noise below this share of the distance between knots is left out.
SMALL = 0.05
#: The number of logged deviations that represent the noise of an action.
DRAWS = 16
#: Values of a category with a probability below this do not follow.
LEAST = 1e-6


@dataclass(frozen=True, eq=False)
class GridTransitions:
    """Weights of the successors of every node and action, sorted by node, action, successor."""

    site: Ints  # [edges], node · actions + action
    to: Ints  # [edges], a node
    weight: Array  # [edges]; they sum to 1 for each site
    sites: int

    def matrix(self, nodes: int) -> Any:  # scipy.sparse, [sites, nodes]
        """Return the weights as a matrix."""
        from scipy.sparse import csr_array

        return csr_array((self.weight, (self.site, self.to)), shape=(self.sites, nodes))


def transitions(grid: Grid, follows: Follows, categories: list[Array]) -> GridTransitions:
    """Return the successors of every node and action.

    Parameters
    ----------
    grid
        The nodes.
    follows
        What is expected to follow.
    categories
        Of each category, the distribution of its next value. [nodes, actions · kinds, codes]
    """
    size, actions, kinds, _ = follows.next_numbers.shape
    parts = []
    for a in range(actions):
        noise = [_draws(grid, of_kind, DRAWS // kinds) for of_kind in follows.noise[a]]
        for nodes in _blocks(grid, categories, slice(a * kinds, (a + 1) * kinds)):
            joined = []
            for k, drawn in enumerate(noise):
                here = nodes[follows.chance[nodes, a, k] > LEAST]
                for draw in drawn:
                    points = follows.next_numbers[here, a, k] + draw
                    codes, weight = _landing(grid, points, len(drawn) == 1)
                    weight = weight * (follows.chance[here, a, k] / len(drawn))[:, None]
                    found = _joined(grid, here, codes, weight, categories, a * kinds + k)
                    joined.append((found[0] * actions + a, *found[1:]))
            parts.append(_merged(joined, size))
    key, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(key)
    site, to = np.divmod(key[order], size)
    return GridTransitions(site, to, _scaled(site, weight[order]), size * actions)


def _blocks(grid: Grid, categories: list[Array], kinds: slice) -> list[Ints]:
    """Divide the nodes so that the successors of a block fit into memory."""
    entries = np.full(grid.size, float(most_landings(len(grid.axes))))
    numbers = entries * grid.nodes.shape[1]  # held for each node
    for each in categories:
        numbers += entries * each.shape[2]
        entries = entries * (each[:, kinds] > LEAST).sum(axis=2).max(axis=1)
        numbers += entries * grid.nodes.shape[1]
    block = (np.cumsum(numbers) // IN_PASSING).astype(np.int64)
    return np.split(np.arange(grid.size), np.flatnonzero(np.diff(block)) + 1)


def most_landings(axes: int) -> int:
    """Return in how many knots the successor of a node may lie, by the draws of its noise."""
    return max(DRAWS * (axes + 1), MOST_CORNERS)


def _merged(parts: list[tuple[Ints, Ints, Array]], size: int) -> tuple[Ints, Array]:
    """Return keys of sites and nodes, sorted, and their weights; next to none are left out."""
    site, to, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    key, which = np.unique(site * size + to, return_inverse=True)
    total = group_weights(which, weight, len(key))
    kept = total > 1e-9
    return key[kept], total[kept]


def _scaled(site: Ints, weight: Array) -> Array:
    """Return weights that sum to 1 for each site."""
    return np.asarray(weight / np.bincount(site, weight)[site])


def _draws(grid: Grid, noise: Array, most: int = DRAWS) -> Array:  # [draws, numbers]
    """Return noise around an expected successor: 0 where it is small, else at quantiles."""
    whole = noise[~np.isnan(noise).any(axis=1)]
    if len(whole) < 2 or (np.sqrt((whole**2).mean(axis=0)) < SMALL * grid.spacing).all():
        return np.zeros((1, grid.numbers))
    along = whole[np.argsort(whole @ (1 / grid.spacing), kind="stable")]
    drawn = along[((np.arange(most) + 0.5) / most * len(along)).astype(np.int64)]
    return np.asarray(drawn - drawn.mean(axis=0))


def _landing(grid: Grid, points: Array, certain: bool) -> tuple[Ints, Array]:
    """Return the knots around some points [n, corners, axes], and their weights."""
    interval, share = grid.place(points)
    up = grid.corners[:, len(grid.sizes) :]
    if certain and len(up) <= MOST_CORNERS:
        return interval[:, None, :] + up, grid.corner_weights(share)
    order = np.argsort(-share, axis=1)
    sorted_shares = np.take_along_axis(share, order, axis=1)
    edge = np.ones((len(points), 1))
    weight = -np.diff(np.hstack([edge, sorted_shares, 0 * edge]), axis=1)  # [n, d + 1]
    rank = np.argsort(order, axis=1)
    steps = np.arange(share.shape[1] + 1)[None, :, None] > rank[:, None, :]
    return interval[:, None, :] + steps, weight


def _joined(
    grid: Grid, sources: Ints, knots: Ints, weight: Array, categories: list[Array], kind: int
) -> tuple[Ints, Ints, Array]:  # fmt: skip
    """Return sources, nodes and weights of each: knots crossed with the next categories.

    Corners that are no node give their weight to those that are; if none is, to the nearest.
    """
    nodes = np.arange(len(knots))
    node = np.repeat(nodes, weight.shape[1])
    found, share = weight.ravel(), np.empty((len(node), 0), dtype=np.int64)
    at = knots.reshape(len(node), -1)
    for each in categories:
        chance = each[sources[node], kind]  # [entries, codes]
        entry, code = np.nonzero(chance > LEAST)
        node, found, at = node[entry], found[entry] * chance[entry, code], at[entry]
        share = np.hstack([share[entry], code[:, None]])
    where = np.hstack([share, at])
    to = grid.find(where)
    lost = np.bincount(node, np.where(to >= 0, found, 0.0), len(nodes)) < 1e-9 * weight.sum(axis=1)
    strays = lost[node]
    if strays.any():
        to[strays] = grid.nearest(where[strays])
    kept = to >= 0
    node, to, found = node[kept], to[kept], found[kept]
    found = found / np.bincount(node, found, len(nodes))[node] * weight.sum(axis=1)[node]
    return sources[node], to, found


#: No expected state is taken as surer than the mean of this many draws.
MOST = 1e6


def soft_counts(
    grid: Grid,
    follows: Follows,
    led: GridTransitions,
    starts: Array,
    outcome: Ints,
    end: int | None,
) -> SoftCounts:
    """Return the counts behind the template of a grid.

    `grid`, `follows`, `led`: the nodes, what follows them, and the weights of their successors.
    `starts`: how many episodes began in each node [nodes]. `outcome`: the outcome of each branch,
    -1 where it is not offered [nodes, actions]. `end`: the interface node END, None if no episode
    ends.
    """
    others = () if end is None else (0.0,)  # END is an outcome too
    offered, size = outcome >= 0, int(outcome.max()) + 1
    steps, landing = np.zeros((2, size))
    np.add.at(steps, outcome[offered], follows.steps[offered])
    landing[outcome[offered]] = _as_sure_draws(grid, follows, led)[offered]
    going, ending = known_ranges(follows.rewards)
    return SoftCounts(
        (*starts.tolist(), *others), (*steps.tolist(), *others), (*landing.tolist(), *others),
        STRENGTH, going, ending, int(follows.next_numbers.shape[2] > 1),
    )  # fmt: skip


def _as_sure_draws(grid: Grid, follows: Follows, led: GridTransitions) -> Array:  # [nodes, actions]
    """Return how many draws from the weights of each S_L have a mean as sure as its own.

    From n steps, and a shared model that is worth κ, the expected next value has the variance
    σ² / (n + κ), σ² that of residuals. The mean of m draws has s² / m, s² the variance of the
    weights. So m is (n + κ) · s² / σ², of the number where it is least. Without noise, all that is
    not sure is how well an expected value describes a node.
    """
    size, actions, _, dimension = follows.next_numbers.shape
    found = np.full((size, actions), MOST)
    for j in range(dimension):
        at = grid.points[:, j]
        mean, square = (
            group_weights(led.site, led.weight * of[led.to], led.sites) for of in (at, at**2)
        )
        spread = np.maximum(square - mean**2, 0).reshape(size, actions)
        known = (follows.steps + STRENGTH) * spread
        noise = np.maximum(_variance(follows, j), 1e-300)
        found = np.where(known > 0, np.minimum(found, known / noise), found)
    return found


def _variance(follows: Follows, number: int) -> Array:  # [nodes, actions]
    """Return the variance of the next value of a number: within the kinds of moves, and between."""
    after = follows.next_numbers[..., number]
    within = np.array([[_mean_square(each[:, number]) for each in of] for of in follows.noise])
    mean = (follows.chance * after).sum(axis=2, keepdims=True)
    return np.asarray((follows.chance * (within + (after - mean) ** 2)).sum(axis=2))


def _mean_square(numbers: Array) -> float:
    known = numbers[~np.isnan(numbers)]
    return float(known @ known) / max(1, len(known))
