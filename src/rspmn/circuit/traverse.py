"""The two traversals of a network: up from the leaves, and down from the roots."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from rspmn.circuit.network import Network
from rspmn.circuit.nodes import Node

T = TypeVar("T")
M = TypeVar("M")


def fold_up(network: Network, combine: Callable[[Node, list[T]], T]) -> list[T]:
    """Compute a value of every node from those of its children; each node is visited once.

    >>> from rspmn.circuit import NetworkBuilder
    >>> b = NetworkBuilder()
    >>> net = b.build(b.product([b.utility("u", 1.0), b.latent(0)]))
    >>> fold_up(net, lambda node, below: 1 + max(below, default=0))   # height
    [1, 1, 2]
    """
    values: list[T] = []
    for node in network.nodes:
        values.append(combine(node, [values[child] for child in node.children]))
    return values


def walk_down(
    network: Network,
    starts: Mapping[int, M],
    send: Callable[[int, Node, list[M]], Iterable[tuple[int, M]]],
) -> dict[int, list[M]]:
    """Pass messages from parents to children; each node is visited once, after all its parents.

    Parameters
    ----------
    network
        The network.
    starts
        A message for each node to start at.
    send
        `send(index, node, arrived)` is called with all messages that arrived at a node and returns
        `(child, message)` for each child to visit.

    Returns
    -------
    dict
        The messages of every node that was reached.
    """
    arrived: dict[int, list[M]] = {index: [message] for index, message in starts.items()}
    for index in range(max(starts, default=-1), -1, -1):
        if index in arrived:
            for child, message in send(index, network.nodes[index], arrived[index]):
                arrived.setdefault(child, []).append(message)
    return arrived


def path_to(network: Network, target: int) -> tuple[int, ...]:
    """Return a path from a root to a node, both included."""
    above = -1  # the parent of a root
    parents = walk_down(
        network,
        dict.fromkeys(network.roots, above),
        lambda index, node, _: [(child, index) for child in node.children],
    )
    way = [target]
    while parents[way[-1]][0] != above:
        way.append(parents[way[-1]][0])
    return tuple(reversed(way))
