"""The rows of a log as every engine sees them: which columns say what, and what a row tells.

Columns go by names of their own from here on: e and t for episode and time, v0, v1, … for the
variables, and n0, n1, … for those of the row after it.
"""

from dataclasses import dataclass
from typing import Any

import narwhals as nw

from rspmn.data.sources.engine import ROW, Engine, Frame
from rspmn.data.sources.pair_codes import ADD, HINT, NEITHER, NO, UNSAID, YES
from rspmn.data.tables import refuse_type
from rspmn.errors import DataError, no_column
from rspmn.log_format import LogFormat
from rspmn.schema import Schema

EPISODE, TIME, FLAG = "e", "t", "f"
#: How text that is a date, or a date and a time, begins.
ISO_DATE = r"\d{4}-\d{2}-\d{2}"
#: Of pairs: the next row's time, whether the row is the first of its episode, and its number in it.
NEXT_TIME, FIRST, COUNT = "nt", "first", "k"


@dataclass(frozen=True)
class Asked:
    """What is asked of a log: which columns say what, and what follows a step."""

    schema: Schema  # with the format of the log
    told: tuple[str, ...]  # the successor's variables

    @property
    def log(self) -> LogFormat:
        """The format of the log."""
        return self.schema.log

    @property
    def chosen(self) -> tuple[str, ...]:
        """What only a step has."""
        return (*self.schema.decisions, self.schema.utility)


def columns_of(asked: Asked) -> tuple[dict[str, str], dict[str, str]]:
    """Return what each variable is called in pairs, of the row and of the one after it."""
    variables = asked.schema.variables
    here = {name: f"v{k}" for k, name in enumerate(variables)}
    after = {name: f"n{k}" for k, name in enumerate(variables) if name in asked.told}
    return here, after


def rows_of(source: Engine, asked: Asked) -> Frame:
    """Return the rows of a long table under their own names: e, t, f, v0, v1, …."""
    if asked.log.time is None:
        source = source.numbered()
    rows = cells_of(source.frame, asked)
    rows = rows.with_columns(hint_of(rows, asked).alias(HINT))
    if rows.collect_schema()[TIME] == nw.String:
        return _with_dates(source, rows, asked)
    return rows


def _with_dates(source: Engine, rows: Frame, asked: Asked) -> Frame:
    """Return the rows with times that are text as the dates that they are."""
    odd = rows.filter(~nw.col(TIME).str.contains(f"^{ISO_DATE}")).select(TIME).head(1)
    found = source.read(odd)
    if found.rows:
        raise refuse_time(asked.log.time or ROW, found.cells(TIME).present.tolist()[0])
    time = nw.col(TIME)
    return rows.with_columns(source.as_dates(time))


def cells_of(frame: Frame, asked: Asked) -> Frame:
    """Return what a long table's rows hold: e, t, v0, v1, … and f, what the flag says."""
    types = dict(frame.collect_schema())
    here, _ = columns_of(asked)
    flags = [] if asked.log.flag is None else [asked.log.flag]
    return frame.select(
        _present(types, asked.log.episode, "episode column").alias(EPISODE),
        _time(types, asked.log.time or ROW).alias(TIME),
        *(plain_column(types, name).alias(alias) for name, alias in here.items()),
        *(plain_column(types, name, "terminated column").alias(FLAG) for name in flags),
    )


def plain_column(types: dict[str, Any], name: str, what: str = "column") -> nw.Expr:
    """Return a column of values that can be compared, text for categories."""
    if name not in types:
        names = [found for found in types if found != ROW]
        raise no_column(what, name, names)
    if name == "*" or (name.startswith("^") and name.endswith("$")):
        raise DataError(f"column {name!r}: engines take this name for a pattern: rename it")
    found, dtype = nw.col(name), types[name]
    if dtype in (nw.Categorical, nw.Enum, nw.Unknown):  # a column of nothing has no type
        return found.cast(nw.String)
    if dtype in (nw.Int128, nw.UInt128) or (dtype == nw.Decimal and not _has_parts(dtype)):
        return found.cast(nw.Int64)
    if dtype == nw.Decimal:
        return found.cast(nw.Float64)
    if dtype.is_nested() or dtype in (nw.Binary, nw.Duration, nw.Time):
        raise refuse_type(name, dtype)
    return found


def _has_parts(dtype: Any) -> bool:
    """Say whether decimals have digits after the point."""
    return getattr(dtype, "scale", 1) != 0


def _present(types: dict[str, Any], name: str, what: str) -> nw.Expr:
    """Return a column in which everything that is empty is null."""
    found = plain_column(types, name, what)
    if types[name].is_float() or types[name] == nw.String:
        return nw.when(~gone(types, name)).then(found)
    return found


def _time(types: dict[str, Any], name: str) -> nw.Expr:
    """Return the times, whole numbers as long ones: one more must not overflow."""
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


def gone(types: dict[str, Any], name: str) -> nw.Expr:
    """Return whether a cell is empty."""
    found = plain_column(types, name)
    if types[name].is_float():
        return found.is_null() | found.is_nan()
    if types[name] in (nw.String, nw.Categorical, nw.Enum, nw.Unknown):
        return found.is_null() | (found == "")
    return found.is_null()


def count_where(told: nw.Expr) -> nw.Expr:
    """Return in how many rows something is so; not every engine adds up booleans."""
    return nw.when(told).then(nw.lit(1)).otherwise(nw.lit(0)).sum()


def hint_of(rows: Frame, asked: Asked) -> nw.Expr:
    """Return what the row before must know of a row, in one number: is it a step, and its flag."""
    flag = flag_of(rows, asked)
    return either(rows, asked, state=flag + ADD, step=flag)


def either(rows: Frame, asked: Asked, state: nw.Expr, step: nw.Expr) -> nw.Expr:
    """Return one thing of states, rows without utility and decisions, and another of steps.

    Whether the utility is missing is looked at first: few rows lack it.
    """
    types, (here, _) = dict(rows.collect_schema()), columns_of(asked)
    *decisions, utility = (gone(types, here[name]) for name in asked.chosen)
    lacking = nw.all_horizontal(*decisions, ignore_nulls=False)
    return nw.when(utility).then(nw.when(lacking).then(state).otherwise(step)).otherwise(step)


def flag_of(rows: Frame, asked: Asked) -> nw.Expr:
    """Return what a terminated flag says."""
    if asked.log.flag is None:
        return nw.lit(NO)
    types = dict(rows.collect_schema())
    found, dtype = nw.col(FLAG), types[FLAG]
    if dtype == nw.Boolean:
        said = nw.when(found).then(nw.lit(YES)).otherwise(nw.lit(UNSAID))
        return nw.when(~found).then(nw.lit(NO)).otherwise(said)
    if dtype.is_numeric():
        yes, no = found == 1, found == 0
    elif dtype == nw.String:
        yes, no = found.str.to_lowercase() == "true", found.str.to_lowercase() == "false"
    else:
        raise DataError(f"terminated column {asked.log.flag!r}: expected booleans, found {dtype}")
    said = nw.when(yes).then(nw.lit(YES)).otherwise(nw.lit(NEITHER))
    said = nw.when(no).then(nw.lit(NO)).otherwise(said)
    return nw.when(gone(types, FLAG)).then(nw.lit(UNSAID)).otherwise(said)
