"""Products of factors as they are: S_L that are never multiplied out.

Contexts that are in the same leaf of every tree have the same product. Where multiplying out would
take too many edges, an S_L is a sum of the successors that were counted and of products, each a
`FactoredLatents` of the circuit; see `rspmn.infer.compiled.expectation` for what it takes then.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np

from rspmn.data.distinct import distinct_rows
from rspmn.data.keys import group_weights
from rspmn.infer.compiled.expectation import Expectation, expectation
from rspmn.infer.compiled.joined import Joined, mean_edges
from rspmn.learn.structure.contingency import distinct_weights
from rspmn.learn.successors.priors import Factors, Priors
from rspmn.learn.successors.transitions import Spread, SuccessorWeights
from rspmn.learn.successors.trees import Sparse
from rspmn.types import Array, Bools, Ints

#: With fewer products of factors than this, (contexts × boxes), each is simply computed.
FEW_PRODUCTS = 2_000_000
#: Tables of more numbers than this are not made.
MOST_NUMBERS = 20_000_000


def products_of(factors: Factors, leaves: Ints) -> "FactorProducts | None":
    """Return the products of factors; None if they are few, or their tables too large."""
    if leaves.shape[1] * factors.boxes.count <= FEW_PRODUCTS:
        return None
    found = FactorProducts(factors, leaves)
    return found if found.fit_in_tables else None


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

    @property
    def fit_in_tables(self) -> bool:
        """Whether the tables are not too large, and there is more than one."""
        pairs = zip(self.factors.rows, self.factors.counts, strict=True)
        sizes = [len(nodes) * counts.shape[1] for nodes, counts in pairs]
        return len(sizes) > 1 and sum(sizes) <= MOST_NUMBERS

    @cached_property
    def expect(self) -> Expectation:
        """Expectations under all products."""
        return expectation(self.factors.latents, self.rows)

    @cached_property
    def kept(self) -> Array:  # [products]
        """The mass of each product on states of interface nodes."""
        return self.expect.kept[self.expect.of_rows]

    def have_more_edges(self, most: float) -> bool:
        """Return whether products would have more edges than `most` on average, multiplied out."""
        return mean_edges(self.factors.latents, self.rows, most) > most

    def priors(self, mixtures: Sparse) -> Priors:
        """Return the masses of mixtures of contexts, [mixtures, contexts], multiplied out."""
        from scipy.sparse import csr_array

        joined = Joined(self.factors.latents, self.rows)
        kept = joined.kept[joined.of_rows]
        shape = len(self.of_contexts), len(self.rows)
        place = np.arange(shape[0]), self.of_contexts
        products = csr_array((np.ones(shape[0]), place), shape=shape)
        weights = csr_array(mixtures @ products) @ joined.matrix(kept > 0)
        total = np.asarray(weights.sum(axis=1)).ravel()
        weights.data /= np.repeat(np.where(total > 0, total, 1.0), np.diff(weights.indptr))
        return Priors(weights, kept[self.of_contexts], 0.0)

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
