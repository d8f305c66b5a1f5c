"""The Bellman update compiled: the template without evidence is linear maps between maxima.

Without evidence every leaf has likelihood 1. So what reaches a max node is linear in what the
interface nodes of the next step and the max nodes below are worth: one matrix for each level of
decisions, one for the roots. `rspmn.infer.bellman` is the same thing node by node.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rspmn.circuit import Latent, Max, Network, Utility
from rspmn.infer.compiled.layers import Flat, flatten
from rspmn.types import Array, Bools, Ints
from rspmn.values import UNKNOWN

#: Matrices of at most so many numbers are stored whole: products with them start faster.
DENSE = 20_000


@dataclass(frozen=True, eq=False)
class Level:
    """Max nodes of which none is below another: branches are linear, then the best is taken."""

    nodes: Ints  # [max nodes], in the template
    slots: slice  # their places among all unknowns
    matrix: Any  # [branches, unknowns]
    earned: Array  # [branches]
    starts: Ints  # [max nodes], the first branch of each
    closed: Bools  # [branches], which lead to UNKNOWN: of no use before the last step

    def branches(self, values: Array, last: bool, has_edge: bool = True) -> Array:
        """Return what every branch is worth."""
        worth = _applied(self.matrix, values, has_edge)
        worth += self.earned
        if has_edge and not last:
            worth[self.closed] = -np.inf
        return worth

    def best(self, worth: Array) -> Ints:  # [max nodes]
        """Return the first best branch of each max node."""
        highest = np.maximum.reduceat(worth, self.starts)
        counts = np.diff(np.append(self.starts, len(worth)))
        is_best = np.flatnonzero(worth == np.repeat(highest, counts))
        node = np.searchsorted(self.starts, is_best, side="right") - 1
        return is_best[np.searchsorted(node, np.arange(len(self.starts)))]


@dataclass(frozen=True, eq=False)
class Bellman:
    """A template as matrices. Unknowns are the interface nodes, then the max nodes by level."""

    interfaces: int
    unknown: int | None  # the interface node of unknown successors
    levels: tuple[Level, ...]  # innermost decisions first
    roots: Any  # [interfaces, unknowns]
    earned: Array  # [interfaces]
    untried: Ints  # slots of max nodes where no decision was ever tried
    has_edge: bool  # whether any value can be -∞

    @cached_property
    def size(self) -> int:
        """The number of unknowns."""
        return self.interfaces + sum(len(level.nodes) for level in self.levels)

    def update(self, after: Array, discount: float = 1.0, last: bool = False) -> Array:
        """Return what the interface nodes are worth, given what they are worth a step later.

        `last` says that nothing follows this step.
        """
        return self.settle(self.unknowns(after, discount, last))

    def unknowns(self, after: Array, discount: float, last: bool) -> Array:  # [unknowns]
        """Return the discounted future and the worth of every max node."""
        values = np.zeros(self.size)
        if not last:
            np.multiply(after, discount, out=values[: self.interfaces])
            if self.unknown is not None:
                values[self.unknown] = 0.0  # branches that lead there are closed
        for level in self.levels:
            worth = level.branches(values, last, self.has_edge)
            values[level.slots] = np.maximum.reduceat(worth, level.starts)
            if len(self.untried):
                values[self.untried] = -np.inf
        return values

    def settle(self, values: Array) -> Array:  # [interfaces]
        """Return what the interface nodes are worth, frontier nodes as little as any other."""
        found = _applied(self.roots, values, self.has_edge) + self.earned
        if not self.has_edge:
            return found
        lost = np.isneginf(found)
        if lost.any():
            floor = found[~lost].min(initial=np.inf)
            frontier = lost.copy()
            if self.unknown is not None:
                frontier[self.unknown] = False
            found[frontier] = floor if floor < np.inf else -np.inf
        return found

    def value(self, horizon: int, discount: float = 1.0) -> Array:  # [interfaces]
        """Return what the interface nodes are worth with so many steps to go."""
        found = np.zeros(self.interfaces)
        for steps in range(horizon):
            found = self.update(found, discount, last=steps == 0)
        return found

    def values(self, horizon: int, discount: float = 1.0) -> Array:  # [horizon + 1, interfaces]
        """Return what the interface nodes are worth with 0, 1, … steps to go."""
        found = np.zeros((horizon + 1, self.interfaces))
        for steps in range(1, horizon + 1):
            found[steps] = self.update(found[steps - 1], discount, last=steps == 1)
        return found

    def greedy(self, after: Array, discount: float) -> tuple[Array, Array, Any]:
        """Update once, keeping the choices that were best.

        Returned are the values, and with these choices fixed the reward of each interface node
        [interfaces] and where it leads, sparse [interfaces, interfaces]. A frontier node does as
        the worst of the others does.
        """
        from scipy.sparse import csr_array, identity, vstack

        values = self.unknowns(after, discount, last=False)
        leads = [identity(self.interfaces, format="csr")]
        earns = [np.zeros(self.interfaces)]
        for level in self.levels:
            best = level.best(level.branches(values, False))
            rows = csr_array(level.matrix)[best][:, : level.slots.start]
            above = vstack(leads, format="csr")
            leads.append(rows @ above)
            earns.append(rows @ np.concatenate(earns) + level.earned[best])
        roots = csr_array(self.roots)
        follows = roots @ vstack(leads, format="csr")
        rewards = roots @ np.concatenate(earns) + self.earned
        settled = self.settle(values)
        raw = _applied(self.roots, values, self.has_edge) + self.earned
        lost = np.isneginf(raw)
        if lost.any() and not lost.all():
            copied = np.arange(self.interfaces)
            copied[lost] = np.argmin(np.where(lost, np.inf, raw))
            if self.unknown is not None:
                copied[self.unknown] = self.unknown
            follows, rewards = csr_array(follows)[copied], rewards[copied]
        return settled, rewards, csr_array(follows)


def _applied(matrix: Any, values: Array, has_edge: bool) -> Array:
    """Return matrix · values, -∞ where a value of -∞ has any weight."""
    if not has_edge:
        return np.asarray(matrix @ values)
    lost = np.isneginf(values)
    found = np.asarray(matrix @ np.where(lost, 0.0, values))
    found[matrix @ lost > 0] = -np.inf
    return found


def compile_bellman(template: Network, unknown: int | None) -> Bellman:
    """Compile a template; `unknown` is the interface node of unknown successors."""
    flat = flatten(template)
    interfaces, maxes = len(template.roots), flat.of_kind(Max)
    by_level = _levels(flat, maxes)
    order = np.concatenate([*by_level, np.zeros(0, np.int64)]).astype(np.int64)
    forms = _linear_forms(template, flat, order)
    nothing = np.array([template.nodes[i].values == (UNKNOWN,) for i in order.tolist()], bool)
    levels, place = [], interfaces
    for nodes in by_level:
        edges, starts = flat.edges_of(nodes)
        rows = forms[flat.children[edges]]
        matrix, earned = rows[:, :-1], rows[:, [-1]].toarray().ravel()
        closed = np.zeros(len(edges), dtype=bool)
        if unknown is not None:
            closed = matrix[:, [unknown]].toarray().ravel() > 0
        slots = slice(place, place + len(nodes))
        levels.append(Level(nodes, slots, _compact(matrix), earned, starts, closed))
        place += len(nodes)
    roots = forms[flat.roots]
    untried = interfaces + np.flatnonzero(nothing)
    edge = bool(len(untried)) or any(bool(level.closed.any()) for level in levels)
    return Bellman(
        interfaces, unknown, tuple(levels), _compact(roots[:, :-1]),
        roots[:, [-1]].toarray().ravel(), untried, edge,
    )  # fmt: skip


def _levels(flat: Flat, maxes: Ints) -> list[Ints]:
    """Return the max nodes by how many decisions are below them."""
    depth = np.zeros(len(flat.kind), dtype=np.int64)
    is_max = np.zeros(len(flat.kind), dtype=np.int64)
    is_max[maxes] = 1
    inner = np.flatnonzero(np.diff(flat.starts) > 0)
    edges, first = flat.edges_of(inner)
    below = flat.children[edges]
    while len(inner):
        found = np.maximum.reduceat(depth[below], first) + is_max[inner]
        if np.array_equal(found, depth[inner]):
            break
        depth[inner] = found
    return [maxes[depth[maxes] == k] for k in np.unique(depth[maxes]).tolist()]


def _linear_forms(template: Network, flat: Flat, order: Ints) -> Any:
    """Return every node as a linear form, sparse [nodes, unknowns + 1]; the last is constant."""
    from scipy.sparse import coo_array

    interfaces = len(template.roots)
    latents, utilities = flat.of_kind(Latent), flat.of_kind(Utility)
    means = np.array([template.nodes[i].mean for i in utilities.tolist()])
    which = np.array([template.nodes[i].interface for i in latents.tolist()], dtype=np.int64)
    constant = interfaces + len(order)
    rows = np.concatenate([latents, order, utilities])
    columns = np.concatenate(
        [which, interfaces + np.arange(len(order)), np.full(len(utilities), constant)]
    )
    numbers = np.concatenate([np.ones(len(latents) + len(order)), means])
    shape = (len(flat.kind), constant + 1)
    own = coo_array((numbers, (rows, columns)), shape=shape).tocsr()
    linear, forms, passed = flat.linear(), own, own
    while passed.nnz:  # once for each layer of sums and products between two max nodes
        passed = linear @ passed
        forms = forms + passed
    return forms


def _compact(matrix: Any) -> Any:
    return matrix.toarray() if matrix.shape[0] * matrix.shape[1] <= DENSE else matrix.tocsr()
