"""Which variables are relevant for what follows: alone, given another, or all together.

The paper tests pairs. That would lose a variable that matters only together with another, only
for the mean of the utility, or only for which decisions are available. Variables of a law that does
not say the same of all rows are always relevant.
"""

from collections.abc import Sequence

import numpy as np

from rspmn.learn.structure.batched_growth import BayesNeed, Growth, MeanNeed, Need
from rspmn.learn.structure.bayes_factors import evidence
from rspmn.learn.structure.count_ahead import FEW_ROWS, kept_means
from rspmn.learn.structure.f_test import f_tests
from rspmn.learn.structure.independence import components
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.rows import Rows, with_joint_variable
from rspmn.learn.structure.targets import Later, Targets, avoided
from rspmn.types import Bools, Ints

#: A variable of more values than this is not conditioned on: its strata would be too small.
MOST_GIVEN = 200


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
        _mark_by_behaviour(rows, targets, found)
        yield from _mark_given_another(learner, rows, targets, found)
        _mark_all_together(learner, rows, targets, found)
        if targets.recurs:
            yield from _mark_by_bayes_factor(learner, rows, targets, found)
    _mark_by_law(targets, found)
    return tuple(name for name in names if found[name])


def _mark(found: dict[str, bool], names: Sequence[str], dependent: Bools) -> None:
    """Mark the variables that anything depends on."""
    for k in np.flatnonzero(dependent.any(axis=1)).tolist():
        found[names[k]] = True


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


def _mark_by_behaviour(rows: Rows, targets: Targets, found: dict[str, bool]) -> None:
    """Mark finite variables with values at which a decision was avoided: it was not compared."""
    for choice in targets.choices:
        left = [name for name in found if not found[name] and name not in rows.table.ordered]
        if left and rows.varying(choice.names):
            found |= dict(zip(left, avoided(rows, left, choice).tolist(), strict=True))


def _mark_by_law(targets: Targets, found: dict[str, bool]) -> None:
    """Mark the variables of laws that vary, if tests have found none of them."""
    lawful = [name for name in found if name in targets.laws.variables]
    if not any(found[name] for name in lawful):
        found |= dict.fromkeys(lawful, True)


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
) -> Growth[None]:
    """Mark rarely observed variables if the data are more likely with them than without.

    States recur, so pooling states that have nothing in common would promise in one of them what
    only another holds, step after step.
    """
    left = [n for n in found if not found[n] and n not in rows.table.ordered]
    if not left or learner.out_of_time():
        return
    yield [BayesNeed(rows, tuple(left), targets.outcomes, targets.enough)]
    for name, gain in zip(
        left, evidence(rows, left, targets.outcomes, targets.enough), strict=True
    ):
        found[name] = gain is not None and gain > -1e-9  # 0: no two rows can be compared


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


def _refined(rows: Rows, name: str, target: Later) -> Ints:
    """Return the strata of a target, each divided by the value of one more variable."""
    size = rows.table.sizes[name] + 1
    return np.asarray(target.strata * size + rows.codes(name) + 1)


def with_dependents(
    learner: Learner, rows: Rows, names: tuple[str, ...], relevant: Sequence[str]
) -> Growth[tuple[str, ...]]:
    """Return the relevant variables and those that depend on them."""
    if not relevant or len(relevant) == len(names):
        return tuple(relevant)
    yield [Need(rows, names, names, rows.together)]
    groups = components(names, learner.test(rows, names, names, rows.together).dependent)
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
