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
from rspmn.infer.branches import Branches, Context
from rspmn.infer.compiled.layers import Flat, flatten
from rspmn.infer.criterion import (
    MEU,
    TIE,
    Criterion,
    best_branches,
    best_worths,
    has_ties,
    scored,
    soonest_of_each,
)
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
    untried: Bools  # [branches], which are UNKNOWN themselves: no decision was ever tried there
    branches: Branches

    def worth(self, values: Array, last: bool, has_edge: bool = True) -> Array:  # [branches]
        """Return what every branch is worth."""
        worth = _applied(self.matrix, values, has_edge)
        worth += self.earned
        if has_edge:
            worth[self.untried if last else self.closed] = -np.inf
        return worth


@dataclass(frozen=True, eq=False)
class Choices:
    """The best branch of every max node, and what it is worth."""

    values: Array  # [unknowns]
    delays: Array  # [unknowns], how late that is earned
    worth: tuple[Array, ...]  # of each level, [branches]
    delay: tuple[Array, ...]  # of each level, [branches]
    best: tuple[Bools, ...]  # of each level, [branches]: which tie for the best
    chosen: tuple[Ints, ...]  # of each level, [max nodes]: a branch of the level
    has_ties: bool  # whether some max node has several best branches


@dataclass(frozen=True, eq=False)
class Chain:
    """The template with its choices fixed: what each interface node earns, and where it leads."""

    rewards: Array  # [interfaces]
    follows: Any  # sparse [interfaces, interfaces], rows sum to 1


@dataclass(frozen=True, eq=False)
class Bellman:
    """A template as matrices. Unknowns are the interface nodes, then the max nodes by level."""

    interfaces: int
    unknown: int | None  # the interface node of unknown successors
    levels: tuple[Level, ...]  # innermost decisions first
    roots: Any  # [interfaces, unknowns]
    earned: Array  # [interfaces]
    has_edge: bool  # whether a value can be -∞ whatever is allowed

    @cached_property
    def size(self) -> int:
        """The number of unknowns."""
        return self.interfaces + sum(len(level.nodes) for level in self.levels)

    # ---- values --------------------------------------------------------------------

    def update(
        self,
        after: Array,
        discount: float = 1.0,
        last: bool = False,
        criterion: Criterion = MEU,
    ) -> Array:  # [interfaces]
        """Return what the interface nodes are worth, given what they are worth a step later.

        `last` says that nothing follows this step.
        """
        values = self._future(after, discount, last)
        has_edge = self._has_edge(criterion)
        for level in self.levels:
            worth = level.worth(values, last, has_edge)
            values[level.slots] = best_worths(criterion, worth, level.branches)
        found = self._at_roots(values, has_edge)
        return found if not has_edge else found[self._copied(found)]

    def value(
        self, horizon: int, discount: float = 1.0, criterion: Criterion = MEU
    ) -> Array:  # [interfaces]
        """Return what the interface nodes are worth with so many steps to go."""
        found = np.zeros(self.interfaces)
        for steps in range(horizon):
            found = self.update(found, discount, steps == 0, criterion)
        return found

    def values(
        self, horizon: int, discount: float = 1.0, criterion: Criterion = MEU
    ) -> Array:  # [horizon + 1, interfaces]
        """Return what the interface nodes are worth with 0, 1, … steps to go."""
        found = np.zeros((horizon + 1, self.interfaces))
        for steps in range(1, horizon + 1):
            found[steps] = self.update(found[steps - 1], discount, steps == 1, criterion)
        return found

    def _future(self, after: Array, discount: float, last: bool) -> Array:  # [unknowns]
        """Return the discounted future, max nodes still at 0."""
        values = np.zeros(self.size)
        if not last:
            np.multiply(after, discount, out=values[: self.interfaces])
            if self.unknown is not None:
                values[self.unknown] = 0.0  # branches that lead there are closed
        return values

    def _has_edge(self, criterion: Criterion) -> bool:
        return self.has_edge or criterion is not MEU  # another one may allow nothing somewhere

    def _at_roots(self, values: Array, has_edge: bool) -> Array:  # [interfaces]
        return np.asarray(_applied(self.roots, values, has_edge) + self.earned)

    def _copied(self, found: Array) -> Ints:  # [interfaces]
        """Return the interface node that each one is worth as much as.

        That is itself or, for frontier nodes, the worst of the others.
        """
        copied = np.arange(self.interfaces)
        lost = np.isneginf(found)
        if lost.any() and not lost.all():
            copied[lost] = np.argmin(np.where(lost, np.inf, found))
            if self.unknown is not None:
                copied[self.unknown] = self.unknown
        return copied

    # ---- choices -------------------------------------------------------------------

    def choose(
        self,
        after: Array,
        delays: Array | None,
        discount: float,
        last: bool,
        criterion: Criterion = MEU,
        tie: float = TIE,
        within: float = 0.0,
    ) -> Choices:
        """Return the best branches, given values and delays of the interface nodes a step later.

        Branches tie if their scores differ by no more than `tie` times the largest, or `within`.
        Without delays the first of those that tie is chosen.
        """
        values = self._future(after, discount, last)
        late = np.zeros(self.size)
        if delays is not None:
            promised = np.where(np.isfinite(after), after, 0.0)
            late = self._future(delays + promised, discount, last)
        has_edge = self._has_edge(criterion)
        kept: list[tuple[Array, Array, Bools, Ints]] = []
        for level in self.levels:
            worth = level.worth(values, last, has_edge)
            scores = scored(criterion, worth, level.branches)
            best, values[level.slots] = best_branches(worth, scores, level.branches, tie, within)
            delay = np.zeros(len(worth)) if delays is None else np.asarray(level.matrix @ late)
            chosen = soonest_of_each(best, delay, level.branches)
            late[level.slots] = delay[chosen]
            kept.append((worth, delay, best, chosen))
        worths, delay_of, bests, chosens = zip(*kept, strict=True) if kept else ((), (), (), ())
        pairs = zip(bests, self.levels, strict=True)
        ties = any(has_ties(best, level.branches) for best, level in pairs)
        return Choices(values, late, worths, delay_of, bests, chosens, ties)

    def settle(self, choices: Choices) -> tuple[Array, Array]:  # [interfaces] each
        """Return what the interface nodes are worth with these choices, and how late."""
        has_edge = bool(np.isneginf(choices.values).any())
        found = self._at_roots(choices.values, has_edge)
        late = np.asarray(self.roots @ choices.delays)
        if not has_edge:
            return found, late
        copied = self._copied(found)
        return found[copied], late[copied]

    def chain(self, choices: Choices) -> Chain:
        """Return the Markov chain of choices; a frontier node does as the worst of others."""
        from scipy.sparse import csr_array, identity, vstack

        leads = [identity(self.interfaces, format="csr")]
        earns = [np.zeros(self.interfaces)]
        for level, chosen in zip(self.levels, choices.chosen, strict=True):
            rows = csr_array(level.matrix)[chosen][:, : level.slots.start]
            leads.append(rows @ vstack(leads, format="csr"))
            earns.append(rows @ np.concatenate(earns) + level.earned[chosen])
        roots = csr_array(self.roots)
        follows = csr_array(roots @ vstack(leads, format="csr"))
        rewards = roots @ np.concatenate(earns) + self.earned
        copied = self._copied(self._at_roots(choices.values, has_edge=True))
        return Chain(rewards[copied], csr_array(follows[copied]))


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
    decisions = flat.heights([Max])[maxes]  # at and below each max node
    by_level = [maxes[decisions == count] for count in np.unique(decisions).tolist()]
    order = np.concatenate([*by_level, np.zeros(0, np.int64)]).astype(np.int64)
    forms = _linear_forms(template, flat, order)
    context = Context(template)
    levels, place = [], interfaces
    for nodes in by_level:
        edges, starts = flat.edges_of(nodes)
        rows = forms[flat.children[edges]]
        matrix, earned = rows[:, :-1], rows[:, [-1]].toarray().ravel()
        nothing = [template.nodes[i].values == (UNKNOWN,) for i in nodes.tolist()]
        counts = np.diff(np.append(starts, len(edges)))
        untried = closed = np.repeat(np.array(nothing, dtype=bool), counts)
        if unknown is not None:
            closed = untried | (matrix[:, [unknown]].toarray().ravel() > 0)
        slots = slice(place, place + len(nodes))
        branches = context.branches_of(nodes, starts)
        levels.append(
            Level(nodes, slots, _compact(matrix), earned, starts, closed, untried, branches)
        )
        place += len(nodes)
    roots = forms[flat.roots]
    return Bellman(
        interfaces, unknown, tuple(levels), _compact(roots[:, :-1]),
        roots[:, [-1]].toarray().ravel(), any(bool(level.closed.any()) for level in levels),
    )  # fmt: skip


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
