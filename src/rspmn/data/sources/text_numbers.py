"""Columns of numbers with some cells of text, "<0.5" or "n/a", read as numbers.

`LogFormat.numbers` says of which columns. What is no number is missing; of limits, the number
counts.
"""

import re
from collections.abc import Collection
from typing import Any

import narwhals as nw
import numpy as np

from rspmn.data.cells import INT64, Cells
from rspmn.data.sources.connect import reason_of, refused_text
from rspmn.data.sources.engine import Engine
from rspmn.data.sources.engine_columns import (
    NUMBER,
    count_where,
    has_fraction_digits,
    plain_column,
    stored_columns,
)
from rspmn.data.tables import Table
from rspmn.log_format import LogFormat
from rspmn.schema import Schema

#: What stands before the number of a limit.
LIMIT = r"^\s*[<>≤≥]=?"
#: Spaces and a plus sign before a number, which not all engines read.
BEFORE = r"^\s*\+?"


def with_numbers(source: Engine, log: LogFormat) -> Engine:
    """Return a log in which the columns that the format names are numbers."""
    types = dict(source.frame.collect_schema())
    columns = []
    for name, how in log.numbers:
        is_mixed = name in types and reason_of(types[name]) is not None
        if is_mixed:
            text = refused_text(name, types[name])
        else:
            text = plain_column(types, name, "numbers column")
        if not is_mixed and types[name] not in (nw.String, nw.Categorical, nw.Enum):
            continue
        if how == "limits":
            text = text.str.replace_all(LIMIT, "")
        text = text.str.replace_all(BEFORE, "").str.strip_chars()
        number = nw.when(text.str.contains(NUMBER)).then(text).cast(nw.Float64)
        columns.append(number.alias(name))
    return source.with_columns(columns)


def table_with_numbers(table: Table, log: LogFormat) -> Table:
    """Return a table in which the columns that the format names are numbers."""
    found: dict[str, Any] = {}
    for name, how in log.numbers:
        cells = table.cells(name, "numbers column")
        if cells.present.dtype.kind not in "OUT":
            continue
        full = np.full(len(cells.missing), np.nan)
        full[~cells.missing] = [_number(value, how == "limits") for value in cells.present.tolist()]
        found[name] = Cells(full[~np.isnan(full)], np.isnan(full))
    return table.with_columns(found) if found else table


def _number(value: object, is_limit: bool) -> float:
    """Return the number that a cell is, NaN if it is none."""
    if not isinstance(value, str):
        return float(value)  # type: ignore[arg-type]
    text = re.sub(LIMIT, "", value) if is_limit else value
    return float(text) if re.match(NUMBER, text) else np.nan


#: Types of integers that may not fit.
WIDE = (nw.Int128, nw.UInt128, nw.UInt64)


def with_plain_columns(source: Engine, schema: Schema) -> Engine:
    """Return a log with the numbers that its format says are in text, and identifiers as text."""
    log = schema.log
    source = with_numbers(source, log)
    if log.wide:
        return with_identifiers(source, source.names)
    return with_identifiers(source, (log.episode, log.time, log.flag, *schema.variables))


def with_identifiers(source: Engine, wanted: Collection[str | None]) -> Engine:
    """Return a log in which the columns that are used and hold such integers are text."""
    types = dict(source.frame.collect_schema())
    wide = [name for name in source.names if _is_wide(types[name])]
    wide = [name for name in stored_columns(source.names, wanted) if name in wide] if wide else []
    if not wide:
        return source
    is_huge = []
    for k, name in enumerate(wide):
        condition = nw.col(name) > nw.lit(int(INT64.max))
        if types[name] not in (nw.UInt64, nw.UInt128):
            condition = condition | (nw.col(name) < nw.lit(int(INT64.min)))
        is_huge.append(count_where(condition).alias(f"c{k}"))
    found = source.read(source.frame.select(*is_huge))
    counts = [found.cells(f"c{k}").present for k in range(len(wide))]
    huge = [name for name, count in zip(wide, counts, strict=True) if len(count) and count[0]]
    return source.with_columns([nw.col(name).cast(nw.String) for name in huge])


def _is_wide(dtype: Any) -> bool:
    return dtype in WIDE or (dtype == nw.Decimal and not has_fraction_digits(dtype))
