"""MEU, and the value of every action (Sec. 5).

Two questions, two answers. `meu`: what is it worth, if all that comes before a decision will
be observed before it is made. `action_values`: what is each action worth if it is chosen now,
on this evidence alone. They agree when everything before the decision is known; otherwise the
answers say which variables were averaged over.

A decision is not evidence: that an action is only offered in some states says nothing about
which state this is. So where part of what the evidence leaves possible lacks the action, the
answer is for the rest only, and it is flagged, with the probability of that rest.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rspmn.circuit import Network
from rspmn.infer.bellman import Future, check_steps, future_values, values
from rspmn.infer.criterion import MEU, TIE, Criterion, scored, soonest, tied_branches
from rspmn.infer.evidence import as_state, known_values
from rspmn.infer.meu import Evaluation, evaluate
from rspmn.infer.offered import (
    available_values,
    averaged_over,
    branches_of_values,
    decision_asked,
    reached_nodes,
)
from rspmn.model import RSPMN, Evidence
from rspmn.values import Value


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


@dataclass(frozen=True)
class ActionValue:
    """What one value of a decision is worth, and how far that can be trusted."""

    decision: str
    value: Value
    utility: float  # NaN where it is offered nowhere
    available: float  # the probability, given the evidence, of a state that offers it
    steps: float  # logged steps that support the utility
    #: False where the utility is, at least in part, extrapolated: in a state that is possible this
    #: action, or a later decision of the step, was never tried, and is valued by what it did
    #: elsewhere.
    tried: bool = True
    #: Whether the criterion finds it best; several actions may tie.
    best: bool = False
    #: How late the utility is earned, the expected sum of t · u_t: it decides between ties.
    delay: float = 0.0
    #: The variables known before the decision that the evidence lacks. The action is chosen without
    #: them: its utility is an average over their values, weighed by how often they were logged.
    averaged_over: tuple[str, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether every state that the evidence leaves possible offers it, to a known end.

        In the last step of a horizon it need not be known what follows.
        """
        return self.available > 1 - TIE and self.utility > -math.inf


# ---- questions to a network --------------------------------------------------------------


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
    return ExpectedUtility(
        result.utility, result.log_likelihood > -math.inf, _counted(result.steps)
    )


def action_values(
    network: Network,
    evidence: Evidence | None = None,
    decision: str | None = None,
    future: Sequence[Evaluation] = (),
    criterion: Criterion = MEU,
    within: float = 0.0,
) -> list[ActionValue]:
    """Return what each value of the next decision is worth if it is chosen now.

    Every value that the network offers anywhere is in the list; `supported` and `available`
    say which it offers here, and `best` which the criterion prefers. Utilities that are no further
    apart than `within` are ties.

    >>> from rspmn.circuit import NetworkBuilder
    >>> b = NetworkBuilder()
    >>> bet = b.max("bet", {"yes": b.utility("u", -1.0), "no": b.utility("u", 0.0)})
    >>> [(action.value, action.utility, action.best) for action in action_values(b.build(bet))]
    [('yes', -1.0, False), ('no', 0.0, True)]
    """
    known = known_values({} if evidence is None else evidence, network)
    decision = decision_asked(network, known, decision)
    reached = reached_nodes(network, known, decision, future, criterion)
    averaged = averaged_over(network, known, decision)
    answers = []
    for value, available in available_values(network, reached).items():
        chosen = {**known, decision: value}
        result = evaluate(network, chosen, future, criterion, within)[network.root]
        steps = _counted(result.steps)
        answers.append(
            ActionValue(decision, value, result.utility, available, steps, delay=result.delay,
                        averaged_over=averaged)
        )  # fmt: skip
    worth = np.array([answer.utility for answer in answers])
    branches = branches_of_values(network, reached, [answer.value for answer in answers])
    return judged(answers, scored(criterion, worth, branches).tolist(), within)


def best_decisions(
    network: Network,
    evidence: Evidence | None = None,
    decision: str | None = None,
    future: Sequence[Evaluation] = (),
    criterion: Criterion = MEU,
) -> list[ActionValue]:
    """Return every best value of the next decision, ties included; the first is to be chosen.

    Nothing is returned for evidence that the network finds impossible.
    """
    return best_among(action_values(network, evidence, decision, future, criterion))


def best_among(answers: Sequence[ActionValue]) -> list[ActionValue]:
    """Return the actions that tie for the best, the one that earns soonest first."""
    best = [answer for answer in answers if answer.best]
    if len(best) > 1:
        best.insert(0, best.pop(soonest(range(len(best)), [answer.delay for answer in best])))
    return best


def judged(
    answers: Sequence[ActionValue], scores: Sequence[float], within: float = 0.0
) -> list[ActionValue]:
    """Return actions with `best` set by their scores.

    Only supported ones compete, unless there are none; then those that part of the possible
    states offer do, flagged as they are.
    """
    allowed = [a.available > 0 and not math.isnan(s) for a, s in zip(answers, scores, strict=True)]
    running = [ok and a.supported for a, ok in zip(answers, allowed, strict=True)]
    running = running if any(running) else allowed
    worth = [a.utility if r else math.nan for a, r in zip(answers, running, strict=True)]
    best = tied_branches(worth, scores, within)
    return [replace(answer, best=k in best) for k, answer in enumerate(answers)]


def mark_extrapolated(
    answers: Sequence[ActionValue], observed: Sequence[ActionValue]
) -> list[ActionValue]:
    """Set `tried` of answers that extrapolate, given those that only know what was tried."""
    offered = {answer.value: answer.available for answer in observed}

    def tried(answer: ActionValue) -> bool:
        if not answer.available:
            return True  # it is not offered: nothing is extrapolated
        return answer.steps > 0 and offered.get(answer.value, 0.0) > answer.available - TIE

    return [replace(answer, tried=tried(answer)) for answer in answers]


# ---- questions to a recurrent model ------------------------------------------------------


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


def _counted(steps: float) -> float:
    return 0.0 if math.isinf(steps) else steps
