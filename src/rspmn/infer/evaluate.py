"""One bottom-up pass: what a network is worth, given evidence (Sec. 2 and 5).

Pairs (likelihood, utility) are passed up, the likelihood as its logarithm:

    leaf       (P(x), 0); (1, 0) when x is not known
    utility    (1, mean)
    product    likelihoods multiply, utilities add
    sum        utilities are weighed by weight × likelihood
    max        the branch of the decision if it is known, else the branch of highest utility
    latent i   interface node i of the next step

So a sum over a variable that is not known but comes before a decision means that it will be
seen before the decision is made: Σ max, the sum-max-sum rule. A branch of likelihood 0 has
no utility (NaN); no sum gives it weight and no max chooses it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from rspmn.circuit import Latent, Leaf, Max, Network, Node, Product, Sum, Utility, fold_up
from rspmn.infer.evidence import Known

__all__ = ["NOTHING_FOLLOWS", "Evaluation", "evaluate"]


class Evaluation(NamedTuple):
    """What one node passes up."""

    log_likelihood: float  # of the evidence below the node
    utility: float  # expected, given that evidence; NaN when its likelihood is 0


#: What a latent passes up in the last step: likelihood 1 and utility 0 (Sec. 3.2, 5).
NOTHING_FOLLOWS = Evaluation(0.0, 0.0)
IMPOSSIBLE = Evaluation(-math.inf, math.nan)


def evaluate(network: Network, known: Known, future: Sequence[Evaluation] = ()) -> list[Evaluation]:
    """Return (log-likelihood, maximum expected utility) of every node.

    `future[i]` is what interface node i of the next step passes up; without it nothing
    follows.
    """

    def combine(node: Node, below: list[Evaluation]) -> Evaluation:
        match node:
            case Leaf():
                if node.variable not in known:
                    return Evaluation(0.0, 0.0)
                return Evaluation(node.distribution.log_prob(known[node.variable]), 0.0)
            case Utility():
                return Evaluation(0.0, node.mean)
            case Product():
                return _product(below)
            case Sum():
                return _sum(node.weights, below)
            case Max():
                return _max(node, below, known)
            case Latent():
                return future[node.interface] if future else NOTHING_FOLLOWS

    return fold_up(network, combine)


def _product(below: list[Evaluation]) -> Evaluation:
    log_likelihood = sum(part.log_likelihood for part in below)
    if log_likelihood == -math.inf:
        return IMPOSSIBLE
    return Evaluation(log_likelihood, math.fsum(part.utility for part in below))


def _sum(weights: Sequence[float], below: list[Evaluation]) -> Evaluation:
    possible = [
        (weight, part)
        for weight, part in zip(weights, below, strict=True)
        if weight > 0 and part.log_likelihood > -math.inf
    ]
    if not possible:
        return IMPOSSIBLE
    # Relative to the likeliest part, so that nothing underflows and equal parts are exact.
    highest = max(part.log_likelihood for _, part in possible)
    shares = [weight * math.exp(part.log_likelihood - highest) for weight, part in possible]
    total = math.fsum(shares)
    utility = math.fsum(
        share * part.utility for share, (_, part) in zip(shares, possible, strict=True)
    )
    return Evaluation(highest + math.log(total), utility / total)


def _max(node: Max, below: list[Evaluation], known: Known) -> Evaluation:
    if node.decision in known:
        if known[node.decision] not in node.values:
            return IMPOSSIBLE  # not offered here
        return below[node.values.index(known[node.decision])]
    possible = [branch for branch in below if branch.log_likelihood > -math.inf]
    return max(possible, key=lambda branch: branch.utility, default=IMPOSSIBLE)
