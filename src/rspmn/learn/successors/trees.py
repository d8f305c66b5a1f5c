"""Trees of contexts: for each component, the contexts in which it has the same distribution.

A tree divides contexts by the values of a variable, or one value from all others, as long as that
makes the data likelier. All trees grow at once, level by level: a level is a few array operations
for each variable, however many nodes it has. Contexts in one leaf share a distribution.
"""

import math
import time

import numpy as np

from rspmn.context_trees import EVERY, LEAF, Contexts, Tied, Trees, branch_of
from rspmn.data.distinct import distinct_integers
from rspmn.learn.successors.splits import Entries, Open, dependent_components
from rspmn.types import Array, Ints


def grow_trees(
    contexts: Contexts, entries: Entries, first: dict[int, int], deadline: float = math.inf
) -> Trees:
    """Grow a tree for each component.

    `first` has the variable that the root of some components is split by in any case. No level is
    begun after the `time.monotonic()` of the deadline.
    """
    roots = np.arange(int(entries.component.max()) + 1)
    parents, branches = [roots], [np.zeros_like(roots)]
    splits: list[tuple[Ints, Ints]] = []
    cells: list[tuple[Ints, Ints, Array]] = []
    number, live, before = entries.component, np.arange(len(entries.component)), 0
    width = max(2, int(contexts.sizes.max()))  # at least the branches of any node
    while len(live):  # level by level; the nodes of a level are numbered without gaps
        level = Open(contexts, entries, number, live)
        node, seen, weight = level.cells
        cells.append((before + node, seen, weight))
        variable, value = np.full(level.count, LEAF), np.full(level.count, EVERY)
        if time.monotonic() < deadline:
            variable, value = level.best_splits()
        if len(splits) == 0:
            variable[list(first)], value[list(first)] = list(first.values()), EVERY
        splits.append((variable, value))
        split = np.flatnonzero(variable[number] != LEAF)
        live, number = live[split], number[split]
        code = contexts.codes[entries.context[live], variable[number]]
        keys, number = distinct_integers(number * width + branch_of(code, value[number]))
        parents.append(before + keys // width)
        branches.append(keys % width)
        before += level.count
    variables, values = (np.concatenate(part) for part in zip(*splits, strict=True))
    found = tuple(np.concatenate(part) for part in zip(*cells, strict=True))
    return Trees(
        variables, values, np.concatenate(parents), np.concatenate(branches),
        (found[0], found[1], found[2]), np.arange(len(found[0])),
    )  # fmt: skip


def learn_tied(
    contexts: Contexts,
    context: Ints,
    values: list[Ints],
    weights: Array,
    first: str | None = None,
    *,
    if_relevant: bool = False,
    deadline: float = math.inf,
) -> Tied:
    """Grow a tree for each component.

    Parameters
    ----------
    contexts
        All that the components may depend on.
    context
        The number of the context of each step. [steps]
    values
        The value of each component after each step. [steps] each
    weights
        How often each step occurred. [steps]
    first
        A variable that the root of every tree is split by.
    if_relevant
        Only of the components that depend on it, given all else.
    deadline
        The `time.monotonic()` after which trees grow no deeper.
    """
    entries = Entries.count(context, values, weights)
    split = list(range(len(values))) if first is not None else []
    if first is not None and if_relevant:
        split = dependent_components(
            entries, contexts.key([n for n in contexts.names if n != first])
        )
    at = contexts.names.index(first) if first is not None else LEAF
    trees = grow_trees(contexts, entries, dict.fromkeys(split, at), deadline)
    return Tied.of(trees, int(entries.value.max()) + 1)
