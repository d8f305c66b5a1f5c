"""What a state has that was never logged: values, numbers beyond their range, combinations."""

import math
from collections.abc import Iterable, Mapping

from rspmn.circuit import Distribution, Leaf
from rspmn.infer.likelihood import log_likelihood
from rspmn.model import RSPMN
from rspmn.values import Mark, Value, show

#: So many values are written out.
SHOWN = 12
#: Where a density is below this share of its highest, it is a tail beyond what was logged.
TAIL = 1e-3


def never_logged(model: RSPMN, known: Mapping[str, Value]) -> tuple[str, ...]:
    """Return what the log never had of a state, in words; nothing if it had all of it.

    >>> from rspmn.envs.paper_grid import paper_grid
    >>> never_logged(paper_grid(), {"x": 7, "y": 0})
    ('x=7 was never logged: 0, 1',)
    """
    held: dict[str, list[Distribution]] = {name: [] for name in known}
    for node in model.template.nodes:
        if isinstance(node, Leaf) and node.variable in held:
            held[node.variable].append(node.distribution)
    pairs = ((name, value, held[name]) for name, value in known.items() if held[name])
    found = tuple(text for pair in pairs if (text := _beyond(*pair)))
    if not found and log_likelihood(model.from_anywhere, known) == -math.inf:
        found = (f"{shown_state(known)} was never logged together",)
    return found


def shown_state(known: Mapping[str, Value]) -> str:
    """Return a state as text: x=1 with y=2."""
    return " with ".join(f"{name}={show(value)}" for name, value in known.items())


def _beyond(name: str, value: Value, held: Iterable[Distribution]) -> str:
    """Return that a value is beyond what was logged of a variable; nothing if it is not."""
    listed: dict[Value, None] = {}
    low, high = math.inf, -math.inf
    for distribution in held:
        atoms = distribution.atoms()
        if atoms is not None:
            listed |= dict.fromkeys(atoms)
            continue
        first, last = _range(distribution)
        low, high = min(low, first), max(high, last)
    values = [each for each in listed if not isinstance(each, Mark)]
    if value in values or isinstance(value, Mark):
        return ""
    if low > high:
        more = ", ..." if len(values) > SHOWN else ""
        return (
            f"{name}={show(value)} was never logged: {', '.join(map(show, values[:SHOWN]))}{more}"
        )
    if not isinstance(value, str) and low <= value <= high:
        return ""
    return f"{name}={show(value)} is outside the log, {show(low)} to {show(high)}"


def _range(distribution: Distribution) -> tuple[float, float]:
    """Return the range of the numbers of a distribution, without its tails."""
    pieces = distribution.pieces()
    if pieces is None:
        low, high = distribution.span()
        assert not isinstance(low, str | Mark)
        assert not isinstance(high, str | Mark)
        return float(low), float(high)
    knots, densities = pieces
    least = TAIL * max(densities)
    inside = [k for k, density in enumerate(densities) if density >= least]
    # Density may fall to 0 at a knot that is not a tail's: the piece to it was logged.
    first = inside[0] - (inside[0] > 0 and densities[inside[0] - 1] == 0)
    last = inside[-1] + (inside[-1] + 1 < len(knots) and densities[inside[-1] + 1] == 0)
    return knots[first], knots[last]
