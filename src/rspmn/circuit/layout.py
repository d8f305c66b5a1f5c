"""Where to draw nodes: parents above children, small shared parts repeated for each parent.

In a network shared parts are stored once. A picture with an edge from every parent to one shared
leaf would be unreadable, so small parts are repeated, as in the paper's figures. Larger shared
parts are drawn once.

Every drawn node has a column of the picture, and the columns of its children divide it. A part that
is drawn once has its column inside that of one of its parents, its owner.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from rspmn.circuit.network import Network
from rspmn.circuit.nodes import Max, Node, Sum
from rspmn.circuit.traverse import fold_up, walk_down
from rspmn.values import show

#: A shared part with at most this many nodes is repeated for each of its parents.
MOST_REPEATED = 6
#: The parent of the roots.
ABOVE = -1


@dataclass
class DrawnNode:
    """One drawn node."""

    index: int  # in the network
    node: Node
    layer: int  # 0 at the top
    x: float  # of its centre, in widths of a leaf


@dataclass(frozen=True)
class Line:
    """One drawn edge between two places, labelled with weights or values of the decision."""

    parent: int
    child: int
    label: str


@dataclass(frozen=True)
class Drawing:
    """All nodes and edges with their places."""

    places: list[DrawnNode] = field(default_factory=list)
    edges: list[Line] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)  # the place of each root


def lay_out(network: Network) -> Drawing:
    """Return where to draw each node of a network.

    >>> from rspmn.circuit import NetworkBuilder
    >>> b = NetworkBuilder()
    >>> drawing = lay_out(b.build(b.product([b.utility("u", 1.0), b.latent(0)])))
    >>> [(place.layer, place.x) for place in drawing.places]
    [(0, 1.0), (1, 1.5), (1, 0.5)]
    """
    return _Layout(network).draw()


class _Arrival(NamedTuple):
    """What a drawn parent passes to a child."""

    parent: int  # a place, or ABOVE
    label: str  # of the edge
    layer: int  # of the child
    left: float | None  # where the child's column begins; None where another parent is its owner


class _Layout:
    """A drawing under construction."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.repeated = [size <= MOST_REPEATED for size in fold_up(network, _size)]
        self.owner = _owners(network)
        self.widths = self._widths()
        self.drawing = Drawing()

    def _has_column_in(self, parent: int, child: int) -> bool:
        """Say whether a child's column is inside that of a parent."""
        return self.repeated[child] or self.owner[child] == parent

    def _widths(self) -> list[float]:
        """Return the width of each node's column, in widths of a leaf."""
        widths: list[float] = []
        for index, node in enumerate(self.network.nodes):
            inside = [c for c in dict.fromkeys(node.children) if self._has_column_in(index, c)]
            widths.append(max(1.0, sum(widths[child] for child in inside)))
        return widths

    def draw(self) -> Drawing:
        """Draw all nodes from the roots down, then centre each above its children."""
        starts: dict[int, _Arrival] = {}
        left = 0.0
        for root in dict.fromkeys(self.network.roots):
            starts[root] = _Arrival(ABOVE, "", 0, left)
            left += self.widths[root]
        walk_down(self.network, starts, self._draw_node)
        place_of: dict[int, int] = {}
        for number, place in enumerate(self.drawing.places):
            place_of.setdefault(place.index, number)
        self.drawing.roots.extend(place_of[root] for root in self.network.roots)
        self._centre()
        return self.drawing

    def _draw_node(
        self, index: int, node: Node, above: list[_Arrival]
    ) -> list[tuple[int, _Arrival]]:
        """Draw a node once for each parent if it is repeated, else once for all of them."""
        if not self.repeated[index]:
            left = next(a.left for a in above if a.left is not None)
            return self._draw_once(index, node, above, left)
        return [
            onward
            for arrival in above
            if arrival.left is not None
            for onward in self._draw_once(index, node, [arrival], arrival.left)
        ]

    def _draw_once(
        self, index: int, node: Node, above: list[_Arrival], left: float
    ) -> list[tuple[int, _Arrival]]:
        """Draw a node with edges from some parents; return what it passes to its children."""
        drawing = self.drawing
        layer = max(arrival.layer for arrival in above)
        drawing.places.append(DrawnNode(index, node, layer, left + self.widths[index] / 2))
        here = len(drawing.places) - 1
        drawing.edges.extend(Line(a.parent, here, a.label) for a in above if a.parent != ABOVE)
        onward = []
        for child, label in _labelled_children(node):
            inside = self._has_column_in(index, child)
            onward.append((child, _Arrival(here, label, layer + 1, left if inside else None)))
            left += self.widths[child] if inside else 0.0
        return onward

    def _centre(self) -> None:
        """Move every inner node to the middle of the children in its column."""
        places = self.drawing.places
        below: dict[int, list[int]] = {}
        for edge in self.drawing.edges:
            if self._has_column_in(places[edge.parent].index, places[edge.child].index):
                below.setdefault(edge.parent, []).append(edge.child)
        for parent in sorted(below, key=lambda place: -places[place].layer):
            xs = [places[child].x for child in below[parent]]
            places[parent].x = (min(xs) + max(xs)) / 2


def _size(node: Node, below: list[int]) -> int:
    """Return how many nodes are drawn for a part, at most one more than MOST_REPEATED."""
    distinct = dict(zip(node.children, below, strict=True))
    return min(1 + sum(distinct.values()), MOST_REPEATED + 1)


def _owners(network: Network) -> dict[int, int]:
    """Return the first parent of each node, ABOVE for the roots."""
    arrived = walk_down(
        network,
        dict.fromkeys(network.roots, ABOVE),
        lambda index, node, _: [(child, index) for child in node.children],
    )
    return {index: parents[0] for index, parents in arrived.items()}


def _labelled_children(node: Node) -> list[tuple[int, str]]:
    """Return the distinct children, each with the labels of all edges to it."""
    if isinstance(node, Sum):
        labels = [show(round(weight, 3)) for weight in node.weights]
    elif isinstance(node, Max):
        labels = [show(value) for value in node.values]
    else:
        labels = [""] * len(node.children)
    joined: dict[int, list[str]] = {}
    for child, label in zip(node.children, labels, strict=True):
        joined.setdefault(child, []).append(label)
    return [(child, ", ".join(filter(None, several))) for child, several in joined.items()]
