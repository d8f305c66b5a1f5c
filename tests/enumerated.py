"""Steps of a template enumerated node by node: the oracle of `rspmn.explain`."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

from rspmn.circuit import FactoredLatents, Latent, Leaf, Max, Network, Product, Sum, Utility
from rspmn.model import RSPMN

#: Probability, what is earned, and the interface node that follows; -1 if none does.
Way = tuple[float, float, int]


def without_variance(model: RSPMN) -> RSPMN:
    nodes = (
        replace(n, variance=0.0) if isinstance(n, Utility) else n for n in model.template.nodes
    )
    return replace(model, template=Network(tuple(nodes), model.template.roots))


def ways(template: Network, index: int, branch: Callable[[int], int]) -> list[Way]:
    """Return all that may come of a node, `branch(index)` being taken at max nodes."""
    node = template.nodes[index]
    match node:
        case Leaf():
            return [(1.0, 0.0, -1)]
        case Utility():
            return [(1.0, node.mean, -1)]
        case Latent():
            return [(1.0, 0.0, node.interface)]
        case FactoredLatents():
            return [(w, 0.0, i) for i, w in enumerate(node.latent_weights()) if w > 0]
        case Max():
            return ways(template, node.children[branch(index)], branch)
        case Sum():
            parts = zip(node.weights, node.children, strict=True)
            return [(w * p, r, i) for w, c in parts for p, r, i in ways(template, c, branch)]
        case Product():
            found = []
            for chosen in product(*(ways(template, c, branch) for c in node.children)):
                share = 1.0
                for p, _, _ in chosen:
                    share *= p
                found.append((share, sum(r for _, r, _ in chosen), max(i for _, _, i in chosen)))
            return found


def returns(
    model: RSPMN, start: dict[int, float], branch: Callable[[int, int], int], steps: int,
    discount: float,
) -> dict[float, float]:  # fmt: skip
    """Return the probability of every return; `branch(index, t)` is taken at max nodes."""
    now = {(node, 0.0): share for node, share in start.items()}
    for t in range(steps):
        after: dict[tuple[int, float], float] = {}
        for (node, earned), share in now.items():
            found = [(1.0, 0.0, -1)]
            if node >= 0:
                root = model.template.roots[node]
                found = ways(model.template, root, lambda index, t=t: branch(index, t))  # type: ignore[misc]
            for p, reward, following in found:
                key = following, round(earned + discount**t * reward, 9)
                after[key] = after.get(key, 0.0) + share * p
        now = after
    merged: dict[float, float] = {}
    for (_, earned), share in now.items():
        merged[earned] = merged.get(earned, 0.0) + share
    return {earned: share for earned, share in sorted(merged.items()) if share > 0}
