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

from rspmn.learn.structure.contingency import distinct_weights
from rspmn.learn.structure.rows import weigh
from rspmn.learn.successors.boxes import boxes_of
from rspmn.learn.successors.components import find_components
from rspmn.learn.successors.contexts import Contexts, contexts_of
from rspmn.learn.successors.counts import counts
from rspmn.learn.successors.factors import Factors
from rspmn.learn.successors.priors import Priors, mixed_priors, too_much
from rspmn.learn.successors.tied import Sparse, Tied
from rspmn.learn.successors.transitions import Moves, Successors
from rspmn.types import Array, Bools, Ints

#: The strengths that are tried.
STRENGTHS = (0.0, *(float(f"{k}e{e}") for e in range(-2, 7) for k in (1, 3)))
#: What nothing predicts is taken to be as likely as if this much of a step had shown every box.
FLOOR = 1e-3
#: If more of the mass than this would be left out, all is left to counts.
MOST_PRUNED = 0.01


@dataclass
class FutureInfo:
    """What was learned about next states."""

    components: tuple[tuple[str, ...], ...] = ()  # variables that are drawn together
    leaves: tuple[int, ...] = ()  # of each component's tree: how many distributions it has
    contexts: int = 0  # distinct ones, each of which would have its own without sharing
    strength: float = 0.0  # κ: the prior weighs as much as so many steps
    gained: float = 0.0  # log-likelihood of each step given all others, over that of counts
    outside: float = 0.0  # mass that factors put on states of no interface node
    given_up: str = ""  # why all was left to counts, where factors would have taken too much


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
    learned = Learned(moves, goes_on)
    info = FutureInfo(
        tuple(part.names for part in learned.factors.components),
        learned.factors.tied.num_leaves(len(learned.factors.components)),
        len(learned.contexts),
    )
    if too_much(learned.factors, len(learned.contexts)):
        info.given_up = "more products of factors than can be made"
        return Future(by_counts, info, None)
    priors = learned.priors()
    seen = weigh(learned.context, learned.weights, len(learned.contexts))
    info.outside = max(0.0, 1 - float(priors.kept @ seen) / float(seen.sum()))
    if priors.pruned > MOST_PRUNED:
        info.given_up = "more edges than can be kept"
        return Future(by_counts, info, None)
    info.strength, info.gained = learned.strength(priors.kept)
    if info.strength:
        by_counts = _posterior(moves, by_counts, priors.weights, info.strength)
    return Future(by_counts, info, learned.factors)


class Learned:
    """Factors, and what they say about the moves that lead to a state."""

    def __init__(self, moves: Moves, goes_on: Bools) -> None:
        window = moves.window[goes_on]
        self.moves, states = moves, moves.states
        self.site, self.weights = moves.site[goes_on], moves.counts[goes_on]
        self.after = states.of_successors[window]
        self.contexts, self.context = _contexts(moves, window)
        components = find_components(moves, self.contexts, self.context, self.after, self.weights)
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
        self.box = boxes.of_states[self.after]

    def priors(self) -> Priors:
        """Return π of each S_L: that of its contexts, weighed as they were seen."""
        from scipy.sparse import csr_array

        visits = weigh(self.site, self.weights, self.moves.sites)
        shape = self.moves.sites, len(self.contexts)
        share = self.weights / visits[self.site]
        mixtures = csr_array((share, (self.site, self.context)), shape=shape)
        mixtures.sum_duplicates()
        return mixed_priors(self.factors, self.leaves, mixtures)

    def strength(self, kept: Array) -> tuple[float, float]:
        """Return the best κ, and the log-likelihood per step that it gains over κ = 0.

        Each step is predicted by the other steps at its S_L and by the factors of its own context,
        from which it is left out. `kept` is the factors' mass on states that are known.
        """
        size = self.factors.boxes.count
        key = self.site * size + self.box
        keys, total = distinct_weights(key, self.weights)
        others = total[np.searchsorted(keys, key)] - 1
        visits = weigh(self.site, self.weights)[self.site] - 1
        leaves = self.leaves[:, self.context]
        prior = self.factors.mass_on(leaves, self.box, without=1.0)
        prior /= np.where(kept > 0, kept, 1.0)[self.context]
        likelihoods = [
            float(self.weights @ np.log((others + k * prior + FLOOR / size) / (visits + k + FLOOR)))
            for k in STRENGTHS
        ]
        best = int(np.argmax(likelihoods))
        gained = (likelihoods[best] - likelihoods[0]) / float(self.weights.sum())
        return STRENGTHS[best], gained


def _contexts(moves: Moves, window: Ints) -> tuple[Contexts, Ints]:
    """Return the contexts of some windows; the utility is part of one if it tells them apart."""
    schema = moves.schema
    names = [name for name in schema.variables if name != schema.utility]
    alone = contexts_of(moves, names, window)
    both = contexts_of(moves, [*names, schema.utility], window)
    return both if len(both[0]) > len(alone[0]) else alone


def _posterior(moves: Moves, by_counts: Successors, priors: Sparse, strength: float) -> Successors:
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
    weights = csr_array((logged, place), shape=shape) + priors * (strength * scale)[:, None]
    weights = csr_array(weights)
    weights.eliminate_zeros()
    weights.sort_indices()
    weights.data /= np.repeat(np.asarray(weights.sum(axis=1)), np.diff(weights.indptr))
    starts, interfaces = weights.indptr.astype(np.int64), weights.indices.astype(np.int64)
    behind = np.zeros(len(interfaces))
    edge = np.repeat(np.arange(moves.sites), np.diff(starts)) * moves.interfaces + interfaces
    behind[np.searchsorted(edge, site * moves.interfaces + by_counts.interfaces)] = by_counts.counts
    return Successors(starts, interfaces, weights.data, behind)
