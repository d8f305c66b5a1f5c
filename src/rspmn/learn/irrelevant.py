"""Which variables do not matter, and why: `set_aside` leaves them out of learning."""

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum

from rspmn.errors import DataError, did_you_mean
from rspmn.learn.config import LearnConfig
from rspmn.learn.habits import LEVEL, habits_of, within
from rspmn.learn.noise import noise_of
from rspmn.learn.numbers.relevant_numbers import NumbersInfo, relevant_numbers
from rspmn.learn.set_aside import without_variables
from rspmn.learn.structure.independence import pair_statistics
from rspmn.learn.two_step import TwoSteps, wrap

#: A variable that changes in a smaller share of the steps is an attribute of the episode.
CONSTANT = 0.01


class Reason(StrEnum):
    """Why states do not differ by a variable: it does not matter, or they would be too many."""

    HABIT = "habit"  # the logger acted by it
    ATTRIBUTE = "attribute"  # it is constant in an episode
    NOISE = "noise"  # any other on which nothing that matters depends
    LARGE = "too many states"  # it matters, but states that differ by it are too many


def irrelevant_variables(
    two: TwoSteps, config: LearnConfig, deadline: float = math.inf
) -> tuple[dict[str, Reason], NumbersInfo]:
    """Return the variables of the state that states will not differ by, and why.

    Also what is known of numbers: where some of them matter, habits are not looked for. A variable
    to keep, or that was not examined before the `time.monotonic()` of the deadline, is not among
    them.
    """
    known_first = two.schema.information_sets[0]
    for name in config.keep:
        if name not in known_first:
            said = did_you_mean(name, known_first)
            raise DataError(f"keep: {name!r} is not known before the first decision: {said}")
    noise = noise_of(two, config, deadline)
    numbers = relevant_numbers(two.windows, config, noise.names)
    aside = _reasons(two, [*dict.fromkeys([*noise.names, *numbers.aside])])
    aside |= dict.fromkeys(numbers.large, Reason.LARGE)
    if not numbers.grid:
        rest = wrap(without_variables(two.windows, [*aside]), config) if aside else two
        habits = habits_of(rest, config, deadline, {*noise.changed, *config.keep})
        aside |= dict.fromkeys(habits, Reason.HABIT)
    return {name: aside[name] for name in two.schema.state_variables if name in aside}, numbers


def _reasons(two: TwoSteps, names: Sequence[str]) -> dict[str, Reason]:
    """Return why each of some variables is set aside."""
    habits = _acted_by(two, names) if names else set()
    return {
        name: Reason.HABIT
        if name in habits
        else Reason.ATTRIBUTE
        if _is_constant(two, name)
        else Reason.NOISE
        for name in names
    }


def _acted_by(two: TwoSteps, names: Sequence[str]) -> set[str]:
    """Return those of some variables that decisions depend on, alone or given all that matters."""
    rows, schema = two.rows, two.schema
    matter = [name for name in schema.information_sets[0] if name not in names]
    found: set[str] = set()
    for place, decision in enumerate(schema.decisions):
        made = rows.joint_codes(schema.decisions[:place])
        for strata in (made, within(rows, made, matter)):
            p = pair_statistics(rows, names, (decision,), strata).p_values()[:, 0]
            level = LEVEL / (2 * len(names) * len(schema.decisions))
            found |= {name for name, one in zip(names, p.tolist(), strict=True) if one < level}
    return found


def _is_constant(two: TwoSteps, name: str) -> bool:
    """Return whether a variable is the same in the next step, if there is one."""
    rows = two.rows
    here, after = rows.column(name), rows.column(two.primed[name])
    known = ~here.missing & ~after.missing
    changed = (here.data != after.data)[known]
    return bool(rows.weights[known] @ changed <= CONSTANT * rows.weights[known].sum())


def listed_by_reason(aside: Mapping[str, Reason], most: int = 8) -> str:
    """Return the variables that are set aside in words, by reason.

    >>> listed_by_reason({"ward": Reason.HABIT, "sex": Reason.ATTRIBUTE, "age": Reason.ATTRIBUTE})
    'ward (habit); sex, age (attributes)'
    """
    parts = []
    for reason in Reason:
        names = [name for name, why in aside.items() if why is reason]
        shown = ", ".join(names[:most]) + (f" and {len(names) - most} more" if names[most:] else "")
        several = "s" if len(names) > 1 and reason in (Reason.HABIT, Reason.ATTRIBUTE) else ""
        parts += [f"{shown} ({reason}{several})"] if names else []
    return "; ".join(parts)
