"""The nodes of a network as arrays, and nodes that are made when they are asked for.

A template of many states has a million nodes. To make, check and copy an object for each takes most
of the time of learning; arrays do it for all at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from rspmn.circuit.distributions.base import SIMPLEX_TOLERANCE
from rspmn.circuit.nodes import (
    FactoredLatents,
    Latent,
    Leaf,
    Max,
    Node,
    Product,
    Sum,
    Utility,
)
from rspmn.errors import CircuitError
from rspmn.types import Array, Bools, Ints
from rspmn.values import LARGEST_UTILITY, MOST_STEPS, Value

N = TypeVar("N", bound=Node)
A = TypeVar("A", bound=NDArray[Any])

#: The code of each kind of node.
KINDS: dict[type, int] = {
    Leaf: 0, Utility: 1, Latent: 2, Product: 3, Sum: 4, Max: 5, FactoredLatents: 6,
}  # fmt: skip


def ranges(starts: Ints, stops: Ints) -> tuple[Ints, Ints]:
    """Return the integers of some ranges, concatenated, and the offset of each range [n + 1].

    >>> ranges(np.array([3, 7]), np.array([5, 10]))
    (array([3, 4, 7, 8, 9]), array([0, 2, 5]))
    """
    counts = stops - starts
    first = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=first[1:])
    return np.arange(first[-1]) + np.repeat(starts - first[:-1], counts), first


@dataclass(frozen=True, eq=False)
class NodeArrays:
    """Nodes and edges; edges are sorted by parent, then as its children are."""

    kind: Ints  # [nodes], a code of KINDS
    #: [nodes]. Of a latent its interface node, of a max node the place of its decision in
    #: `decisions`, of a utility the row of `utilities`, of a leaf or factored latents the place in
    #: `objects`; 0 of sums and products.
    item: Ints
    starts: Ints  # [nodes + 1]; node i has the edges starts[i]:starts[i + 1]
    children: Ints  # [edges]
    weights: Array  # [edges]; 1 except below sums
    choice: Ints  # [edges], the place of the value in `values`; -1 except below max nodes
    decisions: tuple[str, ...]
    values: tuple[Value, ...]  # of all decisions
    objects: tuple[Leaf | FactoredLatents, ...]
    names: tuple[str, ...]  # of utilities
    utilities: Array  # [utilities, 4], the place of the name in `names`, mean, count, variance

    def __len__(self) -> int:
        return len(self.kind)

    def of_kind(self, kind: type) -> Ints:
        """Return the nodes of a kind."""
        return np.flatnonzero(self.kind == KINDS[kind])

    def item_of(self, kind: type) -> Ints:
        """Return the items of the nodes of a kind."""
        return self.item[self.of_kind(kind)]

    def edges_of(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return the edges of some nodes, concatenated, and the first edge of each node."""
        edges, first = ranges(self.starts[nodes], self.starts[nodes + 1])
        return edges, first[:-1]

    @cached_property
    def parents(self) -> Ints:  # [edges]
        """The parent of each edge."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def linear(self) -> Any:  # scipy.sparse, [nodes, nodes]
        """Return the weights below sums and products as a matrix; other rows are empty."""
        from scipy.sparse import csr_array

        adds = (self.kind == KINDS[Product]) | (self.kind == KINDS[Sum])
        edges, _ = self.edges_of(np.flatnonzero(adds))
        pointers = np.concatenate([[0], np.cumsum(np.where(adds, np.diff(self.starts), 0))])
        entries = self.weights[edges], self.children[edges], pointers
        return csr_array(entries, shape=(len(self), len(self)))

    def heights(self, kinds: Sequence[type] = (Product, Sum, Max)) -> Ints:  # [nodes]
        """Return the most nodes of some kinds on a way down from each node, itself included."""
        counted = np.isin(self.kind, [KINDS[kind] for kind in kinds]).astype(np.int64)
        height = np.zeros(len(self.kind), dtype=np.int64)
        for level in self.levels:
            edges, first = self.edges_of(level)
            height[level] = np.maximum.reduceat(height[self.children[edges]], first)
            height[level] += counted[level]
        return height

    @cached_property
    def levels(self) -> list[Ints]:
        """The nodes that have children, by the most such nodes on a way down, the lowest first."""
        left = np.flatnonzero(np.diff(self.starts) > 0)
        is_left, found = np.zeros(len(self.kind), dtype=bool), []
        is_left[left] = True
        while len(left):  # those above others that are left are higher
            edges, first = self.edges_of(left)
            higher = np.logical_or.reduceat(is_left[self.children[edges]], first)
            found.append(left[~higher])
            is_left[found[-1]] = False
            left = left[higher]
        return found

    def fold_up(
        self, found: A, combine: Mapping[type, np.ufunc], taken: Bools | None = None
    ) -> A:  # [nodes]
        """Set what nodes have by what their children have, as `rspmn.circuit.traverse.fold_up`.

        `found` [nodes] is changed; nodes of kinds that are not combined keep what they have there.
        Children along edges that are not `taken` [edges] count as 0.
        """
        for level in self.levels:
            for kind, reduce in combine.items():
                here = level[self.kind[level] == KINDS[kind]]
                if len(here):
                    edges, first = self.edges_of(here)
                    below = found[self.children[edges]]
                    if taken is not None:
                        below = np.where(taken[edges], below, 0)
                    found[here] = reduce.reduceat(below, first)
        return found

    def below(self, nodes: Ints) -> Bools:  # [nodes]
        """Return which nodes are among some nodes or below them."""
        found = np.zeros(len(self), dtype=bool)
        found[nodes] = True
        here = np.flatnonzero(found)
        while len(here):
            new = np.zeros(len(self), dtype=bool)
            new[self.children[self.edges_of(here)[0]]] = True
            here = np.flatnonzero(new & ~found)
            found[here] = True
        return found

    def refuse_faults(self, roots: Sequence[int]) -> None:
        """Refuse what no network is: see `Network` and its nodes for the same checks one by one."""
        size, reached = len(self), np.zeros(len(self), dtype=bool)
        if not size or not 0 <= min(roots) <= max(roots) < size:
            raise CircuitError(f"Network: a root is not among the {size} nodes")
        later = (self.children >= self.parents) | (self.children < 0)
        _refuse(later, self.parents, "has a child that does not come before it")
        reached[list(roots)], reached[self.children] = True, True
        _refuse(~reached, np.arange(size), "is not reached from any root")
        widths = np.diff(self.starts)
        mixes = np.isin(self.kind, [KINDS[Sum], KINDS[Max]])
        _refuse(mixes & (widths == 0), np.arange(size), "has no children")
        light = ~((self.weights >= 0) & (self.weights <= 1 + SIMPLEX_TOLERANCE))
        _refuse(light, self.parents, "has a weight that is no probability")
        sums = np.flatnonzero(self.kind == KINDS[Sum])
        edges, first = self.edges_of(sums)
        total = np.add.reduceat(self.weights[edges], first) if len(sums) else np.ones(0)
        _refuse(abs(total - 1) > SIMPLEX_TOLERANCE, sums, "has weights that do not sum to 1")
        chosen = np.flatnonzero(self.choice >= 0)
        codes: dict[Value, int] = {}  # 1 and True are one value
        same = np.array([codes.setdefault(v, len(codes)) for v in self.values], dtype=np.int64)
        key = np.sort(self.parents[chosen] * max(1, len(codes)) + same[self.choice[chosen]])
        if (key[1:] == key[:-1]).any():
            raise CircuitError("Max: a value has several branches")
        least = np.array([-LARGEST_UTILITY, 0.0, 0.0])
        most = np.array([LARGEST_UTILITY, MOST_STEPS, LARGEST_UTILITY**2])
        fits = (self.utilities[:, 1:] >= least) & (self.utilities[:, 1:] <= most)
        for name, *numbers in self.utilities[~fits.all(axis=1)][:1].tolist():
            Utility(self.names[int(name)], *numbers)  # says what is wrong with it


def _refuse(faulty: Bools, nodes: Ints, what: str) -> None:
    """Raise an error about the first of some nodes that is faulty, if one is."""
    if faulty.any():
        raise CircuitError(f"Network: node {int(nodes[int(faulty.argmax())])} {what}")


def arrays_of(nodes: Sequence[Node]) -> NodeArrays:
    """Return nodes as arrays."""
    kind = np.array([KINDS[type(node)] for node in nodes], dtype=np.int64)
    widths = np.fromiter((len(node.children) for node in nodes), np.int64, len(nodes))
    starts = np.concatenate([[0], np.cumsum(widths)])
    edges = int(starts[-1])
    children = np.fromiter(chain.from_iterable(n.children for n in nodes), np.int64, edges)
    item, weights, choice = np.zeros(len(nodes), np.int64), np.ones(edges), np.full(edges, -1)
    decisions: dict[str, int] = {}
    values: dict[tuple[type, Value], int] = {}
    names: dict[str, int] = {}
    objects: list[Leaf | FactoredLatents] = []
    utilities: list[tuple[float, ...]] = []
    for index, node in enumerate(nodes):
        match node:
            case Sum():
                weights[starts[index] : starts[index + 1]] = node.weights
            case Max():
                item[index] = decisions.setdefault(node.decision, len(decisions))
                choice[starts[index] : starts[index + 1]] = [
                    values.setdefault(value, len(values))
                    for value in zip(node.types, node.values, strict=True)
                ]
            case Latent():
                item[index] = node.interface
            case Utility():
                item[index] = len(utilities)
                name = names.setdefault(node.variable, len(names))
                utilities.append((name, node.mean, node.count, node.variance))
            case Leaf() | FactoredLatents():
                item[index] = len(objects)
                objects.append(node)
            case Product():
                pass
    return NodeArrays(
        kind, item, starts, children, weights, choice, tuple(decisions),
        tuple(value for _, value in values), tuple(objects), tuple(names),
        np.array(utilities, dtype=np.float64).reshape(-1, 4),
    )  # fmt: skip


class NodeViews(Sequence[Node]):
    """The nodes of arrays, made when they are asked for; nothing is checked again."""

    def __init__(self, arrays: NodeArrays) -> None:
        self.arrays = arrays
        self._types = [type(value) for value in arrays.values]

    def __len__(self) -> int:
        return len(self.arrays)

    @overload
    def __getitem__(self, index: int) -> Node: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Node, ...]: ...
    def __getitem__(self, index: int | slice) -> Node | tuple[Node, ...]:
        if isinstance(index, slice) or "_all" in self.__dict__:
            return self._all[index]
        found = range(len(self))[index]
        first, last = self.arrays.starts[found : found + 2].tolist()
        part = slice(first, last)
        arrays = self.arrays
        return self._made(
            int(arrays.kind[found]), int(arrays.item[found]), tuple(arrays.children[part].tolist()),
            arrays.weights[part].tolist(), arrays.choice[part].tolist(),
        )  # fmt: skip

    def __iter__(self) -> Iterator[Node]:
        return iter(self._all)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | NodeViews):
            return NotImplemented
        return self is other or tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(self._all)

    @cached_property
    def _all(self) -> tuple[Node, ...]:
        arrays = self.arrays
        children, weights = arrays.children.tolist(), arrays.weights.tolist()
        choice, starts = arrays.choice.tolist(), arrays.starts.tolist()
        pairs = zip(arrays.kind.tolist(), arrays.item.tolist(), starts, starts[1:], strict=False)
        return tuple(
            self._made(kind, item, tuple(children[a:b]), weights[a:b], choice[a:b])
            for kind, item, a, b in pairs
        )

    def _made(
        self, kind: int, item: int, children: tuple[int, ...], weights: list[float],
        choice: list[int],
    ) -> Node:  # fmt: skip
        """Make a node."""
        if kind in (KINDS[Leaf], KINDS[FactoredLatents]):
            return self.arrays.objects[item]
        if kind == KINDS[Utility]:
            return self._utilities[item]
        if kind == KINDS[Latent]:
            return unchecked(Latent, interface=item)
        if kind == KINDS[Product]:
            return unchecked(Product, children=children)
        if kind == KINDS[Sum]:
            return unchecked(Sum, children=children, weights=tuple(weights))
        return unchecked(
            Max, decision=self.arrays.decisions[item], children=children,
            values=tuple([self.arrays.values[k] for k in choice]),
            types=tuple([self._types[k] for k in choice]),
        )  # fmt: skip

    @cached_property
    def _utilities(self) -> list[Utility]:
        names = self.arrays.names
        return [
            unchecked(Utility, variable=names[int(name)], mean=mean, count=count, variance=variance)
            for name, mean, count, variance in self.arrays.utilities.tolist()
        ]


def unchecked(kind: type[N], **parts: object) -> N:
    """Return a node of checked parts."""
    found = object.__new__(kind)
    for name, part in parts.items():
        object.__setattr__(found, name, part)
    return found
