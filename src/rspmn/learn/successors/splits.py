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
from rspmn.types import Array, Bools, Ints

#: The weight of the prior, in steps.
STRENGTH = 1.0
#: The variable of a node that is not split.
LEAF = -1
#: The value of a node that is split by all values of its variable.
EVERY = -1
#: The value of a node that is split into values of at most v, and all above, is this less v.
UP_TO = -2
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
        self.ordered = np.array([name in contexts.ordered for name in contexts.names])
        self.copies = contexts.copies
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
        cells, gain, value_at = (
            np.concatenate(part, axis=-2)[..., mixed] for part in zip(*parts, strict=True)
        )
        gains = _Gains(cells, gain, value_at)
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

    def _by_variables(self, variables: slice, cell: Ints, context: Ints, weight: Array) -> "_Gains":
        """Return the gains of splits by some variables: by all values, one value, or at a bound.

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
        owner = variable * self.count + node
        best = _Best(owner, code, len(sizes) * self.count)
        whole = self.whole[node]
        several = best.number[owner] > 2
        single = best(np.where(several, apart + others - whole, -np.inf))
        ordered = several & self.ordered[variables][variable]
        up_to = np.full(len(parts), -np.inf)
        if ordered.any():
            inside = ordered[part]
            below = self._below(part[inside], cell[inside], weight[inside], owner, node)
            up_to[ordered] = (below - whole)[ordered]
            up_to[best.last] = -np.inf  # nothing is above
        return _Gains.of(
            (len(sizes), self.count), best.number, group_weights(owner, apart, len(best.number)),
            self.whole, single, best(up_to),
        )  # fmt: skip

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

    def _below(
        self, part: Ints, cell: Ints, weight: Array, owner: Ints, node: Ints
    ) -> Array:  # [parts]
        """Return the log-likelihood of nodes that are split above each part.

        A part is a value of a variable in a node; `part` and `cell` are those of counts, sorted by
        variable, cell and value. Part by part, what is below grows and what is above shrinks.
        """
        prior, total = self.prior[self.of_key[cell]], self.total[cell]
        group = np.append(0, np.cumsum((np.diff(cell) != 0) | (np.diff(owner[part]) != 0)))
        below = _running(weight, group)
        above = total - below
        grows = _gammaln(below + prior) - _gammaln(below - weight + prior)
        shrinks = _gammaln(above + prior) - _gammaln(above + weight + prior)
        size = len(owner)
        left = _running(group_weights(part, grows, size), owner)
        right = _running(group_weights(part, shrinks, size), owner)
        seen = _running(group_weights(part, weight, size), owner)
        right += self.whole[node] - _ends(self.seen[node])
        return np.asarray(left + _ends(seen) + right + _ends(self.seen[node] - seen))


class _Best:
    """Finds the best of the parts that each owner has."""

    def __init__(self, owner: Ints, code: Ints, owners: int) -> None:
        self.owner, self.code = owner, code
        self.number = np.bincount(owner, minlength=owners)  # [owners], of parts
        self.last = np.flatnonzero(np.append(owner[1:] != owner[:-1], True))

    def __call__(self, gain: Array) -> tuple[Array, Ints]:  # [owners] each
        """Return the highest gain, and the value of the part that has it; the first of equals."""
        order = np.lexsort((-self.code, gain, self.owner))
        last = order[self.last]
        best = np.full(len(self.number), -np.inf)
        value = np.full(len(self.number), EVERY)
        best[self.owner[last]], value[self.owner[last]] = gain[last], self.code[last]
        return best, value


def _running(numbers: Array, group: Ints) -> Array:
    """Return the running sums of numbers in each group; groups are one after the other."""
    total = np.cumsum(numbers)
    first = np.append(True, group[1:] != group[:-1])
    before = (total - numbers)[first]
    return np.asarray(total - before[np.cumsum(first) - 1])


def _before(sizes: Ints) -> Ints:
    """Return the sum of all sizes before each."""
    return np.asarray(np.cumsum(sizes) - sizes)


class _Gains(NamedTuple):
    """The gains of splits by each variable in each node, and the value that each is made at."""

    cells: Ints  # [variables, nodes], how many values it has there
    gain: Array  # [kinds, variables, nodes], by all values, one value, values up to one
    value: Ints  # [kinds, variables, nodes]

    @classmethod
    def of(
        cls, shape: tuple[int, int], number: Ints, every: Array, whole: Array,
        single: tuple[Array, Ints], up_to: tuple[Array, Ints],
    ) -> "_Gains":  # fmt: skip
        """Return the gains, each [variables · nodes]."""
        every = np.where(number.reshape(shape) > 1, every.reshape(shape) - whole, -np.inf)
        gain = np.stack([every, single[0].reshape(shape), up_to[0].reshape(shape)])
        below = np.where(np.isfinite(up_to[0]), UP_TO - up_to[1], EVERY)
        value = np.stack([np.full(len(number), EVERY), single[1], below]).reshape(gain.shape)
        return cls(number.reshape(shape), gain, value)

    def best(self, counted: Bools) -> tuple[Ints, Ints]:  # [nodes] each
        """Return the variable and value of each node's best split; LEAF where there is none.

        Of equal gains that by all values is taken, then that by one. Possible splits are those of
        the variables that are `counted`, [variables]: a copy of another adds none.
        """
        varying = np.where((self.cells > 1) & counted[:, None], self.cells, 0)
        bounds = np.where(np.isfinite(self.gain[2]) & counted[:, None], self.cells - 1, 0)
        tried = [np.count_nonzero(varying, axis=0), varying.sum(axis=0), bounds.sum(axis=0)]
        gain = self.gain - np.log(np.maximum(tried, 1))[:, None, :]
        best = gain.argmax(axis=1)  # [kinds, nodes], variables
        node = np.arange(varying.shape[1])
        kind, most = np.zeros(len(node), dtype=np.int64), gain[0, best[0], node]
        for k in (1, 2):
            better = gain[k, best[k], node] > most + LEAST
            kind[better], most = k, np.where(better, gain[k, best[k], node], most)
        variable = best[kind, node]
        value = self.value[kind, variable, node]
        return np.where(most > LEAST, variable, LEAF), np.where(most > LEAST, value, EVERY)


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
