"""Laws and habits: where a decision can be made, and where the logger never made it.

That a decision was never made in some states may be a law of the world or a habit of the logger,
and a log cannot say which. Laws are declared in the schema, `[available]`. Everywhere else a
decision that was made in one state of an interface node is offered in all of them, and answers say
where it was never made.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.errors import CircuitError, DataError, RspmnError, SchemaError, did_you_mean
from rspmn.expressions import Expression
from rspmn.expressions.evaluate import evaluate
from rspmn.types import Array, Bools, Ints, objects
from rspmn.values import MOST_STEPS, Mark, Value, is_text, show

#: What is declared: the condition of each value of a decision or, of several decisions, by name.
Available = Mapping[str, str] | Mapping[str, Mapping[str, str]]


def label(value: Value) -> str:
    """Return how a value of a decision is written in a law.

    >>> label("lift"), label(3), label(True)
    ('lift', '3', 'true')
    """
    return str(value).lower() if isinstance(value, bool) else show(value)


@dataclass(frozen=True)
class DecisionCondition:
    """A condition on the state that is about one value of a decision: a law, or a rule."""

    decision: str
    value: str  # as `label` writes it
    condition: str | None  # None: in all states
    variables: tuple[str, ...]  # that it depends on

    @cached_property
    def _expression(self) -> Expression:
        return Expression.parse(self.condition or "")

    def holds(self, columns: Mapping[str, NDArray[Any]]) -> Bools:  # [rows]
        """Return where the condition is true; also where values are missing that it depends on."""
        known = {name: columns[name] for name in self.variables}
        return np.asarray(evaluate(self._expression, known) != 0)

    def is_about(self, made: Mapping[str, Value]) -> bool:
        """Return whether decisions have the value."""
        value = made.get(self.decision)
        return value is not None and label(value) == self.value


@dataclass(frozen=True)
class Law(DecisionCondition):
    """A condition without which a decision cannot have a value.

    Where the state is not known, a law allows; a rule that forbids (`Forbidden`) then forbids.

    >>> law = Law("action", "lift", "floor > 0", ("floor",))
    >>> law.holds({"floor": np.array([0.0, 2.0, np.nan])})
    array([False,  True,  True])
    """

    condition: str

    def __str__(self) -> str:
        return f"{self.decision} = {self.value} is available where {self.condition}"

    @property
    def column(self) -> str:
        """The name of the column that says where the law holds."""
        return f"{self.decision} = {self.value} is available"

    def allows(self, made: Mapping[str, Value], state: Mapping[str, Any]) -> bool:
        """Return whether decisions may be made in a state, as far as the state is known."""
        if not self.is_about(made) or any(name not in state for name in self.variables):
            return True
        return _holds(self, tuple(state[name] for name in self.variables))


@lru_cache(maxsize=10_000)
def _holds(law: Law, values: tuple[Value, ...]) -> bool:
    """Return whether a law holds for some values of its variables."""
    columns = {name: as_column([v]) for name, v in zip(law.variables, values, strict=True)}
    return bool(law.holds(columns)[0])


def as_column(values: Sequence[Value]) -> NDArray[Any]:
    """Return values as expressions are evaluated on: of numbers, or of text.

    Marks are missing among numbers.

    >>> as_column([1, Mark.UNKNOWN, 3])
    array([ 1., nan,  3.])
    """
    if any(isinstance(value, str) for value in values):
        return objects([str(value) for value in values])
    if any(isinstance(value, Mark) for value in values):
        return np.array([np.nan if isinstance(value, Mark) else value for value in values])
    return np.array(values)


def laws_of(
    available: Available, decisions: Collection[str], known_before: Mapping[str, Collection[str]]
) -> tuple[Law, ...]:
    """Return the laws that a schema declares.

    `available`: the conditions. `decisions`: the schema's decisions. `known_before`: the variables
    that are known before each decision.
    """
    return tuple(
        _law(decision, label(value), condition, known_before[decision])
        for decision, conditions in _by_decision(available, decisions)
        for value, condition in conditions.items()
    )


def _by_decision(
    available: Available, decisions: Collection[str]
) -> Iterable[tuple[str, Mapping[str, str]]]:
    if not isinstance(available, Mapping):
        raise SchemaError(
            "available: expected conditions by value of a decision, {'lift': 'floor > 0'}, found "
            f"{available!r}"
        )
    plain: dict[str, str] = {}
    for name, condition in available.items():
        if isinstance(condition, Mapping):
            if name not in decisions:
                raise SchemaError(
                    f"available: {name!r} is not a decision: {did_you_mean(name, decisions)}"
                )
            yield name, condition
        else:
            plain[name] = condition
    if plain and len(decisions) != 1:
        raise SchemaError(
            f"available: {next(iter(plain))!r}: expected a table for each decision, "
            f"[available.DECISION], as there are several: {list(decisions)}"
        )
    if plain:
        yield next(iter(decisions)), plain


def _law(decision: str, value: str, condition: object, known: Collection[str]) -> Law:
    where = f"available: {value}"
    if not is_text(value):
        raise SchemaError(f"available: expected a value of {decision!r}, found {value!r}")
    if not isinstance(condition, str):
        raise SchemaError(f"{where}: expected a condition such as 'floor > 0', found {condition!r}")
    variables = variables_of(condition, decision, known, where, SchemaError)
    return Law(decision, value, condition, variables)


def variables_of(
    condition: str, decision: str, known: Collection[str], where: str, error: type[RspmnError]
) -> tuple[str, ...]:
    """Return the variables of a condition on a decision, of which some are `known` before it."""
    try:
        variables = Expression.parse(condition).columns(known)
    except DataError as wrong:
        raise error(f"{where}: {wrong}") from None
    if not variables:
        raise error(
            f"{where}: {condition!r} has none of the variables observed before {decision!r}: "
            f"{list(known)}"
        )
    return variables


@dataclass(frozen=True)
class NeverTaken:
    """A value of a decision that was never taken where a variable had some value.

    >>> str(NeverTaken("action", "lift", "ward", 3, 412.0))
    'never taken when ward = 3 (412 times expected)'
    """

    decision: str
    value: Value
    variable: str
    at: Value
    #: How often it was to be expected there, by its share in the interface nodes.
    expected: float

    def __post_init__(self) -> None:
        if not 0 <= self.expected <= MOST_STEPS:
            raise CircuitError(
                f"never taken: {self.decision!r}: expected a number of steps from 0 to "
                f"{MOST_STEPS:.3g}, found {self.expected}"
            )

    def __str__(self) -> str:
        return (
            f"never taken when {self.variable} = {show(self.at)} ({self.expected:.0f} times "
            "expected)"
        )


#: A logger is careful if steps that are not usual are fewer than this share of what they would be
#: if decisions were random.
CARELESS = 0.25


def usual_decisions(state: Ints, steps: Array, offered: Array | int) -> tuple[Bools, bool]:
    """Return which decisions are usual in their state, and whether the logger is careful.

    A decision is usual if, without one of its steps, no other of its state has more. Of a careful
    logger, what is not usual is a mistake.

    Parameters
    ----------
    state
        The state of each decision, from 0. [decisions]
    steps
        How often it was made. [decisions]
    offered
        How many could be made in its state. [decisions]

    Examples
    --------
    >>> usual_decisions(np.array([0, 0, 1]), np.array([9.0, 1.0, 5.0]), 2)
    (array([ True, False,  True]), True)
    """
    order = np.lexsort([-steps, state])
    first = np.flatnonzero(np.diff(state[order], prepend=-1))
    most, next_most = np.zeros((2, int(state.max(initial=-1)) + 1))
    most[state[order[first]]] = steps[order[first]]
    second = first[np.diff(np.append(first, len(order))) > 1] + 1
    next_most[state[order[second]]] = steps[order[second]]
    of_others = np.where(steps == most[state], next_most[state], most[state])
    usual = steps - 1 >= of_others
    random = float((steps * (1 - 1 / np.maximum(offered, 1))).sum())
    return usual, float(steps[~usual].sum()) < CARELESS * random
