"""Splits: the variable of a context that what follows depends on most, in many nodes at once.

The gain of a split is the log of the Bayes factor of the data with it over without it, see
`rspmn.learn.successors.gains`; less the log of the number of possible splits.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rspmn.context_trees import EVERY, LEAF, Contexts
from rspmn.data.distinct import distinct_integers
from rspmn.data.keys import group_weights
from rspmn.learn.structure.contingency import distinct_weights
from rspmn.learn.successors.gains import (
    LEAST,
    Gains,
    SeenValues,
    SplitParts,
    log_likelihood,
    strengths,
)
from rspmn.types import Array, Ints

#: Entries that are counted at once, of several variables.
TOGETHER = 200_000
#: Joint values of several variables are counted if there are so many entries for each count.
SPAN = 4


@dataclass(frozen=True, eq=False)
class Entries:
    """How often each value of each component followed each context."""

    component: Ints  # [n]
    context: Ints  # [n]
    value: Ints  # [n]
    weight: Array  # [n]

    @classmethod
    def count(cls, context: Ints, values: list[Ints], weights: Array) -> "Entries":
        """Count steps, given the context of each and, for each component, its value."""
        size = max(int(found.max()) + 1 for found in values)
        parts = []
        for number, found in enumerate(values):
            key, weight = distinct_weights(context * size + found, weights)
            parts.append((np.full(len(key), number), key // size, key % size, weight))
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class Open:
    """Nodes that may be split, and what was seen in each."""

    def __init__(self, contexts: Contexts, entries: Entries, number: Ints, live: Ints) -> None:
        """Lay out the entries `live`, of which each is in a node; all numbers occur."""
        self.columns, self.sizes = contexts.columns, contexts.sizes
        self.ordered = np.array([name in contexts.ordered for name in contexts.names])
        self.copies = contexts.copies
        self.number, self.count = number, int(number.max()) + 1
        self.context, self.weight = entries.context[live], entries.weight[live]
        self.values = int(entries.value[live].max()) + 1
        self.key, self.cell = distinct_integers(number * self.values + entries.value[live])
        self.total = group_weights(self.cell, self.weight)
        self.of_key = self.key // self.values
        self.seen = SeenValues.of(self.of_key, self.total, self.count)

    @property
    def cells(self) -> tuple[Ints, Ints, Array]:
        """The weight of each value in each node: nodes, values, weights."""
        return self.of_key, self.key % self.values, self.total

    def best_splits(self) -> tuple[Ints, Ints]:  # [nodes] each
        """Return the variable and value of each node's best split; LEAF where there is none.

        A node in which one value was seen is none.
        """
        variable, value = np.full(self.count, LEAF), np.full(self.count, EVERY)
        several = self.seen.width > 1
        mixed, before = np.flatnonzero(several), self.seen.likeliest()
        if not len(mixed):
            return variable, value
        inside = np.flatnonzero(several[self.number])
        entries = self.cell[inside], self.context[inside], self.weight[inside]
        slices = self._slices(len(inside))
        parts = [self._parts(some, *entries).gains(before) for some in slices]
        cells, gain, value_at = (
            np.concatenate(part, axis=-2)[..., mixed] for part in zip(*parts, strict=True)
        )
        gains = Gains(cells, gain, value_at)
        variable[mixed], value[mixed] = gains.best(~self.copies)
        return variable, value

    def _slices(self, entries: int) -> Iterator[slice]:
        """Divide the variables into those that are counted at once, in so many entries."""
        first = 0
        while first < len(self.sizes):
            stop = first + max(1, TOGETHER // entries)
            while stop < len(self.sizes) and self._are_joined(slice(first, stop + 1), entries):
                stop += 1
            yield slice(first, stop)
            first = stop

    def _are_joined(self, variables: slice, entries: int) -> bool:
        """Return whether it takes least to count the joint values of variables, and add up."""
        size = math.prod(self.sizes[variables].tolist()) * len(self.key)
        return entries >= SPAN * size and entries >= len(self.columns[0])

    def _parts(self, variables: slice, cell: Ints, context: Ints, weight: Array) -> SplitParts:
        """Return the parts that some variables divide nodes into.

        The other arguments are the entries of nodes that may be split.
        """
        sizes = self.sizes[variables]
        counted = self._joined if self._are_joined(variables, len(cell)) else self._side_by_side
        variable, cell, code, weight = counted(variables, cell, context, weight)
        first = _before(sizes * self.count)
        parts, part = distinct_integers(
            first[variable] + self.of_key[cell] * sizes[variable] + code
        )  # (variable, node, code) that occur
        variable = np.searchsorted(first, parts, side="right") - 1
        node, code = np.divmod(parts - first[variable], sizes[variable])
        shape, ordered = (len(sizes), self.count), self.ordered[variables]
        return SplitParts(self.seen, shape, (variable, node, code), (part, cell, weight), ordered)

    def _side_by_side(
        self, variables: slice, cell: Ints, context: Ints, weight: Array
    ) -> tuple[Ints, Ints, Ints, Array]:
        """Return the weight of each value of each variable in each cell, if it occurs there."""
        sizes = self.sizes[variables]
        first = _before(sizes * len(self.key))  # the counts of each variable: by cell, then code
        at = self.columns[variables].take(context, axis=1)  # [variables, entries]
        at += cell * sizes[:, None]
        at += first[:, None]
        key, weight = distinct_weights(at.ravel(), np.tile(weight, len(sizes)))
        variable = np.searchsorted(first, key, side="right") - 1
        cell, code = np.divmod(key - first[variable], sizes[variable])
        return variable, cell, code, weight

    def _joined(
        self, variables: slice, cell: Ints, context: Ints, weight: Array
    ) -> tuple[Ints, Ints, Ints, Array]:
        """Return the same by way of the weight of all joint values in each cell."""
        sizes = self.sizes[variables].tolist()
        joint = np.zeros(self.columns.shape[1], dtype=np.int64)
        for column, size in zip(self.columns[variables], sizes, strict=True):
            joint *= size
            joint += column
        at = joint[context]
        at += cell * math.prod(sizes)
        shape = len(self.key), *sizes
        table = group_weights(at, weight, math.prod(shape)).reshape(shape)
        found = []
        for number in range(len(sizes)):
            others = tuple(axis for axis in range(1, len(shape)) if axis != number + 1)
            counts = table.sum(axis=others)  # [cells, codes]
            cell, code = np.nonzero(counts)
            found.append((np.full(len(cell), number), cell, code, counts[cell, code]))
        variable, cell, code, weight = (np.concatenate(p) for p in zip(*found, strict=True))
        return variable, cell, code, weight


def _before(sizes: Ints) -> Ints:
    """Return the sum of all sizes before each."""
    return np.asarray(np.cumsum(sizes) - sizes)


def dependent_components(entries: Entries, rest: Ints) -> list[int]:
    """Return the components that depend on one variable of the contexts, given all others.

    `rest` [contexts] numbers the joint values of all other variables. The Bayes factor is that of
    all contexts together: outcomes that are never shared add up, even if each context was seen once
    or twice.
    """
    values = int(entries.value.max()) + 1
    components = int(entries.component.max()) + 1
    size, contexts = int(rest.max()) + 1, len(rest)
    group = entries.component * size + rest[entries.context]
    key, total = distinct_weights(group * values + entries.value, entries.weight)
    of_key = key // values
    seen = SeenValues.of(of_key, total, components * size)
    own = entries.component * contexts + entries.context
    of_own = np.zeros(components * contexts, dtype=np.int64)
    of_own[own] = group
    together, apart = [], []
    for strength in strengths(seen.width):
        prior = (strength / np.maximum(seen.width, 1))[group]
        together.append(seen.log_likelihood(strength))
        apart.append(log_likelihood(own, entries.weight, prior, strength[of_own]))
    gain = _of_components(apart, components) - _of_components(together, components)
    return [int(k) for k in np.flatnonzero(gain > LEAST)]


def _of_components(logs: list[Array], components: int) -> Array:  # [components]
    """Return the log-likelihood of each component with the likelier prior."""
    return np.asarray(np.max([log.reshape(components, -1).sum(axis=1) for log in logs], axis=0))
