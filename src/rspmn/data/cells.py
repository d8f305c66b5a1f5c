"""Cells: the values of a column in memory, and which cells are missing.

None, NaN, NaT, pandas' NA, masked cells and empty strings are missing. For rows of
an engine `rspmn.data.sources.log_rows.is_missing` is the same rule as a query. Once a column is
coded, `Column.missing` is all that is asked.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.types import Bools, objects
from rspmn.values import is_missing

#: The integers that are numbers; larger ones are identifiers, and text.
INT64 = np.iinfo(np.int64)


@dataclass(frozen=True, eq=False)
class Cells:
    """One column: the values that are present, and where there is none."""

    present: NDArray[Any]  # [n - number missing]
    missing: Bools  # [n]

    @classmethod
    def full(cls, values: NDArray[Any]) -> "Cells":
        """Return cells of which none is missing."""
        return cls(values, np.zeros(len(values), dtype=bool))


def split_missing(column: NDArray[Any]) -> Cells:
    """Return the values of an array that are present, and where there is none."""
    if column.dtype.kind == "f":
        missing = np.isnan(column)
    elif column.dtype.kind in "UT":
        missing = column == ""
    elif column.dtype.kind in "mM":
        missing = np.isnat(column)
    elif column.dtype.kind == "O":
        values = column.tolist()
        missing = np.fromiter(map(_is_nothing, values), bool, len(values))
    else:
        missing = np.zeros(len(column), dtype=bool)
    missing = np.asarray(missing | np.ma.getmaskarray(column))
    return Cells(_plain_values(np.asarray(column)[~missing]), missing)


def _plain_values(present: NDArray[Any]) -> NDArray[Any]:
    """Return dates as numpy's own, decimals as numbers, and integers beyond 64 bits as text."""
    if present.dtype.kind == "O" and len(present):
        present = _plain_numbers(present)
    elif present.dtype == np.uint64 and len(present) and present.max() > INT64.max:
        return present.astype(str).astype(object)
    return _plain_dates(present)


def _plain_numbers(present: NDArray[Any]) -> NDArray[Any]:
    """Return objects that are numbers as such; others as they are."""
    values = present.tolist()
    types = set(map(type, values))
    if types == {Decimal}:
        is_whole = all(value == value.to_integral_value() for value in values)
        values = [int(value) if is_whole else float(value) for value in values]
    elif not types <= {int, float} or int not in types:
        return present
    if any(isinstance(value, int) and not INT64.min <= value <= INT64.max for value in values):
        values = [str(value) for value in values]
    return objects(values)


def _plain_dates(present: NDArray[Any]) -> NDArray[Any]:
    """Return dates as numpy's own, in universal time and of one unit."""
    if present.dtype.kind == "M":
        return present.astype("M8[us]")
    if present.dtype.kind != "O" or not len(present) or not isinstance(present[0], date):
        return present
    if not all(isinstance(value, date) for value in present.tolist()):
        return present  # what else there is, coding will say
    return np.array([np.datetime64(_universal(value), "us") for value in present.tolist()])


def _universal(value: date) -> date:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def _is_nothing(value: object) -> bool:
    return not value if isinstance(value, str) else is_missing(value)


def with_booleans(cells: Cells) -> Cells:
    """Return text of which every cell is true or false as booleans."""
    if cells.present.dtype.kind not in "OU":
        return cells
    words = set(cells.present.tolist())
    if not words or not all(isinstance(w, str) and w.lower() in ("true", "false") for w in words):
        return cells
    true = {word: word.lower() == "true" for word in words}
    return Cells(np.array([true[word] for word in cells.present.tolist()]), cells.missing)
