"""Policies to be evaluated: anything that says how probable decisions are in a state.

A `Target` answers for many states at once. `as_target` makes one of

- a function from a state, a mapping of variables to values, to an action or to a mapping of actions
  to probabilities;
- a mapping from states, tuples of values or a single value, to the same;
- a table of rules, a data frame or a CSV file: see `rspmn.evaluate.rule_table`;
- an `rspmn.Policy`;
- "uniform", every decision as often as any other; "practice", what the log does; or "recommended",
  what the model recommends.

With several decisions in a step, an action is a tuple of their values or a mapping by decision.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rspmn.errors import EvidenceError, did_you_mean
from rspmn.evaluate.logged import Joint, Situations
from rspmn.infer.available_actions import is_lawful
from rspmn.infer.policy import Policy
from rspmn.types import Array, Bools, objects
from rspmn.values import UNKNOWN, as_value

#: Targets that have a name.
NAMES = ("uniform", "practice", "recommended")


@dataclass(frozen=True, eq=False)
class AskedStates:
    """The states that a target is asked about, and what the log does in them."""

    situations: Situations
    practice: Array  # [S, J], the probability of each decision in the log


@runtime_checkable
class Target(Protocol):
    """A policy to be evaluated."""

    @property
    def stationary(self) -> bool:
        """Whether it does the same at all times."""
        ...

    def probabilities(self, asked: AskedStates, t: int) -> Array:  # [S, J]
        """Return the probability of each decision in each state at time t.

        Rows sum to 1, or to less where the target takes decisions that neither log nor model have.
        A row of NaN means that the target says nothing of the state.
        """
        ...


class Uniform:
    """Every decision that laws allow as often as any other."""

    stationary = True

    def probabilities(self, asked: AskedStates, t: int) -> Array:  # noqa: ARG002
        """Return equal probabilities."""
        found = _allowed(asked.situations).astype(np.float64)
        return np.asarray(found / np.maximum(found.sum(axis=1, keepdims=True), 1))


class Practice:
    """What the log does."""

    stationary = True

    def probabilities(self, asked: AskedStates, t: int) -> Array:  # noqa: ARG002
        """Return the estimated probabilities of the log."""
        return asked.practice


class Planned:
    """The decisions of a policy. It says nothing of states that its model never saw."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.stationary = policy, policy.horizon is None
        self._asked: tuple[Situations, Iterator[list[Joint]], list[list[Joint]]] | None = None

    def probabilities(self, asked: AskedStates, t: int) -> Array:
        """Return 1 for the decision of the policy.

        Which interface nodes states are in is found once for all times.
        """
        situations = asked.situations
        if self._asked is None or self._asked[0] is not situations:
            self._asked = situations, self._decided(situations), []
        _, coming, found = self._asked
        while len(found) <= t:
            found.append(next(coming))
        return _certain(situations, [None if UNKNOWN in made else made for made in found[t]])

    def _decided(self, situations: Situations) -> Iterator[list[Joint]]:
        """Return the joint decisions in all states, by time."""
        names, times = situations.schema.decisions, count()  # the policy refuses those beyond it
        states = {name: column.decode() for name, column in situations.columns.items()}
        table = {name: objects(column) for name, column in states.items()}
        otherwise = dict.fromkeys(names, UNKNOWN) if len(names) > 1 else UNKNOWN
        if table:
            for found in self.policy.plan(table, times, otherwise):
                made = found if isinstance(found, dict) else {names[0]: found}
                yield list(zip(*(made[name].tolist() for name in names), strict=True))
        else:
            for t in times:
                act = self.policy.act({}, t)
                yield [tuple(act.values()) if isinstance(act, dict) else (act,)]


class FunctionTarget:
    """The answers of a function, or of a mapping, for each state."""

    stationary = True

    def __init__(self, choose: Callable[[dict[str, Any]], object]) -> None:
        self.choose = choose

    def probabilities(self, asked: AskedStates, t: int) -> Array:  # noqa: ARG002
        """Return the probabilities of all answers; each distinct state is asked about once."""
        situations = asked.situations
        found = np.zeros((situations.count, len(situations.decisions)))
        for row, state in enumerate(situations.known):
            answer = self.choose(dict(state))
            if answer is None:
                found[row] = np.nan
                continue
            for made, share in _shares(answer, situations, state).items():
                place = situations.number.get(made)
                if place is not None:
                    found[row, place] += share
        return found


@dataclass(frozen=True)
class Mixture:
    """One target, or with some probability another: in each step anew.

    >>> mostly = Mixture(Practice(), Uniform(), 0.1)
    >>> mostly.stationary
    True
    """

    one: Target
    other: Target
    share: float  # of the other

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise EvidenceError(f"Mixture: expected a share from 0 to 1, found {self.share}")

    @property
    def stationary(self) -> bool:
        """Whether both do the same at all times."""
        return self.one.stationary and self.other.stationary

    def probabilities(self, asked: AskedStates, t: int) -> Array:
        """Return the mean of both."""
        one, other = self.one.probabilities(asked, t), self.other.probabilities(asked, t)
        return np.asarray((1 - self.share) * one + self.share * other)


def as_target(source: object, policy: Callable[[], Policy]) -> Target:
    """Return anything that is a policy as a target; `policy` makes the recommended one."""
    from rspmn.evaluate.rule_table import RuleTable, is_rule_table

    if isinstance(source, Policy):
        return Planned(source)
    if isinstance(source, Target):
        return source
    if isinstance(source, str) and source in NAMES:
        named: dict[str, Callable[[], Target]] = {
            "uniform": Uniform, "practice": Practice, "recommended": lambda: Planned(policy())
        }  # fmt: skip
        return named[source]()
    if isinstance(source, str) and not source.lower().endswith(".csv"):
        raise EvidenceError(
            f"policy {source!r}: {did_you_mean(source, NAMES)}; or the name of a .csv file"
        )
    if isinstance(source, str | Path) or is_rule_table(source):
        return RuleTable(source)
    if isinstance(source, Mapping):
        return FunctionTarget(_looked_up(source))
    if callable(source):
        return FunctionTarget(source)
    raise EvidenceError(
        "policy: expected a function, a mapping, a table of rules, a Policy or one of "
        f"{list(NAMES)}, found {type(source).__name__}"
    )


def _looked_up(table: Mapping[Any, object]) -> Callable[[dict[str, Any]], object]:
    def choose(state: dict[str, Any]) -> object:
        values = tuple(state.values())
        return table.get(values[0] if len(values) == 1 and values not in table else values)

    return choose


def _shares(answer: object, situations: Situations, state: object) -> dict[Joint, float]:
    """Return the probabilities of joint decisions that an answer gives."""
    names = situations.schema.decisions
    if not isinstance(answer, Mapping) or set(answer) == set(names):
        return {_joint(answer, names): 1.0}
    found = {_joint(made, names): float(share) for made, share in answer.items()}
    if min(found.values()) < 0 or abs(sum(found.values()) - 1) > 1e-6:
        raise EvidenceError(
            f"policy: expected probabilities that sum to 1 in the state {state}, found {answer}"
        )
    return found


def _joint(made: object, names: tuple[str, ...]) -> Joint:
    """Return an action as the values of all decisions."""
    if isinstance(made, Mapping):
        made = tuple(made[name] for name in names)
    values = made if isinstance(made, tuple) else (made,)
    if len(values) != len(names):
        raise EvidenceError(f"policy: expected values for {list(names)}, found {made!r}")
    return tuple(as_value(value, "policy", EvidenceError) for value in values)


def _certain(situations: Situations, made: list[Joint | None]) -> Array:  # [S, J]
    """Return 1 for the decision that is made in each state; a row of NaN for None."""
    found = np.zeros((situations.count, len(situations.decisions)))
    place = np.array([situations.number.get(joint, -1) if joint else -2 for joint in made])
    rows = np.flatnonzero(place >= 0)
    found[rows, place[rows]] = 1.0
    found[place == -2] = np.nan
    return found


def _allowed(situations: Situations) -> Bools:  # [S, J]
    """Return which decisions laws allow in which states."""
    found = np.ones((situations.count, len(situations.decisions)), dtype=bool)
    laws, names = situations.schema.laws, situations.schema.decisions
    if laws:
        for row, state in enumerate(situations.known):
            for k, joint in enumerate(situations.decisions):
                made = {n: v for n, v in zip(names, joint, strict=True) if v is not None}
                found[row, k] = is_lawful(made, state, laws)
    return found
