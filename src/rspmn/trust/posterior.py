"""The posterior of all weights of a model, given what was logged.

In a draw each branch leads by (1 - s) · core + s · q. The core is a Dirichlet draw: of the branch's
outcomes by their counts, and of the successors of each outcome by counts + κ · π, where π is what
the shared factors predict, drawn too (`rspmn.trust.factors`). The rest is what was never seen; see
`rspmn.trust.novelty`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.model import RSPMN
from rspmn.trust.branch_counts import BranchEvidence
from rspmn.trust.dirichlet import draw_dirichlet, normalised
from rspmn.trust.drawn_worlds import Worlds
from rspmn.trust.novelty import ALIKE, ALL, Novelty
from rspmn.trust.practice import doubt_of_practice
from rspmn.trust.product_draws import ProductDraws
from rspmn.trust.utilities import range_of_returns
from rspmn.types import Array, Ints
from rspmn.values import short

#: Products of factors that are not multiplied out take at most so many multiplications in an
#: update of all draws, but at least so many draws are made.
MOST_WORK, LEAST_DRAWS = 16_000_000, 20
#: New successors of a branch in a draw.
ATOMS = 4
#: With a larger share of steps that may lead to any state, intervals have a caveat: states with
#: several variables are then treated as if they had nothing in common.
MOST_NEW = 0.02
#: With fewer steps, intervals have a caveat: they may be of no width by chance.
FEW_STEPS = 10.0
#: Shares of what is new below this are left out.
LEAST = 1e-9
#: Successors do not matter to what is earned if it varies by so small a share.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Draws:
    """The weights of all branches, drawn several times."""

    core: Array  # [draws, edges], what was seen; with `new`, they sum to 1 for each branch
    new: Array  # [new edges]
    new_row: Ints  # [new edges], draw · branches + branch
    new_to: Ints  # [new edges]
    earned: Array  # [draws, branches]
    starts: Array  # [draws, interfaces]
    outside: Array  # [draws, cells], the mass that factors put on states of no interface node
    #: What products of factors that are not multiplied out are worth on average, given what
    #: interface nodes are: [draws, interfaces] to [draws, outcomes]. None if all are.
    products: Callable[[Array], Array] | None = None


class Posterior:
    """Draws all weights of a model at once.

    Parameters
    ----------
    model
        A learned model, with counts.
    evidence, novelty
        What is known of its branches, where that was found before.

    Examples
    --------
    >>> from rspmn.envs.frozen_lake import frozen_lake
    >>> from rspmn.learn import learn_rspmn
    >>> model, _ = learn_rspmn(frozen_lake().generate(500, 8, 0))
    >>> draws = Posterior(model).draw(10, np.random.default_rng(0))
    >>> draws.starts.sum(axis=1).round(9).tolist() == [1.0] * 10
    True
    """

    def __init__(
        self,
        model: RSPMN,
        evidence: BranchEvidence | None = None,
        novelty: Novelty | None = None,
    ) -> None:
        self.model, self.evidence = model, evidence or BranchEvidence(model)
        self.novelty = novelty or Novelty(self.evidence)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What no interval can make up for."""
        found, logged = [*self.doubts], self.evidence.utilities
        if (steps := float(self.evidence.steps.sum())) < FEW_STEPS:
            found.append(f"the log has {steps:g} steps with a known successor: too few to say more")
        alike = len(logged.mean) and not (np.ptp(logged.mean) or logged.variance.any())
        if alike and not (logged.mean.any() and logged.ends.any()):
            found.append(
                f"all logged utilities with a known successor are {short(float(logged.mean[0]))}: "
                "the log has no information about values"
            )
        if self.new_anywhere > MOST_NEW and self.evidence.factors is not None:
            found.append(
                f"in {100 * self.new_anywhere:.0f} % of the steps an action is expected to lead "
                "to a state that it never led to before, which may then be any: the interval may "
                "be too low; integers with many values are better declared continuous"
            )
        return tuple(found)

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Why values may be wrong: the model misses what practice is worth."""
        return doubt_of_practice(self.model)

    @cached_property
    def new_anywhere(self) -> float:
        """The share of logged steps that are expected to lead to any state, as none did before."""
        steps = self.evidence.steps
        return float(self.novelty.shares[1] @ steps / max(float(steps.sum()), 1e-300))

    def only(self, branches: Ints) -> "Posterior":
        """Return the posterior of some branches: of others nothing is drawn."""
        return Posterior(self.model, self.evidence.only(branches), self.novelty)

    def affordable(self, draws: int) -> int:
        """Return so many draws or, where products of factors take long in each, fewer."""
        factors = self.evidence.factors
        if not isinstance(factors, ProductDraws):
            return draws
        return min(draws, max(LEAST_DRAWS, MOST_WORK // max(1, factors.expect.work)))

    # ---- draws ---------------------------------------------------------------------

    @property
    def floats(self) -> int:
        """About how many floats a draw holds."""
        of_factors = 0 if self.evidence.factors is None else self.evidence.factors.floats
        return 3 * len(self.evidence.cells.to) + 12 * self.evidence.size + of_factors

    def draw_worlds(self, draws: int, rng: np.random.Generator) -> tuple[Worlds, Array]:
        """Return draws as worlds, and the start distribution in each: [draws, interfaces]."""
        found = self.draw(draws, rng)
        return self.worlds(found), found.starts

    def draw(self, draws: int, rng: np.random.Generator) -> Draws:
        """Return so many draws of all weights."""
        evidence, cells = self.evidence, self.evidence.cells
        shares, edges, outside, products = draw_cells(evidence, draws, rng)
        core = shares[:, cells.of_edges] * edges
        of_edges, of_pairs = self._draw_utilities(draws, rng)
        earned = self._by_branch(core * of_edges)
        new, base, strength = self.novelty.draw_shares(draws, rng)
        new[:, np.bincount(cells.branch, minlength=evidence.size) == 0] = 0.0
        core *= (1 - new)[:, cells.branch[cells.of_edges]]
        earned *= 1 - new
        draw, branch = np.nonzero(new > LEAST)
        sizes = rng.standard_gamma(
            np.repeat(strength[draw, branch][:, None] / ATOMS, ATOMS, axis=1)
        )
        sizes = np.maximum(sizes, 1e-300)
        sizes *= (new[draw, branch] / sizes.sum(axis=1))[:, None]
        branches = np.repeat(branch, ATOMS)
        base, draw = np.repeat(base[draw, branch], ATOMS), np.repeat(draw, ATOMS)
        to = self.novelty.draw_successors(branches, base, rng)
        kind = (to == self.model.end).astype(np.int64)
        usual = self.usual[branches, kind]
        usual = usual + self._new_utilities[1][branches, kind] * rng.standard_normal(len(usual))
        least, most = evidence.utilities.ranges[kind].T  # NaN: no step of the kind
        usual = np.fmin(np.fmax(usual, least), most)
        pays = self.novelty.utilities(branches, to, usual, of_pairs, draw)
        pays = np.where(base == ALIKE, usual, pays)
        row = draw * evidence.size + branches
        sizes = sizes.ravel()
        earned += group_weights(row, sizes * pays, earned.size).reshape(earned.shape)
        starts = draw_dirichlet(evidence.starts, np.zeros(1, np.int64), draws, rng)
        return Draws(core, sizes, row, to, earned, starts, outside, products)

    def _by_branch(self, numbers: Array) -> Array:  # [draws, branches]
        """Add up numbers of edges, [draws, edges]."""
        cells, found = self.evidence.cells, np.zeros((len(numbers), self.evidence.size))
        branch = cells.branch[cells.of_edges]
        first = np.flatnonzero(np.diff(branch, prepend=-1))
        found[:, branch[first]] = np.add.reduceat(numbers, first, axis=1)
        return found

    def _draw_utilities(self, draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return what edges earn, drawn, and what logged pairs of a branch and a successor do."""
        evidence, cells, own = self.evidence, self.evidence.cells, self.evidence.utilities
        means, added = own.draw(draws, rng), own.shared.draw(draws, rng)
        outcome, every = cells.outcome[cells.of_edges], np.arange(len(own.mean))
        of_edges = own.of_edges(means, evidence.logged_edge, outcome, cells.ends, added)
        logged = own.of_edges(means, every, own.outcome, own.ends, added)
        return of_edges, np.asarray((evidence.counted.of_edges @ logged.T).T)

    def outside(self, draws: Draws) -> Array:  # [draws, branches]
        """Return the mass of each branch that factors put on states of no interface node."""
        lost = self._by_branch(draws.core * draws.outside[:, self.evidence.cells.of_edges])
        return np.clip(lost, 0.0, 1.0)

    def anywhere(self, draws: Draws, rng: np.random.Generator) -> Draws:
        """Return the draws with all that is new, and all that is outside, sent to any node.

        What is outside is the mass that factors put on states of no interface node.
        """
        evidence, cells = self.evidence, self.evidence.cells
        lost = draws.core * draws.outside[:, cells.of_edges]
        draw, branch = np.nonzero(by_branch := self._by_branch(lost))
        row = np.append(draws.new_row, draw * evidence.size + branch)
        anywhere = self.novelty.draw_successors(row % evidence.size, np.full(len(row), ALL), rng)
        return replace(
            draws, core=draws.core - lost, new=np.append(draws.new, by_branch[draw, branch]),
            new_row=row, new_to=anywhere,
        )  # fmt: skip

    def worlds(self, draws: Draws, branches: Ints | None = None) -> Worlds:
        """Return the draws as worlds that plans can be valued in.

        Of other branches than `branches`, sorted, nothing is known there: plans that take none of
        them are valued faster. None is all.
        """
        from scipy.sparse import csr_array

        size, count, columns = self.evidence.size, len(draws.core), self.evidence.columns
        branches = np.arange(size) if branches is None else branches
        row = np.full(size, -1)
        row[branches] = np.arange(len(branches))
        cells, shape = self.evidence.cells, (count * len(branches), count * columns)
        at = row[cells.branch[cells.of_edges]]
        core, to, at = draws.core[:, at >= 0], cells.to[at >= 0], at[at >= 0]
        offsets = np.arange(count)[:, None]
        starts = (offsets * len(to) + np.searchsorted(at, np.arange(len(branches)))).ravel()
        to = (offsets * columns + to).ravel()
        seen = csr_array((core.ravel(), to, np.append(starts, core.size)), shape=shape)
        draw, at = draws.new_row // size, row[draws.new_row % size]
        place = draw * len(branches) + at, draw * columns + draws.new_to
        kept = at >= 0
        new = csr_array((draws.new[kept], (place[0][kept], place[1][kept])), shape=shape)
        both = csr_array(seen + new)

        def expect(after: Array) -> Array:
            if draws.products is not None:
                after = np.hstack([after, draws.products(after)])
            found = np.full((count, size), -np.inf)
            found[:, branches] = (both @ after.ravel()).reshape(count, len(branches))
            return found

        return Worlds(self.evidence, draws.earned, expect)

    # ---- the mean ------------------------------------------------------------------

    @cached_property
    def _mean_edges(self) -> Array:  # [edges]
        return self.evidence.mean_edges

    @cached_property
    def _earned_by_kind(self) -> Array:  # [2, branches, kinds]
        """What each branch earns on average in steps of each kind, times their share; the share."""
        evidence, cells = self.evidence, self.evidence.cells
        own, outcome = evidence.utilities, cells.outcome[cells.of_edges]
        earned = own.of_edges(own.expected, evidence.logged_edge, outcome, cells.ends)
        key = 2 * cells.branch[cells.of_edges] + cells.ends
        found = [
            group_weights(key, weight, 2 * evidence.size).reshape(-1, 2)
            for weight in (self._mean_edges * earned, self._mean_edges)
        ]
        return np.stack(found)

    @cached_property
    def mean_earned(self) -> Array:  # [branches]
        """What each branch earns on average, by what was seen."""
        return np.asarray(self._earned_by_kind[0].sum(axis=1))

    @property
    def usual(self) -> Array:  # [branches, kinds]
        """What branches earn on average where they lead to something new: by going on, by ending.

        Where a branch was never seen to do either, it is what all such steps earn.
        """
        return self._new_utilities[0]

    @cached_property
    def _new_utilities(self) -> tuple[Array, Array]:  # [branches, kinds] each
        """What branches earn where they lead to something new: mean and standard deviation.

        If what is earned depends on the successor, that of a new one is drawn towards the mean of
        all branches, as far as few successors of a branch say little of others (analysis of
        variance).
        """
        earned, share = self._earned_by_kind
        of_kinds, counted = self.evidence.utilities.of_kinds[0], self.evidence.counted
        mean = np.where(share > 0, earned / np.maximum(share, 1e-300), of_kinds)
        deviation, ends = np.zeros_like(mean), counted.to == self.model.end
        for kind in (0, 1):
            mine = ends == kind
            found = _components(counted.branch[mine], counted.utility[mine], self.evidence.size)
            overall, weight, deviation[:, kind] = found
            mean[:, kind] += (1 - weight) * (overall - mean[:, kind])
        return mean, deviation

    @cached_property
    def mean_core(self) -> Any:  # sparse [branches, interfaces]
        """Where each branch leads on average, by what was seen."""
        from scipy.sparse import csr_array

        cells = self.evidence.cells
        shape = (self.evidence.size, self.evidence.columns)
        place = cells.branch[cells.of_edges], cells.to
        return csr_array((self._mean_edges, place), shape=shape)

    def mean_world(self) -> Worlds:
        """Return the mean of all draws; several plans can be valued in it at once."""
        novelty, node = self.novelty, self.evidence.node
        near, far, like = novelty.shares
        core = self.mean_core.multiply((1 - near - far - like)[:, None]).tocsr()
        factors = self.evidence.factors

        def expect(after: Array) -> Array:
            values = after.T
            by_node = (novelty.by_nodes @ values)[node]
            if isinstance(factors, ProductDraws):
                after = np.hstack([after, factors.means(after)])
            found = core @ after.T + near[:, None] * by_node
            if novelty.alike is not None:
                found += like[:, None] * (self.mean_core @ novelty.alike.means(values))
            return np.asarray(found + far[:, None] * (novelty.everywhere @ values)).T

        return Worlds(self.evidence, self._mean_of_all()[None, :], expect)

    def _mean_of_all(self) -> Array:  # [branches]
        """Return what each branch earns on average, with what was never seen."""
        novelty, (near, far, _) = self.novelty, self.novelty.shares
        by_node, anywhere = novelty.mean_utilities(self.usual)
        return np.asarray((1 - near - far) * self.mean_earned + near * by_node + far * anywhere)

    # ---- bounds --------------------------------------------------------------------

    def bounds(self, steps: int | None, discount: float) -> tuple[float, float]:
        """Return what no plan earns less than, and no more than; see `range_of_returns`."""
        return range_of_returns(self.evidence.utilities.ranges, steps, discount)


def draw_cells(
    evidence: BranchEvidence, draws: int, rng: np.random.Generator
) -> tuple[Array, Array, Array, Callable[[Array], Array] | None]:
    """Return shares of cells and edges, and of what is outside; and what products are worth.

    They are [draws, cells] in their branches, [draws, edges] in their cells, and [draws, cells].
    """
    cells = evidence.cells
    by_branch = np.flatnonzero(np.diff(cells.branch, prepend=-1))
    empty = evidence.steps[cells.branch] == 0
    # Where outcomes are shared, the mean has κ_u steps of these, the spread the least κ_u.
    added, alpha = evidence.added[cells.branch], np.where(empty, cells.share, cells.steps)
    if added.any():
        predicted = evidence.utilities.shared
        total = evidence.steps[cells.branch] + added
        own = np.where(added > 0, cells.steps / np.maximum(total, 1e-300), cells.share)
        odds = np.maximum(cells.share - own, 0) * predicted.draw_odds(draws, rng)[:, cells.outcome]
        worth = evidence.steps[cells.branch] + predicted.least * added
        alpha = np.where(added > 0, normalised(own + odds, by_branch) * worth, alpha)
    shares = draw_dirichlet(alpha, by_branch, draws, rng)
    shares[:, empty] = cells.share[empty]
    alpha, outside, products = cells.logged, np.zeros((1, len(cells.branch))), None
    if evidence.factors is not None:
        counts, drawn = evidence.factors.counts, evidence.factors.draw(draws, rng)
        products, (strength, least) = drawn.products, evidence.shared_strength(cells.outcome)
        # The mean has κ steps of the factors, the spread the least κ that is not ruled out.
        total = np.maximum(cells.steps + strength, 1e-300)
        worth = (cells.steps + least) / total
        shared = ~cells.over & counts.used[cells.outcome]
        worth = np.where(shared, worth, 1.0)[cells.of_edges]
        expected = drawn.expected[:, evidence.factor_edge]
        alpha = worth * (alpha + strength[cells.of_edges] * expected)
        outside = drawn.outside[:, cells.outcome] * np.where(shared, strength / total, 0.0)
    fixed = (cells.steps == 0)[cells.of_edges]
    alpha = np.where(fixed, cells.mean, alpha)
    edges = draw_dirichlet(alpha, cells.starts[:-1], draws, rng)
    edges[:, fixed] = cells.mean[fixed]
    return shares, edges, outside, products


def _components(group: Ints, numbers: Array, size: int) -> tuple[float, Array, Array]:
    """Return how members of groups vary: the mean of all, and of each group two numbers.

    By these, given the mean of its members, another one is expected at `mean of all + weight ·
    (mean of its members - mean of all)`, with a standard deviation.
    """
    counts = np.bincount(group, minlength=size).astype(np.float64)
    several, groups = len(group) - int((counts > 0).sum()), int((counts > 0).sum())
    if groups < 2 or not several:
        return 0.0, np.ones(size), np.zeros(size)
    means = np.bincount(group, numbers, size) / np.maximum(counts, 1)
    overall = float(numbers.mean())
    inner = float(((numbers - means[group]) ** 2).sum() / several)
    alike = (len(group) - float(counts @ counts) / len(group)) / (groups - 1)
    outer = float(counts @ (means - overall) ** 2) / (groups - 1)
    outer = max(0.0, (outer - inner) / alike)
    if inner <= ROUNDING * (inner + outer):
        return 0.0, np.ones(size), np.zeros(size)
    weight = counts * outer / (counts * outer + inner)
    return overall, weight, np.sqrt(inner + (1 - weight) * outer)
