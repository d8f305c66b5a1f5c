"""A policy as a table, one row for each interface node."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rspmn.circuit import Distribution, Leaf, Network
from rspmn.infer.compiled.state_index import state_part
from rspmn.infer.number_ranges import joined, number_range, range_text
from rspmn.values import Value, show

if TYPE_CHECKING:
    from rspmn.infer.base_policy import BasePolicy


#: So many values are written out where states that behave alike are one interface node.
SHOWN = 6


def policy_table(policy: "BasePolicy", t: int = 0) -> dict[str, list[Any]]:
    """Return the states of each interface node, the best decisions, what they are worth.

    `visits` are the logged steps in the node, `steps` those of them with these decisions; 0 where
    they were never tried. A node in which no decision was ever tried has none, and its value is
    NaN; so is, before the last step, that of a node in which it is not known what follows any
    decision. `supported` is the share of the value that is known to the end; it is left out where
    everything is.
    """
    model = policy.model
    schema, states = model.schema, state_part(model.template)
    visits = model.visits or (0.0,) * model.num_interfaces
    names = (*schema.information_sets[0], *schema.decisions, "value", "visits", "steps")
    rows: dict[str, list[Any]] = {name: [] for name in ("node", *names)}
    supported: list[float] = []
    for node in range(model.num_interfaces):
        if node in (model.end, model.unknown):
            continue
        made, value = policy.choices(node, t)
        rows["node"].append(node)
        values = values_in_node(states, states.roots[node])
        for name in schema.information_sets[0]:
            rows[name].append(values.get(name, ""))
        for name in schema.decisions:
            rows[name].append(made.get(name))
        rows["value"].append(value)
        rows["visits"].append(visits[node])
        rows["steps"].append(policy.steps(node, t))
        supported.append(policy.supported(node, t))
    return rows if all(share == 1 for share in supported) else {**rows, "supported": supported}


def values_in_node(states: Network, root: int) -> dict[str, Value]:
    """Return the values of the variables in an interface node; several are one text.

    Numbers are ranges, "2.39 to 2.57", without the tails of their densities.
    """
    found: dict[str, dict[Distribution, None]] = {}
    waiting = [root]
    for here in waiting:
        node = states.nodes[here]
        waiting.extend(node.children)
        if isinstance(node, Leaf):
            found.setdefault(node.variable, {})[node.distribution] = None
    return {name: _shown(held) for name, held in found.items()}


def _shown(held: Iterable[Distribution]) -> Value:
    values: dict[Value, None] = {}
    ranges = []
    for distribution in held:
        if distribution.atoms() is None:
            ranges.append(number_range(distribution))
        else:
            values |= dict.fromkeys(distribution.span())
    values |= {range_text(*each): None for each in joined(ranges)}
    if len(values) == 1:
        return next(iter(values))
    return " | ".join(map(show, [*values][:SHOWN])) + (" | ..." if len(values) > SHOWN else "")
