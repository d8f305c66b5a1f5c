"""The value of every action (Sec. 5).

Two questions, two answers. `meu`: what is it worth, if all that comes before a decision will
be observed before it is made. `action_values`: what is each action worth if it is chosen now,
on this evidence alone. They agree when everything before the decision is known; otherwise the
answers say which variables were averaged over.

A decision is not evidence: that an action is only offered in some states says nothing about
which state this is. So where part of what the evidence leaves possible lacks the action, the
answer is for the rest only, and it says how probable that rest is.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rspmn.availability import NeverTaken
from rspmn.circuit import Leaf, Max, Network, Node, Product, Sum, walk_down
from rspmn.errors import EvidenceError, did_you_mean
from rspmn.infer.branches import Branches, Context
from rspmn.infer.criterion import (
    LEAST_KNOWN,
    MEU,
    TIE,
    Criterion,
    scored,
    soonest,
    tied_branches,
)
from rspmn.infer.evaluation import Evaluation, evaluate
from rspmn.infer.evidence import Known, known_values, open_variables
from rspmn.model import Evidence
from rspmn.types import Ints
from rspmn.values import Mark, Value

#: Of max nodes, the probability of being there, and which branches are possible.
Reached = dict[int, tuple[float, list[bool]]]


@dataclass(frozen=True)
class ActionValue:
    """The expected utility of one value of a decision, and its support."""

    decision: str
    value: Value
    utility: float  # NaN if it is available nowhere, or if its successors are unknown
    available: float  # the probability, given the evidence, that it is available
    steps: float  # logged steps that support the utility
    #: False if the utility is, at least in part, extrapolated from other states: in a possible
    #: state this action, or a later decision of the step, was never tried.
    tried: bool = True
    #: Whether it is best according to the criterion; several actions may tie.
    best: bool = False
    #: How late the utility is earned, the expected sum of t · u_t. It breaks ties.
    delay: float = 0.0
    #: The variables observed before the decision that are missing in the evidence. The utility is
    #: an average over their values, weighted by how often they were logged.
    averaged_over: tuple[str, ...] = ()
    #: Given values with which it was never taken, although that was expected. Its utility is that
    #: of otherwise equal states.
    never_taken: tuple[NeverTaken, ...] = ()
    #: The share of logged decisions in such states that were this one; None if that is not known.
    practice: float | None = None
    #: The standard error of the utility due to the number of logged steps; 0 if it is unknown.
    error: float = field(default=0.0, compare=False)
    #: How typical the context is: the proportion of logged contexts that are not more likely. It is
    #: 0 for a context less likely than all of them, or excluded by the model: the utility is a
    #: guess.
    usual: float = 1.0

    #: The probability, given the evidence, that it is available and its successor is known. Actions
    #: that are much less known than others are not compared with them.
    known: float = 1.0
    #: The probability of staying in states with known decisions and successors until the end, if
    #: the action is chosen where it is available. Unknown futures of an action are assumed to be
    #: worth as much as its known ones. In the last step, the successor need not be known.
    supported: float = 1.0
    #: The rule that forbids it, or "". See `rspmn.infer.constraints`.
    forbidden: str = ""


def action_values(
    network: Network,
    evidence: Evidence | None = None,
    decision: str | None = None,
    future: Sequence[Evaluation] = (),
    criterion: Criterion = MEU,
    within: float = 0.0,
) -> list[ActionValue]:
    """Return what each value of the next decision is worth if it is chosen now.

    Every value that the network offers anywhere is in the list; `available` says how probable it
    is that it is offered here, `supported` how much of its utility is known, and `best` which the
    criterion prefers. Utilities that are no further apart than `within` are ties.

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
        answers.append(
            ActionValue(decision, value, result.utility, shown_share(available),
                        result.logged_steps, delay=result.delay, averaged_over=averaged,
                        error=math.sqrt(result.variance),
                        known=shown_share(available * result.known),
                        supported=shown_share(available * result.supported))
        )  # fmt: skip
    scores = np.array([answer.utility for answer in answers])
    offered = np.array([answer.available > 0 for answer in answers], dtype=bool)
    branches = branches_on_offer(network, reached, [a.value for a in answers if a.available > 0])
    scores[offered] = scored(criterion, scores[offered], branches)
    return judged(answers, scores.tolist(), within)


def shown_share(share: float) -> float:
    """Return a share as answers have it: 1 where only rounding makes a difference."""
    return 1.0 if share >= 1 - TIE else float(share)


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
    """Return actions with `best` set by their scores, NaN for utilities of -∞."""
    offered, known = [a.available for a in answers], [a.known for a in answers]
    best = best_values(offered, known, [a.utility for a in answers], scores, within)
    worth = [a.utility if a.utility > -math.inf else math.nan for a in answers]
    return [
        a if a.best == (k in best) and a.utility == u else replace(a, best=k in best, utility=u)
        for k, (a, u) in enumerate(zip(answers, worth, strict=True))
    ]


def best_values(
    offered: Sequence[float],
    known: Sequence[float],
    worth: Sequence[float],
    scores: Sequence[float],
    within: float = 0.0,
) -> list[int]:
    """Return which actions are best, by number; ties included.

    `offered` is how probable it is that each can be chosen, `known` how much is known of it. Those
    compete of which about as much is known as of any: see `rspmn.infer.criterion.LEAST_KNOWN`.
    """
    allowed = [o > 0 and s == s for o, s in zip(offered, scores, strict=True)]
    least = LEAST_KNOWN * max([k for k, ok in zip(known, allowed, strict=True) if ok], default=0.0)
    numbers = [
        math.nan if not ok or k < least else w if w == w else -math.inf
        for w, k, ok in zip(worth, known, allowed, strict=True)
    ]
    return tied_branches(numbers, numbers if scores is worth else scores, within)


def mark_extrapolated(
    answers: Sequence[ActionValue], offered: Mapping[Value, float]
) -> list[ActionValue]:
    """Set `tried` of answers that extrapolate.

    `offered` is the probability of a state in which each value was tried.
    """

    def tried(answer: ActionValue) -> bool:
        if not answer.available:
            return True  # it is not offered: nothing is extrapolated
        return answer.steps > 0 and offered.get(answer.value, 0.0) > answer.available - TIE

    return [replace(answer, tried=tried(answer)) for answer in answers]


# ---- which decision is next, and where its values are offered ------------------------------


def next_decisions(network: Network, known: Known) -> list[str]:
    """Return the decisions that come first among those not yet made.

    There is one, unless independent parts of the network decide apart from each other.
    """
    reached = (network.nodes[index] for index in _walk_to_decisions(network, known))
    return sorted({n.decision for n in reached if isinstance(n, Max) and n.decision not in known})


def decision_asked(network: Network, known: Known, decision: str | None) -> str:
    """Return the decision that is asked for, or say why it cannot be made now."""
    waiting = next_decisions(network, known)
    decisions = sorted({node.decision for node in network.nodes if isinstance(node, Max)})
    if decision is None:
        if len(waiting) == 1:
            return waiting[0]
        if waiting:
            raise EvidenceError(f"several decisions come next, {waiting}: give the decision")
        if not decisions:
            raise EvidenceError("there are no decisions")
        raise EvidenceError("no decision is left to make: all are given in the evidence")
    if decision not in decisions:
        raise EvidenceError(f"{decision!r} is not a decision: {did_you_mean(decision, decisions)}")
    if decision in known:
        raise EvidenceError(f"{decision!r} is already given in the evidence")
    if decision not in waiting:
        raise EvidenceError(f"{decision!r} comes after {waiting}: give their values")
    return decision


def averaged_over(network: Network, known: Known, decision: str) -> tuple[str, ...]:
    """Return the variables above a decision's max nodes that are not known."""

    def send(_: int, node: Node, __: list[None]) -> list[tuple[int, None]]:
        if isinstance(node, Max) and node.decision == decision:
            return []
        return [(child, None) for child in node.children]

    above = (network.nodes[index] for index in walk_down(network, {network.root: None}, send))
    return open_variables({node.variable for node in above if isinstance(node, Leaf)}, known)


def reached_nodes(
    network: Network,
    known: Known,
    decision: str,
    future: Sequence[Evaluation],
    criterion: Criterion,
) -> Reached:
    """Return, for each max node of a decision, its probability and which branches are possible.

    A branch is possible if what is known of later variables is possible below it.
    """
    evaluated = evaluate(network, known, future, criterion)
    possible = evaluated[network.root].log_likelihood > -math.inf
    flows = _walk_to_decisions(network, known, evaluated) if possible else {}
    return {
        index: (
            math.fsum(flows.get(index, [])),
            [evaluated[child].log_likelihood > -math.inf for child in node.children],
        )
        for index, node in enumerate(network.nodes)
        if isinstance(node, Max) and node.decision == decision
    }


def available_values(network: Network, reached: Reached) -> dict[Value, float]:
    """Return the probability that each value of a decision is offered. END is no choice."""
    available: dict[Value, float] = {}
    for index, (flow, possible) in reached.items():
        node = network.nodes[index]
        assert isinstance(node, Max)
        for value, offered in zip(node.values, possible, strict=True):
            available[value] = available.get(value, 0.0) + (flow if offered else 0.0)
    return {value: flow for value, flow in available.items() if not isinstance(value, Mark)}


def branches_on_offer(network: Network, reached: Reached, values: Sequence[Value]) -> Branches:
    """Return actions as branches: each is those of all max nodes in which it may be chosen."""

    def edges() -> tuple[Ints, Ints]:
        found: list[int] = []
        first = []
        for value in values:
            first.append(len(found))
            for index, (flow, possible) in reached.items():
                node = network.nodes[index]
                assert isinstance(node, Max)
                if flow > 0 and value in node.values and possible[node.values.index(value)]:
                    found.append(int(network.arrays.starts[index]) + node.values.index(value))
        return np.array(found, dtype=np.int64), np.array(first, dtype=np.int64)

    starts = np.zeros(min(1, len(values)), np.int64)
    return Branches(Context(network), starts, len(values), edges)


def _walk_to_decisions(
    network: Network, known: Known, evaluated: Sequence[Evaluation] | None = None
) -> dict[int, list[float]]:
    """Let probability flow down from the root, on each path to the first decision not yet made.

    Without `evaluated` every child gets all of it, but those of a decision made otherwise:
    what can be reached at all.
    """

    def send(index: int, node: Node, arrived: list[float]) -> list[tuple[int, float]]:
        flow = math.fsum(arrived)
        match node:
            case Sum() if evaluated is not None:
                shares = _shares(node, index, evaluated)
                return [
                    (child, flow * share)
                    for child, share in zip(node.children, shares, strict=True)
                    if share > 0
                ]
            case Sum() | Product():
                return [(child, flow) for child in node.children]
            case Max() if node.decision in known:
                if known[node.decision] in node.values:
                    return [(node.children[node.values.index(known[node.decision])], flow)]
                return [(child, flow) for child in node.children] if evaluated is None else []
            case _:
                return []

    return walk_down(network, {network.root: 1.0}, send)


def _shares(node: Sum, index: int, evaluated: Sequence[Evaluation]) -> list[float]:
    """Return the probability of each child of a sum, given the evidence."""
    here = evaluated[index].log_likelihood
    return [
        math.exp(math.log(weight) + evaluated[child].log_likelihood - here) if weight > 0 else 0.0
        for child, weight in zip(node.children, node.weights, strict=True)
    ]
