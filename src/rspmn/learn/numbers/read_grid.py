"""The grid of a model of soft boxes, read from its leaves."""

from collections.abc import Iterator

import numpy as np

from rspmn.circuit import Leaf, Network, Node, Product, Sum
from rspmn.learn.numbers.axes import Axis, Circle, NumberLine
from rspmn.model import RSPMN


def grid_of(model: RSPMN) -> tuple[dict[tuple[str, ...], Axis], list[str]] | None:
    """Return the axes of a model of soft boxes by the names of their numbers, and the categories.

    None if the interface nodes of the model are no soft boxes. A knot is where a ramp is highest.
    """
    template = model.template
    parts: dict[tuple[str, ...], dict[int, list[Leaf]]] = {}  # of each axis, its leaves by node
    categories: dict[str, None] = {}
    for number, root in enumerate(template.roots):
        if number in (model.end, model.unknown):
            continue
        for child in template.nodes[root].children:
            for index, leaves in _ramps(template, child):
                names = tuple(leaf.variable for leaf in leaves)
                names = names[::-1] if names[::-1] in parts else names
                parts.setdefault(names, {})[index] = leaves
            node = template.nodes[child]
            if isinstance(node, Leaf) and len(node.distribution.atoms() or ()) == 1:
                categories[node.variable] = None
    if not parts:
        return None
    return {names: _axis([*of.values()]) for names, of in parts.items()}, [*categories]


def _axis(ramps: list[list[Leaf]]) -> Axis:
    """Return the axis of some ramps; what is across a side of a circle is highest at its radius."""
    if len(ramps[0]) == 1:
        return NumberLine(np.unique([_peak(leaf) for (leaf,) in ramps]))
    return Circle(abs(_peak(ramps[0][0])), len(ramps) // 2)


def _ramps(network: Network, index: int) -> list[tuple[int, list[Leaf]]]:
    """Return the ramps of a sum over cells, or of a single one; nothing if there is anything else.

    A ramp is the number of its node, and its leaf, on a circle after the one across its side.
    """
    node = network.nodes[index]
    cells = node.children if isinstance(node, Sum) else (index,)
    found = [ramp for cell in cells for ramp in _ramps_of_cell(network, cell)]
    return [] if any(not leaves for _, leaves in found) else found


def _ramps_of_cell(network: Network, index: int) -> Iterator[tuple[int, list[Leaf]]]:
    node = network.nodes[index]
    leaves = _ramp(network, node)
    if isinstance(node, Product) and not leaves:
        for child in node.children:
            yield child, _ramp(network, network.nodes[child])
    else:
        yield index, leaves


def _ramp(network: Network, node: Node) -> list[Leaf]:
    """Return the leaves of a ramp; none if the node is something else."""
    below = [network.nodes[k] for k in node.children] if isinstance(node, Product) else [node]
    leaves = [leaf for leaf in below if isinstance(leaf, Leaf)]
    across = [leaf for leaf in leaves[:-1] if not _is_ramp(leaf)]
    is_ramp = len(leaves) == len(below) == len(across) + 1 <= 2 and _is_ramp(leaves[-1])
    return leaves if is_ramp else []


def _is_ramp(leaf: Leaf) -> bool:
    """Say whether a leaf is a density that falls to 0 at one end of its support, not at both."""
    density = leaf.distribution
    if density.atoms() is not None:
        return False
    low, high = np.isneginf(density.log_probs(density.support()))
    return bool(low != high)


def _peak(leaf: Leaf) -> float:
    peak = leaf.distribution.mode()
    assert isinstance(peak, float), "a ramp is a density of numbers"
    return peak
