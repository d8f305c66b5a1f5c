"""Weights of S_L by counts, as in the paper.

The share of each interface node among the successors that were logged (Sec. 4, Step 4: count on
the edge / visits to the sum). Edges without a count do not exist: they are pruned.
"""

import numpy as np

from rspmn.learn.structure.rows import weigh
from rspmn.learn.successors.transitions import Moves, Successors


def counts(moves: Moves) -> Successors:
    """Weigh each interface node by how often it followed."""
    size = moves.interfaces
    edges, which = np.unique(moves.site * size + moves.to, return_inverse=True)
    count = weigh(which, moves.counts, len(edges))
    of_site = edges // size
    visits = weigh(of_site, count, moves.sites)
    starts = np.searchsorted(of_site, np.arange(moves.sites + 1))
    return Successors(starts, edges % size, count / visits[of_site], count)
