"""Logged steps as arrays: numbers, categories, actions, and what followed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rspmn.data.columns import Column
from rspmn.data.episodes import Followed
from rspmn.data.keys import joint_key
from rspmn.data.windows import Windows
from rspmn.types import Array, Bools, Ints
from rspmn.values import Value


@dataclass(frozen=True, eq=False)
class Variable:
    """A state variable of all steps, and of their successors."""

    name: str
    column: Column  # [steps]
    after: Column  # [steps]; missing where there is no successor
    is_number: bool

    def values(self) -> Array:  # [steps]
        """Return numbers, or codes of categories as numbers; NaN where they are missing."""
        return _floats(self.column, self.is_number)

    def next_values(self) -> Array:  # [steps]
        """Return the same of the successors."""
        return _floats(self.after, self.is_number)


def _floats(column: Column, is_number: bool) -> Array:
    if is_number:
        return column.numbers()
    return np.where(column.missing, np.nan, column.data.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of a log whose successor is known, END included."""

    variables: tuple[Variable, ...]
    decisions: tuple[str, ...]
    actions: tuple[tuple[Value, ...], ...]  # the joint values of the decisions that were seen
    action: Ints  # [steps], an index of `actions`
    ended: Bools  # [steps]
    utility: Column  # [steps]
    counts: Array  # [steps], how often each occurred
    rows: Ints  # [steps], windows
    episodes: float  # how many there are

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, which: Ints) -> "Steps":
        """Return some of the steps."""
        variables = tuple(
            replace(v, column=v.column.take(which), after=v.after.take(which))
            for v in self.variables
        )
        return replace(
            self, variables=variables, action=self.action[which], ended=self.ended[which],
            utility=self.utility.take(which), counts=self.counts[which], rows=self.rows[which],
            episodes=self.episodes * len(which) / max(1, len(self)),
        )  # fmt: skip

    def thinned(self, most: int) -> "Steps":
        """Return at most so many steps, spread over the log."""
        every = -(-len(self) // most)
        return self if every <= 1 else self.take(np.arange(0, len(self), every))

    def only(self, names: Sequence[str]) -> tuple[Variable, ...]:
        """Return some of the variables, in the order of their names."""
        by_name = {variable.name: variable for variable in self.variables}
        return tuple(by_name[name] for name in names)


def steps_of(windows: Windows, numbers: frozenset[str]) -> Steps:
    """Return the steps of a log; `numbers` are the state variables that are numbers."""
    rows = np.flatnonzero(windows.followed != Followed.UNKNOWN)
    schema = windows.schema
    variables = tuple(
        Variable(
            name, windows.columns[name].take(rows), windows.next_columns[name].take(rows),
            name in numbers,
        )
        for name in schema.information_sets[0]
    )  # fmt: skip
    decided = [windows.columns[name].take(rows) for name in schema.decisions]
    keys = joint_key([(column.data.astype(np.int64), len(column.domain)) for column in decided])
    _, first, action = np.unique(keys, return_index=True, return_inverse=True)
    actions = tuple(
        tuple(column.domain[column.data[row]] for column in decided) for row in first.tolist()
    )
    return Steps(
        variables, schema.decisions, actions, action.astype(np.int64),
        windows.followed[rows] == Followed.END, windows.columns[schema.utility].take(rows),
        windows.counts[rows].astype(np.float64), rows, float(windows.starts.sum()),
    )  # fmt: skip
