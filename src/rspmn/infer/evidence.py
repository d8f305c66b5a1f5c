"""Evidence: what is known of some variables when a question is asked."""

import math

from rspmn.circuit import Leaf, Max, Network, Utility
from rspmn.errors import EvidenceError, RspmnError, did_you_mean
from rspmn.model import Evidence
from rspmn.values import Value, as_value

__all__ = ["Evidence", "Known", "known_values"]

#: Evidence that has been checked: only what is known, as plain values.
Known = dict[str, Value]


def known_values(evidence: Evidence, network: Network) -> Known:
    """Return what is known; refuse variables that the network does not have.

    A value that the network never saw is no error: it has likelihood 0.
    """
    utilities = {node.variable for node in network.nodes if isinstance(node, Utility)}
    variables = {node.variable for node in network.nodes if isinstance(node, Leaf)}
    variables |= {node.decision for node in network.nodes if isinstance(node, Max)}
    known: Known = {}
    for name, raw in evidence.items():
        if name in utilities:
            raise EvidenceError(
                f"{name!r} is the utility: it is what is asked for, not evidence; leave it out"
            )
        if name not in variables:
            raise EvidenceError(
                f"unknown variable {name!r}: {did_you_mean(name, sorted(variables))}"
            )
        if raw is None or (isinstance(raw, float) and math.isnan(raw)):
            continue
        try:
            known[name] = as_value(raw, f"evidence for {name!r}")
        except RspmnError as error:
            raise EvidenceError(str(error)) from None
    return known
