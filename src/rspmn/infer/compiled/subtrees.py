"""The part of the template below each root, laid out so that many pairs (row, root) go at once.

A state excludes nearly all interface nodes. So rows are not sent through the whole template, but
each row through the roots that it may be in. What leads on to the next step only, an S_L, is a
*site*: a row and a root reach each site with some likelihood, and what the site passes up from the
next step is linear in what the interface nodes there do.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rspmn.circuit import Latent, Max, Network, Product, Sum, Utility, fold_up, scopes
from rspmn.circuit.scope import NEXT_STEPS
from rspmn.infer.compiled.layers import KINDS, pass_up, ranges
from rspmn.infer.compiled.leaf_tables import Distinct, LeafTable, leaf_tables
from rspmn.types import Array, Ints
from rspmn.values import Value


@dataclass(frozen=True, eq=False)
class Sites:
    """What leads on to the next step: weights over interface nodes."""

    nodes: Ints  # [sites], in the template
    starts: Ints  # [sites + 1]
    interfaces: Ints  # [edges]
    weights: Array  # [edges]


class Subtrees:
    """The subtrees of all roots of a template, one after the other, children before parents.

    Nodes shared below a root are laid out once; with `apart`, as learning needs it, once for each
    way that leads to them. A place in this layout is a *position*.
    """

    def __init__(self, template: Network, apart: bool = False) -> None:
        self.template = template
        self.sites, site_of = _sites(template)
        self.height = np.array(
            fold_up(template, lambda _, below: 1 + max(below, default=-1)), dtype=np.int64
        )
        self.kind = np.array([KINDS[type(node)] for node in template.nodes])
        self.site_of = np.full(len(template), -1)
        self.site_of[self.sites.nodes] = np.arange(len(self.sites.nodes))
        nodes, edges, self.node_starts, self.edge_starts = [], [], [0], [0]
        for root in template.roots:
            own, below = (_tree if apart else _below)(template, root, site_of)
            nodes += own
            edges += [(k, c, e) for k, children in enumerate(below) for e, c in enumerate(children)]
            self.node_starts.append(len(nodes))
            self.edge_starts.append(len(edges))
        self.nodes = np.array(nodes, dtype=np.int64)
        table = np.array(edges, dtype=np.int64).reshape(-1, 3)
        self.parent, self.child, self.edge = table.T  # local to the root; number of the edge
        self.leaves = leaf_tables(template)
        self.row_of_leaf = np.full(len(template), -1)
        self.leaf_owner = np.full(len(template), -1)
        for number, leaf_table in enumerate(self.leaves.values()):
            self.row_of_leaf[leaf_table.nodes] = np.arange(len(leaf_table.nodes))
            self.leaf_owner[leaf_table.nodes] = number
        self.decisions = _decision_codes(template)
        self.weights, self.branch = self._edge_facts()

    def _edge_facts(self) -> tuple[Array, Ints]:
        """Return the log-weights of edges below sums, and the value codes of those below maxes."""
        nodes = self.template.nodes
        roots = np.repeat(np.arange(len(self.node_starts) - 1), np.diff(self.edge_starts))
        parents = self.nodes[np.array(self.node_starts)[roots] + self.parent]
        weights, branch = np.zeros(len(parents)), np.full(len(parents), -1)
        for k, (index, edge) in enumerate(zip(parents.tolist(), self.edge.tolist(), strict=True)):
            node = nodes[index]
            if isinstance(node, Sum):
                weights[k] = node.weights[edge]
            elif isinstance(node, Max):
                branch[k] = self.decisions[node.decision][node.values[edge]]
        with np.errstate(divide="ignore"):
            return np.log(weights), branch


def _sites(template: Network) -> tuple[Sites, set[int]]:
    """Return the nodes that hold nothing but latents, and their forms."""
    only = [scope == {NEXT_STEPS} for scope in scopes(template)]

    def form(node: object, below: list[dict[int, float]]) -> dict[int, float]:
        if isinstance(node, Latent):
            return {node.interface: 1.0}
        found: dict[int, float] = {}
        weights = node.weights if isinstance(node, Sum) else (1.0,) * len(below)
        for weight, part in zip(weights, below, strict=True):
            for interface, share in part.items():
                found[interface] = found.get(interface, 0.0) + weight * share
        return found

    forms = fold_up(template, lambda n, b: form(n, b) if _is_linear(n) else {})
    whole = {c for i, n in enumerate(template.nodes) if not only[i] for c in n.children if only[c]}
    nodes = sorted(whole)
    edges = [sorted((i, w) for i, w in forms[node].items() if w > 0) for node in nodes]
    starts = np.cumsum([0, *map(len, edges)])
    flat = [pair for group in edges for pair in group]
    return Sites(
        np.array(nodes, dtype=np.int64),
        starts,
        np.array([i for i, _ in flat], dtype=np.int64),
        np.array([w for _, w in flat]),
    ), whole


def _is_linear(node: object) -> bool:
    return isinstance(node, Latent | Sum | Product)


def _below(template: Network, root: int, sites: set[int]) -> tuple[list[int], list[list[int]]]:
    """Return the nodes below a root, not below a site, children first; and their children."""
    found = {root}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node not in sites:
            for child in template.nodes[node].children:
                if child not in found:
                    found.add(child)
                    waiting.append(child)
    nodes = sorted(found)
    place = {node: k for k, node in enumerate(nodes)}
    inner = [() if node in sites else template.nodes[node].children for node in nodes]
    return nodes, [[place[child] for child in children] for children in inner]


def _tree(template: Network, root: int, sites: set[int]) -> tuple[list[int], list[list[int]]]:
    """Do as `_below` does, with a node of its own for each way."""
    nodes: list[int] = []
    below: list[list[int]] = []

    def add(index: int) -> int:
        children = () if index in sites else template.nodes[index].children
        placed = [add(child) for child in children]
        nodes.append(index)
        below.append(placed)
        return len(nodes) - 1

    add(root)
    return nodes, below


def _decision_codes(template: Network) -> dict[str, dict[Value, int]]:
    found: dict[str, dict[Value, int]] = {}
    for node in template.nodes:
        if isinstance(node, Max):
            codes = found.setdefault(node.decision, {})
            for value in node.values:
                codes.setdefault(value, len(codes))
    return found


class Instances:
    """Pairs of a row and a root it may be in: every node below the root, for every pair."""

    def __init__(
        self, trees: Subtrees, columns: Mapping[str, Distinct], row: Ints, root: Ints
    ) -> None:
        """Lay out the pairs (row[p], root[p]); all decisions of the rows must be known."""
        self.trees, self.row, self.root = trees, row, root
        node_starts, edge_starts = np.array(trees.node_starts), np.array(trees.edge_starts)
        which, self.starts = ranges(node_starts[root], node_starts[root + 1])
        self.position = which  # [instances]
        self.node = trees.nodes[which]  # [instances]
        self.pair = np.repeat(np.arange(len(root)), np.diff(self.starts))
        edge, first = ranges(edge_starts[root], edge_starts[root + 1])
        of_edge = np.repeat(np.arange(len(root)), np.diff(first))
        self.parent = self.starts[of_edge] + trees.parent[edge]
        self.child = self.starts[of_edge] + trees.child[edge]
        self.log_weight = trees.weights[edge]
        self.edge = edge  # in the layout of all trees
        self.site = trees.site_of[self.node]
        self.tops = self.starts[1:] - 1  # a root stands last
        height, kind = trees.height[self.node], trees.kind[self.node]
        level = height[self.parent] * len(KINDS) + kind[self.parent]
        order = np.argsort(level, kind="stable")
        self.groups = [
            (int(kind[self.parent[part[0]]]), part)
            for part in np.split(order, np.flatnonzero(np.diff(level[order])) + 1)
            if len(part)
        ]
        self.chosen = self._chosen(columns, trees.branch[edge], of_edge)
        self.leaf_logs = self._leaf_logs(columns)

    def _chosen(self, columns: Mapping[str, Distinct], branch: Ints, of_edge: Ints) -> Array:
        """Return 0 for edges that the decisions made lead down, -∞ for others."""
        logs = np.zeros(len(branch))
        nodes = self.trees.template.nodes
        names = list(self.trees.decisions)
        number = np.full(len(nodes), -1)
        for index in np.unique(self.node).tolist():
            node = nodes[index]
            if isinstance(node, Max):
                number[index] = names.index(node.decision)
        decision = np.where(branch >= 0, number[self.node[self.parent]], -1)
        for k, name in enumerate(names):
            codes = self.trees.decisions[name]
            table = np.array([codes.get(value, -2) for value in columns[name].values] + [-3])
            here = np.flatnonzero(decision == k)
            made = table[columns[name].codes[self.row[of_edge[here]]]]
            logs[here[made != branch[here]]] = -np.inf
        return logs

    def _leaf_logs(self, columns: Mapping[str, Distinct]) -> Array:  # [instances]
        logs = np.zeros(len(self.node))
        owner = self.trees.leaf_owner[self.node]
        for number, (name, table) in enumerate(self.trees.leaves.items()):
            here = np.flatnonzero(owner == number)
            logs[here] = _looked_up(table, self.trees.row_of_leaf[self.node[here]], columns[name],
                                    self.row[self.pair[here]])  # fmt: skip
        return logs

    def up(self, site_logs: Array) -> Array:  # [instances]
        """Return the log-likelihood of every node; `site_logs` [instances] is used at sites."""
        logs = np.where(self.site >= 0, site_logs, self.leaf_logs)
        for kind, edges in self.groups:
            below, parents, starts = self._grouped(logs, kind, edges)
            logs[parents] = pass_up(kind, below, starts)
        return logs

    def down(self, logs: Array, flow: Array) -> tuple[Array, Array]:
        """Share out the flow at each pair's root by likelihood; return that of nodes and edges."""
        at = np.zeros(len(self.node))
        at[self.tops] = flow
        through = np.zeros(len(self.parent))
        for kind, edges in reversed(self.groups):
            below, parents, starts = self._grouped(logs, kind, edges)
            counts = np.diff(np.append(starts, len(edges)))
            above = np.repeat(at[parents], counts)
            if kind == KINDS[Product]:
                share = np.ones(len(edges))
            else:
                total = np.repeat(logs[parents], counts)
                share = np.exp(below - np.where(np.isneginf(total), 0.0, total))
            through[edges] = above * share
            np.add.at(at, self.child[edges], through[edges])
        return at, through

    def _grouped(self, logs: Array, kind: int, edges: Ints) -> tuple[Array, Ints, Ints]:
        """Return what edges of one kind pass up, their parents, and where those of each start."""
        parents = self.parent[edges]
        starts = np.flatnonzero(np.append(True, parents[1:] != parents[:-1]))
        below = logs[self.child[edges]]
        if kind == KINDS[Sum]:
            below = below + self.log_weight[edges]
        elif kind == KINDS[Max]:
            below = below + self.chosen[edges]
        return below, parents[starts], starts


def _looked_up(table: LeafTable, leaf: Ints, column: Distinct, row: Ints) -> Array:
    return table.log_probs_of(leaf, column.values, column.codes[row])


def steps_behind(template: Network, sites: Sites) -> Array:  # [sites]
    """Return how many logged steps stand behind each site: those of the utilities beside it."""
    nodes = template.nodes
    behind = dict.fromkeys(sites.nodes.tolist(), 0.0)
    for node in nodes:
        if isinstance(node, Product):
            counts = [n.count for c in node.children if isinstance(n := nodes[c], Utility)]
            for child in node.children:
                if child in behind:
                    behind[child] += max(counts, default=0.0)
    return np.array(list(behind.values()))
