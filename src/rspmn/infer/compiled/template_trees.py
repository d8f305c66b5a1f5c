"""One step of a template: the tree below each root, and the ways of rows down these trees.

A state excludes nearly all interface nodes. So a row is not evaluated in the whole template but
below the few roots that it may be in, and below a decision only in the branch that was chosen.
What leads to the next step only, an S_L, is a *site*. A row reaches each site with some likelihood,
and what the site passes up is linear in what the interface nodes of the next step pass up.
"""

from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise

import numpy as np

from rspmn.circuit import (
    Categorical,
    Leaf,
    Max,
    Network,
    Product,
    Sum,
    Utility,
)
from rspmn.circuit.node_arrays import NodeArrays
from rspmn.infer.compiled.layers import KINDS, log_sums
from rspmn.infer.compiled.leaf_tables import Distinct, leaf_tables
from rspmn.infer.compiled.relations import ranges
from rspmn.infer.compiled.sites import Sites, sites_of
from rspmn.types import Array, Bools, Ints
from rspmn.values import UNKNOWN, Value


class RootTrees:
    """The trees below all roots of a template, breadth first, down to the sites.

    A place in them is a *position*: a node that can be reached in several ways has several. The
    first positions are the roots. The children of a position are adjacent.
    """

    def __init__(self, template: Network) -> None:
        self.template = template
        arrays, self.sites = template.arrays, sites_of(template)
        self.decisions: dict[str, dict[Value, int]] = {}  # the code of each value
        codes, numbers = self._decision_codes(arrays)
        widths = np.diff(arrays.starts)
        widths[self.sites.nodes] = 0
        here = np.array(template.roots, dtype=np.int64)
        nodes, edges, parents, above = [here], [np.full(len(here), -1)], [np.full(len(here), -1)], 0
        while len(here):
            edge, _ = ranges(arrays.starts[here], arrays.starts[here] + widths[here])
            parents.append(above + np.repeat(np.arange(len(here)), widths[here]))
            edges.append(edge)
            nodes.append(arrays.children[edge])
            above, here = above + len(here), nodes[-1]
        self.levels = np.cumsum([0, *map(len, nodes[:-1])])  # [depth + 1], where each level starts
        self.node = np.concatenate(nodes)  # [positions]
        self.parent = np.concatenate(parents)  # [positions], -1 at a root
        self.width = widths[self.node]  # [positions], the number of children
        #: [positions], the first of these
        self.first = len(template.roots) + np.cumsum(self.width) - self.width
        self.kind = arrays.kind[self.node]  # [positions]
        self.edge = edge = np.concatenate(edges)  # [positions], above it, in the template
        with np.errstate(divide="ignore"):  # below a sum, [positions]; 0 elsewhere
            self.log_weight = np.where(edge >= 0, np.log(arrays.weights)[edge], 0.0)
        self.branch = np.where(edge >= 0, codes[edge], -1)  # the code of the value, below a max
        self.decision = numbers[self.node]  # the number of the decision, at a max
        site_of = np.full(len(template), -1)
        site_of[self.sites.nodes] = np.arange(len(self.sites.nodes))
        self.site = site_of[self.node]  # [positions], -1 if it is none
        self.leads = self.site >= 0  # [positions], whether there is a site below, or it is one
        for start, stop in reversed([*zip(self.levels[1:-1], self.levels[2:], strict=True)]):
            below = np.arange(start, stop)
            self.leads[self.parent[below[self.leads[below]]]] = True
        self.leaves = leaf_tables(template)
        self.leaf = np.full(len(template), -1)  # [nodes], the row in its variable's table
        self.variable = np.full(len(template), -1)  # [nodes], the number of that table
        for number, table in enumerate(self.leaves.values()):
            self.leaf[table.nodes] = np.arange(len(table.nodes))
            self.variable[table.nodes] = number

    def __len__(self) -> int:
        return len(self.node)

    @cached_property
    def sizes(self) -> Ints:  # [positions]
        """The number of positions at and below each."""
        found = np.ones(len(self), dtype=np.int64)
        for start, stop in reversed([*pairwise(self.levels[1:].tolist())]):
            np.add.at(found, self.parent[start:stop], found[start:stop])
        return found

    def _decision_codes(self, arrays: NodeArrays) -> tuple[Ints, Ints]:
        """Return the code of the value at each edge below a max, and the decision of each max."""
        codes, numbers = np.full(len(arrays.children), -1), np.full(len(arrays.kind), -1)
        maxes = arrays.of_kind(Max)
        used, numbers[maxes] = np.unique(arrays.item[maxes], return_inverse=True)
        for number in used.tolist():
            edges, _ = arrays.edges_of(maxes[arrays.item[maxes] == number])
            known = self.decisions.setdefault(arrays.decisions[number], {})
            choices, which = np.unique(arrays.choice[edges], return_inverse=True)
            values = [arrays.values[k] for k in choices.tolist()]
            found = [known.setdefault(value, len(known)) for value in values]
            codes[edges] = np.array(found, dtype=np.int64)[which]
        return codes, numbers

    def counted(self, leaves: bool) -> Bools:  # [positions]
        """Say where parameters come from counts: utilities, sites, children of sums; leaves too."""
        below_sum = (self.parent >= 0) & (self.kind[self.parent] == KINDS[Sum])
        found = (self.kind == KINDS[Utility]) | (self.site >= 0) | below_sum
        return np.asarray(found | (leaves & (self.kind == KINDS[Leaf])))

    def shared(self, flow: Array) -> Array:  # [positions]
        """Return the flow with that of factors added up over all positions of the same factor.

        A factor depends on no interface node: those that have it share its parameters.
        """
        within = np.flatnonzero(self.parent >= 0)
        above = self.parent[within]
        within = within[(self.kind[above] == KINDS[Sum]) & ~self.leads[above]]
        if not len(within):
            return flow
        _, edge = np.unique(self.edge[within], return_inverse=True)
        found = flow.copy()
        found[within] = np.bincount(edge, flow[within])[edge]
        return found

    def utilities(self) -> tuple[Array, Array]:  # [positions] each
        """Return mean and variance of the utilities; 0 at other positions."""
        arrays, found = self.template.arrays, np.zeros((2, len(self.template)))
        earns = arrays.of_kind(Utility)
        found[:, earns] = arrays.utilities[arrays.item[earns]][:, [1, 3]].T
        return found[0][self.node], found[1][self.node]


class Ways:
    """Pairs of a row and a root: every position below the root that the row's decisions lead to.

    A position of one pair is an *instance*. Instances are ordered by level, the roots first, in
    the order of the pairs.
    """

    def __init__(
        self, trees: RootTrees, columns: Mapping[str, Distinct], row: Ints, root: Ints
    ) -> None:
        """Expand the pairs (row[p], root[p]); all decisions of the rows must be known."""
        self.trees, self.row, self.root = trees, row, root
        made = np.array([
            columns[name].recoded(codes, slice(None)) for name, codes in trees.decisions.items()
        ])  # fmt: skip
        here, pair, above = root, np.arange(len(root)), 0
        positions, pairs, parents = [here], [pair], [np.full(len(root), -1)]
        while len(here):
            child, first = ranges(trees.first[here], trees.first[here] + trees.width[here])
            up = np.repeat(np.arange(len(here)), np.diff(first))
            decided = np.flatnonzero(trees.branch[child] >= 0)
            if len(decided):
                chosen = made[trees.decision[here[up[decided]]], row[pair[up[decided]]]]
                keep = np.ones(len(child), dtype=bool)
                keep[decided] = trees.branch[child[decided]] == chosen
                child, up = child[keep], up[keep]
            parents.append(above + up)
            above, here, pair = above + len(here), child, pair[up]
            positions.append(here)
            pairs.append(pair)
        self.levels = np.cumsum([0, *map(len, positions[:-1])]).tolist()  # where each level starts
        self.position = np.concatenate(positions)  # [instances]
        self.pair = np.concatenate(pairs)  # [instances]
        self.parent = np.concatenate(parents)  # [instances], -1 at a root
        self.node = trees.node[self.position]  # [instances]
        self.site = trees.site[self.position]  # [instances], -1 if it is none
        self.log_weight = trees.log_weight[self.position]
        self.is_sum = trees.kind[self.position] == KINDS[Sum]
        self.missing = np.zeros(len(self.position), dtype=bool)  # of leaves
        self.leaf_logs = np.where(trees.kind[self.position] == KINDS[Max], -np.inf, 0.0)
        self._look_up_leaves(columns)

    def _look_up_leaves(self, columns: Mapping[str, Distinct]) -> None:
        variable = self.trees.variable[self.node]
        for number, (name, table) in enumerate(self.trees.leaves.items()):
            here = np.flatnonzero(variable == number)
            column = columns[name]
            code = column.codes[self.row[self.pair[here]]]
            leaf = self.trees.leaf[self.node[here]]
            self.leaf_logs[here] = table.log_probs_of(leaf, column.values, code)
            self.missing[here] = code < 0

    def _below(self, level: int) -> tuple[slice, Ints, Ints]:
        """Return the instances of a level, their parents, and the first child of each parent."""
        part = slice(self.levels[level], self.levels[level + 1])
        parent = self.parent[part]
        return part, parent, np.flatnonzero(np.append(True, parent[1:] != parent[:-1]))

    def up(self, given: Array | float = 0.0) -> Array:  # [instances]
        """Return the log-likelihood of every instance; `given` is that of sites and utilities."""
        logs = self.leaf_logs + given
        for level in range(len(self.levels) - 2, 0, -1):
            part, parent, starts = self._below(level)
            below = logs[part] + self.log_weight[part]
            above = parent[starts]
            logs[above] = np.add.reduceat(below, starts)  # a product; a max has one child here
            mixed = self.is_sum[above]
            if mixed.any():
                counts = np.diff(np.append(starts, len(parent)))
                first = np.cumsum(counts[mixed]) - counts[mixed]
                logs[above[mixed]] = log_sums(below[np.repeat(mixed, counts)], first)
        return logs

    def down(self, logs: Array, flow: Array) -> Array:  # [instances]
        """Share out the flow at each pair's root by likelihood; return that of every instance."""
        at = np.zeros(len(self.position))
        at[: len(self.row)] = flow
        for level in range(1, len(self.levels) - 1):
            part, parent, _ = self._below(level)
            at[part] = at[parent]
            mixed = np.flatnonzero(self.is_sum[parent])
            if len(mixed):
                child, parent = part.start + mixed, parent[mixed]
                total = np.where(np.isneginf(logs[parent]), 0.0, logs[parent])
                at[child] *= np.exp(logs[child] + self.log_weight[child] - total)
        return at

    def likeliest(self, logs: Array) -> Bools:  # [instances]
        """Say which instances are on the likeliest way of each pair (Alg. 6).

        A factor that lacks values, so that several children of a sum are possible, is not entered:
        nobody knows which of them it was.
        """
        lacks = self._lacking()
        on = np.zeros(len(self.position), dtype=bool)
        on[: len(self.row)] = logs[: len(self.row)] > -np.inf
        for level in range(1, len(self.levels) - 1):
            part, parent, starts = self._below(level)
            on[part] = on[parent]
            if self.is_sum[parent[starts]].any():
                below = logs[part] + self.log_weight[part]
                counts = np.diff(np.append(starts, len(parent)))
                highest = np.repeat(np.maximum.reduceat(below, starts), counts)
                best = np.flatnonzero(below == highest)
                best = best[np.append(True, np.diff(parent[best]) != 0)]  # the first of each parent
                chosen = ~self.is_sum[parent]
                chosen[best] = True
                possible = np.repeat(np.add.reduceat(below > -np.inf, starts), counts)
                factor = self.is_sum[parent] & ~self.trees.leads[self.position[parent]]
                on[part] &= chosen & ~(factor & lacks[parent] & (possible > 1))
        return on

    def _lacking(self) -> Bools:  # [instances]
        """Say which instances have a leaf below them whose value is missing."""
        lacks = self.missing.copy()
        if lacks.any():
            for level in range(len(self.levels) - 2, 0, -1):
                part, parent, _ = self._below(level)
                lacks[parent[lacks[part]]] = True
        return lacks

    def absent(self) -> Bools:  # [instances]
        """Say which instances are leaves of a variable that is always missing there, as it is."""
        arrays, certain = self.trees.template.arrays, Categorical.certain(UNKNOWN)
        unknown = [isinstance(n, Leaf) and n.distribution == certain for n in arrays.objects]
        here, leaves = np.zeros(len(arrays), dtype=bool), arrays.of_kind(Leaf)
        here[leaves] = np.array(unknown, dtype=bool)[arrays.item[leaves]]
        return np.asarray(self.missing & here[self.node])


def steps_behind(template: Network, sites: Sites) -> Array:  # [sites]
    """Return how many logged steps each site was estimated from: the count of its utilities."""
    nodes = template.nodes
    behind = dict.fromkeys(sites.nodes.tolist(), 0.0)
    for node in nodes:
        if isinstance(node, Product):
            counts = [n.count for c in node.children if isinstance(n := nodes[c], Utility)]
            for child in node.children:
                if child in behind:
                    behind[child] += max(counts, default=0.0)
    return np.array(list(behind.values()))
