"""Which state variables matter: for what is earned, for the end, and for what matters next.

A variable is relevant if the reward or the end depends on it given the action or, in turn, the next
value of a relevant variable does. A variable that only predicts itself, such as an attribute that
is constant in an episode, is not. Variables are added one by one, the clearest first. Each is
tested against what those before it leave unexplained, so that a copy of a relevant variable, or
one that merely moves with it, is not added.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from rspmn.errors import DataError
from rspmn.learn.numbers.mean_boxes import fit_tree
from rspmn.learn.numbers.size import KNOTS, GridSize
from rspmn.learn.numbers.steps import Steps, Variable
from rspmn.learn.structure.f_test import f_test
from rspmn.types import Array, Bools, Ints

#: The false-discovery rate over the variables that are tested in a round.
RATE = 0.001
#: A relevant variable explains at least this share of the variance of a target.
LEAST = 0.0005
#: The level of all tests together that something depends on a variable that decisions move.
MOVED = 0.05
#: No more pairs of variables than this are tested.
MOST_PAIRS = 100
#: Numbers are tested in this many bins of equal weight, other values in as many at most.
BINS = 20
#: A variable that changes in a smaller share of the steps is an attribute of the episode.
CONSTANT = 0.01
#: Tests look at no more steps than this, spread over the log.
MOST_STEPS = 20_000


class TargetDependence(NamedTuple):
    """How far a target depends on a variable; the strongest is the smallest."""

    explained: float  # minus the share of the target's variance, beyond chance
    p_value: float


def relevant_variables(
    steps: Steps, most: int, required: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """Return at most so many relevant variables, and others that matter but are too many.

    Those required come first, then the clearest. What decisions move is relevant at a weaker level,
    and together with another variable too: rewards may depend on a sum, of which each part tells
    little, and a policy would do what the log never did to what it does not see.
    """
    search, found, large = _Search.of(steps.thinned(MOST_STEPS)), list(required), list[str]()
    while new := search.clearest(found) or search.clearest_pair(found):
        if len(found) + len(new) > most:
            return found, large + new
        found += new
        for name in _too_large(steps, found, required):
            found.remove(name)
            large.append(name)
        search = search.without(large)
    return found, large


@dataclass(frozen=True, eq=False)
class _Search:
    """Tests which variables matter beside those that were found."""

    steps: Steps
    codes: dict[str, Ints]  # [steps] each
    weights: dict[str, Array]  # [steps] each, of the steps as observations of a variable
    moved: frozenset[str]  # by decisions

    @classmethod
    def of(cls, steps: Steps) -> "_Search":
        coded = {v.name: _binned(v.values(), v.is_number) for v in steps.variables}
        coded = {name: codes for name, codes in coded.items() if codes.max(initial=0) > 0}
        return cls(
            steps, coded, {name: _independent(steps, name) for name in coded},
            frozenset(name for name in coded if _is_moved(steps, name, coded[name])),
        )  # fmt: skip

    def without(self, names: Sequence[str]) -> "_Search":
        """Return the search among other variables."""
        return replace(self, codes={n: c for n, c in self.codes.items() if n not in names})

    def clearest(self, found: Sequence[str]) -> list[str]:
        """Return the variable that what is left unexplained depends on most clearly, if any."""
        names = [name for name in self.codes if name not in found]
        residuals, action = list(_residuals(self.steps, found)), self.steps.action
        strata = [action, *(_refined(action, self.codes[name]) for name in found)]
        count = len(names) * len(residuals) * len(strata) + 1
        levels = {name: (MOVED if name in self.moved else RATE) / count for name in names}
        tests = {
            name: _strongest(self.codes[name], strata, residuals, self.weights[name], levels[name])
            for name in names
        }
        clear = [
            name for name, test in tests.items()
            if test.p_value < levels[name] and (name in self.moved or -test.explained >= LEAST)
        ]  # fmt: skip
        return sorted(clear, key=tests.__getitem__)[:1]

    def clearest_pair(self, found: Sequence[str]) -> list[str]:
        """Return the pair, one of them moved by decisions, that tells most, if any does."""
        names = [name for name in self.codes if name not in found]
        pairs = [pair for pair in combinations(names, 2) if self.moved.intersection(pair)]
        pairs = pairs[:MOST_PAIRS]
        residuals = list(_residuals(self.steps, found)) if pairs else []
        level = MOVED / (len(pairs) * len(residuals) + 1)
        best: list[str] = []
        for one, other in pairs:
            joint = _refined(_thirds(self.codes[one]), self.codes[other])
            weights = np.minimum(self.weights[one], self.weights[other])
            p = _strongest(joint, [self.steps.action], residuals, weights, level).p_value
            if p < level:
                best, level = [one, other], p
        return best


def _strongest(
    codes: Ints, strata: Sequence[Ints], residuals: Sequence[Array], weights: Array, level: float
) -> TargetDependence:
    """Return the strongest dependence of several targets in several strata, if any is clear.

    What is rare may seem to depend strongly by chance.
    """
    tests = (_f_test(codes, given, target, weights) for target in residuals for given in strata)
    return min(
        tests, key=lambda test: (test.p_value >= level, test), default=TargetDependence(0.0, 1.0)
    )


def _is_moved(steps: Steps, name: str, codes: Ints) -> bool:
    """Return whether the next value of a variable depends on the action, given its value."""
    (variable,) = steps.only([name])
    here, after = variable.values(), variable.next_values()
    target = after - here
    if not variable.is_number:
        target = np.where(np.isnan(target), np.nan, target != 0)
    return _f_test(steps.action, codes + 1, target, steps.counts).p_value < RATE


def _too_large(steps: Steps, names: Sequence[str], required: Sequence[str]) -> list[str]:
    """Return the variables without which the coarsest grid fits into memory: of most values."""
    left, out = list(names), list[str]()
    while not (size := GridSize(steps, left)).fits(KNOTS[0] ** size.numbers):
        others = [name for name in reversed(left) if name not in required]
        if not others:
            raise DataError(
                f"{', '.join(left)}: they are to be kept, or laws are about them, and states "
                "that differ by all their values need too much memory: group their values, or "
                'learn with numbers="intervals"'
            )
        out.append(max(others, key=lambda name: _values(steps, name)))
        left.remove(out[-1])
    return out


def _values(steps: Steps, name: str) -> int:
    """Return how many values a variable has on the coarsest grid."""
    (variable,) = steps.only([name])
    return len(variable.column.domain) or KNOTS[0]


def _independent(steps: Steps, name: str) -> Array:  # [steps]
    """Return the weight of each step as an observation of a variable.

    A variable that is constant in an episode was observed once in each, however long it is.
    """
    (variable,) = steps.only([name])
    here, after = variable.values(), variable.next_values()
    known = ~np.isnan(here) & ~np.isnan(after)
    if not known.any() or (here != after)[known].mean() > CONSTANT:
        return steps.counts
    return np.asarray(steps.counts * min(1.0, steps.episodes / float(steps.counts.sum())))


def _binned(values: Array, is_number: bool) -> Ints:
    """Return codes from 0; -1 where the value is missing."""
    known = ~np.isnan(values)
    codes = np.full(len(values), -1, dtype=np.int64)
    if not known.any():
        return codes
    distinct, inverse = np.unique(values[known], return_inverse=True)
    if len(distinct) > BINS and is_number:
        borders = np.unique(np.quantile(values[known], np.arange(1, BINS) / BINS))
        inverse = np.searchsorted(borders, values[known], side="right")
    codes[known] = inverse
    return codes


def _refined(action: Ints, codes: Ints) -> Ints:
    """Return strata of action and a third of the values of a relevant variable."""
    return np.asarray(action * 4 + _thirds(codes))


def _thirds(codes: Ints) -> Ints:
    """Return in which third of the values each is, from 0."""
    return np.asarray((codes + 1) * 3 // (codes.max() + 2))


def _residuals(steps: Steps, relevant: Sequence[str]) -> Iterator[Array]:
    """Return what the relevant variables leave unexplained of each target, over its deviation.

    What is linear in the numbers is taken out first, then means in boxes; NaN if not known.
    """
    variables = steps.only(relevant)
    action = steps.action.astype(np.float64)
    features = np.stack([*(v.values() for v in variables), action], axis=1)
    for target in _targets(steps, variables):
        known = ~np.isnan(target)
        deviation = float(np.std(target[known])) if known.any() else 0.0
        if deviation == 0:
            continue
        left = np.where(known, target / deviation, 0.0)
        left = left - _linear_part(features[:, :-1], left, steps, known)
        tree = fit_tree(features[known], left[known], steps.counts[known])
        yield np.where(known, left - tree(features), np.nan)


def _linear_part(numbers: Array, target: Array, steps: Steps, known: Bools) -> Array:
    """Return the least-squares prediction of a target, action by action."""
    scale = np.nanstd(numbers, axis=0) + 1e-300
    filled = np.nan_to_num((numbers - np.nanmean(numbers, axis=0)) / scale)
    wide = np.hstack([np.ones((len(target), 1)), filled])
    found = np.zeros(len(target))
    for a in range(len(steps.actions)):
        mine = steps.action == a
        rows = np.flatnonzero(mine & known)
        root = np.sqrt(steps.counts[rows])
        weights = np.linalg.lstsq(wide[rows] * root[:, None], target[rows] * root, rcond=None)[0]
        found[mine] = wide[mine] @ weights
    return found


def _targets(steps: Steps, relevant: Sequence[Variable]) -> Iterator[Array]:
    yield steps.utility.data.astype(np.float64)
    yield steps.ended.astype(np.float64)
    for variable in relevant:
        after = variable.next_values()
        if variable.is_number:
            yield after - variable.values()
        else:
            for code in np.unique(after[~np.isnan(after)])[:BINS]:
                yield np.where(np.isnan(after), np.nan, after == code)


def _f_test(codes: Ints, strata: Ints, target: Array, counts: Array) -> TargetDependence:
    """Return the F-test for equal means at all codes within each stratum."""
    known = np.flatnonzero((codes >= 0) & ~np.isnan(target))
    if not len(known):
        return TargetDependence(0.0, 1.0)
    weights = counts[known]
    test = f_test(codes[known], strata[known], target[known], weights)
    return TargetDependence(-test.explained / float(weights.sum()), test.p_value)
