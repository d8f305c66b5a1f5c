"""Windows: the distinct (step, successor) pairs of a log, each with a count.

Sec. 4, Step 1 wraps the data into rows of two consecutive steps. Only few of them are distinct, and
everything that is learned depends on them and their counts alone, so they are counted once. The
successor is the next state: the next decision and utility say nothing about the step itself. The
paper's own rows, pairs of whole tuples, are `successor="tuple"`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rspmn.data.columns import Column, narrowest, same_domain
from rspmn.data.distinct import distinct_counts, is_countable
from rspmn.data.episodes import Episodes, Followed, check_episodes
from rspmn.data.keys import Keys, column_keys, join, joint_groups
from rspmn.errors import DataError, did_you_mean
from rspmn.schema import Schema
from rspmn.types import Bools, Ints

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
    counts: Ints  # [n], how often the window occurred
    starts: Ints  # [n], how often of these it began an episode
    last_end: int = 0  # the steps of the longest episodes, if all of these ended; else 0

    def __len__(self) -> int:
        return len(self.counts)

    def __repr__(self) -> str:
        return f"Windows({len(self)} distinct of {int(self.counts.sum())})"

    def __add__(self, other: "Windows") -> "Windows":
        if self._layout != other._layout:
            raise DataError("windows of different schemas or successors cannot be added")
        columns = {name: _joined(self.columns, other.columns, name) for name in self.columns}
        both = Windows(
            self.schema.with_kinds({name: column.kind for name, column in columns.items()}),
            columns,
            {n: _joined(self.next_columns, other.next_columns, n) for n in self.next_columns},
            np.concatenate([self.followed, other.followed]),
            np.concatenate([self.counts, other.counts]),
            np.concatenate([self.starts, other.starts]),
            max(self.last_end, other.last_end) if self.last_end and other.last_end else 0,
        )
        return group_windows(both)

    def take(self, rows: Ints) -> "Windows":
        """Return some of the windows."""
        return replace(
            self,
            columns={name: column.take(rows) for name, column in self.columns.items()},
            next_columns={name: column.take(rows) for name, column in self.next_columns.items()},
            followed=self.followed[rows],
            counts=self.counts[rows],
            starts=self.starts[rows],
        )

    @property
    def went_on(self) -> Bools:  # [n]
        """Which steps led to a state of which nothing is known."""
        lacking = [column.missing for column in self.next_columns.values()]
        found = (self.followed == Followed.STATE) & bool(lacking)
        return np.asarray(np.logical_and.reduce([found, *lacking]))

    @property
    def _layout(self) -> tuple[object, ...]:
        """The properties that two sets of windows must share to be added."""
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
            "state": the successor of a step is the next state. "tuple": it is the whole next
            step, as in the paper.
        time_limit
            The number of steps after which episodes were truncated without a final state, although
            it was logged which of them ended just then. Of the others it is known that they went
            on, so the successors of their last steps are states that lack all values. To leave
            these steps out would overestimate the probability of ends. By default, the limit is the
            length of the longest episodes, if some of them ended, some were truncated, and none has
            a final state; 0 means no limit.
        """
        check_episodes(episodes)
        schema = episodes.schema
        names = successor_variables(schema, successor)
        fair = fair_endings(episodes.lengths, episodes.endings, time_limit)
        episodes = replace(episodes, endings=fair)
        state = _state_keys(episodes, names)  # of each step, then of each final state
        rest = [name for name in schema.variables if name not in names]
        others = [column_keys(episodes.columns[name]) for name in rest]
        possible = state.size**2 * math.prod(keys.size for keys in others)
        rows = len(state.codes)
        if is_countable(state.size, rows) and not is_countable(possible, rows):
            state = state.dense()  # so that pairs of states can be counted, too
            state = replace(state, codes=state.codes.astype(narrowest(state.size)))
        steps = replace(state, codes=state.codes[: episodes.num_steps])
        whole = join([steps, *others, _followed_by(episodes, state)])
        distinct, counts = distinct_counts(whole.codes)
        *found, after = whole.read(distinct.astype(np.int64))
        found = found if names else found[1:]  # a log without states has one of them
        first, times = distinct_counts(whole.codes[episodes.offsets[:-1]])
        starts = np.zeros(len(distinct), dtype=np.int64)
        starts[np.searchsorted(distinct, first)] = times
        data = dict(zip((*names, *rest), found, strict=True))
        return cls(
            schema,
            {name: _column(episodes.columns[name], data[name]) for name in episodes.columns},
            _successors(episodes, names, state, after),
            _followed(state, after, successor),
            counts,
            starts,
            last_end_of(episodes.lengths, episodes.endings),
        )


def successor_variables(schema: Schema, successor: Successor) -> tuple[str, ...]:
    """Return the variables that windows have of a successor."""
    if successor not in get_args(Successor):
        raise DataError(f"successor {successor!r}: {did_you_mean(successor, get_args(Successor))}")
    return schema.information_sets[0] if successor == "state" else schema.variables


def time_limit_of(lengths: Ints, endings: NDArray[np.int8]) -> int:
    """Return the length at which the longest episodes were cut or ended; 0 if that is no limit.

    Where the final state of one of them was kept, nothing was lost. Where none ended, it may not
    have been logged which did.
    """
    longest = int(lengths.max(initial=0))
    last = endings[lengths == longest]
    some = (last == Followed.UNKNOWN).any() and (last == Followed.END).any()
    return longest if some and not (last == Followed.STATE).any() else 0


def last_end_of(lengths: Ints, endings: NDArray[np.int8]) -> int:
    """Return the length of the longest episodes, if all of these ended; 0 if not."""
    longest = int(lengths.max(initial=0))
    return longest if (endings[lengths == longest] == Followed.END).all() else 0


def fair_endings(
    lengths: Ints, endings: NDArray[np.int8], time_limit: int | None = None
) -> NDArray[np.int8]:
    """Return what followed the last steps: a state if an episode did not end at the time limit."""
    if time_limit is None:
        time_limit = time_limit_of(lengths, endings)
    went_on = (endings == Followed.UNKNOWN) & (lengths == time_limit)
    return np.where(went_on, Followed.STATE, endings).astype(np.int8)


def _state_keys(episodes: Episodes, names: Sequence[str]) -> Keys:
    """Return keys of the steps, and after them of the final states, by some variables."""
    has_final = np.flatnonzero(episodes.endings == Followed.STATE)
    keys = []
    for name in names:
        column = episodes.columns[name]
        if len(has_final):
            column = column.append(_final(episodes, name).take(has_final))
        keys.append(column_keys(column))
    if not keys:
        rows = episodes.num_steps + len(has_final)
        return Keys(np.zeros(rows, dtype=np.int8), 1, np.zeros(1, dtype=np.int64))
    return join(keys)


def _followed_by(episodes: Episodes, state: Keys) -> Keys:
    """Return keys of what followed each step: 0 END, 1 unknown, 2 and more the states."""
    codes = np.empty(episodes.num_steps, dtype=narrowest(state.size + 2))
    codes[:-1] = state.codes[1 : episodes.num_steps]
    codes += 2
    last = episodes.offsets[1:] - 1
    after = np.where(episodes.endings == Followed.END, 0, 1)
    after[episodes.endings == Followed.STATE] = state.codes[episodes.num_steps :] + np.int64(2)
    codes[last] = after
    return Keys(codes, state.size + 2)


def _column(like: Column, data: NDArray[Any]) -> Column:
    """Return a column of other rows of the same variable."""
    return Column(like.kind, data.astype(like.data.dtype), like.domain)


def _successors(
    episodes: Episodes, names: Sequence[str], state: Keys, after: Ints
) -> dict[str, Column]:
    """Return the successors' variables; missing where there is none."""
    known = after >= 2
    found = {}
    read = state.read(np.where(known, after - 2, 0))
    for name, data in zip(names, read, strict=False):
        like = episodes.columns[name]
        column = like.without_values(len(after))
        column.data[known] = data[known]
        found[name] = column
    return found


def _followed(state: Keys, after: Ints, successor: Successor) -> NDArray[np.int8]:  # [n]
    """Return what followed; a whole tuple without decisions is a state."""
    kinds = np.full(len(after), Followed.STATE, dtype=np.int8)
    kinds[after == 0], kinds[after == 1] = Followed.END, Followed.UNKNOWN
    if successor == "tuple":
        utility = state.read(np.maximum(after - 2, 0))[-1]
        kinds[(after >= 2) & ~np.isnan(utility)] = Followed.TUPLE
    return kinds


def _final(episodes: Episodes, name: str) -> Column:
    """Return the variable in the final states; only state variables are known there."""
    if name in episodes.finals:
        return episodes.finals[name]
    return episodes.columns[name].without_values(len(episodes))


def _joined(one: Mapping[str, Column], other: Mapping[str, Column], name: str) -> Column:
    a, b = same_domain(one[name], other[name], name)
    return a.append(b)


def group_windows(windows: Windows) -> Windows:
    """Add up the counts of equal windows, in the order in which `from_episodes` has them."""
    if not len(windows):
        return windows
    columns, counts, utility = windows.columns, windows.counts, windows.schema.utility
    # END, UNKNOWN, then those that follow
    order = np.array([2, 2, 0, 1], dtype=np.int8)[windows.followed]
    keys = [column_keys(columns[name]) for name in windows.schema.variables] + [Keys(order, 3)]
    keys += [column_keys(column) for column in windows.next_columns.values()]
    groups = join([*keys, Keys(windows.followed, len(Followed))]).dense()
    found = windows.take(groups.members())
    earned = columns[utility]
    if earned.spread is not None:  # windows that earn the same on average are one
        deviations = np.bincount(groups.codes, counts * earned.spread, groups.size)
        spread = deviations / np.bincount(groups.codes, counts, groups.size)
        together = replace(found.columns[utility], spread=spread)
        found = replace(found, columns={**found.columns, utility: together})
    return replace(found, counts=_added(groups, counts), starts=_added(groups, windows.starts))


def _added(groups: Keys, numbers: Ints) -> Ints:  # [groups]
    total = np.zeros(groups.size, dtype=np.int64)
    np.add.at(total, groups.codes, numbers)
    return total


# ---- states --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class States:
    """The distinct states that steps started from or led to."""

    columns: dict[str, Column]  # of I0's variables, [count]
    count: int
    of_steps: Ints  # [num_windows]
    of_successors: Ints  # [num_windows]; -1 where there is none, or nothing is known of it


def distinct_states(windows: Windows) -> States:
    """Return the distinct states of all windows, numbered."""
    names = windows.schema.information_sets[0]
    follows = np.flatnonzero((windows.followed <= Followed.STATE) & ~windows.went_on)
    columns = [
        windows.columns[name].append(windows.next_columns[name].take(follows)) for name in names
    ]
    groups = joint_groups(columns, len(windows) + len(follows))
    members = groups.members()
    of_successors = np.full(len(windows), -1)
    of_successors[follows] = groups.codes[len(windows) :]
    return States(
        {name: column.take(members) for name, column in zip(names, columns, strict=True)},
        groups.size,
        groups.codes[: len(windows)].astype(np.int64),
        of_successors,
    )
