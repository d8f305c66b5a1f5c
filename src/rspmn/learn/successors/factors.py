"""Factors: the next state as a product of components, each with a distribution of its own.

P(x' | context) = Π over components c of P(x'_c | the leaf of c's tree that the context is in).
Contexts in one leaf share its parameters, whatever interface nodes they belong to.
"""

from dataclasses import dataclass

import numpy as np

from rspmn.learn.successors.boxes import Boxes
from rspmn.learn.successors.components import Component
from rspmn.learn.successors.contexts import Contexts
from rspmn.learn.successors.tied import Sparse, Tied
from rspmn.types import Array, Ints


@dataclass(frozen=True, eq=False)
class Factors:
    """The factors of the next state; component k has tree k."""

    contexts: Contexts  # that were seen
    components: list[Component]
    tied: Tied
    boxes: Boxes
    #: Of each component, how often its nodes were followed by each box's values.
    counts: list[Sparse]  # [nodes, boxes] each

    @classmethod
    def of(
        cls, contexts: Contexts, components: list[Component], tied: Tied, boxes: Boxes
    ) -> "Factors":
        """Count the boxes."""
        from scipy.sparse import csr_array

        owner = tied.trees.owners()
        node, value, weight = tied.trees.cells
        counts = []
        for k, (part, member) in enumerate(zip(components, boxes.members, strict=True)):
            own = owner[node] == k
            shape = (len(owner), part.size)
            cells = csr_array((weight[own], (node[own], value[own])), shape=shape)
            counts.append(csr_array(cells @ member))
        return cls(contexts, components, tied, boxes, counts)

    def leaves(self, contexts: Contexts) -> Ints:  # [components, contexts]
        """Return the leaf of each component's tree that each context is in."""
        trees = self.tied.trees
        return np.stack([trees.find(contexts, k) for k in range(len(self.components))])

    def masses(self, leaves: Ints) -> Array:  # [contexts, boxes]
        """Return the mass that the product of factors puts on each box.

        Rows sum to 1, or to less where some of it is on states of no box.
        """
        mass = np.ones((leaves.shape[1], self.boxes.count))
        for counts, leaf in zip(self.counts, leaves, strict=True):
            distinct, which = np.unique(leaf, return_inverse=True)
            mass *= (counts[distinct].toarray() / self.tied.totals[distinct][:, None])[which]
        return mass

    def mass_on(self, leaves: Ints, box: Ints, without: float = 0.0) -> Array:  # [contexts]
        """Return the mass on one box each, without so many of the steps that led there."""
        mass = np.ones(len(box))
        for counts, leaf in zip(self.counts, leaves, strict=True):
            seen = np.asarray(counts[leaf, box]).ravel()
            total = self.tied.totals[leaf]
            mass *= np.maximum(seen - without, 0) / np.maximum(total - without, 1)
        return mass
