"""The decisions of a plan in all rows of a table of states, and in all interface nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rspmn.infer.actions import shown_share
from rspmn.infer.answers import Answers
from rspmn.infer.compiled.beliefs import Routes
from rspmn.infer.compiled.mixture import decide_all
from rspmn.types import Ints, objects
from rspmn.values import Value, unused

if TYPE_CHECKING:
    from rspmn.infer.base_policy import BasePolicy


def decisions_of_rows(
    answers: Answers, routes: Routes, t: int, fallback: Mapping[str, Value]
) -> dict[str, NDArray[Any]]:
    """Return the decisions in each row of a table at time t, an array for each decision.

    `fallback` has the decisions in states that the model never saw; if it is empty, such a state is
    an error.
    """
    planned, schema = answers.planned, answers.model.schema
    codes, is_open = decide_all(planned, routes, planned.after(t))
    state, row = routes.state, routes.row
    # Laws and limits may tell states apart that are in the same nodes.
    if schema.laws or answers.limits is not None:
        state, row = routes.distinct()
        codes, is_open = codes[:, routes.state[row]], is_open[routes.state[row]]
        for k, at in enumerate(row.tolist()):
            made = {} if codes[0, k] < 0 else answers.named(codes[:, k].tolist())
            is_open[k] |= not answers.is_settled(made, routes.known(at))
    used = np.bincount(state, minlength=len(row)) > 0
    asked = {
        k: answers.decisions_one_by_one(routes.known(int(row[k])), t)
        for k in np.flatnonzero(is_open & used).tolist()
    }
    lost = ~is_open & (codes < 0).any(axis=0) & used
    lost[[k for k, made in asked.items() if not made]] = True
    if lost.any() and not fallback:
        answers.refuse_unseen(routes.known(int(row[np.argmax(lost)])))
    found = {}
    for name in schema.decisions:
        values = [*planned.offers.values(name), fallback.get(name), None]
        code = np.full(len(used), len(values) - 1)
        if name in planned.together:
            code = codes[planned.together.index(name)]
        code = np.where(lost, len(values) - 2, code)
        for k, made in asked.items():
            if made:
                code[k] = len(values)
                values.append(made.get(name))
        found[name] = _looked_up(values, code[state])
    return found


def _looked_up(values: Sequence[Any], code: Ints) -> NDArray[Any]:  # [n]
    """Return the values of codes."""
    used = np.flatnonzero(np.bincount(code, minlength=len(values)))
    place = np.zeros(len(values), dtype=np.int64)
    place[used] = np.arange(len(used))
    return _array([values[k] for k in used.tolist()])[place[code]]


def _array(values: list[Any]) -> NDArray[Any]:
    """Return values as an array of their own type, or of objects if they are mixed."""
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        return np.array(values)
    return objects(values)


@dataclass(frozen=True, eq=False)
class NodeTable:
    """What a policy does in the states of each interface node; each column has a row for a node.

    A node in which no decision was ever tried has none, and its value is NaN; so is, before the
    last step, that of a node in which it is not known what follows any decision.
    """

    node: list[int]
    states: dict[str, list[Any]]
    decisions: dict[str, list[Value | None]]
    value: list[float]
    visits: list[float]  # the logged steps in the node
    steps: list[float]  # those of them with these decisions; 0 where they were never tried
    supported: list[float]  # the share of the value that is known to the end

    def columns(self) -> dict[str, list[Any]]:
        """Return one table; `supported` is left out where everything is.

        Where a variable has the name of another column, that one is called `value_`, for instance.
        """
        variables = {**self.states, **self.decisions}
        rows: dict[str, list[Any]] = {unused("node", variables): self.node, **variables}
        names = ["value", "visits", "steps"]
        if any(share != 1 for share in self.supported):
            names.append("supported")
        return rows | {unused(name, variables): getattr(self, name) for name in names}


def node_table(policy: "BasePolicy", t: int = 0) -> NodeTable:
    """Return the states of each interface node, the best decisions, what they are worth."""
    model = policy.model
    schema, states = model.schema, model.state_index.node_values
    visits = model.visits or (0.0,) * model.num_interfaces
    names = schema.information_sets[0]
    nodes = [n for n in range(model.num_interfaces) if n not in (model.end, model.unknown)]
    first, after = policy.planned.offers.first[nodes], policy.planned.after(t)
    choices = [policy.choices(node, t) for node in nodes]
    steps = policy.planned.steps(first, after).tolist()
    return NodeTable(
        nodes,
        {name: [states[node].get(name, "") for node in nodes] for name in names},
        {name: [made.get(name) for made, _ in choices] for name in schema.decisions},
        [value for _, value in choices],
        [visits[node] for node in nodes],
        [round(of_node, 9) for of_node in steps],  # sums of shares are not whole
        list(map(shown_share, policy.planned.best(first, after)[2].tolist())),
    )
