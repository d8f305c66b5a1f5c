"""Networks: nodes in a tuple, children before parents, shared parts stored once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from rspmn.circuit.distributions import Distribution
from rspmn.circuit.latent_factors import LatentFactors
from rspmn.circuit.node_arrays import NodeArrays, NodeViews, arrays_of
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
from rspmn.errors import CircuitError, MissingExtraError
from rspmn.values import Mark, Value

if TYPE_CHECKING:
    from rspmn.circuit.scope import Scope


V = TypeVar("V", bound=Value)

#: Networks of more nodes do not draw themselves in notebooks.
MOST_SHOWN = 120


def value_type(value: Value) -> str:
    """Return whether a value is text or a number, in a word for messages."""
    return "text" if isinstance(value, str) else "numbers"


@dataclass(frozen=True)
class Network:
    """A directed acyclic graph of nodes with one or several roots.

    A single root makes it an SPN or SPMN; a template has one root per interface node.
    """

    nodes: Sequence[Node]  # a tuple or, of arrays, `NodeViews`; children before their parents
    roots: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.roots:
            raise CircuitError("Network: expected at least one root, found none")
        if isinstance(self.nodes, NodeViews):
            self.nodes.arrays.refuse_faults(self.roots)
            return
        used = bytearray(len(self.nodes))
        for root in self.roots:
            if not 0 <= root < len(self.nodes):
                raise CircuitError(f"Network: root {root}, but there are {len(self.nodes)} nodes")
            used[root] = 1
        for index in range(len(self.nodes) - 1, -1, -1):
            if not used[index]:
                raise CircuitError(
                    f"Network: node {index} ({type(self.nodes[index]).__name__}) "
                    "is not reached from any root"
                )
            for child in self.nodes[index].children:
                if not 0 <= child < index:
                    raise CircuitError(
                        f"Network: node {index} ({type(self.nodes[index]).__name__}) has child "
                        f"{child}, but children must come before their parents"
                    )
                used[child] = 1

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"Network({len(self.nodes)} nodes, {self.num_edges} edges, roots {self.roots})"

    @property
    def root(self) -> int:
        """Return the root of a network that has only one."""
        if len(self.roots) != 1:
            raise CircuitError(f"Network: expected a single root, found {len(self.roots)}")
        return self.roots[0]

    @property
    def num_edges(self) -> int:
        """Return the number of edges, which an evaluation takes time in proportion to."""
        if isinstance(self.nodes, NodeViews):
            return len(self.nodes.arrays.children)
        return sum(len(node.children) for node in self.nodes)

    @cached_property
    def arrays(self) -> NodeArrays:
        """The nodes as arrays."""
        return self.nodes.arrays if isinstance(self.nodes, NodeViews) else arrays_of(self.nodes)

    @cached_property
    def scopes(self) -> "list[Scope]":
        """The scope of every node (Def. 1)."""
        from rspmn.circuit.scope import compute_scopes

        return compute_scopes(self)

    @cached_property
    def checked(self) -> dict[str, Any]:
        """What checks of validity have found, so that a network is checked once."""
        return {}

    @cached_property
    def value_types(self) -> "dict[str, frozenset[str]]":
        """Whether the values of each variable and decision are numbers or text."""
        types: dict[str, set[str]] = {}
        for node in self.nodes:
            match node:
                case Max(decision=name, values=values):
                    pass
                case Leaf(variable=name):
                    values = node.distribution.support()
                case _:
                    continue
            found = {value_type(value) for value in values if not isinstance(value, Mark)}
            types.setdefault(name, set()).update(found)
        return {name: frozenset(found) for name, found in types.items()}

    @cached_property
    def utilities(self) -> frozenset[str]:
        """The utilities."""
        return frozenset(node.variable for node in self.nodes if isinstance(node, Utility))

    def part(self, roots: "Sequence[int]") -> "Network":
        """Return what is below some nodes, which become its roots."""
        builder = NetworkBuilder()
        placed: dict[int, int] = {}
        for index in sorted(_below(self, roots)):  # children come before their parents
            node = self.nodes[index]
            children = tuple(placed[child] for child in node.children)
            placed[index] = builder.add(with_children(node, children))
        return builder.build(*(placed[root] for root in roots))

    def dot(self) -> str:
        """Return the picture as Graphviz text."""
        from rspmn.circuit.draw import dot

        return dot(self)

    def svg(self) -> str:
        """Return the picture as SVG text; needs `rspmn[plot]`."""
        from rspmn.circuit.draw import render

        return render(self, "svg").decode()

    def _repr_svg_(self) -> str | None:  # None: too large to be read, or without matplotlib
        if len(self) > MOST_SHOWN:
            return None
        try:
            return self.svg()
        except (CircuitError, MissingExtraError):
            return None

    def png(self) -> bytes:
        """Return the picture as PNG; needs `rspmn[plot]`."""
        from rspmn.circuit.draw import render

        return render(self, "png")


def _below(network: Network, roots: "Sequence[int]") -> set[int]:
    """Return some nodes and all below them."""
    found, waiting = set(roots), list(roots)
    for index in waiting:
        new = set(network.nodes[index].children) - found
        found |= new
        waiting += new
    return found


class NetworkBuilder:
    """Builds a network from the leaves up; equal nodes are stored once.

    >>> b = NetworkBuilder()
    >>> b.utility("u", 1.0) == b.utility("u", 1.0)
    True
    """

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._index: dict[Node, int] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, index: int) -> Node:
        return self._nodes[index]

    def copy(self) -> "NetworkBuilder":
        """Return a builder with the same nodes."""
        found = NetworkBuilder()
        found._nodes, found._index = self._nodes.copy(), self._index.copy()
        return found

    def add(self, node: Node) -> int:
        """Return the index of this node, adding it if it is new."""
        size = len(self._nodes)
        for child in node.children:
            if not 0 <= child < size:
                raise CircuitError(
                    f"{type(node).__name__}: child {child}, but {size} nodes were added"
                )
        place = self._index.setdefault(node, size)
        if place == size:
            self._nodes.append(node)
        return place

    def sum(self, children: Sequence[int], weights: Sequence[float]) -> int:
        """Add a sum node."""
        return self.add(Sum(tuple(children), tuple(weights)))

    def product(self, children: Sequence[int]) -> int:
        """Add a product node."""
        return self.add(Product(tuple(children)))

    def max(self, decision: str, branches: Mapping[V, int]) -> int:
        """Add a max node with a child for each value of the decision."""
        return self.add(Max(decision, tuple(branches), tuple(branches.values())))

    def leaf(self, variable: str, distribution: Distribution) -> int:
        """Add the distribution of a variable."""
        return self.add(Leaf(variable, distribution))

    def utility(self, variable: str, mean: float, count: float = 0.0, variance: float = 0.0) -> int:
        """Add a utility."""
        return self.add(Utility(variable, mean, count, variance))

    def latent(self, interface: int) -> int:
        """Add the link to an interface node of the next step."""
        return self.add(Latent(interface))

    def factored_latents(self, factors: LatentFactors, rows: Sequence[int]) -> int:
        """Add links to all interface nodes of the next step, weighed by factors."""
        return self.add(FactoredLatents(factors, tuple(rows)))

    def build(self, *roots: int) -> Network:
        """Return the network below `roots`, without what they do not reach."""
        used = bytearray(len(self._nodes))
        for root in roots:
            if not 0 <= root < len(self._nodes):
                raise CircuitError(f"build: root {root}, but {len(self._nodes)} nodes were added")
            used[root] = 1
        for index in range(len(self._nodes) - 1, -1, -1):
            if used[index]:
                for child in self._nodes[index].children:
                    used[child] = 1
        if all(used):
            return Network(tuple(self._nodes), tuple(roots))
        place: dict[int, int] = {}
        kept: list[Node] = []
        for index, node in enumerate(self._nodes):
            if used[index]:
                place[index] = len(kept)
                kept.append(with_children(node, tuple(place[c] for c in node.children)))
        return Network(tuple(kept), tuple(place[root] for root in roots))


def with_children(node: Node, children: tuple[int, ...]) -> Node:
    """Return the same node with as many other children; nothing else of it is checked again."""
    if children == node.children:
        return node
    if len(children) != len(node.children):
        kind = type(node).__name__
        raise CircuitError(f"{kind}: {len(node.children)} children, not {len(children)}")
    found = object.__new__(type(node))
    for name in node.__slots__:
        object.__setattr__(found, name, getattr(node, name))
    object.__setattr__(found, "children", children)
    return found
