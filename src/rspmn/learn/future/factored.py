"""Factored futures: weights of S_L from factors that branches share, refined by counts.

Given all that was before, the variables of a next step are mostly independent, and each depends on
few things. A product of such factors, learned from all branches together, is the mean π of a
Dirichlet prior for the weights of each S_L:

    weight = (count + κ · π) / (n + κ)

Its strength κ is the one under which steps are best predicted when each is left out in turn. So
counts rule where they are many, or where factors fit badly; with κ = 0 they are all that counts.

END is not shared: whether an episode is over is weighed by counts alone, so that no branch goes on
that was always the last, and none ends that never did.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rspmn.learn.contingency import weighed
from rspmn.learn.future.boxes import boxes_of
from rspmn.learn.future.components import find_components
from rspmn.learn.future.contexts import Contexts, contexts_of
from rspmn.learn.future.counts import counts
from rspmn.learn.future.factors import Factors
from rspmn.learn.future.moves import Moves, Successors
from rspmn.learn.future.tied import Sparse, Tied
from rspmn.learn.rows import weigh

__all__ = ["Future", "FutureInfo", "factored"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The strengths that are tried.
STRENGTHS = (0.0, *(float(f"{k}e{e}") for e in range(-2, 7) for k in (1, 3)))
#: What nothing predicts is taken to be as likely as if this much of a step had shown every box.
FLOOR = 1e-3
#: Edges of less weight are left out.
LEAST = 1e-12


@dataclass
class FutureInfo:
    """What was learned about next states."""

    components: tuple[tuple[str, ...], ...] = ()  # variables that are drawn together
    leaves: tuple[int, ...] = ()  # of each component's tree: how many distributions it has
    contexts: int = 0  # distinct ones, each of which would have its own without sharing
    strength: float = 0.0  # κ: the prior weighs as much as so many steps
    gained: float = 0.0  # log-likelihood of each step given all others, over that of counts
    outside: float = 0.0  # mass that factors put on states of no interface node


@dataclass(frozen=True, eq=False)
class Future:
    """What follows every branch."""

    successors: Successors
    info: FutureInfo
    factors: Factors | None  # None if no move leads to a state


def factored(moves: Moves) -> Future:
    """Weigh interface nodes by counts and by what factors say of each branch."""
    by_counts = counts(moves)
    goes_on = moves.to != (-1 if moves.end is None else moves.end)
    if not goes_on.any() or not moves.states.columns:
        return Future(by_counts, FutureInfo(), None)
    learned = _Learned(moves, goes_on)
    info = learned.info()
    if info.strength:
        by_counts = _posterior(moves, by_counts, learned, info.strength)
    return Future(by_counts, info, learned.factors)


class _Learned:
    """Factors, and what they say about the moves that lead to a state."""

    def __init__(self, moves: Moves, goes_on: NDArray[np.bool_]) -> None:
        window = moves.window[goes_on]
        self.moves, states = moves, moves.states
        self.site, self.weights = moves.site[goes_on], moves.counts[goes_on]
        self.after = states.of_successors[window]
        self.contexts, self.context = _contexts(moves, window)
        components = find_components(moves.table, states, self.after, self.context, self.weights)
        values = [part.values[self.after] for part in components]
        utility = moves.schema.utility
        tied = Tied.learn(
            self.contexts, self.context, values, self.weights,
            utility if utility in self.contexts.names else None, if_it_tells=True,
        )  # fmt: skip
        arrivals = weigh(self.after, self.weights, states.count)
        boxes = boxes_of(moves, components, arrivals)
        self.factors = Factors.of(self.contexts, components, tied, boxes)
        self.leaves = self.factors.leaves(self.contexts)
        masses = self.factors.masses(self.leaves)
        self.kept = np.asarray(masses.sum(axis=1))
        self.masses = masses / np.where(self.kept > 0, self.kept, 1.0)[:, None]

    def info(self) -> FutureInfo:
        """Say what was learned."""
        components = self.factors.components
        strength, gained = self.strength()
        seen = weigh(self.context, self.weights, len(self.contexts))
        return FutureInfo(
            tuple(part.names for part in components),
            self.factors.tied.num_leaves(len(components)),
            len(self.contexts),
            strength,
            gained,
            max(0.0, 1 - float(self.kept @ seen) / float(seen.sum())),
        )

    def strength(self) -> tuple[float, float]:
        """Return the best κ, and the log-likelihood per step that it gains over κ = 0."""
        box = self.factors.boxes.of_states[self.after]
        size = self.factors.boxes.count
        pair, which = np.unique(self.context * size + box, return_inverse=True)
        context, to = np.divmod(pair, size)
        prior = self.factors.without_one(self.leaves[:, context], to)
        prior = (prior / np.where(self.kept > 0, self.kept, 1.0)[context])[which]
        key = self.site * size + box
        keys, total = weighed(key, self.weights)
        others = total[np.searchsorted(keys, key)] - 1
        visits = weigh(self.site, self.weights)[self.site] - 1
        likelihoods = [
            float(self.weights @ np.log((others + k * prior + FLOOR / size) / (visits + k + FLOOR)))
            for k in STRENGTHS
        ]
        best = int(np.argmax(likelihoods))
        gained = (likelihoods[best] - likelihoods[0]) / float(self.weights.sum())
        return STRENGTHS[best], gained

    def priors(self) -> Sparse:  # [sites, interfaces]
        """Return π of each S_L: that of its contexts, weighed as they were seen."""
        from scipy.sparse import csr_array

        visits = weigh(self.site, self.weights, self.moves.sites)
        shape = self.moves.sites, len(self.contexts)
        share = csr_array(
            (self.weights / visits[self.site], (self.site, self.context)), shape=shape
        )
        return csr_array(share @ self.masses @ self.factors.boxes.interfaces)


def _contexts(moves: Moves, window: Ints) -> tuple[Contexts, Ints]:
    """Return the contexts of some windows; the utility is part of one if it tells them apart."""
    schema = moves.schema
    names = [name for name in schema.variables if name != schema.utility]
    alone = contexts_of(moves.table, names, window)
    both = contexts_of(moves.table, [*names, schema.utility], window)
    return both if len(both[0]) > len(alone[0]) else alone


def _posterior(
    moves: Moves, by_counts: Successors, learned: _Learned, strength: float
) -> Successors:
    """Add κ steps' worth of prior to the counts of every S_L; END keeps its share."""
    from scipy.sparse import csr_array

    site = np.repeat(np.arange(moves.sites), np.diff(by_counts.starts))
    place, shape = (site, by_counts.interfaces), (moves.sites, moves.interfaces)
    over = by_counts.interfaces == moves.end
    ended = weigh(site, by_counts.weights * over, moves.sites)  # [sites], the share
    on = weigh(site, by_counts.counts * ~over, moves.sites)
    scale = np.where(on > 0, (1 - ended) / (on + strength), 0.0)
    # END: its share; others: the rest · (count + κ · π) / (n + κ)
    logged = np.where(over, by_counts.weights, by_counts.counts * scale[site])
    prior = learned.priors() * (strength * scale)[:, None]
    weights = csr_array(csr_array((logged, place), shape=shape) + prior)
    weights.data[weights.data < LEAST] = 0.0
    weights.eliminate_zeros()
    weights.sort_indices()
    weights.data /= np.repeat(np.asarray(weights.sum(axis=1)), np.diff(weights.indptr))
    starts, interfaces = weights.indptr.astype(np.int64), weights.indices.astype(np.int64)
    behind = np.zeros(len(interfaces))
    edge = np.repeat(np.arange(moves.sites), np.diff(starts)) * moves.interfaces + interfaces
    behind[np.searchsorted(edge, site * moves.interfaces + by_counts.interfaces)] = by_counts.counts
    return Successors(starts, interfaces, weights.data, behind)
