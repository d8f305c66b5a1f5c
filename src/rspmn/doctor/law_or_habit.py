"""Findings about decisions that were never made somewhere: by law, or by habit? The log cannot say.

Both are asked about, with the line of the schema that makes a law of it.
"""

import json
import re
from collections.abc import Iterator, Sequence

import numpy as np

from rspmn.availability import NeverTaken, label
from rspmn.doctor.findings import Finding
from rspmn.learn.irrelevant import Irrelevant, Reason, listed_by_reason
from rspmn.learn.never_taken import never_taken
from rspmn.learn.two_step import TwoSteps
from rspmn.schema import Schema
from rspmn.values import Value, show

#: So many decisions are named in a finding.
NAMED = 3
#: Keys of TOML and names in expressions that need no quotes.
BARE_KEY, BARE_NAME = re.compile(r"[A-Za-z0-9_-]+"), re.compile(r"[A-Za-z_]\w*")


#: What is said before the line of a law.
IF_LAW = ". If an action is impossible there, declare it"


def habit_findings(two: TwoSteps, found: Irrelevant) -> Iterator[Finding]:
    """Return what looks like a habit of the logger, or like a law of the world."""
    aside = found.aside
    habits = [name for name, reason in aside.items() if reason is Reason.HABIT]
    others = {
        name: reason for name, reason in aside.items()
        if reason not in (Reason.HABIT, Reason.LARGE)
    }  # fmt: skip
    here = np.zeros(len(two.rows), dtype=np.int64)
    lawful = {(law.decision, law.value) for law in two.schema.laws}
    never = [
        n
        for n in never_taken(two.rows, two.schema, here, 1)
        if (n.decision, label(n.value)) not in lawful
    ]
    for name in habits:
        lacking = [n for n in never if n.variable == name]
        examples = f": {_shown(lacking)}" if lacking else ""
        yield Finding(
            "note",
            "habit",
            f"decisions depended on {name!r}, but nothing else does{examples}",
            "It looks like a habit of the decision makers: learning ignores it, and all actions "
            f"are available for all of its values{IF_LAW if lacking else ''}",
            *_law(lacking, two.schema),
        )
    if others:
        yield Finding(
            "note",
            "ignored",
            f"nothing depends on {listed_by_reason(others)}",
            "Learning ignores them; without these columns it is faster",
        )
    for name in dict.fromkeys(n.variable for n in never if n.variable not in aside):
        lacking = [n for n in never if n.variable == name]
        yield Finding(
            "note",
            "availability",
            f"actions were never taken for some values of {name!r}: {_shown(lacking)}",
            f"They are not offered there: what they lead to is not known{IF_LAW}",
            *_law(lacking, two.schema),
        )
    for name in found.uncompared:
        yield Finding(
            "note",
            "not compared",
            f"decisions depended on {name!r} so much that the log cannot say whether it matters",
            "States differ by it, and what was not done in them is not offered. If it does not "
            f"matter, learn with --ignore {name}",
        )


def _shown(never: Sequence[NeverTaken]) -> str:
    """Return the decisions that were to be expected most often."""
    most = sorted(never, key=lambda n: -n.expected)
    shown = [f"{n.decision} = {show(n.value)} was {n}" for n in most[:NAMED]]
    more = len(most) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _law(never: Sequence[NeverTaken], schema: Schema) -> tuple[str, str]:
    """Return the line that makes a law of the first of some cases, and its table."""
    if not never:
        return "", ""
    most = max(never, key=lambda n: n.expected)
    same = (most.decision, most.value, most.variable)
    values = [n.at for n in never if (n.decision, n.value, n.variable) == same]
    table = "available" if len(schema.decisions) == 1 else f"available.{_key(most.decision)}"
    return law_line(most.value, most.variable, values), table


def law_line(value: Value, variable: str, never: Sequence[Value]) -> str:
    """Return the line of a schema.toml by which a decision is unavailable at some values.

    >>> print(law_line("go left", "ward", ["a", "b"]))
    "go left" = "ward not in ('a', 'b')"
    """
    name = variable if BARE_NAME.fullmatch(variable) else f"`{variable}`"
    words = [repr(v) if isinstance(v, str) else label(v) for v in never]
    several = f"{name} not in ({', '.join(words)})"
    condition = several if len(words) > 1 else f"{name} != {words[0]}"
    return f"{_key(label(value))} = {json.dumps(condition, ensure_ascii=False)}"


def _key(text: str) -> str:
    return text if BARE_KEY.fullmatch(text) else json.dumps(text, ensure_ascii=False)
