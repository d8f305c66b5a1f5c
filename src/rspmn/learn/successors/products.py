"""Products of factors, as they are or multiplied out to a given mass.

Contexts that are in the same leaf of every tree have the same product. Where multiplying out would
take too many edges, an S_L is a sum of the successors that were counted and of products, each a
`FactoredLatents` of the circuit; see `rspmn.infer.compiled.expectation` for what it takes then.
Where that would take too much as well, products are multiplied out to fewer edges, the heaviest
first, and what was cut is known.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rspmn.context_trees import Sparse
from rspmn.data.distinct import distinct_rows
from rspmn.data.keys import group_weights
from rspmn.infer.compiled.cell_tree import CellTree, Limit
from rspmn.infer.compiled.expectation import Expectation, expectation_within
from rspmn.learn.structure.contingency import distinct_weights
from rspmn.learn.successors.priors import Factors
from rspmn.learn.successors.transitions import Spread, SuccessorWeights
from rspmn.types import Array, Bools, Ints

#: With fewer products of factors than this, (contexts × boxes), each is simply computed.
FEW_PRODUCTS = 2_000_000
#: With fewer edges than this, products of factors are multiplied out.
MOST_MULTIPLIED = 500_000
#: Products are not multiplied out if a Bellman update takes no more multiplications than this.
MOST_WORK = 1_000_000_000
#: Of products that are multiplied out nothing that matters is cut, if they have no more edges than
#: this in all.
NOTHING, MOST_EDGES = 1e-12, 4_000_000
#: Else this much of each, or more of those that would have more than their part of so many edges;
#: but each has so many.
CUT, FEWER_EDGES, LEAST_EDGES = 1e-6, 1_000_000, 16


@dataclass(frozen=True, eq=False)
class Priors:
    """The distribution of the next interface node in each mixture."""

    weights: Sparse  # [mixtures, interfaces]; rows sum to 1, or to 0 if nothing known follows
    kept: Array  # [contexts], mass of the factors' product on states that have an edge
    cut: Array  # [contexts], mass that was cut, of states of interface nodes or of none


class FactorProducts:
    """The distinct products of factors in some contexts.

    Parameters
    ----------
    factors
        Of the next state.
    leaves
        Of each context, the leaf of each component. [components, contexts]
    """

    def __init__(self, factors: Factors, leaves: Ints) -> None:
        self.factors = factors
        distinct, self.of_contexts = distinct_rows(leaves.T)  # [contexts]
        self.rows = factors.rows_of(distinct.T)  # [products, components]

    @cached_property
    def _tree(self) -> CellTree:
        factors = self.factors
        return CellTree(factors.latents if factors.fit_in_tables else factors.sparse)

    @cached_property
    def exact(self) -> Expectation | None:
        """Expectations under all products; None if they would take too much."""
        if not self.factors.fit_in_tables:
            return None
        return expectation_within(self.factors.latents, self.rows, MOST_WORK)

    @cached_property
    def kept(self) -> Array:  # [products]
        """The mass of each product on states of interface nodes, if that is `exact`."""
        assert self.exact is not None, "without it, nothing but `priors` is affordable"
        return self.exact.kept[self.exact.of_rows]

    def have_many_edges(self, uses: int) -> bool:
        """Return whether so many uses of products would have too many edges, multiplied out."""
        if len(self.of_contexts) * self.factors.boxes.count <= FEW_PRODUCTS:
            return False
        most = MOST_MULTIPLIED / max(1, uses)
        return self._tree.mean_edges(self.rows, most) > most

    def edges(self, mixtures: int) -> float:
        """Return about how many edges so many mixtures have, multiplied out."""
        return self._tree.mean_edges(self.rows, limit=self._limit(mixtures)) * mixtures

    def priors(self, mixtures: Sparse, logged: Callable[[], Sparse] | None = None) -> Priors:
        """Return the masses of mixtures of contexts, multiplied out.

        Parameters
        ----------
        mixtures
            The share of each context in each mixture; rows sum to 1. [mixtures, contexts]
        logged
            Returns what products give interface nodes that logged steps led to, which are not cut.
            [products, interfaces]
        """
        from scipy.sparse import csr_array, diags_array

        limit = self._limit(mixtures.shape[0])
        found = self._tree.masses(self.rows, limit)
        if logged is not None and limit.cut > NOTHING:
            found = found.with_more(logged())
        listed = np.asarray(found.on.sum(axis=1)).ravel()
        scale = np.divide(1.0, listed, out=np.zeros(len(listed)), where=listed > 0)
        place = np.arange(len(self.of_contexts)), self.of_contexts
        products = csr_array((scale[place[1]], place), shape=(len(place[0]), len(self.rows)))
        weights = csr_array(csr_array(mixtures @ products) @ found.on)
        total = np.asarray(weights.sum(axis=1)).ravel()
        weights = csr_array(diags_array(1 / np.where(total > 0, total, 1.0)) @ weights)
        of = self.of_contexts
        return Priors(weights, listed[of], found.cut[of])

    def _limit(self, mixtures: int) -> Limit:
        """Return what is cut of products, if so many mixtures of them are multiplied out."""
        if len(self.of_contexts) * self.factors.boxes.count <= MOST_EDGES:
            return Limit(NOTHING)
        count = max(1, mixtures, len(self.rows))
        most = MOST_EDGES / count
        if self._tree.mean_edges(self.rows, most, Limit(NOTHING)) <= most:
            return Limit(NOTHING)
        return Limit(CUT, max(LEAST_EDGES, FEWER_EDGES // count))

    def spread(
        self, by_counts: SuccessorWeights, over: Bools, site: Ints, context: Ints, worth: Array
    ) -> SuccessorWeights:
        """Return the weights of S_L: counts, and products worth some steps.

        Parameters
        ----------
        by_counts
            The shares of successors by counts.
        over
            Which of its edges lead to END; they keep their share.
        site, context, worth
            The contexts of each S_L, and how many steps each is worth. An S_L with n steps is
            n / (n + κ) counts and κ / (n + κ) products, where κ is the sum over its contexts.
        """
        sites = len(by_counts.starts) - 1
        ended = group_weights(by_counts.site, by_counts.weights * over, sites)
        on = group_weights(by_counts.site, by_counts.counts * ~over, sites)
        total = group_weights(site, worth, sites)
        use, steps = distinct_weights(site * len(self.rows) + self.of_contexts[context], worth)
        of_use, product = np.divmod(use, len(self.rows))
        known = (self.kept[product] > 0) & (steps > 0)
        of_use, product, steps = of_use[known], product[known], steps[known]
        share = steps / group_weights(of_use, steps, sites)[of_use]
        worth = np.zeros(sites)  # of all products of a site, in steps
        worth[of_use] = total[of_use]
        scale = (1 - ended) / np.maximum(on + worth, 1e-300)
        counted = np.where(over, by_counts.weights, (by_counts.counts * scale[by_counts.site]))
        spread = Spread(
            self.factors.latents, self.rows, of_use, product, share * (worth * scale)[of_use]
        )
        return replace(by_counts, weights=counted, strength=worth, spread=spread)
