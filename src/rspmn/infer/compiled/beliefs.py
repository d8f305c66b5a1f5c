"""Which interface nodes states may be in, and how probable each is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rspmn.data.columns import Column
from rspmn.data.keys import joint_groups
from rspmn.infer.compiled.layers import log_sums
from rspmn.types import Array, Bools, Ints
from rspmn.values import Value

#: At most so many pairs of a state and a node are evaluated at a time: arrays that fit a cache.
CHUNK = 65_536
#: Beliefs of at most so many pairs are kept, for decisions at other times.
KEPT = 4_000_000
#: In place of a node: the state may be in several, or in none.
SEVERAL, NONE = -1, -2


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Of some states, the interface nodes that each may be in, those of one state in a row."""

    starts: Ints  # [states + 1]
    nodes: Ints  # [pairs]
    #: Above 0, in proportion to the probability of the node; the largest of a state is about 1, so
    #: that averages of equal numbers are exact. [pairs]
    weights: Array

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def is_certain(self) -> bool:
        """Whether there is one state, in one node."""
        return len(self.nodes) == 1 and len(self.starts) == 2

    @classmethod
    def certain(cls, nodes: Ints) -> "Beliefs":
        """Return the beliefs of states of which it is certain in which node each is."""
        return cls(np.arange(len(nodes) + 1), nodes, np.ones(len(nodes)))

    @classmethod
    def of_one(cls, nodes: Ints, logs: Array) -> "Beliefs":
        """Return the belief of one state from the logarithms of weights."""
        highest = logs.max() if len(logs) else -np.inf
        weights = np.exp(logs - highest) if highest > -np.inf else np.zeros(len(logs))
        if not weights.all():
            nodes, weights = nodes[weights > 0], weights[weights > 0]
        return cls(np.array([0, len(nodes)]), nodes, weights)

    @classmethod
    def of_logs(cls, counts: Ints, nodes: Ints, logs: Array) -> "Beliefs":
        """Return beliefs from the logarithms of weights, so many pairs for each state."""
        starts = np.concatenate([[0], np.cumsum(counts)])
        some = np.flatnonzero(counts)
        highest = np.maximum.reduceat(logs, starts[some]) if len(some) else logs
        highest = np.repeat(np.where(np.isneginf(highest), 0.0, highest), counts[some])
        return cls(starts, nodes, np.exp(logs - highest)).taken()

    def taken(self) -> "Beliefs":
        """Return the pairs of a weight above 0."""
        return self.where(self.weights > 0)

    def number_of(self, of_pairs: Bools) -> Ints:  # [states]
        """Return the number of pairs of each state that are true."""
        return np.diff(np.concatenate([[0], np.cumsum(of_pairs)])[self.starts])

    def sums(self, of_pairs: Array) -> Array:  # [states, columns]
        """Return the weighted sum of rows of numbers, one for each pair."""
        if len(self) == 1:
            return np.asarray(self.weights @ of_pairs)[None, :]
        if len(self) == len(self.nodes) and (np.diff(self.starts) == 1).all():
            return self.weights[:, None] * of_pairs
        from scipy.sparse import csr_array

        pairs = np.arange(len(of_pairs))
        shape = len(self), len(of_pairs)
        return np.asarray(csr_array((self.weights, pairs, self.starts), shape=shape) @ of_pairs)

    def where(self, keep: Bools) -> "Beliefs":
        """Return some of the pairs, of as many states."""
        if keep.all():
            return self
        starts = np.concatenate([[0], np.cumsum(keep)])[self.starts]
        return Beliefs(starts, self.nodes[keep], self.weights[keep])


@dataclass(frozen=True, eq=False)
class Pairs:
    """Which interface nodes rows may be in; each pair once, sorted by row, then by node."""

    row: Ints  # [pairs]
    node: Ints  # [pairs]
    logs: Array  # [pairs], the log-likelihood of the row in the node, above -∞

    @classmethod
    def concatenated(cls, parts: Sequence["Pairs"]) -> "Pairs":
        """Return the pairs of several parts, whose rows follow each other."""
        return cls(
            np.concatenate([np.empty(0, np.int64), *(part.row for part in parts)]),
            np.concatenate([np.empty(0, np.int64), *(part.node for part in parts)]),
            np.concatenate([np.empty(0), *(part.logs for part in parts)]),
        )

    def where(self, keep: Bools) -> "Pairs":
        """Return some of the pairs."""
        return self if keep.all() else Pairs(self.row[keep], self.node[keep], self.logs[keep])

    def starts(self, rows: int) -> Ints:  # [rows + 1]
        """Return the first pair of each row."""
        return np.searchsorted(self.row, np.arange(rows + 1))

    def summed(self, weights: Array, rows: int) -> Array:  # [rows]
        """Return the log-likelihood of each row, the nodes having some weights."""
        found = np.full(rows, -np.inf)
        if len(self.row):
            first = np.flatnonzero(np.append(True, self.row[1:] != self.row[:-1]))
            with np.errstate(divide="ignore"):
                found[self.row[first]] = log_sums(np.log(weights[self.node]) + self.logs, first)
        return found

    def likeliest(self, prior: Array, rows: int) -> tuple[Ints, Ints]:  # [rows] each
        """Return the node of highest prior · likelihood, NONE if there is none; also of how many.

        `prior` [nodes] are logarithms. Of equal ones it is the first.
        """
        scores = self.logs + prior[self.node]
        order = np.lexsort((-scores, self.row))  # stable: nodes are sorted
        counts = np.bincount(self.row, minlength=rows)
        some = np.flatnonzero(counts)
        found = np.full(rows, NONE)
        found[some] = self.node[order[self.starts(rows)[some]]]
        return found, counts


@dataclass(frozen=True, eq=False)
class Routes:
    """The distinct states of a table as far as they differ in their beliefs.

    Where a state is certain of its node, all states of its cell are one.
    """

    columns: Mapping[str, Column]
    state: Ints  # [rows], the number of each row's state
    row: Ints  # [states], a row of each
    node: Ints  # [states], its node; SEVERAL or NONE
    pairs: Ints  # [states], the pairs in its beliefs, at most
    beliefs_of: Callable[[Ints], Beliefs]

    def uncertain(self) -> Iterator[tuple[Ints, Beliefs]]:
        """Return the states that may be in several nodes, and their beliefs, some at a time."""
        few = int(self.pairs[self.node == SEVERAL].sum()) <= KEPT
        return iter(self._kept) if few else self._uncertain()

    @cached_property
    def _kept(self) -> list[tuple[Ints, Beliefs]]:
        return list(self._uncertain())

    def _uncertain(self) -> Iterator[tuple[Ints, Beliefs]]:
        waiting = np.flatnonzero(self.node == SEVERAL)
        chunk = np.cumsum(self.pairs[waiting]) // CHUNK
        for part in np.split(waiting, np.flatnonzero(np.diff(chunk)) + 1):
            if len(part):
                yield part, self.beliefs_of(part)

    def distinct(self) -> tuple[Ints, Ints]:  # [rows], [states]
        """Return the rows by their values alone: the number of each, and a row of each number."""
        groups = joint_groups(self.columns.values(), len(self.state))
        return groups.codes.astype(np.int64), groups.members()

    def known(self, row: int) -> dict[str, Value]:
        """Return the values of a row."""
        here = np.array([row])
        values = {name: column.take(here).decode()[0] for name, column in self.columns.items()}
        return {name: value for name, value in values.items() if value is not None}
