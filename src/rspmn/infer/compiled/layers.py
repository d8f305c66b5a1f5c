"""A network as layers of arrays: the likelihood of many rows in one pass.

The numbers are those of `rspmn.infer.likelihood`, which evaluates one row node by node.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from rspmn.circuit import Max, Network, Product, Sum
from rspmn.circuit.node_arrays import KINDS as KINDS
from rspmn.circuit.node_arrays import NodeArrays
from rspmn.infer.compiled.leaf_tables import Distinct, LeafTable, leaf_tables
from rspmn.infer.compiled.relations import ranges as ranges
from rspmn.types import Array, Ints
from rspmn.values import Value

#: At most this many floats are evaluated per chunk of rows.
CHUNK = 4_000_000
#: Sums of the same children are a matrix product if they have at least this many edges.
DENSE = 64
#: Smaller shares of the highest child are summed again with a scale of their own.
TINY = 1e-200


def log_sums(logs: Array, starts: Ints) -> Array:
    """Return the logarithm of the sum of exponentials of each group along the first axis.

    >>> np.exp(log_sums(np.log([1.0, 2.0, 4.0]), np.array([0, 2])))
    array([3., 4.])
    """
    highest = np.maximum.reduceat(logs, starts, axis=0)
    safe = np.where(np.isneginf(highest), 0.0, highest)
    counts = np.diff(np.append(starts, len(logs)))
    shares = np.exp(logs - np.repeat(safe, counts, axis=0))
    with np.errstate(divide="ignore"):
        return np.asarray(safe + np.log(np.add.reduceat(shares, starts, axis=0)))


def mixtures(logs: Array, weights: Array) -> Array:  # [children, rows] to [sums, rows]
    """Return the logarithms of several weighted sums of the same children, by one matrix product.

    >>> np.exp(mixtures(np.log([[0.1], [0.5]]), np.array([[0.5, 0.5], [1.0, 0.0]]))).round(12)
    array([[0.3],
           [0.1]])
    """
    highest = logs.max(axis=0)
    safe = np.where(np.isneginf(highest), 0.0, highest)
    shares = weights @ np.exp(logs - safe)
    with np.errstate(divide="ignore"):
        found = np.asarray(safe + np.log(shares))
        # where all children that have a weight are far below the highest, they underflow
        sums, rows = np.nonzero((shares < TINY) & ~np.isneginf(highest))
        if len(sums):
            terms = np.log(weights[sums]).T + logs[:, rows]  # [children, entries]
            found[sums, rows] = log_sums(terms, np.zeros(1, dtype=np.int64))[0]
    return found


#: What the nodes of each kind make of the log-likelihoods below them, [edges, …] to [nodes, …].
COMBINE: dict[int, Callable[[Array, Ints], Array]] = {
    KINDS[Product]: partial(np.add.reduceat, axis=0),
    KINDS[Max]: partial(np.maximum.reduceat, axis=0),
    KINDS[Sum]: log_sums,
}


@dataclass(frozen=True, eq=False)
class Layer:
    """The nodes of one height and kind."""

    kind: int  # a code of KINDS
    nodes: Ints  # [nodes]
    children: Ints  # [edges], sorted by parent
    starts: Ints  # [nodes], the first edge of each
    log_weights: Array  # [edges]


@dataclass(frozen=True, eq=False)
class LikelihoodLayer(Layer):
    """Nodes with the decisions of those that are max nodes."""

    branches: dict[str, tuple[Ints, Ints]]  # by decision: edges, codes of their values


@dataclass(frozen=True, eq=False)
class DenseSums:
    """Sums of one height that have the same children."""

    nodes: Ints  # [sums]
    children: Ints  # [children]
    weights: Array  # [sums, children]


@dataclass(frozen=True, eq=False)
class CompiledLikelihood:
    """A network as layers, evaluated from the lowest to the highest."""

    size: int  # number of nodes
    roots: Ints
    leaves: dict[str, LeafTable]
    decisions: dict[str, dict[Value, int]]  # the code of each value of each decision
    layers: tuple[LikelihoodLayer | DenseSums, ...]

    def __call__(self, columns: Mapping[str, Distinct], rows: int) -> Array:  # [roots, rows]
        """Return the log-likelihood of each row under each root.

        Variables without a column are missing; the log-likelihood of latents is 0.
        """
        logs = np.empty((len(self.roots), rows))
        for start, found in self.chunks(columns, rows):
            logs[:, start : start + found.shape[1]] = found
        return logs

    def chunks(self, columns: Mapping[str, Distinct], rows: int) -> Iterator[tuple[int, Array]]:
        """Return the log-likelihoods [roots, …] of some rows at a time, and the first of these."""
        step = max(1, CHUNK // max(1, self.size))
        for start in range(0, rows, step):
            part = slice(start, min(rows, start + step))
            yield start, self.evaluate(columns, part)[self.roots]

    def evaluate(self, columns: Mapping[str, Distinct], part: slice) -> Array:  # [nodes, part]
        """Return the log-likelihood of some rows under every node."""
        logs = np.zeros((self.size, part.stop - part.start))
        for name, table in self.leaves.items():
            if name in columns:
                logs[table.nodes] = table.log_probs_of_rows(columns[name], part)
        decided = {
            name: columns[name].recoded(codes, part)
            for name, codes in self.decisions.items()
            if name in columns
        }
        for layer in self.layers:
            below = logs[layer.children]
            if isinstance(layer, DenseSums):
                logs[layer.nodes] = mixtures(below, layer.weights)
                continue
            if layer.kind == KINDS[Sum]:
                below += layer.log_weights[:, None]
            for name, (edges, codes) in layer.branches.items():
                if name in decided:
                    fits = (codes[:, None] == decided[name]) | (decided[name] == -1)
                    below[edges] = np.where(fits, below[edges], -np.inf)
            logs[layer.nodes] = COMBINE[layer.kind](below, layer.starts)
        return logs


def compile_likelihood(network: Network) -> CompiledLikelihood:
    """Return a network as layers."""
    arrays = network.arrays
    height = arrays.heights()
    decisions: dict[str, dict[Value, int]] = {}
    layers: list[LikelihoodLayer | DenseSums] = []
    with np.errstate(divide="ignore"):
        log_weights = np.log(arrays.weights)
    for level in range(1, int(height.max(initial=0)) + 1):
        for kind in (Product, Sum, Max):
            nodes = np.flatnonzero((height == level) & (arrays.kind == KINDS[kind]))
            if kind is Sum:
                dense, nodes = _dense_sums(arrays, nodes)
                layers += dense
            if len(nodes):
                edges, starts = arrays.edges_of(nodes)
                branches = _branches(network, nodes, decisions) if kind is Max else {}
                children = arrays.children[edges]
                layers.append(
                    LikelihoodLayer(
                        KINDS[kind], nodes, children, starts, log_weights[edges], branches
                    )
                )
    return CompiledLikelihood(
        len(network), np.array(network.roots), leaf_tables(network), decisions,
        tuple(layers),
    )  # fmt: skip


def _dense_sums(arrays: NodeArrays, nodes: Ints) -> tuple[list[DenseSums], Ints]:
    """Return those of some sums that have many edges to the same children, and all others."""
    groups: dict[bytes, list[int]] = {}
    for node in nodes.tolist():
        below = arrays.children[arrays.starts[node] : arrays.starts[node + 1]]
        groups.setdefault(below.tobytes(), []).append(node)
    dense, others = [], []
    for key, members in groups.items():
        children = np.frombuffer(key, dtype=arrays.children.dtype)
        if len(members) > 1 and len(members) * len(children) >= DENSE:
            edges, _ = arrays.edges_of(np.array(members))
            weights = arrays.weights[edges].reshape(len(members), -1)
            dense.append(DenseSums(np.array(members), children, weights))
        else:
            others += members
    return dense, np.array(sorted(others), dtype=np.int64)


def _branches(
    network: Network, nodes: Ints, decisions: dict[str, dict[Value, int]]
) -> dict[str, tuple[Ints, Ints]]:
    """Return, for each decision of some max nodes, their edges and the codes of the values."""
    found: dict[str, tuple[list[int], list[int]]] = {}
    edge = 0
    for index in nodes.tolist():
        node = network.nodes[index]
        assert isinstance(node, Max)
        codes = decisions.setdefault(node.decision, {})
        edges, values = found.setdefault(node.decision, ([], []))
        for value in node.values:
            edges.append(edge)
            values.append(codes.setdefault(value, len(codes)))
            edge += 1
    return {name: (np.array(edges), np.array(codes)) for name, (edges, codes) in found.items()}
