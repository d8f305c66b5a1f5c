"""MEU, and the expected utility of every value of the next decision (Sec. 5).

Two questions, two answers. `meu`: what is it worth, if all that comes before a decision will
be seen before it is made. `expected_utilities`: what is each choice worth if it is made now,
on this evidence alone. They agree when everything before the decision is known.

A decision is not evidence: that an action is only offered in some states says nothing about
which state this is. So where part of what the evidence leaves possible lacks the action, the
answer is for the rest only, and it is flagged, with the probability of that rest.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rspmn.circuit import Max, Network, Node, Product, Sum, walk_down
from rspmn.errors import EvidenceError, did_you_mean
from rspmn.infer.evidence import Known, known_values
from rspmn.infer.meu import TIE, Evaluation, evaluate
from rspmn.model import Evidence
from rspmn.values import Mark, Value


class ExpectedUtility(float):
    """A number that knows how far it can be trusted; NaN when nothing supports it."""

    #: Whether the evidence is possible at all under the model.
    supported: bool
    #: How many logged steps stand behind it: of the choices made in this step.
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
    steps: float  # logged steps behind the utility
    #: False where the utility is, at least in part, a hope: in a state that is possible it, or a
    #: later decision of the step, was never made, and is valued by what it did elsewhere.
    tried: bool = True

    @property
    def supported(self) -> bool:
        """Whether every state that the evidence leaves possible offers it, to a known end.

        In the last step of a horizon it need not be known what follows.
        """
        return self.available > 1 - TIE and self.utility > -math.inf


def meu(
    network: Network, evidence: Evidence | None = None, future: Sequence[Evaluation] = ()
) -> ExpectedUtility:
    """Return the maximum expected utility given evidence.

    >>> from rspmn.circuit import NetworkBuilder
    >>> b = NetworkBuilder()
    >>> bet = b.max("bet", {"yes": b.utility("u", -1.0), "no": b.utility("u", 0.0)})
    >>> meu(b.build(bet))
    0.0
    """
    known = known_values({} if evidence is None else evidence, network)
    result = evaluate(network, known, future)[network.root]
    return ExpectedUtility(
        result.utility, result.log_likelihood > -math.inf, _counted(result.steps)
    )


def expected_utilities(
    network: Network,
    evidence: Evidence | None = None,
    decision: str | None = None,
    future: Sequence[Evaluation] = (),
) -> list[ActionValue]:
    """Return what each value of the next decision is worth if it is chosen now.

    Every value that the network offers anywhere is in the list; `supported` and `available`
    tell those that it offers here.
    """
    known = known_values({} if evidence is None else evidence, network)
    decision = _decision_asked(network, known, decision)
    answers = []
    for value, available in _available(network, known, decision, future).items():
        result = evaluate(network, {**known, decision: value}, future)[network.root]
        steps = _counted(result.steps)
        answers.append(ActionValue(decision, value, result.utility, available, steps))
    return answers


def hopes_marked(answers: Sequence[ActionValue], known: Sequence[ActionValue]) -> list[ActionValue]:
    """Mark hopes among answers, given what is known without them."""
    offered = {answer.value: answer.available for answer in known}

    def tried(answer: ActionValue) -> bool:
        if not answer.available:
            return True  # it is not offered: there is no hope for it
        return answer.steps > 0 and offered.get(answer.value, 0.0) > answer.available - TIE

    return [replace(answer, tried=tried(answer)) for answer in answers]


def best_decisions(
    network: Network,
    evidence: Evidence | None = None,
    decision: str | None = None,
    future: Sequence[Evaluation] = (),
) -> list[ActionValue]:
    """Return every best value of the next decision, ties and all; the first is as good as any.

    Nothing is returned for evidence that the network finds impossible.
    """
    return best_among(expected_utilities(network, evidence, decision, future))


def best_among(answers: Sequence[ActionValue]) -> list[ActionValue]:
    """Return the best of several actions, ties and all.

    Only supported ones compete, unless there are none; then those that part of the possible
    states offer do, flagged as they are.
    """
    running = [a for a in answers if a.supported] or [a for a in answers if a.available > 0]
    running = [a for a in running if a.utility > -math.inf] or running
    if running and running[0].utility == -math.inf:
        return running  # of none it is known what follows
    best = max((a.utility for a in running), default=0.0)
    size = max((abs(a.utility) for a in running), default=0.0)
    return [a for a in running if best - a.utility <= TIE * size]


def next_decisions(network: Network, known: Known) -> list[str]:
    """Return the decisions that come first among those not yet made.

    There is one, unless independent parts of the network decide apart from each other.
    """
    reached = (network.nodes[index] for index in _walk_to_decisions(network, known))
    return sorted({n.decision for n in reached if isinstance(n, Max) and n.decision not in known})


def _counted(steps: float) -> float:
    return 0.0 if math.isinf(steps) else steps


def _decision_asked(network: Network, known: Known, decision: str | None) -> str:
    """Return the decision that is asked for, or say why it cannot be made now."""
    waiting = next_decisions(network, known)
    decisions = sorted({node.decision for node in network.nodes if isinstance(node, Max)})
    if decision is None:
        if len(waiting) == 1:
            return waiting[0]
        if waiting:
            raise EvidenceError(f"several decisions come next, {waiting}: name the one you ask for")
        if not decisions:
            raise EvidenceError("no decision is left to make: there are none")
        raise EvidenceError("no decision is left to make: the evidence holds them all")
    if decision not in decisions:
        raise EvidenceError(f"{decision!r} is not a decision: {did_you_mean(decision, decisions)}")
    if decision in known:
        raise EvidenceError(f"{decision!r} is asked for, but the evidence says it is made")
    if decision not in waiting:
        raise EvidenceError(f"{decision!r} comes after {waiting}: add what was decided there")
    return decision


def _available(
    network: Network, known: Known, decision: str, future: Sequence[Evaluation]
) -> dict[Value, float]:
    """Return, for each value of a decision, the probability that it is offered.

    That is the probability flowing down to the decision's max nodes that have the value, and
    below which what is known of later variables is possible. END and UNKNOWN are no choices.
    """
    evaluated = evaluate(network, known, future)
    possible = evaluated[network.root].log_likelihood > -math.inf
    reached = _walk_to_decisions(network, known, evaluated) if possible else {}
    available: dict[Value, float] = {}
    for index, node in enumerate(network.nodes):
        if isinstance(node, Max) and node.decision == decision:
            flow = math.fsum(reached.get(index, []))
            for value, child in zip(node.values, node.children, strict=True):
                offered = evaluated[child].log_likelihood > -math.inf
                available[value] = available.get(value, 0.0) + (flow if offered else 0.0)
    return {value: flow for value, flow in available.items() if not isinstance(value, Mark)}


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
