"""Tied distributions: what follows contexts, those of one leaf together."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rspmn.learn.structure.rows import weigh
from rspmn.learn.successors.contexts import Contexts
from rspmn.learn.successors.splits import LEAF, Entries, tells
from rspmn.learn.successors.trees import Trees, grow_trees
from rspmn.types import Array, Ints

#: A sparse matrix of scipy's, in rows.
Sparse = Any


@dataclass(frozen=True, eq=False)
class Tied:
    """The distribution of some components in every context."""

    trees: Trees
    counts: Sparse  # [nodes, values], how often each value was seen there
    totals: Array  # [nodes]

    @classmethod
    def learn(
        cls,
        contexts: Contexts,
        context: Ints,
        values: list[Ints],
        weights: Array,
        first: str | None = None,
        *,
        if_it_tells: bool = False,
    ) -> "Tied":
        """Grow a tree for each component.

        Parameters
        ----------
        contexts
            All that the components may depend on.
        context
            Which of them each step has. [steps]
        values
            Of each component, its value after each step. [steps] each
        weights
            How often each step occurred. [steps]
        first
            A variable that divides everything before any other does.
        if_it_tells
            Only where, given all else, it tells anything about a component.
        """
        from scipy.sparse import csr_array

        entries = Entries.count(context, values, weights)
        told = list(range(len(values))) if first is not None else []
        if first is not None and if_it_tells:
            told = tells(entries, contexts.key([n for n in contexts.names if n != first]))
        at = contexts.names.index(first) if first is not None else LEAF
        trees = grow_trees(contexts, entries, dict.fromkeys(told, at))
        node, value, weight = trees.cells
        shape = len(trees.parent), int(entries.value.max()) + 1
        counts = csr_array((weight, (node, value)), shape=shape)
        return cls(trees, counts, np.asarray(counts.sum(axis=1)))

    def distribution(self, contexts: Contexts, component: int = 0) -> Sparse:  # [contexts, values]
        """Return how a component is distributed in each context; rows sum to 1."""
        from scipy.sparse import csr_array

        node = self.trees.find(contexts, component)
        return csr_array(self.counts[node] / self.totals[node][:, None])

    def means(
        self, contexts: Contexts, context: Ints, numbers: Array, weights: Array
    ) -> Array:  # [nodes]
        """Return the mean of some numbers, one for each step, in every node of a single tree."""
        leaf = self.trees.find(contexts, 0)[context]
        size = len(self.trees.parent)
        total = np.stack([weigh(leaf, weights, size), weigh(leaf, weights * numbers, size)])
        for node in range(size - 1, 0, -1):  # children stand after their parents
            total[:, self.trees.parent[node]] += total[:, node]
        return np.asarray(total[1] / np.maximum(total[0], 1e-300))

    def num_leaves(self, components: int) -> tuple[int, ...]:
        """Return how many leaves each tree has."""
        leaves = self.trees.owners()[self.trees.variable == LEAF]
        return tuple(np.bincount(leaves, minlength=components).tolist())
