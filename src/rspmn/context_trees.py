"""Trees of contexts: in which contexts something has the same distribution.

A context is the joint value of some variables, as codes. A tree divides contexts by the values of a
variable, or one value from all others, or numbers at a bound. Contexts in one leaf share a
distribution. `rspmn.learn.successors.trees` grows trees.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rspmn.data.distinct import find_sorted
from rspmn.data.keys import group_weights, joint_key
from rspmn.types import Array, Bools, Ints

#: A `scipy.sparse.csr_array`.
Sparse = Any
#: Joint values are looked up if there are so many contexts for each.
SPAN = 4
#: More than the codes of any variable.
BRANCHES = 2**32
#: The variable of a node that is not split.
LEAF = -1
#: The value of a node that is split by all values of its variable.
EVERY = -1
#: The value of a node that is split into values of at most v, and all above, is this less v.
UP_TO = -2


@dataclass(frozen=True, eq=False)
class Contexts:
    """Distinct joint values of some variables; 0 is the code of a missing value."""

    names: tuple[str, ...]
    sizes: Ints  # [variables], the number of codes of each
    codes: Ints  # [contexts, variables]
    ordered: frozenset[str] = frozenset()  # variables whose codes are in the order of numbers

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def columns(self) -> Ints:  # [variables, contexts]
        """The codes of each variable, one after the other in memory."""
        return np.ascontiguousarray(self.codes.T)

    @cached_property
    def copies(self) -> Bools:  # [variables]
        """Which variables divide the contexts as one before them does: they add no split."""
        seen: set[bytes] = set()
        found = np.zeros(len(self.names), dtype=bool)
        places = np.arange(len(self))[::-1]
        for k, (codes, size) in enumerate(zip(self.columns, self.sizes.tolist(), strict=True)):
            first = np.zeros(size, dtype=np.int64)  # where each code occurs first
            first[codes[::-1]] = places
            key = first[codes].tobytes()
            found[k] = key in seen
            seen.add(key)
        return found

    def only(self, names: Sequence[str]) -> "Contexts":
        """Return the contexts with some of the variables only; they need not be distinct."""
        at = [self.names.index(name) for name in names]
        return Contexts(tuple(names), self.sizes[at], self.codes[:, at], self.ordered)

    def with_variable(self, name: str, size: int, rows: Ints, codes: Ints) -> "Contexts":
        """Return some of the contexts with one more variable."""
        wider = np.hstack([self.codes[rows], np.asarray(codes)[:, None]])
        return Contexts((*self.names, name), np.append(self.sizes, size), wider, self.ordered)

    def key(self, names: Sequence[str]) -> Ints:  # [contexts]
        """Return one number for the joint value of some variables."""
        at = [self.names.index(name) for name in names]
        columns = [(self.codes[:, k], int(self.sizes[k])) for k in at]
        if not columns:
            return np.zeros(len(self), dtype=np.int64)
        return np.unique(joint_key(columns), return_inverse=True)[1]


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
