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

Where no decision was ever tried the utility is -∞: max nodes avoid it if they can, and what a
whole interface node of that kind is worth is settled in `rspmn.infer.bellman`.

With each pair goes the number of logged steps behind it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from rspmn.circuit import Latent, Leaf, Max, Network, Node, Product, Sum, Utility, fold_up
from rspmn.infer.evidence import Known
from rspmn.values import UNKNOWN

#: Expected utilities that differ by less than this, relative to the largest in size, are a tie:
#: rounding alone could have told them apart.
TIE = 1e-9


class Evaluation(NamedTuple):
    """What one node passes up."""

    log_likelihood: float  # of the evidence below the node
    utility: float  # expected, given that evidence; NaN when its likelihood is 0
    #: Logged steps pooled in the utilities that were used: of several that are added the
    #: fewest, of those that are averaged all, of those chosen from the one chosen. Infinite
    #: where no utility is below.
    steps: float = math.inf


#: What a latent passes up in the last step: likelihood 1 and utility 0 (Sec. 3.2, 5).
NOTHING_FOLLOWS = Evaluation(0.0, 0.0)
IMPOSSIBLE = Evaluation(-math.inf, math.nan, 0.0)


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
                return Evaluation(0.0, node.mean, node.count)
            case Product():
                return _product(below)
            case Sum():
                return _sum(node.weights, below)
            case Max():
                if node.values == (UNKNOWN,):
                    below = [below[0]._replace(utility=-math.inf)]
                branch = choose(node, below, known)
                return IMPOSSIBLE if branch is None else below[branch]
            case Latent():
                return future[node.interface] if future else NOTHING_FOLLOWS

    return fold_up(network, combine)


def choose(node: Max, below: Sequence[Evaluation], known: Known) -> int | None:
    """Return the branch that a max node takes, or None where it has none to take.

    Of branches that tie, the likeliest: if something after the decision is known, its
    likelihood weighs in sums above, and must not hang on the order of the branches.
    """
    if node.decision in known:
        made = known[node.decision]
        return node.values.index(made) if made in node.values else None
    possible = [k for k, branch in enumerate(below) if branch.log_likelihood > -math.inf]
    if not possible:
        return None
    # What cannot be followed by anything known is chosen only if there is nothing else.
    possible = [k for k in possible if below[k].utility > -math.inf] or possible
    best = max(below[k].utility for k in possible)
    size = max(abs(below[k].utility) for k in possible)
    tied = [k for k in possible if below[k].utility >= best - TIE * size or best == -math.inf]
    return max(tied, key=lambda k: below[k].log_likelihood)


def _product(below: list[Evaluation]) -> Evaluation:
    log_likelihood = sum(part.log_likelihood for part in below)
    if log_likelihood == -math.inf:
        return IMPOSSIBLE
    return Evaluation(
        log_likelihood,
        math.fsum(part.utility for part in below),
        min((part.steps for part in below), default=math.inf),
    )


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
        share * part.utility for share, (_, part) in zip(shares, possible, strict=True) if share
    )
    return Evaluation(
        highest + math.log(total), utility / total, sum(part.steps for _, part in possible)
    )
