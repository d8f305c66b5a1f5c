"""Step 4, second half: what follows each branch, from windows to weights.

The weights of every S_L are one replaceable function of the windows and their routes. `counts` is
the paper's: the share of each interface node among the successors that were logged (Sec. 4, Step
4: count on the edge / visits to the sum). Edges without a count do not exist: they are pruned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rspmn.learn.rows import weigh

__all__ = ["FutureWeights", "Successors", "counts"]

Ints = NDArray[np.int64]
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Successors:
    """The weights of all S_L, those of one after the other."""

    starts: Ints  # [num_sites + 1]; site k has the edges starts[k]:starts[k + 1]
    interfaces: Ints  # [num_edges]
    weights: Array  # [num_edges], sum to 1 for each site
    counts: Array  # [num_edges], the logged steps behind each


class FutureWeights(Protocol):
    """Estimates the weights of every S_L."""

    def __call__(
        self, sites: Sequence[Ints], of_successors: Ints, window_counts: Array, interfaces: int
    ) -> Successors:
        """Return the weights, given the windows behind each site and where each leads."""
        ...


def counts(
    sites: Sequence[Ints], of_successors: Ints, window_counts: Array, interfaces: int
) -> Successors:
    """Weigh each interface node by how often it followed.

    >>> sites = [np.array([0, 1]), np.array([2])]     # windows behind each S_L
    >>> leads = np.array([3, 4, 4])                   # to interface nodes
    >>> found = counts(sites, leads, np.array([3.0, 1.0, 5.0]), 5)
    >>> found.starts, found.interfaces, found.weights
    (array([0, 2, 3]), array([3, 4, 4]), array([0.75, 0.25, 1.  ]))
    """
    lengths = np.array([len(site) for site in sites])
    site = np.repeat(np.arange(len(sites)), lengths)
    window = np.concatenate(sites)
    edges, which = np.unique(site * interfaces + of_successors[window], return_inverse=True)
    count = weigh(which, window_counts[window], len(edges))
    of_site = edges // interfaces
    visits = weigh(of_site, count, len(sites))
    starts = np.searchsorted(of_site, np.arange(len(sites) + 1))
    return Successors(starts, edges % interfaces, count / visits[of_site], count)
