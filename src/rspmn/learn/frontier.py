"""What the log shows only at its edge: decisions followed by nothing known, states never acted in.

A decision seen only where the log was cut is offered, but leads to UNKNOWN: it may count in the
last step of a horizon and never before it. A state seen only as a successor is a frontier: no
decision of it is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rspmn.circuit import Network, NetworkBuilder
from rspmn.data.episodes import Followed
from rspmn.data.keys import joint_groups
from rspmn.infer.compiled.assign import NOWHERE
from rspmn.learn.routing import Routes
from rspmn.learn.structure.after_decision import RecurrentOutcome
from rspmn.learn.structure.grow import grow_decisions
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.leaves import fit_leaf
from rspmn.learn.structure.rows import Rows, table_of
from rspmn.learn.two_step_rows import TwoSteps
from rspmn.schema import Schema
from rspmn.types import Array, Ints


@dataclass(frozen=True, eq=False)
class Edge:
    """The edge of a log."""

    network: Network | None  # decisions that lead to nothing known, a root for each node of `at`
    at: Ints  # [roots], the interface nodes or, below 0, -1 - the states that they belong to
    branches: int  # how many (interface node, decisions) have no known successor
    states: Ints  # the states never acted in
    acted_in: Ints  # the states acted in, but never with a known successor


def edge_of(two: TwoSteps, routes: Routes, learned_in: Ints, learner: Learner) -> Edge:
    """Find decisions and states at the edge of a log."""
    windows, states = two.windows, routes.states
    certain = ~routes.doubtful[states.of_steps]
    cut = np.flatnonzero((windows.followed == Followed.UNKNOWN) & certain)
    node = routes.of_steps
    node = np.where(node == NOWHERE, -1 - states.of_steps, node)
    made = joint_groups([windows.columns[n] for n in two.schema.decisions], len(windows)).codes
    tried = np.unique(_pairs(node, made)[learned_in >= 0])
    untried = cut[~np.isin(_pairs(node, made)[cut], tried)]
    at = np.unique(node[untried])
    outcome = RecurrentOutcome(two.schema.utility, ())
    roots = []
    for here in at.tolist():
        chosen = untried[node[untried] == here]
        rows = Rows(two.table, chosen, windows.counts[chosen].astype(np.float64))
        roots.append(grow_decisions(learner, two.schema, rows, outcome))
    arrived = np.zeros(states.count, dtype=bool)
    arrived[states.of_successors[states.of_successors >= 0]] = True
    nowhere = np.flatnonzero((routes.of_states == NOWHERE) & arrived)
    acted_in = -1 - at[at < 0]
    return Edge(
        learner.builder.build(*roots) if roots else None,
        at,
        len(np.unique(_pairs(node, made)[untried])),
        np.setdiff1d(nowhere, acted_in),
        np.sort(acted_in),
    )


def _pairs(node: Ints, made: NDArray[np.int32] | Ints) -> Ints:
    return node * (int(made.max(initial=0)) + 1) + made


def state_leaves(
    builder: NetworkBuilder, routes: Routes, state: int, names: Sequence[str], bins: int
) -> list[int]:
    """Add a leaf for each variable of one state: a single value, whatever family was asked for."""
    one = {name: routes.states.columns[name].take(np.array([state])) for name in names}
    rows = Rows(table_of(one, np.ones(1), bins), np.zeros(1, np.int64), np.ones(1))
    return [builder.add(fit_leaf(rows, name, {})) for name in names]


def frontier_state(
    builder: NetworkBuilder, routes: Routes, edge: Edge, arrivals: Array,
    schema: Schema, bins: int,
) -> list[int]:  # fmt: skip
    """Add the distribution of the states never acted in, by how often each was arrived at."""
    names = schema.information_sets[0]
    parts = [state_leaves(builder, routes, s, names, bins) for s in edge.states.tolist()]
    if len(parts) == 1:
        return parts[0]
    weights = arrivals[edge.states]
    children = [builder.product(part) if len(part) > 1 else part[0] for part in parts]
    merged: dict[int, float] = {}
    for child, weight in zip(children, weights.tolist(), strict=True):
        merged[child] = merged.get(child, 0.0) + weight
    total = sum(merged.values())
    return [builder.sum(list(merged), [weight / total for weight in merged.values()])]
