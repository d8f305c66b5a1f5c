"""The posterior of all weights of a model, given what was logged.

In a draw each branch leads by (1 - s) · core + s · q. The core is a Dirichlet draw: of the branch's
outcomes by their counts, and of the successors of each outcome by counts + κ · π, where π is what
the shared factors predict. The rest is what was never seen; see `rspmn.trust.novelty`.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.model import RSPMN
from rspmn.trust.branches import BranchEvidence, Cells
from rspmn.trust.draws import Worlds
from rspmn.trust.novelty import Novelty
from rspmn.types import Array, Ints

#: New successors of a branch in a draw.
ATOMS = 4
#: Shares of what is new below this are left out.
LEAST = 1e-9
#: The pooled variance of utilities is worth so many steps.
POOLED = 3.0


@dataclass(frozen=True, eq=False)
class Draws:
    """The weights of all branches, drawn several times."""

    core: Array  # [draws, edges], what was seen; with `new`, they sum to 1 for each branch
    new: Array  # [new edges]
    new_row: Ints  # [new edges], draw · branches + branch
    new_to: Ints  # [new edges]
    earned: Array  # [draws, branches]
    starts: Array  # [draws, interfaces]


class Posterior:
    """Draws all weights of a model at once.

    Parameters
    ----------
    model
        A learned model, with counts.

    Examples
    --------
    >>> from rspmn.envs.frozen_lake import frozen_lake
    >>> from rspmn.learn import learn_rspmn
    >>> model, _ = learn_rspmn(frozen_lake().generate(500, 8, 0))
    >>> draws = Posterior(model).draw(10, np.random.default_rng(0))
    >>> draws.starts.sum(axis=1).round(9).tolist() == [1.0] * 10
    True
    """

    def __init__(self, model: RSPMN) -> None:
        self.model, self.evidence = model, BranchEvidence(model)
        self.novelty = Novelty(self.evidence)

    # ---- draws ---------------------------------------------------------------------

    def draw(self, draws: int, rng: np.random.Generator) -> Draws:
        """Return so many draws of all weights."""
        evidence, cells = self.evidence, self.evidence.cells
        shares, edges = draw_cells(cells, draws, rng)
        earned = np.zeros((draws, evidence.size))
        utilities = draw_utilities(evidence.utilities, draws, rng)[:, cells.outcome]
        by_branch = np.flatnonzero(np.diff(cells.branch, prepend=-1))
        earned[:, cells.branch[by_branch]] = np.add.reduceat(shares * utilities, by_branch, axis=1)
        new, by_node, strength = self.novelty.draw_shares(draws, rng)
        known = (1 - new)[:, cells.branch]
        core = (shares * known)[:, cells.of_edges] * edges
        earned *= 1 - new
        draw, branch = np.nonzero(new > LEAST)
        sizes = rng.standard_gamma(
            np.repeat(strength[draw, branch][:, None] / ATOMS, ATOMS, axis=1)
        )
        sizes = np.maximum(sizes, 1e-300)
        sizes *= (new[draw, branch] / sizes.sum(axis=1))[:, None]
        branches = np.repeat(branch, ATOMS)
        to = self.novelty.draw_successors(
            evidence.node[branches], np.repeat(by_node[draw, branch], ATOMS), rng
        )
        pays = self.novelty.utilities(branches, to, self.mean_earned[branches])
        row = np.repeat(draw * evidence.size + branch, ATOMS)
        sizes = sizes.ravel()
        earned += group_weights(row, sizes * pays, earned.size).reshape(earned.shape)
        starts = _dirichlet(evidence.starts, np.zeros(1, np.int64), draws, rng)
        return Draws(core, sizes, row, to, earned, starts)

    @property
    def leads_outside(self) -> bool:
        """Whether factors put mass on states of no interface node."""
        return bool(self.evidence.outside.any())

    def outside(self, draws: Draws, rng: np.random.Generator) -> Draws:
        """Return the draws with the mass on states of no interface node sent to any node."""
        evidence, cells = self.evidence, self.evidence.cells
        count = len(draws.core)
        lost = np.broadcast_to(evidence.outside, (count, evidence.size))
        core = draws.core * (1 - evidence.outside)[cells.branch[cells.of_edges]]
        known = 1 - group_weights(draws.new_row, draws.new, lost.size).reshape(lost.shape)
        draw, branch = np.nonzero(lost)
        nowhere = np.zeros(len(branch), dtype=bool)
        to = self.novelty.draw_successors(evidence.node[branch], nowhere, rng)
        return replace(
            draws, core=core, new=np.append(draws.new, (lost * known)[draw, branch]),
            new_row=np.append(draws.new_row, draw * evidence.size + branch),
            new_to=np.append(draws.new_to, to),
        )  # fmt: skip

    def worlds(self, draws: Draws) -> Worlds:
        """Return the draws as worlds that plans can be valued in."""
        from scipy.sparse import csr_array

        cells, size = self.evidence.cells, self.evidence.size
        interfaces, count = self.evidence.bellman.interfaces, len(draws.core)
        first = np.searchsorted(cells.branch[cells.of_edges], np.arange(size))
        offsets = np.arange(count)[:, None]
        starts = np.append((offsets * len(cells.to) + first).ravel(), draws.core.size)
        to = (offsets * interfaces + cells.to).ravel()
        shape = (count * size, count * interfaces)
        seen = csr_array((draws.core.ravel(), to, starts), shape=shape)
        at = draws.new_row // size * interfaces + draws.new_to
        new = csr_array((draws.new, (draws.new_row, at)), shape=shape)

        def expect(after: Array) -> Array:
            flat = after.ravel()
            return np.asarray(seen @ flat + new @ flat).reshape(count, size)

        return Worlds(self.evidence, draws.earned, expect)

    # ---- the mean ------------------------------------------------------------------

    @cached_property
    def mean_earned(self) -> Array:  # [branches]
        """What each branch earns on average, by what was seen."""
        cells = self.evidence.cells
        share = mean_shares(cells, self.evidence.steps)
        means = self.evidence.utilities[0][cells.outcome]
        return group_weights(cells.branch, share * means, self.evidence.size)

    @cached_property
    def mean_core(self) -> Any:  # sparse [branches, interfaces]
        """Where each branch leads on average, by what was seen."""
        from scipy.sparse import csr_array

        cells = self.evidence.cells
        share = mean_shares(cells, self.evidence.steps)
        total = np.add.reduceat(cells.alpha, cells.starts[:-1])
        weights = (share / total)[cells.of_edges] * cells.alpha
        shape = (self.evidence.size, self.evidence.bellman.interfaces)
        return csr_array((weights, (cells.branch[cells.of_edges], cells.to)), shape=shape)

    def mean_world(self) -> Worlds:
        """Return the mean of all draws; several plans can be valued in it at once."""
        novelty, node = self.novelty, self.evidence.node
        near, far = novelty.shares
        core = self.mean_core.multiply((1 - near - far)[:, None]).tocsr()

        def expect(after: Array) -> Array:
            values = after.T
            by_node = (novelty.by_nodes @ values)[node]
            found = core @ values + near[:, None] * by_node
            return np.asarray(found + far[:, None] * (novelty.everywhere @ values)).T

        return Worlds(self.evidence, self._mean_of_all()[None, :], expect)

    def _mean_of_all(self) -> Array:  # [branches]
        """Return what each branch earns on average, with what was never seen."""
        novelty, node = self.novelty, self.evidence.node
        near, far = novelty.shares
        by_nodes = novelty.by_nodes[node]  # [branches, interfaces]
        branch = np.repeat(np.arange(len(node)), np.diff(by_nodes.indptr))
        known = self.mean_earned[branch]
        more = novelty.utilities(branch, by_nodes.indices, known) - known
        weight = near[branch] * by_nodes.data + far[branch] * novelty.everywhere[by_nodes.indices]
        return np.asarray(self.mean_earned + group_weights(branch, weight * more, len(node)))


def draw_cells(cells: Cells, draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return shares of cells in their branches, and of edges in their cells, [draws, ...] each."""
    by_branch = np.flatnonzero(np.diff(cells.branch, prepend=-1))
    branch = np.repeat(np.arange(len(by_branch)), np.diff(np.append(by_branch, len(cells.branch))))
    empty = np.add.reduceat(cells.steps, by_branch)[branch] == 0
    shares = _dirichlet(np.where(empty, cells.share, cells.steps), by_branch, draws, rng)
    shares[:, empty] = cells.share[empty]
    edges = _dirichlet(cells.alpha, cells.starts[:-1], draws, rng)
    fixed = cells.fixed[cells.of_edges]
    total = np.add.reduceat(cells.alpha, cells.starts[:-1])[cells.of_edges]
    edges[:, fixed] = (cells.alpha / total)[fixed]
    return shares, edges


def mean_shares(cells: Cells, steps: Array) -> Array:  # [cells]
    """Return the mean shares of cells in their branches; `steps` are those of branches."""
    total = steps[cells.branch]
    return np.where(total > 0, cells.steps / np.maximum(total, 1), cells.share)


def draw_utilities(utilities: Array, draws: int, rng: np.random.Generator) -> Array:
    """Return the mean utility of each outcome, drawn, [draws, outcomes].

    Mean and variance of single rewards are unknown. The variance is an inverse chi-squared draw
    about the outcome's own and, with the weight of three steps, that of all outcomes; the mean is
    normal given the variance. Where all rewards are equal nothing is left to draw.
    """
    mean, steps, variance = utilities
    pooled = float(steps @ variance) / max(float(steps.sum()), 1.0)
    spread = POOLED * pooled + steps * variance
    found = np.broadcast_to(mean, (draws, len(mean))).copy()
    unsure = np.flatnonzero((steps > 0) & (spread > 0))
    chi = rng.chisquare(POOLED + steps[unsure], size=(draws, len(unsure)))
    error = np.sqrt(spread[unsure] / chi / steps[unsure])
    found[:, unsure] += error * rng.standard_normal((draws, len(unsure)))
    return found


def _dirichlet(alpha: Array, starts: Ints, draws: int, rng: np.random.Generator) -> Array:
    """Return draws of several Dirichlet distributions; each starts at one of `starts`."""
    sizes = rng.standard_gamma(np.maximum(alpha, 1e-12), size=(draws, len(alpha)))
    sizes = np.where(alpha > 0, np.maximum(sizes, 1e-300), 0.0)
    total = np.add.reduceat(sizes, starts, axis=1)
    counts = np.diff(np.append(starts, len(alpha)))
    return np.asarray(sizes / np.repeat(total, counts, axis=1))
