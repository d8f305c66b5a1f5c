"""How much likelier splits make what followed: by all values of a variable, one, or at a bound.

What followed in a node has a Dirichlet prior, the same for each value that was seen there. Of two
priors the likelier is taken, with the split and without it. One is worth one step in all: it
expects few of the values, so that a few steps set apart a state in which all is certain. The other
is worth one step for each value: it expects that all of them follow, as the demand of a day may be
any number. Of two values, the first serves for both.

A part with a single step is equally likely whatever followed: a node in which many values follow
would be divided into such parts. So the second prior is favoured, by the number of ways in which N
steps can be shared out to K values, (N + K - 1)! / (N! (K - 1)!), unless a node is divided into
more than two parts at once: these have to be likelier in spite of it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rspmn.context_trees import EVERY, LEAF, UP_TO
from rspmn.data.keys import group_weights
from rspmn.types import Array, Bools, Ints

#: The weight of the prior that expects few values, in steps.
STRENGTH = 1.0
#: Smaller gains are rounding errors.
LEAST = 1e-9


def strengths(width: Ints) -> Iterator[Array]:  # [nodes] each
    """Return the priors of nodes, in steps, given how many values were seen in each."""
    yield np.full(len(width), STRENGTH)
    if (width > 2).any():
        yield np.where(width > 2, width, STRENGTH).astype(np.float64)


def log_likelihood(group: Ints, weight: Array, prior: Array, strength: Array) -> Array:  # [groups]
    """Return the log-likelihood of what followed in groups.

    Parameters
    ----------
    group, weight, prior
        Of each value in each group, the group, how often it followed, and its prior. [n]
    strength
        The prior of each group. [groups]
    """
    each = gammaln(weight + prior) - gammaln(prior)
    total = group_weights(group, weight, len(strength))
    return group_weights(group, each, len(strength)) + _ends(total, strength)


class SeenValues(NamedTuple):
    """The values that were seen in nodes, and how often."""

    node: Ints  # [cells], sorted
    total: Array  # [cells]
    seen: Array  # [nodes], the sum
    width: Ints  # [nodes], how many values

    @classmethod
    def of(cls, node: Ints, total: Array, nodes: int) -> "SeenValues":
        """Count what each of some nodes has seen."""
        width = np.bincount(node, minlength=nodes)
        return cls(node, total, group_weights(node, total, nodes), width)

    def log_likelihood(self, strength: Array) -> Array:  # [nodes]
        """Return the log-likelihood of nodes as they are, with a prior of each."""
        prior = (strength / np.maximum(self.width, 1))[self.node]
        return log_likelihood(self.node, self.total, prior, strength)

    def likeliest(self) -> Array:  # [nodes]
        """Return the log-likelihood of nodes as they are, with the likelier prior."""
        found = [self.log_likelihood(s) + self.favour(s) for s in strengths(self.width)]
        return np.asarray(np.max(found, axis=0))

    def favour(self, strength: Array) -> Array:  # [nodes]
        """Return how much a prior is favoured: the log of the ways to share steps out to values."""
        width = self.width.astype(np.float64)
        ways = gammaln(self.seen + width) - gammaln(self.seen + 1) - gammaln(width)
        return np.where(strength > STRENGTH, ways, 0.0)


class SplitParts:
    """The parts that nodes may be divided into: each a value of a variable in a node.

    Parameters
    ----------
    values
        Of the nodes.
    shape
        The number of variables, and of nodes.
    key
        Of each part, its variable, its node and its code, which is the value. [parts] each
    counts
        Of each count the part, the cell and how often it was, sorted by variable, cell and code.
    ordered
        Which variables are numbers. [variables]
    """

    def __init__(
        self, values: SeenValues, shape: tuple[int, int], key: tuple[Ints, Ints, Ints],
        counts: tuple[Ints, Ints, Array], ordered: Bools,
    ) -> None:  # fmt: skip
        self.values, self.shape = values, shape
        variable, self.node, code = key
        self.part, self.cell, self.weight = counts
        self.owner = variable * shape[1] + self.node
        self.best = _Best(self.owner, code, shape[0] * shape[1])
        several = self.best.number[self.owner] > 2
        self.several, self.ordered = several, several & ordered[variable]

    def gains(self, before: Array) -> "Gains":
        """Return the gains of all splits over nodes as they are, [nodes]."""
        found = [self._gains(strength, before) for strength in strengths(self.values.width)]
        better = np.argmax([gains.gain for gains in found], axis=0)[None]
        gain, value = (
            np.take_along_axis(np.stack(part), better, axis=0)[0]
            for part in ([g.gain for g in found], [g.value for g in found])
        )
        return Gains(found[0].cells, gain, value)

    def _gains(self, strength: Array, before: Array) -> "Gains":
        """Return the gains of all splits with one prior of each node."""
        values, node, part, best = self.values, self.node, self.part, self.best
        prior = (strength / np.maximum(values.width, 1))[values.node[self.cell]]
        whole, own = values.log_likelihood(strength), strength[node]
        apart = log_likelihood(part, self.weight, prior, own)
        # all other values of the variable together: what the node has seen, less the part
        total = values.total[self.cell]
        less = group_weights(part, gammaln(total - self.weight + prior) - gammaln(total + prior))
        rest = values.seen[node] - group_weights(part, self.weight)
        undivided = (whole + values.favour(strength))[node] - _ends(values.seen[node], own)
        others = undivided + less + _ends(rest, own)
        single = best(np.where(self.several, apart + others - before[node], -np.inf))
        up_to = np.full(len(node), -np.inf)
        if self.ordered.any():
            inside = self.ordered[part]
            below = undivided + self._below(inside, prior[inside], own)
            up_to[self.ordered] = (below - before[node])[self.ordered]
            up_to[best.last] = -np.inf  # nothing is above
        every = group_weights(self.owner, apart, len(best.number))
        every += np.where(best.number > 2, 0.0, np.tile(values.favour(strength), self.shape[0]))
        return Gains.of(self.shape, best.number, every, before, single, best(up_to))

    def _below(self, inside: Bools, prior: Array, strength: Array) -> Array:  # [parts]
        """Return by how much nodes are likelier that are split above each part.

        Part by part, what is below grows and what is above shrinks. `inside` are the counts of
        variables that are numbers.
        """
        part, cell, weight = self.part[inside], self.cell[inside], self.weight[inside]
        owner, seen = self.owner, self.values.seen[self.node]
        group = np.append(0, np.cumsum((np.diff(cell) != 0) | (np.diff(owner[part]) != 0)))
        below = _running(weight, group)
        above = self.values.total[cell] - below
        grows = gammaln(below + prior) - gammaln(below - weight + prior)
        shrinks = gammaln(above + prior) - gammaln(above + weight + prior)
        size = len(owner)
        left = _running(group_weights(part, grows, size), owner)
        right = _running(group_weights(part, shrinks, size), owner)
        under = _running(group_weights(part, weight, size), owner)
        return np.asarray(left + _ends(under, strength) + right + _ends(seen - under, strength))


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


class Gains(NamedTuple):
    """The gains of splits by each variable in each node, and the value that each is made at."""

    cells: Ints  # [variables, nodes], how many values it has there
    gain: Array  # [kinds, variables, nodes], by all values, one value, values up to one
    value: Ints  # [kinds, variables, nodes]

    @classmethod
    def of(
        cls, shape: tuple[int, int], number: Ints, every: Array, whole: Array,
        single: tuple[Array, Ints], up_to: tuple[Array, Ints],
    ) -> "Gains":  # fmt: skip
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


def _ends(weight: Array, strength: Array) -> Array:
    return np.asarray(gammaln(strength) - gammaln(weight + strength))


def gammaln(x: Array) -> Array:
    """Return the logarithm of the gamma function."""
    from scipy import special

    return np.asarray(special.gammaln(x))
