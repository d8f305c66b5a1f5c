"""The long layout in memory: rows sorted by episode and time, coded as pairs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.data.cells import Cells, with_booleans
from rspmn.data.columns import Column, encode, infer_kind
from rspmn.data.sources.engine_columns import ISO_DATE, ZONE
from rspmn.data.sources.log_rows import refuse_infinite_times, refuse_time
from rspmn.data.sources.memory_rows import MemoryRows, coded_variables, pair_codes_of
from rspmn.data.sources.pair_codes import (
    GAP,
    INVALID,
    MISSING,
    NO,
    NO_KEY,
    TIE,
    YES,
)  # fmt: skip
from rspmn.data.sources.time_bins import (
    combined_columns,
    combined_flags,
    first_in_step,
    step_numbers,
)
from rspmn.data.tables import Table
from rspmn.schema import Kind, Schema
from rspmn.types import Bools, Ints


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
