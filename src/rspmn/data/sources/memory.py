"""Rows in memory: of the long layout, sorted by episode and time, and of the wide one; as pairs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.data.cells import Cells, with_booleans
from rspmn.data.columns import Column, encode, infer_kind
from rspmn.data.sources.engine_columns import ISO_DATE, ZONE, stored_columns
from rspmn.data.sources.log_rows import refuse_infinite_times, refuse_time
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
)  # fmt: skip
from rspmn.data.sources.pair_wide import check_block
from rspmn.data.sources.time_bins import (
    combined_columns,
    combined_flags,
    first_in_step,
    step_numbers,
)
from rspmn.data.sources.validate import Fault, Location
from rspmn.data.tables import Table, code_cells
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


def coded_variables(table: Table, schema: Schema) -> dict[str, Column]:
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


def pair_codes_of(
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


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a long table."""

    columns: Mapping[str, Column]  # of each variable, [n]
    episodes: Ints  # [n], -1 where it is missing
    times: NDArray[Any] | None  # [n]
    flags: Ints  # [n]
    has_no_key: Bools  # [n], whether the episode or the time is missing

    def take(self, rows: Ints) -> "_Rows":
        """Return some of the rows."""
        return _Rows(
            {name: column.take(rows) for name, column in self.columns.items()},
            self.episodes[rows],
            None if self.times is None else self.times[rows],
            self.flags[rows],
            self.has_no_key[rows],
        )


def long_rows(table: Table, schema: Schema) -> MemoryRows:
    """Sort the rows by episode and time, and code them as pairs."""
    log = schema.log
    ids, episodes = _episode_codes(table.cells(log.episode, "episode column"), log.episode)
    missing, times = episodes < 0, None
    if log.time is not None:
        cells = table.cells(log.time, "time column")
        missing |= cells.missing
        times = _times(cells, log.time)
    columns = coded_variables(table, schema)
    flags = np.full(table.rows, NO) if log.flag is None else _flags(table, log.flag)
    rows = _Rows(columns, episodes, times, flags, missing)
    order = _order(episodes, times)
    rows = rows if order is None else rows.take(order)
    if log.duplicates == "drop":
        rows = _without_repeats(rows)
    if log.step is not None:
        rows = _in_steps(rows, schema)
    return _paired(rows, ids, schema)


def _paired(rows: _Rows, ids: NDArray[Any], schema: Schema) -> MemoryRows:
    episodes, times = rows.episodes, rows.times
    last = np.append(episodes[1:] != episodes[:-1], True)
    wrong = np.zeros(len(episodes), dtype=np.int64)
    if times is not None:
        wrong[:-1][times[1:] == times[:-1]] = TIE
        if schema.log.gaps == "error" and times.dtype.kind in "iu":
            wrong[:-1][times[1:] > times[:-1] + 1] = GAP
    wrong[last] = 0
    wrong[rows.has_no_key] = NO_KEY
    offsets = np.concatenate([[0], np.flatnonzero(last) + 1])
    codes = pair_codes_of(rows.columns, schema, offsets, rows.flags, wrong)
    return MemoryRows(rows.columns, offsets, ids[episodes[last]], codes, times)


def _without_repeats(rows: _Rows) -> _Rows:
    """Return the sorted rows without those that are equal to the one before."""
    if rows.times is None:
        return rows
    same = np.ones(len(rows.episodes) - 1, dtype=bool)
    for keys in (rows.episodes, rows.times, rows.flags):
        same &= keys[1:] == keys[:-1]
    for column in rows.columns.values():
        both_missing = column.missing[1:] & column.missing[:-1]
        same &= (column.data[1:] == column.data[:-1]) | both_missing
    return rows.take(np.flatnonzero(np.append(True, ~same)))


def _in_steps(rows: _Rows, schema: Schema) -> _Rows:
    """Return the sorted rows, those of one step as one."""
    assert rows.times is not None  # a format with a step has times
    steps = step_numbers(rows.times, schema.log)
    first = first_in_step(rows.episodes, steps, rows.times)
    starts, group = np.flatnonzero(first), np.cumsum(first) - 1
    return _Rows(
        combined_columns(rows.columns, schema.utility, group, len(starts)),
        rows.episodes[first],
        steps[first],
        combined_flags(rows.flags, group, len(starts)),
        np.logical_or.reduceat(rows.has_no_key, starts),
    )


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
    times = cells.present.astype(object) if cells.present.dtype.kind in "UT" else cells.present
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
        return np.array([_moment(time) for time in times.tolist()], dtype="M8[us]")
    except ValueError:
        return times


def _moment(text: str) -> str | datetime:
    """Return a date and a time as numpy reads it; in universal time, if it has a zone."""
    if not re.search(ZONE, text):
        return text
    return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)


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


def wide_rows(table: Table, schema: Schema) -> MemoryRows:
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
    read = coded_variables(stacked, schema)
    columns = {name: column.take(step * table.rows + episode) for name, column in read.items()}
    wrong = np.zeros(len(step), dtype=np.int64)
    if (~filled & (np.arange(steps)[:, None] < lengths)).any():
        wrong = np.where(filled[step, episode], 0, np.where(void[episode], EMPTY_ROW, HOLE))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    codes = pair_codes_of(columns, schema, offsets, np.full(len(step), NO), wrong)
    return MemoryRows(columns, offsets, np.arange(table.rows), codes)


def _stacked(blocks: list[Cells]) -> Cells:  # [T · E]
    """Return the cells of one variable of all steps, step after step."""
    parts = [cells.present for cells in blocks if len(cells.present)]
    if len({part.dtype.kind for part in parts} - {"f"}) > 1:
        parts = [part.astype(object) for part in parts]  # let coding see every value's own type
    present = np.concatenate(parts) if parts else np.empty(0)
    return Cells(present, np.concatenate([c.missing for c in blocks]))
