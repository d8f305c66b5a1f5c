"""Which variables do not matter, and why: `set_aside` leaves them out of learning."""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from rspmn.errors import DataError, did_you_mean
from rspmn.learn.config import LearnConfig
from rspmn.learn.numbers.relevant_numbers import NumbersInfo, relevant_numbers
from rspmn.learn.relevance import relevance_of
from rspmn.learn.set_aside import without_variables
from rspmn.learn.two_step import TwoSteps, wrap

#: A variable that changes in a smaller share of the steps is an attribute of the episode.
CONSTANT = 0.01


class Reason(StrEnum):
    """Why states do not differ by a variable: it does not matter, or they would be too many."""

    DECLARED = "declared"  # the user says so
    HABIT = "habit"  # the logger acted by it
    ATTRIBUTE = "attribute"  # it is constant in an episode
    NOISE = "noise"  # any other on which nothing that matters depends
    LARGE = "too many states"  # it matters, but states that differ by it are too many


class Irrelevant(NamedTuple):
    """The variables of the state that states will not differ by, and what is known of others."""

    aside: dict[str, Reason]
    numbers: NumbersInfo
    #: Kept since decisions depend on them and the log cannot say whether anything else does.
    uncompared: tuple[str, ...] = ()


def irrelevant_variables(
    two: TwoSteps, config: LearnConfig, deadline: float = math.inf
) -> Irrelevant:
    """Return the variables of the state that states will not differ by, and why.

    Variables to keep are not among them, nor any if that is not known by the `time.monotonic()` of
    the deadline.
    """
    first, schema = two.schema.information_sets[0], two.schema
    for option in ("keep", "ignore"):
        for name in getattr(config, option) if getattr(config, option) != "all" else ():
            if name not in first:
                said = did_you_mean(name, first)
                raise DataError(
                    f"{option}: {name!r} is not known before the first decision: {said}"
                )
    why = dict.fromkeys(config.ignore, Reason.DECLARED)
    if why:
        two = wrap(without_variables(two.windows, [*why]), config)
    varying = two.rows.varying([name for name in first if name not in why])
    if not varying or any(schema.information_sets[1:-1]):
        return Irrelevant(why, NumbersInfo())
    laws = {name for law in schema.laws for name in law.variables}
    declared = [name for name in varying if name in laws or name in config.keep]
    kept, habits, uncompared = varying, list[str](), list[str]()
    if config.keep != "all":
        kept, habits, uncompared = relevance_of(two, config, declared, deadline)
    numbers = relevant_numbers(two.windows, config, kept, declared)
    for name in varying:
        if name in numbers.large:
            why[name] = Reason.LARGE
        elif name in habits:
            why[name] = Reason.HABIT
        elif name not in kept:
            why[name] = Reason.ATTRIBUTE if _is_constant(two, name) else Reason.NOISE
    aside = {name: why[name] for name in schema.state_variables if name in why}
    return Irrelevant(aside, numbers, tuple(n for n in uncompared if n not in aside))


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
