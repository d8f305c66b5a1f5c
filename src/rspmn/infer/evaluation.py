"""One bottom-up pass: what a network is worth, given evidence (Sec. 2 and 5).

Pairs (likelihood, utility) are passed up, the likelihood as its logarithm:

    leaf       (P(x), 0); (1, 0) when x is not known
    utility    (1, mean)
    product    likelihoods multiply, utilities add
    sum        utilities are weighed by weight × likelihood
    max        the branch of the decision if it is known, else the branch that the criterion finds
               best: by default that of highest utility
    latent i   interface node i of the next step

So a sum over a variable that is not known but comes before a decision means that it will be
observed before the decision is made: Σ max, the sum-max-sum rule. A branch of likelihood 0 has
no utility (NaN); no sum gives it weight and no max chooses it.

Of some parts it is not known what follows: the log was cut there, or no decision was tried. What is
earned before counts for all parts; what follows is averaged over the parts of which it is known,
and `known` is their share. So what is not known is valued as the rest of the same branch. Where
nothing is known the utility is -∞: max nodes avoid it if they can, and what a whole interface node
of that kind is worth is settled in `rspmn.infer.bellman`.

With each pair goes the number of logged steps that support it, how late it is earned, and the share
that is supported to the end.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np

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
from rspmn.infer.branches import Context
from rspmn.infer.criterion import (
    MEU,
    Criterion,
    competing,
    scored,
    soonest,
    tied_branches,
)
from rspmn.infer.evidence import Known
from rspmn.values import UNKNOWN


class Evaluation(NamedTuple):
    """What one node passes up."""

    log_likelihood: float  # of the evidence below the node
    utility: float  # expected, given that evidence; NaN when its likelihood is 0
    #: Logged steps pooled in the utilities that were used: of several that are added the
    #: fewest, of those that are averaged all, of those chosen from the one chosen. Infinite
    #: where no utility is below.
    steps: float = math.inf
    #: How late the utility is earned: the expected sum of t · u_t, t steps from now. Of branches of
    #: equal utility the one with the least is chosen.
    delay: float = 0.0
    #: The squared standard error of the utility; 0 where nothing was counted.
    variance: float = 0.0
    #: What of the utility is earned whatever is decided or follows below.
    earned: float = 0.0
    #: The probability of parts of which it is known what follows; 0 if the utility is -∞.
    known: float = 1.0
    #: The probability of being in states with known decisions and successors until the end.
    supported: float = 1.0

    @property
    def logged_steps(self) -> float:
        """The logged steps as answers show them: 0 where no utility is below."""
        return 0.0 if math.isinf(self.steps) else self.steps


#: What a latent passes up in the last step: likelihood 1 and utility 0 (Sec. 3.2, 5).
NOTHING_FOLLOWS = Evaluation(0.0, 0.0)
IMPOSSIBLE = Evaluation(-math.inf, math.nan, 0.0, known=0.0, supported=0.0)


def evaluate(
    network: Network,
    known: Known,
    future: Sequence[Evaluation] = (),
    criterion: Criterion = MEU,
    within: float = 0.0,
) -> list[Evaluation]:
    """Return (log-likelihood, maximum expected utility) of every node.

    `future[i]` is what interface node i of the next step passes up; without it nothing
    follows. Utilities that are no further apart than `within` are ties: those of the future may
    be off by half of it.
    """
    rule, places = _Rule(criterion, Context(network), within), count()

    def combine(node: Node, below: list[Evaluation]) -> Evaluation:
        index = next(places)  # nodes come in order
        match node:
            case Leaf():
                if node.variable not in known:
                    return Evaluation(0.0, 0.0)
                return Evaluation(node.distribution.log_prob(known[node.variable]), 0.0)
            case Utility():
                variance = node.variance / node.count if node.count else 0.0
                return Evaluation(0.0, node.mean, node.count, 0.0, variance, earned=node.mean)
            case Product():
                return _product(below)
            case Sum():
                return _sum(node.weights, below)
            case Max():
                if node.decision not in known:
                    return rule.best(node, below, index)._replace(earned=0.0)
                if known[node.decision] not in node.values:
                    return IMPOSSIBLE
                return below[node.values.index(known[node.decision])]._replace(earned=0.0)
            case Latent():
                return future[node.interface] if future else NOTHING_FOLLOWS
            case FactoredLatents():
                return _sum(node.latent_weights(), list(future)) if future else NOTHING_FOLLOWS

    return fold_up(network, combine)


@dataclass(frozen=True)
class _Rule:
    """The rule at the max nodes of a network."""

    criterion: Criterion
    context: Context
    within: float

    def best(self, node: Max, below: list[Evaluation], index: int) -> Evaluation:
        """Return what the best branch of a max node passes up.

        Of branches that tie, the likeliest: if something after the decision is known, its
        likelihood weighs in sums above, and must not depend on the order of the branches. Where
        the criterion allows none the utility is -∞.
        """
        if node.values == (UNKNOWN,):
            return _nothing_known(below[0].log_likelihood)
        if len(below) == 1 and self.criterion is MEU:
            return below[0] if below[0].log_likelihood > -math.inf else IMPOSSIBLE
        worth = [e.utility if e.log_likelihood > -math.inf else math.nan for e in below]
        worth = competing(worth, [e.known for e in below])
        tied = tied_branches(worth, self._scores(worth, index), self.within)
        if len(tied) == 1:
            return below[tied[0]]
        likeliest = max(below[k].log_likelihood for k in tied or range(len(below)))
        if not tied:
            return _nothing_known(likeliest)
        tied = [k for k in tied if below[k].log_likelihood == likeliest]
        best = below[soonest(tied, [e.delay for e in below], self.context.places(node))]
        most = max(below[k].known for k in tied)
        return best._replace(utility=max(worth[k] for k in tied), known=most)

    def _scores(self, worth: list[float], index: int) -> list[float]:
        if self.criterion is MEU:
            return worth
        branches = self.context.branches_of(np.array([index]), np.zeros(1, np.int64))
        found: list[float] = scored(self.criterion, np.array(worth), branches).tolist()
        return found


def _nothing_known(log_likelihood: float) -> Evaluation:
    if log_likelihood == -math.inf:
        return IMPOSSIBLE
    return Evaluation(log_likelihood, -math.inf, 0.0, known=0.0, supported=0.0)


def _product(below: list[Evaluation]) -> Evaluation:
    if not below:
        return Evaluation(0.0, 0.0)
    logs, utilities, steps, delays, variances, earned, known, supported = zip(*below, strict=True)
    log_likelihood = sum(logs)
    if log_likelihood == -math.inf:
        return IMPOSSIBLE
    return Evaluation(
        log_likelihood, math.fsum(utilities), min(steps), math.fsum(delays), math.fsum(variances),
        math.fsum(earned), _all_of(known), _all_of(supported),
    )  # fmt: skip


def _all_of(shares: Sequence[float]) -> float:
    """Return the share that is in all of several; at most one of them is below 1."""
    return max(0.0, 1.0 - math.fsum([1.0 - share for share in shares]))


def _sum(weights: Sequence[float], below: list[Evaluation]) -> Evaluation:
    possible = [
        (weight, part)
        for weight, part in zip(weights, below, strict=True)
        if weight > 0 and part.log_likelihood > -math.inf
    ]
    if not possible:
        return IMPOSSIBLE
    if len(possible) == 1:
        weight, part = possible[0]
        return part._replace(log_likelihood=part.log_likelihood + math.log(weight))
    # Relative to the likeliest part, so that nothing underflows and equal parts are exact.
    highest = max([part.log_likelihood for _, part in possible])
    shares = [weight * math.exp(part.log_likelihood - highest) for weight, part in possible]
    total = math.fsum(shares)
    weighed = [(share, part) for share, (_, part) in zip(shares, possible, strict=True) if share]
    utility, delay, known = _averages(weighed, total)
    return Evaluation(
        highest + math.log(total),
        utility,
        sum([part.steps for _, part in possible]),
        delay,
        math.fsum([share * share * part.variance for share, part in weighed]) / total**2,
        math.fsum([share * part.earned for share, part in weighed]) / total,
        known,
        math.fsum([share * part.supported for share, part in weighed]) / total,
    )


def _averages(weighed: list[tuple[float, Evaluation]], total: float) -> tuple[float, float, float]:
    """Return utility and delay of a sum, and the share of which it is known what follows."""
    if all(part.known == 1 for _, part in weighed):
        utility = math.fsum([share * part.utility for share, part in weighed]) / total
        return utility, math.fsum([share * part.delay for share, part in weighed]) / total, 1.0
    parts = [(share * part.known, part) for share, part in weighed if part.known > 0]
    known = math.fsum([share for share, _ in parts])
    if not known:
        return -math.inf, 0.0, 0.0
    earned = math.fsum([share * part.earned for share, part in weighed]) / total
    follows = math.fsum([share * (part.utility - part.earned) for share, part in parts]) / known
    delay = math.fsum([share * part.delay for share, part in parts]) / known
    return earned + follows, delay, known / total
