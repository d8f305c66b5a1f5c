"""Readers: tables of any layout become `Episodes`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.data.columns import Column, encode, infer_kind
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.tables import Cells, Table, as_table, with_booleans
from rspmn.errors import DataError, did_you_mean
from rspmn.log_format import Ending
from rspmn.schema import Kind, Schema
from rspmn.types import Bools, Ints

#: How text that is a date, or a date and a time, begins.
ISO_DATE = r"\d{4}-\d{2}-\d{2}"


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows of a log, those of one episode together and in the order of time."""

    columns: dict[str, Column]  # of each variable, [n]
    offsets: Ints  # [num_episodes + 1]
    ids: NDArray[Any]  # [num_episodes]

    def where(self, row: int) -> str:
        """Name a row for a person."""
        episode = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return f"episode {self.ids[episode]}, step {row - self.offsets[episode]}"


# ---- the long layout -----------------------------------------------------------------


def read_long(
    source: object,
    schema: Schema,
) -> Episodes:
    """Read one row per step."""
    table, log = as_table(source), schema.log
    log.check_names(table.names, schema.variables)
    if table.rows == 0:
        raise DataError("the table has no rows")
    ids, codes = _episodes(table, log.episode)
    times = None if log.time is None else _times(table, log.time)
    order = np.argsort(codes, kind="stable") if times is None else np.lexsort((times, codes))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(codes))])
    columns = {name: _encode(table, name, schema) for name in schema.variables}
    rows = Rows({name: c.take(order) for name, c in columns.items()}, offsets, ids)
    if times is not None:
        _check_times(rows, times[order], allow_gaps=log.gaps == "allow")
    flags = None if log.flag is None else _flags(table, log.flag).take(order)
    return _assemble(rows, schema, flags, log.ending)


def _full(table: Table, name: str, what: str) -> NDArray[Any]:
    cells = table.cells(name, what)
    if cells.missing.any():
        raise DataError(f"{what} {name!r}: row {int(np.argmax(cells.missing))} is empty")
    return cells.present


def _episodes(table: Table, name: str) -> tuple[NDArray[Any], Ints]:
    """Return the sorted names of the episodes, and the episode of each row."""
    found = _full(table, name, "episode column")
    if found.dtype.kind in "OU":
        column = encode(found, np.zeros(len(found), bool), Kind.CATEGORICAL, name)
        return np.array(column.domain, dtype=object), column.data.astype(np.int64)
    return np.unique(found, return_inverse=True)


def _times(table: Table, name: str) -> NDArray[Any]:
    """Return the time of each row: numbers or dates; whole numbers as integers."""
    times = _full(table, name, "time column")
    if times.dtype.kind == "O" and infer_kind(times, name) is not Kind.CATEGORICAL:
        times = times.astype(np.float64)
    if times.dtype.kind == "O":
        times = _dates(times)
    if times.dtype.kind not in "iufMm":
        raise refuse_time(name, times[0])
    if times.dtype.kind == "f" and not np.all(np.isfinite(times)):
        raise DataError(f"time column {name!r}: expected finite numbers")
    if times.dtype.kind == "f" and bool(np.all(times == np.floor(times))):
        return times.astype(np.int64)
    return times


def refuse_time(name: str, found: object) -> DataError:
    """Say why a time is none."""
    return DataError(
        f"time column {name!r}: expected numbers or dates, found {found!r}: text does not "
        "sort as time does ('10' comes before '2')"
    )


def _dates(times: NDArray[Any]) -> NDArray[Any]:
    """Return text that is dates and times, as ISO 8601 writes them, as dates."""
    if not all(isinstance(time, str) and re.match(ISO_DATE, time) for time in times.tolist()):
        return times
    try:
        return times.astype("M8[us]")
    except ValueError:
        return times


def _flags(table: Table, name: str) -> Column:
    cells = with_booleans(table.cells(name, "terminated column"))
    return encode(cells.present, cells.missing, Kind.BOOLEAN, name)


def _check_times(rows: Rows, times: NDArray[Any], allow_gaps: bool) -> None:
    inside = np.ones(len(times), dtype=bool)  # rows that have one before them in their episode
    inside[rows.offsets[:-1]] = False
    later = np.flatnonzero(inside)
    same = later[times[later] == times[later - 1]]
    if len(same):
        raise DataError(
            f"{rows.where(same[0])}: time {times[same[0]]} stands twice in this episode"
        )
    if times.dtype.kind in "iu" and not allow_gaps:
        jump = later[times[later] != times[later - 1] + 1]
        if len(jump):
            raise DataError(
                f"{rows.where(jump[0])}: time goes from {times[jump[0] - 1]} to {times[jump[0]]}: "
                "steps are missing; if they are not, pass gaps='allow'"
            )


# ---- the wide layout -----------------------------------------------------------------


def read_wide(source: object, schema: Schema) -> Episodes:
    """Read one row per episode, T blocks of columns."""
    table = as_table(source)
    schema.log.check_names(table.names, schema.variables)
    block = check_block(schema, len(table.names))
    if not table.rows:
        raise DataError("the table has no rows")
    steps = len(table.names) // len(block)
    cells = {
        name: [table.cells(table.names[t * len(block) + k]) for t in range(steps)]
        for k, name in enumerate(block)
    }
    empty = np.array([[c.missing for c in cells[name]] for name in block])  # [block, T, E]
    filled = np.asarray(~empty.all(axis=0))  # [T, E]
    lengths = steps - np.argmax(filled[::-1], axis=0)
    _check_filled(filled, lengths)
    episode, step = np.nonzero(np.arange(steps) < lengths[:, None])
    read = {name: _encode_blocks(cells[name], name, schema) for name in schema.variables}
    rows = Rows(
        {name: column.take(step * table.rows + episode) for name, column in read.items()},
        np.concatenate([[0], np.cumsum(lengths)]),
        np.arange(table.rows),
    )
    return _assemble(rows, schema, None, schema.log.ending)


def check_block(schema: Schema, found: int) -> list[str]:
    """Return the variables of a block in order, or say why a table cannot be made of blocks."""
    block = list(schema.log.columns or schema.variables)
    if sorted(block) != sorted(schema.variables):
        raise DataError(f"columns: expected {sorted(schema.variables)}, found {sorted(block)}")
    if found % len(block) or not found:
        raise DataError(
            f"the wide layout has blocks of {len(block)} columns ({', '.join(block)}), "
            f"but the table has {found} columns"
        )
    return block


def _check_filled(filled: Bools, lengths: Ints) -> None:
    empty = np.flatnonzero(~filled.any(axis=0))
    if len(empty):
        raise DataError(f"row {empty[0]} is empty: every row must be an episode")
    holes = (~filled) & (np.arange(len(filled))[:, None] < lengths)
    if holes.any():
        episode = int(np.flatnonzero(holes.any(axis=0))[0])
        raise DataError(
            f"row {episode}: step {int(np.argmax(holes[:, episode]))} is empty, "
            "but later steps are not"
        )


def _encode_blocks(blocks: list[Cells], name: str, schema: Schema) -> Column:
    """Code one variable of all steps together: [T · E], step after step."""
    parts = [cells.present for cells in blocks if len(cells.present)]
    if len({part.dtype.kind for part in parts} - {"f"}) > 1:
        parts = [part.astype(object) for part in parts]  # let coding see every value's own type
    present = np.concatenate(parts) if parts else np.empty(0)
    return code_cells(Cells(present, np.concatenate([c.missing for c in blocks])), name, schema)


# ---- what they share -----------------------------------------------------------------


def assemble_steps(
    episodes: Sequence[Sequence[Mapping[str, object]]],
    schema: Schema,
    endings: Sequence[Followed],
) -> Episodes:
    """Make episodes of steps given one by one."""
    for index, steps in enumerate(episodes):
        if not steps:
            raise DataError(f"episode {index} has no steps")
        for t, step in enumerate(steps):
            for name in step:
                if name not in schema.variables:
                    raise DataError(
                        f"episode {index}, step {t}: unknown variable {name!r}: "
                        f"{did_you_mean(name, schema.variables)}"
                    )
    flat = [step for steps in episodes for step in steps]
    table = as_table(
        {
            name: np.array([step.get(name) for step in flat], dtype=object)
            for name in schema.variables
        }
    )
    columns = {name: _encode(table, name, schema) for name in schema.variables}
    offsets = np.concatenate([[0], np.cumsum([len(steps) for steps in episodes], dtype=np.int64)])
    rows = Rows(columns, offsets.astype(np.int64), np.arange(len(episodes)))
    made = _assemble(rows, schema, None, "cut")
    has_final = made.endings == Followed.STATE
    given = np.array(endings, dtype=np.int8)
    wrong = np.flatnonzero((given == Followed.TUPLE) | ((given == Followed.STATE) != has_final))
    if len(wrong):
        last = "a state only" if has_final[wrong[0]] else "a whole step"
        raise DataError(
            f"episode {wrong[0]}: its ending is {Followed(given[wrong[0]]).name}, "
            f"but its last step is {last}"
        )
    return Episodes(made.schema, made.columns, made.offsets, given, made.finals, made.ids)


def _encode(table: Table, name: str, schema: Schema) -> Column:
    return code_cells(table.cells(name), name, schema)


def code_cells(cells: Cells, name: str, schema: Schema) -> Column:
    """Code a variable's values as the schema says it is."""
    kind = Kind.CONTINUOUS if name == schema.utility else schema.kinds.get(name)
    column = encode(cells.present, cells.missing, kind, name)
    if name in schema.decisions and column.kind is Kind.CONTINUOUS:
        raise DataError(
            f"decision {name!r} holds numbers that are not whole: bin it, or, if its values are "
            f"few, say kinds={{{name!r}: 'categorical'}}"
        )
    return column


def _assemble(rows: Rows, schema: Schema, flags: Column | None, ending: Ending | None) -> Episodes:
    """Tell steps from final states, and find out how each episode ended."""
    last = rows.offsets[1:] - 1
    chosen = [*schema.decisions, schema.utility]
    undecided = np.logical_and.reduce([rows.columns[name].missing for name in chosen])
    no_step = undecided[last]
    is_step = np.ones(rows.offsets[-1], dtype=bool)
    is_step[last[no_step]] = False
    _check_complete(rows, chosen, is_step)
    lengths = np.diff(rows.offsets) - no_step
    unseen = [rows.columns[name].missing[last] for name in schema.information_sets[0]]
    has_final = no_step & ~np.logical_and.reduce(unseen, initial=True)
    if len(lengths) and lengths.min() == 0:
        raise DataError(f"episode {rows.ids[np.argmin(lengths)]} has no step with a decision")
    ended = None if flags is None else _terminated(rows, flags, no_step)
    longest = int(lengths.max(initial=0))
    endings = endings_of(ended, no_step, has_final, lengths, longest, ending)
    keep = np.flatnonzero(is_step)
    final_rows = np.where(endings == Followed.STATE, last, -1)
    return Episodes(
        schema.with_kinds({name: column.kind for name, column in rows.columns.items()}),
        {name: column.take(keep) for name, column in rows.columns.items()},
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        endings,
        {name: rows.columns[name].take(final_rows) for name in schema.information_sets[0]},
        rows.ids,
    )


def _check_complete(rows: Rows, chosen: list[str], is_step: Bools) -> None:
    """Only state variables may be missing in a step."""
    for name in chosen:
        gone = np.flatnonzero(rows.columns[name].missing & is_step)
        if len(gone):
            raise DataError(
                f"{rows.where(gone[0])}: {name!r} is missing; only state variables may be "
                f"({len(gone)} such rows)"
            )


def endings_of(
    ended: Bools | None,  # [n], where something says so
    no_step: Bools,  # [n], whether a row that is not a step follows
    has_final: Bools,  # [n], and if so, whether it holds a state
    lengths: Ints,  # [n], of their episodes
    longest: int,
    ending: Ending | None,
) -> NDArray[np.int8]:  # [n]
    """Return what followed last steps."""
    if ended is None:
        match ending:
            case "end":
                ended = np.ones(len(lengths), dtype=bool)
            case "cut":
                ended = np.zeros(len(lengths), dtype=bool)
            case "short":
                ended = lengths < longest
            case "final_row":
                ended = no_step
            case _:
                raise AssertionError("a log without endings is refused before it is read")
    cut = np.where(has_final, Followed.STATE, Followed.UNKNOWN)
    return np.where(ended, Followed.END, cut).astype(np.int8)


def _terminated(rows: Rows, column: Column, no_step: Bools) -> Bools:
    """Return which episodes terminated: by the flag of their last step or of a final row."""
    last = rows.offsets[1:] - 1
    last_step = last - no_step
    unsaid = column.missing
    unsaid[last[no_step]] = False  # a final row need not repeat it
    if unsaid.any():
        raise DataError(f"{rows.where(int(np.argmax(unsaid)))}: the terminated flag is empty")
    flags = column.data == 1
    early = flags.copy()
    early[last] = False
    early[last_step] = False
    if early.any():
        raise DataError(
            f"{rows.where(int(np.argmax(early)))}: terminated, but the episode goes on after it"
        )
    return np.asarray(flags[last] | flags[last_step])
