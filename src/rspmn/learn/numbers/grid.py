"""A grid of knots: interface nodes as soft boxes of numbers, crossed with categories.

The knots of an axis divide it into intervals. A node is a knot of each axis and a value of each
category. A state between two knots belongs to both, by its distance: in a cell of d axes it belongs
to the 2^d corners, by multilinear interpolation. So the worth of an action changes
continuously from node to node, and the mean of a displacement is kept exactly.

The density of states is constant within a cell. A node's density is then a sum over the cells
around it of products of ramps, which a circuit has; the posterior of the nodes given a state is the
interpolation. Given a part of a state it weighs the cells that agree by how often they were seen.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.data.distinct import find_sorted
from rspmn.data.keys import group_weights
from rspmn.learn.numbers.axes import Axis
from rspmn.memory import IN_PASSING, KEPT
from rspmn.types import Array, Bools, Ints

Indices = NDArray[np.int32]

#: The steps that all cells together are given beyond those that were logged in them.
UNSEEN = 1.0
#: Steps that lack values are completed in as many ways as memory allows, but at least in some.
LEAST_COMPLETIONS = 2


@dataclass(frozen=True, eq=False)
class Grid:
    """Cells, and the nodes at their corners: all cells of the categories that were seen.

    The columns of `cells` and `nodes` are those of the categories, then of the axes: a code of each
    category; of each axis the interval of a cell, or the knot of a node.
    """

    sizes: tuple[int, ...]  # of each category, the number of codes
    axes: tuple[Axis, ...]  # which have the numbers in their order
    cells: Ints  # [cells, variables]
    weights: Array  # [cells], the steps in each

    @property
    def numbers(self) -> int:
        """The number of numbers."""
        return sum(axis.numbers for axis in self.axes)

    @cached_property
    def categories(self) -> int:
        """The number of joint values of the categories that were seen."""
        return len(np.unique(self.cells[:, : len(self.sizes)], axis=0))

    @cached_property
    def corners(self) -> Ints:  # [2^d, variables]
        """What is added to the codes of a cell to give its corners."""
        steps = np.array(list(product((0, 1), repeat=len(self.axes))), dtype=np.int64)
        return np.hstack([np.zeros((len(steps), len(self.sizes)), dtype=np.int64), steps])

    @cached_property
    def _codes(self) -> Ints:  # [variables]
        """The number of codes of each variable."""
        return np.array([*self.sizes, *(axis.size for axis in self.axes)])

    @cached_property
    def _radix(self) -> Ints:  # [variables]
        return np.cumprod([1, *self._codes[:0:-1]])[::-1].astype(np.int64)

    def keys(self, codes: Ints) -> Ints:  # [..., variables] -> [...]
        """Return a number for the codes of a cell or node.

        After the last knot of a circle comes the first.
        """
        return np.asarray(codes % self._codes @ self._radix)

    def codes_of(self, keys: Ints) -> Ints:  # [n] -> [n, variables]
        """Return the codes that have some keys."""
        return np.asarray((keys[:, None] // self._radix) % self._codes)

    @cached_property
    def _nodes(self) -> tuple[Ints, Ints]:
        """The keys of all nodes, sorted, and the nodes at the corners of each cell."""
        keys = self.keys(self.cells[:, None, :] + self.corners)  # [cells, corners]
        distinct, which = np.unique(keys, return_inverse=True)
        return distinct, which.reshape(keys.shape)

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self._nodes[0])

    @property
    def nodes_of_cells(self) -> Ints:  # [cells, corners]
        """The nodes at the corners of each cell."""
        return self._nodes[1]

    @cached_property
    def nodes(self) -> Ints:  # [nodes, variables]
        """The category codes and knots of each node."""
        return self.codes_of(self._nodes[0])

    @cached_property
    def points(self) -> Array:  # [nodes, numbers]
        """The numbers of each node."""
        at = self.nodes[:, len(self.sizes) :]
        return np.hstack([axis.points[at[:, j]] for j, axis in enumerate(self.axes)])

    @cached_property
    def spacing(self) -> Array:  # [numbers]
        """The usual distance between knots."""
        return np.array([axis.spacing for axis in self.axes for _ in range(axis.numbers)])

    @cached_property
    def visits(self) -> Array:  # [nodes]
        """The steps in each node: a cell's are shared by its corners alike."""
        share = np.repeat(self.weights / len(self.corners), len(self.corners))
        return group_weights(self.nodes_of_cells.ravel(), share, self.size)

    # ---- states ----------------------------------------------------------------------

    def place(self, numbers: Array) -> tuple[Ints, Array]:  # [n, numbers] to [n, axes], [n, axes]
        """Return the interval of each axis, and how far a state lies in it, from 0 to 1.

        States beyond the last knot are at it. Where an axis lacks a number the interval is -1.
        """
        first = np.cumsum([0, *(axis.numbers for axis in self.axes)]).tolist()
        parts = [numbers[:, low:high] for low, high in pairwise(first)]
        placed = [axis.place(part) for axis, part in zip(self.axes, parts, strict=True)]
        interval, share = (np.stack(column, axis=1) for column in zip(*placed, strict=True))
        return interval, share

    def corner_weights(self, share: Array) -> Array:  # [n, axes] -> [n, corners]
        """Return the interpolation weights of the corners."""
        up = self.corners[:, len(self.sizes) :].astype(bool)  # [corners, axes]
        found = np.ones((len(share), len(up)))
        for j in range(share.shape[1]):
            found *= np.where(up[:, j], share[:, j : j + 1], 1 - share[:, j : j + 1])
        return found

    def locate(self, codes: Ints, numbers: Array) -> "Membership":
        """Return the membership of states, some of which may lack values.

        `codes` are categories [n, categories], -1 where missing; `numbers` [n, numbers].
        """
        interval, share = self.place(numbers)
        parts = _completed(self, np.hstack([codes, interval]), share, (self.cells, self.weights))
        row, node, weight = zip(*(self._located(*part) for part in parts), strict=True)
        return Membership(
            np.concatenate(row), np.concatenate(node), np.concatenate(weight), len(numbers),
            self.size,
        )  # fmt: skip

    def _located(
        self, row: Ints, codes: Ints, share: Array, weight: Array
    ) -> tuple[Indices, Indices, Array]:
        """Return rows, nodes and weights of states that lack nothing, by their weights."""
        corner = self.corner_weights(share) * weight[:, None]
        node = self.find(codes[:, None, :] + self.corners)
        corner = np.where(node >= 0, corner, 0.0)
        lost = corner.sum(axis=1) <= 0
        if lost.any():
            node[lost, 0], corner[lost, 0] = self.nearest(codes[lost]), weight[lost]
        corner *= (weight / corner.sum(axis=1))[:, None]
        kept = corner > 0
        rows = np.repeat(row, kept.sum(axis=1))
        return rows.astype(np.int32), node[kept].astype(np.int32), corner[kept]

    def find(self, codes: Ints) -> Ints:
        """Return the nodes with some codes [..., variables], -1 where there is none."""
        return find_sorted(self._nodes[0], self.keys(codes))

    def nearest(self, codes: Ints) -> Ints:
        """Return the node nearest to some codes [n, variables]; categories come first."""
        tree, far = self._tree
        return np.asarray(tree.query(codes * far)[1], dtype=np.int64)

    @cached_property
    def _tree(self) -> tuple[Any, Array]:
        """All nodes as a tree of points, and the distances between codes of each variable."""
        from scipy.spatial import cKDTree

        far = np.ones(len(self._radix))
        far[: len(self.sizes)] = 1e3
        return cKDTree(self.nodes * far), far


class Membership:
    """How far each step belongs to each node; the weights of a step sum to 1."""

    def __init__(self, row: Ints, node: Ints, weight: Array, rows: int, nodes: int) -> None:
        from scipy.sparse import csr_array

        self.matrix = csr_array((weight, (node, row)), shape=(nodes, rows))

    def sums(self, values: Array, counts: Array) -> Array:
        """Return the sums over the steps of each node: [n] gives [nodes], [n, k] [nodes, k]."""
        weighted = values * (counts if values.ndim == 1 else counts[:, None])
        return np.asarray(self.matrix @ weighted)

    def likeliest(self) -> Ints:  # [n]
        """Return the node that each step belongs to most."""
        of_steps = self.matrix.tocsc()  # every step belongs to some node
        most = np.maximum.reduceat(of_steps.data, of_steps.indptr[:-1])
        step = np.repeat(np.arange(len(most)), np.diff(of_steps.indptr))
        largest = of_steps.data == most[step]
        found = np.zeros(len(most), dtype=np.int64)
        found[step[largest]] = of_steps.indices[largest]
        return found

    def at_rows(self, of_nodes: Array) -> Array:
        """Return values of nodes interpolated at the steps: [nodes, ...] gives [n, ...]."""
        return np.asarray(self.matrix.T @ of_nodes)


def fit_grid(
    codes: Ints, sizes: tuple[int, ...], numbers: Array, axes: tuple[Axis, ...], counts: Array
) -> tuple[Grid, Membership, Array]:
    """Return the grid of some steps, their membership, and their numbers with gaps filled.

    `codes`: categories, -1 where missing [n, categories]. `sizes`: how many codes each category
    has. `numbers`: NaN where missing [n, numbers]. `axes`: of the numbers, in their order.
    `counts`: how often each step occurred [n].

    A step that lacks values is shared among the cells that agree with the rest of it, by how often
    they were seen.
    """
    empty = Grid(sizes, axes, np.zeros((0, len(sizes) + len(axes)), np.int64), np.zeros(0))
    interval, share = empty.place(numbers)
    placed = np.hstack([codes, interval])
    whole = ~(placed < 0).any(axis=1)
    known, times = (placed[whole], counts[whole]) if whole.any() else (_guessed(placed), counts)
    seen = _counted(empty, [(known, times)])
    parts = _completed(empty, placed, share, seen)
    filled_in = _counted(empty, ((part, weight * counts[row]) for row, part, _, weight in parts))
    grid = Grid(sizes, axes, *_all_cells(empty, *filled_in))
    membership = grid.locate(codes, numbers)
    filled = membership.at_rows(grid.points)
    return grid, membership, np.where(np.isnan(numbers), filled, numbers)


def _all_cells(grid: Grid, seen: Ints, weights: Array) -> tuple[Ints, Array]:
    """Return all cells of the categories that were seen, and their weights.

    What was never seen is worth UNSEEN steps in all, in equal parts.
    """
    categories = np.unique(seen[:, : len(grid.sizes)], axis=0)
    counts = [axis.intervals for axis in grid.axes]
    inside = np.stack([part.ravel() for part in np.indices(counts)], axis=1)
    cells = np.hstack([
        np.repeat(categories, len(inside), axis=0), np.tile(inside, (len(categories), 1))
    ])  # fmt: skip
    keys = grid.keys(cells)
    order = np.argsort(keys)
    cells, keys = cells[order], keys[order]
    found = np.full(len(cells), UNSEEN / len(cells))
    found[np.searchsorted(keys, grid.keys(seen))] += weights
    return cells, found


def _counted(grid: Grid, parts: Iterable[tuple[Ints, Array]]) -> tuple[Ints, Array]:
    """Return the distinct cells among some, given in parts, and their weights."""
    keys, weights = np.zeros(0, dtype=np.int64), np.zeros(0)
    for cells, more in parts:
        keys, which = np.unique(np.append(keys, grid.keys(cells)), return_inverse=True)
        weights = group_weights(which, np.append(weights, more), len(keys))
    return grid.codes_of(keys), weights


def _completed(
    grid: Grid, placed: Ints, share: Array, seen: tuple[Ints, Array]
) -> Iterator[tuple[Ints, Ints, Array, Array]]:
    """Return rows, complete codes, shares and weights, in parts; several for a row with gaps."""
    lacking = placed < 0
    patterns, which = np.unique(lacking, axis=0, return_inverse=True)
    each = max(LEAST_COMPLETIONS, KEPT // (len(placed) * len(grid.corners)))
    for number, pattern in enumerate(patterns):
        mine = np.flatnonzero(which.ravel() == number)
        gaps = np.flatnonzero(pattern[len(grid.sizes) :])
        most = each << len(gaps) if pattern.any() else 1
        agreeing = _Agreeing.of(grid, placed[mine], seen, pattern) if pattern.any() else None
        size = max(1, IN_PASSING // (most * grid.corners.size))
        for first in range(0, len(mine), size):
            rows = mine[first : first + size]
            if agreeing is None:
                yield rows, placed[rows], share[rows], np.ones(len(rows))
            else:
                row, cells, halves, weight = agreeing.completions(first, len(rows), each, len(gaps))
                codes, shares = placed[rows[row]], share[rows[row]]
                taken = agreeing.taken[first + row]
                shares[:, gaps] = halves
                yield rows[row], np.where(taken, cells, codes), shares, weight


@dataclass(frozen=True, eq=False)
class _Agreeing:
    """The cells that agree with each of some rows on what is known of it.

    A row that no cell agrees with is shared among all.
    """

    cells: Ints  # [cells, variables], those that agree with a row are next to each other
    weights: Array  # [cells]
    low: Ints  # [rows], the first cell that agrees
    high: Ints  # [rows], the one after the last
    total: Array  # [rows], the weight of these
    taken: Bools  # [rows, variables], which values are those of the cells

    @classmethod
    def of(cls, grid: Grid, placed: Ints, seen: tuple[Ints, Array], pattern: Bools) -> "_Agreeing":
        """Find the cells; `pattern` says which variables all rows lack."""
        cells, weights = seen
        key = grid.keys(np.where(pattern, 0, cells))
        order = np.argsort(key, kind="stable")
        groups, starts = np.unique(key[order], return_index=True)
        sums = np.append(np.add.reduceat(weights[order], starts), weights.sum())
        group = find_sorted(groups, grid.keys(np.where(pattern, 0, placed)))  # -1: none agrees
        low, high = np.append(starts, 0)[group], np.append(starts[1:], [len(cells)] * 2)[group]
        taken = np.tile(pattern, (len(placed), 1))
        if pattern[: len(grid.sizes)].any():  # joint categories are those that were seen
            taken[group < 0, : len(grid.sizes)] = True
        return cls(cells[order], weights[order], low, high, sums[group], taken)

    def completions(
        self, first: int, number: int, most: int, gaps: int
    ) -> tuple[Ints, Ints, Array, Array]:
        """Return rows, from 0, cells, shares of the gaps and weights, for some of the rows.

        Of more than `most` cells, the states at quantiles of their weights stand for all. They are
        knots, lower or upper ones by their place in the cell, and belong to fewer nodes than other
        states: so there are twice as many of them for each gap.
        """
        low, high = (each[first : first + number] for each in (self.low, self.high))
        few = high - low <= most
        counts = np.where(few, high - low, most << gaps)
        row = np.repeat(np.arange(number), counts)
        place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        below = np.append(0.0, np.cumsum(self.weights))
        from_, to = below[low], below[high]
        goal = from_[row] + (place + 0.5) / counts[row] * (to - from_)[row]
        quantile = np.searchsorted(below, goal, side="right") - 1
        at = np.where(few[row], low[row] + place, np.clip(quantile, low[row], high[row] - 1))
        inside = np.clip((goal - below[at]) / self.weights[at], 0, 1 - 1e-9) * 2**gaps
        up = inside.astype(np.int64)[:, None] >> np.arange(gaps) & 1
        halves = np.where(few[row, None], 0.5, up)
        weight = np.where(few[row], self.weights[at] / self.total[first + row], 1 / counts[row])
        return row, self.cells[at], halves, weight


def _guessed(placed: Ints) -> Ints:
    """Return codes with gaps filled by the most frequent code, for logs without a complete step."""
    usual = [np.bincount(column[column >= 0], minlength=1).argmax() for column in placed.T]
    return np.where(placed < 0, usual, placed)
