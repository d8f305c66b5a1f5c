"""Latent trees: a hidden variable for each observed one, the hidden ones linked as a tree.

Given its hidden variable an observed one is independent of everything else. So a latent tree is a
circuit: the state of a hidden variable is a product of a leaf and of a sum for each hidden variable
below, over its states. All sums of a hidden variable have the same children, so that a pass over
many rows is one matrix product for each variable.

EM over a latent tree finds a local optimum. From random parameters it is poor and far away. From a
mixture of products, where all hidden variables are in one state together, the cluster, it is good
and near: `first_tree`.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rspmn.learn.density.symbols import Symbols
from rspmn.types import Array, Ints

#: Single precision is enough for estimates, and twice as fast.
Singles = NDArray[np.float32]

#: Likelihoods are kept above this share of that of the likeliest state, within single precision.
LEAST = 1e-12
#: A product of so many messages is scaled before it is multiplied further.
SCALED_AFTER = 2
#: Each state of a hidden variable, and each symbol, counts as seen so often.
FLOOR = 1e-4


@dataclass(frozen=True, eq=False)
class ExpectedCounts:
    """Expected counts: how many rows went through each edge and leaf."""

    start: Singles  # [states], of the root
    edges: Singles  # [variables, states above, states]; of the root, zeros
    symbols: Singles  # [states, symbols]

    def moved(self, other: "ExpectedCounts", step: float) -> "ExpectedCounts":
        """Return (1 - step) · these counts + step · others."""
        return ExpectedCounts(*(
            (1 - step) * getattr(self, name) + step * getattr(other, name)
            for name in ("start", "edges", "symbols")
        ))  # fmt: skip


@dataclass(frozen=True, eq=False)
class LatentTree:
    """A tree of hidden variables and its parameters."""

    order: Ints  # [variables], parents before children
    parent: Ints  # [variables], -1 of the root
    start: Singles  # [states], of the root
    edges: Singles  # [variables, states above, states]; rows sum to 1
    emissions: Singles  # [states, symbols + 1]; the last, of missing values, is 1

    @cached_property
    def children(self) -> list[list[int]]:
        """The variables below each."""
        found: list[list[int]] = [[] for _ in self.order]
        for variable in self.order[1:].tolist():
            found[self.parent[variable]].append(variable)
        return found

    def log_likelihoods(self, rows: Symbols) -> Array:  # [n]
        """Return the log-likelihood of each row."""
        return np.concatenate([self._upward(part)[0] for part in rows.chunks()])

    def mean_log_likelihood(self, rows: Symbols) -> float:
        """Return the mean log-likelihood of a row."""
        return float(self.log_likelihoods(rows) @ rows.weights / rows.weights.sum())

    def _upward(self, rows: Symbols) -> tuple[Array, Singles, Singles]:
        """Return log-likelihoods [n] and, scaled for each row, what is below each state.

        The second array [variables, states, n] is the likelihood of what is below each state of a
        hidden variable, the third that given each state of its parent.
        """
        shape = (len(self.order), len(self.start), len(rows))
        below = np.empty(shape, dtype=np.float32)
        message = np.empty(shape, dtype=np.float32)
        logs = np.zeros(len(rows))
        for i in self.order[::-1].tolist():
            here = below[i]
            np.take(self.emissions, rows.all[i], axis=1, out=here, mode="clip")
            for k, child in enumerate(self.children[i]):
                here *= message[child]
                if k % SCALED_AFTER == SCALED_AFTER - 1:
                    logs += _rescale(here)
            logs += _rescale(here)
            np.matmul(self.edges[i], here, out=message[i])
        total = self.start @ below[self.order[0]]
        return logs + np.log(total), below, message

    def expected_counts(self, rows: Symbols) -> ExpectedCounts:
        """Return how much of the rows is expected to go through each edge and leaf."""
        _, below, message = self._upward(rows)
        root = int(self.order[0])
        passed = np.empty_like(below)  # rows in each state
        passed[root] = below[root] * self.start[:, None]
        passed[root] *= (rows.weights / passed[root].sum(axis=0)).astype(np.float32)
        edges, symbols = np.zeros_like(self.edges), np.empty_like(self.emissions[:, :-1])
        for i in self.order.tolist():
            start, stop = rows.starts[i : i + 2]
            symbols[:, start:stop] = passed[i] @ rows.indicators(i)
            for child in self.children[i]:
                ratio = passed[i] / message[child]
                edges[child] = self.edges[child] * (ratio @ below[child].T)
                np.matmul(self.edges[child].T, ratio, out=passed[child])
                passed[child] *= below[child]
        return ExpectedCounts(passed[root].sum(axis=1), edges, symbols)

    def reestimated(
        self, counts: ExpectedCounts, rows: Symbols, pseudo_rows: float
    ) -> "LatentTree":
        """Return the tree of some counts, smoothed by so many rows for each state.

        Pseudo-rows are distributed as all rows are: at a leaf by the shares of symbols, on edges by
        how often each state below was reached.
        """
        reached = counts.edges.sum(axis=1, keepdims=True)  # [variables, 1, states]
        reached = reached / np.maximum(reached.sum(axis=2, keepdims=True), 1e-30)
        edges = counts.edges + np.float32(pseudo_rows) * reached
        edges += np.float32(FLOOR / len(self.start))
        edges /= edges.sum(axis=2, keepdims=True)
        symbols = counts.symbols + (pseudo_rows * rows.shares + FLOOR).astype(np.float32)
        totals = np.add.reduceat(symbols, rows.starts[:-1], axis=1)
        symbols /= np.repeat(totals, np.diff(rows.starts), axis=1)
        start = counts.start + pseudo_rows / len(self.start)
        emissions = np.hstack([symbols, np.ones((len(start), 1), dtype=np.float32)])
        return replace(
            self, start=(start / start.sum()).astype(np.float32), edges=edges, emissions=emissions
        )


def _rescale(likelihoods: Singles) -> Array:  # [n]
    """Scale the likelihoods [states, n] of each row to a highest of 1; return what they lost."""
    highest = likelihoods.max(axis=0)
    likelihoods /= highest
    np.maximum(likelihoods, LEAST, out=likelihoods)
    return np.asarray(np.log(highest), dtype=np.float64)


def spanning_tree(strength: Array) -> tuple[Ints, Ints]:
    """Return the order and the parents of the spanning tree of greatest strength (Chow and Liu).

    The root is the variable that depends most on all others.

    >>> order, parent = spanning_tree(np.array([[0, 1, 5], [1, 0, 4], [5, 4, 0]]))
    >>> order.tolist(), parent.tolist()
    ([2, 0, 1], [2, 2, -1])
    """
    root = int(strength.sum(axis=1).argmax())
    parent = np.full(len(strength), root)
    parent[root] = -1
    nearest = strength[root].astype(np.float64)
    nearest[root] = -np.inf
    order, outside = [root], np.ones(len(strength), dtype=bool)
    outside[root] = False
    while outside.any():
        new = int(np.where(outside, nearest, -np.inf).argmax())
        order.append(new)
        outside[new] = False
        closer = outside & (strength[new] > nearest)
        nearest[closer], parent[closer] = strength[new][closer], new
    return np.array(order), parent


#: Clusters are made of at most so many rows, and indicators.
MOST_ROWS, MOST_CELLS = 5000, 20_000_000
#: Passes of EM over these rows.
PASSES = 20
#: Rows of the whole table that each cluster is smoothed by.
PSEUDO_ROWS = 2.0
#: The probability with which a hidden variable starts in another state than its parent.
LOOSE = 0.3
#: The standard deviation of the noise in the logarithm of strengths, which makes trees differ.
NOISE = 0.3


def first_tree(
    rows: Symbols, strength: Array, states: int, vary: bool, rng: np.random.Generator
) -> LatentTree:
    """Return a latent tree that EM can start from.

    `strength` [variables, variables] says how much each depends on each other. With `vary`, the
    tree is that of strengths with noise, so that several trees differ.
    """
    if vary:
        noise = np.exp(NOISE * rng.normal(size=strength.shape))
        strength = strength * np.sqrt(noise * noise.T)
    order, parent = spanning_tree(strength)
    shares, emissions = _clusters(rows, states, rng)
    states = len(shares)
    elsewhere = rng.dirichlet(np.full(states, 0.5), size=(len(order), states))
    edges = (1 - LOOSE) * np.eye(states) + LOOSE * elsewhere
    return LatentTree(
        order, parent, shares.astype(np.float32), edges.astype(np.float32),
        np.hstack([emissions, np.ones((states, 1))]).astype(np.float32),
    )  # fmt: skip


def _clusters(rows: Symbols, states: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the shares of clusters and the probability of each symbol in each."""
    total = rows.weights.sum()
    most = min(MOST_ROWS, max(states, MOST_CELLS // rows.size), max(states, round(total)))
    drawn = rng.choice(len(rows), most, p=rows.weights / total)
    sample = rows.take(drawn)
    seen = np.hstack([sample.indicators(i) for i in range(len(rows.codes))])  # [n, symbols]
    variables = np.repeat(np.arange(len(rows.codes)), np.diff(rows.starts))

    def probabilities(counts: Array) -> Array:
        counts = counts + PSEUDO_ROWS * rows.shares + 1e-6
        totals = np.add.reduceat(counts, rows.starts[:-1], axis=1)
        return np.asarray(counts / totals[:, variables])

    weights = np.full(states, 1 / states)
    emissions = probabilities(PSEUDO_ROWS * seen[rng.choice(len(seen), states)])
    for _ in range(PASSES):
        logs = seen @ np.log(emissions).T.astype(np.float32) + np.log(weights)
        passed = np.exp(logs - logs.max(axis=1, keepdims=True))
        passed /= passed.sum(axis=1, keepdims=True)
        totals = passed.sum(axis=0)
        weights = (totals + 1) / (totals + 1).sum()
        emissions = probabilities(passed.astype(np.float32).T @ seen)
    return weights, emissions
