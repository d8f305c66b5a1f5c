"""Habits: variables that the logger acted by, although nothing depends on them.

A protocol by ward, an action by weekday: where such a variable determines the action, its values
cannot be compared given the action, and tests of relevance find nothing, for or against it. So it
is set aside before structure is learned, if the log is consistent with two statements:

- it is *autonomous*: its next value depends on its value alone, not on actions or other variables;
- it has *no influence*: given the actions, neither the utility, nor the end of an episode, nor the
  next value of any other variable depends on it.

A dependence that vanishes once all other variables are given is no influence: who always goes left
in ward 3 is often at the left edge there. Only variables that actions depend on are examined. All
others are left to the tests of relevance.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.learn.config import LearnConfig
from rspmn.learn.structure.independence import pair_statistics, pooled_codes, stratum_statistics
from rspmn.learn.structure.relevance import MOST_GIVEN, mean_p_value
from rspmn.learn.structure.rows import Rows
from rspmn.learn.structure.targets import Target, targets_after
from rspmn.learn.two_step import TwoSteps
from rspmn.schema import Schema
from rspmn.types import Ints

#: The level of all tests about one variable together.
LEVEL = 0.001
#: A dependence is weaker if its statistic is so many standard deviations below what it would be.
WEAKER = 1.645


def habits_of(two: TwoSteps, config: LearnConfig) -> tuple[str, ...]:
    """Return the variables of the state that the logger acted by and nothing depends on."""
    names = tuple(two.rows.varying(two.schema.information_sets[0]))
    if config.availability == "observed" or not config.given_decisions or not names:
        return ()
    lawful = {name for law in two.schema.laws for name in law.variables}
    suspects = [n for n in acted_by(two.rows, two.schema, names) if n not in lawful]
    found: tuple[str, ...] = ()
    for name in suspects:
        others = tuple(n for n in names if n != name and n not in found)
        if _Suspect(two, name, others).is_habit():
            found += (name,)
    return found


def acted_by(rows: Rows, schema: Schema, names: Sequence[str]) -> tuple[str, ...]:
    """Return the variables that decisions depend on, given earlier decisions of the step."""
    smallest = np.ones(len(names))
    for place, decision in enumerate(schema.decisions):
        strata = rows.joint_codes(schema.decisions[:place])
        p = pair_statistics(rows, names, (decision,), strata).p_values()[:, 0]
        smallest = np.minimum(smallest, p * len(schema.decisions))
    return tuple(n for n, p in zip(names, smallest * len(names), strict=True) if p < LEVEL)


@dataclass(frozen=True, eq=False)
class _Suspect:
    """A variable that the logger acted by."""

    two: TwoSteps
    name: str
    others: tuple[str, ...]  # variables of the state that may matter

    @property
    def rows(self) -> Rows:
        return self.two.rows

    def is_habit(self) -> bool:
        """Return whether it is autonomous and has no influence, as far as the log says."""
        return self.is_autonomous() and not self.has_influence()

    def is_autonomous(self) -> bool:
        """Return whether its next value depends on its value alone."""
        after = self.two.after_of(self.name)
        if after is None:  # it has one value after all steps
            return True
        causes = (*self.two.schema.decisions, *self.others)
        strata = self.rows.codes(self.name).astype(np.int64) + 1
        p = pair_statistics(self.rows, causes, (after,), strata).p_values()
        return not bool((p < LEVEL / len(causes)).any())

    def has_influence(self) -> bool:
        """Return whether anything else depends on it, given the actions and all other variables."""
        found = [test for target in self._targets() for test in self._tests(target)]
        level = LEVEL / max(1, len(found))
        signs = sorted((test for test in found if test.p < level), key=lambda test: -test.p)
        strongest = {test.other: test for test in signs}  # the last of each
        return any(self._is_confirmed(sign, level) for sign in strongest.values())

    def _targets(self) -> list[Target]:
        own = self.two.after_of(self.name)
        after = tuple(name for name in self.two.after if name != own)
        targets = targets_after(
            self.rows, self.two.schema, 0, (self.two.schema.utility, *after)
        ).outcomes
        return [target for target in targets if target.names]

    def _tests(self, target: Target) -> "list[_Test]":
        """Test what is observed later, given the actions, and given each other variable too."""
        sizes = self.rows.table.sizes
        strata = [target.strata]
        strata += [self._within(target.strata, (n,)) for n in self.others if sizes[n] <= MOST_GIVEN]
        found = []
        for given in strata:
            p = pair_statistics(self.rows, (self.name,), target.names, given).p_values()[0]
            found += [
                _Test(target, other, given, one)
                for other, one in zip(target.names, p.tolist(), strict=True)
            ]
        utility = self.two.schema.utility
        if utility in target.names and utility in self.rows.table.binned:
            p_mean = mean_p_value(self.rows, self.name, utility, target.strata)
            found.append(_Test(target, utility, target.strata, p_mean))
        return found

    def _within(self, strata: Ints, names: Sequence[str]) -> Ints:
        """Return strata, each divided by the joint value of more variables."""
        codes = np.unique(self.rows.joint_codes(names), return_inverse=True)[1]
        return np.asarray(strata * (int(codes.max(initial=0)) + 1) + codes)

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
            given = self._within(given, (left.pop(int(excess.argmax())),))
            rest = _Comparison.of(self.rows, self.name, sign.other, given)
            if rest.p_value() >= level and rest.explains(before):
                return False
        return True


@dataclass(frozen=True, eq=False)
class _Test:
    """A test of independence, given strata."""

    target: Target
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
