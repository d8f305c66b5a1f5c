"""Networks and schemas: whether a network speaks of what a schema names."""

from rspmn.circuit import (
    Leaf,
    Max,
    Network,
    Utility,
    Violation,
    order_violations,
    scopes,
)
from rspmn.circuit.scope import Scope, show_scope
from rspmn.errors import CircuitError
from rspmn.schema import Schema


def schema_order_violations(network: Network, schema: Schema) -> list[Violation]:
    """Return everything that stands in another order than the schema's."""
    before = {name: schema.known_before(name) for name in schema.decisions}
    return order_violations(network, before)


def refuse(owner: str, found: list[str]) -> None:
    """Raise the first of some violations, if there are any."""
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise CircuitError(f"{owner}: {found[0]}{more}")


def check_variables(owner: str, network: Network, schema: Schema, further: Scope) -> None:
    """Hold a network to a schema: the same variables, each in its role and of its kind."""
    expected: Scope = frozenset(schema.variables) | further
    found = scopes(network)[network.roots[0]]
    if found != expected:
        raise CircuitError(
            f"{owner}: the schema's variables are {show_scope(expected)}, "
            f"but the network's are {show_scope(found)}"
        )
    for index, node in enumerate(network.nodes):
        match node:
            case Leaf(variable=name):
                kind = schema.kinds.get(name)
                fits = kind is None or kind in node.distribution.kinds
                fits = fits and name in schema.state_variables
            case Max(decision=name):
                fits = name in schema.decisions
            case Utility(variable=name):
                fits = name == schema.utility
            case _:
                continue
        if not fits:
            what = type(node.distribution if isinstance(node, Leaf) else node).__name__
            raise CircuitError(
                f"{owner}: node {index} is a {what} node, but {name!r} is {_role(schema, name)}"
            )


def _role(schema: Schema, name: str) -> str:
    if name == schema.utility:
        return "the utility"
    if name in schema.decisions:
        return "a decision"
    return f"a state variable ({schema.kinds.get(name, 'of unknown kind')})"
