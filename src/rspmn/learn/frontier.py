"""What lies at the edge of a log: decisions followed by nothing known, states never acted in.

A decision that was only made in steps with an unknown successor is offered, but leads to UNKNOWN:
it may count in the last step of a horizon and never before it. A state that was only arrived at is
a frontier: no decision in it is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.circuit import Network, NetworkBuilder
from rspmn.data.episodes import Followed
from rspmn.data.keys import joint_groups
from rspmn.data.windows import States
from rspmn.infer.compiled.assign import NOWHERE, SEVERAL
from rspmn.learn.one_step import OneStep
from rspmn.learn.structure.after_decision import RecurrentOutcome
from rspmn.learn.structure.grow import grow_decisions
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.leaves import fit_leaf
from rspmn.learn.structure.rows import Rows, table_of
from rspmn.learn.two_step import TwoSteps
from rspmn.types import Array, Ints


@dataclass(frozen=True, eq=False)
class Border:
    """The edge of a log."""

    network: Network | None  # decisions that lead to nothing known, a root for each node of `at`
    at: Ints  # [roots], the interface nodes or, below 0, -1 - the states that they belong to
    branches: int  # the number of pairs (interface node, decisions) without a known successor
    states: Ints  # the states never acted in
    acted_in: Ints  # the states acted in, but never with a known successor


def edge_of(two: TwoSteps, one_step: OneStep, learner: Learner) -> Border:
    """Return the decisions and states at the edge of a log."""
    windows, located = two.windows, one_step.located
    states, learned = located.states, one_step.learned_in >= 0
    node = located.of_steps()
    cut = np.flatnonzero((windows.followed == Followed.UNKNOWN) & (node != SEVERAL))
    node = np.where(node < 0, -1 - states.of_steps, node)
    made = joint_groups([windows.columns[n] for n in two.schema.decisions], len(windows)).codes
    pair = node * (int(made.max(initial=0)) + 1) + made
    untried = cut[~np.isin(pair[cut], np.unique(pair[learned]))]
    untried = untried[np.argsort(node[untried], kind="stable")]
    at, first = np.unique(node[untried], return_index=True)
    outcome = RecurrentOutcome(two.schema.utility, ())
    roots = []
    for chosen in np.split(untried, first[1:]) if len(at) else []:
        rows = Rows(two.table, chosen, windows.counts[chosen].astype(np.float64))
        roots.append(grow_decisions(learner, two.schema, rows, outcome))
    arrived = np.zeros(states.count, dtype=bool)
    arrived[states.of_successors[states.of_successors >= 0]] = True
    acted_in = np.sort(-1 - at[at < 0])
    nowhere = np.flatnonzero((located.node == NOWHERE) & arrived)
    return Border(
        learner.builder.build(*roots) if roots else None,
        at,
        len(np.unique(pair[untried])),
        np.setdiff1d(nowhere, acted_in),
        acted_in,
    )


def state_leaves(
    builder: NetworkBuilder, states: States, state: int, names: Sequence[str], bins: int
) -> list[int]:
    """Add a leaf for each variable of one state: a single value, whatever family was asked for."""
    one = {name: states.columns[name].take(np.array([state])) for name in names}
    rows = Rows(table_of(one, np.ones(1), bins), np.zeros(1, np.int64), np.ones(1))
    return [builder.add(fit_leaf(rows, name, {})) for name in names]


def frontier_leaves(
    builder: NetworkBuilder, states: States, some: Ints, arrivals: Array, names: Sequence[str],
    bins: int,
) -> list[int]:  # fmt: skip
    """Add the distribution of some states never acted in, weighed by arrivals [num_states]."""
    parts = [state_leaves(builder, states, state, names, bins) for state in some.tolist()]
    if len(parts) == 1:
        return parts[0]
    merged: dict[int, float] = {}
    for part, weight in zip(parts, arrivals[some].tolist(), strict=True):
        child = builder.product(part) if len(part) > 1 else part[0]
        merged[child] = merged.get(child, 0.0) + weight
    total = sum(merged.values())
    return [builder.sum(list(merged), [weight / total for weight in merged.values()])]
