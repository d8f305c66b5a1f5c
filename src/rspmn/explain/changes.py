"""What a variable of a state decides: which other values would change the decision.

One variable is changed at a time. Listed values are all tried. Of a number, the knots of its leaves
are tried, where soft boxes begin and end, and the middles between them; then the nearest change on
each side is narrowed down.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from rspmn.circuit import Distribution, Leaf
from rspmn.errors import EvidenceError
from rspmn.explain.explanation import Change, Decided, Influence
from rspmn.infer.policy import Policy
from rspmn.values import UNKNOWN, Mark, Value

#: A bracket of a change is divided into so many parts, so often.
PARTS, TIMES = 16, 4
#: Of so many whole numbers all are tried.
WHOLE = 200
#: Of a range of numbers without knots so many are tried.
TRIED = 33

#: A bracket: the variable, a value that does not change the decision, and one that does.
Bracket = tuple[str, float, float]


class Values:
    """The values that variables before the first decision may have in a model."""

    def __init__(self, policy: Policy) -> None:
        self._held: dict[str, dict[Distribution, None]] = {}
        for node in policy.model.template.nodes:
            if isinstance(node, Leaf):
                self._held.setdefault(node.variable, {})[node.distribution] = None
        self._tried: dict[str, list[Value]] = {}

    def tried(self, name: str) -> list[Value]:
        """Return the values of a variable that are tried in place of another."""
        if name not in self._tried:
            self._tried[name] = self._find(name)
        return self._tried[name]

    def is_number(self, name: str) -> bool:
        """Tell whether a variable has a range of numbers, not a list of values."""
        return any(d.atoms() is None for d in self._held.get(name, {}))

    def span(self, name: str) -> float:
        """Return the range of a variable's numbers; NaN if it has others."""
        values = self.tried(name)
        if any(isinstance(value, str | bool) for value in values):
            return math.nan
        numbers = [float(value) for value in values if not isinstance(value, str | Mark)]
        return max(numbers) - min(numbers) if len(numbers) > 1 else math.nan

    def _find(self, name: str) -> list[Value]:
        listed: dict[Value, None] = {}
        points: set[float] = set()
        for distribution in self._held.get(name, {}):
            atoms = distribution.atoms()
            if atoms is not None:
                listed |= {value: None for value in atoms if not isinstance(value, Mark)}
            else:
                points |= set(_points(distribution))
        if not points:
            return list(listed)
        line = np.unique(np.array([*points]))
        if all(float(point).is_integer() for point in points) and np.ptp(line) <= WHOLE:
            return list(np.arange(int(line[0]), int(line[-1]) + 1).tolist())
        return list(np.unique(np.concatenate([line, (line[1:] + line[:-1]) / 2])).tolist())


def _points(distribution: Distribution) -> Iterator[float]:
    """Return numbers between which a density does not change much."""
    pieces = distribution.pieces()
    if pieces is not None:
        yield from pieces[0]
        return
    low, high = (float(end) for end in distribution.span() if not isinstance(end, str | Mark))
    yield from np.linspace(low, high, TRIED).tolist()


class Changes:
    """All changes of one variable of a state.

    `policy`, `values`: the policy, and the values that variables may have. `known`: the state. `t`:
    the time step. `decided`: what the policy does in it; None if it knows nothing to do.
    """

    def __init__(
        self,
        policy: Policy,
        values: Values,
        known: Mapping[str, Value],
        t: int,
        decided: Decided | None,
    ) -> None:
        self.policy, self.values, self.known, self.t = policy, values, dict(known), t
        self.decided = decided
        #: Decisions that were made, or what was observed after them, are not changed.
        before = policy.model.schema.information_sets[0]
        self.names = [name for name in known if name in before]

    @cached_property
    def _tried(self) -> dict[str, list[tuple[Value, Decided | None]]]:
        """The other values of each variable, and the decisions made there."""
        pairs = [
            (name, value)
            for name in self.names
            for value in self.values.tried(name)
            if value != self.known[name]
        ]
        made = self._decisions(pairs)
        found: dict[str, list[tuple[Value, Decided | None]]] = {name: [] for name in self.names}
        for (name, value), decided in zip(pairs, made, strict=True):
            found[name].append((value, decided))
        return found

    def influences(self) -> tuple[Influence, ...]:
        """Return what each variable decides."""
        return tuple(
            Influence(
                name, self.known[name], self._moves(name),
                tuple((value, made) for value, made in tried if made and made != self.decided),
            )
            for name, tried in self._tried.items()
        )  # fmt: skip

    def smallest(self) -> tuple[Change, ...]:
        """Return the smallest change of each variable that changes the decision, nearest first."""
        found = [*self._of_listed(), *self._of_numbers()]
        return tuple(sorted(found, key=lambda change: change.distance))

    def _of_listed(self) -> Iterator[Change]:
        for name, tried in self._tried.items():
            if self.values.is_number(name):
                continue
            changes = [(value, made) for value, made in tried if made and made != self.decided]
            if changes:
                value, made = min(changes, key=lambda pair: self._distance(name, pair[0]))
                distance = self._distance(name, value)
                yield Change(name, self.known[name], value, made, distance)

    def _of_numbers(self) -> Iterator[Change]:
        brackets = [b for name in self.names if self.values.is_number(name)
                    for b in self._brackets(name)]  # fmt: skip
        for _ in range(TIMES if brackets else 0):
            brackets = self._narrower(brackets)
        nearest: dict[str, float] = {}
        for name, _, changed in brackets:
            if self._distance(name, changed) < self._distance(name, nearest.get(name, math.inf)):
                nearest[name] = changed
        made = self._decisions(list(nearest.items()))
        for (name, value), decided in zip(nearest.items(), made, strict=True):
            if decided:
                yield Change(name, self.known[name], value, decided, self._distance(name, value))

    def _brackets(self, name: str) -> Iterator[Bracket]:
        """Return where the nearest change of a number is, below it and above."""
        here = self.known[name]
        if isinstance(here, str | Mark):
            return
        for side in (-1, 1):
            tried = [(float(v), made) for v, made in self._tried[name]
                     if not isinstance(v, str | Mark) and side * (v - here) > 0]  # fmt: skip
            same = float(here)
            for value, made in sorted(tried, key=lambda pair: abs(pair[0] - here)):
                if made and made != self.decided:
                    yield name, same, value
                    break
                same = value

    def _narrower(self, brackets: Sequence[Bracket]) -> list[Bracket]:
        """Divide brackets; of each, keep the part in which the decision changes first."""
        inside = [np.linspace(low, high, PARTS + 1) for _, low, high in brackets]
        pairs = [
            (name, float(value))
            for (name, _, _), line in zip(brackets, inside, strict=True)
            for value in line[1:-1]
        ]
        made = self._decisions(pairs)
        found = []
        for k, ((name, _, _), line) in enumerate(zip(brackets, inside, strict=True)):
            here = made[k * (PARTS - 1) : (k + 1) * (PARTS - 1)]
            place = next((j for j, m in enumerate(here) if m and m != self.decided), PARTS - 1)
            found.append((name, float(line[place]), float(line[place + 1])))
        return found

    def _distance(self, name: str, value: Value) -> float:
        span, here = self.values.span(name), self.known[name]
        if math.isnan(span) or isinstance(here, str | Mark) or isinstance(value, str | Mark):
            return 1.0
        return abs(float(value) - float(here)) / span

    def _moves(self, name: str) -> bool:
        """Tell whether another value of a variable may lead to other interface nodes."""
        if any(each not in self.policy.model.schema.information_sets[0] for each in self.known):
            return True  # the interface node is not the question any more
        own = self.policy.nodes(self.known)
        others = (self.policy.nodes({**self.known, name: v}) for v, _ in self._tried[name])
        return any(other.any() and not np.allclose(own, other) for other in others)

    def _decisions(self, pairs: Sequence[tuple[str, Value]]) -> list[Decided | None]:
        """Return what the policy does if one variable has another value."""
        if not pairs:
            return []
        before = self.policy.model.schema.information_sets[0]
        if any(name not in before for name in self.known):
            return [self._decision({**self.known, name: value}) for name, value in pairs]
        rows = {
            name: [value if name == changed else self.known.get(name) for changed, value in pairs]
            for name in before
        }
        decisions = self.policy.model.schema.decisions
        several = len(decisions) > 1
        made = self.policy.act_many(
            rows, self.t, dict.fromkeys(decisions, UNKNOWN) if several else UNKNOWN
        )
        columns = made if several else {decisions[0]: made}
        lists = {name: column.tolist() for name, column in columns.items()}
        found = [{name: each[k] for name, each in lists.items()} for k in range(len(pairs))]
        return [_known_only(each) for each in found]

    def _decision(self, state: Mapping[str, Value]) -> Decided | None:
        try:
            made = self.policy.act(state, self.t)
        except EvidenceError:  # it knows nothing to do there
            return None
        return made if isinstance(made, dict) else {self.policy.model.schema.decisions[0]: made}


def _known_only(made: Mapping[str, Value | None]) -> Decided | None:
    """Return the decisions that are made now; None if none is known."""
    found = {name: value for name, value in made.items() if value is not None}
    return None if UNKNOWN in found.values() else found
