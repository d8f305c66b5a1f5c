"""Step 2: the one-step network and its root interface nodes (Algs. 3 and 4).

Our one-step network is learned without the successor's variables, so nothing has to be removed: a
latent is in their place. Every way through the sums above the first decision gives one interface
node. A sum inside a factor is not a choice of behaviour and is not expanded.
"""

from itertools import product

from rspmn.circuit import Latent, Max, Network, Node, Product, Sum, fold_up

#: The children of one root interface node, as indices in the one-step network.
Interface = tuple[int, ...]


def interface_nodes(network: Network) -> list[Interface]:
    """Return the children of each root interface node, in the order of the network.

    The appendix's IrChildren keeps the ways through one sum only where a product has several;
    here they are combined.
    """
    decides = _above(network, Max) if any(isinstance(n, Max) for n in network.nodes) else None
    led = _above(network, Latent) if decides is None else decides
    return _ways(network, network.root, led)


def _above(network: Network, kind: type[Max] | type[Latent]) -> list[bool]:
    """Say which nodes have one of a kind below them or are one."""
    return fold_up(network, lambda node, below: isinstance(node, kind) or any(below))


def _ways(network: Network, index: int, led: list[bool]) -> list[Interface]:
    """Return IrChildren of a node (Alg. 4)."""
    node = network.nodes[index]
    match node:
        case Sum() if led[index]:
            return [way for child in node.children for way in _ways(network, child, led)]
        case Product() if led[index] and not _is_outcome(network, node):
            choices = [
                _ways(network, child, led) if led[child] else [(child,)] for child in node.children
            ]
            return [tuple(c for part in way for c in part) for way in product(*choices)]
        case _:
            return [(index,)]


def _is_outcome(network: Network, node: Node) -> bool:
    """Say whether a product holds a latent itself: it is below all decisions."""
    return any(isinstance(network.nodes[child], Latent) for child in node.children)
