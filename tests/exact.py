"""Models in decimal arithmetic of sixty digits: the oracle of what rounding does.

Numbers of a model are floats, which decimals hold exactly. Weights are divided by their sum, which
rounding may have left a little beside 1. An operation is off by 1e-60 of its result, so that
thousands of steps are exact as far as floats can tell.
"""

from collections.abc import Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

from rspmn.circuit import (
    FactoredLatents,
    Latent,
    Leaf,
    Max,
    Network,
    Node,
    Product,
    Sum,
    Utility,
    fold_up,
)
from rspmn.model import RSPMN

EXACTLY = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)
#: Half the distance from 1 to the next float: what one operation may be off, relatively.
ROUNDING = 2.0**-53


def exact_values(model: RSPMN, horizon: int, discount: float = 1.0) -> list[Decimal]:
    """Return the maximum expected utility of each interface node."""
    with localcontext(EXACTLY):
        after = [Decimal(0)] * model.num_interfaces
        for _ in range(horizon):
            after = [value * Decimal(discount) for value in after]
            worth = _Worth(after)
            found = fold_up(model.template, worth.of)
            after = [found[root] for root in model.template.roots]
        return after


class _Worth:
    """What nodes are worth, given what follows."""

    def __init__(self, after: Sequence[Decimal]) -> None:
        self.after = after

    def of(self, node: Node, below: list[Decimal]) -> Decimal:
        match node:
            case Sum():
                return _mean(list(map(Decimal, node.weights)), below)
            case Product():
                return sum(below, Decimal(0))
            case Max():
                return max(below)
            case Utility():
                return Decimal(node.mean)
            case Latent():
                return self.after[node.interface]
            case FactoredLatents():
                return _mean(_masses(node), self.after)
            case Leaf():
                return Decimal(0)


def _mean(weights: Sequence[Decimal], numbers: Sequence[Decimal]) -> Decimal:
    total = sum(weights, Decimal(0))
    return sum((w * n for w, n in zip(weights, numbers, strict=True)), Decimal(0)) / total


def _masses(node: FactoredLatents) -> list[Decimal]:
    factors = node.factors
    found = [Decimal(0)] * factors.interfaces
    for to, share, classes in zip(factors.to, factors.share, factors.classes, strict=True):
        mass = Decimal(float(share))
        for table, row, column in zip(factors.tables, node.rows, classes, strict=True):
            mass *= Decimal(float(table[row, column]))
        found[int(to)] += mass
    return found


def exact_log_likelihood(model: RSPMN, steps: Sequence[Mapping[str, object]]) -> Decimal:
    """Return the log-likelihood of steps in which all but the utility is known."""
    with localcontext(EXACTLY):
        after = [Decimal(1)] * model.num_interfaces
        for step in reversed(steps):
            likely = _Likely(step, after)
            found = fold_up(model.template, likely.of)
            after = [found[root] for root in model.template.roots]
        return fold_up(model.top, _Likely({}, after).of)[model.top.root].ln()


class _Likely:
    """How likely a step is below each node, given how likely the next steps are."""

    def __init__(self, step: Mapping[str, object], after: Sequence[Decimal]) -> None:
        self.step, self.after = step, after

    def of(self, node: Node, below: list[Decimal]) -> Decimal:
        match node:
            case Sum():
                return _mean(list(map(Decimal, node.weights)), below)
            case Product():
                found = Decimal(1)
                for factor in below:
                    found *= factor
                return found
            case Max():
                made = dict(zip(node.values, below, strict=True))
                return made.get(self.step[node.decision], Decimal(0))  # type: ignore[call-overload, no-any-return]
            case Leaf():
                return Decimal((node.distribution.atoms() or {}).get(self.step[node.variable], 0.0))  # type: ignore[call-overload]
            case Latent():
                return self.after[node.interface]
            case FactoredLatents():
                return _mean(_masses(node), self.after)
            case Utility():
                return Decimal(1)


def operations(network: Network) -> int:
    """Return how many roundings a root's number has, relative to the size of what is added up.

    A node of k children rounds k products and k - 1 sums, and a weight may be off by one rounding;
    along a way from a root to a leaf these add up. Matrices hold the same products, and take one
    product and sum for each interface node. Factors are multiplied and summed for each cell.
    """

    def roundings(node: Node, below: list[int]) -> int:
        if isinstance(node, FactoredLatents):
            return 2 * (len(node.factors.to) + len(node.rows))
        return max(below, default=0) + 3 * len(node.children)

    found = fold_up(network, roundings)
    return max(found[root] for root in network.roots) + 2 * len(network.roots)
