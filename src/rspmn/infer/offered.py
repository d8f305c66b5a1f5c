"""Which decision comes next, and with what probability each of its values is offered."""

import math
from collections.abc import Sequence

import numpy as np

from rspmn.circuit import Leaf, Max, Network, Node, Product, Sum, walk_down
from rspmn.errors import EvidenceError, did_you_mean
from rspmn.infer.branches import Branches, Context, Edge
from rspmn.infer.criterion import Criterion
from rspmn.infer.evidence import Known
from rspmn.infer.meu import Evaluation, evaluate
from rspmn.values import Mark, Value

#: Of max nodes, the probability of being there, and which branches are possible.
Reached = dict[int, tuple[float, list[bool]]]


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


def averaged_over(network: Network, known: Known, decision: str) -> tuple[str, ...]:
    """Return the variables above a decision's max nodes that are not known."""

    def send(_: int, node: Node, __: list[None]) -> list[tuple[int, None]]:
        if isinstance(node, Max) and node.decision == decision:
            return []
        return [(child, None) for child in node.children]

    above = (network.nodes[index] for index in walk_down(network, {network.root: None}, send))
    return tuple(sorted({node.variable for node in above if isinstance(node, Leaf)} - set(known)))


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


def branches_of_values(
    network: Network,
    reached: Reached,
    values: Sequence[Value],
) -> Branches:
    """Return actions as branches: each is those of all max nodes in which it may be chosen."""

    def edges() -> list[list[Edge]]:
        found: list[list[Edge]] = []
        for value in values:
            mine = [
                (index, node.values.index(value))
                for index in reached
                if isinstance(node := network.nodes[index], Max) and value in node.values
            ]
            found.append([edge for edge in mine if reached[edge[0]][0] > 0] or mine)
        return found

    return Branches(Context(network), np.zeros(1, np.int64), len(values), edges)


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
