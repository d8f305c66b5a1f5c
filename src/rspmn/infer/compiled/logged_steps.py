"""How many logged steps support what a node is worth."""

import math
from collections.abc import Callable

from rspmn.circuit import Max, Network, Product, Sum, Utility


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
