"""The evidence of a model by branch: what was logged below each value of the last decision.

A branch leads to outcomes, each a utility and an S_L. Of each outcome the model keeps how often it
led to each interface node.
"""

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from rspmn.circuit import FactoredLatents, Utility
from rspmn.data.distinct import find_sorted
from rspmn.data.keys import group_weights
from rspmn.errors import EvidenceError
from rspmn.infer.compiled.bellman import Bellman
from rspmn.infer.compiled.layers import ranges
from rspmn.infer.compiled.outcomes import Outcomes, outcomes_of, refuse_outcomes
from rspmn.model import RSPMN
from rspmn.successor_counts import SharedFactors, SuccessorCounts
from rspmn.trust.factors import FactorDraws
from rspmn.trust.product_draws import ProductDraws, TemplateProducts
from rspmn.trust.utilities import Added, Utilities
from rspmn.types import Array, Bools, Ints


@dataclass(frozen=True, eq=False)
class BranchParts:
    """What is drawn: parts of a branch, each an outcome that goes on or ends, and their edges."""

    branch: Ints  # [cells], sorted
    outcome: Ints  # [cells]
    over: Bools  # [cells], whether it is the part that ends
    steps: Array  # [cells], of the branch and outcome
    share: Array  # [cells], the mean; sums to 1 for each branch
    starts: Ints  # [cells + 1], the first edge of each
    #: [edges], an interface node; interface nodes + outcome: products of factors of the outcome.
    to: Ints
    logged: Array  # [edges], steps
    mean: Array  # [edges], sums to 1 for each cell

    @property
    def of_edges(self) -> Ints:  # [edges]
        """The cell of each edge."""
        return np.repeat(np.arange(len(self.branch)), np.diff(self.starts))

    @property
    def ends(self) -> Ints:  # [edges]
        """The kind of each edge: 1 where the episode is over, else 0."""
        return self.over[self.of_edges].astype(np.int64)

    def only(self, kept: Bools) -> "BranchParts":
        """Return some of the cells."""
        edges = kept[self.of_edges]
        starts = np.concatenate([[0], np.cumsum(np.diff(self.starts)[kept])])
        return BranchParts(
            self.branch[kept], self.outcome[kept], self.over[kept], self.steps[kept],
            self.share[kept], starts, self.to[edges], self.logged[edges], self.mean[edges],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Counted:
    """Logged steps by branch and interface node, sorted."""

    branch: Ints  # [pairs]
    to: Ints  # [pairs]
    steps: Array  # [pairs]
    of_edges: Any  # sparse [pairs, logged edges], the share of each edge in the steps
    utility: Array  # [pairs], the mean
    #: [pairs], the probability that shared factors give each; of an end, its share of the steps.
    prior: Array


class BranchEvidence:
    """All that is known about the branches of a model."""

    def __init__(self, model: RSPMN) -> None:
        counts = model.counts
        if counts is None:
            raise EvidenceError(
                "the model has no counts: learn it again with this version of rspmn"
            )
        self.model, self.counts, self.bellman = model, counts, model.bellman
        found = outcomes_of(model.template)
        refuse_outcomes(found, counts.outcomes)
        self.size = len(self.bellman.levels[0].untried)
        self.node = _interfaces_of_branches(self.bellman)  # [branches]
        shares = _shares(model, found)
        self.cells = _cells(model, counts, found, shares)
        self.steps = group_weights(self.cells.branch, self.cells.steps, self.size)  # [branches]
        unknown = -1 if model.unknown is None else model.unknown
        leads = self.cells.branch[self.cells.of_edges][self.cells.to == unknown]
        #: Which branches lead to nothing known: they count in the last step only. [branches]
        self.closed = self.bellman.levels[0].untried.copy()
        self.closed[leads[self.steps[leads] == 0]] = True
        self._find_utilities(counts, found)
        #: How many steps shared outcomes are worth to each branch. [branches]
        self.added = np.asarray((shares > 0) @ self.utilities.shared.steps)
        self._find_factors(counts, found)
        self.counted = self._counted(counts, shares)
        #: Which branches were never tried, and are extrapolated. [branches]
        self.extrapolated = self._extrapolated_branches()
        #: The steps behind each branch, with those that factors are worth. [branches]
        self.known = self._by_branch(shares, self.strength) + self.steps
        if counts.factors is not None:
            self.known[self.extrapolated] = counts.factors.strength
        # If all episodes begin with a step that was left out, the model's start is all there is.
        self.starts = np.array(counts.starts if any(counts.starts) else model.starts)

    @property
    def columns(self) -> int:
        """The number of interface nodes and, if they have products of factors, of outcomes."""
        of_products = self.utilities.size if self.bellman.factored else 0
        return self.bellman.interfaces + of_products

    @property
    def mean_edges(self) -> Array:  # [edges]
        """The mean share of each edge of the cells in its branch, by what was seen."""
        cells = self.cells
        total = self.steps[cells.branch]
        counted = (total > 0) & (self.added[cells.branch] == 0)
        share = np.where(counted, cells.steps / np.maximum(total, 1), cells.share)
        return np.asarray(share[cells.of_edges] * cells.mean)

    def only(self, branches: Ints) -> "BranchEvidence":
        """Return the same without the cells of other branches: these are not drawn."""
        found, cells = copy(self), self.cells
        kept = np.isin(cells.branch, branches)
        edges = kept[cells.of_edges]
        found.cells, found.logged_edge = cells.only(kept), self.logged_edge[edges]
        if self.factors is not None:
            used, found.factor_edge = np.unique(self.factor_edge[edges], return_inverse=True)
            found.factors = self.factors.only(used)
        return found

    def _extrapolated_branches(self) -> Bools:  # [branches]
        marks = [node for node in (self.model.end, self.model.unknown) if node is not None]
        led = np.bincount(self.cells.branch, minlength=self.size) > 0
        return np.asarray(led & (self.steps == 0) & ~self.closed & ~np.isin(self.node, marks))

    def _find_utilities(self, counts: SuccessorCounts, found: Outcomes) -> None:
        nodes = [self.model.template.nodes[k] if k >= 0 else None for k in found.utility.tolist()]
        means = [node.mean if isinstance(node, Utility) else 0.0 for node in nodes]
        self.utilities = Utilities(
            np.array(counts.outcome, np.int64), np.array(counts.steps), np.array(counts.mean),
            np.array(counts.variance), (np.array(counts.to) == self.model.end).astype(np.int64),
            _ranges(counts), np.array(means), Added.of(counts.utilities, len(means)),
        )  # fmt: skip
        cells = self.cells
        #: The logged edge of each edge of the cells, -1 if it was not logged.
        self.logged_edge = _logged_edges(
            counts, cells.outcome[cells.of_edges], cells.to, self.model.num_interfaces
        )

    def _find_factors(self, counts: SuccessorCounts, found: Outcomes) -> None:
        outcomes = len(found.nodes)
        self.factors: FactorDraws | ProductDraws | None = None
        self.strength = np.zeros(outcomes)  # [outcomes]
        factors, cells, interfaces = counts.factors, self.cells, self.model.num_interfaces
        if factors is None:
            return
        outcome = cells.outcome[cells.of_edges]
        steps = group_weights(self.utilities.outcome, self.utilities.steps, outcomes)
        if self.bellman.factored:
            key = np.where(cells.to >= interfaces, 1 + outcome, 0)
            keys, self.factor_edge = np.unique(key, return_inverse=True)  # [edges]
            strength, least = self.shared_strength(np.arange(outcomes))
            worth = (steps + least) * strength / np.maximum(steps + strength, 1e-300)
            self.factors = ProductDraws(
                factors,
                keys,
                interfaces,
                outcomes,
                worth,
                _extrapolated(self.model, factors, found),
            )
        else:
            keys, self.factor_edge = np.unique(outcome * interfaces + cells.to, return_inverse=True)
            self.factors = FactorDraws(factors, keys, interfaces, outcomes)
        # Factors are worth no more steps than were logged in their contexts.
        most = np.maximum(0.0, self.factors.counts.pooled() - steps)
        self.strength = np.minimum(self.shared_strength(np.arange(outcomes))[0], most)

    def shared_strength(self, outcome: Ints) -> tuple[Array, Array]:
        """Return how many steps factors are worth to outcomes, and how many at least."""
        factors, added = self.counts.factors, self.utilities.shared
        assert factors is not None, "without factors nothing is shared"
        return (
            factors.strength + added.steps[outcome],
            factors.least_strength + added.least * added.steps[outcome],
        )

    def _by_branch(self, shares: Any, numbers: Array) -> Array:  # [branches]
        """Return numbers of outcomes averaged by branch; 0 where nothing was logged."""
        return np.where(self.steps > 0, np.asarray(shares @ numbers), 0.0)

    def _counted(self, counts: SuccessorCounts, shares: Any) -> Counted:
        from scipy.sparse import csr_array

        interfaces, own = self.bellman.interfaces, self.utilities
        prior = np.zeros(len(counts.to))
        if counts.factors is not None:
            prior = np.array(counts.factors.left_out)
        edges = np.arange(len(counts.to))
        table = np.array([own.outcome, counts.to, counts.steps, prior, edges])
        order = np.argsort(table[0], kind="stable")
        table = table[:, order]
        first = np.searchsorted(table[0], np.arange(shares.shape[1] + 1))
        edge, per = ranges(first[shares.indices], first[shares.indices + 1])
        branch = np.repeat(_rows(shares), np.diff(per))
        _, to, steps, prior, logged = table[:, edge]
        keys, which = np.unique(branch * interfaces + to.astype(np.int64), return_inverse=True)
        total = group_weights(which, steps)
        place, shape = (which, logged.astype(np.int64)), (len(keys), len(edges))
        of_edges = csr_array((steps / total[which], place), shape=shape)
        utility = of_edges @ own.of_edges(own.expected, edges, own.outcome, own.ends)
        prior = group_weights(which, steps * prior) / total
        branch, to = keys // interfaces, keys % interfaces
        over = to == self.model.end
        ended = group_weights(branch, total * over, self.size)
        ended = (ended / np.maximum(self.steps, 1e-300))[branch]
        return Counted(
            branch, to, total, of_edges, utility, np.where(over, ended, (1 - ended) * prior)
        )


def _ranges(counts: SuccessorCounts) -> Array:  # [2, 2]
    """Return the least and the most that steps earned which went on, and which ended.

    Models that do not have them: n numbers are within √(n - 1) standard deviations of their mean.
    """
    if not (counts.going or counts.ending):
        mean, around = np.array(counts.mean), np.sqrt(np.array(counts.steps) * counts.variance)
        least, most = (mean - around).min(initial=0.0), (mean + around).max(initial=0.0)
        return np.array([[least, most], [least, most]])
    return np.array([counts.going or (np.nan, np.nan), counts.ending or (np.nan, np.nan)])


def _extrapolated(model: RSPMN, factors: SharedFactors, found: Outcomes) -> TemplateProducts | None:
    """Return the products of outcomes of which no step was logged; None if there are none."""
    site, node, weight = found.sites.latents(FactoredLatents)
    order = np.argsort(site, kind="stable")
    first = np.searchsorted(site[order], np.arange(len(found.sites.nodes) + 1))
    unused = np.setdiff1d(np.arange(len(found.nodes)), factors.outcome)
    at, starts = ranges(first[found.site[unused]], first[found.site[unused] + 1])
    outcome, use = np.repeat(unused, np.diff(starts)), order[at]
    if not len(use):
        return None
    return TemplateProducts(model.template, outcome, node[use], weight[use], len(found.nodes))


def _interfaces_of_branches(bellman: Bellman) -> Ints:  # [branches]
    """Return an interface node that has each branch of the last decision."""
    from scipy.sparse import csr_array

    owner = np.full(bellman.size, -1)
    above, rows = csr_array(bellman.roots.matrix), np.arange(bellman.interfaces)
    for level in reversed(bellman.levels):
        owner[above.indices[::-1]] = rows[_rows(above)][::-1]
        counts = np.diff(np.append(level.starts, len(level.untried)))
        rows = np.repeat(owner[level.slots], counts)
        above = csr_array(level.forms.matrix)
    return rows


def _rows(matrix: Any) -> Ints:
    """Return the row of each entry of a sparse matrix."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _shares(model: RSPMN, found: Outcomes) -> Any:  # sparse [branches, outcomes]
    """Return the probability of each outcome in each branch of the last decision."""
    from scipy.sparse import csr_array

    arrays, level = model.template.arrays, model.bellman.levels[0]
    edges, _ = arrays.edges_of(level.nodes)
    at = arrays.children[edges]
    shape = len(at), len(model.template)
    passed = csr_array((np.ones(len(at)), (np.arange(len(at)), at)), shape=shape)
    outcome = np.zeros(len(model.template), dtype=bool)
    outcome[found.nodes] = True
    linear, total = arrays.linear(), csr_array(shape)
    while passed.nnz:  # once for each layer of sums between the decision and its outcomes
        total = total + passed
        passed = csr_array((passed * ~outcome[None, :]) @ linear)
        passed.eliminate_zeros()
    shares = csr_array(total[:, found.nodes])
    shares.sort_indices()
    return shares


def _cells(model: RSPMN, counts: SuccessorCounts, found: Outcomes, shares: Any) -> BranchParts:
    """Return the cells of all branches."""
    sites = found.sites
    end = -1 if model.end is None else model.end
    pair_branch, pair_outcome = _rows(shares), shares.indices
    site = found.site[pair_outcome]
    starts, interfaces, weights = sites.edges(multiplied_out=not model.bellman.factored)
    edge, first = ranges(starts[site], starts[site + 1])
    pair = np.repeat(np.arange(len(site)), np.diff(first))
    to, weight = interfaces[edge], weights[edge]
    # The products of factors of an outcome are one successor, numbered after the interface nodes.
    to = np.where(to < model.num_interfaces, to, to + pair_outcome[pair])
    at = _logged_edges(counts, pair_outcome[pair], to, model.num_interfaces)
    logged = np.where(at >= 0, np.append(counts.steps, 0.0)[at], 0.0)
    cell_key, cell = np.unique(pair * 2 + (to == end), return_inverse=True)
    order = np.argsort(cell, kind="stable")
    cell, to, weight, logged = cell[order], to[order], weight[order], logged[order]
    size = len(cell_key)
    steps, mass = group_weights(cell, logged, size), group_weights(cell, weight, size)
    outcome, branch = pair_outcome[cell_key // 2], pair_branch[cell_key // 2]
    # Where nothing is shared, or nothing was counted, the other is all there is.
    by_counts = (steps > 0) & (counts.factors is None)
    mean = np.where(by_counts[cell], logged / np.maximum(steps, 1e-300)[cell], weight / mass[cell])
    starts = np.searchsorted(cell, np.arange(size + 1))
    return BranchParts(
        branch, outcome, cell_key % 2 == 1, steps, shares.data[cell_key // 2] * mass, starts, to,
        logged, mean,
    )  # fmt: skip


def _logged_edges(counts: SuccessorCounts, outcome: Ints, to: Ints, interfaces: int) -> Ints:
    """Return which edge of the counts is asked for, -1 if none."""
    key = np.array(counts.outcome, np.int64) * interfaces + np.array(counts.to, np.int64)
    order = np.argsort(key)
    place = find_sorted(key[order], outcome * interfaces + to)
    return np.where(to < interfaces, np.append(order, -1)[place], -1)
