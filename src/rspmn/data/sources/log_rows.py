"""The rows of a log under column names of their own, the same for every engine.

The columns are e and t for episode and time, f for the flag, v0, v1, … for the variables, and n0,
n1, … for the variables of the next row.
"""

from dataclasses import dataclass
from typing import Any

import narwhals as nw

from rspmn.data.sources.engine import ROW, Engine, Frame
from rspmn.data.sources.engine_columns import (
    ISO_DATE,
    derived_column,
    is_missing,
    plain_column,
    stored_columns,
)
from rspmn.data.sources.pair_codes import INVALID, MISSING, NO, ROW_CODE, STATE_ROW, YES
from rspmn.data.sources.time_bins import binned_rows
from rspmn.errors import DataError
from rspmn.log_format import LogFormat
from rspmn.schema import Schema

EPISODE, TIME, FLAG = "e", "t", "f"
#: Columns of pairs: the next row's time, whether the row is the first of its episode, its number.
NEXT_TIME, FIRST, NUMBER = "nt", "first", "k"
#: The column of the number of pairs in a group.
COUNT = "count"


@dataclass(frozen=True)
class LogQuery:
    """What windows are to be counted: the schema, and what is known of the next row."""

    schema: Schema  # with the format of the log
    following: tuple[str, ...]  # the variables of the next row that a window has

    @property
    def log(self) -> LogFormat:
        """The format of the log."""
        return self.schema.log

    @property
    def chosen(self) -> tuple[str, ...]:
        """The variables that only steps have."""
        return (*self.schema.decisions, self.schema.utility)


def pair_columns(asked: LogQuery) -> tuple[dict[str, str], dict[str, str]]:
    """Return the columns of each variable in pairs: of the row, and of the next row."""
    variables = asked.schema.variables
    here = {name: f"v{k}" for k, name in enumerate(variables)}
    after = {name: f"n{k}" for k, name in enumerate(variables) if name in asked.following}
    return here, after


def coded_rows(source: Engine, asked: LogQuery) -> Frame:
    """Return the rows of a long table: e, t, f, v0, v1, … and the code of each row."""
    if asked.log.time is None:
        source = source.numbered()
    rows = named_cells(source.frame, asked)
    if rows.collect_schema()[TIME] == nw.String:
        rows = _with_dates(source, rows, asked)
    if asked.log.duplicates == "drop":
        rows = rows.unique()
    if asked.log.step is not None:
        earned = pair_columns(asked)[0][asked.schema.utility]
        flag = None if asked.log.flag is None else FLAG
        rows = binned_rows(rows, asked.log, (EPISODE, TIME), earned, flag)
    return rows.with_columns(row_code(rows, asked).alias(ROW_CODE))


def _with_dates(source: Engine, rows: Frame, asked: LogQuery) -> Frame:
    """Return the rows with dates for times that are text."""
    odd = rows.filter(~nw.col(TIME).str.contains(f"^{ISO_DATE}")).select(TIME).head(1)
    found = source.read(odd)
    if found.rows:
        raise refuse_time(asked.log.time or ROW, found.cells(TIME).present.tolist()[0])
    return rows.with_columns(source.as_dates(nw.col(TIME)))


def named_cells(frame: Frame, asked: LogQuery) -> Frame:
    """Return the cells of a long table's rows: e, t, v0, v1, … and f, the flag."""
    types = dict(frame.collect_schema())
    here, _ = pair_columns(asked)
    flags = [] if asked.log.flag is None else [asked.log.flag]
    return frame.select(
        _present(types, asked.log.episode, "episode column").alias(EPISODE),
        _time(types, asked.log.time or ROW).alias(TIME),
        *(_variable(types, name, asked.schema).alias(alias) for name, alias in here.items()),
        *(_flag(types, name).alias(FLAG) for name in flags),
    )


def _present(types: dict[str, Any], name: str, what: str) -> nw.Expr:
    """Return a column with null for every missing cell."""
    found = plain_column(types, name, what)
    if types[name].is_float() or types[name] == nw.String:
        return nw.when(~is_missing(types, name)).then(found)
    return found


def _variable(types: dict[str, Any], name: str, schema: Schema) -> nw.Expr:
    """Return a variable; a utility that is computed is missing in rows that hold nothing of it.

    These are the states after last steps, which have no decisions either.
    """
    found = derived_column(types, name)
    if name in types or name != schema.utility:
        return found
    used = stored_columns(types, (name, *schema.decisions))
    nothing = nw.all_horizontal(*(is_missing(types, each) for each in used), ignore_nulls=False)
    return nw.when(~nothing).then(found)


def _flag(types: dict[str, Any], name: str) -> nw.Expr:
    """Return the terminated flag; a rule that cannot be decided does not hold."""
    found = derived_column(types, name, "terminated column")
    return found if name in types else found.fill_null(False)


def _time(types: dict[str, Any], name: str) -> nw.Expr:
    """Return the times; integers have 64 bits, so that adding one does not overflow."""
    found = _present(types, name, "time column")
    if types[name] == nw.Boolean:
        raise refuse_time(name, True)
    return found.cast(nw.Int64) if types[name].is_integer() and types[name] != nw.UInt64 else found


def refuse_time(name: str, found: object) -> DataError:
    """Return the error of a time that is neither a number nor a date."""
    return DataError(
        f"time column {name!r}: expected numbers or dates, found {found!r}: text does not "
        "sort as time does ('10' comes before '2')"
    )


def refuse_infinite_times(name: str) -> DataError:
    """Return the error of times that are not finite."""
    return DataError(f"time column {name!r}: expected finite numbers")


def row_code(rows: Frame, asked: LogQuery) -> nw.Expr:
    """Return the code of a row: its flag, plus STATE_ROW if it is a state and not a step."""
    flag = flag_code(rows, asked)
    return state_or_step(rows, asked, state=flag + STATE_ROW, step=flag)


def state_or_step(rows: Frame, asked: LogQuery, state: nw.Expr, step: nw.Expr) -> nw.Expr:
    """Return one expression for states, which lack utility and decisions, another for steps."""
    types, (here, _) = dict(rows.collect_schema()), pair_columns(asked)
    lacking = (is_missing(types, here[name]) for name in asked.chosen)
    return nw.when(nw.all_horizontal(*lacking, ignore_nulls=False)).then(state).otherwise(step)


def flag_code(rows: Frame, asked: LogQuery) -> nw.Expr:
    """Return the code of the terminated flag."""
    if asked.log.flag is None:
        return nw.lit(NO)
    types = dict(rows.collect_schema())
    found, dtype = nw.col(FLAG), types[FLAG]
    if dtype == nw.Boolean:
        flag = nw.when(found).then(nw.lit(YES)).otherwise(nw.lit(MISSING))
        return nw.when(~found).then(nw.lit(NO)).otherwise(flag)
    if dtype.is_numeric():
        yes, no = found == 1, found == 0
    elif dtype == nw.String:
        yes, no = found.str.to_lowercase() == "true", found.str.to_lowercase() == "false"
    else:
        raise DataError(f"terminated column {asked.log.flag!r}: expected booleans, found {dtype}")
    flag = nw.when(yes).then(nw.lit(YES)).otherwise(nw.lit(INVALID))
    flag = nw.when(no).then(nw.lit(NO)).otherwise(flag)
    return nw.when(is_missing(types, FLAG)).then(nw.lit(MISSING)).otherwise(flag)
