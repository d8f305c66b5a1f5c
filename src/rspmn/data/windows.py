"""Windows: the distinct (step, what followed) pairs of a log, each with a weight.

Sec. 4, Step 1 wraps the data into rows of two consecutive steps. Since only few of them are
distinct, and everything that is learned depends on them and their numbers alone, they are
counted once. What follows a step is its successor's state; the successor's decision and
utility say nothing about the step itself. The paper's own rows, pairs of whole tuples, are
`successor="tuple"`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rspmn.data.coding import Column, one_key, same_domain
from rspmn.data.episodes import Episodes, Followed
from rspmn.errors import DataError, did_you_mean
from rspmn.schema import Schema

__all__ = ["Windows"]

Successor = Literal["state", "tuple"]


@dataclass(frozen=True, eq=False)
class Windows:
    """Weighted distinct windows, sorted. `a + b` are the windows of both logs together.

    >>> schema = Schema([["x"], ["a"]], ["a"], "u")
    >>> log = {"episode": [1, 1, 1], "time": [0, 1, 2], "x": [0, 0, 0], "a": ["l", "l", "r"],
    ...        "u": [0.0, 0.0, 1.0]}
    >>> w = Windows.from_episodes(Episodes.from_long(log, schema, ending="end"))
    >>> w.counts, w.starts
    (array([2, 1]), array([1, 0]))
    """

    schema: Schema
    columns: Mapping[str, Column]  # of each variable of the step, [n]
    next_columns: Mapping[str, Column]  # of the successor's variables, [n]; missing without one
    followed: NDArray[np.int8]  # [n], a Followed
    counts: NDArray[np.int64]  # [n], how often the window occurred
    starts: NDArray[np.int64]  # [n], how often of these it began an episode

    def __len__(self) -> int:
        return len(self.counts)

    def __repr__(self) -> str:
        return f"Windows({len(self)} distinct of {int(self.counts.sum())})"

    def __add__(self, other: "Windows") -> "Windows":
        if self._layout != other._layout:
            raise DataError("windows of different schemas or successors cannot be added")
        columns = {name: _joined(self.columns, other.columns, name) for name in self.columns}
        return _group(
            self.schema.with_kinds({name: column.kind for name, column in columns.items()}),
            columns,
            {n: _joined(self.next_columns, other.next_columns, n) for n in self.next_columns},
            np.concatenate([self.followed, other.followed]),
            np.concatenate([self.counts, other.counts]),
            np.concatenate([self.starts, other.starts]),
        )

    @property
    def _layout(self) -> tuple[object, ...]:
        """What two sets of windows must have in common to be added."""
        return self.schema.order, self.schema.decisions, self.schema.utility, [*self.next_columns]

    @classmethod
    def from_episodes(cls, episodes: Episodes, successor: Successor = "state") -> "Windows":
        """Count the distinct windows of a log."""
        if successor not in get_args(Successor):
            raise DataError(
                f"successor {successor!r}: {did_you_mean(successor, get_args(Successor))}"
            )
        followed = episodes.followed
        next_row = np.where(followed == Followed.TUPLE, np.arange(1, len(followed) + 1), -1)
        first = np.zeros(len(followed), dtype=np.int64)
        first[episodes.offsets[:-1]] = 1
        names = episodes.schema.information_sets[0]
        after = {
            name: _successor(episodes, name, next_row)
            for name in (names if successor == "state" else episodes.schema.variables)
        }
        # A later step is a successor state like any other; only the paper's rows tell them apart.
        seen = followed.copy()
        if successor == "state":
            seen[followed == Followed.TUPLE] = Followed.STATE
        return _group(
            episodes.schema, episodes.columns, after, seen, np.ones(len(followed), np.int64), first
        )


def _successor(episodes: Episodes, name: str, next_row: NDArray[np.int64]) -> Column:
    """Return the variable's value in the successor: the next step's, or the final state's."""
    after = episodes.columns[name].take(next_row)
    if name not in episodes.finals:
        return after
    final = episodes.finals[name]
    data = after.data.copy()
    where = episodes.endings == Followed.STATE
    data[episodes.offsets[1:][where] - 1] = final.data[where]
    return Column(after.kind, data, after.domain)


def _joined(one: Mapping[str, Column], other: Mapping[str, Column], name: str) -> Column:
    a, b = same_domain(one[name], other[name], name)
    return Column(a.kind, np.concatenate([a.data, b.data]), a.domain)


def _group(
    schema: Schema,
    columns: Mapping[str, Column],
    next_columns: Mapping[str, Column],
    followed: NDArray[np.int8],
    counts: NDArray[np.int64],
    starts: NDArray[np.int64],
) -> Windows:
    """Add up the counts of equal rows, sorted by the columns, so equal logs give equal windows."""
    everything = [*columns.values(), *next_columns.values()]
    keys = [column.keys() for column in everything] + [(followed.astype(np.int64), len(Followed))]
    _, first, inverse = np.unique(one_key(keys), return_index=True, return_inverse=True)
    return Windows(
        schema,
        {name: column.take(first) for name, column in columns.items()},
        {name: column.take(first) for name, column in next_columns.items()},
        followed[first],
        _added(inverse, counts, len(first)),
        _added(inverse, starts, len(first)),
    )


def _added(groups: NDArray[np.int64], numbers: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, groups, numbers)
    return total
