"""RDDL instances of booleans as factored MDPs: read by pyRDDLGym, evaluated in array code.

`Instance.read("Elevators", 2)` grounds an instance of IPPC 2011; its `mdp` enumerates the states
that can be reached. Every expression is evaluated with arrays, never by steps of a simulator:
what does not depend on the action is computed once for each state.
"""

import importlib.util
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.envs.mdp import MDP
from rspmn.schema import Schema
from rspmn.types import Array, Bools, Ints

#: The largest table: one of more transitions takes more than about 2 GB.
MOST_TRANSITIONS = 20_000_000
MOST_STATES = 70_000
#: States and actions whose successors are enumerated at a time.
CHUNK = 1 << 16

#: The value of an expression: one number, or an array of them.
Number = Any
Values = Mapping[str, Number]

ARITHMETIC: dict[str, Callable[[Number, Number], Number]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
RELATIONS: dict[str, Callable[[Number, Number], Number]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
    "==": operator.eq, "~=": operator.ne,
}  # fmt: skip


class TooLargeError(ValueError):
    """An instance has more states or transitions than a table can hold."""


# ---- expressions ---------------------------------------------------------------------


def value(expression: Any, values: Values) -> Number:
    """Return the value of a grounded expression that draws nothing."""
    kind, name = expression.etype
    parts = expression.args
    if kind == "constant":
        return parts
    if kind == "pvar":
        return values[parts[0]]
    if kind == "control":
        return _chosen(value, expression, values)
    if kind == "boolean":
        return _logical(name, parts, values)
    found = [1.0 * value(part, values) for part in parts]  # numbers: true + true is 2
    if kind == "relational":
        return RELATIONS[name](*found)
    if kind == "arithmetic":
        return -found[0] if (name, len(found)) == ("-", 1) else reduce(ARITHMETIC[name], found)
    raise NotImplementedError(f"{kind} {name!r}: not known where nothing is drawn")


def chance(expression: Any, values: Values) -> Number:
    """Return how likely a grounded expression is true; draws are the leaves of if … else …."""
    kind, name = expression.etype
    if kind == "control":
        return _chosen(chance, expression, values)
    if kind == "randomvar" and name in ("Bernoulli", "KronDelta"):
        return 1.0 * value(expression.args[0], values)
    return 1.0 * value(expression, values)


def _chosen(
    evaluate: Callable[[Any, Values], Number], expression: Any, values: Values
) -> Number:  # fmt: skip
    condition, then, otherwise = expression.args
    which = value(condition, values)
    if np.ndim(which) == 0:
        return evaluate(then if which else otherwise, values)
    return np.where(which, evaluate(then, values), evaluate(otherwise, values))


def _logical(name: str, parts: Any, values: Values) -> Number:
    if name == "~":
        return np.logical_not(value(parts[0], values))
    if name == "=>":
        return np.logical_not(value(parts[0], values)) | value(parts[1], values)
    if name == "<=>":
        return np.equal(value(parts[0], values), value(parts[1], values))
    settles = name == "|"  # one such part is enough
    combined: Number = not settles
    for part in parts:
        found = value(part, values)
        if np.ndim(found) == 0 and bool(found) is settles:
            return settles
        combined = combined | found if settles else combined & found
    return combined


# ---- instances -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Instance:
    """A grounded instance: V booleans, each drawn by its own expression, and D of decisions."""

    name: str
    fluents: tuple[str, ...]  # [V], as pyRDDLGym writes them
    deciding: tuple[str, ...]  # [D], likewise
    start: Bools  # [V]
    actions: Bools  # [A, D], at most so many true as the instance allows
    horizon: int
    constants: Mapping[str, Number]
    draws: tuple[Any, ...]  # [V], expressions
    reward: Any

    @classmethod
    def read(cls, domain: str, number: int) -> "Instance":
        """Return an instance of IPPC 2011, from the files of rddlrepository."""
        model = _grounded(domain, number)
        if model.interm_fluents or model.derived_fluents or model.terminations:
            raise NotImplementedError(f"{domain} {number}: only state fluents without ends")
        kinds = {model.variable_ranges[n] for n in (*model.state_fluents, *model.action_fluents)}
        if kinds != {"bool"}:
            raise NotImplementedError(f"{domain} {number}: expected booleans, found {kinds}")
        fluents, deciding = tuple(model.state_fluents), tuple(model.action_fluents)
        most = min(model.max_allowed_actions, len(deciding))
        made = [set(c) for n in range(most + 1) for c in combinations(range(len(deciding)), n)]
        return cls(
            f"{domain} {number}",
            fluents,
            deciding,
            np.array(list(model.state_fluents.values()), dtype=bool),
            np.array([[k in chosen for k in range(len(deciding))] for chosen in made]),
            int(model.horizon),
            model.non_fluents,
            tuple(model.cpfs[model.next_state[f]][1] for f in fluents),
            model.reward,
        )

    def _values(self, states: Bools, actions: Bools) -> Values:
        states_by_name = {f: states[..., k] for k, f in enumerate(self.fluents)}
        return {
            **self.constants,
            **states_by_name,
            **{d: actions[..., k] for k, d in enumerate(self.deciding)},
        }

    def chances(self, states: Bools, actions: Bools) -> Array:  # [..., V]
        """Return how likely each boolean is true after states [..., V] and actions [..., D]."""
        values = self._values(states, actions)
        shape = np.broadcast_shapes(states.shape[:-1], actions.shape[:-1])
        found = np.empty((*shape, len(self.fluents)))
        for k, draw in enumerate(self.draws):
            found[..., k] = chance(draw, values)
        return found

    def rewards(self, states: Bools, actions: Bools) -> Array:  # [...]
        """Return what states and actions earn."""
        shape = np.broadcast_shapes(states.shape[:-1], actions.shape[:-1])
        earned = value(self.reward, self._values(states, actions))
        return np.broadcast_to(np.asarray(earned, dtype=np.float64), shape)

    @property
    def schema(self) -> Schema:
        """The booleans of the state, then one boolean for each decision, as in `rspmn.envs`."""
        states, decisions = [snake(f) for f in self.fluents], [snake(d) for d in self.deciding]
        kinds = dict.fromkeys([*states, *decisions], "boolean") | {"reward": "continuous"}
        return Schema([states, *([d] for d in decisions)], decisions, "reward", kinds)

    def mdp(self) -> MDP:
        """Return the MDP of the states that can be reached, in the order of their booleans."""
        codes = self._reached()
        rows, after, chances = (
            np.concatenate(parts) for parts in zip(*self._tables(codes), strict=True)
        )
        states = self._booleans(codes)
        rewards = self.rewards(states[:, None], self.actions[None]).ravel()
        return MDP(
            self.name,
            self.schema,
            tuple(map(tuple, states.tolist())),
            tuple(map(tuple, self.actions.tolist())),
            np.searchsorted(rows, np.arange(len(codes) * len(self.actions) + 1)),
            np.searchsorted(codes, after),
            chances,
            rewards[rows],
            (codes == self._code(self.start)).astype(float),
            np.zeros(len(codes), dtype=bool),
            episodes=1000,
            horizon=self.horizon,
        )

    def _reached(self) -> Ints:  # [S], sorted
        """Return the codes of the states that can be reached."""
        if len(self.fluents) > 62:
            raise TooLargeError(f"{self.name}: {len(self.fluents)} booleans do not fit a code")
        codes = frontier = self._code(self.start)[None]
        while len(frontier):
            after = np.unique(np.concatenate([codes for _, codes, _ in self._tables(frontier)]))
            frontier = np.setdiff1d(after, codes, assume_unique=True)
            codes = np.union1d(codes, frontier)
            if len(codes) > MOST_STATES:
                raise TooLargeError(f"{self.name}: more than {MOST_STATES} states")
        return codes

    def _tables(self, codes: Ints) -> list[tuple[Ints, Ints, Array]]:
        """Return rows, codes and probabilities of what follows states, in chunks of states."""
        size, A = max(1, CHUNK // len(self.actions)), len(self.actions)
        parts, transitions = [], 0
        for first in range(0, len(codes), size):
            states = self._booleans(codes[first : first + size])
            found = self.chances(states[:, None], self.actions[None])
            most = np.exp2(((found > 0) & (found < 1)).sum(axis=-1)).sum()
            transitions += int(most)
            if transitions > MOST_TRANSITIONS:
                raise TooLargeError(f"{self.name}: more than {MOST_TRANSITIONS} transitions")
            rows, after, chances = drawn(found.reshape(-1, len(self.fluents)))
            parts.append((rows + first * A, after, chances))
        return parts

    def _code(self, states: Bools) -> NDArray[Any]:
        return states.astype(np.int64) @ self._weights

    def _booleans(self, codes: Ints) -> Bools:  # [len(codes), V]
        return (codes[:, None] & self._weights) > 0

    @property
    def _weights(self) -> Ints:  # [V]
        return 1 << np.arange(len(self.fluents), dtype=np.int64)[::-1]


def drawn(chances: Array) -> tuple[Ints, Ints, Array]:
    """Return the row, code and probability of every draw of independent booleans that is possible.

    `chances` [R, V] are those of being true; the first boolean is the highest bit of the code.

    >>> drawn(np.array([[1.0, 0.25]]))
    (array([0, 0]), array([2, 3]), array([0.75, 0.25]))
    """
    row = np.arange(len(chances))
    code = np.zeros(len(chances), dtype=np.int64)
    probability = np.ones(len(chances))
    for column in chances.T:
        true = column[row]
        either = (true > 0) & (true < 1)
        copies = 1 + either
        last = np.cumsum(copies) - 1
        row, code, true = (np.repeat(a, copies) for a in (row, code, true))
        is_true = true == 1
        is_true[last[either]] = True  # the first of two is false
        probability = np.repeat(probability, copies) * np.where(is_true, true, 1 - true)
        code = 2 * code + is_true
    return row, code, probability


def snake(name: str) -> str:
    """Return the name that a grounded RDDL variable has here.

    >>> snake("elevator-at-floor___e0__f1"), snake("hintedRight___s0")
    ('elevator_at_floor_e0_f1', 'hinted_right_s0')
    """
    spaced = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()
    return re.sub(r"[-_]+", "_", spaced)


def _grounded(domain: str, number: int) -> Any:
    """Return pyRDDLGym's grounded model of an instance."""
    from pyRDDLGym.core.grounder import RDDLGrounder
    from pyRDDLGym.core.parser.parser import RDDLParser
    from pyRDDLGym.core.parser.reader import RDDLReader

    found = importlib.util.find_spec("rddlrepository")
    if found is None or found.origin is None:
        raise ImportError("IPPC 2011 needs rddlrepository: pip install 'rspmn[rddl]'")
    folder = Path(found.origin).parent / "archive" / "competitions" / "IPPC2011" / domain / "MDP"
    text = RDDLReader(str(folder / "domain.rddl"), str(folder / f"instance{number}.rddl")).rddltxt
    parser = RDDLParser(lexer=None, verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyRDDLGym's own
        parser.build()
        return RDDLGrounder(parser.parse(text)).ground()
