"""A grid of knots: interface nodes as soft boxes of numbers, crossed with categories.

The knots of an axis divide it into intervals. A node is a knot of each axis and a value of each
category. A state between two knots belongs to both, by its distance: in a cell of d axes it belongs
to the 2^d corners, by multilinear interpolation. So the worth of an action changes
continuously from node to node, and the mean of a displacement is kept exactly.

The density of states is constant within a cell. A node's density is then a sum over the cells
around it of products of ramps, which a circuit has; the posterior of the nodes given a state is the
interpolation. Given a part of a state it weighs the cells that agree by how often they were seen.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product

import numpy as np

from rspmn.data.distinct import find_sorted
from rspmn.data.keys import group_weights
from rspmn.learn.numbers.axes import Axis
from rspmn.types import Array, Ints

#: The steps that all cells together are given beyond those that were logged in them.
UNSEEN = 1.0


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
        return np.asarray((self._nodes[0][:, None] // self._radix) % self._codes)

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
        """Return the interpolation weights of the corners; what is unknown is halfway."""
        share = np.where(np.isnan(share), 0.5, share)
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
        placed = np.hstack([codes, interval])
        row, complete, weight = _completed(placed, self.cells, self.weights)
        corner = self.corner_weights(share[row]) * weight[:, None]
        node = self.find(complete[:, None, :] + self.corners)
        corner = np.where(node >= 0, corner, 0.0)
        lost = corner.sum(axis=1) <= 0
        if lost.any():
            node[lost, 0], corner[lost, 0] = self.nearest(complete[lost]), weight[lost]
        corner *= (weight / corner.sum(axis=1))[:, None]
        kept = corner > 0
        rows = np.repeat(row, kept.sum(axis=1))
        return Membership(rows, node[kept], corner[kept], len(numbers), self.size)

    def find(self, codes: Ints) -> Ints:
        """Return the nodes with some codes [..., variables], -1 where there is none."""
        return find_sorted(self._nodes[0], self.keys(codes))

    def nearest(self, codes: Ints) -> Ints:
        """Return the node nearest to some codes [n, variables]; categories come first."""
        from scipy.spatial import cKDTree

        far = np.ones(len(self._radix))
        far[: len(self.sizes)] = 1e3
        return np.asarray(cKDTree(self.nodes * far).query(codes * far)[1], dtype=np.int64)


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
    placed = np.hstack([codes, empty.place(numbers)[0]])
    whole = ~(placed < 0).any(axis=1)
    known, times = (placed[whole], counts[whole]) if whole.any() else (_guessed(placed), counts)
    first, cell, size = _distinct(empty.keys(known))
    seen = known[first], group_weights(cell, times, size)
    row, filled_in, weight = _completed(placed, *seen)
    first, cell, size = _distinct(empty.keys(filled_in))
    weights = group_weights(cell, weight * counts[row], size)
    grid = Grid(sizes, axes, *_all_cells(empty, filled_in[first], weights))
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


def _distinct(keys: Ints) -> tuple[Ints, Ints, int]:
    """Return a row of each distinct key, the number of each row's key, and how many there are."""
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return first, which, len(first)


def _completed(placed: Ints, cells: Ints, seen: Array) -> tuple[Ints, Ints, Array]:
    """Return rows, complete codes and weights: several for a row that lacks values."""
    lacking = placed < 0
    patterns, which = np.unique(lacking, axis=0, return_inverse=True)
    rows, codes, weights = [], [], []
    for number, pattern in enumerate(patterns):
        mine = np.flatnonzero(which.ravel() == number)
        if pattern.any():
            row, at, weight = _matches(placed[mine], cells, seen, ~pattern)
        else:
            row, at, weight = np.arange(len(mine)), np.zeros(len(mine), int), np.ones(len(mine))
        rows.append(mine[row])
        codes.append(np.where(pattern, cells[at], placed[mine[row]]))
        weights.append(weight)
    return np.concatenate(rows), np.concatenate(codes), np.concatenate(weights)


def _guessed(placed: Ints) -> Ints:
    """Return codes with gaps filled by the most frequent code, for logs without a complete step."""
    usual = [np.bincount(column[column >= 0], minlength=1).argmax() for column in placed.T]
    return np.where(placed < 0, usual, placed)


def _matches(placed: Ints, cells: Ints, seen: Array, known: Ints) -> tuple[Ints, Ints, Array]:
    """Return the cells that agree with each row on the known variables, with their shares.

    A row that no cell agrees with is shared among all.
    """
    groups, of_cell = np.unique(cells[:, known], axis=0, return_inverse=True)
    together = np.vstack([groups, placed[:, known]])
    _, code = np.unique(together, axis=0, return_inverse=True)
    code = code.ravel()
    place = np.full(code.max() + 1, -1)
    place[code[: len(groups)]] = np.arange(len(groups))
    group = place[code[len(groups) :]]  # [rows], -1 if no cell agrees
    order = np.argsort(of_cell.ravel(), kind="stable")
    starts = np.searchsorted(of_cell.ravel()[order], np.arange(len(groups) + 1))
    low = np.where(group >= 0, starts[group], 0)
    high = np.where(group >= 0, starts[group + 1], len(cells))
    sizes = high - low
    row = np.repeat(np.arange(len(placed)), sizes)
    at = order[np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes - low, sizes)]
    total = group_weights(row, seen[at], len(placed))
    return row, at, seen[at] / total[row]
