"""Splits: the variable of a context that what follows depends on most, in many nodes at once.

The gain of a split is the log of the Bayes factor of the data with it over without it, under
Dirichlet priors worth one step, uniform over the values seen in the node; less the log of the
number of possible splits.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rspmn.data.distinct import distinct_integers
from rspmn.data.keys import group_weights
from rspmn.learn.structure.contingency import distinct_weights
from rspmn.learn.successors.transitions import Contexts
from rspmn.types import Array, Ints

#: The weight of the prior, in steps.
STRENGTH = 1.0
#: The variable of a node that is not split.
LEAF = -1
#: The value of a node that is split by all values of its variable.
EVERY = -1
#: Entries that are counted at once, of several variables.
TOGETHER = 200_000
#: Joint values of several variables are counted if there are so many entries for each count.
SPAN = 4
#: Smaller gains are rounding errors.
LEAST = 1e-9


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
        self.number, self.count = number, int(number.max()) + 1
        self.context, self.weight = entries.context[live], entries.weight[live]
        self.values = int(entries.value[live].max()) + 1
        self.key, self.cell = distinct_integers(number * self.values + entries.value[live])
        self.total = group_weights(self.cell, self.weight)
        self.of_key = self.key // self.values
        self.prior = STRENGTH / np.bincount(self.of_key, minlength=self.count)  # of each value
        self.seen = group_weights(self.of_key, self.total, self.count)
        prior = self.prior[self.of_key]
        self.whole = _log_likelihood(self.of_key, self.total, prior, self.count)

    @property
    def cells(self) -> tuple[Ints, Ints, Array]:
        """The weight of each value in each node: nodes, values, weights."""
        return self.of_key, self.key % self.values, self.total

    def best_splits(self) -> tuple[Ints, Ints]:  # [nodes] each
        """Return the variable and value of each node's best split; LEAF where there is none.

        A node in which one value was seen is none.
        """
        variable, value = np.full(self.count, LEAF), np.full(self.count, EVERY)
        mixed = np.flatnonzero(self.prior < STRENGTH)
        if not len(mixed):
            return variable, value
        inside = np.flatnonzero((self.prior < STRENGTH)[self.number])
        entries = self.cell[inside], self.context[inside], self.weight[inside]
        parts = [self._by_variables(some, *entries) for some in self._slices(len(inside))]
        gains = _Gains(*(np.concatenate(part)[:, mixed] for part in zip(*parts, strict=True)))
        variable[mixed], value[mixed] = gains.best()
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

    def _by_variables(self, variables: slice, cell: Ints, context: Ints, weight: Array) -> "_Gains":
        """Return the gains of splits by some variables: by all values, and by the best value.

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
        prior, total = self.prior[self.of_key[cell]], self.total[cell]
        apart = _log_likelihood(part, weight, prior, len(parts))
        # all other values of the variable together: what the node has seen, less the part
        less = group_weights(part, _gammaln(total - weight + prior) - _gammaln(total + prior))
        rest = self.seen[node] - group_weights(part, weight)
        others = self.whole[node] - _ends(self.seen[node]) + less + _ends(rest)
        return self._gains(len(sizes), variable * self.count + node, code, apart, others)

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

    def _gains(
        self, variables: int, owner: Ints, code: Ints, apart: Array, others: Array
    ) -> "_Gains":
        """Return the gains, given the log-likelihoods of parts and of all but each part.

        `owner` is the variable and node that each part is of, `code` its value.
        """
        shape, size = (variables, self.count), variables * self.count
        number = np.bincount(owner, minlength=size)
        every = group_weights(owner, apart, size).reshape(shape) - self.whole
        alone = np.where(
            number[owner] > 2, apart + others - self.whole[owner % self.count], -np.inf
        )
        order = np.lexsort((-code, alone, owner))  # the best of each node is last
        last = order[np.append(owner[order][1:] != owner[order][:-1], True)]
        single, value = np.full(shape, -np.inf), np.full(shape, EVERY)
        single.flat[owner[last]], value.flat[owner[last]] = alone[last], code[last]
        number = number.reshape(shape)
        return _Gains(number, np.where(number > 1, every, -np.inf), single, value)


def _before(sizes: Ints) -> Ints:
    """Return the sum of all sizes before each."""
    return np.asarray(np.cumsum(sizes) - sizes)


class _Gains(NamedTuple):
    """The gains of splits by each variable in each node."""

    cells: Ints  # [variables, nodes], how many values it has there
    every: Array  # [variables, nodes], by all values; -∞ if there is one
    #: By the best value against all others; -∞ if there are two or less. [variables, nodes]
    single: Array
    value: Ints  # [variables, nodes], that one

    def best(self) -> tuple[Ints, Ints]:  # [nodes] each
        """Return the variable and value of each node's best split; LEAF where there is none."""
        varying = np.where(self.cells > 1, self.cells, 0)
        every = self.every - np.log(np.maximum(np.count_nonzero(varying, axis=0), 1))
        single = self.single - np.log(np.maximum(varying.sum(axis=0), 1))
        node = np.arange(varying.shape[1])
        best, alone = every.argmax(axis=0), single.argmax(axis=0)
        better = single[alone, node] > every[best, node] + LEAST
        variable = np.where(better, alone, best)
        gain = np.where(better, single[alone, node], every[best, node])
        value = np.where(better, self.value[alone, node], EVERY)
        return np.where(gain > LEAST, variable, LEAF), np.where(gain > LEAST, value, EVERY)


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
    prior = STRENGTH / np.maximum(np.bincount(of_key, minlength=components * size), 1)
    together = _log_likelihood(of_key, total, prior[of_key], components * size)
    own = entries.component * contexts + entries.context
    apart = _log_likelihood(own, entries.weight, prior[group], components * contexts)
    gain = apart.reshape(components, -1).sum(axis=1) - together.reshape(components, -1).sum(axis=1)
    return [int(k) for k in np.flatnonzero(gain > LEAST)]


def _log_likelihood(group: Ints, weight: Array, prior: Array, groups: int) -> Array:  # [groups]
    """Return the log-likelihood of the values of each group, one weight and prior for each."""
    each = _gammaln(weight + prior) - _gammaln(prior)
    return group_weights(group, each, groups) + _ends(group_weights(group, weight, groups))


def _ends(weight: Array) -> Array:
    return np.asarray(_gammaln(np.array(STRENGTH)) - _gammaln(weight + STRENGTH))


def _gammaln(x: Array) -> Array:
    from scipy.special import gammaln

    return np.asarray(gammaln(x))
