"""Networks in one order, so that those with the same nodes are equal."""

from rspmn.circuit import Network, NetworkBuilder
from rspmn.circuit.network import with_children


def in_one_order(network: Network) -> Network:
    """Return a network with its nodes as they are met on ways down from the roots."""
    builder = NetworkBuilder()
    placed: dict[int, int] = {}

    def copy(index: int) -> int:
        if index not in placed:
            node = network.nodes[index]
            children = tuple(copy(child) for child in node.children)
            placed[index] = builder.add(with_children(node, children))
        return placed[index]

    return builder.build(*[copy(root) for root in network.roots])
