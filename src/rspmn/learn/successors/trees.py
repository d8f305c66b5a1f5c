"""Trees of contexts: for each component, the contexts in which it has the same distribution.

A tree divides contexts by the values of a variable, or one value from all others, as long as that
makes the data likelier. All trees grow at once, level by level: a level is a few array operations
for each variable, however many nodes it has. Contexts in one leaf share a distribution.
"""

import math
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rspmn.data.distinct import distinct_integers, find_sorted
from rspmn.data.keys import group_weights
from rspmn.learn.successors.gains import EVERY, LEAF, UP_TO
from rspmn.learn.successors.splits import Entries, Open, dependent_components
from rspmn.learn.successors.transitions import Contexts
from rspmn.types import Array, Ints

#: A `scipy.sparse.csr_array`.
Sparse = Any
#: Joint values are looked up if there are so many contexts for each.
SPAN = 4
#: More than the codes of any variable.
BRANCHES = 2**32


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees as arrays, parents before their children; node k is the root of component k's."""

    variable: Ints  # [nodes], the context's variable that a node is split by, or LEAF
    value: Ints  # [nodes], the one value that is set apart; EVERY; or UP_TO less the last below
    parent: Ints  # [nodes], itself at a root
    branch: Ints  # [nodes], the code of its parent's variable; or whether that is the one value
    cells: tuple[Ints, Ints, Array]  # nodes, values, and how often they were seen there
    #: Cells of one parameter have the same steps behind them: see `rspmn.learn.successors.moves`.
    parameter: Ints  # [cells]

    def find(self, contexts: Contexts, component: int) -> Ints:  # [contexts]
        """Return the lowest node that each context reaches: a leaf, unless a value is new there.

        Where the variables that a tree looks at have few joint values, these are looked up.
        """
        used = self._used[component]
        sizes = contexts.sizes[used].tolist()
        if SPAN * math.prod(sizes) > len(contexts):
            return self._walk(contexts.codes, component)
        left = np.arange(math.prod(sizes))
        codes = np.zeros((len(left), len(contexts.sizes)), dtype=np.int64)
        key = np.zeros(len(contexts), dtype=np.int64)
        for variable, size in zip(used, sizes, strict=True):
            left, codes[:, variable] = np.divmod(left, size)
        for variable, size in zip(reversed(used), reversed(sizes), strict=True):
            key *= size
            key += contexts.columns[variable]
        return self._walk(codes, component)[key]

    def _walk(self, codes: Ints, component: int) -> Ints:  # [contexts]
        """Go down a tree from its root, with the codes of each context."""
        children, keys = self._children
        at = np.full(len(codes), component)
        moving = np.arange(len(codes)) if len(keys) else np.empty(0, dtype=np.int64)
        while len(moving):
            moving = moving[self.variable[at[moving]] != LEAF]
            node = at[moving]
            key = _key(node, branch_of(codes[moving, self.variable[node]], self.value[node]))
            place = find_sorted(keys, key)
            moving = moving[place >= 0]
            at[moving] = children[place[place >= 0]]
        return at

    @cached_property
    def _used(self) -> list[list[int]]:
        """The variables that the tree of each component looks at."""
        owner, split = self.owners(), self.variable != LEAF
        components = int(np.count_nonzero(self.parent == np.arange(len(self.parent))))
        return [np.unique(self.variable[split & (owner == k)]).tolist() for k in range(components)]

    @property
    def moved(self) -> bool:
        """Whether cells of several leaves have the same steps behind them."""
        return len(np.unique(self.parameter)) < len(self.parameter)

    def owners(self) -> Ints:  # [nodes]
        """Return the component that each node is of."""
        owner = np.arange(len(self.parent))
        for node, parent in enumerate(self.parent.tolist()):
            owner[node] = owner[parent]
        return owner

    def only(self, roots: Ints) -> "Trees":
        """Return some of the trees: that of component k is the one with the root `roots[k]`."""
        kept = np.flatnonzero(np.isin(self.owners(), roots))
        kept = np.concatenate([roots, np.setdiff1d(kept, roots)])
        place = np.full(len(self.parent), -1)
        place[kept] = np.arange(len(kept))
        node, value, weight = self.cells
        here = place[node] >= 0
        return Trees(
            self.variable[kept], self.value[kept], place[self.parent[kept]], self.branch[kept],
            (place[node[here]], value[here], weight[here]), self.parameter[here],
        )  # fmt: skip

    @cached_property
    def _children(self) -> tuple[Ints, Ints]:
        """All nodes but roots in the order of their keys, and the keys."""
        below = np.flatnonzero(self.parent != np.arange(len(self.parent)))
        keys = _key(self.parent[below], self.branch[below])
        order = np.argsort(keys)
        return below[order], keys[order]


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


def _key(node: Ints, branch: Ints) -> Ints:
    return node * BRANCHES + branch


def branch_of(code: Ints, value: Ints | int) -> Ints:
    """Return where codes go at splits: by themselves, by whether they are one value, or at most."""
    return np.where(
        value == EVERY, code, np.where(value >= 0, code == value, code <= UP_TO - value)
    )


@dataclass(frozen=True, eq=False)
class Tied:
    """The distribution of some components in every context."""

    trees: Trees
    counts: Sparse  # [nodes, values], how often each value was seen there
    totals: Array  # [nodes]

    @classmethod
    def learn(
        cls,
        contexts: Contexts,
        context: Ints,
        values: list[Ints],
        weights: Array,
        first: str | None = None,
        *,
        if_relevant: bool = False,
        deadline: float = math.inf,
    ) -> "Tied":
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
        return cls.of(trees, int(entries.value.max()) + 1)

    @classmethod
    def of(cls, trees: Trees, values: int) -> "Tied":
        """Return the distributions of trees, given the largest number of values."""
        from scipy.sparse import csr_array

        node, value, weight = trees.cells
        counts = csr_array((weight, (node, value)), shape=(len(trees.parent), values))
        return cls(trees, counts, np.asarray(counts.sum(axis=1)))

    def distribution(self, contexts: Contexts, component: int = 0) -> Sparse:  # [contexts, values]
        """Return how a component is distributed in each context; rows sum to 1."""
        from scipy.sparse import csr_array

        node = self.trees.find(contexts, component)
        return csr_array(self.counts[node] / self.totals[node][:, None])

    def means(
        self, contexts: Contexts, context: Ints, numbers: Array, weights: Array
    ) -> Array:  # [nodes]
        """Return the mean of some numbers, one for each step, in every node of a single tree."""
        leaf = self.trees.find(contexts, 0)[context]
        size = len(self.trees.parent)
        total = np.stack(
            [group_weights(leaf, weights, size), group_weights(leaf, weights * numbers, size)]
        )
        for node in range(size - 1, 0, -1):  # children come after their parents
            total[:, self.trees.parent[node]] += total[:, node]
        return np.asarray(total[1] / np.maximum(total[0], 1e-300))

    def num_leaves(self, components: int) -> tuple[int, ...]:
        """Return how many distributions the leaves of each tree have."""
        trees, owner = self.trees, self.trees.owners()
        node = trees.cells[0]
        leaf = trees.variable[node] == LEAF
        first = np.full(len(owner), np.iinfo(np.int64).max)  # [nodes], a parameter of each
        np.minimum.at(first, node[leaf], trees.parameter[leaf])
        of_leaf = trees.variable == LEAF
        pairs = np.unique(np.stack([owner[of_leaf], first[of_leaf]]), axis=1)
        return tuple(np.bincount(pairs[0], minlength=components).tolist())
