"""Noise: variables of the state that go their own way, and that nothing else depends on.

Attributes that are constant in an episode, the day of the week, readings of something else: such
variables predict themselves, so that tests of all that follows a state find them relevant, and
states multiply by them. They are found from the other end:

- The *system* is what decisions change, and what it changes in turn. All of it is kept.
- A variable outside of it *influences* it if the utility, the end of an episode or the next value
  of a variable of the system depends on it, given the decisions and those variables of the system
  that these depend on. Then it joins the system, and others may influence it.
- What is left is noise, if its values were compared often enough to say so. If decisions depend on
  it they must have been compared with each decision: an expert acts by what matters, so that each
  value is seen with decisions of its own, and the log cannot say what others would have led to.

A variable that only moves with the system by chance, as an attribute does that few episodes have,
influences nothing once the system is given. The tests of all variables together have a
false-discovery rate.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from rspmn.data.columns import Column
from rspmn.data.distinct import distinct_integers
from rspmn.data.keys import group_weights
from rspmn.learn.config import LearnConfig
from rspmn.learn.habits import count_next_values, is_compared, next_value_statistics, within
from rspmn.learn.structure.batched_growth import Fork, Growth, Need, run_alone
from rspmn.learn.structure.contingency import RARE, distinct_weights
from rspmn.learn.structure.count_ahead import run_for
from rspmn.learn.structure.independence import PairStatistics, pair_statistics
from rspmn.learn.structure.relevance import MOST_GIVEN, mean_p_values
from rspmn.learn.structure.rows import Rows, with_columns
from rspmn.learn.two_step import TwoSteps
from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints
from rspmn.values import unused

#: The level of all tests together that a variable belongs to the system.
LEVEL = 0.001
#: The false-discovery rate among the variables that are found to influence the system.
RATE = 0.05
#: The level at which a variable of the system is given in tests of a target.
GIVEN = 0.01
#: Each value of noise was compared with others in so many times `LearnConfig.enough` steps.
OFTEN = 5.0
#: Nothing is set aside from a log of fewer times `LearnConfig.enough` steps.
LEAST = 50.0
#: So many variables may be expected to explain rare events by chance where one is found that does.
CHANCE = 3.0
#: Tests look at no more distinct steps than this, spread over the log; those of pairs at fewer, so
#: that steps times pairs times targets are at most so many.
MOST_STEPS, MOST_PAIRED = 50_000, 30_000_000
#: Changes of numbers are tested in so many bins of equal weight.
BINS = 10
#: Pairs are not tested if fewer steps than this were left.
FEWEST_STEPS = 500


class Noise(NamedTuple):
    """Variables of the state that are noise, and others of which the tests say why they are not."""

    names: tuple[str, ...] = ()
    #: Their next values depend on decisions or on other variables, given their own values.
    changed: frozenset[str] = frozenset()


def noise_of(two: TwoSteps, config: LearnConfig, deadline: float = math.inf) -> Noise:
    """Return the variables of the state that are noise, if all that matters is discrete.

    None if that is not known by the `time.monotonic()` of the deadline.
    """
    schema, names = two.schema, tuple(two.rows.varying(two.schema.information_sets[0]))
    if config.availability == "observed" or not config.given_decisions:
        return Noise()
    if any(schema.information_sets[1:-1]) or two.rows.total < LEAST * config.enough:
        return Noise()
    if len(names) < 2:
        return Noise()
    two = replace(two, rows=_thinned(two.rows, MOST_STEPS))
    count_next_values(two, names)
    system = _System.of(two, names, deadline, config.keep)
    # numbers are tested by what they change by, which says less
    changed = frozenset(system.names) - two.table.binned
    system = run_for(system.two.rows, system.grown(config.enough))
    if any(name in two.table.binned for name in system.names):
        return Noise(changed=changed)
    acts = run_for(system.two.rows, system.acted_by())
    compared = (n for n in system.others if system.is_compared(n, config.enough, n in acts))
    return Noise(tuple(compared), changed)


def _thinned(rows: Rows, most: int) -> Rows:
    """Return every k-th row of many."""
    return rows if len(rows) <= most else rows.where(np.arange(0, len(rows), -(-len(rows) // most)))


@dataclass(frozen=True, eq=False)
class _System:
    """Variables of the state that matter, and others of which that is not known."""

    two: TwoSteps
    names: tuple[str, ...]
    others: tuple[str, ...]
    deadline: float  # the `time.monotonic()` from which on nothing is tested
    #: The tests that were made, by target and what was given: larger systems make few anew.
    tests: dict[tuple[str, frozenset[str]], dict[str, float]] = field(default_factory=dict)
    gains: dict[tuple[str, frozenset[str]], dict[str, tuple[float, float]]] = field(
        default_factory=dict
    )
    memo: dict[str, tuple[Ints, list[str]]] = field(init=False, repr=False, default_factory=dict)

    @classmethod
    def of(
        cls, two: TwoSteps, names: Sequence[str], deadline: float, keep: Sequence[str] = ()
    ) -> "_System":
        """Return what decisions change, what that changes, what laws are about, what to keep."""
        inside = {*keep, *(name for law in two.schema.laws for name in law.variables)}
        system = cls(two, (), tuple(names), deadline).joined_by([n for n in names if n in inside])
        new = (*two.schema.decisions, *system.names)
        while new and system.others:
            level, before = LEVEL / len(names) ** 2, new
            new = tuple(
                name for name in system.others
                if system.is_late or _changes(two, name, before, level)
            )  # fmt: skip
            system = system.joined_by(new)
        return system

    def joined_by(self, names: Sequence[str]) -> "_System":
        """Return the system with some of the others in it."""
        left = tuple(name for name in self.others if name not in names)
        known = self.deadline, self.tests, self.gains
        return _System(self.two, (*self.names, *names), left, *known)

    @property
    def is_late(self) -> bool:
        """Whether time has run out."""
        return time.monotonic() >= self.deadline

    def grown(self, few: float) -> Growth["_System"]:
        """Return the system with all that influences it; with all others if time runs out."""
        system = self
        while system.others:
            found = yield from system.influence()
            found = found or (yield from system.pair())
            found = found or (yield from system.explanation(few))
            if not found and not self.is_late:
                break
            system = system.joined_by(system.others if self.is_late else found)
        return system

    def influence(self) -> Growth[list[str]]:
        """Return the one of the others that influences the system most clearly, if any does.

        What seems to influence it beside that one may only move with it.
        """
        found = yield Fork([self._p_values(target) for target in self._targets()])
        p = np.array(found)  # [targets, others]
        p = np.minimum(1.0, p.min(axis=0) * len(p))
        return [self.others[int(p.argmin())]] if discoveries(p, RATE).any() else []

    def acted_by(self) -> Growth[set[str]]:
        """Return the others that a decision depends on, given what it depends on in the system.

        All of them if time runs out.
        """
        found = yield Fork([self._p_values(decision) for decision in self.two.schema.decisions])
        p = np.minimum(1.0, np.min(found, axis=0, initial=1.0) * len(found))
        clear = discoveries(p, RATE) | self.is_late
        return {name for name, acts in zip(self.others, clear.tolist(), strict=True) if acts}

    def pair(self) -> Growth[list[str]]:
        """Return two of the others that influence the system together, if any do: by X xor Z."""
        count, targets = len(self.others), self._targets()
        tests = count * count * len(targets)
        most = MOST_PAIRED // max(1, tests)
        if count < 2 or most < min(FEWEST_STEPS, len(self.two.rows)):
            return []
        best, level = [], RATE / tests
        every = np.arange(0, len(self.two.rows), -(-len(self.two.rows) // most))
        rows = self.two.rows.where(every)
        names = [n for n in self.others if rows.table.sizes[n] <= MOST_GIVEN]
        for target in targets:
            if self.is_late:
                break
            given = (yield from self._given(target))[0][every]
            found = yield Fork(
                [_tested(rows, self.others, target, within(rows, given, (n,))) for n in names]
            )
            for name, p in zip(names, found, strict=True):
                if p.min() < level:
                    best, level = [name, self.others[int(p.argmin())]], float(p.min())
        return best

    def _targets(self) -> list[str]:
        after = [self.two.after_of(name) for name in self.names]
        end = [name for name in self.two.after if name not in self.two.primed.values()]
        return [self.two.schema.utility, *end, *(name for name in after if name)]

    def _p_values(self, target: str) -> Growth[Array]:  # [others]
        """Return the level at which a target is found to depend on each of the others."""
        rows = self.two.rows
        if self.is_late:
            return np.ones(len(self.others))
        given, left = yield from self._given(target)
        more = [(), *((name,) for name in left), *([tuple(left)] if len(left) > 1 else [])]
        p = yield Fork([self._tested(target, given, left, names) for names in more])
        if target == self.two.schema.utility and target in rows.table.binned:
            p += [np.array(mean_p_values(rows, self.others, target, given))]
        return np.asarray(np.min(p, axis=0) * len(p))

    def _tested(
        self, target: str, given: Ints, left: list[str], names: tuple[str, ...]
    ) -> Growth[Array]:  # [others]
        """Return the p-values of all others, given some that are left besides what is given."""
        depends = set(self.names) - set(left)
        known = self.tests.setdefault((target, frozenset(depends | set(names))), {})
        new = [name for name in self.others if name not in known]
        if new:
            rows = self.two.rows
            strata = within(rows, given, names) if names else given
            p = yield from _tested(rows, new, target, strata)
            known.update(zip(new, p.tolist(), strict=True))
        return np.array([known[name] for name in self.others])

    def _gain(
        self, target: str, left: list[str], strata: Ints
    ) -> Growth[tuple[Array, Array]]:  # [left]
        """Return how clearly a target depends on variables that are left: p, and what G exceeds."""
        given = frozenset(self.names) - set(left)
        known = self.gains.setdefault((target, given), {})
        new = [name for name in left if name not in known]
        if new:
            yield [Need(self.two.rows, tuple(new), (target,), strata)]
            found = pair_statistics(self.two.rows, new, (target,), strata)
            excess = (found.g - found.freedom)[:, 0].tolist()
            numbers = zip(found.low_p_values()[:, 0].tolist(), excess, strict=True)
            known.update(zip(new, numbers, strict=True))
        p, excess = zip(*(known[name] for name in left), strict=True)
        return np.array(p), np.array(excess)

    def _given(self, target: str) -> Growth[tuple[Ints, list[str]]]:
        """Return the strata of decisions and of what a target depends on in the system.

        Of the decisions those that come before it. Also the variables of the system that it does
        not depend on, given the others.
        """
        if target in self.memo:
            return self.memo[target]
        rows, left = self.two.rows, list(self.names)
        before = list(takewhile(lambda name: name != target, self.two.schema.decisions))
        strata = np.unique(rows.joint_codes(before), return_inverse=True)[1]
        while left:
            p, gain = yield from self._gain(target, left, strata)
            clear = p < GIVEN / len(left)
            if not clear.any():
                break
            excess = np.where(clear, gain, -np.inf)
            strata = within(rows, strata, (left.pop(int(excess.argmax())),))
        self.memo[target] = strata, left
        return strata, left

    def explanation(self, few: float) -> Growth[list[str]]:
        """Return the one of the others that may explain what the system does not, if any does.

        If the system determines a target in all but a few steps of the log, these are too few for
        tests, and likely something is missing in it: a variable given which the target is
        determined in these steps too.
        """
        rows = self.two.rows
        given = within(rows, rows.joint_codes(self.two.schema.decisions), self.names)
        best, chance = [], CHANCE / len(self.others)
        for target in self._targets():
            if self.is_late or not 0 < _unexplained(rows, target, given) < few:
                continue
            p = yield from _tested(rows, self.others, target, given, exact=True)
            for k in np.flatnonzero(p < chance).tolist():
                name = self.others[k]
                if p[k] < chance and not _unexplained(rows, target, within(rows, given, (name,))):
                    best, chance = [name], float(p[k])
        return best

    def is_compared(self, name: str, enough: float, by_decision: bool) -> bool:
        """Return whether each value was often seen beside others, what matters being the same.

        If decisions depend on the variable, with each of them, so often that tests count it.
        """
        decisions = self.two.schema.decisions if by_decision else ()
        often = RARE if by_decision else OFTEN * enough
        return all(
            is_compared(self.two.rows, name, decisions, run_alone(self._given(t))[0], often)
            for t in self._targets()
        )


def _tested(
    rows: Rows, names: Sequence[str], target: str, strata: Ints, *, exact: bool = False
) -> Growth[Array]:  # [names]
    """Return the p-values that a target depends on variables, from strata in which it varies.

    Unless all are to be exact, high ones may be 1.
    """
    stratum = distinct_integers(strata)[1]
    codes, size = rows.codes(target), rows.table.sizes[target]
    key = (stratum * size + codes)[codes >= 0]
    seen = distinct_weights(key, np.ones(len(key)))[0] if len(key) else key
    varies = (np.bincount(seen // size, minlength=int(stratum.max()) + 1) > 1)[stratum]
    if not varies.any():
        return np.ones(len(names))
    rows, given = rows.where(varies), stratum[varies]
    yield [Need(rows, tuple(names), (target,), given)]
    found = pair_statistics(rows, names, (target,), given)
    return (found.p_values() if exact else found.low_p_values())[:, 0]


def _unexplained(rows: Rows, target: str, strata: Ints) -> float:
    """Return the weight of the rows whose target is not the most frequent one of their stratum."""
    known = rows.codes(target) >= 0
    codes, weights = rows.codes(target)[known], rows.weights[known]
    cell, weight = np.unique(strata[known] * rows.table.sizes[target] + codes, return_inverse=True)
    of_cell = group_weights(weight, weights)
    stratum = np.unique(cell // rows.table.sizes[target], return_inverse=True)[1]
    most = np.zeros(int(stratum.max(initial=-1)) + 1)
    np.maximum.at(most, stratum, of_cell)
    return float(of_cell.sum() - most.sum())


def _changes(two: TwoSteps, name: str, by: Sequence[str], level: float) -> bool:
    """Return whether the next value of a variable depends on others, given its value."""
    after, rows = two.after_of(name), two.rows
    found: PairStatistics | None
    if after is not None and name in rows.table.binned:
        change = unused("change", rows.table.columns)
        rows = with_columns(rows, {change: _change(rows, name, after)})
        found = pair_statistics(rows, by, (change,), rows.strata_of(name))
    else:
        found = next_value_statistics(two, name, by)
    return found is not None and bool(found.significant(level).any())


def _change(rows: Rows, name: str, after: str) -> Column:
    """Return the next number less what the number itself predicts linearly, in bins.

    Bins of the number alone would not do: what is in one bin before may be in two after, and of an
    attribute these are different episodes.
    """
    before, next_one = (rows.table.columns[n].numbers() for n in (name, after))
    known = ~np.isnan(before) & ~np.isnan(next_one)
    codes = np.where(known, 0, -1).astype(np.int32)
    x, y = before[known], next_one[known]
    slope = np.cov(x, y)[0, 1] / max(float(np.var(x, ddof=1)), 1e-300) if len(x) > 1 else 0.0
    rest = y - slope * x
    if len(x) > 1 and np.std(rest) > 1e-9 * np.std(y):
        borders = np.unique(np.quantile(rest, np.arange(1, BINS) / BINS))
        codes[known] = np.searchsorted(borders, rest, side="right")
    return Column(Kind.CATEGORICAL, codes, tuple(range(BINS)))


def discoveries(p: Array, rate: float) -> Bools:
    """Return which of some tests are significant at a false-discovery rate.

    The rule is that of Benjamini and Hochberg: the k smallest p-values, for the largest k of which
    the last is at most k/n of the rate.

    >>> discoveries(np.array([0.2, 0.001, 0.03]), 0.05).tolist()
    [False, True, True]
    """
    order = np.argsort(p)
    passed = np.flatnonzero(p[order] <= rate * np.arange(1, len(p) + 1) / len(p))
    found = np.zeros(len(p), dtype=bool)
    found[order[: passed[-1] + 1 if len(passed) else 0]] = True
    return found
