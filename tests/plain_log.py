"""The windows of a log by plain loops over rows: what every format and engine is compared with.

Nothing here is shared with `rspmn.data`: the rules of docs/logs.md are written a second time.
"""

import datetime as dt
import math
import re
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

NUMBER = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|inf|infinity|nan)", re.I)
INTEGER = re.compile(r"[+-]?[0-9]+")

Values = list[Any]
#: A window and what followed it, to how often it occurred and how often at the start.
Counts = dict[tuple[Any, ...], tuple[int, int]]


class RefusedError(Exception):
    """A log that must be refused."""


def text_column(cells: list[str]) -> Values:
    """Return the values of a column of a text file: what all of its cells are."""
    bare = [cell.strip(" ") for cell in cells]
    filled = [cell for cell in bare if cell]
    if not filled:
        return list(cells)
    if all(INTEGER.fullmatch(cell) and _fits(int(cell)) for cell in filled):
        return [int(cell) if cell else None for cell in bare]
    if all(
        NUMBER.fullmatch(c) and not (INTEGER.fullmatch(c) and not _fits(int(c))) for c in filled
    ):
        return [float(cell) if cell else None for cell in bare]
    if all(cell.lower() in ("true", "false") for cell in filled):
        return [cell.lower() == "true" if cell else None for cell in bare]
    return list(cells)


def one_type(values: Values) -> Values:
    """Return the values of a column, None where they are missing, all of one type."""
    values = [None if _is_missing(value) else value for value in values]
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, dt.date) for value in present):
        return _dates(values)
    sorts = {type(value).__name__ for value in present}
    if sorts == {"int", "float"} or sorts == {"int"}:
        if not all(isinstance(v, float) or _fits(v) for v in present):
            return [None if value is None else str(value) for value in values]
        if sorts == {"int"}:
            return values
        return [None if value is None else float(value) for value in values]
    if len(sorts) > 1 or not sorts <= {"int", "float", "str", "bool"}:
        raise RefusedError(f"values of {sorts}")
    return values


def variable(values: Values, is_decision: bool = False) -> Values:
    """Return a variable: finite, and whole numbers as integers."""
    values = one_type(values)
    present = [value for value in values if value is not None]
    if present and isinstance(present[0], dt.datetime):
        return _names_of_dates(values)
    if present and isinstance(present[0], float):
        if not all(map(math.isfinite, present)):
            raise RefusedError("infinite")
        if all(value == math.floor(value) for value in present):
            return [None if value is None else int(value) for value in values]
        if is_decision:
            raise RefusedError("decision is continuous")
        return [None if value is None else value + 0.0 for value in values]
    return values


def utility(values: Values) -> Values:
    """Return the utility: finite numbers."""
    values = one_type(values)
    present = [value for value in values if value is not None]
    if any(isinstance(value, str | dt.date) or not math.isfinite(value) for value in present):
        raise RefusedError("utility is no finite number")
    return [None if value is None else float(value) + 0.0 for value in values]


def times(values: Values) -> Values:
    """Return times: finite numbers or dates."""
    values = one_type(values)
    present = [value for value in values if value is not None]
    if present and isinstance(present[0], str):
        if not all(re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value) for value in present):
            raise RefusedError("time is text")
        try:
            return [None if v is None else dt.datetime.fromisoformat(v) for v in values]
        except ValueError:
            raise RefusedError("time is no date") from None
    if present and isinstance(present[0], bool):
        raise RefusedError("time is boolean")
    if any(isinstance(value, float) and not math.isfinite(value) for value in present):
        raise RefusedError("time is infinite")
    return values


def flags(values: Values) -> list[str]:
    """Return yes, no, missing or invalid for each terminated flag."""
    return [_flag(value) for value in one_type(values)]


def windows(table: dict[str, Values], names: dict[str, str], ending: str | None) -> Counts:
    """Return the windows of a long table.

    `names` gives the column of each part of a log: episode, time, x, y, a, u and done.
    """
    rows = len(table[names["time"]])
    if not rows:
        raise RefusedError("no rows")
    xs, ys = (variable(table[names[part]]) for part in "xy")
    actions = variable(table[names["a"]], is_decision=True)
    earned = utility(table[names["u"]])
    said = ["no"] * rows if ending else flags(table[names["done"]])
    moments = times(table[names["time"]])
    ids = one_type(table[names["episode"]])
    if None in ids or None in moments:
        raise RefusedError("no key")
    episodes: dict[Any, list[int]] = defaultdict(list)
    for row in range(rows):
        episodes[ids[row]].append(row)
    counts_steps = not isinstance(moments[0], dt.date) and all(m == math.floor(m) for m in moments)
    plays = []
    for found in episodes.values():
        found.sort(key=lambda row: moments[row])
        for row, later in pairwise(found):
            gap = moments[later] > moments[row] + 1 if counts_steps else False
            if moments[later] == moments[row] or gap:
                raise RefusedError("duplicate or gap")
        final = found[-1] if actions[found[-1]] is None and earned[found[-1]] is None else None
        steps = found if final is None else found[:-1]
        if not steps:
            raise RefusedError("no step")
        if any(actions[row] is None or earned[row] is None for row in steps):
            raise RefusedError("incomplete step")
        if any(said[row] in ("missing", "invalid") for row in steps) or (
            final is not None and said[final] == "invalid"
        ):
            raise RefusedError("flag")
        if any(said[row] == "yes" for row in steps[:-1]):
            raise RefusedError("goes on")
        plays.append((steps, final))
    longest = max(len(steps) for steps, _ in plays)
    ends = [_ending(steps, final, said, ending, longest, xs, ys) for steps, final in plays]
    at_limit = {end for (steps, _), end in zip(plays, ends, strict=True) if len(steps) == longest}
    is_limit = at_limit == {"UNKNOWN", "END"}
    counts: Counter[tuple[Any, ...]] = Counter()
    starts: Counter[tuple[Any, ...]] = Counter()
    for (steps, final), end in zip(plays, ends, strict=True):
        if is_limit and len(steps) == longest and end == "UNKNOWN":
            end = "went on"
        for place, row in enumerate(steps):
            here = (xs[row], ys[row], actions[row], earned[row])
            if place + 1 < len(steps):
                then: tuple[Any, ...] = ("STATE", xs[steps[place + 1]], ys[steps[place + 1]])
            elif end == "STATE":
                then = ("STATE", xs[final], ys[final])  # type: ignore[index]
            else:
                then = ("STATE" if end == "went on" else end, None, None)
            key = tuple(map(shown, (*here, *then)))
            counts[key] += 1
            starts[key] += place == 0
    return {key: (number, starts[key]) for key, number in counts.items()}


def _ending(
    steps: list[int], final: int | None, said: list[str], ending: str | None, longest: int,
    xs: Values, ys: Values,
) -> str:  # fmt: skip
    ended = {
        None: said[steps[-1]] == "yes" or (final is not None and said[final] == "yes"),
        "end": True,
        "cut": False,
        "short": len(steps) < longest,
        "final_row": final is not None,
    }[ending]
    if ended:
        return "END"
    is_seen = final is not None and not (xs[final] is None and ys[final] is None)
    return "STATE" if is_seen else "UNKNOWN"


def shown(value: Any) -> str:
    """Return a value with its type: 1, 1.0, True and "1" are four values."""
    return repr(value)


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _fits(number: int) -> bool:
    return -(2**63) <= number < 2**63


def _dates(values: Values) -> Values:
    """Return dates with a time of day, without a zone."""
    return [
        None if value is None
        else value if isinstance(value, dt.datetime)
        else dt.datetime(value.year, value.month, value.day)
        for value in values
    ]  # fmt: skip


def _names_of_dates(values: Values) -> Values:
    present = [value for value in values if value is not None]
    if all(value.time() == dt.time() for value in present):
        return [None if value is None else value.date().isoformat() for value in values]
    spec = "seconds" if all(value.microsecond == 0 for value in present) else "microseconds"
    return [None if value is None else value.isoformat(timespec=spec) for value in values]


def _flag(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, str):
        return {"true": "yes", "false": "no"}.get(value.lower(), "invalid")
    if isinstance(value, dt.date):
        return "invalid"
    return {1: "yes", 0: "no"}.get(value, "invalid")
