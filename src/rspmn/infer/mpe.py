"""MPE, most probable explanation: the most probable values of missing variables.

The bottom-up pass is that of the likelihood, with maxima for sums and the mode of each leaf whose
variable is missing. The top-down pass follows the best child of every sum. The result is the most
probable completion together with the choices at the sums. Where children of a sum exclude each
other these are the most probable values. Elsewhere they are an approximation, as exact MPE is
NP-hard. A missing decision is completed as well, by the value of highest likelihood.
"""

import math
from collections.abc import Sequence

from rspmn.circuit import (
    FactoredLatents,
    Latent,
    Leaf,
    Max,
    Network,
    Node,
    Product,
    Sum,
    walk_down,
)
from rspmn.infer.evidence import Known, known_values
from rspmn.infer.likelihood import node_log_likelihoods
from rspmn.model import RSPMN, Evidence
from rspmn.values import Value


def mpe(network: Network, evidence: Evidence) -> dict[str, Value] | None:
    """Return the evidence completed by the most probable values; None if it is impossible.

    >>> from rspmn.circuit import Categorical, NetworkBuilder
    >>> b = NetworkBuilder()
    >>> coin = b.build(b.leaf("x", Categorical(("head", "tail"), (0.25, 0.75))))
    >>> mpe(coin, {})
    {'x': 'tail'}
    """
    known = known_values(evidence, network)
    best = _best(network, known)
    if best[network.root] == -math.inf:
        return None
    completed, _ = _trace(network, network.root, best, known)
    return completed


def episode_mpe(model: RSPMN, steps: Sequence[Evidence]) -> list[dict[str, Value]] | None:
    """Return the steps of an episode completed by the most probable values; None if impossible."""
    known = [known_values(step, model.template) for step in steps]
    networks = [model.template] * (len(steps) - 1) + [model.bottom] * min(len(steps), 1)
    passes: list[tuple[list[float], list[float]]] = []  # by step, and the future; last first
    future = [0.0] * model.num_interfaces
    for network, step in zip(reversed(networks), reversed(known), strict=True):
        best = _best(network, step, future)
        passes.append((best, future))
        future = [best[root] for root in network.roots]
    top = _best(model.top, {}, future)
    if top[model.top.root] == -math.inf:
        return None
    _, interface = _trace(model.top, model.top.root, top, {})
    completed = []
    for network, step, (best, future) in zip(networks, known, reversed(passes), strict=True):
        values, interface = _trace(network, network.roots[interface], best, step, future)
        completed.append(values)
    return completed


def _best(network: Network, known: Known, future: Sequence[float] = ()) -> list[float]:
    """Return the log-probability of each node's best completion."""
    return node_log_likelihoods(
        network,
        known,
        future,
        missing=lambda distribution: distribution.log_prob(distribution.mode()),
        mixture=lambda weights, below: max(_weighted(weights, below)),
    )


def _trace(
    network: Network, root: int, best: list[float], known: Known, future: Sequence[float] = ()
) -> tuple[dict[str, Value], int]:
    """Follow the best children; return the values found and the interface node reached (or 0)."""
    found: Known = dict(known)
    interface = 0

    def send(_: int, node: Node, __: list[None]) -> list[tuple[int, None]]:
        nonlocal interface
        below = [best[child] for child in node.children]
        match node:
            case Leaf():
                found.setdefault(node.variable, node.distribution.mode())
            case Latent():
                interface = node.interface
            case FactoredLatents():
                interface = _argmax(_weighted(node.latent_weights(), future))
            case Product():
                return [(child, None) for child in node.children]
            case Sum():
                return [(node.children[_argmax(_weighted(node.weights, below))], None)]
            case Max():
                branch = _argmax(_open_branches(node, below, known))
                found.setdefault(node.decision, node.values[branch])
                return [(node.children[branch], None)]
        return []

    walk_down(network, {root: None}, send)
    return found, interface


def _weighted(weights: Sequence[float], below: Sequence[float]) -> list[float]:
    return [
        math.log(weight) + part if weight > 0 else -math.inf
        for weight, part in zip(weights, below, strict=True)
    ]


def _open_branches(node: Max, below: list[float], known: Known) -> list[float]:
    """Return the scores of branches, -∞ for those that contradict a known decision."""
    made = known.get(node.decision)
    return [
        part if made is None or value == made else -math.inf
        for value, part in zip(node.values, below, strict=True)
    ]


def _argmax(scores: list[float]) -> int:
    return scores.index(max(scores))
