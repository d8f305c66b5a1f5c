"""Episodes: logged steps of many sequences of different lengths, in flat columns (Sec. 3.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from rspmn.data.columns import Column
from rspmn.display import MOST_ROWS, table_html
from rspmn.errors import DataError
from rspmn.log_format import LogOptions
from rspmn.schema import Schema, schema_of_log
from rspmn.types import Bools, Ints
from rspmn.values import Value


class Followed(IntEnum):
    """What follows a step: exactly one of these."""

    TUPLE = 0  # another step
    STATE = 1  # a state that was observed, without a decision in it
    END = 2  # nothing: the episode terminated
    UNKNOWN = 3  # the log was cut


@dataclass(frozen=True, eq=False)
class Episodes:
    """A data set: E episodes of different lengths, one flat column per variable.

    Make one with `from_long`, `from_wide` or `from_steps`.
    """

    schema: Schema  # with the kind of every variable
    columns: Mapping[str, Column]  # of each variable, [num_steps], one episode after the other
    offsets: Ints  # [num_episodes + 1]; episode e has steps offsets[e]:offsets[e+1]
    endings: NDArray[np.int8]  # [num_episodes]; STATE, END or UNKNOWN: what followed its last step
    finals: Mapping[str, Column]  # of I0's variables, [num_episodes]; the state where STATE
    ids: NDArray[Any]  # [num_episodes]

    def __len__(self) -> int:
        return len(self.endings)

    def _repr_html_(self) -> str:
        steps: dict[str, list[Any]] = {}
        for number, episode in enumerate(self[k] for k in range(min(len(self), MOST_ROWS))):
            for time, step in enumerate(episode):
                for name, value in {"episode": self.ids[number], "time": time, **step}.items():
                    steps.setdefault(name, []).append(value)
            if len(steps.get("time", ())) >= MOST_ROWS:
                break
        shown = {name: column[:MOST_ROWS] for name, column in steps.items()}
        return table_html(shown, repr(self))

    def __repr__(self) -> str:
        ends = ", ".join(
            f"{int((self.endings == f).sum())} {f.name}" for f in Followed if f in self.endings
        )
        return f"Episodes({len(self)} episodes, {self.num_steps} steps, ended by: {ends})"

    @property
    def num_steps(self) -> int:
        """Return the number of steps of all episodes together."""
        return int(self.offsets[-1])

    @property
    def lengths(self) -> Ints:  # [num_episodes]
        """Return the number of steps of each episode."""
        return np.diff(self.offsets)

    @property
    def followed(self) -> NDArray[np.int8]:  # [num_steps]
        """Return what follows each step."""
        after = np.full(self.num_steps, Followed.TUPLE, dtype=np.int8)
        after[self.offsets[1:] - 1] = self.endings
        return after

    @overload
    def __getitem__(self, episode: int) -> list[dict[str, Value | None]]: ...

    @overload
    def __getitem__(self, episode: slice) -> "Episodes": ...

    def __getitem__(self, episode: int | slice) -> "list[dict[str, Value | None]] | Episodes":
        """Return the decoded steps of an episode or, for a slice, some of the episodes.

        >>> schema = Schema([["a"]], ["a"], "u")
        >>> steps = [[{"a": k, "u": 0.0}] for k in range(5)]
        >>> log = Episodes.from_steps(steps, schema, [Followed.END] * 5)
        >>> log[1], log[3:].ids.tolist(), log[::-2][0]
        ([{'a': 1, 'u': 0.0}], [3, 4], [{'a': 4, 'u': 0.0}])
        """
        if isinstance(episode, slice):
            return self._some(np.arange(len(self))[episode])
        if not isinstance(episode, int | np.integer):
            raise DataError(f"expected the number of an episode or a slice, found {episode!r}")
        return self.steps(range(len(self))[episode])

    def _some(self, episodes: Ints) -> "Episodes":
        """Return some of the episodes."""
        offsets = np.concatenate([[0], np.cumsum(self.lengths[episodes])])
        shift = np.repeat(self.offsets[episodes] - offsets[:-1], np.diff(offsets))
        rows = np.arange(offsets[-1]) + shift
        return replace(
            self,
            columns={name: column.take(rows) for name, column in self.columns.items()},
            offsets=offsets, endings=self.endings[episodes], ids=self.ids[episodes],
            finals={name: column.take(episodes) for name, column in self.finals.items()},
        )  # fmt: skip

    def steps(self, episode: int) -> list[dict[str, Value | None]]:
        """Return the steps of one episode, decoded."""
        rows = np.arange(self.offsets[episode], self.offsets[episode + 1])
        decoded = {name: column.take(rows).decode() for name, column in self.columns.items()}
        return [{name: decoded[name][t] for name in decoded} for t in range(len(rows))]

    def final_state(self, episode: int) -> dict[str, Value | None] | None:
        """Return the state observed after the last step, if there is one."""
        if self.endings[episode] != Followed.STATE:
            return None
        row = np.array([episode])
        return {name: column.take(row).decode()[0] for name, column in self.finals.items()}

    def to_long(self) -> dict[str, list[Value | None]]:
        """Return a table of one row per step, decoded, which `from_long` reads back.

        Its columns are episode, time, every variable and terminated; a state that followed a
        last step is a row of its own, without decisions and utility.
        `pandas.DataFrame(episodes.to_long())` makes it a data frame.
        """
        _, _, episode, time = self.long_rows()
        table: dict[str, list[Value | None]] = {
            "episode": self.ids[episode].tolist(),
            "time": time.tolist(),
        }
        table |= {name: column.decode() for name, column in self.long_columns().items()}
        return table | {"terminated": self.terminated_rows().tolist()}

    def long_columns(self) -> dict[str, Column]:
        """Return the variables of a long table, in which final states are rows of their own."""
        step, final, _, _ = self.long_rows()
        found = {}
        for name, column in self.columns.items():
            cells = column.take(step)
            if name in self.finals:
                cells.data[final >= 0] = self.finals[name].data[final[final >= 0]]
            found[name] = cells
        return found

    def long_rows(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Return the rows of a long table: the step of each, or -1 where it is a final state.

        Then the episode whose final state it is, or -1; the episode of each row; and its time.
        """
        has_final = self.endings == Followed.STATE
        rows = self.lengths + has_final
        ends = np.cumsum(rows)
        step = np.arange(ends[-1])
        step -= np.repeat(np.cumsum(has_final) - has_final, rows)
        step[ends[has_final] - 1] = -1
        final = np.full(ends[-1], -1)
        final[ends[has_final] - 1] = np.flatnonzero(has_final)
        episode = np.repeat(np.arange(len(self)), rows)
        return step, final, episode, np.arange(ends[-1]) - (ends - rows)[episode]

    def terminated_rows(self) -> Bools:
        """Return, for each row of a long table, whether the episode terminated with it."""
        ends = np.cumsum(self.lengths + (self.endings == Followed.STATE))
        found = np.zeros(ends[-1], dtype=bool)
        found[ends[self.endings == Followed.END] - 1] = True
        return found

    def to_parquet(self, path: str | Path) -> None:
        """Write the log as a long table, which `from_long` and `windows` read back.

        The same log gives the same bytes; the file is written atomically.
        """
        from rspmn.data.write import write_episodes

        if Path(path).suffix.lower() != ".parquet":
            raise DataError(f"{path}: expected a name ending in .parquet")
        write_episodes(self, path)

    # ---- readers -----------------------------------------------------------------

    @classmethod
    def from_log(cls, source: object, schema: Schema, **options: Unpack[LogOptions]) -> "Episodes":
        """Read a log into memory, in the format given by the schema.

        Parameters
        ----------
        source
            The path or pattern of files, a pandas, Polars or PyArrow table, a DuckDB relation, a
            PySpark data frame, a mapping of names to arrays, or a 2-D array.
        schema
            The meaning of the columns, and the format of the log.
        **options
            Fields of `LogFormat` that override the schema's.

        Examples
        --------
        >>> schema = Schema([["x"], ["a"]], ["a"], "u").with_log(terminated="done")
        >>> log = {"episode": [1, 1, 2], "time": [0, 1, 0], "x": [0, 1, 0], "a": ["l", "r", "l"],
        ...        "u": [0.0, 1.0, 0.0], "done": [False, True, False]}
        >>> Episodes.from_log(log, schema)
        Episodes(2 episodes, 3 steps, ended by: 1 END, 1 UNKNOWN)
        """
        from rspmn.data.sources.read_episodes import read_episodes

        return read_episodes(source, schema_of_log(schema, options))

    @classmethod
    def from_long(cls, table: object, schema: Schema, **options: Unpack[LogOptions]) -> "Episodes":
        """Read a table of one row per step, in any order; as `from_log` with `wide=False`.

        >>> schema = Schema([["x"], ["a"]], ["a"], "u")
        >>> log = {"episode": [1, 1, 2], "time": [0, 1, 0], "x": [0, 1, 0], "a": ["l", "r", "l"],
        ...        "u": [0.0, 1.0, 0.0], "done": [False, True, False]}
        >>> Episodes.from_long(log, schema, terminated="done")
        Episodes(2 episodes, 3 steps, ended by: 1 END, 1 UNKNOWN)
        """
        return cls.from_log(table, schema, **(options | {"wide": False}))

    @classmethod
    def from_wide(cls, table: object, schema: Schema, **options: Unpack[LogOptions]) -> "Episodes":
        """Read the paper's layout: one row per episode, T blocks of columns, one block per step.

        The same as `from_log` with `wide=True`. Columns count by their place; their names do not
        matter. Short episodes are padded with empty cells.

        >>> schema = Schema([["x"], ["a"]], ["a"], "u")
        >>> nan = float("nan")
        >>> Episodes.from_wide(np.array([[0, 1, 0.5, 1, 1, 2.5], [0, 2, 0.5, nan, nan, nan]]),
        ...                    schema, ending="short")
        Episodes(2 episodes, 3 steps, ended by: 1 END, 1 UNKNOWN)
        """
        return cls.from_log(table, schema, **(options | {"wide": True}))

    @classmethod
    def from_steps(
        cls,
        episodes: Sequence[Sequence[Mapping[str, object]]],
        schema: Schema,
        endings: Sequence[Followed],
    ) -> "Episodes":
        """Make episodes of lists of steps; with ending STATE the last one is a state only."""
        from rspmn.data.sources.read_episodes import assemble_steps

        if len(endings) != len(episodes):
            raise DataError(f"{len(episodes)} episodes but {len(endings)} endings")
        for ending in endings:
            if not isinstance(ending, Followed):
                raise DataError(f"endings: expected Followed.END and the like, found {ending!r}")
        return assemble_steps(episodes, schema, endings)


def check_episodes(log: object) -> None:
    """Refuse a table or a file where episodes are expected."""
    if not isinstance(log, Episodes):
        raise DataError(
            f"expected Episodes, found {type(log).__name__}: for a table or a file, use "
            "Episodes.from_log(log, schema)"
        )
