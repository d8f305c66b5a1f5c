"""Trees of contexts: for each component, in which contexts it is distributed alike.

A tree divides contexts by a variable's values, or one value from all others, as long as that makes
the data likelier. All trees grow at once, level by level: a level is a few array operations for
each variable, however many nodes it has.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rspmn.learn.successors.contexts import Contexts
from rspmn.learn.successors.splits import EVERY, LEAF, Entries, Open
from rspmn.types import Array, Ints

#: More than any variable has codes.
BRANCHES = 2**32


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees as arrays, parents before their children; node k is the root of component k's."""

    variable: Ints  # [nodes], the context's variable that a node is split by, or LEAF
    value: Ints  # [nodes], the one value that is set apart, or EVERY
    parent: Ints  # [nodes], itself at a root
    branch: Ints  # [nodes], the code of its parent's variable; or whether that is the one value
    cells: tuple[Ints, Ints, Array]  # nodes, values, and how often they were seen there

    def find(self, contexts: Contexts, component: int) -> Ints:  # [contexts]
        """Return the last node on each context's way down: a leaf, if it had seen its like."""
        children, keys = self._children
        at = np.full(len(contexts), component)
        moving = np.arange(len(contexts)) if len(keys) else np.empty(0, dtype=np.int64)
        while len(moving):
            moving = moving[self.variable[at[moving]] != LEAF]
            node = at[moving]
            code = contexts.codes[moving, self.variable[node]]
            key = _key(node, _branch(code, self.value[node]))
            place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            known = keys[place] == key
            moving = moving[known]
            at[moving] = children[place[known]]
        return at

    def owners(self) -> Ints:  # [nodes]
        """Return the component that each node is of."""
        owner = np.arange(len(self.parent))
        for node, parent in enumerate(self.parent.tolist()):
            owner[node] = owner[parent]
        return owner

    @cached_property
    def _children(self) -> tuple[Ints, Ints]:
        """All nodes but roots in the order of their keys, and these."""
        below = np.flatnonzero(self.parent != np.arange(len(self.parent)))
        keys = _key(self.parent[below], self.branch[below])
        order = np.argsort(keys)
        return below[order], keys[order]


def grow_trees(contexts: Contexts, entries: Entries, first: dict[int, int]) -> Trees:
    """Grow a tree for each component.

    `first` gives variables that some components' roots are split by, whatever the data say.
    """
    roots = np.arange(int(entries.component.max()) + 1)
    parents, branches = [roots], [np.zeros_like(roots)]
    splits: list[tuple[Ints, Ints]] = []
    cells: list[tuple[Ints, Ints, Array]] = []
    node, live, count = entries.component.copy(), np.arange(len(entries.component)), len(roots)
    while len(live):  # level by level; the nodes of a level are numbered without gaps
        level = Open(contexts, entries, node[live], live)
        cells.append(level.cells)
        variable, value = level.best_splits()
        if len(splits) == 0:
            variable[list(first)], value[list(first)] = list(first.values()), EVERY
        splits.append((variable, value))
        split = variable[level.number] != LEAF
        live, number = live[split], level.number[split]
        code = contexts.codes[entries.context[live], variable[number]]
        keys, which = np.unique(
            _key(level.nodes[number], _branch(code, value[number])), return_inverse=True
        )
        node[live] = count + which
        count += len(keys)
        parents.append(keys // BRANCHES)
        branches.append(keys % BRANCHES)
    variables, values = (np.concatenate(part) for part in zip(*splits, strict=True))
    found = tuple(np.concatenate(part) for part in zip(*cells, strict=True))
    return Trees(
        variables, values, np.concatenate(parents), np.concatenate(branches),
        (found[0], found[1], found[2]),
    )  # fmt: skip


def _key(node: Ints, branch: Ints) -> Ints:
    return node * BRANCHES + branch


def _branch(code: Ints, value: Ints) -> Ints:
    return np.where(value == EVERY, code, code == value)
