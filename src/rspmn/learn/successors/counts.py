"""Weights of S_L by counts, as in the paper.

The share of each interface node among the successors that were logged (Sec. 4, Step 4: count on
the edge / visits to the sum). Edges without a count do not exist: they are pruned.
"""

from dataclasses import dataclass

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.learn.successors.transitions import SuccessorWeights, Transitions


@dataclass(frozen=True)
class Counts:
    """Weighs each interface node by how often it followed."""

    def __call__(self, transitions: Transitions) -> tuple[SuccessorWeights, None]:
        """Return the shares of the successors that were counted."""
        return count_successors(transitions), None


def count_successors(transitions: Transitions) -> SuccessorWeights:
    """Return the share of each interface node among the successors of each S_L."""
    size = transitions.interfaces
    edges, which = np.unique(transitions.site * size + transitions.to, return_inverse=True)
    count = group_weights(which, transitions.counts, len(edges))
    of_site = edges // size
    visits = group_weights(of_site, count, transitions.sites)
    starts = np.searchsorted(of_site, np.arange(transitions.sites + 1))
    return SuccessorWeights(starts, edges % size, count / visits[of_site], count)
