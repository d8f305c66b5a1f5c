"""A policy as a table, one row for each interface node."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rspmn.infer.base_policy import BasePolicy


def policy_table(policy: "BasePolicy", t: int = 0) -> dict[str, list[Any]]:
    """Return the states of each interface node, the best decisions, what they are worth.

    `visits` are the logged steps in the node, `steps` those of them with these decisions; 0 where
    they were never tried. A node in which no decision was ever tried has none, and its value is
    NaN; so is, before the last step, that of a node in which it is not known what follows any
    decision. `supported` is the share of the value that is known to the end; it is left out where
    everything is.
    """
    model = policy.model
    schema, states = model.schema, model.state_index.node_values
    visits = model.visits or (0.0,) * model.num_interfaces
    names = (*schema.information_sets[0], *schema.decisions, "value", "visits", "steps")
    rows: dict[str, list[Any]] = {name: [] for name in ("node", *names)}
    supported: list[float] = []
    for node in range(model.num_interfaces):
        if node in (model.end, model.unknown):
            continue
        made, value = policy.choices(node, t)
        rows["node"].append(node)
        for name in schema.information_sets[0]:
            rows[name].append(states[node].get(name, ""))
        for name in schema.decisions:
            rows[name].append(made.get(name))
        rows["value"].append(value)
        rows["visits"].append(visits[node])
        rows["steps"].append(policy.steps(node, t))
        supported.append(policy.supported(node, t))
    return rows if all(share == 1 for share in supported) else {**rows, "supported": supported}
