"""Where states are hardly ever seen twice: each state is an interface node of its own.

Tests tell states apart that were seen often. In a large state space no state was: then a test that
finds no difference says nothing, and states that it merges promise in one of them what only
another holds. What states have in common is left to the factors of what follows them.
"""

import numpy as np

from rspmn.circuit import Network
from rspmn.circuit.blocks import BlockBuilder
from rspmn.data.keys import joint_key
from rspmn.learn.config import LearnConfig
from rspmn.learn.structure.after_decision import RecurrentOutcome
from rspmn.learn.structure.decision_blocks import add_decisions, begins
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.rows import Rows
from rspmn.schema import Kind, Schema
from rspmn.types import Ints

#: With fewer states than this, tests are cheap, and states are merged that they do not distinguish.
MANY_STATES = 400


def why_each_state(rows: Rows, schema: Schema, config: LearnConfig) -> str:
    """Say why states are so many that each is an interface node; "" if they are not.

    So if there are more than `MANY_STATES`, and fewer than `config.enough` steps for each state and
    decision that occurs. It takes factors to say what states have in common, and states that are
    known as a whole before the first decision.
    """
    names = schema.information_sets[0]
    if not names or not may_be_nodes(rows, schema, config):
        return ""
    states = len(np.unique(_numbers(rows, names)))
    per_pair = rows.total / len(np.unique(_numbers(rows, (*names, *schema.decisions))))
    if states <= MANY_STATES or per_pair >= config.enough:
        return ""
    return f"{states} states, {per_pair:.1f} steps for each state and decision"


def may_be_nodes(rows: Rows, schema: Schema, config: LearnConfig) -> bool:
    """Say whether states may be interface nodes: they are discrete and complete, nothing is given.

    Laws and budgets are about interface nodes that tests find.
    """
    names = schema.information_sets[0]
    if not names:
        return False
    if config.successors != "factored" or schema.laws:
        return False
    if any(limit is not None for limit in (config.max_nodes, config.max_depth, config.max_seconds)):
        return False
    if not config.given_decisions or not config.clustering.disjoint or config.em_passes:
        return False
    columns = rows.table.columns
    if any(name in rows.table.ordered or name in rows.table.binned for name in names):
        return False
    if any(columns[name].kind is Kind.CONTINUOUS for name in names):
        return False
    lacking = any((rows.codes(name) < 0).any() for name in names)
    return not lacking and not any(schema.information_sets[1:]) and len(rows) > 0


def grow_states(
    learner: Learner, schema: Schema, rows: Rows, finish: RecurrentOutcome
) -> tuple[Network, Ints]:
    """Return a sum over all states, with what was decided in each and what follows; and the states.

    The k-th child of the sum is state k. Returned is also the state of each row of the table, -1
    of those that were not learned from.
    """
    names, decisions = schema.information_sets[0], schema.decisions
    keys = np.stack([_numbers(rows, names), *(rows.codes(name) for name in decisions)], axis=1)
    order = np.lexsort(keys.T[::-1])
    rows, keys = rows.where(order), keys[order]
    states = np.full(len(rows.table.origin), -1)
    states[rows.origin] = keys[:, 0]
    first = np.flatnonzero(begins(keys[:, :1]))  # row of each state
    starts = np.flatnonzero(begins(keys))
    builder = BlockBuilder()
    outcomes = _outcomes(builder, learner, rows, starts, finish)
    domains = [rows.table.columns[name].domain for name in decisions]
    decided, _ = add_decisions(builder, decisions, domains, keys[starts], outcomes)
    parts = np.column_stack([_leaves(builder, learner, rows, names, first), decided])
    children = builder.products(np.full(len(first), parts.shape[1]), parts.ravel())
    weights = np.add.reduceat(rows.weights, first)
    learner.info.sums += 1
    root = builder.sums(np.array([len(first)]), children, weights / weights.sum())
    return builder.build(root)[0], states


def _outcomes(
    builder: BlockBuilder, learner: Learner, rows: Rows, starts: Ints, finish: RecurrentOutcome
) -> Ints:  # [groups]
    """Add what follows each state and decisions, given the rows at which these start."""
    found = finish.certain_blocks(builder, rows, starts)
    stops = np.append(starts[1:], len(rows))
    left = np.flatnonzero(found < 0)
    grown = [
        finish(learner, rows.where(np.arange(start, stop)), (), 1)
        for start, stop in zip(starts[left].tolist(), stops[left].tolist(), strict=True)
    ]
    found[left] = _grown(builder, learner, grown)
    learner.report_done(rows.total)
    return found


def _leaves(
    builder: BlockBuilder, learner: Learner, rows: Rows, names: tuple[str, ...], first: Ints
) -> Ints:  # [states, names]
    """Add the leaves of each state, given a row of it."""
    found = []
    for name in names:
        at, which = np.unique(
            rows.codes(name)[first], return_index=True, return_inverse=True
        )[1:]  # fmt: skip
        grown = [learner.leaf(rows.where(first[[k]]), name) for k in at.tolist()]
        found.append(_grown(builder, learner, grown)[which])
    return np.column_stack(found)


def _grown(builder: BlockBuilder, learner: Learner, roots: list[int]) -> Ints:
    """Add what was grown one by one."""
    if not roots:
        return np.empty(0, dtype=np.int64)
    network = learner.builder.build(*roots)
    return builder.network(network)[list(network.roots)]


def _numbers(rows: Rows, names: tuple[str, ...]) -> Ints:
    """Return the number of each row's joint value of some variables, in the order of values."""
    columns = [(rows.codes(name).astype(np.int64), rows.table.sizes[name]) for name in names]
    return np.unique(joint_key(columns), return_inverse=True)[1].astype(np.int64)
