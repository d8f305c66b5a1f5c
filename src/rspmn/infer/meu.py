"""MEU, the maximum expected utility: of a network, and of a recurrent model (Sec. 5).

All that comes before a decision will be observed before it is made. What an action is worth that is
chosen now is a different question: see `rspmn.infer.actions`.

An answer is the value over what is supported, with the share that is; a recurrent model has a value
for frontiers, too (see `rspmn.infer.bellman`).
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rspmn.circuit import Network
from rspmn.infer.bellman import Future, FutureArrays, check_steps, future_arrays
from rspmn.infer.branches import logged_steps
from rspmn.infer.criterion import MEU, TIE, Criterion
from rspmn.infer.evaluation import Evaluation, evaluate
from rspmn.infer.evidence import Known, as_state, known_values
from rspmn.model import RSPMN, Evidence
from rspmn.types import Array
from rspmn.values import show_steps

if TYPE_CHECKING:
    from rspmn.infer.compiled.beliefs import Beliefs


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


def recurrent_meu(
    model: RSPMN,
    state: object = None,
    horizon: int | None = None,
    discount: float = 1.0,
    criterion: Criterion = MEU,
) -> ExpectedUtility:
    """Return the maximum expected utility over so many steps, or in the limit of many.

    From the start distribution, or from a state observed at any time of an episode. The state
    may be partial, and may hold decisions already made in this step. Later states in which no
    decision was logged have the lowest value (see `rspmn.infer.bellman`); `meu` of the unfolded
    network leaves them out.
    """
    given = None if state is None else known_values(as_state(state, model.schema), model.template)
    left = None if horizon is None else check_steps(horizon, least=1) - 1
    future = future_arrays(model, left, discount, criterion)
    beliefs = _beliefs(model, given)
    if beliefs is not None:
        return _mean(model, beliefs, future, left, discount, criterion)
    network = model.from_start if given is None else model.from_anywhere
    following = Future.of_arrays(*future).discounted(discount)
    found = evaluate(network, given or {}, following, criterion)[network.root]
    return ExpectedUtility(
        found.utility, found.supported, found.logged_steps, discount * future.bound
    )


def _beliefs(model: RSPMN, known: Known | None) -> "Beliefs | None":
    """Return how probable interface nodes are; None if only the network knows what they are worth.

    That is where more than a state is known, or something is earned beside decisions.
    """
    from rspmn.infer.compiled.beliefs import Beliefs

    if known is None:
        with np.errstate(divide="ignore"):
            found = Beliefs.of_one(np.arange(model.num_interfaces), np.log(model.starts))
    elif set(known) <= set(model.schema.information_sets[0]):
        found = model.state_index.belief(known)
    else:
        return None
    return found if (model.offers.first[found.nodes] >= 0).all() else None


def _mean(
    model: RSPMN,
    beliefs: "Beliefs",
    future: FutureArrays,
    left: int | None,
    discount: float,
    criterion: Criterion,
) -> ExpectedUtility:
    """Return what interface nodes are worth, on average over where one may be."""
    bellman, last, nodes = model.bellman, left == 0, beliefs.nodes
    choices = bellman.choose(future.values, future.delays, discount, last, criterion)
    values, known = (a[nodes] for a in bellman.known_at_roots(choices.values, choices.shares))
    supports = np.ones(len(nodes))
    if choices.shares is not None:
        supports = bellman.supports(choices, future.supports, discount, last)[0][nodes]
    arrays, roots = model.template.arrays, np.array(model.template.roots)
    steps = float(logged_steps(arrays, bellman.taken(choices, arrays))[roots[nodes]].sum())
    return averaged(beliefs.weights, values, known, supports, steps, discount * future.bound)


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
