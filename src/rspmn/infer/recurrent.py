"""Queries about a recurrent network, never unfolding it (Sec. 5)."""

import math
from collections.abc import Sequence

import numpy as np

from rspmn.circuit import Network
from rspmn.errors import EvidenceError
from rspmn.infer import actions
from rspmn.infer.actions import ActionValue, ExpectedUtility
from rspmn.infer.bellman import Future, update
from rspmn.infer.compiled.infinite_horizon import limit
from rspmn.infer.evidence import known_values
from rspmn.infer.meu import Evaluation, evaluate
from rspmn.model import RSPMN, Evidence


def meu(
    model: RSPMN,
    state: Evidence | None = None,
    horizon: int | None = None,
    discount: float = 1.0,
) -> ExpectedUtility:
    """Return the maximum expected utility over so many steps, or in the limit of many.

    From the start distribution, or from a state observed at any time of an episode. The state
    may be partial, and may hold decisions already made in this step.
    """
    network = _first_step(model, state)
    future = _future_after_first(model, horizon, discount)
    result = actions.meu(network, state, future.discounted(discount))
    bound = discount * future.bound
    if result == -math.inf:
        return _with_frontier(model, state, horizon, discount, future)
    return ExpectedUtility(result, result.supported, result.steps, bound)


def _with_frontier(
    model: RSPMN, state: Evidence | None, horizon: int | None, discount: float, future: Future
) -> ExpectedUtility:
    """Return the MEU where part of what is possible is a frontier: as little as anywhere else."""
    known = known_values({} if state is None else state, model.template)
    least = min((v for v in values(model, horizon, discount) if v > -math.inf), default=-math.inf)
    weights = model.starts if state is None else model.visits or (1.0,) * model.num_interfaces
    evaluated = evaluate(model.template, known, future.discounted(discount))
    total = earned = 0.0
    for i, (root, weight) in enumerate(zip(model.template.roots, weights, strict=True)):
        share = weight * math.exp(evaluated[root].log_likelihood)
        if share > 0 and i not in (model.end, model.unknown):
            total += share
            earned += share * max(evaluated[root].utility, least)
    return ExpectedUtility(earned / total, False, 0.0, discount * future.bound)


def expected_utilities(
    model: RSPMN,
    state: Evidence | None = None,
    horizon: int | None = None,
    discount: float = 1.0,
    allow_untried: bool = False,
) -> list[ActionValue]:
    """Return what each value of the next decision is worth, chosen now and the best after it.

    With `allow_untried` also those never tried in the state, `tried` being False.
    """
    if allow_untried and model.untried is not None:
        wider = expected_utilities(model.with_untried(), state, horizon, discount)
        known = expected_utilities(model, state, horizon, discount)
        return actions.hopes_marked(wider, known)
    network = _first_step(model, state)
    made = known_values({} if state is None else state, network)
    asked = next((name for name in model.schema.decisions if name not in made), None)
    future = _future_after_first(model, horizon, discount)
    return actions.expected_utilities(network, state, asked, future.discounted(discount))


def best_decisions(
    model: RSPMN,
    state: Evidence | None = None,
    horizon: int | None = None,
    discount: float = 1.0,
    allow_untried: bool = False,
) -> list[ActionValue]:
    """Return every best value of the next decision, ties and all."""
    answers = expected_utilities(model, state, horizon, discount, allow_untried)
    return actions.best_among(answers)


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
        future = update(model, future, discount, step)
    return evaluate(model.top, {}, future.roots)[model.top.root]


def future_values(model: RSPMN, horizon: int | None, discount: float = 1.0) -> Future:
    """Return what each interface node is worth with `horizon` steps to go.

    Horizon 0 is the end: nothing follows. None means in the limit of many steps.
    """
    if not 0 <= discount <= 1:
        raise EvidenceError(f"discount: expected a number from 0 to 1, found {discount}")
    if horizon is None:
        utilities, bound = limit(model, discount)
    else:
        utilities, bound = model.bellman.value(check_steps(horizon, least=0), discount), 0.0
    return Future([Evaluation(0.0, u) for u in utilities.tolist()], bound)


def check_steps(horizon: int, least: int) -> int:
    """Refuse a horizon that is not a whole number of at least so many steps."""
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < least:
        raise EvidenceError(f"horizon: expected {least} or more steps, found {horizon!r}")
    return int(horizon)


def _future_after_first(model: RSPMN, horizon: int | None, discount: float) -> Future:
    left = None if horizon is None else check_steps(horizon, least=1) - 1
    return future_values(model, left, discount)


def _first_step(model: RSPMN, state: Evidence | None) -> Network:
    """Return the network to ask, having checked what is asked of it."""
    if state is None:
        return model.from_start
    known_values(state, model.from_anywhere)
    return model.from_anywhere
