"""Moves: integers that are predicted by how far they move, not by where they get to.

Stock sinks by the demand of a day, whatever it was; a lesson adds 1 to a skill. A tree that counts
where each number leads has to learn that for every number on its own. So for each component that
is one integer a second tree is grown, of the differences x' - x. Both give a probability to the
same steps, and the likelier of the two is taken.

A leaf of differences is then divided by x: each x has the counts of the leaf, moved by x. What
would lead to a number that the log never had leads to the nearest that it had: stock does not sink
below 0.
"""

from dataclasses import dataclass

import numpy as np

from rspmn.circuit.node_arrays import ranges
from rspmn.context_trees import EVERY, LEAF, Contexts, Tied, Trees, branch_of
from rspmn.data.keys import group_weights
from rspmn.learn.structure.contingency import distinct_weights
from rspmn.learn.successors.gains import log_likelihood, strengths
from rspmn.learn.successors.transitions import Component, Transitions
from rspmn.learn.successors.trees import learn_tied
from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints

#: Differences of integers with more values than this are not looked at, nor of larger ones.
MOST_VALUES, LARGEST = 500, 2**52
#: Each leaf is repeated for each number: tables of more cells than this are not made.
MOST_CELLS = 20_000_000


@dataclass(frozen=True, eq=False)
class IntegerMoves:
    """A component that is one integer: its numbers before and after steps."""

    variable: int  # of the contexts
    before: Array  # [codes of the variable], NaN where a code is no number
    after: Array  # [values of the component], sorted
    away: Array  # [differences], sorted

    @classmethod
    def of(
        cls, transitions: Transitions, contexts: Contexts, context: Ints, part: Component,
        values: Ints,
    ) -> "tuple[IntegerMoves, Ints] | None":  # fmt: skip
        """Return the moves of a component, and which difference each step has.

        None if it is not one integer, or where it lacks values.
        """
        (name, *others), codes = part.names, transitions.state_codes
        if others or transitions.schema.kinds[name] is not Kind.INTEGER:
            return None
        if name in transitions.table.binned or not codes[name].all():
            return None
        if not 2 < part.size <= MOST_VALUES:
            return None
        variable = contexts.names.index(name)
        numbers = transitions.states.columns[name].numbers()
        if np.abs(numbers).max() > LARGEST:  # they are not exact
            return None
        before, after = np.full(int(contexts.sizes[variable]), np.nan), np.empty(part.size)
        before[codes[name]], after[part.values] = numbers, numbers
        moved = after[values] - before[contexts.columns[variable][context]]
        away, which = np.unique(moved, return_inverse=True)
        return cls(variable, before, after, away), which.astype(np.int64)

    def led(self, code: Ints, difference: Ints) -> Ints:
        """Return the values that differences lead to from codes; the nearest that there are."""
        number, last = self.before[code] + self.away[difference], len(self.after) - 1
        above = np.minimum(np.searchsorted(self.after, number), last)
        below = np.maximum(above - 1, 0)
        nearer = number - self.after[below] < self.after[above] - number
        return np.where(nearer, below, above)


def learn_factors(
    transitions: Transitions, contexts: Contexts, context: Ints, parts: list[Component],
    values: list[Ints], weights: Array,
) -> Tied:  # fmt: skip
    """Grow a tree for each component, of where it gets to or of how far it moves.

    Arguments are, of each transition, its context, the value of each component after it, and how
    often it occurred. Components that depend on the utility, given all else, are split by it first.
    """
    utility = transitions.schema.utility
    first = utility if utility in contexts.names else None
    moves = {
        k: found
        for k, (part, led) in enumerate(zip(parts, values, strict=True))
        if (found := IntegerMoves.of(transitions, contexts, context, part, led)) is not None
    }
    both = [*values, *(which for _, which in moves.values())]
    known = contexts, context, both, weights, first
    tied = learn_tied(*known, if_relevant=True, deadline=transitions.deadline)
    if not moves:
        return tied
    logs, roots = _log_likelihoods(tied.trees, contexts), np.arange(len(parts))
    leaves = tied.num_leaves(len(logs))
    for number, k in enumerate(moves, len(parts)):
        if logs[number] > logs[k] and leaves[number] * parts[k].size ** 2 <= MOST_CELLS:
            roots[k] = number
    trees = tied.trees.only(roots)
    for k, (moving, _) in moves.items():
        if roots[k] != k:
            cells = _logged(trees, k, contexts, (context, values[k], weights))
            trees = _Divided(trees, k, moving).with_cells(cells)
    return Tied.of(trees, max(part.size for part in parts))


def _log_likelihoods(trees: Trees, contexts: Contexts) -> Array:  # [components]
    """Return the log-likelihood of each tree, less the log of the number of possible trees."""
    owner, (node, _, weight) = trees.owners(), trees.cells
    roots = int(owner.max()) + 1
    width = np.bincount(node[node < roots], minlength=roots)
    leaf = trees.variable[node] == LEAF
    node, weight = node[leaf], weight[leaf]
    found = [
        log_likelihood(node, weight, (strength / width)[owner[node]], strength[owner])
        for strength in strengths(width)
    ]
    logs = np.where(trees.variable == LEAF, np.max(found, axis=0), 0.0)
    every, other = np.log(len(contexts.names)), np.log(contexts.sizes.sum())
    logs -= np.where(trees.variable == LEAF, 0.0, np.where(trees.value == EVERY, every, other))
    return group_weights(owner, logs, roots)


def _logged(
    trees: Trees, component: int, contexts: Contexts, steps: tuple[Ints, Ints, Array]
) -> tuple[Ints, Ints, Array]:
    """Return how often each value followed in each node of a component's tree."""
    context, value, weight = steps
    node, size, keys, often = trees.find(contexts, component)[context], int(value.max()) + 1, [], []
    while len(node):  # from the leaves up to the root
        key, total = distinct_weights(node * size + value, weight)
        keys.append(key)
        often.append(total)
        below = trees.parent[node] != node
        node, value, weight = trees.parent[node[below]], value[below], weight[below]
    key, total = distinct_weights(np.concatenate(keys), np.concatenate(often))
    return key // size, key % size, total


class _Divided:
    """The tree of a component's differences, of which the leaves are divided by the number before.

    Parameters
    ----------
    trees
        The trees of all components.
    component
        The one whose tree has differences.
    moves
        Its numbers.
    """

    def __init__(self, trees: Trees, component: int, moves: IntegerMoves) -> None:
        self.trees, self.moves = trees, moves
        self.own = trees.owners() == component
        leaf = np.flatnonzero(self.own & (trees.variable == LEAF))
        reach = self._reaching()[leaf]  # [leaves, codes]
        reach[reach.sum(axis=1) < 2] = False
        place, code = np.nonzero(reach)
        # the cells of the leaf of each child, moved
        node, difference, weight = trees.cells
        order = np.argsort(node, kind="stable")
        cell, starts = ranges(*(
            np.searchsorted(node[order], leaf[place], side=side) for side in ("left", "right")
        ))  # fmt: skip
        cell, child = order[cell], np.repeat(np.arange(len(place)), np.diff(starts))
        self.parent, self.branch = leaf[place], code  # [children]
        value = moves.led(code[child], difference[cell])
        self.cells = len(self.own) + child, value, weight[cell]
        self.parameter = trees.parameter[cell]

    def _reaching(self) -> Bools:  # [nodes, codes]
        """Return which codes of the number before may reach each node."""
        trees, codes = self.trees, np.arange(len(self.moves.before))
        found = np.zeros((len(self.own), len(codes)), dtype=bool)
        for node in np.flatnonzero(self.own).tolist():
            parent = int(trees.parent[node])
            found[node] = ~np.isnan(self.moves.before) if parent == node else found[parent]
            if parent != node and trees.variable[parent] == self.moves.variable:
                found[node] &= branch_of(codes, trees.value[parent]) == trees.branch[node]
        return found

    def with_cells(self, logged: tuple[Ints, Ints, Array]) -> Trees:
        """Return all trees; the nodes of this one have seen the numbers that were `logged`."""
        trees, size = self.trees, len(self.parent)
        others = ~self.own[trees.cells[0]]
        variable, split = trees.variable.copy(), trees.value.copy()
        variable[self.parent], split[self.parent] = self.moves.variable, EVERY
        parts = zip(trees.cells, logged, self.cells, strict=True)
        node, value, weight = (np.concatenate([a[others], b, c]) for a, b, c in parts)
        own = int(trees.parameter.max()) + 1 + np.arange(len(logged[0]))
        return Trees(
            np.append(variable, np.full(size, LEAF)), np.append(split, np.full(size, EVERY)),
            np.append(trees.parent, self.parent), np.append(trees.branch, self.branch),
            (node, value, weight),
            np.concatenate([trees.parameter[others], own, self.parameter]),
        )  # fmt: skip
