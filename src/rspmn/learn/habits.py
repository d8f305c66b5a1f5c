"""Habits: variables that the logger acted by, although nothing depends on them.

A protocol by ward, an action by weekday: where such a variable determines the action, its values
cannot be compared given the action, and tests of relevance find nothing, for or against it. So it
is set aside before structure is learned, if the log is consistent with two statements:

- it is *autonomous*: its next value depends on its value alone, not on actions or other variables;
- it has *no influence*: given the actions, neither the utility, nor the end of an episode, nor the
  next value of any other variable depends on it.

A dependence that vanishes once other variables are given is no influence: who always goes left in
ward 3 is often at the left edge there. Only variables that actions depend on are examined; all
others are left to the tests of relevance.

An expert acts by what matters, and if he never errs, a log says as little about that as about a
habit. So if values cannot be compared, a variable is set aside only if it looks like a habit:
nothing but this variable is acted by, and it is drawn anew, constant, or goes in turn.
"""

import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.data.distinct import distinct_integers
from rspmn.data.keys import group_weights
from rspmn.learn.config import LearnConfig
from rspmn.learn.structure.batched_growth import Need
from rspmn.learn.structure.count_ahead import count_ahead
from rspmn.learn.structure.independence import (
    PairStatistics,
    pair_statistics,
    pooled_codes,
    stratum_statistics,
)
from rspmn.learn.structure.relevance import MOST_GIVEN, mean_p_values
from rspmn.learn.structure.rows import Rows
from rspmn.learn.structure.targets import Later, targets_after
from rspmn.learn.two_step import TwoSteps
from rspmn.schema import Schema
from rspmn.types import Ints

#: The level of all tests about one variable together.
LEVEL = 0.001
#: If rows times variables squared are more, tests do not condition on each of the others.
LARGEST = 5_000_000
#: Where a dependence would speak for keeping a variable, it is found at this level.
DOUBT = 0.01
#: A dependence is weaker if its statistic is so many standard deviations below what it would be.
WEAKER = 1.645


def habits_of(
    two: TwoSteps,
    config: LearnConfig,
    deadline: float = math.inf,
    changed: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the variables of the state that the logger acted by and nothing depends on.

    None that was not examined before the `time.monotonic()` of the deadline. Variables that are
    `changed` by others are known not to be autonomous; those to keep may be among them.
    """
    names = tuple(two.rows.varying(two.schema.information_sets[0]))
    if config.availability == "observed" or not config.given_decisions or not names:
        return ()
    left_out = {name for law in two.schema.laws for name in law.variables} | {*changed}
    among = [
        n for n in names
        if n not in left_out and time.monotonic() < deadline and _is_autonomous(two, n, names)
    ]  # fmt: skip
    found: tuple[str, ...] = ()
    for name in acted_by(two.rows, two.schema, names, among) if among else ():
        others = tuple(n for n in names if n != name and n not in found)
        suspect = _Suspect(two, name, others, config.enough)
        if time.monotonic() < deadline and suspect.is_habit():
            found += (name,)
    return found


def _is_autonomous(two: TwoSteps, name: str, names: Sequence[str]) -> bool:
    """Return whether the next value of a variable depends on its value alone.

    That is found out sooner than whether it was acted by, and whether it depends on decisions
    sooner than whether on other variables.
    """
    others = tuple(other for other in names if other != name)
    level = LEVEL / (len(two.schema.decisions) + len(others))
    for causes in (two.schema.decisions, others):
        found = next_value_statistics(two, name, causes) if causes else None
        if found is not None and found.significant(level).any():
            return False
    return True


def acted_by(
    rows: Rows, schema: Schema, names: Sequence[str], among: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return the variables that decisions depend on, given earlier decisions of the step.

    Alone, given each other variable, or given all others. If `among` is given, only these are
    examined.
    """
    among = names if among is None else among
    found: dict[str, None] = {}
    several = [(), *((n,) for n in _given(rows, names))]
    level = LEVEL / (len(names) * (len(several) + 1) * max(1, len(schema.decisions)))
    for place, decision in enumerate(schema.decisions):
        made = rows.joint_codes(schema.decisions[:place])
        ahead = [within(rows, made, given) for given in several]
        count_ahead([Need(rows, tuple(among), (decision,), strata) for strata in ahead])
        for given, strata in zip(several, ahead, strict=True):
            left = [n for n in among if n not in found and n not in given]
            found |= _dependent(rows, left, decision, strata, level)
        for name in among if len(several) > 2 else ():
            if name not in found:
                strata = within(rows, made, [n for n in names if n != name])
                found |= _dependent(rows, [name], decision, strata, level)
    return tuple(n for n in names if n in found)


def _given(rows: Rows, names: Sequence[str]) -> list[str]:
    """Return the variables that tests condition on, one at a time; none if it took too long."""
    if len(names) < 2 or len(rows) * len(names) ** 2 > LARGEST:
        return []
    return [name for name in names if rows.table.sizes[name] <= MOST_GIVEN]


def _dependent(
    rows: Rows, names: Sequence[str], decision: str, strata: Ints, level: float
) -> dict[str, None]:
    """Return the variables that a decision depends on, given strata."""
    if not names:
        return {}
    found = pair_statistics(rows, names, (decision,), strata).significant(level)[:, 0]
    return {name: None for name, depends in zip(names, found.tolist(), strict=True) if depends}


def within(rows: Rows, strata: Ints, names: Sequence[str]) -> Ints:  # [rows]
    """Return strata, each divided by the joint value of more variables, and numbered."""
    codes = distinct_integers(rows.joint_codes(names))[1]
    return distinct_integers(strata * (int(codes.max(initial=0)) + 1) + codes)[1]


def is_compared(
    rows: Rows, name: str, decisions: Sequence[str], strata: Ints, enough: float
) -> bool:
    """Return whether each value of a variable was often seen beside others, with each decision.

    Beside others: in the same stratum, that of the decisions and of what else matters; as often as
    the value or the others were seen in it, whichever is less. A decision that was made at one
    value only says nothing, if there are others.
    """
    made, value, stratum = (
        distinct_integers(codes)[1]
        for codes in (rows.joint_codes(decisions), rows.codes(name), strata)
    )
    choices = int(made.max()) + 1
    size = (int(value.max()) + 1) * choices
    cell, at = distinct_integers(stratum * size + value * choices + made)
    own = group_weights(at, rows.weights)
    whole = group_weights(stratum, rows.weights)[cell // size]
    taken, compared = (
        group_weights(cell % size, w, size).reshape(-1, choices)
        for w in (own, np.minimum(own, whole - own))
    )
    often, never = compared >= enough, taken == 0  # [values, choices]
    by_one = (~never).sum(axis=0) == 1  # [choices]
    return bool((often | never | by_one).all() and often.any(axis=1).all())


@dataclass(frozen=True, eq=False)
class _Suspect:
    """An autonomous variable that the logger acted by."""

    two: TwoSteps
    name: str
    others: tuple[str, ...]  # variables of the state that may matter
    enough: float  # steps in which a value can be compared with others

    @property
    def rows(self) -> Rows:
        return self.two.rows

    def is_habit(self) -> bool:
        """Return whether it has no influence, as far as the log says.

        Where the log says little, it must look like a habit.
        """
        if self.has_influence():
            return False
        return self.is_compared() or (self.is_exogenous() and self.is_acted_by_alone())

    def is_compared(self) -> bool:
        """Return whether it was compared with each decision, given all other variables."""
        decisions = self.two.schema.decisions
        strata = within(self.rows, self.rows.joint_codes(decisions), self.others)
        return is_compared(self.rows, self.name, decisions, strata, self.enough)

    def is_exogenous(self) -> bool:
        """Return whether it is drawn anew in each step, is constant, or goes in turn.

        An only variable must be drawn anew: a certain next value may be due to the decisions.
        """
        after, rows = self.two.after_of(self.name), self.rows
        if after is None:
            return True
        known = (rows.codes(self.name) >= 0) & (rows.codes(after) >= 0)
        moves = np.unique(np.stack([rows.codes(n)[known] for n in (self.name, after)]), axis=1)
        values = np.unique(rows.codes(self.name)[rows.codes(self.name) >= 0])
        if self.others and all(np.array_equal(np.sort(side), values) for side in moves):
            return True  # each value once before, and once after
        made = rows.joint_codes(self.two.schema.decisions)
        several = np.zeros_like(made), made
        p = [pair_statistics(rows, (self.name,), (after,), s).p_values()[0, 0] for s in several]
        return float(min(p)) >= DOUBT

    def is_acted_by_alone(self) -> bool:
        """Return whether decisions depend on no other variable, given this one."""
        schema, rows = self.two.schema, self.rows
        for place, decision in enumerate(schema.decisions if self.others else ()):
            strata = within(rows, rows.joint_codes(schema.decisions[:place]), (self.name,))
            p = pair_statistics(rows, self.others, (decision,), strata).p_values()
            if (p < DOUBT / len(self.others)).any():
                return False
        return True

    def has_influence(self) -> bool:
        """Return whether anything else depends on it, given the actions and all other variables."""
        found = [test for target in self._targets() for test in self._tests(target)]
        level = LEVEL / max(1, len(found))
        signs = sorted((test for test in found if test.p < level), key=lambda test: -test.p)
        strongest = {test.other: test for test in signs}  # the last of each
        utility = strongest.pop(self.two.schema.utility, None)  # is rarely due to anything else
        first = [] if utility is None else [utility]
        return any(self._is_confirmed(sign, level) for sign in [*first, *strongest.values()])

    def _targets(self) -> list[Later]:
        own = self.two.after_of(self.name)
        after = tuple(name for name in self.two.after if name != own)
        targets = targets_after(
            self.rows, self.two.schema, 0, (self.two.schema.utility, *after)
        ).outcomes
        return [target for target in targets if target.names]

    def _tests(self, target: Later) -> "list[_Test]":
        """Test what is observed later, given the actions, and given each other variable too."""
        names = (self.name, *self.others)
        given = [n for n in _given(self.rows, names) if n != self.name]
        strata = [target.strata, *(within(self.rows, target.strata, (n,)) for n in given)]
        found = []
        for part in strata:
            p = pair_statistics(self.rows, (self.name,), target.names, part).p_values()[0]
            found += [
                _Test(target, other, part, one)
                for other, one in zip(target.names, p.tolist(), strict=True)
            ]
        utility = self.two.schema.utility
        if utility in target.names and utility in self.rows.table.binned:
            (p_mean,) = mean_p_values(self.rows, (self.name,), utility, target.strata)
            found.append(_Test(target, utility, target.strata, p_mean))
        return found

    def _is_confirmed(self, sign: "_Test", level: float) -> bool:
        """Return whether a dependence is there given the other variables too.

        They are given one after the other, that first on which the target depends most. If the log
        cannot say, it is there.
        """
        before = _Comparison.of(self.rows, self.name, sign.other, sign.strata)
        given, left = sign.target.strata, list(self.others)
        while left:
            statistics = pair_statistics(self.rows, left, (sign.other,), given)
            excess = np.where(
                statistics.p_values() < level, statistics.g - statistics.freedom, 0.0
            )[:, 0]
            if not excess.max() > 0:
                return True
            given = within(self.rows, given, (left.pop(int(excess.argmax())),))
            rest = _Comparison.of(self.rows, self.name, sign.other, given)
            if rest.p_value() >= level and rest.explains(before):
                return False
        return True


@dataclass(frozen=True, eq=False)
class _Test:
    """A test of independence, given strata."""

    target: Later
    other: str  # of the target
    strata: Ints
    p: float


@dataclass(frozen=True, eq=False)
class _Comparison:
    """The statistics of two variables, added up over strata, and the weight that is compared."""

    g: float
    x2: float
    freedom: float
    weight: float  # of the strata in which the first varies

    @classmethod
    def of(cls, rows: Rows, name: str, other: str, strata: Ints) -> "_Comparison":
        a, b = pooled_codes(rows, name), pooled_codes(rows, other)
        both = (a >= 0) & (b >= 0)
        stratum = np.unique(strata[both], return_inverse=True)[1]
        weights = rows.weights[both]
        g, x2, freedom, total = stratum_statistics(stratum, a[both], b[both], weights)
        values = np.unique(stratum * (int(a.max()) + 1) + a[both]) // (int(a.max()) + 1)
        varies = np.bincount(values, minlength=len(total)) > 1
        return cls(*(float(s.sum()) for s in (g, x2, freedom, total[varies])))

    def p_value(self) -> float:
        from scipy.special import chdtrc

        return float(chdtrc(self.freedom, [self.g, self.x2]).max()) if self.freedom else 1.0

    def explains(self, other: "_Comparison") -> bool:
        """Return whether a dependence that another comparison found has become weaker here.

        If it were as strong, the statistic would have the excess over its degrees of freedom that
        it had there, in proportion to what is compared.
        """
        excess = max(0.0, min(other.g, other.x2) - other.freedom)
        excess *= self.weight / max(other.weight, 1e-300)
        spread = math.sqrt(2 * (self.freedom + 2 * excess))  # of a noncentral chi-squared variate
        return self.x2 < self.freedom + excess - WEAKER * spread


def next_value_statistics(two: TwoSteps, name: str, causes: Sequence[str]) -> PairStatistics | None:
    """Return how the next value of a variable depends on each cause; None if it does not vary."""
    after = two.after_of(name)
    if after is None:
        return None
    return pair_statistics(two.rows, causes, (after,), two.rows.strata_of(name))


def count_next_values(two: TwoSteps, names: Sequence[str]) -> None:
    """Count the statistics of some variables of the state at once, all of them causes."""
    rows, causes = two.rows, (*two.schema.decisions, *names)
    pairs = [(name, two.after_of(name)) for name in names]
    count_ahead([Need(rows, causes, (n,), rows.strata_of(name)) for name, n in pairs if n])
