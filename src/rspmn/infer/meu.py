"""MEU, the maximum expected utility: of a network, and of a recurrent model (Sec. 5).

All that comes before a decision will be observed before it is made. What an action is worth that is
chosen now is a different question: see `rspmn.infer.actions`.
"""

import math
from collections.abc import Sequence

from rspmn.circuit import Network
from rspmn.infer.bellman import Future, check_steps, future_values, values
from rspmn.infer.criterion import MEU, Criterion
from rspmn.infer.evaluation import Evaluation, evaluate
from rspmn.infer.evidence import as_state, known_values
from rspmn.model import RSPMN, Evidence


class ExpectedUtility(float):
    """A number that knows how far it can be trusted; NaN when nothing supports it."""

    #: Whether the evidence is possible at all under the model.
    supported: bool
    #: How many logged steps support it: of the choices made in this step.
    steps: float
    #: How far values without a horizon may be from their limit; 0 with a horizon.
    bound: float

    def __new__(
        cls, utility: float, supported: bool = True, steps: float = 0.0, bound: float = 0.0
    ) -> "ExpectedUtility":
        """Attach support to a number."""
        made = super().__new__(cls, utility)
        made.supported = supported
        made.steps = steps
        made.bound = bound
        return made

    def __repr__(self) -> str:
        notes = [] if self.supported else ["unsupported"]
        notes += [f"from {self.steps:g} logged steps"] if self.steps else []
        return f"{float(self)!r}" + (f" ({', '.join(notes)})" if notes else "")


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
    return ExpectedUtility(result.utility, result.log_likelihood > -math.inf, result.logged_steps)


def recurrent_meu(
    model: RSPMN,
    state: object = None,
    horizon: int | None = None,
    discount: float = 1.0,
    criterion: Criterion = MEU,
) -> ExpectedUtility:
    """Return the maximum expected utility over so many steps, or in the limit of many.

    From the start distribution, or from a state observed at any time of an episode. The state
    may be partial, and may hold decisions already made in this step.
    """
    known = None if state is None else as_state(state, model.schema)
    network = model.from_start if known is None else model.from_anywhere
    if known is not None:
        known_values(known, network)  # refuses bad evidence before anything is computed
    left = None if horizon is None else check_steps(horizon, least=1) - 1
    future = future_values(model, left, discount, criterion)
    result = meu(network, known, future.discounted(discount), criterion)
    if result == -math.inf:
        return _at_frontier(model, known, horizon, discount, future, criterion)
    return ExpectedUtility(result, result.supported, result.steps, discount * future.bound)


def _at_frontier(
    model: RSPMN,
    state: Evidence | None,
    horizon: int | None,
    discount: float,
    future: Future,
    criterion: Criterion,
) -> ExpectedUtility:
    """Return the MEU where part of what is possible is a frontier: as little as anywhere else."""
    known = known_values({} if state is None else state, model.template)
    all_values = values(model, horizon, discount, criterion)
    least = min((v for v in all_values if v > -math.inf), default=-math.inf)
    weights = model.starts if state is None else model.visits or (1.0,) * model.num_interfaces
    evaluated = evaluate(model.template, known, future.discounted(discount), criterion)
    total = earned = 0.0
    for i, (root, weight) in enumerate(zip(model.template.roots, weights, strict=True)):
        share = weight * math.exp(evaluated[root].log_likelihood)
        if share > 0 and i not in (model.end, model.unknown):
            total += share
            earned += share * max(evaluated[root].utility, least)
    return ExpectedUtility(earned / total, False, 0.0, discount * future.bound)
