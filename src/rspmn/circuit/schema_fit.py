"""What a network must satisfy to describe one step of a schema, besides being valid.

The same variables, each in its role and of its kind, in the order P≺ in which they become known.
"""

from collections.abc import Iterator

from rspmn.circuit.network import Network
from rspmn.circuit.nodes import Leaf, Max, Utility
from rspmn.circuit.scope import NEXT_STEPS, Scope, scopes, show_scope
from rspmn.circuit.validity import Finding, Violation, order_violations, with_paths
from rspmn.schema import Schema


def schema_violations(network: Network, schema: Schema, recurrent: bool) -> list[Violation]:
    """Return everything that keeps a network from describing one step of a schema.

    If it is recurrent, a template, the next steps are also in the scope of its roots.
    """
    expected: Scope = frozenset(schema.variables)
    if recurrent:
        expected |= {NEXT_STEPS}
    known_before = {name: schema.known_before(name) for name in schema.decisions}
    return order_violations(network, known_before) + with_paths(
        network,
        {
            "over the schema's variables": same_variables(network, expected),
            "in its variable's role": in_role(network, schema),
        },
    )


def same_variables(network: Network, expected: Scope) -> Iterator[Finding]:
    """Yield the first root if its variables differ; sound templates have one scope at all roots."""
    root = network.roots[0]
    found = scopes(network)[root]
    if found != expected:
        yield root, f"expected {show_scope(expected)}, found {show_scope(found)}"


def in_role(network: Network, schema: Schema) -> Iterator[Finding]:
    """Yield leaves, max nodes and utilities whose variable has another role or kind."""
    for index, node in enumerate(network.nodes):
        match node:
            case Leaf(variable=name):
                kind = schema.kinds.get(name)
                fits = name in schema.state_variables
                fits = fits and (kind is None or kind in node.distribution.kinds)
            case Max(decision=name):
                fits = name in schema.decisions
            case Utility(variable=name):
                fits = name == schema.utility
            case _:
                continue
        if not fits:
            what = type(node.distribution if isinstance(node, Leaf) else node).__name__
            yield index, f"a {what} node, but {name!r} is {_role(schema, name)}"


def _role(schema: Schema, name: str) -> str:
    if name == schema.utility:
        return "the utility"
    if name in schema.decisions:
        return "a decision"
    return f"a state variable ({schema.kinds.get(name, 'of unknown kind')})"
