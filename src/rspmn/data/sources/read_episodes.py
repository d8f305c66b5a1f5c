"""Episodes: the rows of a log in memory, coded as pairs and checked as those of engines are.

Rows that are in memory already do not go through an engine, which would take twice as long. This
code shares no expression with that of the engines, so engines are tested against it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.data.cells import Cells, with_booleans
from rspmn.data.columns import Column, encode, infer_kind
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.sources.engine import Engine
from rspmn.data.sources.engine_columns import derived_column, stored_columns
from rspmn.data.sources.log_rows import ISO_DATE, refuse_infinite_times, refuse_time
from rspmn.data.sources.open import open_source
from rspmn.data.sources.pair_codes import (
    BY_FIRST,
    BY_FLAG,
    BY_LENGTH,
    BY_NEXT_FLAG,
    EMPTY_ROW,
    FINAL_STATE,
    GAP,
    HOLE,
    INVALID,
    MISSING,
    NO,
    NO_KEY,
    NO_STEP,
    NOTHING,
    STATE,
    STEP,
    TIE,
    YES,
    PairCodes,
)  # fmt: skip
from rspmn.data.sources.pair_wide import check_block
from rspmn.data.sources.validate import Fault, Location, Validator
from rspmn.data.sources.window_groups import Endings
from rspmn.data.tables import Table, as_table, code_cells, is_paths
from rspmn.errors import DataError, did_you_mean, no_rows
from rspmn.schema import Kind, Schema
from rspmn.types import Bools, Ints


@dataclass(frozen=True, eq=False)
class MemoryRows:
    """The rows of a log, those of one episode together and in the order of time."""

    columns: Mapping[str, Column]  # of each variable, [n]
    offsets: Ints  # [num_episodes + 1]
    ids: NDArray[Any]  # [num_episodes]
    codes: Ints  # [n], of each row with the one after it
    times: NDArray[Any] | None = None  # [n]

    def first(self, fault: Fault, lacking: str | None = None) -> Location:
        """Return the first row whose pair has a fault, and lacks a variable if one is given."""
        found = fault(self.codes)
        if lacking is not None:
            found = found & self.columns[lacking].missing
        row = int(np.argmax(found))
        episode = int(np.searchsorted(self.offsets, row, side="right")) - 1
        times = [] if self.times is None else self.times[row : row + 2].tolist()
        (name,) = self.ids[episode : episode + 1].tolist()
        return Location(name, row - int(self.offsets[episode]), *times)


def read_episodes(source: object, schema: Schema) -> Episodes:
    """Read a log into memory."""
    if not (is_paths(source) or isinstance(source, Engine)):
        return _episodes(as_table(source), schema)
    with open_source(source) as opened, opened.named():
        log, names = schema.log, opened.names
        log.check_names(names, schema.variables)
        if not log.wide:
            wanted = (log.episode, log.time, log.flag, *schema.variables)
            types = dict(opened.frame.collect_schema())
            for name in wanted:
                if name is not None and name not in names:
                    derived_column(types, name)  # refused with the names of all columns
            names = stored_columns(names, wanted)
        return _episodes(opened.read(opened.frame.select(names)), schema)


def _episodes(table: Table, schema: Schema) -> Episodes:
    schema.log.check_names(table.names, schema.variables)
    if not table.rows:
        raise no_rows()
    rows = _wide_rows(table, schema) if schema.log.wide else _long_rows(table, schema)
    return _assemble(rows, schema)


# ---- the long layout -----------------------------------------------------------------


def _long_rows(table: Table, schema: Schema) -> MemoryRows:
    """Sort the rows by episode and time, and code them as pairs."""
    log = schema.log
    ids, episodes = _episode_codes(table.cells(log.episode, "episode column"), log.episode)
    missing, times = episodes < 0, None
    if log.time is not None:
        cells = table.cells(log.time, "time column")
        missing |= cells.missing
        times = _times(cells, log.time)
    columns = _coded(table, schema)
    flags = np.full(table.rows, NO) if log.flag is None else _flags(table, log.flag)
    order = _order(episodes, times)
    if order is not None:
        columns = {name: column.take(order) for name, column in columns.items()}
        flags, episodes, missing = flags[order], episodes[order], missing[order]
        times = None if times is None else times[order]
    last = np.append(episodes[1:] != episodes[:-1], True)
    wrong = np.zeros(table.rows, dtype=np.int64)
    if times is not None:
        wrong[:-1][times[1:] == times[:-1]] = TIE
        if log.gaps == "error" and times.dtype.kind in "iu":
            wrong[:-1][times[1:] > times[:-1] + 1] = GAP
    wrong[last] = 0
    wrong[missing] = NO_KEY
    offsets = np.concatenate([[0], np.flatnonzero(last) + 1])
    codes = _pair_codes(columns, schema, offsets, flags, wrong)
    return MemoryRows(columns, offsets, ids[episodes[last]], codes, times)


def _order(episodes: Ints, times: NDArray[Any] | None) -> Ints | None:
    """Return the order of rows by episode and time; None if they are in order."""
    further = np.diff(episodes)
    in_order = further > 0
    in_order |= (further == 0) & (True if times is None else times[1:] >= times[:-1])
    if in_order.all():
        return None
    return np.lexsort((episodes,) if times is None else (times, episodes))


def _episode_codes(cells: Cells, name: str) -> tuple[NDArray[Any], Ints]:
    """Return the sorted names of the episodes, and the episode of each row, -1 if it is missing."""
    if cells.present.dtype.kind in "OU":
        column = encode(cells, Kind.CATEGORICAL, name)
        ids, codes = np.array(column.domain, dtype=object), column.data.astype(np.int64)
    else:
        ids, found = np.unique(cells.present, return_inverse=True)
        codes = np.full(len(cells.missing), -1)
        codes[~cells.missing] = found
    if cells.missing.any():
        ids = np.array([*ids.tolist(), None], dtype=object)  # -1 finds the last
    return ids, codes


def _times(cells: Cells, name: str) -> NDArray[Any]:  # [n], 0 where they are missing
    """Return the time of each row: numbers or dates; whole numbers as integers."""
    times = cells.present
    if times.dtype.kind == "O" and infer_kind(times, name) is not Kind.CATEGORICAL:
        times = times.astype(np.float64)
    if times.dtype.kind == "O":
        times = _dates(times)
    if len(times) and times.dtype.kind not in "iufMm":
        raise refuse_time(name, times[0])
    if times.dtype.kind == "f":
        if not np.all(np.isfinite(times)):
            raise refuse_infinite_times(name)
        times = times.astype(np.int64) if bool(np.all(times == np.floor(times))) else times
    full = np.zeros(len(cells.missing), dtype=times.dtype)
    full[~cells.missing] = times
    return full


def _dates(times: NDArray[Any]) -> NDArray[Any]:
    """Return text that is dates and times, as ISO 8601 writes them, as dates."""
    if not all(isinstance(time, str) and re.match(ISO_DATE, time) for time in times.tolist()):
        return times
    try:
        return times.astype("M8[us]")
    except ValueError:
        return times


def _flags(table: Table, name: str) -> Ints:  # [n]
    """Return what the terminated flag of each row says."""
    cells = with_booleans(table.cells(name, "terminated column"))
    column = encode(cells, None, name)
    if name not in table.names:  # a rule that cannot be decided does not hold
        return np.where(column.data == 1, YES, NO)
    if column.kind is Kind.CONTINUOUS:
        return np.where(column.missing, MISSING, INVALID)
    said = [YES if value == 1 else NO if value == 0 else INVALID for value in column.domain]
    return np.asarray(np.array([*said, MISSING])[column.data])


# ---- the wide layout -----------------------------------------------------------------


def _wide_rows(table: Table, schema: Schema) -> MemoryRows:
    """Stack the blocks of a wide table, and code them as pairs."""
    block = check_block(schema, len(table.names))
    steps = len(table.names) // len(block)
    cells = {
        name: [table.cells(table.names[t * len(block) + k]) for t in range(steps)]
        for k, name in enumerate(block)
    }
    empty = np.array([[c.missing for c in cells[name]] for name in block])  # [block, T, E]
    filled: Bools = np.asarray(~empty.all(axis=0))  # [T, E]
    lengths = steps - np.argmax(filled[::-1], axis=0)
    void = np.asarray(~filled.any(axis=0))
    lengths[void] = 1
    episode, step = np.nonzero(np.arange(steps) < lengths[:, None])
    stacked = Table({name: _stacked(cells[name]) for name in block}, steps * table.rows)
    read = _coded(stacked, schema)
    columns = {name: column.take(step * table.rows + episode) for name, column in read.items()}
    wrong = np.zeros(len(step), dtype=np.int64)
    if (~filled & (np.arange(steps)[:, None] < lengths)).any():
        wrong = np.where(filled[step, episode], 0, np.where(void[episode], EMPTY_ROW, HOLE))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    codes = _pair_codes(columns, schema, offsets, np.full(len(step), NO), wrong)
    return MemoryRows(columns, offsets, np.arange(table.rows), codes)


def _stacked(blocks: list[Cells]) -> Cells:  # [T · E]
    """Return the cells of one variable of all steps, step after step."""
    parts = [cells.present for cells in blocks if len(cells.present)]
    if len({part.dtype.kind for part in parts} - {"f"}) > 1:
        parts = [part.astype(object) for part in parts]  # let coding see every value's own type
    present = np.concatenate(parts) if parts else np.empty(0)
    return Cells(present, np.concatenate([c.missing for c in blocks]))


# ---- what they share -----------------------------------------------------------------


def _coded(table: Table, schema: Schema) -> dict[str, Column]:
    """Return the variables; a utility that is computed is missing in rows that hold nothing of it.

    These are the states after last steps, which have no decisions either.
    """
    cells = {name: table.cells(name) for name in schema.variables}
    if schema.utility not in table.names:
        used = stored_columns(table.names, (schema.utility, *schema.decisions))
        nothing = np.logical_and.reduce([table.cells(name).missing for name in used])
        earned = cells[schema.utility]
        known = Cells(earned.present[~nothing[~earned.missing]], earned.missing | nothing)
        cells[schema.utility] = known
    return {name: code_cells(found, name, schema) for name, found in cells.items()}


def _pair_codes(
    columns: Mapping[str, Column],
    schema: Schema,
    offsets: Ints,
    flags: Ints,
    wrong: Ints,  # [n], the code of what must not be, or 0
) -> Ints:  # [n]
    """Return the code of each row with the one after it, as `pair_codes.coded_pairs` has it."""
    starts, last = offsets[:-1], offsets[1:] - 1
    chosen = (*schema.decisions, schema.utility)
    lone = np.logical_and.reduce([columns[name].missing for name in chosen])  # no step
    codes = flags * BY_FLAG + STEP
    codes[starts] += BY_FIRST
    before = np.flatnonzero(lone[1:])  # rows with a state after them
    codes[before] += flags[before + 1] * BY_NEXT_FLAG + STATE
    codes[last] = flags[last] * BY_FLAG + (last == starts) * BY_FIRST + NOTHING
    ends = np.union1d(before, last)
    number = ends + 1 - offsets[np.searchsorted(offsets, ends, side="right") - 1]
    codes[ends] += number * BY_LENGTH
    codes[lone] = 0  # a step that lacks everything, if rows follow it
    final = last[lone[last]]
    codes[final] = np.where(np.isin(final, starts), NO_STEP, FINAL_STATE)
    return np.where(wrong < 0, wrong, codes)


def _assemble(rows: MemoryRows, schema: Schema) -> Episodes:
    """Check the rows, tell steps from final states, and find out how each episode ended."""
    validator = Validator(schema.log, rows)
    validator.check_codes(rows.codes)
    is_step = rows.codes != FINAL_STATE
    codes = rows.codes[is_step]
    if schema.log.flag is not None:
        validator.check_flags(PairCodes(codes))
    chosen = (*schema.decisions, schema.utility)
    validator.check_complete(
        {name: int((rows.columns[name].missing & is_step).sum()) for name in chosen}
    )
    ends = PairCodes(codes[codes % BY_FLAG != STEP])
    last = rows.offsets[1:] - 1
    unseen = [rows.columns[name].missing[last] for name in schema.information_sets[0]]
    seen = ~np.logical_and.reduce(unseen, initial=True)
    longest = int(ends.lengths.max(initial=0))
    endings = Endings(longest, 0).of(ends, seen, schema.log)
    final = np.where(endings == Followed.STATE, last, -1)
    columns = rows.columns
    if not is_step.all():
        steps = np.flatnonzero(is_step)
        columns = {name: column.take(steps) for name, column in columns.items()}
    return Episodes(
        schema.with_kinds({name: column.kind for name, column in rows.columns.items()}),
        columns,
        np.concatenate([[0], np.cumsum(ends.lengths)]),
        endings,
        {name: rows.columns[name].take(final) for name in schema.information_sets[0]},
        rows.ids,
    )


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
    cells = {n: np.array([step.get(n) for step in flat], dtype=object) for n in schema.variables}
    table = as_table(cells)
    columns = {name: code_cells(table.cells(name), name, schema) for name in schema.variables}
    offsets = np.concatenate([[0], np.cumsum([len(steps) for steps in episodes], dtype=np.int64)])
    none = np.zeros(len(flat), dtype=np.int64)
    codes = _pair_codes(columns, schema, offsets, none, none)
    rows = MemoryRows(columns, offsets, np.arange(len(episodes)), codes)
    made = _assemble(rows, schema.with_log(ending="cut"))
    has_final = made.endings == Followed.STATE
    given = np.array(endings, dtype=np.int8)
    wrong = np.flatnonzero((given == Followed.TUPLE) | ((given == Followed.STATE) != has_final))
    if len(wrong):
        last = "a state only" if has_final[wrong[0]] else "a whole step"
        raise DataError(
            f"episode {wrong[0]}: its ending is {Followed(given[wrong[0]]).name}, "
            f"but its last step is {last}"
        )
    return replace(made, schema=schema.with_kinds(made.schema.kinds), endings=given)
