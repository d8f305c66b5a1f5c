"""Where to draw nodes: parents above children, small shared parts drawn once for each parent.

A network shares its parts, but a picture in which every edge to a shared leaf is drawn is
unreadable; the paper's figures repeat them too. Larger parts that are shared stay shared.
"""

from dataclasses import dataclass
from typing import NamedTuple

from rspmn.circuit.network import Network
from rspmn.circuit.nodes import Max, Node, Sum
from rspmn.circuit.traverse import fold_up, walk_down
from rspmn.values import show

#: A shared part of at most so many nodes is drawn again for each of its parents.
MOST_REPEATED = 6


@dataclass
class Place:
    """One drawn node."""

    index: int  # in the network
    node: Node
    layer: int  # 0 at the top
    x: float = 0.0  # of its centre, in widths of a leaf


@dataclass(frozen=True)
class Edge:
    """One drawn edge, between two places, with the weight or decision on it."""

    parent: int
    child: int
    label: str


@dataclass(frozen=True)
class Drawing:
    """What to draw where."""

    places: list[Place]
    edges: list[Edge]
    roots: list[int]  # the place of each root


class _Arrival(NamedTuple):
    """What a node is told by a parent that was drawn: where it stands and what strip it gives."""

    parent: int  # a place, or ABOVE
    label: str
    layer: int
    left: float | None  # of the child's strip; None where another parent claims the child


#: The parent of the roots.
ABOVE = -1


def lay_out(network: Network) -> Drawing:
    """Give every node a strip of the picture, its children's strips side by side below it.

    A node that is repeated has a strip in each of its parents'; a shared one has it in that of
    the parent that claims it.
    """
    repeated = [size <= MOST_REPEATED for size in fold_up(network, _size)]
    owner = _owners(network)
    width = _widths(network, repeated, owner)
    drawing = Drawing([], [], [])

    def draw(
        index: int, node: Node, above: list[_Arrival], left: float
    ) -> list[tuple[int, _Arrival]]:
        """Draw a node once, with edges from all of `above`; return what to tell its children."""
        layer = max(arrival.layer for arrival in above)
        drawing.places.append(Place(index, node, layer, left + width[index] / 2))
        here = len(drawing.places) - 1
        drawing.edges.extend(Edge(a.parent, here, a.label) for a in above if a.parent != ABOVE)
        onward = []
        for child, label in _merged(node):
            gives = repeated[child] or owner[child] == index
            onward.append((child, _Arrival(here, label, layer + 1, left if gives else None)))
            left += width[child] if gives else 0.0
        return onward

    def send(index: int, node: Node, above: list[_Arrival]) -> list[tuple[int, _Arrival]]:
        lefts = [arrival.left for arrival in above if arrival.left is not None]
        if not repeated[index]:
            return draw(index, node, above, lefts[0])
        return [
            m for a, left in zip(above, lefts, strict=True) for m in draw(index, node, [a], left)
        ]

    starts: dict[int, _Arrival] = {}
    edge = 0.0
    for root in dict.fromkeys(network.roots):
        starts[root] = _Arrival(ABOVE, "", 0, edge)
        edge += width[root]
    walk_down(network, starts, send)
    place = {p.index: number for number, p in reversed([*enumerate(drawing.places)])}
    drawing.roots.extend(place[root] for root in network.roots)
    _centre(drawing, repeated, owner)
    return drawing


def _size(node: Node, below: list[int]) -> int:
    """Count the nodes that drawing a part again would draw; large is large."""
    distinct = dict(zip(node.children, below, strict=True))
    return min(1 + sum(distinct.values()), MOST_REPEATED + 1)


def _owners(network: Network) -> dict[int, int]:
    """Return the parent that claims each node, ABOVE for the roots."""
    arrived = walk_down(
        network,
        dict.fromkeys(network.roots, ABOVE),
        lambda index, node, _: [(child, index) for child in node.children],
    )
    return {index: parents[0] for index, parents in arrived.items()}


def _widths(network: Network, repeated: list[bool], owner: dict[int, int]) -> list[float]:
    """Return how wide each node's strip is, in widths of a leaf."""
    widths: list[float] = []
    for index, node in enumerate(network.nodes):
        below = dict.fromkeys(node.children)
        parts = [widths[child] for child in below if repeated[child] or owner[child] == index]
        widths.append(max(1.0, sum(parts)))
    return widths


def _centre(drawing: Drawing, repeated: list[bool], owner: dict[int, int]) -> None:
    """Move every inner node to the middle of what stands below it in its own strip."""
    places = drawing.places
    below: dict[int, list[int]] = {}
    for edge in drawing.edges:
        child = places[edge.child].index
        if repeated[child] or owner[child] == places[edge.parent].index:
            below.setdefault(edge.parent, []).append(edge.child)
    for parent in sorted(below, key=lambda place: -places[place].layer):
        xs = [places[child].x for child in below[parent]]
        places[parent].x = (min(xs) + max(xs)) / 2


def _merged(node: Node) -> list[tuple[int, str]]:
    """Return the children and their edges' labels, edges to one child joined."""
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
