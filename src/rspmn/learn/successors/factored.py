"""Factored successors: weights of S_L from factors that branches share, refined by counts.

Given all that was before, the variables of a next step are mostly independent, and each depends on
few others. A product of such factors, learned from all branches together, is the mean π of a
Dirichlet prior for the weights of each S_L:

    weight = (count + κ · π) / (n + κ)

Its strength κ is the one under which steps are best predicted when each is left out in turn. So
counts dominate where they are many, or where factors fit badly; κ = 0 is counts alone.

END is not shared, unless it comes with a utility that varies: else whether an episode is over is
weighed by counts alone, so that no branch continues that was always the last, and none ends that
never did. Utilities that vary are shared, and END with them: see `outcomes`.
"""

from dataclasses import dataclass, replace

import numpy as np

from rspmn.context_trees import Contexts, Sparse, Tied
from rspmn.data.distinct import distinct_rows
from rspmn.data.keys import group_weights
from rspmn.infer.compiled.expectation import Expectation
from rspmn.learn.structure.contingency import distinct_weights
from rspmn.learn.successors.components import find_components
from rspmn.learn.successors.outcomes import SharedOutcomes, share_outcomes
from rspmn.learn.successors.priors import Factors, boxes_of
from rspmn.learn.successors.products import FactorProducts, Priors
from rspmn.learn.successors.strength import Strength, best_strength
from rspmn.learn.successors.transitions import (
    Component,
    Sharing,
    SuccessorWeights,
    Transitions,
    contexts_of,
    count_successors,
)
from rspmn.types import Array, Bools, Ints


@dataclass
class FutureInfo:
    """What was learned about next states."""

    components: tuple[tuple[str, ...], ...] = ()  # variables that depend on each other
    leaves: tuple[int, ...] = ()  # of each component's tree: the number of its distributions
    contexts: int = 0  # distinct ones, each of which would have its own without sharing
    strength: float = 0.0  # κ: the number of steps that the prior is worth
    least_strength: float = 0.0  # the least κ that the log does not rule out
    gained: float = 0.0  # log-likelihood of each step given all others, over that of counts
    outside: float = 0.0  # mass that factors put on states of no interface node
    #: Mass that was cut, on the least probable states, of interface nodes or of none. What is
    #: neither outside nor cut is on states that S_L have edges to.
    cut: float = 0.0
    given_up: str = ""  # why weights are by counts alone, if there was no time for factors
    spread: int = 0  # the number of products that are not multiplied out; 0 if all are
    work: int = 0  # multiplications in a Bellman update for these
    #: How these are done: "contraction", or "joined" where products are sparse; "multiplied out" if
    #: there are none.
    way: str = ""
    outcomes: float = 0.0  # κ_u: the number of steps that shared utilities are worth


@dataclass(frozen=True)
class Factored:
    """Weighs interface nodes by counts and by factors that all branches share."""

    def __call__(self, transitions: Transitions) -> tuple[SuccessorWeights, FutureInfo]:
        """Return the posterior weights of every S_L."""
        weights, info = count_successors(transitions), FutureInfo()
        goes_on = ~transitions.over
        if not goes_on.any() or not transitions.states.columns:
            return weights, info
        if transitions.too_late_for():
            return weights, replace(info, given_up="more time than is left")
        learned = Learned(transitions, goes_on)
        factors = learned.factors
        info.components = tuple(part.names for part in factors.components)
        info.leaves = factors.tied.num_leaves(len(factors.components))
        info.contexts = len(learned.contexts)
        info.outcomes = learned.outcomes.strength.best if learned.outcomes else 0.0
        if transitions.too_late_for():
            return weights, replace(info, given_up="more time than is left")
        products = FactorProducts(factors, learned.leaves)
        if learned.have_many_edges(products) and products.exact is not None:
            return self._spread(weights, learned, products, products.exact, info)
        if transitions.too_late_for(lambda: products.edges(learned.mixtures)):
            return weights, replace(info, given_up="more time than is left")
        priors = learned.priors(products)
        info.way = "multiplied out"
        info.cut = learned.mean(priors.cut)
        info.outside = max(0.0, 1 - learned.mean(priors.kept) - info.cut)
        info.strength, info.least_strength, info.gained = learned.strength(priors.kept)
        if info.strength or learned.outcomes:
            prior, worth = learned.weighed(priors.weights, info.strength)
            weights = _posterior(transitions, weights, prior, worth, learned.outcomes)
            # A single tree of contexts shares little, and its leaves were chosen to fit the counts,
            # unless it is of moves.
            several = sum(leaves > 1 for leaves in info.leaves) > 1
            if several or learned.outcomes or factors.tied.trees.moved:
                pi = np.asarray(prior[weights.site, weights.interfaces]).ravel()
                weights = learned.with_sharing(weights, priors.kept, pi, info)
        return replace(weights, factors=factors, outcomes=learned.outcomes), info

    def _spread(
        self,
        weights: SuccessorWeights,
        learned: "Learned",
        products: FactorProducts,
        expect: Expectation,
        info: FutureInfo,
    ) -> tuple[SuccessorWeights, FutureInfo]:
        """Return the weights with products of factors that are not multiplied out."""
        kept = products.kept[products.of_contexts]
        info.outside = max(0.0, 1 - learned.mean(kept))
        info.strength, info.least_strength, info.gained = learned.strength(kept)
        info.spread = len(products.rows)
        info.work, info.way = expect.work, type(expect).__name__.lower()
        if info.strength or learned.outcomes:
            weights = _with_end(learned.transitions, weights, learned.outcomes)
            over = weights.interfaces == learned.transitions.end
            weights = products.spread(weights, over, *learned.uses(info.strength))
            weights = learned.with_sharing(weights, kept, np.zeros(len(over)), info)
        return replace(weights, factors=learned.factors, outcomes=learned.outcomes), info


@dataclass(frozen=True, eq=False)
class Ties:
    """The components of the next state, and what each depends on, whatever interface nodes are."""

    contexts: Contexts  # that were seen
    names: list[tuple[str, ...]]  # the variables of each component
    tied: Tied


class Learned:
    """Factors, and the transitions that lead to a state as they see them."""

    def __init__(self, transitions: Transitions, goes_on: Bools) -> None:
        window = transitions.window[goes_on]
        self.transitions, states = transitions, transitions.states
        self.site, self.weights = transitions.site[goes_on], transitions.counts[goes_on]
        self.share = transitions.share[goes_on]
        self.after = states.of_successors[window]
        self.contexts, self.context = _contexts(transitions, window)
        ties = transitions.ties
        if ties is None or not self._fits(ties.contexts):
            ties = self._ties()
        self.ties, tied = ties, ties.tied
        components = [Component.of(transitions, names) for names in ties.names]
        arrivals = group_weights(self.after, self.weights, states.count)
        boxes = boxes_of(transitions, components, arrivals)
        self.factors = Factors.of(self.contexts, components, tied, boxes)
        self.outcomes = share_outcomes(transitions, self.factors)
        #: Of contexts that were seen, and of those that shared outcomes add.
        self.leaves = self.factors.leaves(self.contexts)  # [components, contexts and added]
        self.box = boxes.of_states[self.after]
        if self.outcomes is not None:
            self.leaves = np.hstack([self.leaves, self.outcomes.leaves])

    def _fits(self, contexts: Contexts) -> bool:
        """Return whether contexts have the same coding; some of them may be of steps left out."""
        same = self.contexts.names == contexts.names
        return same and np.array_equal(self.contexts.sizes, contexts.sizes)

    def _ties(self) -> "Ties":
        """Find the components, and a tree of contexts for each."""
        steps = self.contexts, self.context, self.after, self.weights
        return Ties(self.contexts, *find_components(self.transitions, *steps))

    def mean(self, shares: Array) -> float:
        """Return the mean of shares of contexts over all steps."""
        seen = group_weights(self.context, self.weights, len(self.contexts))
        return float(shares[: len(seen)] @ seen) / float(seen.sum())

    @property
    def mixtures(self) -> int:
        """The number of mixtures that `priors` returns."""
        return self.transitions.sites * (1 if self.outcomes is None else 2)

    def have_many_edges(self, products: FactorProducts) -> bool:
        """Return whether S_L have too many edges, about, if products are multiplied out."""
        use = self.site * len(products.rows) + products.of_contexts[self.context]
        return products.have_many_edges(len(np.unique(use)))

    def priors(self, products: FactorProducts) -> Priors:
        """Return π of each S_L: that of its contexts, weighed as they were seen.

        Below them are those of the contexts that shared outcomes add.
        """
        from scipy.sparse import csr_array

        site, share = self.site, self.weights
        context, sites = self.context, self.transitions.sites
        if self.outcomes is not None:
            site = np.concatenate([site, sites + self.outcomes.site])
            share = np.concatenate([share, self.outcomes.going])
            context = np.concatenate([context, np.arange(len(self.contexts), self.leaves.shape[1])])
        share = share / group_weights(site, share)[site]
        shape = self.mixtures, self.leaves.shape[1]
        mixtures = csr_array((share, (site, context)), shape=shape)
        mixtures.sum_duplicates()
        return products.priors(mixtures, lambda: self._where_steps_led(products))

    def _where_steps_led(self, products: FactorProducts) -> Sparse:  # [products, interfaces]
        """Return what products give the interface nodes that logged steps led to."""
        from scipy.sparse import csr_array

        transitions, boxes = self.transitions, self.factors.boxes
        to, size = transitions.to[~transitions.over], transitions.interfaces
        pair = products.of_contexts[self.context] * size + to
        pairs, first = np.unique(pair, return_index=True)
        leaves, box = self.leaves[:, self.context[first]], self.box[first]
        share = np.asarray(boxes.interfaces[box, to[first]]).ravel()
        mass = self.factors.mass_on(leaves, box) * share
        return csr_array((mass, np.divmod(pairs, size)), shape=(len(products.rows), size))

    def weighed(self, priors: Sparse, strength: float) -> tuple[Sparse, Array]:
        """Return π of each S_L with shared outcomes, and how many steps it is worth.

        `priors` are those of `priors`, `strength` is that of the factors.
        """
        from scipy.sparse import csr_array

        sites = self.transitions.sites
        if self.outcomes is None:
            return priors, np.full(sites, strength)
        seen, added = self._steps()
        known = np.maximum(seen + added, 1e-300)
        of_seen, of_added = strength * seen / known, strength * added / known + added
        total = np.maximum(of_seen + of_added, 1e-300)
        mixed = priors[:sites] * (of_seen / total)[:, None]
        return csr_array(mixed + priors[sites:] * (of_added / total)[:, None]), of_seen + of_added

    def uses(self, strength: float) -> tuple[Ints, Ints, Array]:
        """Return the contexts of each S_L, and how many steps each is worth: [uses] each."""
        seen, added = self._steps()
        known = np.maximum(seen + added, 1e-300)
        worth = strength * self.weights / known[self.site]
        if self.outcomes is None:
            return self.site, self.context, worth
        site, going = self.outcomes.site, self.outcomes.going
        context = np.arange(len(self.contexts), self.leaves.shape[1])
        return (
            np.concatenate([self.site, site]), np.concatenate([self.context, context]),
            np.concatenate([worth, strength * going / known[site] + going]),
        )  # fmt: skip

    def _steps(self) -> tuple[Array, Array]:
        """Return the steps of each S_L that go on: logged, and added by shared outcomes."""
        sites, outcomes = self.transitions.sites, self.outcomes
        added = np.zeros(sites) if outcomes is None else outcomes.steps - outcomes.ended
        return group_weights(self.site, self.weights, sites), added

    def strength(self, kept: Array) -> Strength:
        """Return how many steps the factors are worth.

        Each step is predicted by the other steps at its S_L and by the factors of its own context.
        `kept` is the factors' mass on states that are known and were not cut.
        """
        return best_strength(
            self.site, self.box, self.factors.boxes.count, self.weights, self.share,
            self._left_out(kept),
        )  # fmt: skip

    def _left_out(self, kept: Array) -> Array:  # [steps]
        """Return the factors' mass on where each step led, the step itself left out."""
        leaves = self.leaves[:, self.context]
        prior = self.factors.mass_on(leaves, self.box, without=self.share)
        return np.asarray(prior / np.where(kept > 0, kept, 1.0)[self.context])

    def with_sharing(
        self, weights: SuccessorWeights, kept: Array, pi: Array, info: FutureInfo
    ) -> SuccessorWeights:
        """Return weights with the factors behind them, and how each S_L uses these.

        Parameters
        ----------
        weights
            Of all S_L.
        kept
            The factors' mass on states that are known and were not cut. [contexts]
        pi
            What the factors say of each edge. [edges]
        info
            The strength of the factors.
        """
        transitions, size = self.transitions, self.transitions.interfaces
        edges = weights.site * size + weights.interfaces
        to = transitions.to[~transitions.over]
        edge = np.searchsorted(edges, self.site * size + to)
        steps = group_weights(edge, self.weights, len(edges))
        mass = group_weights(edge, self.weights * self._left_out(kept), len(edges))
        left_out = np.where(steps > 0, mass / np.maximum(steps, 1e-300), pi)
        rows, combination = distinct_rows(self.leaves.T)
        leaves = rows.T
        site, context, worth = self.uses(info.strength)
        use, total = distinct_weights(site * leaves.shape[1] + combination[context], worth)
        site = use // leaves.shape[1]
        share = total / group_weights(site, total)[site]
        shared = self.factors.shared(leaves, info.strength, info.least_strength)
        sharing = Sharing(shared, site, use % leaves.shape[1], share, edges, left_out)
        return replace(weights, sharing=sharing)


def _contexts(transitions: Transitions, window: Ints) -> tuple[Contexts, Ints]:
    """Return the contexts of some windows; with the utility, unless it is the same in each."""
    schema = transitions.schema
    names = [name for name in schema.variables if name != schema.utility]
    alone = contexts_of(transitions, names, window)
    both = contexts_of(transitions, [*names, schema.utility], window)
    return both if len(both[0]) > len(alone[0]) else alone


def _with_end(
    transitions: Transitions, by_counts: SuccessorWeights, outcomes: SharedOutcomes | None
) -> SuccessorWeights:
    """Return shares by counts in which END has that of shared outcomes, too."""
    if outcomes is None or transitions.end is None or not outcomes.ended.any():
        return by_counts
    sites, size, end = transitions.sites, transitions.interfaces, transitions.end
    key = by_counts.site * size + by_counts.interfaces
    ends = np.flatnonzero(outcomes.ended) * size + end
    keys = np.union1d(key, ends)
    counts = np.zeros(len(keys))
    counts[np.searchsorted(keys, key)] = by_counts.counts
    site, over = keys // size, keys % size == end
    visits = group_weights(site, counts, sites)
    ended = group_weights(site, counts * over, sites)
    share = (ended + outcomes.ended) / (visits + outcomes.steps)
    on = np.maximum(visits - ended, 1e-300)
    weights = np.where(over, share[site], (1 - share)[site] * counts / on[site])
    starts = np.searchsorted(site, np.arange(sites + 1))
    return replace(by_counts, starts=starts, interfaces=keys % size, weights=weights, counts=counts)


def _posterior(
    transitions: Transitions, by_counts: SuccessorWeights, priors: Sparse, strength: Array,
    outcomes: SharedOutcomes | None,
) -> SuccessorWeights:  # fmt: skip
    """Add the prior, worth κ steps, to the counts of every S_L; END keeps its share."""
    from scipy.sparse import csr_array

    by_counts = _with_end(transitions, by_counts, outcomes)
    sites, size, site = transitions.sites, transitions.interfaces, by_counts.site
    over = by_counts.interfaces == transitions.end
    ended = group_weights(site, by_counts.weights * over, sites)  # [sites], the share
    on = group_weights(site, by_counts.counts * ~over, sites)
    known = (on > 0) | ((strength > 0) & (outcomes is not None))
    scale = np.where(known, (1 - ended) / np.maximum(on + strength, 1e-300), 0.0)
    # END: its share; others: the rest · (count + κ · π) / (n + κ)
    logged = np.where(over, by_counts.weights, by_counts.counts * scale[site])
    counted = csr_array((logged, (site, by_counts.interfaces)), shape=(sites, size))
    weights = csr_array(counted + priors * (strength * scale)[:, None])
    weights.eliminate_zeros()
    weights.sort_indices()
    weights.data /= np.repeat(np.asarray(weights.sum(axis=1)), np.diff(weights.indptr))
    found = SuccessorWeights(
        weights.indptr.astype(np.int64), weights.indices.astype(np.int64), weights.data,
        np.zeros(len(weights.data)), np.where(known, strength, 0.0),
    )  # fmt: skip
    edge = found.site * size + found.interfaces
    kept = by_counts.counts > 0
    place = np.searchsorted(edge, (site * size + by_counts.interfaces)[kept])
    found.counts[place] = by_counts.counts[kept]
    return found
