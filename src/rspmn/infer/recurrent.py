"""Queries about a recurrent network, never unfolding it (Sec. 5).

One pass of the template is one Bellman update: the utilities of the roots in step t+1 are
those of the latents in step t.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rspmn.circuit import Network
from rspmn.errors import ConvergenceError, EvidenceError
from rspmn.infer import decisions
from rspmn.infer.decisions import ActionValue, ExpectedUtility
from rspmn.infer.evaluate import NOTHING_FOLLOWS, Evaluation, evaluate
from rspmn.infer.evidence import Evidence, known_values
from rspmn.model import RSPMN

__all__ = [
    "best_decisions",
    "evaluate_from_start",
    "expected_utilities",
    "future_values",
    "meu",
    "values",
]

#: Values without a horizon are iterated until they are this near their limit, relative to
#: the largest of them.
TOLERANCE = 1e-10
MAX_STEPS = 1_000_000


@dataclass(frozen=True)
class Future:
    """What the interface nodes are worth with some steps to go."""

    roots: list[Evaluation]  # [num_interfaces]
    steps: int  # updates made
    #: How far from the limit; 0 with a horizon. Proven with a discount below 1, where an
    #: update contracts; without discount extrapolated from the rate at which changes shrink.
    bound: float = 0.0

    def discounted(self, discount: float) -> list[Evaluation]:
        """Return the roots as the step before them sees them."""
        return [Evaluation(r.log_likelihood, discount * r.utility) for r in self.roots]


def meu(
    model: RSPMN,
    state: Evidence | None = None,
    horizon: int | None = None,
    discount: float = 1.0,
) -> ExpectedUtility:
    """Return the maximum expected utility over so many steps, or until values converge.

    From the start distribution, or from a state observed at any time of an episode. The state
    may be partial, and may hold decisions already made in this step.
    """
    future = _future_after_first(model, horizon, discount)
    result = decisions.meu(_first_step(model, state), state, future.discounted(discount))
    return ExpectedUtility(result, result.supported, result.steps, discount * future.bound)


def expected_utilities(
    model: RSPMN,
    state: Evidence | None = None,
    horizon: int | None = None,
    discount: float = 1.0,
) -> list[ActionValue]:
    """Return what each value of the next decision is worth, chosen now and the best after it."""
    future = _future_after_first(model, horizon, discount).discounted(discount)
    asked = _next_in_order(model, state or {})
    return decisions.expected_utilities(_first_step(model, state), state, asked, future)


def best_decisions(
    model: RSPMN,
    state: Evidence | None = None,
    horizon: int | None = None,
    discount: float = 1.0,
) -> list[ActionValue]:
    """Return every best value of the next decision, ties and all."""
    future = _future_after_first(model, horizon, discount).discounted(discount)
    asked = _next_in_order(model, state or {})
    return decisions.best_decisions(_first_step(model, state), state, asked, future)


def values(model: RSPMN, horizon: int | None = None, discount: float = 1.0) -> list[float]:
    """Return the maximum expected utility of every interface node."""
    return [root.utility for root in future_values(model, horizon, discount).roots]


def evaluate_from_start(
    model: RSPMN, steps: Sequence[Evidence], horizon: int, discount: float = 1.0
) -> Evaluation:
    """Return likelihood and utility from the start, with evidence on any of the first steps."""
    if len(steps) > horizon:
        raise EvidenceError(f"evidence on {len(steps)} steps, but the horizon is {horizon}")
    future = future_values(model, horizon - len(steps), discount)
    for step in reversed(steps):
        future = _update(model, future, discount, step)
    return evaluate(model.top, {}, future.roots)[model.top.root]


def future_values(model: RSPMN, horizon: int | None, discount: float = 1.0) -> Future:
    """Return what each interface node is worth with `horizon` steps to go.

    Horizon 0 is the end: nothing follows. None means until the values converge.
    """
    if not 0 <= discount <= 1:
        raise EvidenceError(f"discount: expected a number from 0 to 1, found {discount}")
    future = Future([NOTHING_FOLLOWS] * model.num_interfaces, 0)
    if horizon is None:
        return _converge(model, future, discount)
    if horizon < 0:
        raise EvidenceError(f"horizon: expected 0 or more steps, found {horizon}")
    for _ in range(horizon):
        future = _update(model, future, discount)
    return future


def _future_after_first(model: RSPMN, horizon: int | None, discount: float) -> Future:
    if horizon is not None and horizon < 1:
        raise EvidenceError(f"horizon: expected 1 or more steps, found {horizon}")
    return future_values(model, None if horizon is None else horizon - 1, discount)


def _first_step(model: RSPMN, state: Evidence | None) -> Network:
    return model.from_start if state is None else model.from_anywhere


def _next_in_order(model: RSPMN, state: Mapping[str, object]) -> str | None:
    made = known_values(state, model.from_anywhere)
    return next((name for name in model.schema.decisions if name not in made), None)


def _update(
    model: RSPMN, after: Future, discount: float, evidence: Evidence | None = None
) -> Future:
    """Pass once through the template, from the last step's roots to this step's."""
    known = known_values(evidence, model.template) if evidence else {}
    evaluated = evaluate(model.template, known, after.discounted(discount))
    return Future([evaluated[root] for root in model.template.roots], after.steps + 1)


def _converge(model: RSPMN, future: Future, discount: float) -> Future:
    """Update until the values are within `TOLERANCE` of their limit.

    An update never spreads values further apart than they were, so the largest change per step
    never grows. It is compared with the one half as many steps ago, once there were enough
    steps to pass through all interface nodes: if it did not shrink, it never will.
    """
    changes: list[float] = []
    while future.steps < MAX_STEPS:
        after = _update(model, future, discount)
        pairs = list(zip(after.roots, future.roots, strict=True))
        changes.append(max(abs(new.utility - old.utility) for new, old in pairs))
        scale = max(1.0, max(abs(new.utility) for new, _ in pairs))
        bound = _distance_to_limit(changes, discount)
        if bound <= TOLERANCE * scale:
            return Future(after.roots, after.steps, bound)
        enough = len(changes) >= 64 + 4 * model.num_interfaces
        if enough and discount == 1 and changes[-1] > 0.999 * changes[len(changes) // 2]:
            break
        future = after
    raise ConvergenceError(
        f"values still change by {changes[-1]:.3g} per step after {len(changes)} steps: "
        "without a horizon they have no limit; give a horizon or a discount below 1"
    )


def _distance_to_limit(changes: list[float], discount: float) -> float:
    """Bound the sum of all changes to come: change · (r + r² + …), r the rate of shrinking."""
    if changes[-1] == 0:
        return 0.0
    if discount < 1:
        rate = discount  # an update contracts by the discount: proven
    elif len(changes) > 20:
        rate = (changes[-1] / changes[-21]) ** (1 / 20)  # as over the last 20 steps
    else:
        return math.inf
    return changes[-1] * rate / (1 - rate) if rate < 1 else math.inf
