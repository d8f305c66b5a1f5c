"""Networks with more branches below their decisions, added to all roots at once."""

import numpy as np

from rspmn.circuit.blocks import BlockBuilder
from rspmn.circuit.network import Network
from rspmn.circuit.node_arrays import KINDS, NodeArrays
from rspmn.circuit.nodes import Leaf, Max, Product
from rspmn.types import Bools, Ints


def with_branches(network: Network, at: Ints, extra: Network) -> tuple[Network, Ints]:
    """Add the branches of decisions at root k of `extra` that root at[k] of a network lacks.

    Return the new network, and the place in it of each node of the old one, -1 if it has none.

    A sum between two decisions, over what is observed between them, has no place for more branches
    below it: they are left out. So are branches below a decision after which variables are
    observed: they may differ.
    """
    builder = BlockBuilder()
    roots = builder.network(network)[list(network.roots)]
    other = builder.network(extra)[list(extra.roots)]
    pairs, here, root = _Pairs(builder.arrays()), roots[at], np.arange(len(at))
    wider = np.flatnonzero(pairs.have_room(here, other))
    roots[at[wider]] = len(builder) + np.arange(len(wider))
    here, other, root = here[wider], other[wider], root[wider]
    after = [np.full(len(builder), -1)]  # of all nodes, the root that they are added for
    while len(here):  # children are numbered before they are added, in the next round
        owner, child, mate, choice = pairs.edges(here, other)
        wider = np.flatnonzero(pairs.have_room(child, mate))
        below = child.copy()
        below[wider] = len(builder) + len(here) + np.arange(len(wider))
        kind, item = pairs.arrays.kind[here], pairs.arrays.item[here]
        builder.add(kind, item, np.bincount(owner, minlength=len(here)), below, choice=choice)
        after.append(root)
        here, other, root = child[wider], mate[wider], root[owner[wider]]
    of_root = np.concatenate(after)
    height = np.repeat(-np.arange(len(after)), list(map(len, after)))
    found, place = builder.build(roots, np.argsort(np.lexsort([height, of_root])))
    return found, place[: len(network)]


class _Pairs:
    """Nodes of a network, and the nodes whose branches they get."""

    def __init__(self, arrays: NodeArrays) -> None:
        self.arrays, self.next = arrays, _next_decisions(arrays)
        first: dict[object, int] = {}
        same = [first.setdefault(value, k) for k, value in enumerate(arrays.values)]
        self.value = np.array([*same, -1], dtype=np.int64)[arrays.choice]  # [edges]
        self.observes = np.zeros(len(arrays), dtype=bool)  # [nodes], with leaves as children
        leaves = arrays.kind[arrays.children] == KINDS[Leaf]
        self.observes[arrays.parents[leaves]] = True

    def have_room(self, here: Ints, other: Ints) -> Bools:  # [pairs]
        """Return which nodes have a place for branches of others; -1 is no node."""
        kind = self.arrays.kind
        decide = (kind[here] == KINDS[Max]) & (kind[other] == KINDS[Max])
        lead = (kind[here] == KINDS[Product]) & (self.next[here] >= 0) & (self.next[other] >= 0)
        return np.asarray((other >= 0) & (decide | lead))

    def edges(self, here: Ints, other: Ints) -> tuple[Ints, Ints, Ints, Ints]:  # [edges] each
        """Return the edges of nodes with the branches of others.

        They are the place of the parent among the nodes, the child, the node whose branches this
        gets, -1 if none, and the value of the decision.
        """
        arrays = self.arrays
        mine, owner = self._edges_of(here, np.arange(len(here)))
        decide = np.flatnonzero(arrays.kind[here] == KINDS[Max])
        theirs, of_other = self._edges_of(other[decide], decide)
        child, mate = arrays.children[mine], np.full(len(mine), -1)
        lead = (arrays.kind[here] == KINDS[Product])[owner] & (child == self.next[here][owner])
        mate[lead] = self.next[other][owner[lead]]
        size = len(arrays.values) + 1
        key, other_key = owner * size + self.value[mine], of_other * size + self.value[theirs]
        _, both, known = np.intersect1d(key, other_key, return_indices=True)
        goes_on = ~self.observes[child[both]]
        mate[both[goes_on]] = arrays.children[theirs[known[goes_on]]]
        new = np.delete(np.arange(len(theirs)), known)
        owner = np.concatenate([owner, of_other[new]])
        child = np.concatenate([child, arrays.children[theirs[new]]])
        mate = np.concatenate([mate, np.full(len(new), -1)])
        choice = arrays.choice[np.concatenate([mine, theirs[new]])]
        order = np.argsort(owner, kind="stable")
        return owner[order], child[order], mate[order], choice[order]

    def _edges_of(self, nodes: Ints, numbers: Ints) -> tuple[Ints, Ints]:
        """Return the edges of nodes, and the number of the node of each."""
        edges, _ = self.arrays.edges_of(nodes)
        return edges, np.repeat(numbers, np.diff(self.arrays.starts)[nodes])


def _next_decisions(arrays: NodeArrays) -> Ints:  # [nodes]
    """Return the max node, or the factor of a product, that makes the next decision; -1 if none."""
    found = np.full(len(arrays), -1)
    maxes = arrays.of_kind(Max)
    found[maxes] = maxes
    for level in arrays.levels:
        edges, _ = arrays.edges_of(level[arrays.kind[level] == KINDS[Product]])
        edges = edges[found[arrays.children[edges]] >= 0]
        products, first = np.unique(arrays.parents[edges], return_index=True)
        found[products] = arrays.children[edges[first]]
    return found
