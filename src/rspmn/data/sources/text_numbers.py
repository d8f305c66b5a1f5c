"""Columns of numbers with some cells of text, "<0.5" or "n/a", read as numbers.

`LogFormat.numbers` says of which columns. What is no number is missing; of limits, the number
counts.
"""

import re
from typing import Any

import narwhals as nw
import numpy as np

from rspmn.data.cells import Cells
from rspmn.data.sources.engine import Engine
from rspmn.data.sources.engine_columns import NUMBER, plain_column
from rspmn.data.sources.refused import reason_of, refused_text
from rspmn.data.tables import Table
from rspmn.log_format import LogFormat

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
