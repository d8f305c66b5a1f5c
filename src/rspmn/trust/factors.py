"""Draws of the factors that outcomes share: outcomes that use one leaf err together.

Each leaf is a Dirichlet draw by its counts. A combination of leaves gives each box the product of
the mass of its values, over that of all boxes.
"""

from copy import copy
from typing import Any

import numpy as np

from rspmn.infer.compiled.layers import ranges
from rspmn.successor_counts import SharedFactors
from rspmn.trust.dirichlet import draw_dirichlet
from rspmn.types import Array, Ints

#: At most this many products of a combination and a box are looked at per chunk.
CHUNK = 4_000_000
#: Mass on no box below this is rounding.
ROUNDING = 1e-12


class FactorDraws:
    """Draws what the factors say of some edges.

    Parameters
    ----------
    factors
        The factors, as the model keeps them.
    edges
        outcome · interface nodes + interface node, each once, sorted.
    interfaces
        The number of interface nodes.
    outcomes
        The number of outcomes.
    """

    def __init__(self, factors: SharedFactors, edges: Ints, interfaces: int, outcomes: int) -> None:
        order = np.lexsort((factors.value, factors.leaf))
        leaf, value = np.array(factors.leaf)[order], np.array(factors.value)[order]
        self.steps = np.array(factors.steps)[order]  # [cells]
        self.first = np.flatnonzero(np.diff(leaf, prepend=-1))  # [leaves]
        self.mean_cells = self.steps / np.add.reduceat(self.steps, self.first)[leaf]
        self.leaves = np.array(factors.leaves).reshape(-1, factors.components)
        self.boxes = max(factors.member_of, default=-1) + 1
        within = _within(factors, leaf, value, self.boxes)  # [leaves · boxes, cells]
        self._find_pairs(within)
        self._use(factors, edges, interfaces, outcomes)
        self.strength, self.least = factors.strength, factors.least_strength
        #: Steps behind the least known leaf of each outcome; 0 if it uses none. [outcomes]
        self.pooled = self._pooled(factors, value, outcomes)

    def _find_pairs(self, within: Any) -> None:
        """Find which combinations give which boxes a mass, and the mass as a product."""
        mean = np.asarray(within @ self.mean_cells)
        table = mean.reshape(-1, self.boxes)  # [leaves, boxes]
        found = []
        per_chunk = max(1, CHUNK // max(1, self.boxes))
        for start in range(0, len(self.leaves), per_chunk):
            mass = np.ones((min(per_chunk, len(self.leaves) - start), self.boxes))
            for leaf in self.leaves[start : start + per_chunk].T:
                mass *= table[leaf]
            combination, box = np.nonzero(mass)
            found.append((combination + start, box))
        self.combination, self.box = (np.concatenate(part) for part in zip(*found, strict=True))
        self.parts = []
        for leaf in self.leaves.T:
            cells, which = np.unique(
                leaf[self.combination] * self.boxes + self.box, return_inverse=True
            )
            if (mean[cells] < 1 - 1e-12).any():  # else the box has all values of each leaf
                self.parts.append((within[cells], which))
        self._group()

    def _group(self) -> None:
        self.starts = np.flatnonzero(np.diff(self.combination, prepend=-1))
        self.sizes = np.diff(np.append(self.starts, len(self.combination)))

    def only(self, edges: Ints) -> "FactorDraws":
        """Return the draws of some of the edges, given by their places.

        The mass on no box is that of outcomes which have one of these edges.
        """
        found = copy(self)
        rows = self.to_edges[edges]
        used = np.unique(self.combination[np.unique(rows.indices)])
        pairs = np.flatnonzero(np.isin(self.combination, used))
        found.combination, found.box = self.combination[pairs], self.box[pairs]
        found.parts = []
        for within, which in self.parts:
            cells, place = np.unique(which[pairs], return_inverse=True)
            found.parts.append((within[cells], place))
        found.to_edges = rows[:, pairs]
        found._group()
        return found

    def _use(self, factors: SharedFactors, edges: Ints, interfaces: int, outcomes: int) -> None:
        """Find which pairs of a combination and a box lead to which edges."""
        from scipy.sparse import csr_array

        combination = np.array(factors.combination, np.int64)
        bounds = np.searchsorted(self.combination, [combination, combination + 1])
        pair, first = ranges(*bounds)
        use = np.repeat(np.arange(len(combination)), np.diff(first))
        order = np.argsort(factors.box, kind="stable")
        box = np.array(factors.box)[order]
        place, first = ranges(*np.searchsorted(box, [self.box[pair], self.box[pair] + 1]))
        repeats = np.diff(first)
        pair, use, place = np.repeat(pair, repeats), np.repeat(use, repeats), order[place]
        outcome, share = np.array(factors.outcome)[use], np.array(factors.share)[use]
        key = outcome * interfaces + np.array(factors.interface)[place]
        edge = np.searchsorted(edges, key)
        kept = np.append(edges, -1)[edge] == key  # the lightest edges are not in the model
        share = share * np.array(factors.box_share)[place]
        shape = len(edges), len(self.combination)
        self.to_edges = csr_array((share[kept], (edge[kept], pair[kept])), shape=shape)
        combinations = np.array(factors.share), (factors.outcome, factors.combination)
        self.mixture = csr_array(combinations, shape=(outcomes, len(self.leaves)))
        self.used = np.asarray(self.mixture.sum(axis=1)).ravel() > 0  # [outcomes]

    def draw(self, draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return what is expected of each edge, and the mass on no box, [draws, ...] each.

        The first is [draws, edges], the second [draws, outcomes].
        """
        return self._expected(draw_dirichlet(self.steps, self.first, draws, rng))

    def _expected(self, probability: Array) -> tuple[Array, Array]:
        cells = probability.T
        mass = np.ones((len(self.combination), cells.shape[1]))
        for within, which in self.parts:
            mass *= (within @ cells)[which]
        total = np.add.reduceat(mass, self.starts, axis=0)  # [combinations with a box, draws]
        mass /= np.repeat(np.maximum(total, 1e-300), self.sizes, axis=0)
        kept = np.zeros((len(self.leaves), cells.shape[1]))
        kept[self.combination[self.starts]] = np.minimum(total, 1.0)
        outside = np.where(self.used[:, None], 1 - self.mixture @ kept, 0.0)
        outside = np.where(outside > ROUNDING, outside, 0.0)
        return np.asarray(self.to_edges @ mass).T, outside.T

    def _pooled(self, factors: SharedFactors, value: Ints, outcomes: int) -> Array:  # [outcomes]
        totals = np.add.reduceat(self.steps, self.first)  # [leaves]
        sizes = np.diff(np.append(self.first, len(value)))
        behind = np.full(len(self.leaves), np.inf)
        for leaf in self.leaves.T:
            cells, _ = ranges(self.first[np.unique(leaf)], (self.first + sizes)[np.unique(leaf)])
            if len(np.unique(value[cells])) > 1:
                behind = np.minimum(behind, totals[leaf])
        outcome, found = np.array(factors.outcome, np.int64), np.full(outcomes, np.inf)
        np.minimum.at(found, outcome, behind[list(factors.combination)])
        return np.where(np.bincount(outcome, minlength=outcomes) > 0, found, 0.0)


def _within(factors: SharedFactors, leaf: Ints, value: Ints, boxes: int) -> Any:
    """Return which cells of a leaf are in a box, sparse [leaves · boxes, cells]."""
    from scipy.sparse import csr_array

    order = np.argsort(factors.member, kind="stable")
    member, box = np.array(factors.member)[order], np.array(factors.member_of)[order]
    place, first = ranges(*np.searchsorted(member, [value, value + 1]))
    cell = np.repeat(np.arange(len(value)), np.diff(first))
    row = leaf[cell] * boxes + box[place]
    shape = (int(leaf.max(initial=-1)) + 1) * boxes, len(leaf)
    return csr_array((np.ones(len(cell)), (row, cell)), shape=shape)
