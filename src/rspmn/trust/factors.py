"""Draws of the factors that outcomes share: outcomes that use one leaf err together.

Each leaf is a Dirichlet draw by its counts. A combination of leaves gives each box the product of
the mass of its values, over that of all boxes.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rspmn.data.distinct import find_sorted
from rspmn.infer.compiled.layers import ranges
from rspmn.successor_counts import SharedFactors
from rspmn.trust.dirichlet import draw_dirichlet, normalised
from rspmn.types import Array, Bools, Ints

#: At most this many products of a combination and a box are looked at per chunk.
CHUNK = 4_000_000
#: Mass on no box below this is rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class DrawnFactors:
    """What the factors say in several draws."""

    expected: Array  # [draws or 1, edges], the share that they give each edge
    outside: Array  # [draws, outcomes], the mass on no box
    #: What follows an outcome by its products of factors is worth so much on average: from
    #: [draws, interfaces] to [draws, outcomes]. None if products are multiplied out.
    products: Callable[[Array], Array] | None = None


class LeafCounts:
    """The leaves of shared factors, by their counts, and how outcomes use them."""

    def __init__(self, factors: SharedFactors, outcomes: int) -> None:
        order = np.lexsort((factors.value, factors.leaf))
        self.leaf, self.value = np.array(factors.leaf)[order], np.array(factors.value)[order]
        self.steps = np.array(factors.steps)[order]  # [cells]
        self.parameter = np.array(factors.parameter or range(len(order)), np.int64)[order]
        self.first = np.flatnonzero(np.diff(self.leaf, prepend=-1))  # [leaves]
        self.leaves = np.array(factors.leaves).reshape(-1, factors.components)
        self.factors, self.outcomes = factors, outcomes

    @property
    def mean(self) -> Array:  # [cells]
        """The mean probability of each cell in its leaf."""
        return np.asarray(self.steps / np.add.reduceat(self.steps, self.first)[self.leaf])

    def draw(self, draws: int, rng: np.random.Generator) -> Array:  # [draws, cells]
        """Return probabilities of cells, each leaf drawn from the Dirichlet of its counts.

        Leaves that have the same steps behind them err together.
        """
        _, first, which = np.unique(self.parameter, return_index=True, return_inverse=True)
        if len(first) == len(which):
            return draw_dirichlet(self.steps, self.first, draws, rng)
        sizes = rng.standard_gamma(np.broadcast_to(self.steps[first], (draws, len(first))))
        return normalised(np.maximum(sizes, 1e-300)[:, which], self.first)

    @cached_property
    def mixture(self) -> Any:  # sparse [outcomes, combinations]
        """The shares of combinations in each outcome."""
        from scipy.sparse import csr_array

        factors, shape = self.factors, (self.outcomes, len(self.leaves))
        uses = np.array(factors.share), (factors.outcome, factors.combination)
        return csr_array(uses, shape=shape)

    @cached_property
    def used(self) -> Bools:  # [outcomes]
        """Which outcomes use factors."""
        return np.asarray(self.mixture.sum(axis=1)).ravel() > 0

    def outside(self, kept: Array) -> Array:  # [draws, outcomes]
        """Return the mass of outcomes on no box, given that of combinations on boxes.

        `kept` is [combinations, draws].
        """
        found = np.where(self.used[:, None], 1 - self.mixture @ kept, 0.0)
        return np.where(found > ROUNDING, found, 0.0).T

    def pooled(self) -> Array:  # [outcomes]
        """Return the steps behind the leaves of each outcome; 0 if it uses none.

        In a combination, those behind its least known leaf. A leaf with n steps leads to something
        new about once in n + 1 steps, and so does an outcome, on average over its combinations.
        """
        totals = np.add.reduceat(self.steps, self.first)  # [leaves]
        sizes = np.diff(np.append(self.first, len(self.value)))
        behind = np.full(len(self.leaves), np.inf)
        for leaf in self.leaves.T:
            cells, _ = ranges(self.first[np.unique(leaf)], (self.first + sizes)[np.unique(leaf)])
            if len(np.unique(self.value[cells])) > 1:
                behind = np.minimum(behind, totals[leaf])
        new = self.mixture @ (1 / (1 + behind))
        return np.where(self.used, 1 / np.maximum(new, 1e-300) - 1, 0.0)


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
        self.counts = LeafCounts(factors, outcomes)
        self.leaves = self.counts.leaves
        self.boxes = max(factors.member_of, default=-1) + 1
        within = _within(self.counts, self.boxes)  # [leaves · boxes, cells]
        self._find_pairs(within)
        self._use(factors, edges, interfaces)

    @property
    def floats(self) -> int:
        """About how many floats a draw takes."""
        return 3 * len(self.combination)

    def _find_pairs(self, within: Any) -> None:
        """Find which combinations give which boxes a mass, and the mass as a product."""
        mean = np.asarray(within @ self.counts.mean)
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

    def _use(self, factors: SharedFactors, edges: Ints, interfaces: int) -> None:
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
        edge = find_sorted(edges, key)
        kept = edge >= 0  # the lightest edges are not in the model
        share = share * np.array(factors.box_share)[place]
        shape = len(edges), len(self.combination)
        self.to_edges = csr_array((share[kept], (edge[kept], pair[kept])), shape=shape)

    def draw(self, draws: int, rng: np.random.Generator) -> DrawnFactors:
        """Return what is expected of each edge, and the mass on no box."""
        cells = self.counts.draw(draws, rng).T
        mass = np.ones((len(self.combination), cells.shape[1]))
        for within, which in self.parts:
            mass *= (within @ cells)[which]
        total = np.add.reduceat(mass, self.starts, axis=0)  # [combinations with a box, draws]
        mass /= np.repeat(np.maximum(total, 1e-300), self.sizes, axis=0)
        kept = np.zeros((len(self.leaves), cells.shape[1]))
        kept[self.combination[self.starts]] = np.minimum(total, 1.0)
        return DrawnFactors(np.asarray(self.to_edges @ mass).T, self.counts.outside(kept))


def _within(counts: LeafCounts, boxes: int) -> Any:
    """Return which cells of a leaf are in a box, sparse [leaves · boxes, cells]."""
    from scipy.sparse import csr_array

    factors, leaf, value = counts.factors, counts.leaf, counts.value
    order = np.argsort(factors.member, kind="stable")
    member, box = np.array(factors.member)[order], np.array(factors.member_of)[order]
    place, first = ranges(*np.searchsorted(member, [value, value + 1]))
    cell = np.repeat(np.arange(len(value)), np.diff(first))
    row = leaf[cell] * boxes + box[place]
    shape = (int(leaf.max(initial=-1)) + 1) * boxes, len(leaf)
    return csr_array((np.ones(len(cell)), (row, cell)), shape=shape)
