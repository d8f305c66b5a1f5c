"""Evidence: what is known of some variables when a question is asked."""

from collections.abc import Mapping

from rspmn.circuit import Categorical, Leaf, Max, Network, Utility
from rspmn.errors import EvidenceError, did_you_mean
from rspmn.model import Evidence
from rspmn.values import Mark, Value, as_value, is_missing

#: Evidence that has been checked: only what is known, as plain values.
Known = dict[str, Value]


def known_values(evidence: Evidence, network: Network) -> Known:
    """Return what is known; refuse variables that the network does not have.

    A value that the network never saw is no error: it has likelihood 0.
    """
    if not isinstance(evidence, Mapping):
        raise EvidenceError(
            f"expected values by variable, as in {{'x': 1}}, found {type(evidence).__name__}"
        )
    utilities = {node.variable for node in network.nodes if isinstance(node, Utility)}
    types = _types(network)
    known: Known = {}
    for name, raw in evidence.items():
        if name in utilities:
            raise EvidenceError(
                f"{name!r} is the utility: it is what is asked for, not evidence; leave it out"
            )
        if name not in types:
            raise EvidenceError(f"unknown variable {name!r}: {did_you_mean(name, sorted(types))}")
        if is_missing(raw):
            continue
        value = known[name] = as_value(raw, f"evidence for {name!r}", EvidenceError)
        if not isinstance(value, Mark) and types[name] and _type(value) not in types[name]:
            raise EvidenceError(
                f"evidence for {name!r}: its values are {' and '.join(sorted(types[name]))}, "
                f"found {value!r}"
            )
    return known


def _types(network: Network) -> dict[str, set[str]]:
    """Return whether the values of each variable are numbers or text."""
    types: dict[str, set[str]] = {}
    for node in network.nodes:
        match node:
            case (
                Leaf(variable=name, distribution=Categorical(values=values))
                | Max(decision=name, values=values)
            ):
                found = {_type(value) for value in values if not isinstance(value, Mark)}
            case Leaf(variable=name):
                found = {"numbers"}
            case _:
                continue
        types.setdefault(name, set()).update(found)
    return types


def _type(value: Value) -> str:
    return "text" if isinstance(value, str) else "numbers"
