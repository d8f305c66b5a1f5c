"""Laws of a schema, and rules of a policy, as formulas that need nothing of this package."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rspmn.availability import DecisionCondition, Law
from rspmn.circuit import Leaf, Max, Network
from rspmn.expressions import Expression
from rspmn.expressions.formula import Formula, Holds, formula_of
from rspmn.infer.constraints import Forbidden
from rspmn.values import Mark, Value


@dataclass(frozen=True)
class Condition:
    """A condition on the state that a value of a decision depends on.

    A law says where it is available, and says nothing where the state lacks a variable. A rule says
    where it is forbidden, also where the state lacks a variable.
    """

    decision: str
    value: str  # as `label` writes it
    variables: list[str]
    formula: Formula | None  # None: in all states
    is_law: bool

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)


def conditions_of(
    network: Network, laws: Iterable[Law], rules: Iterable[Forbidden] = ()
) -> list[Condition]:
    """Return laws and rules on the variables of a network, as formulas."""
    holds = _held(network)
    return [
        Condition(c.decision, c.value, [*c.variables], _formula(c, holds), isinstance(c, Law))
        for c in (*laws, *rules)
    ]


def _formula(of: DecisionCondition, holds: Mapping[str, Holds]) -> Formula | None:
    if of.condition is None:
        return None
    columns = {name: holds.get(name, "number") for name in of.variables}
    return formula_of(Expression.parse(of.condition), columns)


def _held(network: Network) -> dict[str, Holds]:
    """Return what the variables of a network hold: numbers, unless all values are of a kind."""
    values: dict[str, list[Value]] = {}
    for node in network.nodes:
        if isinstance(node, Leaf):
            atoms = node.distribution.atoms()
            values.setdefault(node.variable, []).extend([0.5] if atoms is None else atoms)
        elif isinstance(node, Max):
            values.setdefault(node.decision, []).extend(node.values)
    found: dict[str, Holds] = {}
    for name, several in values.items():
        kinds = {type(value) for value in several if not isinstance(value, Mark)}
        found[name] = "text" if kinds == {str} else "condition" if kinds == {bool} else "number"
    return found
