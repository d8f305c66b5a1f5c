"""Times in steps of a given length: the rows of an episode in one step are one row.

Step k is the time from k times the length to k + 1 times; dates are counted from 1970. Of state
variables and decisions the first value in the step counts, utilities are added up, and an episode
has terminated if one of the rows says so.
"""

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from rspmn.data.columns import Column
from rspmn.data.sources.engine import Frame
from rspmn.data.sources.engine_columns import is_missing
from rspmn.data.sources.pair_codes import MISSING
from rspmn.errors import DataError
from rspmn.log_format import LogFormat
from rspmn.types import Array, Bools, Ints

#: Columns while rows are combined: the number of the step, of the row in it, the row's next time.
BIN, PLACE, BEFORE = "bin", "place", "before"
#: Days from the beginning of year 1 to that of 1970, plus one.
DAYS_TO_1970 = 719163


def refuse_step(log: LogFormat, holds: str) -> DataError:
    """Return the error of a step that does not fit the times."""
    wanted = "such as '1 day'" if holds == "dates" else "as a number, in the unit of the times"
    return DataError(
        f"step {log.step!r}: time column {log.time!r} holds {holds}: give the step {wanted}"
    )


# ---- rows that an engine holds -----------------------------------------------------------


def binned_rows(
    rows: Frame, log: LogFormat, keys: tuple[str, str], utility: str, flag: str | None
) -> Frame:
    """Return one row for the rows of an episode in the same step; the time is its number.

    Rows of the same time stay, since there is no first among them.
    """
    episode, time = keys
    types = dict(rows.collect_schema())
    numbered = rows.with_columns(_step_of(types[time], nw.col(time), log).alias(BIN))
    inside, ordered = (episode, BIN), {"order_by": time}
    found = {}
    for name in types.keys() - {episode, time}:
        cell = nw.when(~is_missing(types, name)).then(nw.col(name))
        if name == utility:
            total = cell.sum().over(*inside)
            cell = nw.when(cell.count().over(*inside) > 0).then(total)
        elif name == flag:
            cell = cell.str.to_lowercase() if types[name] == nw.String else cell
            cell = cell.max().over(*inside)
        else:
            cell = cell.fill_null(strategy="backward").over(*inside, **ordered)
        found[name] = cell
    combined = numbered.with_columns(
        *(cell.alias(name) for name, cell in found.items()),
        nw.col(time).cum_count().over(*inside, **ordered).alias(PLACE),
        nw.col(time).shift(1).over(*inside, **ordered).alias(BEFORE),
    )
    is_tie = ~nw.col(BEFORE).is_null() & (nw.col(BEFORE) == nw.col(time))
    first = combined.filter((nw.col(PLACE) <= 1) | is_tie)
    names = [name for name in types if name != time]
    return first.select(*names, nw.col(BIN).alias(time))


def _step_of(dtype: Any, time: nw.Expr, log: LogFormat) -> nw.Expr:
    length, is_duration = log.step_length
    if dtype.is_temporal():
        if not is_duration:
            raise refuse_step(log, "dates")
        if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
            time = time.dt.convert_time_zone("UTC")  # hours of summer time come twice
        time = _seconds(time, has_hours=dtype != nw.Date)
    elif is_duration:
        raise refuse_step(log, "numbers")
    return (time / length).floor().cast(nw.Int64)


def _seconds(time: nw.Expr, has_hours: bool) -> nw.Expr:
    """Return the seconds since 1970; Narwhals has no such function for every engine."""
    year = time.dt.year().cast(nw.Float64) - 1
    leap = (year / 4).floor() - (year / 100).floor() + (year / 400).floor()
    days = 365 * year + leap + time.dt.ordinal_day().cast(nw.Float64) - DAYS_TO_1970
    found = days * 86400
    if has_hours:
        found = found + time.dt.hour().cast(nw.Float64) * 3600
        found = found + time.dt.minute().cast(nw.Float64) * 60
        found = found + time.dt.second().cast(nw.Float64)
        found = found + time.dt.microsecond().cast(nw.Float64) / 1e6
    return found


# ---- rows in memory ----------------------------------------------------------------------


def step_numbers(times: NDArray[Any], log: LogFormat) -> Ints:
    """Return the number of the step that each time is in."""
    length, is_duration = log.step_length
    if times.dtype.kind in "Mm":
        if not is_duration:
            raise refuse_step(log, "dates")
        numbers: Array = times.astype("M8[us]").astype(np.int64) / 1e6
    elif is_duration:
        raise refuse_step(log, "numbers")
    else:
        numbers = times.astype(np.float64)
    return np.floor(numbers / length).astype(np.int64)


def first_in_step(episodes: Ints, steps: Ints, times: NDArray[Any]) -> Bools:
    """Return which rows, sorted by time, are the first of their step, or have the time of another.

    Rows of the same time stay, since there is no first among them.
    """
    same = (episodes[1:] == episodes[:-1]) & (steps[1:] == steps[:-1])
    is_tie = same & (times[1:] == times[:-1])
    return np.append(True, ~same | is_tie)


def combined_columns(
    columns: Mapping[str, Column], utility: str, group: Ints, groups: int
) -> dict[str, Column]:
    """Return one row for each group of rows, which are numbered as they come."""
    found = {}
    for name, column in columns.items():
        present = np.flatnonzero(~column.missing)
        if name == utility:
            sums = np.bincount(group[present], column.data[present], minlength=groups)
            number = np.bincount(group[present], minlength=groups)
            found[name] = Column(column.kind, np.where(number > 0, sums, np.nan))
            continue
        having, first = np.unique(group[present], return_index=True)
        rows = np.full(groups, -1)
        rows[having] = present[first]
        found[name] = column.take(rows)
    return found


def combined_flags(flags: Ints, group: Ints, groups: int) -> Ints:
    """Return the flag of each group: the greatest of its rows, missing if all are."""
    known = np.where(flags == MISSING, -1, flags)
    found = np.full(groups, -1)
    np.maximum.at(found, group, known)
    return np.where(found < 0, MISSING, found)
