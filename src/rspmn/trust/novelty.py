"""What was never seen: how often a branch leads where it never led before.

A branch with n steps leads by (1 - s) · core + s · q. The core is what was counted, s is the share
of what is new, Beta(k, n), and q is what other decisions in the same interface node led to
("node"), what any step led to ("all") or, where states have several components, what differs from
the branch's own successors in one of them ("alike"). So a branch is a draw of a Dirichlet
distribution by its counts and k steps of q. Each pair (base, k) is a component of a mixture. Its
weight is fitted by expectation maximisation to the marginal likelihood of all steps of each branch,
in which a branch that led to all its successors hundreds of times still says that each of them once
was new.
"""

from functools import cached_property
from typing import Any

import numpy as np

from rspmn.data.distinct import find_sorted
from rspmn.data.keys import group_weights
from rspmn.trust.alike import Alike
from rspmn.trust.branch_counts import BranchEvidence, Counted
from rspmn.trust.factors import FactorDraws
from rspmn.types import Array, Bools, Ints

#: The strengths k that are mixed, for each base.
STRENGTHS = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
#: What is new: as other decisions of the node, anywhere, or like what is expected.
NODE, ALL, ALIKE = range(3)
#: The share of "all" in the other two.
ANYWHERE = 0.1
#: What nothing predicts is as likely as if this part of a step had led to every interface node.
FLOOR = 1e-3
#: Passes of expectation maximisation.
PASSES = 100
#: The weight of a uniform mixture, in branches.
UNIFORM = 0.1


class Novelty:
    """The mixture over bases and strengths, fitted to the branches of a model."""

    def __init__(self, evidence: BranchEvidence) -> None:
        self.evidence, counted = evidence, evidence.counted
        self.interfaces = evidence.bellman.interfaces
        arrived = group_weights(counted.to, counted.steps, self.interfaces)
        self.alike: Alike | None = None
        if isinstance(evidence.factors, FactorDraws) and evidence.factors.leaves.shape[1] > 1:
            self.alike = Alike(evidence.factors.counts.factors, arrived)
        bases = [NODE, ALL] if self.alike is None else [NODE, ALL, ALIKE]
        self.strength = np.array(STRENGTHS * len(bases))  # [components]
        self.base = np.repeat(bases, len(STRENGTHS))  # [components]
        self.everywhere = arrived / max(arrived.sum(), 1e-300)  # [interfaces]
        key = evidence.node[counted.branch] * self.interfaces + counted.to
        self.keys, self.which = np.unique(key, return_inverse=True)  # (node, to), sorted
        self.led = group_weights(self.which, counted.steps, len(self.keys))
        #: How many steps led from each interface node. [interfaces]
        self.left = group_weights(self.keys // self.interfaces, self.led, self.interfaces)
        self.logs = self._log_likelihoods(counted, arrived)  # [branches, components]
        self.responsibility = _mixture(self.logs, evidence.steps > 0)  # [branches, components]

    # ---- the fit -------------------------------------------------------------------

    def _log_likelihoods(self, counted: Counted, arrived: Array) -> Array:
        """Return the Dirichlet-multinomial likelihood of each branch's steps, by component.

        What a branch itself led to is left out of all bases.
        """
        from scipy.special import gammaln

        evidence, branch = self.evidence, counted.branch
        size = max(2, int((arrived > 0).sum()))
        others = self.left[evidence.node] - evidence.steps  # [branches]
        elsewhere = np.maximum(arrived.sum() - evidence.steps, 1)[branch]
        anywhere = np.maximum(arrived[counted.to] - counted.steps, 0) / elsewhere + FLOOR / size
        near = np.maximum(self.led[self.which] - counted.steps, 0) / np.maximum(others[branch], 1)
        near = (1 - ANYWHERE) * np.where(others[branch] > 0, near, 0.0) + ANYWHERE * anywhere
        like = anywhere
        if self.alike is not None:
            like = self.alike.chances(self._edges, branch, counted.to)
            like = (1 - ANYWHERE) * like + ANYWHERE * anywhere
        base = np.stack([near, anywhere, like], axis=1)[:, self.base]  # [pairs, components]
        shared = (evidence.known - evidence.steps)[:, None]  # [branches, 1], steps of the factors
        found = gammaln(shared + self.strength) - gammaln(evidence.known[:, None] + self.strength)
        alpha = shared[branch] * counted.prior[:, None] + self.strength * base
        np.add.at(found, branch, gammaln(alpha + counted.steps[:, None]) - gammaln(alpha))
        found[np.ix_(others <= 0, self.base == NODE)] = -np.inf
        return np.asarray(found)

    @cached_property
    def _edges(self) -> tuple[Ints, Ints, Array]:
        """Where branches lead by what was seen: branches, sorted, interface nodes and shares."""
        cells = self.evidence.cells
        return cells.branch[cells.of_edges], cells.to, self.evidence.mean_edges

    # ---- its mean ------------------------------------------------------------------

    @cached_property
    def shares(self) -> Array:  # [3, branches]
        """The mean share of what is new, by its base: node, all, and alike."""
        evidence = self.evidence
        mean = self.responsibility * self.strength / (evidence.known[:, None] + self.strength)
        found = np.stack([mean[:, self.base == k].sum(axis=1) for k in (NODE, ALL, ALIKE)])
        return np.where((evidence.steps > 0) | evidence.extrapolated, found, 0.0)

    @cached_property
    def by_nodes(self) -> Any:  # sparse [interfaces, interfaces]
        """Where the steps of each interface node led."""
        from scipy.sparse import csr_array

        node, to = self.keys // self.interfaces, self.keys % self.interfaces
        shape = (self.interfaces, self.interfaces)
        return csr_array((self.led / self.left[node], (node, to)), shape=shape)

    # ---- draws ---------------------------------------------------------------------

    def draw_shares(self, draws: int, rng: np.random.Generator) -> tuple[Array, Ints, Array]:
        """Return s, its base and its strength, [draws, branches] each."""
        size = (draws, self.evidence.size)
        bounds = np.cumsum(self.responsibility, axis=1)
        point, picked = rng.random(size), np.zeros(size, dtype=np.int64)
        for bound in bounds.T[:-1]:
            picked += point > bound
        strength = self.strength[picked]
        known = np.maximum(self.evidence.known, 1e-9)
        share = rng.beta(strength, np.broadcast_to(known, size))
        share[:, (self.evidence.steps == 0) & ~self.evidence.extrapolated] = 0.0
        return share, self.base[picked], strength

    def draw_successors(self, branch: Ints, base: Ints, rng: np.random.Generator) -> Ints:
        """Return where something new leads from each of some branches, by its base."""
        node, by_node, anywhere = self.evidence.node[branch], base == NODE, base == ALL
        point, found = rng.random(len(node)), np.empty(len(node), dtype=np.int64)
        far = np.searchsorted(np.cumsum(self.everywhere), point[anywhere], side="right")
        found[anywhere] = np.minimum(far, self.interfaces - 1)
        if self.alike is not None:
            here = base == ALIKE
            of, to, weight = self._edges
            total = np.concatenate([[0.0], np.cumsum(weight)])
            first, last = np.searchsorted(of, branch[here]), np.searchsorted(of, branch[here] + 1)
            at = total[first] + point[here] * (total[last] - total[first])
            place = np.clip(np.searchsorted(total, at, side="right") - 1, first, last - 1)
            found[here] = self.alike.draw(to[place], rng)
        bounds = np.searchsorted(self.keys // self.interfaces, np.arange(self.interfaces + 1))
        total = np.concatenate([[0.0], np.cumsum(self.led)])
        first, last = bounds[node[by_node]], bounds[node[by_node] + 1]
        at = total[first] + point[by_node] * (total[last] - total[first])
        place = np.clip(np.searchsorted(total, at, side="right") - 1, first, last - 1)
        found[by_node] = (self.keys % self.interfaces)[place]
        return found

    # ---- utilities -----------------------------------------------------------------

    @cached_property
    def _of_pairs(self) -> Any:  # sparse [keys, pairs]
        """The share of each pair of a branch and a successor in those of its interface node."""
        from scipy.sparse import csr_array

        steps = self.evidence.counted.steps
        place = self.which, np.arange(len(steps))
        shape = len(self.keys), len(steps)
        return csr_array((steps / self.led[self.which], place), shape=shape)

    @cached_property
    def arrivals(self) -> Array:  # [interfaces]
        """What steps earned that led to each interface node, on average; NaN where none did."""
        counted = self.evidence.counted
        steps, earned = (
            group_weights(counted.to, weight, self.interfaces)
            for weight in (counted.steps, counted.steps * counted.utility)
        )
        return np.where(steps > 0, earned / np.maximum(steps, 1e-300), np.nan)

    @cached_property
    def paid_on_arrival(self) -> bool:
        """Whether utilities are better predicted by where steps led than by their branch.

        Each pair of a branch and a successor is predicted by all others of the branch, and by all
        others that led there.
        """
        counted = self.evidence.counted
        by_branch, by_successor = (
            _others(key, counted.steps, counted.utility) for key in (counted.branch, counted.to)
        )
        both = ~np.isnan(by_branch + by_successor)
        errors = [
            float(counted.steps[both] @ (counted.utility - predicted)[both] ** 2)
            for predicted in (by_branch, by_successor)
        ]
        return errors[1] < errors[0]

    def utilities(
        self,
        branch: Ints,
        to: Ints,
        otherwise: Array,
        pairs: Array | None = None,
        draw: Ints | int = 0,
    ) -> Array:
        """Return what branches earn if they lead to interface nodes.

        `pairs` are what logged pairs of a branch and a successor earn, [draws, pairs], by default
        on average, and `draw` says in which draw each is asked for. That is the mean of the
        branch's own steps that did; else that of its node's steps that did; else, where utilities
        are paid on arrival, that of all steps that did; else `otherwise`.
        """
        counted = self.evidence.counted
        otherwise = self._unless_logged(to, otherwise)
        pairs = counted.utility[None] if pairs is None else pairs
        earned = np.asarray((self._of_pairs @ pairs.T).T)  # [draws, keys]
        node = self.evidence.node[branch]
        place = find_sorted(self.keys, node * self.interfaces + to)
        found = np.where(place >= 0, earned[draw, place], otherwise)
        own = counted.branch * self.interfaces + counted.to
        place = find_sorted(own, branch * self.interfaces + to)
        return np.where(place >= 0, pairs[draw, place], found)

    def _unless_logged(self, to: Ints, otherwise: Array) -> Array:
        """Return what is earned on the way to interface nodes where no step of the node led."""
        if not self.paid_on_arrival:
            return otherwise
        arrived = self.arrivals[to]
        return np.where(np.isnan(arrived), otherwise, arrived)

    def mean_utilities(self, otherwise: Array) -> tuple[Array, Array]:
        """Return what branches earn on average if they lead where their node did, or anywhere.

        Only the pairs of a branch and a successor of its node differ from others that lead to the
        same successor, so that no other pairs are looked at. `otherwise` is [branches, kinds], both
        are [branches].
        """
        node = self.evidence.node
        bounds = np.searchsorted(self.keys, np.arange(self.interfaces + 1) * self.interfaces)
        pairs = np.diff(bounds)[node]  # [branches], how many
        branch = np.repeat(np.arange(len(node)), pairs)
        key = np.arange(len(branch)) + np.repeat(bounds[node] - np.cumsum(pairs) + pairs, pairs)
        to = self.keys[key] % self.interfaces
        ends = (np.arange(self.interfaces) == self.evidence.model.end).astype(np.int64)
        usual = otherwise[branch, ends[to]]
        pays, most = self.utilities(branch, to, usual), len(node)
        by_node = group_weights(branch, self.led[key] / self.left[node[branch]] * pays, most)
        differs = self.everywhere[to] * (pays - self._unless_logged(to, usual))
        anywhere = np.flatnonzero(self.everywhere)
        usual = otherwise @ group_weights(ends, self.everywhere, 2)
        if self.paid_on_arrival:  # then it is known of all that was ever reached
            usual = np.full(most, self.everywhere[anywhere] @ self.arrivals[anywhere])
        return by_node, usual + group_weights(branch, differs, most)


def _others(key: Ints, steps: Array, numbers: Array) -> Array:
    """Return, for each of some weighted numbers, the mean of all others of its key, or NaN."""
    total, weighed = group_weights(key, steps)[key], group_weights(key, steps * numbers)[key]
    rest = np.where(total - steps > 1e-9 * total, total - steps, np.nan)
    return np.asarray((weighed - steps * numbers) / rest)


def _mixture(logs: Array, fitted: Bools) -> Array:
    """Return the responsibility of each component for each branch, [branches, components]."""
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    size = logs.shape[1]
    weights = np.full(size, 1 / size)
    for _ in range(PASSES):
        shares = likelihood[fitted] * weights
        shares /= shares.sum(axis=1, keepdims=True)
        weights = (shares.sum(axis=0) + UNIFORM / size) / (len(shares) + UNIFORM)
    shares = likelihood * weights + 1e-300
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
