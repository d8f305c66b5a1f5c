"""Placing a log in a model: the interface node of every step, and the S_L it went on by."""

from dataclasses import dataclass

import numpy as np

from rspmn.circuit import Utility
from rspmn.data.columns import Column
from rspmn.data.episodes import Followed
from rspmn.data.states import States, distinct_states
from rspmn.data.windows import Windows
from rspmn.errors import DataError
from rspmn.infer.compiled.forward_backward import entries_of
from rspmn.infer.compiled.leaf_tables import Distinct
from rspmn.infer.compiled.state_index import StateIndex
from rspmn.infer.compiled.subtrees import Instances, Subtrees
from rspmn.model import RSPMN
from rspmn.types import Array, Bools, Ints

#: The interface node of a state that all interface nodes exclude.
NOWHERE = -1
#: The interface node of a state, lacking values, that may be in several: it takes no part.
SEVERAL = -2


@dataclass(frozen=True, eq=False)
class Placed:
    """Where the windows of a log are in a model."""

    states: States
    of_states: Ints  # [num_states], the interface node of each, NOWHERE or SEVERAL
    here: Ints  # [num_windows], the interface node of each step, NOWHERE or SEVERAL
    after: Ints  # [num_windows], that of what followed; NOWHERE also where it is unknown
    trees: Subtrees
    instances: Instances
    window: Ints  # [ways], the windows that the model has a place for, once for each way down
    instance: Ints  # [ways], the instance of the S_L at its end
    logs: Array  # [ways], how likely it is to get there, whatever is earned
    chosen: Bools  # [ways], the one of each window that fits best what it earned


def place(model: RSPMN, windows: Windows) -> Placed:
    """Send every window down its interface node, by every way that fits what was seen."""
    schema = model.schema
    if sorted(schema.variables) != sorted(windows.schema.variables):
        raise DataError(
            f"the model's variables are {list(schema.variables)}, "
            f"the windows' {list(windows.schema.variables)}"
        )
    states = distinct_states(windows)
    of_states = _routed(model, states.columns, states.count)
    here = of_states[states.of_steps]
    after = np.where(states.of_successors >= 0, of_states[states.of_successors], NOWHERE)
    after[windows.followed == Followed.END] = NOWHERE if model.end is None else model.end
    trees = Subtrees(model.template, apart=True)
    names = [name for name in schema.variables if name != schema.utility]
    columns = {name: Distinct.of(windows.columns[name]) for name in names}
    row = np.flatnonzero(here >= 0)
    instances = Instances(trees, columns, row, here[row])
    window, _, _, logs, instance = entries_of(instances)
    earned = windows.columns[schema.utility].data
    chosen = _nearest(trees, instances.position[instance], window, logs, earned)
    return Placed(states, of_states, here, after, trees, instances, window, instance, logs, chosen)


def _routed(model: RSPMN, columns: dict[str, Column], count: int) -> Ints:  # [count]
    """Return the interface node of each state, NOWHERE if none knows it, or SEVERAL."""
    index = StateIndex(model)
    known = {name: Distinct.of(column) for name, column in columns.items()}
    scores = index.compiled(known, count) + index.prior[:, None]
    possible = (scores > -np.inf).sum(axis=0)
    several = np.where(possible == 0, NOWHERE, SEVERAL)
    return np.where(possible == 1, scores.argmax(axis=0), several)


def _nearest(
    trees: Subtrees, position: Ints, window: Ints, logs: Array, earned: Array
) -> Bools:  # [entries]
    """Choose one way for each window: likely, and with a utility like the one earned."""
    means, variances = _utilities(trees)
    away = (earned[window] - means[position]) ** 2
    score = logs - away / (2 * (variances[position] + 1e-9 * (1 + means[position] ** 2)))
    order = np.lexsort((-score, window))
    chosen = np.zeros(len(window), dtype=bool)
    if len(window):
        chosen[order[np.append(True, np.diff(window[order]) != 0)]] = True
    return chosen


def _utilities(trees: Subtrees) -> tuple[Array, Array]:
    """Return mean and variance of the utility beside or above each position."""
    means, variances = np.zeros((2, len(trees.nodes)))
    nodes = trees.template.nodes
    for start, first, last in zip(
        trees.node_starts[:-1], trees.edge_starts[:-1], trees.edge_starts[1:], strict=True
    ):
        edges = [(int(trees.parent[e]), int(trees.child[e])) for e in range(first, last)]
        beside: dict[int, Utility] = {}
        for parent, child in edges:
            node = nodes[int(trees.nodes[start + child])]
            if isinstance(node, Utility):
                beside[parent] = node
        for parent, child in reversed(edges):  # from the root down: parents stand last
            found = beside.get(parent)
            if found is not None:
                beside.setdefault(child, found)
                means[start + child], variances[start + child] = found.mean, found.variance
    return means, variances
