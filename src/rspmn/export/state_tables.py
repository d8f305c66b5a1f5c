"""A policy over finitely many states, as tables: what it decides in each of them.

A step has a stage for each group of decisions that are made together. What is known in a stage are
the variables before it, decisions of earlier stages among them. Each variable has a few cells: the
values that the model names, a missing value, and, if the model accepts it, any other value. Where
states would be too many, missing values are left out, and refused by what is written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np

from rspmn.circuit import Leaf, Max
from rspmn.errors import EvidenceError
from rspmn.infer.base_policy import BasePolicy
from rspmn.types import Ints
from rspmn.values import Mark, Value, show

#: At most so many states are asked for, of the first stage and of a later one.
MOST_STATES, MOST_LATER = 100_000, 5_000


class Other:
    """A value that the model does not name."""

    def __repr__(self) -> str:
        return "OTHER"


OTHER = Other()
#: A value, None if it is missing, or any other value.
Cell = Value | None | Other


@dataclass(frozen=True, eq=False)
class Stage:
    """The decisions of a stage in each of its states."""

    cells: dict[str, tuple[Cell, ...]]  # of the variables that are known
    decisions: tuple[str, ...]
    codes: Ints  # [states, variables], which cell of each variable a state has
    choices: list[tuple[Value, ...] | None]  # what may be decided; None in states never seen
    chosen: Ints  # [states], the number of the choice
    unseen: tuple[Value, ...] | None  # what is decided where a value was never seen

    @cached_property
    def is_complete(self) -> "np.ndarray[Any, np.dtype[np.bool_]]":  # [states]
        """Whether all variables of a state have values that the model names."""
        named = np.ones(len(self.codes), dtype=bool)
        for k, cells in enumerate(self.cells.values()):
            known = [cell is not None and cell is not OTHER for cell in cells]
            named &= np.array(known)[self.codes[:, k]]
        return named


def is_finite(policy: BasePolicy) -> bool:
    """Tell whether the states of a policy are finitely many: all leaves list their values."""
    return all(
        node.distribution.atoms() is not None
        for node in policy.model.template.nodes
        if isinstance(node, Leaf) and node.variable in policy.model.schema.state_variables
    )


def stages_of(policy: BasePolicy, t: int = 0) -> list[Stage]:
    """Return all stages of a step, with what is decided in each of their states."""
    schema, found = policy.model.schema, []
    groups = _groups(policy)
    for number, decisions in enumerate(groups):
        cells = {
            name: _cells(policy, name)
            for name in schema.known_before(decisions[0])
            if name not in schema.informative.values()
        }
        cells = {name: own for name, own in cells.items() if own}
        most = MOST_LATER if number else MOST_STATES
        if prod(map(len, cells.values())) > most:
            cells = {name: _present(own) for name, own in cells.items()}
        size = prod(map(len, cells.values()))
        if size > most:
            raise EvidenceError(
                f"{', '.join(decisions)}: expected at most {most} states to export, found {size}"
            )
        codes = np.array([*product(*(range(len(own)) for own in cells.values()))], dtype=np.int64)
        found.append(decided(policy, t, cells, decisions, codes.reshape(size, len(cells)), number))
    return found


def _present(cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """Return the cells of values that are not missing."""
    return tuple(cell for cell in cells if cell is not None)


def _groups(policy: BasePolicy) -> list[tuple[str, ...]]:
    """Return the decisions that are made together, stage by stage."""
    schema = policy.model.schema
    groups: list[list[str]] = [[]]
    for decision, seen in zip(schema.decisions, schema.information_sets[1:], strict=True):
        groups[-1].append(decision)
        if seen:
            groups.append([])
    return [tuple(group) for group in groups if group]


def _cells(policy: BasePolicy, name: str) -> tuple[Cell, ...]:
    """Return the cells of a variable; none if nothing depends on it."""
    values: dict[Value, None] = {}
    is_open = False
    for node in policy.model.template.nodes:
        if isinstance(node, Max) and node.decision == name:
            values |= dict.fromkeys(node.values)
        elif isinstance(node, Leaf) and node.variable == name:
            values |= dict.fromkeys(node.distribution.atoms() or ())
            is_open |= node.distribution.unlisted() > 0
    named = [value for value in values if not isinstance(value, Mark)]
    if not named:
        return ()
    if name in policy.model.schema.decisions:  # a decision of an earlier stage is never missing
        return tuple(named)
    ordered = sorted(named, key=lambda value: (isinstance(value, str), value))
    return (*ordered, None, *((OTHER,) if is_open else ()))


def decided(
    policy: BasePolicy, t: int, cells: dict[str, tuple[Cell, ...]], decisions: tuple[str, ...],
    codes: Ints, number: int = 0,
) -> Stage:  # fmt: skip
    """Return a stage, given the cells of all states."""
    raw = {name: [_raw(cell, own) for cell in own] for name, own in cells.items()}
    columns = {
        name: [raw[name][code] for code in codes[:, k].tolist()] for k, name in enumerate(cells)
    }
    made = _made_first(policy, t, columns, decisions, len(codes)) if number == 0 else [
        _made_later(policy, t, dict(zip(columns, row, strict=True)), decisions)
        for row in zip(*columns.values(), strict=True)
    ]  # fmt: skip
    choices = list(dict.fromkeys(made))
    place = {choice: k for k, choice in enumerate(choices)}
    chosen = np.array([place[choice] for choice in made])
    return Stage(cells, decisions, codes, choices, chosen, _otherwise(policy, decisions))


def _otherwise(policy: BasePolicy, decisions: tuple[str, ...]) -> tuple[Value, ...] | None:
    """Return what a policy decides in states that the model never saw, if it does."""
    given = policy.otherwise
    if isinstance(given, Mapping):
        return tuple(given[name] for name in decisions)
    return None if given is None else (given,)


def _raw(cell: Cell, own: tuple[Cell, ...]) -> Value | None:
    """Return a value that stands for a cell."""
    if not isinstance(cell, Other):
        return cell
    named = [value for value in own if value is not None and not isinstance(value, Other)]
    if all(isinstance(value, str) for value in named):
        return "".join(map(str, named)) + " other"
    return 1 + max(value for value in named if not isinstance(value, str | Mark))


def _made_first(
    policy: BasePolicy, t: int, columns: dict[str, list[Any]], decisions: tuple[str, ...], size: int
) -> list[tuple[Value, ...] | None]:
    """Return the decisions in all states of the first stage."""
    if not columns:
        return [_made_later(policy, t, {}, decisions)] * size
    unknown: Any = None if policy.otherwise is not None else dict.fromkeys(decisions)
    found = policy.act_many(columns, t, unknown)
    of = found if isinstance(found, dict) else {decisions[0]: found}
    rows = zip(*(of[name].tolist() for name in decisions), strict=True)
    return [None if None in row else row for row in rows]


def _made_later(
    policy: BasePolicy, t: int, state: dict[str, Any], decisions: tuple[str, ...]
) -> tuple[Value, ...] | None:
    """Return the decisions in one state; None if the model never saw it."""
    try:
        made = policy.act(state, t)
    except EvidenceError:
        return None
    of = made if isinstance(made, dict) else {decisions[0]: made}
    return tuple(of[name] for name in decisions) if set(of) >= set(decisions) else None


def described(policy: BasePolicy, t: int) -> str:
    """Return a line about a policy, for the head of a file."""
    steps = "without a horizon" if policy.horizon is None else f"at step {t} of {policy.horizon}"
    rule = "" if policy.discount == 1 else f", discount {show(policy.discount)}"
    return f"The decisions of a policy {steps}{rule}."
