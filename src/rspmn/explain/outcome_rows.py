"""One step of a template by outcome: what each branch may earn, and where that leads.

An outcome is a product of a utility and an S_L, or an S_L alone, or a part of it that earned the
same. `Bellman` has the mean of what branches earn; here the outcomes are kept apart, so that the
distribution of a step can be asked for, not only its mean.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rspmn.circuit import Network, Utility
from rspmn.circuit.node_arrays import KINDS, NodeArrays
from rspmn.data.keys import group_weights
from rspmn.errors import EvidenceError
from rspmn.infer.compiled.bellman import Choices
from rspmn.infer.compiled.offers import Offers
from rspmn.infer.compiled.outcomes import outcomes_of
from rspmn.infer.compiled.sites import Sites
from rspmn.model import RSPMN
from rspmn.successor_counts import SuccessorCounts
from rspmn.types import Array, Ints, significant

#: A deviation of less than this share of what is earned is rounding.
NO_DEVIATION = 1e-6


@dataclass(frozen=True, eq=False)
class Parts:
    """Parts of outcomes."""

    of: Any  # sparse [outcomes, parts], rows sum to 1
    earned: Array  # [parts]
    variance: Array  # [parts]
    leads: Any  # sparse [parts, interfaces], rows sum to 1


def parts_of_outcomes(model: RSPMN, earned: Array, variance: Array, leads: Any) -> Parts:
    """Return outcomes divided by what they earned; whole where nothing was counted.

    `model`: the model; its counts are of the first outcomes. `earned`, `variance`: the utility of
    each outcome [outcomes]. `leads`: where each leads. Sparse [outcomes, interfaces].
    """
    from scipy.sparse import csr_array

    variance = np.where(variance <= (NO_DEVIATION * earned) ** 2, 0.0, variance)
    edges = leads.tocoo()
    outcome, to = (axis.astype(np.int64) for axis in edges.coords)
    numbers = np.array([earned[outcome], variance[outcome]])  # [2, edges]
    varies = np.flatnonzero(variance[outcome] > 0)
    if model.counts is not None and len(varies):
        found = _counted(model.counts, outcome[varies], to[varies], model.num_interfaces)
        numbers[:, varies] = np.where(np.isnan(found), numbers[:, varies], found)
        numbers[1, numbers[1] <= (NO_DEVIATION * numbers[0]) ** 2] = 0.0
    keys = np.column_stack([outcome, *significant(numbers)])
    distinct, part = np.unique(keys, axis=0, return_inverse=True)
    part = part.reshape(-1)
    shape = len(distinct), leads.shape[1]
    by_part = csr_array((edges.data, (part, to)), shape=shape)
    total = np.asarray(by_part.sum(axis=1))
    by_part.data /= np.repeat(np.maximum(total, 1e-300), np.diff(by_part.indptr))
    of_part = distinct[:, 0].astype(np.int64)
    of = csr_array((total, (of_part, np.arange(len(distinct)))), shape=(len(earned), len(distinct)))
    return Parts(of, _of_mean(earned, of_part, total, distinct[:, 1]), distinct[:, 2], by_part)


def _of_mean(earned: Array, outcome: Ints, share: Array, parts: Array) -> Array:  # [parts]
    """Return what parts earn, so that their mean is what the outcome earns.

    It is not if an outcome leads elsewhere more often than was counted. Then what parts earn is
    changed in proportion to its size: a part that earns nothing still does. Where that would be
    more than its size, all parts are changed by as much.
    """
    mean, size = (group_weights(outcome, share * x, len(earned)) for x in (parts, np.abs(parts)))
    off = earned - mean
    each = (size > 0) & (np.abs(off) <= size)
    change = np.divide(off, size, out=off.copy(), where=each)
    return np.asarray(parts + change[outcome] * np.where(each[outcome], np.abs(parts), 1.0))


def _counted(counts: SuccessorCounts, outcome: Ints, to: Ints, interfaces: int) -> Array:
    """Return mean and variance of what outcomes earned when they led somewhere, [2, edges].

    Where that was never counted, it is what the outcome earned most often; NaN if it has no counts.
    """
    table = np.array([counts.mean, counts.variance]).reshape(2, -1)
    logged, steps = np.array(counts.outcome, np.int64), np.array(counts.steps)
    place = {
        key: k for k, key in enumerate((logged * interfaces + np.array(counts.to, int)).tolist())
    }
    order = np.argsort(steps, kind="stable")
    commonest = dict(zip(logged[order].tolist(), order.tolist(), strict=True))  # the last one stays
    asked = zip((outcome * interfaces + to).tolist(), outcome.tolist(), strict=True)
    found = np.array([place.get(key, commonest.get(o, -1)) for key, o in asked], dtype=np.int64)
    return np.where(found >= 0, table[:, np.maximum(found, 0)] if table.size else np.nan, np.nan)


@dataclass(frozen=True, eq=False)
class MixtureRows:
    """Mixtures of decisions that follow within the step, and of outcomes."""

    decisions: Any  # sparse [rows, max nodes], as `Offers` numbers them
    outcomes: Any  # sparse [rows, outcomes]

    def __getitem__(self, rows: Ints) -> "MixtureRows":
        return MixtureRows(self.decisions[rows], self.outcomes[rows])


class OutcomeRows:
    """The branches and interface nodes of a template as mixtures of outcomes.

    `offers`: numbers its max nodes and branches.
    """

    def __init__(self, model: RSPMN, offers: Offers) -> None:
        self.model, self.offers = model, offers
        template, arrays = model.template, model.template.arrays
        ends, site, utility, sites = _ends(template)
        elsewhere = _utility_elsewhere(arrays, utility, ends)
        if elsewhere is not None:
            raise EvidenceError(
                f"node {elsewhere} of the template has a utility that is not beside an S_L: this "
                "is not supported"
            )
        nodes = [template.nodes[k] if k >= 0 else None for k in utility.tolist()]
        moments = [(n.mean, n.variance) if isinstance(n, Utility) else (0.0, 0.0) for n in nodes]
        leads = _leads(sites, model.num_interfaces)[site]
        earned, variance = np.array(moments).reshape(-1, 2).T
        parts = parts_of_outcomes(model, earned, variance, leads)
        self.earned, self.variance = parts.earned, parts.variance  # [outcomes] each
        self.leads = parts.leads  # sparse [outcomes, interfaces]
        rows = _rows(arrays, offers.maxes, ends)
        rows = MixtureRows(rows.decisions, rows.outcomes @ parts.of)
        self.branches = rows[arrays.children[arrays.edges_of(offers.maxes)[0]]]
        self.roots = rows[np.array(template.roots)]

    @staticmethod
    def serves(template: Network) -> bool:
        """Tell whether a template earns utilities in outcomes only."""
        ends, _, utility, _ = _ends(template)
        return _utility_elsewhere(template.arrays, utility, ends) is None

    @cached_property
    def unknown(self) -> Array:  # [outcomes]
        """The probability that it is not known what follows."""
        if self.model.unknown is None:
            return np.zeros(len(self.earned))
        return np.asarray(self.leads[:, [self.model.unknown]].toarray().ravel())

    @cached_property
    def levels(self) -> list[Ints]:
        """The numbers of max nodes by level, innermost decisions first."""
        return [self.offers.number[level.nodes] for level in self.model.bellman.levels]

    def chosen(self, choices: Choices) -> Ints:  # [max nodes]
        """Return the branch that choices take at each max node, as `Offers` numbers them."""
        found = np.zeros(len(self.offers.maxes), dtype=np.int64)
        levels = zip(self.levels, self.model.bellman.levels, choices.chosen, strict=True)
        for numbers, level, chosen in levels:
            found[numbers] = self.offers.starts[numbers] + chosen - level.starts
        return found

    def shares(self, choices: Choices) -> Array:  # [max nodes]
        """Return how much is known of what choices lead to at each max node."""
        found = np.ones(len(self.offers.maxes))
        if choices.shares is not None:
            for numbers, level in zip(self.levels, self.model.bellman.levels, strict=True):
                found[numbers] = choices.shares[level.slots]
        return found

    def after_choices(self, choices: Choices) -> Any:  # sparse [branches, outcomes]
        """Return the outcomes of each branch, choices being made at the decisions below it."""
        from scipy.sparse import csr_array, diags_array

        if len(self.levels) == 1:
            return self.branches.outcomes
        chosen, size = self.chosen(choices), len(self.offers.maxes)
        shares = diags_array(self.shares(choices))
        below = csr_array((size, len(self.earned)))  # [max nodes, outcomes], those done so far
        for numbers in self.levels:
            rows = self.branches[chosen[numbers]]
            found = csr_array(_of_whole(rows.decisions @ shares, rows.outcomes) @ below)
            place = csr_array(
                (np.ones(len(numbers)), (numbers, np.arange(len(numbers)))),
                shape=(size, len(numbers)),
            )
            below = below + place @ (found + rows.outcomes)
        weighed = _of_whole(self.branches.decisions @ shares, self.branches.outcomes)
        return csr_array(weighed @ below + self.branches.outcomes)


def _of_whole(decisions: Any, outcomes: Any) -> Any:
    """Return shares of decisions so that, with outcomes, they are all of a row."""
    from scipy.sparse import csr_array, diags_array

    left = 1.0 - np.asarray(outcomes.sum(axis=1)).ravel()
    known = np.asarray(decisions.sum(axis=1)).ravel()
    scale = np.divide(left, known, out=np.zeros(len(known)), where=known > 0)
    return csr_array(diags_array(scale) @ decisions)


def _ends(template: Network) -> tuple[Ints, Ints, Ints, Sites]:
    """Return the outcomes of a template: their nodes, sites and utilities; and all sites.

    A site that is reached otherwise than in a product is an outcome of its own, without utility.
    """
    found, arrays = outcomes_of(template), template.arrays
    parent = arrays.parents
    alone = np.isin(arrays.children, found.sites.nodes) & ~np.isin(parent, found.nodes)
    more = np.unique(arrays.children[alone])
    return (
        np.concatenate([found.nodes, more]),
        np.concatenate([found.site, np.searchsorted(found.sites.nodes, more)]),
        np.concatenate([found.utility, np.full(len(more), -1)]),
        found.sites,
    )


def _utility_elsewhere(arrays: NodeArrays, utility: Ints, ends: Ints) -> int | None:
    """Return a node that has a utility and is no outcome; None if there is none."""
    parent = arrays.parents
    earns = arrays.kind[arrays.children] == KINDS[Utility]
    known = set(zip(ends.tolist(), utility.tolist(), strict=True))
    pairs = zip(parent[earns].tolist(), arrays.children[earns].tolist(), strict=True)
    return next((pair[0] for pair in pairs if pair not in known), None)


def _leads(sites: Sites, interfaces: int) -> Any:  # sparse [sites, interfaces]
    from scipy.sparse import csr_array

    shape = len(sites.nodes), interfaces
    return csr_array((sites.weights, sites.interfaces, sites.starts), shape=shape)


def _rows(arrays: NodeArrays, maxes: Ints, ends: Ints) -> MixtureRows:
    """Return every node of a template as a mixture of max nodes and outcomes."""
    from scipy.sparse import csr_array, diags_array

    places = np.concatenate([maxes, ends])
    shape = len(arrays.kind), len(places)
    own = csr_array((np.ones(len(places)), (places, np.arange(len(places)))), shape=shape)
    inner = np.ones(len(arrays.kind))
    inner[ends] = 0.0
    linear = csr_array(diags_array(inner) @ arrays.linear())
    found = passed = own
    while passed.nnz:  # once for each layer of sums and products between two max nodes
        passed = csr_array(linear @ passed)
        passed.eliminate_zeros()
        found = csr_array(found + passed)
    return MixtureRows(csr_array(found[:, : len(maxes)]), csr_array(found[:, len(maxes) :]))
