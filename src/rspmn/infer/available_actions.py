"""Laws and habits in answers: what cannot be done is not offered, what was never done is noted."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from rspmn.availability import Law, NeverTaken
from rspmn.behaviour import Behaviour
from rspmn.infer.actions import ActionValue, judged
from rspmn.infer.constraints import Constraints
from rspmn.model import Evidence
from rspmn.schema import Schema
from rspmn.values import Value, is_missing


class Declared(Protocol):
    """What a model knows of where decisions can be made, and where they never were."""

    @property
    def schema(self) -> Schema: ...  # noqa: D102
    @property
    def never_taken(self) -> Sequence[NeverTaken]: ...  # noqa: D102
    @property
    def behaviour(self) -> Behaviour: ...  # noqa: D102


def checked(
    answers: Sequence[ActionValue],
    known: Evidence,
    model: Declared,
    within: float = 0.0,
    limits: Constraints | None = None,
) -> list[ActionValue]:
    """Return actions without those that laws or constraints forbid.

    They say how often practice takes them, and those that are left where they were never taken.
    """
    found, laws = list(answers), model.schema.laws
    if laws or limits is not None:
        reasons = [_reason(a, known, laws, limits) for a in answers]
        found = [
            a if why is None else forbidden(a, why) for a, why in zip(answers, reasons, strict=True)
        ]
        if any(a.best and why is not None for a, why in zip(answers, reasons, strict=True)):
            found = judged(found, [_worth(a) for a in found], within)
    shares = model.behaviour.shares(found[0].decision, known) if found else {}
    found = [replace(a, practice=shares.get(a.value)) for a in found] if shares else found
    if not model.never_taken:
        return found
    never = [n for n in model.never_taken if known.get(n.variable) == n.at]
    return [
        replace(a, never_taken=tuple(n for n in never if _is_of(n, a))) if a.available else a
        for a in found
    ]


def _reason(
    answer: ActionValue, known: Evidence, laws: Sequence[Law], limits: Constraints | None
) -> str | None:
    """Return why an action cannot be chosen: a constraint, a law (no text); None if it can."""
    if not is_lawful({answer.decision: answer.value}, known, laws):
        return ""
    if limits is None or not answer.available:
        return None
    return limits.reason(answer.decision, answer.value, answer.steps, known)


def _worth(answer: ActionValue) -> float:
    """Return the utility for comparisons: -∞ where nothing is known of an action on offer."""
    nothing_known = answer.available > 0 and math.isnan(answer.utility)
    return -math.inf if nothing_known else answer.utility


def is_lawful(made: Mapping[str, Value], known: Evidence, laws: Sequence[Law]) -> bool:
    """Return whether laws allow decisions, as far as the state is known."""
    state = {name: value for name, value in known.items() if not is_missing(value)}
    return all(law.allows(made, {**state, **made}) for law in laws)


def forbidden(answer: ActionValue, why: str = "") -> ActionValue:
    """Return an action as one that cannot be chosen."""
    return replace(answer, utility=math.nan, available=0.0, steps=0.0, best=False, known=0.0,
                   supported=0.0, forbidden=why)  # fmt: skip


def _is_of(never: NeverTaken, answer: ActionValue) -> bool:
    return (never.decision, never.value) == (answer.decision, answer.value)
