"""The Bellman update compiled: the template without evidence is linear maps between maxima.

Without evidence every leaf has likelihood 1. So what reaches a max node is linear in what the
interface nodes of the next step and the max nodes below are worth: one matrix for each level of
decisions, one for the roots. `rspmn.infer.bellman` is the same thing node by node;
`compile_bellman` makes the matrices.

Factored latents are unknowns too: what they are worth follows from what the interface nodes are,
before all else; see `rspmn.infer.compiled.expectation`.

Where it is not known what follows, a *share* goes with each number: averages are taken over what is
known, weighed by the shares, as in `rspmn.infer.evaluation`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rspmn.circuit import Max
from rspmn.circuit.node_arrays import KINDS, NodeArrays
from rspmn.infer.compiled.expectation import Expectation
from rspmn.infer.compiled.linear_forms import Forms, Level
from rspmn.infer.criterion import (
    MEU,
    TIE,
    Criterion,
    best_worths,
    competing_of_each,
    decided,
)
from rspmn.types import Array, Bools, Ints


@dataclass(frozen=True, eq=False)
class Choices:
    """The best branch of every max node, and what it is worth."""

    values: Array  # [unknowns]
    delays: Array  # [unknowns], how late that is earned
    shares: Array | None  # [unknowns], how much is known of that; None if all
    worth: tuple[Array, ...]  # of each level, [branches]
    known: tuple[Array | None, ...]  # of each level, [branches]
    delay: tuple[Array, ...]  # of each level, [branches]
    best: tuple[Bools, ...]  # of each level, [branches]: which tie for the best
    chosen: tuple[Ints, ...]  # of each level, [max nodes]: a branch of the level
    #: Of each level, how often each branch is taken where states of a max node do differently, by
    #: rules of the criterion; None where all do the same. [branches]
    taken: tuple[Array | None, ...]

    @property
    def are_divided(self) -> bool:
        """Whether states of one max node do differently, by rules of the criterion."""
        shares = (taken for taken in self.taken if taken is not None)
        return any(bool(((taken > 0) & (taken < 1 - 1e-9)).any()) for taken in shares)


@dataclass(frozen=True, eq=False)
class Chain:
    """The template with its choices fixed: what each interface node earns, and where it leads."""

    rewards: Array  # [interfaces]
    follows: Any  # sparse [interfaces, interfaces], rows sum to 1


@dataclass(frozen=True, eq=False)
class SharedLatents:
    """Factored latents that share their factors."""

    slots: slice  # their places among all unknowns
    expect: Expectation  # from what the interface nodes are worth


@dataclass(frozen=True, eq=False)
class Bellman:
    """A template as matrices.

    Unknowns are the interface nodes, then factored latents, then the max nodes by level.
    """

    interfaces: int
    unknown: int | None  # the interface node of unknown successors
    levels: tuple[Level, ...]  # innermost decisions first
    roots: Forms  # a row for each interface node
    has_edge: bool  # whether it is not known somewhere what follows
    factored: tuple[SharedLatents, ...] = ()

    @cached_property
    def size(self) -> int:
        """The number of unknowns."""
        spread = sum(len(part.expect.of_rows) for part in self.factored)
        return self.interfaces + spread + sum(len(level.nodes) for level in self.levels)

    def all_known(self, criterion: Criterion) -> bool:
        """Return whether all decisions lead to something known; a criterion may allow nothing."""
        return not self.has_edge and criterion is MEU

    def taken(self, choices: Choices, arrays: NodeArrays) -> Bools:  # [edges]
        """Return all edges of the template but those of branches that are not chosen."""
        found: Bools = (arrays.kind != KINDS[Max])[arrays.parents]
        for level, best, chosen in zip(self.levels, choices.best, choices.chosen, strict=True):
            edge = arrays.starts[level.nodes] + chosen - level.starts
            found[edge] = best[chosen]
        return found

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
        values, shares = self._future(after, discount, last), self._shares(after, last, criterion)
        self.spread(values, shares)
        for level in self.levels:
            worth, known = level.worth(values, shares)
            if known is None or shares is None:
                values[level.slots] = best_worths(criterion, worth, level.branches)
                continue
            worth = competing_of_each(worth, known, level.branches)
            settled = decided(criterion, worth, level.branches)
            values[level.slots] = settled.values
            shares[level.slots] = level.shares(known, settled.best)
        found = self._at_roots(values, shares)
        return found if shares is None else found[self._copied(found)]

    def values(
        self, horizon: int, discount: float = 1.0, criterion: Criterion = MEU
    ) -> Array:  # [horizon + 1, interfaces]
        """Return what the interface nodes are worth with 0, 1, … steps to go, by all updates.

        `rspmn.infer.compiled.finite_horizon` stops where the rest is known.
        """
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
                values[self.unknown] = 0.0  # its share is 0
        return values

    def spread(self, numbers: Array, shares: Array | None = None) -> None:
        """Set factored latents to the mean of the interface nodes that they lead to.

        It is the mean of those that are known, and their share is set too.
        """
        for part in self.factored:
            given = numbers[: self.interfaces]
            if shares is None or shares[part.expect.factors.to].all():
                numbers[part.slots] = part.expect(given)
                continue
            known = shares[: self.interfaces]
            shares[part.slots] = total = part.expect(known)
            found = part.expect(known * np.where(known > 0, given, 0.0))
            numbers[part.slots] = found / np.where(total > 0, total, 1.0)

    def _shares(self, after: Array, last: bool, criterion: Criterion) -> Array | None:  # [unknowns]
        """Return how much is known of each unknown: all, but of unknown successors nothing.

        Nor of any, where no interface node has a decision that leads to something known.
        """
        if self.all_known(criterion):
            return None
        shares = np.ones(self.size)
        if not last:
            shares[: self.interfaces][np.isneginf(after)] = 0.0
            if self.unknown is not None:
                shares[self.unknown] = 0.0
        return shares

    def _at_roots(self, values: Array, shares: Array | None) -> Array:  # [interfaces]
        return self.known_at_roots(values, shares)[0]

    def known_at_roots(
        self, values: Array, shares: Array | None
    ) -> tuple[Array, Array]:  # [interfaces] each
        """Return what interface nodes are worth, given all unknowns, and how much is known of it.

        A frontier is worth -∞.
        """
        found, known = self.roots(values, shares)
        found = found + self.roots.earned
        if known is None:
            return found, np.ones(len(found))
        return np.where(known > 0, found, -np.inf), known

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
        values, shares = self._future(after, discount, last), self._shares(after, last, criterion)
        late = np.zeros(self.size)
        if delays is not None:
            promised = np.where(np.isfinite(after), after, 0.0)
            late = self._future(delays + promised, discount, last)
        self.spread(values, shares)
        if delays is not None:
            self.spread(late, shares)
        kept: list[tuple[Array, Array | None, Array, Bools, Ints, Array | None]] = []
        for level in self.levels:
            worth, known = level.worth(values, shares)
            ranked = worth if known is None else competing_of_each(worth, known, level.branches)
            found = decided(criterion, ranked, level.branches, tie, within)
            values[level.slots] = found.values
            if shares is not None and known is not None:
                shares[level.slots] = level.shares(known, found.best)
            delay = np.zeros(len(worth)) if delays is None else level.forms(late, shares)[0]
            chosen, taken = found.taken(delay, level.branches)
            late[level.slots] = level.at_nodes(delay, chosen, taken)
            kept.append((worth, known, delay, found.best, chosen, taken))
        lists = zip(*kept, strict=True) if kept else [()] * 6
        worths, knowns, delay_of, bests, chosens, takens = (tuple(each) for each in lists)
        return Choices(values, late, shares, worths, knowns, delay_of, bests, chosens, takens)

    def settle(self, choices: Choices) -> tuple[Array, Array]:  # [interfaces] each
        """Return what the interface nodes are worth with these choices, and how late."""
        found = self._at_roots(choices.values, choices.shares)
        late = self.roots(choices.delays, choices.shares)[0]
        if choices.shares is None:
            return found, late
        copied = self._copied(found)
        return found[copied], late[copied]

    def follow(self, choices: Choices, after: Array) -> Array:  # [interfaces]
        """Return the mean of numbers of the interface nodes that choices lead to.

        It is the product of the chain of the choices with the numbers, without the chain.
        """
        numbers, shares = self._future(after, 1.0, last=False), choices.shares
        self.spread(numbers, None if shares is None else shares.copy())
        for level, chosen, taken in zip(self.levels, choices.chosen, choices.taken, strict=True):
            found, _ = level.forms(numbers, shares)
            numbers[level.slots] = level.at_nodes(found, chosen, taken)
        return np.asarray(self.roots(numbers, shares)[0][self.copied(choices)])

    def supports(
        self, choices: Choices, after: Array, discount: float, last: bool
    ) -> tuple[Array, tuple[Array, ...]]:  # [interfaces]; of each level, [branches]
        """Return the shares that are supported to the end, given those of a step later.

        With a discount, the episode goes on with that probability.
        """
        found = np.ones(self.size)
        if not last:
            found[: self.interfaces] = 1 - discount + discount * after
            if self.unknown is not None:
                found[self.unknown] = 0.0
            self.spread(found)
        of_levels = []
        parts = zip(self.levels, choices.best, choices.chosen, choices.taken, strict=True)
        for level, best, chosen, taken in parts:
            of_branches = np.where(level.untried, 0.0, level.forms.sums(found))
            of_nodes = level.at_nodes(of_branches, chosen, taken)
            found[level.slots] = np.where(best[chosen], of_nodes, 0.0)
            of_levels.append(of_branches)
        return self.roots.sums(found), tuple(of_levels)

    def chain(self, choices: Choices) -> Chain:
        """Return the Markov chain of choices; a frontier node does as the worst of others."""
        rewards, follows = self._composed(choices, choices.shares)
        copied = self.copied(choices)
        from scipy.sparse import csr_array

        return Chain(rewards[copied], csr_array(follows[copied]))

    def copied(self, choices: Choices) -> Ints:  # [interfaces]
        """Return the interface node that each one does as: itself or, for a frontier, the worst."""
        return self._copied(self._at_roots(choices.values, choices.shares))

    def leaking_chain(self, choices: Choices) -> Any:  # sparse [interfaces, interfaces]
        """Return where choices lead to; what is not known is lost, so rows sum to less than 1."""
        shares = np.ones(self.size)
        if self.unknown is not None:
            shares[self.unknown] = 0.0
        for level, best, chosen in zip(self.levels, choices.best, choices.chosen, strict=True):
            shares[level.slots] = best[chosen] & ~level.untried[chosen]
        return self._composed(choices, shares, scaled=False)[1]

    def _composed(
        self, choices: Choices, shares: Array | None, scaled: bool = True
    ) -> tuple[Array, Any]:  # [interfaces], sparse [interfaces, interfaces]
        """Return what is earned with choices and where they lead, through all levels.

        Unknowns count by their shares and, if `scaled`, those below a node for all of it.
        """
        from scipy.sparse import csr_array, diags_array, identity, vstack

        def weighed(forms: Forms, picked: Any, below: int) -> Any:
            found = csr_array(csr_array(picked @ csr_array(forms.matrix))[:, :below])
            if shares is None:
                return found
            found = csr_array(found @ diags_array(shares[:below]))
            known = found.sum(axis=1)
            scale = np.divide(1.0, known, out=np.zeros(len(known)), where=known > 0)
            return csr_array(diags_array(scale) @ found) if scaled else found

        below = self.levels[0].slots.start if self.levels else self.size
        leads, earns = [identity(self.interfaces, format="csr")], [np.zeros(below)]
        leads += [part.expect.matrix(self._used(part, choices)) for part in self.factored]
        for level, chosen, taken in zip(self.levels, choices.chosen, choices.taken, strict=True):
            picked = level.rows(chosen, taken)
            rows = weighed(level.forms, picked, level.slots.start)
            leads.append(rows @ vstack(leads, format="csr"))
            earns.append(rows @ np.concatenate(earns) + picked @ level.forms.earned)
        roots = weighed(self.roots, identity(self.interfaces, format="csr"), self.size)
        rewards = roots @ np.concatenate(earns) + self.roots.earned
        return rewards, csr_array(roots @ vstack(leads, format="csr"))

    def _used(self, part: SharedLatents, choices: Choices) -> Bools:  # [products]
        """Return which factored latents some choices may lead to."""
        from scipy.sparse import csr_array

        used = np.zeros(self.size, dtype=bool)
        used[csr_array(self.roots.matrix).indices] = True
        for level, chosen, taken in zip(self.levels, choices.chosen, choices.taken, strict=True):
            picked = level.rows(chosen, taken)
            used[csr_array(picked @ csr_array(level.forms.matrix)).indices] = True
        return used[part.slots]
