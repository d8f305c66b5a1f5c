"""Building a network from arrays, many nodes at a time; equal nodes are stored once."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rspmn.circuit.network import Network
from rspmn.circuit.node_arrays import KINDS, NodeArrays, NodeViews, ranges
from rspmn.circuit.nodes import FactoredLatents, Latent, Leaf, Max, Product, Sum, Utility
from rspmn.types import Array, Ints
from rspmn.values import Value


class BlockBuilder:
    """Builds a network of blocks of nodes; children are named by the numbers that methods return.

    It builds what `NetworkBuilder` would build of the same nodes, one after the other.

    Examples
    --------
    >>> b = BlockBuilder()
    >>> twice = b.products(np.array([1, 1]), b.latents(np.array([7, 7])))
    >>> b.build(twice)[0]
    Network(2 nodes, 1 edges, roots (1, 1))
    """

    def __init__(self) -> None:
        self._size = 0
        self._blocks: list[tuple[Ints, Ints, Ints, Ints, Array, Ints]] = []
        self._decisions: dict[str, int] = {}
        self._values: dict[tuple[type, Value], int] = {}
        self._objects: dict[Leaf | FactoredLatents, int] = {}
        self._names: dict[str, int] = {}
        self._utilities: list[Array] = []

    def __len__(self) -> int:
        return self._size

    def leaves(self, leaves: Iterable[Leaf | FactoredLatents]) -> Ints:
        """Add leaves or factored latents."""
        item = self.object_items(leaves)
        factored = np.array([isinstance(leaf, FactoredLatents) for leaf in self._objects], bool)
        kind = np.where(factored, KINDS[FactoredLatents], KINDS[Leaf])[item]
        return self.add(kind, item, np.zeros_like(item))

    def utilities(self, variable: str, mean: Array, count: Array, variance: Array) -> Ints:
        """Add utilities."""
        item = self.utility_items(variable, mean, count, variance)
        return self.add(np.full(len(mean), KINDS[Utility]), item, np.zeros_like(item))

    def latents(self, interface: Ints) -> Ints:
        """Add links to interface nodes of the next step."""
        return self.add(np.full(len(interface), KINDS[Latent]), interface, np.zeros_like(interface))

    def products(self, widths: Ints, children: Ints) -> Ints:
        """Add products, given how many children each has, and the children of all."""
        kind = np.full(len(widths), KINDS[Product])
        return self.add(kind, np.zeros_like(widths), widths, children)

    def sums(self, widths: Ints, children: Ints, weights: Array) -> Ints:
        """Add sums, given how many children each has, and children and weights of all."""
        kind = np.full(len(widths), KINDS[Sum])
        return self.add(kind, np.zeros_like(widths), widths, children, weights)

    def maxes(
        self, decision: str, widths: Ints, children: Ints, values: Sequence[Value], choice: Ints
    ) -> Ints:
        """Add max nodes of a decision, given the place in `values` of the value of each child."""
        item = np.full(len(widths), self.decision(decision))
        kind = np.full(len(widths), KINDS[Max])
        return self.add(kind, item, widths, children, choice=self.value_codes(values)[choice])

    def network(self, network: Network) -> Ints:  # [nodes]
        """Add the nodes of a network; return the number of each."""
        arrays = network.arrays
        item = self.items(arrays)
        codes = np.append(self.value_codes(arrays.values), -1)
        return self.add(
            arrays.kind, item, np.diff(arrays.starts), self._size + arrays.children, arrays.weights,
            codes[arrays.choice],
        )  # fmt: skip

    def object_items(self, objects: Iterable[Leaf | FactoredLatents]) -> Ints:
        """Return the numbers of leaves or factored latents."""
        known = self._objects
        return np.array([known.setdefault(one, len(known)) for one in objects], dtype=np.int64)

    def utility_items(self, variable: str, mean: Array, count: Array, variance: Array) -> Ints:
        """Return the numbers of new utilities."""
        first = sum(map(len, self._utilities))
        name = np.full(len(mean), self._names.setdefault(variable, len(self._names)))
        self._utilities.append(np.column_stack([name, mean, count, variance]))
        return first + np.arange(len(mean))

    def items(self, arrays: NodeArrays) -> Ints:  # [nodes]
        """Return what nodes of other arrays are about, as this builder numbers it."""
        decisions = [self.decision(name) for name in arrays.decisions]
        names = [self._names.setdefault(name, len(self._names)) for name in arrays.names]
        utilities, first = arrays.utilities.copy(), sum(map(len, self._utilities))
        if len(utilities):
            utilities[:, 0] = np.array(names)[utilities[:, 0].astype(np.int64)]
            self._utilities.append(utilities)
        objects = self.object_items(arrays.objects)
        item = arrays.item.copy()
        for kind, numbers in {
            Max: np.array(decisions, dtype=np.int64),
            Utility: first + np.arange(len(utilities)),
            Leaf: objects,
            FactoredLatents: objects,
        }.items():
            here = arrays.of_kind(kind)
            item[here] = numbers[item[here]]
        return item

    def decision(self, name: str) -> int:
        """Return the number of a decision."""
        return self._decisions.setdefault(name, len(self._decisions))

    def value_codes(self, values: Sequence[Value]) -> Ints:  # [values]
        """Return the numbers of some values of decisions."""
        known = self._values
        found = [known.setdefault((type(value), value), len(known)) for value in values]
        return np.array(found, dtype=np.int64)

    def add(
        self, kind: Ints, item: Ints, widths: Ints, children: Ints | None = None,
        weights: Array | None = None, choice: Ints | None = None,
    ) -> Ints:  # fmt: skip
        """Add nodes of any kinds, their items as this builder numbers them; return their numbers.

        Children may also be nodes that are added later.
        """
        children = np.empty(0, dtype=np.int64) if children is None else children
        weights = np.ones(len(children)) if weights is None else weights
        choice = np.full(len(children), -1) if choice is None else choice
        self._blocks.append((kind, item, widths, children, weights, choice))
        self._size += len(kind)
        return np.arange(self._size - len(kind), self._size)

    def arrays(self) -> NodeArrays:
        """Return all nodes, equal ones as often as they were added."""
        columns = zip(*self._blocks, strict=True)
        kind, item, widths, children, weights, choice = map(np.concatenate, columns)
        self._blocks = [(kind, item, widths, children, weights, choice)]  # in place of its parts
        utilities = np.concatenate([np.empty((0, 4)), *self._utilities]) + 0.0  # -0 is 0
        distinct, which = _distinct_rows(utilities)
        earns = kind == KINDS[Utility]
        item = item.copy()
        item[earns] = which[item[earns]]
        return NodeArrays(
            kind, item, np.concatenate([[0], np.cumsum(widths)]), children, weights, choice,
            tuple(self._decisions), tuple(value for _, value in self._values), tuple(self._objects),
            tuple(self._names), distinct,
        )  # fmt: skip

    def build(self, roots: Ints, order: Ints | None = None) -> tuple[Network, Ints]:
        """Return the network below some nodes, and the place in it of each node, -1 if it has none.

        `roots`: the numbers of its roots. `order`: nodes are sorted by it; children must come
        before their parents. By default they are in the order in which they were added [nodes].
        """
        arrays = self.arrays()
        order = np.arange(len(arrays)) if order is None else order
        arrays, place = _merged(arrays, roots, order)
        return Network(NodeViews(arrays), tuple(place[roots].tolist())), place


def _merged(arrays: NodeArrays, roots: Ints, order: Ints) -> tuple[NodeArrays, Ints]:
    """Return the nodes that roots reach, equal nodes once, and the place of each node, -1 if none.

    Of equal nodes the one that comes first in the order is kept.
    """
    reached = arrays.below(roots)
    same = np.arange(len(arrays))  # [nodes], the equal node that is kept
    leaves = np.flatnonzero(np.diff(arrays.starts) == 0)
    for level in (leaves, *arrays.levels):
        level = level[reached[level]]
        level = level[np.argsort(order[level], kind="stable")]
        same[level] = _first_equal(arrays, level, same)
    kept = np.flatnonzero(reached & (same == np.arange(len(arrays))))
    kept = kept[np.argsort(order[kept], kind="stable")]
    place = np.full(len(arrays), -1)
    place[kept] = np.arange(len(kept))
    place = np.where(reached, place[same], -1)
    edges, _ = arrays.edges_of(kept)
    starts = np.concatenate([[0], np.cumsum(np.diff(arrays.starts)[kept])])
    return replace(
        arrays, kind=arrays.kind[kept], item=arrays.item[kept], starts=starts,
        children=place[arrays.children[edges]], weights=arrays.weights[edges],
        choice=arrays.choice[edges],
    ), place  # fmt: skip


def _first_equal(arrays: NodeArrays, nodes: Ints, same: Ints) -> Ints:  # [nodes]
    """Return the first of some nodes that each is equal to, given what their children are equal to.

    Nodes are compared with the first one of the same hash, so that a hash need not be unique.
    """
    found = nodes.copy()
    left = np.arange(len(nodes))
    keys = _hashes(arrays, nodes, same)
    while len(left):
        _, first, which = np.unique(keys[left], return_index=True, return_inverse=True)
        other = nodes[left[first[which.ravel()]]]
        equal = _are_equal(arrays, nodes[left], other, same)
        found[left[equal]] = other[equal]
        left = left[~equal]
    return found


def _hashes(arrays: NodeArrays, nodes: Ints, same: Ints) -> NDArray[np.uint64]:  # [nodes]
    widths = np.diff(arrays.starts)[nodes]
    found = _mixed(arrays.item[nodes] * 64 + arrays.kind[nodes]) + widths.astype(np.uint64)
    if widths.any():
        edges, first = ranges(arrays.starts[nodes], arrays.starts[nodes + 1])
        place = edges - np.repeat(arrays.starts[nodes], widths)
        each = _mixed(same[arrays.children[edges]] * 1024 + place % 1024)
        each ^= _mixed(arrays.weights[edges].view(np.int64) + arrays.choice[edges])
        full = widths > 0
        found[full] += np.add.reduceat(_mixed(each.view(np.int64)), first[:-1][full])
    return found


def _mixed(numbers: Ints) -> NDArray[np.uint64]:
    """Return integers whose bits all depend on all bits of the given ones (SplitMix64)."""
    bits = numbers.astype(np.int64).view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)))


def _are_equal(
    arrays: NodeArrays, one: Ints, other: Ints, same: Ints
) -> NDArray[np.bool_]:  # [nodes]
    """Return which nodes are equal to others, given what their children are equal to."""
    widths = np.diff(arrays.starts)
    equal = arrays.kind[one] == arrays.kind[other]
    equal &= (arrays.item[one] == arrays.item[other]) & (widths[one] == widths[other])
    look = np.flatnonzero(equal & (one != other) & (widths[one] > 0))
    if len(look):
        mine, first = arrays.edges_of(one[look])
        theirs, _ = arrays.edges_of(other[look])
        fits = same[arrays.children[mine]] == same[arrays.children[theirs]]
        fits &= arrays.weights[mine] == arrays.weights[theirs]
        fits &= arrays.choice[mine] == arrays.choice[theirs]
        equal[look] = np.logical_and.reduceat(fits, first)
    return np.asarray(equal)


def _distinct_rows(rows: Array) -> tuple[Array, Ints]:
    """Return the distinct rows of a table, and which of them each row is."""
    order = np.lexsort(rows.T[::-1])
    new = np.append(True, (np.diff(rows[order], axis=0) != 0).any(axis=1))[: len(rows)]
    which = np.empty(len(rows), dtype=np.int64)
    which[order] = np.cumsum(new) - 1
    return rows[order[new]], which
