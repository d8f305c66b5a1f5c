"""Tied parameters: for each component, a tree of the contexts in which it is distributed alike.

A tree divides contexts by a variable's values, or one value from all others. It does so where the
data are likelier with the split than without, under Dirichlet priors that expect few outcomes, and
by more than it takes to say which split. All trees grow at once, level by level: a level is a few
array operations, however many nodes it has.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rspmn.learn.contingency import weighed
from rspmn.learn.future.contexts import Contexts
from rspmn.learn.rows import weigh

__all__ = ["LEAF", "Entries", "Trees", "grow_trees", "tells"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The weight of the prior: that of one step.
STRENGTH = 1.0
#: The variable of a node that is not split.
LEAF = -1
#: The value of a node that is split by all values of its variable.
EVERY = -1


@dataclass(frozen=True, eq=False)
class Entries:
    """How often each value of each component followed each context."""

    component: Ints  # [n]
    context: Ints  # [n]
    value: Ints  # [n]
    weight: Array  # [n]

    @classmethod
    def count(cls, context: Ints, values: list[Ints], weights: Array) -> "Entries":
        """Count moves, given the context of each and, for each component, its value."""
        size = max((int(found.max()) + 1 for found in values), default=1)
        parts = []
        for number, found in enumerate(values):
            key, weight = weighed(context * size + found, weights)
            parts.append((np.full(len(key), number), key // size, key % size, weight))
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


@dataclass(eq=False)
class Trees:
    """Trees as arrays; node k is the root of component k's."""

    variable: Ints  # [nodes], the context's variable that a node is split by, or LEAF
    value: Ints  # [nodes], the one that is set apart, or EVERY
    parent: Ints  # [nodes], itself at a root
    branch: Ints  # [nodes], what its parent's variable is: a code; or whether it is the one value
    cells: list[tuple[Ints, Ints, Array]] = field(default_factory=list)  # node, value, weight

    def find(self, contexts: Contexts, component: int) -> Ints:  # [contexts]
        """Return the last node on each context's way down: a leaf, if it had seen its like."""
        children, keys = self._children
        at = np.full(len(contexts), component)
        moving = np.arange(len(contexts))
        while len(moving):
            node = at[moving]
            split = self.variable[node] != LEAF
            moving, node = moving[split], node[split]
            code = contexts.codes[moving, self.variable[node]]
            key = _key(node, _branch(code, self.value[node]))
            place = np.minimum(np.searchsorted(keys, key), max(0, len(keys) - 1))
            known = keys[place] == key if len(keys) else np.zeros(len(key), dtype=bool)
            moving = moving[known]
            at[moving] = children[place[known]]
        return at

    @property
    def _children(self) -> tuple[Ints, Ints]:
        """Return all nodes but roots in the order of their keys, and these."""
        below = np.flatnonzero(self.parent != np.arange(len(self.parent)))
        keys = _key(self.parent[below], self.branch[below])
        order = np.argsort(keys)
        return below[order], keys[order]


def grow_trees(contexts: Contexts, entries: Entries, first: dict[int, int]) -> Trees:
    """Grow a tree for each component.

    `first` gives variables that some components' roots are split by, whatever the data say.
    """
    roots = np.arange(int(entries.component.max()) + 1)
    trees = Trees(
        np.full(len(roots), LEAF), np.full(len(roots), EVERY), roots, np.zeros_like(roots)
    )
    node = entries.component.copy()
    live = np.arange(len(node))
    forced = np.full(len(roots), LEAF)
    forced[list(first)] = list(first.values())
    while len(live):
        level = _Level(contexts, entries, node[live], live)
        trees.cells.append(level.cells)
        variable, value = level.best_splits()
        if len(forced):
            here = forced[level.nodes] != LEAF
            variable[here], value[here] = forced[level.nodes][here], EVERY
            forced = np.empty(0, dtype=np.int64)
        trees.variable[level.nodes], trees.value[level.nodes] = variable, value
        split = variable[level.number] != LEAF
        live, number = live[split], level.number[split]
        code = contexts.codes[entries.context[live], variable[number]]
        key = _key(level.nodes[number], _branch(code, value[number]))
        keys, which = np.unique(key, return_inverse=True)
        node[live] = len(trees.parent) + which
        _append(trees, keys)
    return trees


def _append(trees: Trees, keys: Ints) -> None:
    """Add nodes below their parents."""
    parent, branch = np.divmod(keys, BRANCHES)
    trees.parent = np.append(trees.parent, parent)
    trees.branch = np.append(trees.branch, branch)
    trees.variable = np.append(trees.variable, np.full(len(keys), LEAF))
    trees.value = np.append(trees.value, np.full(len(keys), EVERY))


#: More than any variable has codes.
BRANCHES = 2**32


def _key(node: Ints, branch: Ints) -> Ints:
    return node * BRANCHES + branch


def _branch(code: Ints, value: Ints) -> Ints:
    return np.where(value == EVERY, code, code == value)


class _Level:
    """The open nodes of one level, and what each could be split by."""

    def __init__(self, contexts: Contexts, entries: Entries, node: Ints, live: Ints) -> None:
        self.contexts = contexts
        self.nodes, self.number = np.unique(node, return_inverse=True)
        self.size = len(self.nodes)
        z, weight = entries.value[live], entries.weight[live]
        self.values = int(z.max()) + 1
        #: the weight of each value in each node
        self.key, self.total = weighed(self.number * self.values + z, weight)
        self.of_key = self.key // self.values
        kinds = np.bincount(self.of_key, minlength=self.size)
        self.prior = STRENGTH / kinds  # [size], of each value that a node has seen
        self.cells = self.nodes[self.of_key], self.key % self.values, self.total
        self.context = entries.context[live]
        self.z, self.weight = z, weight

    def best_splits(self) -> tuple[Ints, Ints]:
        """Return the variable and value of each node's best split; LEAF where there is none."""
        sizes = self.contexts.sizes
        starts = np.concatenate([[0], np.cumsum(sizes)])
        owner = np.repeat(np.arange(len(sizes)), sizes)  # [cells]
        cells = int(starts[-1])
        code = self.contexts.codes[self.context] + starts[:-1]  # [entries, variables]
        at = ((self.number[:, None] * cells + code) * self.values + self.z[:, None]).ravel()
        key, count = weighed(at, np.repeat(self.weight, len(sizes)))
        row_key, row = np.unique(key // self.values, return_inverse=True)  # (node, cell)
        node, cell = np.divmod(row_key, cells)
        # log-likelihood of what followed, in each cell by itself and in all others together
        prior = self.prior[node][row]
        whole = self.total[np.searchsorted(self.key, node[row] * self.values + key % self.values)]
        base = _gammaln(prior)
        apart = weigh(row, _gammaln(count + prior) - base)
        others = weigh(row, _gammaln(whole - count + prior) - _gammaln(whole + prior))
        weight = weigh(row, count)
        everything = _likelihood(self.of_key, self.total, self.prior[self.of_key], self.size)
        apart += _ends(weight)
        seen = weigh(self.of_key, self.total, self.size)[node]
        others += everything[node] - _ends(seen) + _ends(seen - weight)
        # by all values of a variable
        pair = node * len(sizes) + owner[cell]
        several = np.bincount(pair, minlength=self.size * len(sizes)).reshape(self.size, -1)
        gain = weigh(pair, apart, self.size * len(sizes)).reshape(self.size, -1)
        gain -= everything[:, None] + _log(np.count_nonzero(several > 1, axis=1))[:, None]
        gain[several < 2] = -np.inf
        best = gain.argmax(axis=1)
        variable, value, top = best, np.full(self.size, EVERY), gain.max(axis=1)
        # by one value against all others
        candidates = np.where(several > 1, several, 0).sum(axis=1)
        single = apart + others - everything[node] - _log(candidates)[node]
        single[several[node, owner[cell]] < 3] = -np.inf
        order = np.lexsort((-cell, single, node))
        last = order[np.append(node[order][1:] != node[order][:-1], True)]  # of each node, the best
        better = single[last] > top + 1e-9
        variable = np.where(better, owner[cell[last]], variable)
        value = np.where(better, (cell - starts[owner[cell]])[last], value)
        top = np.where(better, single[last], top)
        return np.where(top > 1e-9, variable, LEAF), np.where(top > 1e-9, value, EVERY)


def tells(entries: Entries, rest: Ints) -> list[int]:
    """Return the components that tell contexts apart which are alike in all but one variable.

    Given all else, is what followed likelier with the variable than without? `rest` numbers all
    else, [contexts]. What is asked is asked of all contexts together: even where each was seen
    once or twice, outcomes that are never shared add up.
    """
    values = int(entries.value.max()) + 1
    components = int(entries.component.max()) + 1
    size = int(rest.max()) + 1
    group = entries.component * size + rest[entries.context]
    key, total = weighed(group * values + entries.value, entries.weight)
    of_key = key // values
    prior = STRENGTH / np.maximum(np.bincount(of_key, minlength=components * size), 1)
    together = _likelihood(of_key, total, prior[of_key], components * size)
    contexts = len(rest)
    own = entries.component * contexts + entries.context
    apart = _likelihood(own, entries.weight, prior[group], components * contexts)
    gain = apart.reshape(components, -1).sum(axis=1) - together.reshape(components, -1).sum(axis=1)
    return np.flatnonzero(gain > 1e-9).tolist()


def _likelihood(group: Ints, weight: Array, prior: Array, groups: int) -> Array:  # [groups]
    """Return the log-likelihood of the values of each group, one weight and prior for each."""
    each = _gammaln(weight + prior) - _gammaln(prior)
    return weigh(group, each, groups) + _ends(weigh(group, weight, groups))


def _ends(weight: Array) -> Array:
    return np.asarray(_gammaln(np.float64(STRENGTH)) - _gammaln(weight + STRENGTH))


def _gammaln(x: Array | np.float64) -> Array:
    from scipy.special import gammaln

    return np.asarray(gammaln(x))


def _log(count: Ints) -> Array:
    return np.asarray(np.log(np.maximum(count, 1)))
