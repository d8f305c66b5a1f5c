"""Explanations, states and interface nodes as text."""

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from rspmn.explain.explanation import (
    ActionReason,
    Change,
    Decided,
    Explanation,
    NextState,
)
from rspmn.infer.compiled.state_part import state_part
from rspmn.infer.node_values import values_in_node
from rspmn.model import RSPMN
from rspmn.values import END, Value, short, show, show_steps


class NodeWords:
    """The values of the variables in each interface node, and a text about them."""

    def __init__(self, model: RSPMN) -> None:
        self.model = model
        self._states = state_part(model.template)
        self._found: dict[int, dict[str, Value]] = {}

    def values(self, node: int) -> dict[str, Value]:
        """Return the value of each variable in a node; several are one text."""
        if node not in self._found:
            values = values_in_node(self._states.nodes, self._states.roots[node])
            aside = self.model.set_aside  # nodes do not differ by it
            names = [n for n in self.model.schema.information_sets[0] if n not in aside]
            self._found[node] = {name: values[name] for name in names if name in values}
        return self._found[node]

    def text(self, node: int) -> str:
        """Return a text about a node."""
        if node == self.model.end:
            return "the episode ends"
        if node == self.model.unknown:
            return "unknown successor"
        return state_text(self.values(node))


def state_text(state: Mapping[str, Value | None]) -> str:
    """Return a state as text.

    >>> state_text({"x": 1, "y": "left"})
    'x=1, y=left'
    """
    shown = ((name, "?" if value is None else show(value)) for name, value in state.items())
    return ", ".join(f"{name}={value}" for name, value in shown) or "any state"


#: The columns of the table of actions.
COLUMNS = "value", "now", "later", "90 % interval", "best", "steps"
#: So many interface nodes and next states are written out.
SHOWN = 3


def as_text(explanation: Explanation) -> str:
    """Return an explanation as lines of text."""
    return "\n".join(_lines(explanation))


def _lines(found: Explanation) -> Iterator[str]:
    left = "" if found.steps_left is None else f", {found.steps_left} steps to go"
    yield f"state: {state_text(found.state) if found.state else 'the start'}{left}"
    yield from (f"  {note}" for note in found.notes)
    yield from _decision(found)
    yield from _actions(found)
    yield from _places(found)
    yield from _influences(found)
    yield from _similar(found)


def _decision(found: Explanation) -> Iterator[str]:
    if found.decided is None:
        yield "decision: none; no decision with a known outcome was logged in this state"
        return
    margin = "" if math.isnan(found.margin) else f", by {short(found.margin)}"
    if found.ties:
        margin = f"; as good: {', '.join(map(show, found.ties))}"
    close = "; too close to call" if found.too_close and not found.ties else ""
    yield f"decision: {decided_text(found.decided)}{margin}{close}"
    if found.averaged_over:
        yield f"  not given: {', '.join(found.averaged_over)}; averaged over logged values"


def _actions(found: Explanation) -> Iterator[str]:
    if not found.places:
        return
    yield ""
    rows = [(show(action.value), *_numbers(action)) for action in found.actions]
    widths = [max(map(len, cells)) for cells in zip((found.decision, *COLUMNS), *rows, strict=True)]
    yield _row((found.decision, *COLUMNS), widths)
    for action, row in zip(found.actions, rows, strict=True):
        yield _row(row, widths)
        yield from (f"  {note}" for note in action.notes)
    for action in found.actions[:SHOWN]:
        if action.next:
            yield f"{show(action.value)} leads to"
            for following in action.next[:SHOWN]:
                yield f"  {_percent(following.probability)}  {_next(found, following)}"


def _next(found: Explanation, following: NextState) -> str:
    """Return a next state in words: what is not as it is now."""
    same = [n for n, value in following.state.items() if found.state.get(n, END) == value]
    if not same or len(found.state) < 2:
        return following.text
    other = {n: value for n, value in following.state.items() if n not in same}
    return f"{state_text(other)}; other variables unchanged" if other else "the same state"


def _percent(share: float) -> str:
    """Return a share in percent: neither 0 nor 100 unless it is.

    >>> _percent(1.0), _percent(0.99999), _percent(0.0001)
    ('100 %', '>99 %', ' <1 %')
    """
    if 0.995 < share < 1 - 1e-9:
        return ">99 %"
    return f"{100 * share:3.0f} %" if share >= 0.005 or share == 0 else " <1 %"


def _drawn(share: float) -> str:
    """Return a share of draws in percent: none is certain.

    >>> _drawn(1.0), _drawn(0.0), _drawn(0.7)
    ('>99 %', ' <1 %', ' 70 %')
    """
    return _percent(min(max(share, 1e-6), 1 - 1e-6))


def _numbers(action: ActionReason) -> tuple[str, ...]:
    known = not math.isnan(action.low)
    return (
        *map(short, (action.utility, action.now, action.later)),
        f"{short(action.low)} to {short(action.high)}" if known else "",
        _drawn(action.best) if not math.isnan(action.best) else "",
        f"{action.steps:.0f}",
    )


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return a row of a table: a name, then numbers that end where those above them do."""
    numbers = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
    return "  ".join([cells[0].ljust(widths[0]), *numbers]).rstrip()


def _places(found: Explanation) -> Iterator[str]:
    if not found.places:
        return
    yield ""
    yield "interface nodes of the state"
    for place in found.places[:SHOWN]:
        visits = f", {show_steps(place.visits)}" if place.visits else ""
        yield f"  {_percent(place.probability)}  node {place.node}: {place.text}{visits}"
    if len(found.places) > SHOWN:
        yield f"  and {len(found.places) - SHOWN} other nodes"


def _influences(found: Explanation) -> Iterator[str]:
    if not found.influences:
        return
    yield ""
    yield "effect of each variable"
    changes = {change.variable: change for change in found.changes}
    for influence in found.influences:
        given = f"{influence.variable}={show(influence.value)}"
        if influence.variable in changes:
            yield f"  {given}: {change_text(changes[influence.variable])}"
        elif influence.moves:
            yield f"  {given}: other values lead to other nodes, but not to another decision"
        else:
            yield f"  {given}: no effect"
    if found.smallest_change:
        yield f"smallest change that matters: {change_text(found.smallest_change)}"


def change_text(change: Change) -> str:
    """Return a change in words."""
    after = _away(change.before, change.after)
    return f"{change.variable}={after} would change the decision to {decided_text(change.decided)}"


def _away(before: Value, after: Value) -> str:
    """Return a value that changed, of numbers four digits: those further away.

    >>> _away(2.5, 2.58105), _away(3.0, 2.58105), _away("north", "south")
    ('2.582', '2.581', 'south')
    """
    if not isinstance(after, float) or not isinstance(before, float | int):
        return show(after)
    if not 0 < abs(after) < 1e15:
        return show(after)
    places = 3 - math.floor(math.log10(abs(after)))
    unit = Decimal(1).scaleb(-max(places, 0))
    rounding = ROUND_CEILING if after > before else ROUND_FLOOR
    return show(float(Decimal(repr(after)).quantize(unit, rounding)))


def _similar(found: Explanation) -> Iterator[str]:
    if not found.similar:
        return
    yield ""
    yield "similar logged steps"
    for step in found.similar:
        made, earned = state_text(step.decided), short(step.utility)
        yield (
            f"  {step.count} ×  {state_text(step.state)}: {made}, earned {earned}, then "
            f"{step.followed}"
        )


def decided_text(decided: Decided) -> str:
    """Return decisions as text.

    >>> decided_text({"a": "left", "b": 2})
    'a=left, b=2'
    """
    return state_text(decided)
