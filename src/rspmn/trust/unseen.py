"""What a state has that was never logged: values, numbers beyond their range, combinations."""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rspmn.circuit import Distribution, Leaf
from rspmn.infer.likelihood import log_likelihood
from rspmn.infer.number_ranges import number_range
from rspmn.model import RSPMN
from rspmn.values import Mark, Value, show

#: So many values are written out.
SHOWN = 12


class LoggedValues:
    """What was logged of the variables of a model: their values and ranges, found once.

    >>> from rspmn.envs.paper_grid import paper_grid
    >>> LoggedValues(paper_grid()).never({"x": 7, "y": 0})
    ('x=7 was never logged: 0, 1',)
    """

    def __init__(self, model: RSPMN) -> None:
        self.model = model
        self._held: dict[str, dict[Distribution, None]] = {}
        for node in model.template.nodes:
            if isinstance(node, Leaf):
                self._held.setdefault(node.variable, {})[node.distribution] = None
        self._known: dict[str, _Range] = {}

    def never(self, known: Mapping[str, Value], possible: bool = False) -> tuple[str, ...]:
        """Return what was never logged of a state; `possible` says that the whole of it was."""
        names = [name for name in known if name in self._held]
        found = tuple(text for name in names if (text := self._beyond(name, known[name])))
        if found or possible:
            return found
        if log_likelihood(self.model.from_anywhere, known) == -math.inf:
            return (f"{shown_state(known)} was never logged together",)
        return ()

    def range(self, name: str) -> tuple[float, float]:
        """Return the lowest and the highest number that was logged of a variable."""
        _, low, high = self._range(name)
        return low, high

    def _range(self, name: str) -> "_Range":
        if name not in self._known:
            self._known[name] = _Range.of(self._held[name])
        return self._known[name]

    def _beyond(self, name: str, value: Value) -> str:
        """Return that a value is beyond what was logged of a variable; nothing if it is not."""
        values, low, high = self._range(name)
        if isinstance(value, Mark) or value in values:
            return ""
        if low > high:
            shown = ", ".join(map(show, [*values][:SHOWN])) + ", ..." * (len(values) > SHOWN)
            return f"{name}={show(value)} was never logged: {shown}"
        if not isinstance(value, str) and low <= value <= high:
            return ""
        return f"{name}={show(value)} is outside the log, {show(low)} to {show(high)}"


class _Range(NamedTuple):
    """The values of a variable that are listed, and the range of its numbers."""

    values: dict[Value, None]
    low: float
    high: float

    @classmethod
    def of(cls, held: Iterable[Distribution]) -> "_Range":
        listed: dict[Value, None] = {}
        low, high = math.inf, -math.inf
        for distribution in held:
            atoms = distribution.atoms()
            if atoms is not None:
                listed |= {value: None for value in atoms if not isinstance(value, Mark)}
                continue
            first, last = number_range(distribution)
            low, high = min(low, first), max(high, last)
        return cls(listed, low, high)


def shown_state(known: Mapping[str, Value]) -> str:
    """Return a state as text: x=1 with y=2."""
    return " with ".join(f"{name}={show(value)}" for name, value in known.items())
