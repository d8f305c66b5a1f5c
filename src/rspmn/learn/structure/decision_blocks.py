"""Max nodes of several decisions, one below the other, in many states at once."""

from collections.abc import Sequence

import numpy as np

from rspmn.circuit.blocks import BlockBuilder
from rspmn.types import Bools, Ints
from rspmn.values import Value


def add_decisions(
    builder: BlockBuilder, decisions: Sequence[str], domains: Sequence[Sequence[Value]],
    keys: Ints, branches: Ints,
) -> tuple[Ints, Ints]:  # fmt: skip
    """Add the max nodes above some branches; return that of each state, and their order.

    `builder`: what they are added to. `decisions`, `domains`: the decisions in their order, and the
    values of each. `keys`: of each branch, its state and the codes of its decisions; sorted, and
    none twice [branches, 1 + decisions]. `branches`: the nodes of the branches [branches].

    Returns
    -------
    The highest max node of each state, and the place of all in a walk up: that of a node is greater
    than those of all below it.
    """
    last, order = np.arange(len(keys)), []
    for place in reversed(range(len(decisions))):
        starts = np.flatnonzero(begins(keys[:, : place + 1]))
        widths = np.diff(np.append(starts, len(keys)))
        branches = builder.maxes(
            decisions[place], widths, branches, domains[place], keys[:, place + 1]
        )
        keys, last = keys[starts], last[starts + widths - 1]
        order.append(last * len(decisions) + len(decisions) - 1 - place)
    return branches, np.concatenate([np.empty(0, dtype=np.int64), *order])


def begins(keys: Ints) -> Bools:
    """Return which of sorted rows differ from the row before."""
    return np.append(True, (np.diff(keys, axis=0) != 0).any(axis=1))[: len(keys)]
