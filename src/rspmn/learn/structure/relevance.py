"""Which variables tell about what follows: looked at alone, given another, and all together.

The paper tests pairs. A variable that matters only together with another, or only for the mean of
the utility, or by what can be decided where it has some value, would be lost.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from rspmn.learn.structure.bayes_factor import seen_enough, split_evidence
from rspmn.learn.structure.learn_spn import components
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.mean_test import mean_p_value
from rspmn.learn.structure.rows import Rows, joined
from rspmn.learn.structure.targets import Outlook, Seen, lacks_choice
from rspmn.types import Bools

#: A variable of more values than this is not looked at as a condition: strata would be too small.
MOST_GIVEN = 200


def telling(
    learner: Learner, rows: Rows, names: tuple[str, ...], follows: Outlook
) -> tuple[str, ...]:
    """Return the variables that tell about what follows: alone, given another, or all together."""
    found = dict.fromkeys(names, False)
    for seen in follows.seen:
        dependent = learner.test(rows, names, seen.names, seen.strata).dependent
        for name, pairs in zip(names, dependent, strict=True):
            found[name] |= bool(pairs.any())
    if learner.config.given_decisions:  # the paper looks no further
        _look_at_means(learner, rows, follows, found)
        _look_at_choices(rows, follows, found)
        _look_given_another(learner, rows, follows, found)
        _look_at_all_together(learner, rows, follows, found)
        if follows.recurs:
            _look_at_evidence(learner, rows, follows, found)
    return tuple(name for name in names if found[name])


def _look_at_means(learner: Learner, rows: Rows, follows: Outlook, found: dict[str, bool]) -> None:
    """Mark variables that change the mean of the utility: bins do not see how large its tail is."""
    level = learner.config.mean_alpha / len(found)
    for name in [name for name in found if not found[name]]:
        p = mean_p_value(rows, name, str(learner.utility), follows.seen[-1].strata)
        found[name] |= p < level


def _look_at_choices(rows: Rows, follows: Outlook, found: dict[str, bool]) -> None:
    """Mark variables, and pairs of them, with values at which a choice is unavailable."""
    for choice in follows.choices:
        left = tuple(name for name in found if not found[name])
        if not left or not follows.may_lack(rows, tuple(found), choice):
            continue
        for name, lacks in zip(left, _lacks(rows, left, choice, follows), strict=True):
            found[name] |= bool(lacks)
        for one, other in combinations([n for n in found if not found[n]], 2):
            together, name = joined(rows, [one, other])
            if _lacks(together, (name,), choice, follows).any():
                found[one] = found[other] = True


def _lacks(rows: Rows, names: tuple[str, ...], choice: Seen, follows: Outlook) -> Bools:
    return lacks_choice(rows, names, choice, follows.unavailable_from)


def _look_given_another(
    learner: Learner, rows: Rows, follows: Outlook, found: dict[str, bool]
) -> None:
    """Mark variables that tell something given another: the utility may depend on X xor Z.

    The other may be in the same set, or be seen later but before a decision.
    """
    known_later = [name for seen in follows.seen[:-1] for name in seen.names]
    for given in (*found, *known_later):
        if learner.out_of_time() or rows.table.sizes[given] > MOST_GIVEN:
            continue
        left = [name for name in found if not found[name] and name != given]
        for seen in follows.seen if left else ():
            targets = [name for name in seen.names if name != given]
            strata = _refined(rows, given, seen)
            dependent = learner.test(rows, left, targets, strata).dependent
            for name, pairs in zip(left, dependent, strict=True):
                found[name] |= bool(pairs.any())


def _look_at_evidence(
    learner: Learner, rows: Rows, follows: Outlook, found: dict[str, bool]
) -> None:
    """Mark variables that were hardly seen, if the data are likelier with them than without.

    Where states recur, to pool what has nothing in common would promise in one what only another
    holds, again and again.
    """
    left = [n for n in found if not found[n] and n not in rows.table.ordered]
    if not left or learner.out_of_time():
        return
    enough = seen_enough(rows, left, follows.seen[-1], learner.config.enough)
    left = [name for name, often in zip(left, enough, strict=True) if not often]
    if left:
        for name, gain in zip(left, split_evidence(rows, left, follows.seen), strict=True):
            found[name] = bool(gain > -1e-9)  # 0: nothing at all is known of it


def _look_at_all_together(
    learner: Learner, rows: Rows, follows: Outlook, found: dict[str, bool]
) -> None:
    """If nothing was found, mark all variables if all together tell something."""
    if any(found.values()) or len(found) < 3:
        return
    together, name = joined(rows, list(found))
    tests = [learner.test(together, [name], s.names, s.strata) for s in follows.seen]
    if any(bool(test.dependent.any()) for test in tests):
        found.update(dict.fromkeys(found, True))


def _refined(rows: Rows, name: str, seen: Seen) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the strata of what is seen, each divided by the value of one more variable."""
    size = rows.table.sizes[name] + 1
    return seen.strata * size + rows.codes(name) + 1


def linked(
    learner: Learner, rows: Rows, names: tuple[str, ...], told: Sequence[str]
) -> tuple[str, ...]:
    """Return the variables that tell about what follows, and those that depend on them."""
    if not told or len(told) == len(names):
        return tuple(told)
    strata = np.zeros(len(rows), dtype=np.int64)
    groups = components(names, learner.test(rows, names, names, strata).dependent)
    kept = {name for group in groups if set(group) & set(told) for name in group}
    return tuple(name for name in names if name in kept)
