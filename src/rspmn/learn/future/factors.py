"""Factors: the next state as a product of components, each with a distribution of its own.

P(x' | context) = Π over components c of P(x'_c | the leaf of c's tree that the context is in).
Contexts in one leaf share its parameters, whatever interface nodes they belong to.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rspmn.learn.future.boxes import Boxes
from rspmn.learn.future.components import Component
from rspmn.learn.future.contexts import Contexts
from rspmn.learn.future.tied import Sparse, Tied

__all__ = ["Factors"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Factors:
    """The factors of the next state; component k has tree k."""

    contexts: Contexts  # that were seen
    components: list[Component]
    tied: Tied
    boxes: Boxes
    #: Of each component, how often each node of the trees was followed by each box's values.
    counts: list[Sparse]  # [nodes, boxes] each

    @classmethod
    def of(
        cls, contexts: Contexts, components: list[Component], tied: Tied, boxes: Boxes
    ) -> "Factors":
        """Count the boxes."""
        from scipy.sparse import csr_array

        values = tied.counts.shape[1]
        counts = [
            csr_array(tied.counts[:, : part.size] @ member[:values])
            for part, member in zip(components, boxes.members, strict=True)
        ]
        return cls(contexts, components, tied, boxes, counts)

    def leaves(self, contexts: Contexts) -> Ints:  # [components, contexts]
        """Return the leaf of each component's tree that each context is in."""
        trees = self.tied.trees
        return np.stack([trees.find(contexts, k) for k in range(len(self.components))])

    def masses(self, leaves: Ints) -> Sparse:  # [contexts, boxes]
        """Return the mass that the product of factors puts on each box.

        Rows sum to 1, or to less where some of it is on states of no box.
        """
        from scipy.sparse import csr_array

        distinct, which = np.unique(leaves, axis=1, return_inverse=True)
        tables = [
            csr_array(counts[leaf] / self.tied.totals[leaf][:, None])
            for counts, leaf in zip(self.counts, distinct, strict=True)
        ]
        tables.sort(key=lambda table: table.nnz)  # zeros stay zero: begin where they are most
        mass = tables[0]
        for table in tables[1:]:
            mass = mass.multiply(table)
        return csr_array(mass)[which.ravel()]

    def without_one(self, leaves: Ints, box: Ints) -> Array:  # [contexts]
        """Return the mass on a box if one step from there to it had not been logged."""
        mass = np.ones(len(box))
        for counts, leaf in zip(self.counts, leaves, strict=True):
            seen = np.asarray(counts[leaf, box]).ravel()
            mass *= np.maximum(seen - 1, 0) / np.maximum(self.tied.totals[leaf] - 1, 1)
        return mass
