"""Where to draw nodes: parents above children, leaves drawn once for each parent.

A network shares its leaves, but a picture in which every edge to a shared leaf is drawn is
unreadable; the paper's figures repeat leaves too. Inner nodes that are shared stay shared.
"""

from dataclasses import dataclass

from rspmn.circuit.network import Network
from rspmn.circuit.nodes import Max, Node, Sum
from rspmn.circuit.traverse import walk_down
from rspmn.values import show

__all__ = ["Drawing", "Edge", "Place", "lay_out"]


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


def lay_out(network: Network) -> Drawing:
    """Give every node a strip of the picture, its children's strips side by side below it.

    A shared inner node stands in the strip of the first parent that claims it.
    """
    layers, owner = _claims(network)
    width = _widths(network, owner)
    places: list[Place] = []
    links: list[tuple[int, int, str]] = []  # (place of the parent, place or ~node, label)
    inner: dict[int, int] = {}  # node -> place

    def send(index: int, node: Node, lefts: list[float]) -> list[tuple[int, float]]:
        left = lefts[0]
        places.append(Place(index, node, layers[index], left + width[index] / 2))
        here = inner[index] = len(places) - 1
        onward = []
        for child, label in _merged(node):
            if not network.nodes[child].children:
                places.append(Place(child, network.nodes[child], layers[index] + 1, left + 0.5))
                links.append((here, len(places) - 1, label))
                left += 1
            else:
                links.append((here, ~child, label))
                if owner[child] == index:
                    onward.append((child, left))
                    left += width[child]
        return onward

    starts: dict[int, float] = {}
    for root in dict.fromkeys(network.roots):
        starts[root] = sum(width[other] for other in starts)
    walk_down(network, starts, send)
    edges = [Edge(a, b if b >= 0 else inner[~b], label) for a, b, label in links]
    _centre(places, [edge for edge in edges if _claimed(places, edge, owner)])
    return Drawing(places, edges, [inner[root] for root in network.roots])


def _claimed(places: list[Place], edge: Edge, owner: dict[int, int]) -> bool:
    parent, child = places[edge.parent], places[edge.child]
    return not child.node.children or owner[child.index] == parent.index


def _centre(places: list[Place], edges: list[Edge]) -> None:
    """Move every inner node to the middle of what stands below it in its own strip."""
    below: dict[int, list[int]] = {}
    for edge in edges:
        below.setdefault(edge.parent, []).append(edge.child)
    for parent in sorted(below, key=lambda place: -places[place].layer):
        xs = [places[child].x for child in below[parent]]
        places[parent].x = (min(xs) + max(xs)) / 2


def _claims(network: Network) -> tuple[dict[int, int], dict[int, int]]:
    """Return each node's layer, one below its lowest parent, and the parent that claims it."""
    root = -1  # claims the roots
    arrived = walk_down(
        network,
        dict.fromkeys(network.roots, (0, root)),
        lambda index, node, above: [
            (child, (max(layer for layer, _ in above) + 1, index)) for child in node.children
        ],
    )
    layers = {index: max(layer for layer, _ in above) for index, above in arrived.items()}
    return layers, {index: above[0][1] for index, above in arrived.items()}


def _widths(network: Network, owner: dict[int, int]) -> list[float]:
    """Return how wide each node's strip is, in widths of a leaf."""
    widths: list[float] = []
    for index, node in enumerate(network.nodes):
        below = dict.fromkeys(node.children)
        parts = [
            widths[child] if owner[child] == index or not network.nodes[child].children else 0.0
            for child in below
        ]
        widths.append(max(1.0, sum(parts)))
    return widths


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
