"""Which variables are relevant for what follows: alone, given another, or all together.

The paper tests pairs. That would lose a variable that matters only together with another, only
for the mean of the utility, or only for which decisions are available. Variables of a law that does
not say the same of all rows are always relevant.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.learn.structure.contingency import Contingency, contingency, occurs_again
from rspmn.learn.structure.count_ahead import FEW_ROWS, kept_means
from rspmn.learn.structure.f_test import f_tests
from rspmn.learn.structure.independence import components
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.rows import Rows, with_joint_variable
from rspmn.learn.structure.targets import Target, Targets, has_unavailable_choice
from rspmn.learn.structure.together import Growth, MeanNeed, Need
from rspmn.types import Array, Bools, Ints

#: A variable of more values than this is not conditioned on: its strata would be too small.
MOST_GIVEN = 200
#: The weight of the prior of Bayes factors: that of one row.
STRENGTH = 1.0


def relevant_variables(
    learner: Learner, rows: Rows, names: tuple[str, ...], targets: Targets
) -> Growth[tuple[str, ...]]:
    """Return the variables that some target depends on, given the decisions in between."""
    found = dict.fromkeys(names, False)
    yield [Need(rows, names, target.names, target.strata) for target in targets.compared]
    for target in targets.compared:
        dependent = learner.test(rows, names, target.names, target.strata).dependent
        _mark(found, names, dependent)
    if learner.config.given_decisions:  # the paper tests pairs only
        yield from _mark_by_mean(learner, rows, targets, found)
        _mark_by_availability(rows, targets, found)
        yield from _mark_given_another(learner, rows, targets, found)
        _mark_all_together(learner, rows, targets, found)
        if targets.recurs:
            _mark_by_bayes_factor(learner, rows, targets, found)
    _mark_by_law(targets, found)
    return tuple(name for name in names if found[name])


def _mark(found: dict[str, bool], names: Sequence[str], dependent: Bools) -> None:
    """Mark the variables that anything depends on."""
    for name, any_depends in zip(names, dependent.any(axis=1).tolist(), strict=True):
        found[name] |= any_depends


def _mark_by_mean(
    learner: Learner, rows: Rows, targets: Targets, found: dict[str, bool]
) -> Growth[None]:
    """Mark variables on which the mean of the utility depends."""
    level = learner.config.mean_alpha / len(found)
    left = tuple(name for name in found if not found[name])
    yield [MeanNeed(rows, left, str(learner.utility), targets.outcomes[-1].strata)]
    p_values = mean_p_values(rows, left, str(learner.utility), targets.outcomes[-1].strata)
    for name, p in zip(left, p_values, strict=True):
        found[name] = p < level


def _mark_by_availability(rows: Rows, targets: Targets, found: dict[str, bool]) -> None:
    """Mark variables, and pairs of them, with values at which a decision is unavailable."""
    for choice in targets.choices:
        left = tuple(name for name in found if not found[name])
        if not left or not targets.may_be_unavailable(rows, tuple(found), choice):
            continue
        for name, lacks in zip(left, _unavailable(rows, left, choice, targets), strict=True):
            found[name] |= bool(lacks)
        for one, other in combinations([n for n in found if not found[n]], 2):
            together, name = with_joint_variable(rows, [one, other])
            if _unavailable(together, (name,), choice, targets).any():
                found[one] = found[other] = True


def _mark_by_law(targets: Targets, found: dict[str, bool]) -> None:
    """Mark the variables of laws that vary, if tests have found none of them."""
    lawful = [name for name in found if name in targets.laws.variables]
    if not any(found[name] for name in lawful):
        found |= dict.fromkeys(lawful, True)


def _unavailable(rows: Rows, names: tuple[str, ...], choice: Target, targets: Targets) -> Bools:
    return has_unavailable_choice(rows, names, choice, targets.unavailable_from)


def _mark_given_another(
    learner: Learner, rows: Rows, targets: Targets, found: dict[str, bool]
) -> Growth[None]:
    """Mark variables that matter given another: the utility may depend on X xor Z.

    The other may be in the same set, or be observed later but before a decision.
    """
    known_later = [name for target in targets.outcomes[:-1] for name in target.names]
    left = tuple(name for name in found if not found[name])
    several = [n for n in (*found, *known_later) if rows.table.sizes[n] <= MOST_GIVEN]
    if not left:
        return
    ahead = {}
    if len(rows) <= FEW_ROWS:
        ahead = {(n, t): _refined(rows, n, t) for n in several for t in targets.outcomes}
    yield [Need(rows, left, t.names, given) for (n, t), given in ahead.items() if left != (n,)]
    for given in several:
        if learner.out_of_time():
            continue
        left = tuple(name for name in found if not found[name] and name != given)
        for target in targets.outcomes if left else ():
            names = [name for name in target.names if name != given]
            strata = ahead.get((given, target))
            strata = _refined(rows, given, target) if strata is None else strata
            dependent = learner.test(rows, left, names, strata).dependent
            _mark(found, left, dependent)


def _mark_by_bayes_factor(
    learner: Learner, rows: Rows, targets: Targets, found: dict[str, bool]
) -> None:
    """Mark rarely observed variables if the data are more likely with them than without.

    States recur, so pooling states that have nothing in common would promise in one of them what
    only another holds, step after step.
    """
    left = [n for n in found if not found[n] and n not in rows.table.ordered]
    if not left or learner.out_of_time():
        return
    enough = observed_enough(rows, left, targets.outcomes[-1], targets.enough)
    left = [name for name, often in zip(left, enough, strict=True) if not often]
    if left:
        gains = log_bayes_factors(rows, left, targets.outcomes)
        for name, gain in zip(left, gains, strict=True):
            found[name] = bool(gain > -1e-9)  # 0: no two rows can be compared


def _mark_all_together(
    learner: Learner, rows: Rows, targets: Targets, found: dict[str, bool]
) -> None:
    """If no variable is marked, mark all of them if a target depends on their joint value."""
    if any(found.values()) or len(found) < 3:
        return
    together, name = with_joint_variable(rows, list(found))
    tests = [learner.test(together, [name], t.names, t.strata) for t in targets.outcomes]
    if any(bool(test.dependent.any()) for test in tests):
        found.update(dict.fromkeys(found, True))


def _refined(rows: Rows, name: str, target: Target) -> Ints:
    """Return the strata of a target, each divided by the value of one more variable."""
    size = rows.table.sizes[name] + 1
    return np.asarray(target.strata * size + rows.codes(name) + 1)


def with_dependents(
    learner: Learner, rows: Rows, names: tuple[str, ...], relevant: Sequence[str]
) -> Growth[tuple[str, ...]]:
    """Return the relevant variables and those that depend on them."""
    if not relevant or len(relevant) == len(names):
        return tuple(relevant)
    strata = np.zeros(len(rows), dtype=np.int64)
    yield [Need(rows, names, names, strata)]
    groups = components(names, learner.test(rows, names, names, strata).dependent)
    kept = {name for group in groups if set(group) & set(relevant) for name in group}
    return tuple(name for name in names if name in kept)


def mean_p_values(
    rows: Rows, names: Sequence[str], utility: str, strata: Ints
) -> list[float]:  # [names]
    """Return the p-values of F-tests for equal means at all values of each variable.

    Tests of independence use bins of the utility, which do not show how large its tail is;
    decisions depend on its mean.
    """
    if not names:
        return []
    ahead = kept_means(rows, strata)
    if ahead is not None:
        return [ahead[name] for name in names]
    earned, of_names = rows.column(utility), rows.codes_of(names)
    found = np.ones(len(names))
    for chosen, present in of_names.classes():
        here = slice(None) if present is None else np.flatnonzero(present)
        codes, weights = of_names.codes[here][:, chosen].astype(np.int64), rows.weights[here]
        if len(weights):
            within = 0.0 if earned.spread is None else float(weights @ earned.spread[here])
            group = np.zeros(len(weights), dtype=np.int64)
            test = f_tests(
                codes, strata[here], earned.data[here], weights, np.array([within]), group
            )
            found[chosen] = test.p_value[0]
    return [float(p) for p in found]


def log_bayes_factors(
    rows: Rows, names: Sequence[str], outcomes: Sequence[Target]
) -> Array:  # [names]
    """Return the log Bayes factor of splitting on each variable, against not splitting.

    It is for variables that were observed too rarely for tests: marginal likelihoods under
    Dirichlet priors that expect few outcomes, those of each value by itself against those of all
    values together.

    It is that of the target that gains most, given the decisions in between; 0 where no two rows
    can be compared.
    """
    gains = []
    for later in outcomes:
        several = occurs_again(later.strata)  # one row by itself is as likely either way
        if several.any():
            table = contingency(rows.where(several), names, later.names, later.strata[several])
            gains.append(_gain(table).sum(axis=0))  # [names, later]
        else:
            gains.append(np.zeros((len(names), len(later.names))))
    found = np.hstack(gains)
    none = np.abs(found).max(axis=1) < 1e-9
    return np.where(none, 0.0, found.max(axis=1))


def observed_enough(rows: Rows, names: Sequence[str], target: Target, least: float) -> Bools:
    """Return which variables have every value observed so often with each decision in between."""
    if not target.names:
        return np.ones(len(names), dtype=bool)
    stratum = np.unique(target.strata, return_inverse=True)[1]
    of_names = rows.codes_of(names)
    first, cells = np.cumsum(of_names.sizes) - of_names.sizes, int(of_names.sizes.sum())
    known = of_names.codes >= 0
    place = (of_names.codes + (first + stratum[:, None] * cells))[known]
    followed = np.where(rows.codes(target.names[0]) >= 0, rows.weights, 0.0)
    shape = int(stratum.max(initial=0)) + 1, cells
    each = np.broadcast_to(followed[:, None], known.shape)[known]
    weight = group_weights(place, each, shape[0] * shape[1]).reshape(shape)
    occurs = np.zeros(cells, dtype=bool)
    occurs[place % cells] = True
    often = (weight >= least).all(axis=0) | ~occurs
    return np.logical_and.reduceat(often, first)


def _gain(table: Contingency) -> Array:  # [strata, left, right]
    """Return the log of the Bayes factor of each pair in each stratum."""
    from scipy.special import gammaln

    left, right, counts = table.left, table.right, table.counts
    prior = STRENGTH / np.bincount(right.owner)[right.owner]  # [right cells]

    def likelihood(cells: Array) -> Array:  # [strata, .., right cells] -> [strata, .., right]
        each = gammaln(cells + prior) - gammaln(prior)
        inside = np.add.reduceat(each, right.starts, axis=2)
        total = np.add.reduceat(cells, right.starts, axis=2)
        return np.asarray(inside + gammaln(STRENGTH) - gammaln(STRENGTH + total))

    apart = np.add.reduceat(likelihood(counts), left.starts, axis=1)
    together = likelihood(np.add.reduceat(counts, left.starts, axis=1))
    return np.asarray(apart - together)
