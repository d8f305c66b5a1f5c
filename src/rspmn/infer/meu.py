"""MEU, the maximum expected utility of a network (Sec. 5); of a recurrent model see `Answers`.

All that comes before a decision will be observed before it is made. What an action is worth that is
chosen now is a different question: see `rspmn.infer.actions`.

An answer is the value over what is supported, with the share that is; a recurrent model has a value
for frontiers, too (see `rspmn.infer.bellman`).
"""

import math
from collections.abc import Sequence

import numpy as np

from rspmn.circuit import Network
from rspmn.infer.criterion import MEU, TIE, Criterion
from rspmn.infer.evaluation import Evaluation, evaluate
from rspmn.infer.evidence import known_values
from rspmn.model import Evidence
from rspmn.types import Array
from rspmn.values import show_steps


class ExpectedUtility(float):
    """A number that knows how far it can be trusted; NaN when nothing supports it."""

    #: The share of it that is known: the probability, given the evidence, of being in states with
    #: known decisions and successors until the end. The number is that of the share, and of those
    #: that a recurrent model gives the lowest value, as no decision in them was logged. 0, which is
    #: false, if the evidence is impossible.
    supported: float
    #: How many logged steps support it: of the choices made in this step.
    steps: float
    #: How far it may be off where not all updates were made: without a horizon, or with a long one.
    bound: float

    def __new__(
        cls, utility: float, supported: float = 1.0, steps: float = 0.0, bound: float = 0.0
    ) -> "ExpectedUtility":
        """Attach support to a number; nothing is known of -∞."""
        made = super().__new__(cls, utility if utility > -math.inf else math.nan)
        made.supported = supported if supported < 1 - TIE else 1.0
        made.steps = steps
        made.bound = bound
        return made

    def __repr__(self) -> str:
        notes = [f"from {show_steps(self.steps)}"] if self.steps else []
        if math.isnan(self):
            notes.insert(0, "unsupported")
        elif self.supported < 1:
            notes.insert(0, f"supported {show_share(self.supported)}")
        return f"{float(self)!r}" + (f" ({', '.join(notes)})" if notes else "")


def show_share(share: float) -> str:
    """Write a share below 1 for a person: three digits, never rounded up to 1.

    >>> show_share(0.99502), show_share(0.99999), show_share(0.0)
    ('0.995', '0.999', '0')
    """
    return f"{min(share, 0.999):.3g}"


def meu(
    network: Network,
    evidence: Evidence | None = None,
    future: Sequence[Evaluation] = (),
    criterion: Criterion = MEU,
) -> ExpectedUtility:
    """Return the maximum expected utility given evidence.

    >>> from rspmn.circuit import NetworkBuilder
    >>> b = NetworkBuilder()
    >>> bet = b.max("bet", {"yes": b.utility("u", -1.0), "no": b.utility("u", 0.0)})
    >>> meu(b.build(bet))
    0.0
    """
    known = known_values({} if evidence is None else evidence, network)
    result = evaluate(network, known, future, criterion)[network.root]
    return ExpectedUtility(result.utility, result.supported, result.logged_steps)


def averaged(
    weights: Array, values: Array, known: Array, supports: Array, steps: float, bound: float
) -> ExpectedUtility:
    """Return what nodes are worth, on average: as much as is known of each counts."""
    shares, value, support = weights * known, math.nan, 0.0
    if shares.any():
        value = float(shares @ np.where(known > 0, values, 0.0) / shares.sum())
    if len(weights):
        support = float(weights @ supports / weights.sum())
    return ExpectedUtility(value, support, 0.0 if math.isinf(steps) else steps, bound)
