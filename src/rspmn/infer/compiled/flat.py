"""A network as flat arrays: what all compiled queries start from."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from rspmn.circuit import Latent, Leaf, Max, Network, Product, Sum, Utility
from rspmn.types import Array, Ints

#: The number that stands for each kind of node.
KINDS: dict[type, int] = {Leaf: 0, Utility: 1, Latent: 2, Product: 3, Sum: 4, Max: 5}


@dataclass(frozen=True, eq=False)
class Flat:
    """Nodes and edges; the edges of a node stand together, in the order of its children."""

    kind: Ints  # [nodes], a number of KINDS
    starts: Ints  # [nodes + 1]; node i has the edges starts[i]:starts[i + 1]
    children: Ints  # [edges]
    weights: Array  # [edges]; 1 but for sums
    roots: Ints  # [roots]

    def of_kind(self, kind: type) -> Ints:
        """Return the nodes of a kind."""
        return np.flatnonzero(self.kind == KINDS[kind])

    def edges_of(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return the edges of some nodes, one after the other, and where those of each start."""
        counts = self.starts[nodes + 1] - self.starts[nodes]
        first = np.concatenate([[0], np.cumsum(counts)])
        edges = np.arange(first[-1]) + np.repeat(self.starts[nodes] - first[:-1], counts)
        return edges, first[:-1]

    def layers(self) -> Ints:  # [nodes]
        """Return the height of each node: 0 for those without children."""
        height = np.zeros(len(self.kind), dtype=np.int64)
        inner = np.flatnonzero(np.diff(self.starts) > 0)
        edges, first = self.edges_of(inner)
        below = self.children[edges]
        while len(inner):
            found = np.maximum.reduceat(height[below], first) + 1
            if np.array_equal(found, height[inner]):
                break
            height[inner] = found
        return height

    def linear(self) -> Any:  # scipy.sparse, [nodes, nodes]
        """Return the sums and products as a matrix: what a node adds up of its children."""
        from scipy.sparse import csr_array

        adds = (self.kind == KINDS[Product]) | (self.kind == KINDS[Sum])
        chosen = np.flatnonzero(adds)
        edges, _ = self.edges_of(chosen)
        counts = np.where(adds, np.diff(self.starts), 0)
        pointers = np.concatenate([[0], np.cumsum(counts)])
        shape = (len(self.kind), len(self.kind))
        return csr_array((self.weights[edges], self.children[edges], pointers), shape=shape)


def flatten(network: Network) -> Flat:
    """Return a network as flat arrays."""
    nodes = network.nodes
    kind = np.array([KINDS[type(node)] for node in nodes])
    below: list[Sequence[int]] = [node.children for node in nodes]
    counts = np.fromiter(map(len, below), np.int64, len(nodes))
    starts = np.concatenate([[0], np.cumsum(counts)])
    children = np.fromiter(chain.from_iterable(below), np.int64, int(starts[-1]))
    weights = np.ones(len(children))
    sums = np.flatnonzero(kind == KINDS[Sum])
    flat = Flat(kind, starts, children, weights, np.array(network.roots))
    given = chain.from_iterable(nodes[i].weights for i in sums.tolist())  # type: ignore[union-attr]
    edges, _ = flat.edges_of(sums)
    weights[edges] = np.fromiter(given, np.float64, len(edges))
    return flat
