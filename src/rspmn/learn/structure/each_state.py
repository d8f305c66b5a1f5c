"""Where states are hardly ever seen twice: each state is an interface node of its own.

Tests tell states apart that were seen often. In a large state space no state was: then a test that
finds no difference says nothing, and states that it merges promise in one of them what only
another holds. What states have in common is left to the factors of what follows them.
"""

from collections.abc import Iterator

import numpy as np

from rspmn.data.keys import joint_key
from rspmn.learn.config import LearnConfig
from rspmn.learn.structure.grow import AfterDecision
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.rows import Rows
from rspmn.schema import Kind, Schema
from rspmn.types import Bools, Ints

#: With fewer states than this, tests are cheap, and states are merged that they do not distinguish.
MANY_STATES = 400


def why_each_state(rows: Rows, schema: Schema, config: LearnConfig) -> str:
    """Say why states are so many that each is an interface node; "" if they are not.

    So if there are more than `MANY_STATES`, and fewer than `config.enough` steps for each state and
    decision that occurs. It takes factors to say what states have in common, and states that are
    known as a whole before the first decision.

    Parameters
    ----------
    rows, schema
        The log, and its variables.
    config
        How to learn.
    """
    names = schema.information_sets[0]
    if not names or not _may_be_many(rows, schema, config):
        return ""
    states = len(np.unique(_numbers(rows, names)))
    per_pair = rows.total / len(np.unique(_numbers(rows, (*names, *schema.decisions))))
    if states <= MANY_STATES or per_pair >= config.enough:
        return ""
    return f"{states} states, {per_pair:.1f} steps for each state and decision"


def _may_be_many(rows: Rows, schema: Schema, config: LearnConfig) -> bool:
    """Say whether states may be interface nodes: they are discrete and complete, nothing is given.

    Laws and budgets are about interface nodes that tests find.
    """
    names = schema.information_sets[0]
    if not names:
        return False
    if config.successors != "factored" or config.availability != "declared" or schema.laws:
        return False
    if config.max_nodes is not None or config.max_depth is not None or config.em_passes:
        return False
    if not config.given_decisions or not config.clustering.disjoint or config.max_seconds:
        return False
    columns = rows.table.columns
    if any(name in rows.table.ordered or name in rows.table.binned for name in names):
        return False
    if any(columns[name].kind is Kind.CONTINUOUS for name in names):
        return False
    lacking = any((rows.codes(name) < 0).any() for name in names)
    return not lacking and not any(schema.information_sets[1:]) and len(rows) > 0


def grow_states(learner: Learner, schema: Schema, rows: Rows, finish: AfterDecision) -> int:
    """Add a sum over all states, the decisions that were made in each, and what follows them."""
    names, decisions = schema.information_sets[0], schema.decisions
    keys = np.stack([_numbers(rows, names), *(rows.codes(name) for name in decisions)], axis=1)
    order = np.lexsort(keys.T[::-1])
    rows, keys = rows.where(order), keys[order]
    first = np.flatnonzero(_begins(keys[:, :1]))  # row of each state
    begins = _begins(keys)
    below, keys = _outcomes(learner, rows, begins, finish), keys[begins]
    for place in reversed(range(len(decisions))):  # the last decision first
        domain = rows.table.columns[decisions[place]].domain
        values = [domain[code] for code in keys[:, place + 1].tolist()]
        begins = _begins(keys[:, : place + 1])
        below = [
            learner.builder.max(decisions[place], dict(zip(values[a:b], below[a:b], strict=True)))
            for a, b in _parts(begins)
        ]
        keys = keys[begins]
    children = [
        learner.product([*leaves, after])
        for *leaves, after in zip(*_leaves(learner, rows, names, first), below, strict=True)
    ]
    if len(children) == 1:
        return children[0]
    learner.info.sums += 1
    weights = np.add.reduceat(rows.weights, first)
    return learner.builder.sum(children, (weights / weights.sum()).tolist())


def _outcomes(learner: Learner, rows: Rows, begins: Bools, finish: AfterDecision) -> list[int]:
    """Add what follows each state and decisions, given the rows at which these begin."""
    known = finish.certain(learner, rows, np.cumsum(begins) - 1)
    for group, (start, stop) in enumerate(_parts(begins)):
        if group not in known:
            part = rows.where(np.arange(start, stop))
            known[group] = finish(learner, part, (), 1)
            learner.report_done(part.total)
    return [known[group] for group in range(len(known))]


def _leaves(
    learner: Learner, rows: Rows, names: tuple[str, ...], first: Ints
) -> Iterator[list[int]]:
    """Add the leaves of each variable: that of each state, given a row of it."""
    for name in names:
        codes = rows.codes(name)[first]
        at, which = np.unique(codes, return_index=True, return_inverse=True)[1:]
        added = [learner.leaf(rows.where(first[[k]]), name) for k in at.tolist()]
        yield [added[k] for k in which.tolist()]


def _numbers(rows: Rows, names: tuple[str, ...]) -> Ints:
    """Return the number of each row's joint value of some variables, in the order of values."""
    columns = [(rows.codes(name).astype(np.int64), rows.table.sizes[name]) for name in names]
    return np.unique(joint_key(columns), return_inverse=True)[1].astype(np.int64)


def _begins(keys: Ints) -> Bools:
    """Return which of sorted rows differ from the row before."""
    return np.append(True, (np.diff(keys, axis=0) != 0).any(axis=1))


def _parts(begins: Bools) -> list[tuple[int, int]]:
    """Return where the parts of some rows start and stop, given the rows at which they begin."""
    starts = np.flatnonzero(begins).tolist()
    return list(zip(starts, [*starts[1:], len(begins)], strict=True))
