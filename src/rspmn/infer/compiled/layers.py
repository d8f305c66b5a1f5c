"""Likelihood compiled: all nodes of a layer and many rows at once.

The same numbers as `rspmn.infer.likelihood`, which goes node by node.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from rspmn.circuit import Latent, Max, Network, Product, Sum
from rspmn.infer.compiled.flat import KINDS, flatten
from rspmn.infer.compiled.leaf_tables import LeafTable, leaf_tables
from rspmn.infer.compiled.row_likelihood import Distinct
from rspmn.types import Array, Ints
from rspmn.values import Value

#: So many numbers are held at once.
CHUNK = 4_000_000


@dataclass(frozen=True, eq=False)
class Step:
    """The nodes of one layer and kind."""

    kind: type
    nodes: Ints  # [nodes]
    children: Ints  # [edges], those of one node together
    starts: Ints  # [nodes], the first edge of each
    log_weights: Array  # [edges]
    made: dict[str, tuple[Ints, Ints]]  # by decision: edges, codes of their values


@dataclass(frozen=True, eq=False)
class CompiledLikelihood:
    """A network ready to be asked about many rows."""

    size: int
    roots: Ints
    leaves: dict[str, LeafTable]
    decisions: dict[str, dict[Value, int]]  # the code of each value of each decision
    latents: tuple[Ints, Ints]  # nodes, and the interface nodes that they mean
    steps: tuple[Step, ...]  # in the order in which to evaluate

    def __call__(
        self,
        columns: Mapping[str, Distinct],
        rows: int,
        future: Array | None = None,
    ) -> Array:  # [roots, rows]
        """Return the log-likelihood of each row under each root.

        A variable without a column is not known. `future` [interfaces, rows] is what the latents
        stand for, likelihood 1 if not given.
        """
        found = np.empty((len(self.roots), rows))
        for part in self._chunks(rows):
            found[:, part] = self.evaluate(columns, part, future)[self.roots]
        return found

    def _chunks(self, rows: int) -> Iterator[slice]:
        step = max(1, CHUNK // max(1, self.size))
        for start in range(0, rows, step):
            yield slice(start, min(rows, start + step))

    def evaluate(
        self,
        columns: Mapping[str, Distinct],
        part: slice,
        future: Array | None = None,
    ) -> Array:  # [nodes, part]
        """Return the log-likelihood of some rows under every node."""
        logs = np.zeros((self.size, part.stop - part.start))
        for name, table in self.leaves.items():
            if name in columns:
                column = columns[name]
                seen, place = np.unique(column.codes[part], return_inverse=True)
                known = table.log_probs([column.values[c] for c in seen.tolist() if c >= 0])
                if seen[0] < 0:  # code -1: not known
                    known = np.hstack([np.zeros((len(known), 1)), known])
                logs[table.nodes] = known[:, place]
        if future is not None:
            nodes, interfaces = self.latents
            logs[nodes] = future[interfaces, part]
        made = {
            name: _made(codes, columns[name], part)
            for name, codes in self.decisions.items()
            if name in columns
        }
        for step in self.steps:
            logs[step.nodes] = _pass_up(step, logs[step.children], made)
        return logs


def _made(codes: dict[Value, int], column: Distinct, part: slice) -> Ints:
    """Return the codes of decisions made: -1 not known, -2 never offered."""
    table = np.array([*(codes.get(value, -2) for value in column.values), -1])
    return np.asarray(table[column.codes[part]])


def _pass_up(step: Step, below: Array, made: Mapping[str, Ints]) -> Array:
    """Combine what the children of a layer's nodes pass up, [edges, rows] to [nodes, rows]."""
    if step.kind is Product:
        return np.asarray(np.add.reduceat(below, step.starts, axis=0))
    if step.kind is Max:
        for name, (edges, codes) in step.made.items():
            if name in made:
                chosen = (codes[:, None] == made[name]) | (made[name] == -1)
                below[edges] = np.where(chosen, below[edges], -np.inf)
        return np.asarray(np.maximum.reduceat(below, step.starts, axis=0))
    below = below + step.log_weights[:, None]
    highest = np.maximum.reduceat(below, step.starts, axis=0)
    safe = np.where(np.isneginf(highest), 0.0, highest)
    counts = np.diff(np.append(step.starts, len(below)))
    shares = np.exp(below - np.repeat(safe, counts, axis=0))
    with np.errstate(divide="ignore"):
        return safe + np.log(np.add.reduceat(shares, step.starts, axis=0))


def compile_likelihood(network: Network) -> CompiledLikelihood:
    """Compile a network."""
    flat = flatten(network)
    height = flat.layers()
    decisions: dict[str, dict[Value, int]] = {}
    steps = []
    with np.errstate(divide="ignore"):
        log_weights = np.log(flat.weights)
    for layer in range(1, int(height.max(initial=0)) + 1):
        for kind in (Product, Sum, Max):
            nodes = np.flatnonzero((height == layer) & (flat.kind == KINDS[kind]))
            if len(nodes):
                edges, starts = flat.edges_of(nodes)
                made = _branches(network, nodes, decisions) if kind is Max else {}
                steps.append(
                    Step(kind, nodes, flat.children[edges], starts, log_weights[edges], made)
                )
    latents = flat.of_kind(Latent)
    means = np.array([network.nodes[i].interface for i in latents.tolist()], dtype=np.int64)
    return CompiledLikelihood(
        len(network), flat.roots, leaf_tables(network), decisions, (latents, means), tuple(steps)
    )


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
