"""What is set aside before structure is learned: variables that states do not differ by, and why."""

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from rspmn.learn.habits import acted_by
from rspmn.learn.structure.rows import Rows
from rspmn.learn.two_step import TwoSteps

#: A variable that changes in a smaller share of the steps is an attribute of the episode.
CONSTANT = 0.01


class Reason(StrEnum):
    """What a variable is that neither the utility, nor the end, nor what matters depends on."""

    HABIT = "habit"  # the logger acted by it
    ATTRIBUTE = "attribute"  # it is constant in an episode
    NOISE = "noise"  # any other


def reasons(two: TwoSteps, names: Sequence[str]) -> dict[str, Reason]:
    """Return why each of some variables is set aside."""
    if not names:
        return {}
    habits = acted_by(two.rows, two.schema, two.rows.varying(two.schema.information_sets[0]))
    return {
        name: Reason.HABIT
        if name in habits
        else Reason.ATTRIBUTE
        if _is_constant(two, name)
        else Reason.NOISE
        for name in names
    }


def _is_constant(two: TwoSteps, name: str) -> bool:
    """Return whether a variable is the same in the next step, if there is one."""
    rows: Rows = two.rows
    here, after = rows.column(name), rows.column(two.primed[name])
    known = ~here.missing & ~after.missing
    changed = (here.data != after.data)[known]
    return bool(rows.weights[known] @ changed <= CONSTANT * rows.weights[known].sum())


def told(aside: dict[str, Reason], most: int = 8) -> str:
    """Return the variables that are set aside in words, by reason.

    >>> told({"ward": Reason.HABIT, "sex": Reason.ATTRIBUTE, "age": Reason.ATTRIBUTE})
    'ward (habit); sex, age (attributes)'
    """
    parts = []
    for reason in Reason:
        names = [name for name, why in aside.items() if why is reason]
        shown = ", ".join(names[:most]) + (f" and {len(names) - most} more" if names[most:] else "")
        several = "s" if len(names) > 1 and reason is not Reason.NOISE else ""
        parts += [f"{shown} ({reason}{several})"] if names else []
    return "; ".join(parts)
