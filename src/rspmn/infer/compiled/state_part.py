"""What a template says of states: the part before the first decision, and it as mixtures."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.circuit import FactoredLatents, Latent, Leaf, Max, Network, Product, Sum, Utility
from rspmn.circuit.blocks import BlockBuilder
from rspmn.circuit.node_arrays import KINDS, NodeArrays, ranges
from rspmn.types import Array, Bools, Ints

#: Mixtures of more products than this are not expanded.
MOST_PRODUCTS = 200_000


def state_part(template: Network, roots: Sequence[Sequence[int]] | None = None) -> Network:
    """Return the distribution, in each root, of what is known before the first decision.

    `roots` are the children of each root, where the template has none of its own yet.
    """
    arrays, builder = template.arrays, BlockBuilder()
    empty, product = _says_nothing(arrays), KINDS[Product]
    one = builder.products(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64))
    number = np.where(empty, one, len(builder) + np.arange(len(arrays)))
    kind, item = np.where(empty, product, arrays.kind), np.zeros(len(arrays), dtype=np.int64)
    leaves = arrays.of_kind(Leaf)
    item[leaves] = builder.object_items(arrays.objects[k] for k in arrays.item[leaves].tolist())
    parent, child = arrays.parents, arrays.children
    kept = np.flatnonzero(~empty[parent] & ~((kind[parent] == product) & empty[child]))
    widths = np.bincount(parent[kept], minlength=len(arrays))
    builder.add(kind, item, widths, number[child[kept]], arrays.weights[kept])
    if roots is None:
        return _without_equal_children(builder.build(number[list(template.roots)])[0])
    below = [[child for child in children if not empty[child]] for children in roots]
    flat = np.array([child for children in below for child in children], dtype=np.int64)
    made = builder.products(np.array(list(map(len, below))), number[flat])
    return _without_equal_children(builder.build(made)[0])


def _says_nothing(arrays: NodeArrays) -> Bools:  # [nodes]
    """Return which nodes say nothing of the state: decisions, and what is earned and follows."""
    after = [KINDS[kind] for kind in (Max, Utility, Latent, FactoredLatents)]
    found: Bools = np.isin(arrays.kind, after)
    found |= (arrays.kind == KINDS[Product]) & (np.diff(arrays.starts) == 0)
    return arrays.fold_up(found, dict.fromkeys((Sum, Product), np.logical_and))


def _without_equal_children(network: Network) -> Network:
    """Return a network in which sums whose children are all the same node are that node."""
    arrays, number = network.arrays, np.arange(len(network))
    sums = arrays.of_kind(Sum)
    if not len(sums):
        return network
    edges, first = arrays.edges_of(sums)
    below = arrays.children[edges]
    least = np.minimum.reduceat(below, first)
    alike = least == np.maximum.reduceat(below, first)
    if not alike.any():
        return network
    number[sums[alike]] = least[alike]
    builder = BlockBuilder()
    builder.add(
        arrays.kind, builder.items(arrays), np.diff(arrays.starts), number[arrays.children],
        arrays.weights,
    )  # fmt: skip
    return _without_equal_children(builder.build(number[list(network.roots)])[0])


@dataclass(frozen=True, eq=False)
class LeafProducts:
    """Nodes as mixtures of products of leaves, those of each node next to each other."""

    starts: Ints  # [nodes + 1], the first product of each node
    weight: Array  # [products]
    leaf: Ints  # [products, variables], the leaf of each variable; -1 for none


def products_below(network: Network, nodes: Ints, names: Sequence[str]) -> LeafProducts | None:
    """Return the products of leaves of some variables that nodes are mixtures of.

    None if they are too many.

    >>> from rspmn.circuit import Categorical, NetworkBuilder
    >>> b = NetworkBuilder()
    >>> x, y = (b.leaf("x", Categorical.certain(k)) for k in (0, 1))
    >>> network = b.build(b.sum([x, y], [0.25, 0.75]))
    >>> found = products_below(network, np.array(network.roots), ["x"])
    >>> found.weight, found.leaf.ravel()
    (array([0.25, 0.75]), array([0, 1]))
    """
    arrays = network.arrays
    below = arrays.below(nodes)
    levels = [level[below[level]] for level in arrays.levels]
    if _numbers_of_products(arrays, levels)[nodes].sum() > MOST_PRODUCTS:
        return None
    table = _Expansion(arrays, np.flatnonzero(below & (arrays.kind == KINDS[Leaf])), names)
    for level in levels:
        table.add_sums(level[arrays.kind[level] == KINDS[Sum]])
        table.add_products(level[arrays.kind[level] == KINDS[Product]])
    rows, starts = ranges(table.start[nodes], table.stop[nodes])
    return LeafProducts(starts, table.weight[rows], table.leaf[rows])


def _numbers_of_products(arrays: NodeArrays, levels: Sequence[Ints]) -> Array:  # [nodes]
    """Return how many products there are in nodes of some levels and leaves."""
    found = np.ones(len(arrays))
    for level in levels:
        for kind, combine in {Sum: np.add, Product: np.multiply}.items():
            here = level[arrays.kind[level] == KINDS[kind]]
            edges, first = arrays.edges_of(here)
            if len(here):
                found[here] = combine.reduceat(found[arrays.children[edges]], first)
    return found


class _Expansion:
    """Products of leaves as rows, the first of which is the empty product."""

    def __init__(self, arrays: NodeArrays, leaves: Ints, names: Sequence[str]) -> None:
        self.arrays = arrays
        place = {name: k for k, name in enumerate(names)}
        objects = [arrays.objects[k] for k in arrays.item[leaves].tolist()]
        variable = [place[leaf.variable] for leaf in objects if isinstance(leaf, Leaf)]
        row = 1 + np.arange(len(leaves))
        self.weight = np.ones(1 + len(leaves))
        self.leaf = np.full((1 + len(leaves), len(names)), -1)
        self.leaf[row, variable] = leaves
        self.start = np.zeros(len(arrays), dtype=np.int64)  # [nodes]; of nothing, the first row
        self.stop = np.ones(len(arrays), dtype=np.int64)  # [nodes]
        self.start[leaves], self.stop[leaves] = row, row + 1

    def add_sums(self, nodes: Ints) -> None:
        """Add sums, given what is below them."""
        arrays = self.arrays
        edges, _ = arrays.edges_of(nodes)
        edges = edges[arrays.weights[edges] > 0]
        child = arrays.children[edges]
        rows, first = ranges(self.start[child], self.stop[child])
        edge = np.repeat(edges, np.diff(first))
        number = np.searchsorted(nodes, arrays.parents[edge])
        self._add(nodes, number, arrays.weights[edge] * self.weight[rows], self.leaf[rows])

    def add_products(self, nodes: Ints) -> None:
        """Add products: each row of a child with each row of those before it."""
        arrays, widths = self.arrays, np.diff(self.arrays.starts)[nodes]
        number, weight = np.arange(len(nodes)), np.ones(len(nodes))
        leaf = np.full((len(nodes), self.leaf.shape[1]), -1)
        for k in range(int(widths.max(initial=0))):
            child = arrays.children[arrays.starts[nodes] + np.minimum(k, widths - 1)]
            start = np.where(k < widths, self.start[child], 0)[number]
            stop = np.where(k < widths, self.stop[child], 1)[number]
            rows, first = ranges(start, stop)
            before = np.repeat(np.arange(len(number)), np.diff(first))
            number, weight = number[before], weight[before] * self.weight[rows]
            leaf = np.maximum(leaf[before], self.leaf[rows])
        self._add(nodes, number, weight, leaf)

    def _add(self, nodes: Ints, number: Ints, weight: Array, leaf: Ints) -> None:
        """Add rows, sorted by the number of their node."""
        first = len(self.weight)
        self.start[nodes] = first + np.searchsorted(number, np.arange(len(nodes)))
        self.stop[nodes] = first + np.searchsorted(number, np.arange(len(nodes)), side="right")
        self.weight = np.concatenate([self.weight, weight])
        self.leaf = np.concatenate([self.leaf, leaf])
