"""Draws of factors whose products are not multiplied out.

Each leaf is a Dirichlet draw by its counts, as in `rspmn.trust.factors`. What a product of leaves
leads to is worth, on average, what a contraction of the drawn tables says. An outcome that uses the
factors has an edge to its products: what these are worth is one more number beside those of the
interface nodes.
"""

from copy import copy

import numpy as np

from rspmn.circuit import LatentFactors, Network
from rspmn.data.distinct import find_sorted
from rspmn.infer.compiled.expectation import expectation, expectation_of_nodes
from rspmn.infer.compiled.factor_rows import rows_by_factors
from rspmn.successor_counts import SharedFactors
from rspmn.trust.factors import DrawnFactors, LeafCounts
from rspmn.types import Array, Ints


class ProductDraws:
    """Draws what products of factors lead to.

    Parameters
    ----------
    factors
        The factors, as the model keeps them.
    edges
        0, then for each outcome with an edge to its products 1 + outcome; sorted.
    interfaces
        The number of interface nodes.
    outcomes
        The number of outcomes.
    worth
        The steps that the products of an outcome are worth: single successors are drawn from a
        Dirichlet distribution about the products with this strength. [outcomes]
    extrapolated
        The products of outcomes of which no step was logged, as the template has them. They are
        the same in all draws: no counts say how sure they are.
    """

    def __init__(
        self, factors: SharedFactors, edges: Ints, interfaces: int, outcomes: int, worth: Array,
        extrapolated: "TemplateProducts | None" = None,
    ) -> None:  # fmt: skip
        self.counts, self.edges, self.worth = LeafCounts(factors, outcomes), edges, worth
        self.extrapolated = extrapolated
        self._tables = _Tables(self.counts)
        self.expect = expectation(
            self._tables.latents(interfaces), self._tables.rows(self.counts.leaves)
        )
        self.combinations = np.arange(len(self.counts.leaves))  # that are computed
        self._weigh()

    @property
    def floats(self) -> int:
        """About how many floats a draw takes."""
        return self.expect.work

    def only(self, edges: Ints) -> "ProductDraws":
        """Return the draws of some of the edges, given by their places."""
        found = copy(self)
        found.edges = self.edges[edges]
        outcomes = found.edges[found.edges > 0] - 1
        found.combinations = np.unique(self.counts.mixture[outcomes].indices)
        rows = self._tables.rows(self.counts.leaves[found.combinations])
        found.expect = expectation(self.expect.factors, rows)
        found._weigh()
        return found

    def _weigh(self) -> None:
        """Find the shares of products in outcomes: of those that lead to interface nodes."""
        from scipy.sparse import csr_array, diags_array

        known = self.expect.kept[self.expect.of_rows] > 0
        shares = csr_array(self.counts.mixture[:, self.combinations] @ diags_array(known * 1.0))
        total = np.asarray(shares.sum(axis=1)).ravel()
        self.shares = csr_array(diags_array(1 / np.where(total > 0, total, 1.0)) @ shares)

    def draw(self, draws: int, rng: np.random.Generator) -> DrawnFactors:
        """Return the share of all products in each edge, the mass on no box, and expectations."""
        drawn = self._tables.drawn(self.counts.draw(draws, rng))
        worlds = self.expect.with_tables(drawn)
        kept = np.zeros((len(self.counts.leaves), draws))
        kept[self.combinations] = np.minimum(worlds.kept, 1.0)[:, worlds.of_rows].T
        errors = rng.standard_normal((draws, self.counts.outcomes))

        def products(after: Array) -> Array:
            error = errors * self._deviations(after.mean(axis=0))
            found = np.asarray((self.shares @ worlds(after).T).T + error)
            return found if self.extrapolated is None else found + self.extrapolated(after)

        used = (self.edges > 0).astype(np.float64)[None, :]
        return DrawnFactors(used, self.counts.outside(kept), products)

    def means(self, after: Array) -> Array:  # [draws, outcomes]
        """Return what products are worth if leaves are as counted."""
        found = self._of_logged(after)
        return found if self.extrapolated is None else found + self.extrapolated(after)

    def _of_logged(self, after: Array) -> Array:  # [draws, outcomes]
        return np.asarray((self.shares @ self.expect(after).T).T)

    def _deviations(self, after: Array) -> Array:  # [outcomes]
        """Return the standard errors of products of a certain strength, given their leaves."""
        mean, square = self._of_logged(np.stack([after, after**2]))
        return np.asarray(np.sqrt(np.maximum(square - mean**2, 0.0) / (self.worth + 1)))


class TemplateProducts:
    """What products of factors are worth in a template, by outcome; 0 for outcomes without any.

    Parameters
    ----------
    template
        The template.
    outcome, node, weight
        Of some outcomes, the nodes that are products of factors, and the weight of each.
    outcomes
        The number of outcomes.
    """

    def __init__(
        self, template: Network, outcome: Ints, node: Ints, weight: Array, outcomes: int
    ) -> None:
        from scipy.sparse import csr_array

        total = np.bincount(outcome, weight, outcomes)
        self._parts = []
        for factors, nodes, rows in rows_by_factors(template, node):
            place = find_sorted(nodes, node)
            own = place >= 0
            at = outcome[own], place[own]
            share = csr_array((weight[own] / total[outcome[own]], at), shape=(outcomes, len(nodes)))
            self._parts.append((share, expectation_of_nodes(factors, rows)))

    def __call__(self, after: Array) -> Array:  # [draws, interfaces] to [draws, outcomes]
        """Return what products are worth on average, given what interface nodes are worth."""
        parts = [(share @ expect(after).T).T for share, expect in self._parts]
        return np.asarray(np.sum(parts, axis=0))


class _Tables:
    """The leaves of each component as a table: a row for each, a column for each class of boxes."""

    def __init__(self, counts: LeafCounts) -> None:
        from scipy.sparse import csr_array

        self.counts, factors = counts, counts.factors
        self.leaves = [np.unique(column) for column in counts.leaves.T]  # of each component
        boxes, values = max(factors.member_of) + 1, max(*factors.member, *factors.value) + 1
        ones = np.ones(len(factors.member))
        members = csr_array((ones, (factors.member_of, factors.member)), shape=(boxes, values))
        self.of_boxes, self.sums = [], []
        for leaves in self.leaves:
            cells = np.flatnonzero(np.isin(counts.leaf, leaves))
            value, place = np.unique(counts.value[cells], return_inverse=True)
            classes, of_boxes = np.unique(
                members[:, value].toarray() > 0, axis=0, return_inverse=True
            )
            cell, column = np.nonzero(classes.T[place])
            row = np.searchsorted(leaves, counts.leaf[cells[cell]])
            shape = len(leaves) * len(classes), len(counts.leaf)
            at = row * len(classes) + column
            self.sums.append(csr_array((np.ones(len(cell)), (at, cells[cell])), shape=shape))
            self.of_boxes.append(of_boxes.ravel())

    def rows(self, leaves: Ints) -> Ints:  # [combinations, components]
        """Return the rows of combinations of leaves."""
        pairs = zip(self.leaves, leaves.T, strict=True)
        return np.stack([np.searchsorted(own, column) for own, column in pairs], axis=1)

    def drawn(self, probabilities: Array) -> list[Array]:  # of each component, [draws, rows, …]
        """Return the tables of several draws, given probabilities of cells, [draws, cells]."""
        found = []
        for own, sums in zip(self.leaves, self.sums, strict=True):
            table = np.minimum(np.asarray(sums @ probabilities.T).T, 1.0)
            found.append(table.reshape(len(probabilities), len(own), -1))
        return found

    def latents(self, interfaces: int) -> LatentFactors:
        """Return the factors of interface nodes with all leaves as they were counted."""
        factors, box = self.counts.factors, np.array(self.counts.factors.box)
        classes = np.stack([of_boxes[box] for of_boxes in self.of_boxes], axis=1)
        tables = [table[0] for table in self.drawn(self.counts.mean[None, :])]
        return LatentFactors(
            interfaces, classes, np.array(factors.interface), np.array(factors.box_share),
            tuple(tables),
        )  # fmt: skip
