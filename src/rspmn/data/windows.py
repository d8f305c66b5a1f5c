"""Windows: the distinct (step, what followed) pairs of a log, each with a weight.

Sec. 4, Step 1 wraps the data into rows of two consecutive steps. Since only few of them are
distinct, and everything that is learned depends on them and their numbers alone, they are
counted once. What follows a step is its successor's state; the successor's decision and
utility say nothing about the step itself. The paper's own rows, pairs of whole tuples, are
`successor="tuple"`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rspmn.data.coding import Column, missing_column, same_domain
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.grouping import Groups, column_groups, joint_groups
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
    def from_episodes(
        cls, episodes: Episodes, successor: Successor = "state", time_limit: int | None = None
    ) -> "Windows":
        """Count the distinct windows of a log.

        Parameters
        ----------
        episodes
            The log.
        successor
            Whether what follows a step is the next state or, as in the paper, the whole next step.
        time_limit
            The number of steps after which all episodes were cut, if what they led to was not
            kept. A log with a limit keeps the ends that happen in its very last step and loses
            what followed all other steps there; to count the ends only would make them look
            likelier than they are, so that step is not counted at all. If not given, a length at
            which episodes were cut and beyond which none goes is taken as the limit; 0: none.
        """
        if successor not in get_args(Successor):
            raise DataError(
                f"successor {successor!r}: {did_you_mean(successor, get_args(Successor))}"
            )
        schema = episodes.schema
        told = schema.information_sets[0] if successor == "state" else schema.variables
        episodes = replace(episodes, endings=_fair_endings(episodes, time_limit))
        alike = _told_alike(episodes, told)  # of each step, then of each final state
        steps = Groups(alike.codes[: episodes.num_steps], alike.size)
        for name in schema.variables:
            if name not in told:
                steps = steps * column_groups(episodes.columns[name])
        windows = (steps * _followed_by(episodes, alike)).dense()
        first = windows.members()
        after = _next_rows(episodes, first)
        followed = episodes.followed[first]
        if successor == "state":  # a later step is a successor state like any other
            followed[followed == Followed.TUPLE] = Followed.STATE
        return cls(
            schema,
            {name: column.take(first) for name, column in episodes.columns.items()},
            {name: _successor(episodes, name, after) for name in told},
            followed,
            windows.weights(),
            np.bincount(windows.codes[episodes.offsets[:-1]], minlength=windows.size),
        )


def _fair_endings(episodes: Episodes, time_limit: int | None) -> NDArray[np.int8]:
    """Return what followed the last steps, an END at the time limit being as good as unknown."""
    lengths, endings = episodes.lengths, episodes.endings
    if time_limit is None:
        longest = lengths == lengths.max(initial=0)
        cut = (endings[longest] == Followed.UNKNOWN).any()
        kept = (endings[longest] == Followed.STATE).any()
        time_limit = int(lengths.max(initial=0)) if cut and not kept else 0
    late = (endings == Followed.END) & (lengths == time_limit)
    return np.where(late, Followed.UNKNOWN, endings).astype(np.int8)


def _told_alike(episodes: Episodes, names: Sequence[str]) -> Groups:
    """Group the steps, and after them the final states, that are equal in some variables."""
    has_final = np.flatnonzero(episodes.endings == Followed.STATE)
    columns = []
    for name in names:
        column = episodes.columns[name]
        if len(has_final):
            final = _final(episodes, name).take(has_final)
            column = Column(column.kind, np.append(column.data, final.data), column.domain)
        columns.append(column)
    return joint_groups(columns, episodes.num_steps + len(has_final))


def _followed_by(episodes: Episodes, alike: Groups) -> Groups:
    """Group the steps by what followed them."""
    codes = np.empty(episodes.num_steps, dtype=np.int32)
    codes[:-1] = alike.codes[1 : episodes.num_steps]
    codes += 2
    last = episodes.offsets[1:] - 1
    after = np.where(episodes.endings == Followed.END, 0, 1)
    after[episodes.endings == Followed.STATE] = alike.codes[episodes.num_steps :] + 2
    codes[last] = after
    return Groups(codes, alike.size + 2)


def _next_rows(episodes: Episodes, steps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the step after each of some steps; -1 - e where it is the last of episode e."""
    episode = np.searchsorted(episodes.offsets, steps, side="right") - 1
    return np.where(steps + 1 < episodes.offsets[episode + 1], steps + 1, -1 - episode)


def _successor(episodes: Episodes, name: str, after: NDArray[np.int64]) -> Column:
    """Return the variable's value in the successor: the next step's, or the final state's."""
    column = episodes.columns[name].take(np.maximum(after, -1))
    last = np.flatnonzero(after < 0)
    ended = -1 - after[last]
    final = _final(episodes, name).take(
        np.where(episodes.endings[ended] == Followed.STATE, ended, -1)
    )
    column.data[last] = final.data
    return column


def _final(episodes: Episodes, name: str) -> Column:
    """Return the variable in the final states; nothing of them is known but the state."""
    if name in episodes.finals:
        return episodes.finals[name]
    return missing_column(len(episodes), episodes.columns[name])


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
    """Add up the counts of equal windows, in the order in which `from_episodes` has them."""
    kind = np.array([2, 2, 0, 1], dtype=np.int32)[followed]  # END, UNKNOWN, then those that follow
    groups = joint_groups([columns[name] for name in schema.variables], len(followed))
    groups = groups * Groups(kind, 3)
    for column in next_columns.values():
        groups = groups * column_groups(column)
    groups = (groups * Groups(followed.astype(np.int32), len(Followed))).dense()
    first = groups.members()
    return Windows(
        schema,
        {name: column.take(first) for name, column in columns.items()},
        {name: column.take(first) for name, column in next_columns.items()},
        followed[first],
        groups.weights(counts),
        groups.weights(starts),
    )
