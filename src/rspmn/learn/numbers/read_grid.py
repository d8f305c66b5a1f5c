"""The grid of a model of soft boxes, read from its leaves."""

import numpy as np

from rspmn.circuit import Leaf, Network, Product, Sum
from rspmn.model import RSPMN
from rspmn.types import Array


def grid_of(model: RSPMN) -> tuple[dict[str, Array], list[str]] | None:
    """Return the knots of each number, and the categories, of a model of soft boxes.

    None if the interface nodes of the model are no soft boxes. A knot is where a ramp is highest.
    """
    template = model.template
    knots: dict[str, set[float]] = {}
    categories: dict[str, None] = {}
    for number, root in enumerate(template.roots):
        if number in (model.end, model.unknown):
            continue
        for child in template.nodes[root].children:
            for leaf in _ramps(template, child):
                knots.setdefault(leaf.variable, set()).add(_peak(leaf))
            node = template.nodes[child]
            if isinstance(node, Leaf) and len(node.distribution.atoms() or ()) == 1:
                categories[node.variable] = None
    if not knots:
        return None
    return {name: np.array(sorted(found)) for name, found in knots.items()}, [*categories]


def _ramps(network: Network, index: int) -> list[Leaf]:
    """Return the leaves of a sum over cells, or of a single one; nothing if there are others."""
    node = network.nodes[index]
    cells = node.children if isinstance(node, Sum) else (index,)
    found = []
    for cell in cells:
        part = network.nodes[cell]
        below = part.children if isinstance(part, Product) else (cell,)
        found += [network.nodes[k] for k in below]
    ramps = [leaf for leaf in found if isinstance(leaf, Leaf) and _is_ramp(leaf)]
    return ramps if len(ramps) == len(found) else []


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
