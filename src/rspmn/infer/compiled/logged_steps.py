"""How many logged steps support what a node is worth."""

import math
from collections.abc import Callable

import numpy as np

from rspmn.circuit import Max, Network, Product, Sum, Utility
from rspmn.circuit.node_arrays import KINDS, NodeArrays
from rspmn.types import Array


def logged_steps(template: Network, index: int, branch: Callable[[int], int | None]) -> float:
    """Return the logged steps behind a node, as `Evaluation.steps` counts them.

    They are infinite where no utility is below. `branch` returns the best branch of a max node,
    None if none may be taken.
    """

    def below(index: int) -> float:
        node = template.nodes[index]
        match node:
            case Utility():
                return node.count
            case Max():
                best = branch(index)
                return 0.0 if best is None else below(node.children[best])
            case Product():
                return min((below(child) for child in node.children), default=math.inf)
            case Sum():
                return sum(below(child) for child in node.children)
            case _:
                return math.inf

    return below(index)


def certain_steps(arrays: NodeArrays) -> Array:  # [nodes]
    """Return the same of all nodes at once; NaN where it depends on the best branch below."""
    found = np.full(len(arrays), np.inf)
    utilities = arrays.of_kind(Utility)
    found[utilities] = arrays.utilities[arrays.item[utilities], 2]
    found[arrays.of_kind(Max)] = np.nan
    for level in arrays.levels:
        for kind, combine in {Product: np.minimum, Sum: np.add}.items():
            here = level[arrays.kind[level] == KINDS[kind]]
            if len(here):
                edges, first = arrays.edges_of(here)
                found[here] = combine.reduceat(found[arrays.children[edges]], first)
    return found
