"""The recursion of LearnSPMN (Melibari et al.) along the order of a schema.

A decision becomes a max node over the values seen. In an information set, variables that are
irrelevant for what follows become factors; if all are relevant, the rows are clustered into a sum
node. What follows the last decision is the caller's: LearnSPN for single decisions, LearnSPN and
the successor state for recurrent ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import numpy as np

from rspmn.learn.structure.batched_growth import Fork, Growth, Need, run_alone, run_together
from rspmn.learn.structure.classes import fit_classes, is_number
from rspmn.learn.structure.count_ahead import count_ahead
from rspmn.learn.structure.independence import GTest, components
from rspmn.learn.structure.learn_spn import grow_spn
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.relevance import relevant_variables, with_dependents
from rspmn.learn.structure.rows import Rows
from rspmn.learn.structure.split import BehaviouralSplit
from rspmn.learn.structure.targets import targets_after
from rspmn.schema import Schema
from rspmn.types import Ints
from rspmn.values import Value


class AfterDecision(Protocol):
    """Adds what follows the last decision."""

    @property
    def recurs(self) -> bool:
        """Whether the next state follows."""
        ...

    @property
    def beyond(self) -> tuple[str, ...]:
        """The utility and what comes after it: targets besides the last information set."""
        ...

    def __call__(self, learner: Learner, rows: Rows, names: tuple[str, ...], depth: int) -> int:
        """Add the network of the last set's variables `names` and of all that is beyond."""
        ...

    def certain(self, learner: Learner, rows: Rows, starts: Ints) -> dict[int, int]:
        """Add what follows those values of the last decision of which nothing but a mean is asked.

        Rows are sorted by value, and those of each start at some. Returned are nodes by number of
        the value. The other values are added one by one.
        """
        ...


def grow_spmn(learner: Learner, schema: Schema, rows: Rows, finish: AfterDecision) -> int:
    """Add the network of some rows; return its root."""
    growth = _Growth(learner, schema, finish)
    return _run(learner, growth.information(rows, 0, schema.information_sets[0], 0))


def grow_decisions(learner: Learner, schema: Schema, rows: Rows, finish: AfterDecision) -> int:
    """Add the network of some rows of one state, from the first decision on."""
    growth = _Growth(learner, schema, finish)
    return _run(learner, growth.decision(rows, 0, 0))


def _run(learner: Learner, growth: Growth[int]) -> int:
    """Run a growth: branches together if tests look at counts, unless a budget is spent on them."""
    config = learner.config
    counts = isinstance(config.independence, GTest)
    counts &= isinstance(config.clustering, BehaviouralSplit)
    if counts and config.max_nodes is None and config.max_seconds is None:
        return run_together(growth, count_ahead)
    return run_alone(growth)


def with_missing_cluster(rows: Rows, clusters: list[Rows], names: Sequence[str]) -> list[Rows]:
    """Add a cluster of the rows in which the variable that divides them is missing.

    Before the first decision such rows are left out: their state is unknown, unless the absence of
    the variable is part of it. After a decision leaving them out would select among outcomes: a
    result may be missing because of the outcome.
    """
    lost = rows.without(clusters)
    if not len(lost):
        return clusters
    gone = [n for n in names if lost.column(n).missing.all() and not rows.column(n).missing.all()]
    return [*clusters, lost.marked_absent(gone)]


@dataclass(frozen=True, eq=False)
class _Growth:
    """The recursion: `place` numbers an information set, `depth` counts the sums above."""

    learner: Learner
    schema: Schema
    finish: AfterDecision

    def information(
        self, rows: Rows, place: int, names: tuple[str, ...], depth: int
    ) -> Growth[int]:
        """Add the remaining variables of an information set, and all that follows it."""
        learner = self.learner
        if place == len(self.schema.decisions):
            root = self.finish(learner, rows, names, depth)
            learner.report_done(rows.total)
            return root
        varying = rows.varying(names)
        constant = [name for name in names if name not in varying]
        if constant:
            names = tuple(varying)
            factors = learner.leaves(rows, constant)
            if not names:
                return (yield from self.with_factors(rows, place, factors, depth))
            return learner.product(
                [*factors, (yield from self.information(rows, place, names, depth))]
            )
        if not names:
            return (yield from self.decision(rows, place, depth))
        if learner.out_of_budget(depth):
            leaves = learner.leaves(rows, names)
            return (yield from self.with_factors(rows, place, leaves, depth))
        return (yield from self.varying(rows, place, names, depth))

    def varying(self, rows: Rows, place: int, names: tuple[str, ...], depth: int) -> Growth[int]:
        """Add variables with several values: factor irrelevant ones out, or cluster the rows."""
        learner, config = self.learner, self.learner.config
        in_classes = config.classes and not self.finish.recurs
        if in_classes and (
            len(self.schema.decisions) == 1 or any(is_number(rows, name) for name in names)
        ):
            return (yield from self.classes(rows, place, names, depth))
        targets = targets_after(
            rows, self.schema, place, self.finish.beyond,
            config.given_decisions, config.enough, self.finish.recurs and place == 0,
        )  # fmt: skip
        relevant = yield from relevant_variables(learner, rows, names, targets)
        kept = yield from with_dependents(learner, rows, names, relevant)
        absences = [self.schema.informative.get(name) for name in kept]
        kept = tuple(name for name in names if name in kept or name in absences)
        free = tuple(name for name in names if name not in kept)
        if free:
            factors = yield from self.factors(rows, free, depth)
            if kept:
                below = yield from self.information(rows, place, kept, depth)
                return learner.product([*factors, below])
            return (yield from self.with_factors(rows, place, factors, depth))
        clusters = config.clustering(rows, relevant, targets, learner.rng)
        if len(clusters) < 2:  # nothing is left to divide by
            factors = yield from self.factors(rows, names, depth)
            return (yield from self.with_factors(rows, place, factors, depth))
        if place > 0 or self._lost_is_told(rows, clusters, names):
            clusters = with_missing_cluster(rows, clusters, names)
        totals = [part.total for part in clusters]
        learner.report_done(rows.total - sum(totals))  # rows left out
        fork = Fork([self.information(part, place, names, depth + 1) for part in clusters])
        del clusters  # so that each is freed when its own growth ends
        return learner.mixture(totals, (yield fork))

    def _lost_is_told(self, rows: Rows, clusters: list[Rows], names: tuple[str, ...]) -> bool:
        """Say whether rows are in no cluster because a variable is missing whose absence tells."""
        informative = [name for name in names if name in self.schema.informative]
        lost = rows.without(clusters) if informative else rows.where(np.zeros(len(rows), bool))
        return len(lost) > 0 and any(lost.column(name).missing.all() for name in informative)

    def classes(self, rows: Rows, place: int, names: tuple[str, ...], depth: int) -> Growth[int]:
        """Add variables with several values as leaves of soft classes."""
        learner, later = self.learner, self.schema.decisions[place:]
        count = min(int(learner.config.classes or 0), len(rows))
        found = fit_classes(
            rows, names, rows.joint_codes(later), self.schema.utility, count, learner.rng
        )
        parts = found.parts
        if any(self.schema.information_sets[place + 1 :]):  # then these are not the last means
            parts = [part.with_prior(None) for part in parts]
        below = yield Fork([self.decision(part, place, depth) for part in parts])
        children = [
            learner.product([*map(learner.builder.add, leaves), decided])
            for leaves, decided in zip(found.leaves, below, strict=True)
        ]
        learner.info.sums += 1
        return learner.builder.sum(children, found.weights.tolist())

    def decision(self, rows: Rows, place: int, depth: int) -> Growth[int]:
        """Add max nodes over the values of the next decisions that were seen.

        Of a recurrent problem they are all decisions before anything else is observed.
        """
        end = self._next_observation(place)
        decisions, names = self.schema.decisions[place:end], self.schema.information_sets[end]
        joint = rows.joint_codes(decisions)
        order = np.argsort(joint, kind="stable")
        rows, joint = rows.where(order), joint[order]
        starts = np.flatnonzero(np.append(True, joint[1:] != joint[:-1]))
        last = end == len(self.schema.decisions) and not names
        known = self.finish.certain(self.learner, rows, starts) if last and len(starts) > 1 else {}
        stops = [*starts[1:].tolist(), len(rows)]
        parts = [slice(*ends) for ends in zip(starts.tolist(), stops, strict=True)]
        others = [k for k in range(len(parts)) if k not in known]
        grown = yield Fork(
            [self.information(rows.where(parts[k]), end, names, depth) for k in others]
        )
        known |= dict(zip(others, grown, strict=True))
        domains = [rows.table.columns[name].domain for name in decisions]
        made = rows.table.codes.take(rows.index[starts], decisions).tolist()
        values = ([d[c] for d, c in zip(domains, codes, strict=True)] for codes in made)
        return self._max(decisions, [(of, known[k]) for k, of in enumerate(values)])

    def _next_observation(self, place: int) -> int:
        """Return the number of the information set before which decisions are made together."""
        end = place + 1
        while self.finish.recurs and end < len(self.schema.decisions):
            if self.schema.information_sets[end]:
                break
            end += 1
        return end

    def _max(self, decisions: tuple[str, ...], branches: list[tuple[list[Value], int]]) -> int:
        """Add the max nodes of several decisions, one below the other; values are in order."""
        if not decisions:
            return branches[0][1]
        parts = {
            value: self._max(decisions[1:], [(values[1:], child) for values, child in several])
            for value, several in groupby(branches, key=lambda branch: branch[0][0])
        }
        return self.learner.builder.max(decisions[0], parts)

    def with_factors(
        self, rows: Rows, place: int, factors: Sequence[int], depth: int
    ) -> Growth[int]:
        """Add the next decision beside the factors before it."""
        return self.learner.product([*factors, (yield from self.decision(rows, place, depth))])

    def factors(self, rows: Rows, names: tuple[str, ...], depth: int) -> Growth[list[int]]:
        """Add irrelevant variables, those that depend on each other together."""
        yield [Need(rows, names, names, rows.together)]
        groups = components(names, self.learner.test(rows, names, names, rows.together).dependent)
        return [grow_spn(self.learner, rows, group, depth) for group in groups]
