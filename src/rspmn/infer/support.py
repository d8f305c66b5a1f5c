"""Support: how much of the log stands behind an answer."""

import math

from rspmn.circuit import Latent, Leaf, Max, Network, Node, Product, Sum, Utility, fold_up
from rspmn.infer.evidence import Known

__all__ = ["logged_steps"]


def logged_steps(network: Network, known: Known) -> float:
    """Return how many logged steps were pooled in the utilities that the evidence leaves open.

    A part that the evidence rules out adds nothing. Over several steps of an unfolded
    network it is the number behind the weakest one. 0 for a network written by hand.
    """

    def steps(node: Node, below: list[float]) -> float:
        match node:
            case Leaf():
                value = known.get(node.variable)
                ruled_out = value is not None and node.distribution.log_prob(value) == -math.inf
                return 0.0 if ruled_out else math.inf
            case Utility():
                return node.count
            case Product():
                return min(below, default=math.inf)
            case Sum():
                return sum(n for n, weight in zip(below, node.weights, strict=True) if weight > 0)
            case Max():
                if node.decision not in known:
                    return sum(below)
                value = known[node.decision]
                return below[node.values.index(value)] if value in node.values else 0.0
            case Latent():
                return math.inf

    found = fold_up(network, steps)[network.root]
    return 0.0 if math.isinf(found) else found
