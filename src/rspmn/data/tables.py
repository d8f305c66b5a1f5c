"""Tables of any make, read column by column: pandas, Polars, PyArrow, numpy, plain lists."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.errors import DataError, did_you_mean
from rspmn.values import is_missing

__all__ = ["Cells", "Table", "as_table"]


@dataclass(frozen=True, eq=False)
class Cells:
    """One column: what is there, and where nothing is. An empty string is nothing."""

    present: NDArray[Any]  # [n - number missing]
    missing: NDArray[np.bool_]  # [n]


class Table:
    """A table's columns by name, in order."""

    def __init__(self, columns: Mapping[str, Any], rows: int) -> None:
        self._columns = columns
        self.names = list(columns)
        self.rows = rows

    def cells(self, name: str, what: str = "column") -> Cells:
        """Return a column, or name the nearest one there is."""
        if name not in self._columns:
            raise DataError(f"no {what} {name!r} in the table: {did_you_mean(name, self.names)}")
        column = self._columns[name]
        if isinstance(column, np.ndarray):
            return _split(column)
        nulls = column.is_null().to_numpy().astype(bool)
        inner = _split(np.asarray(column.drop_nulls().to_numpy()))
        missing = nulls.copy()
        missing[~nulls] = inner.missing
        return Cells(inner.present, missing)


def as_table(source: object) -> Table:
    """Read a data frame, a mapping of names to arrays, or a 2-D array (columns "0", "1", …)."""
    if isinstance(source, np.ndarray):
        if source.ndim != 2:
            raise DataError(
                f"expected an array of rows and columns, found {source.ndim} dimensions"
            )
        return Table({str(k): source[:, k] for k in range(source.shape[1])}, len(source))
    if isinstance(source, Mapping):
        columns = {str(name): _as_array(column) for name, column in source.items()}
        for name, column in columns.items():
            if column.ndim != 1:
                raise DataError(f"column {name!r}: expected one dimension, found {column.ndim}")
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"expected columns of one length, found {lengths}")
        return Table(columns, next(iter(lengths.values()), 0))
    return _frame(source)


def _as_array(column: Any) -> NDArray[Any]:
    if isinstance(column, np.ndarray):
        return column
    try:
        array = np.asarray(column)
    except ValueError:  # lists of different lengths in it
        array = np.array([], dtype="U")
    if array.dtype.kind in "UT" or (array.dtype.kind == "f" and _all_int(column)):
        made = np.empty(len(column), dtype=object)  # numpy turns [1, "a"] into two strings,
        made[:] = list(column)  # and large integers into rounded floats
        return made
    return array


def _all_int(column: Any) -> bool:
    return all(type(value) is int for value in column)


def _frame(source: object) -> Table:
    import narwhals as nw

    try:
        frame = nw.from_native(source, eager_only=True)  # type: ignore[call-overload]
    except nw.exceptions.DuplicateError as error:
        raise DataError(f"the table has columns of the same name: rename them ({error})") from None
    except TypeError:
        raise DataError(
            "expected a pandas, Polars or PyArrow table, a mapping of names to arrays, or a 2-D "
            f"numpy array, found {type(source).__name__}"
        ) from None
    names = [str(name) for name in frame.columns]
    return Table(dict(zip(names, frame.iter_columns(), strict=True)), len(frame))


def _split(column: NDArray[Any]) -> Cells:
    if column.dtype.kind == "f":
        missing = np.isnan(column)
    elif column.dtype.kind in "UT":
        missing = column == ""
    elif column.dtype.kind == "O":
        values = column.tolist()
        missing = np.fromiter(map(_is_nothing, values), bool, len(values))
    else:
        missing = np.zeros(len(column), dtype=bool)
    missing = np.asarray(missing | np.ma.getmaskarray(column))
    return Cells(np.asarray(column)[~missing], missing)


def _is_nothing(value: object) -> bool:
    return not value if isinstance(value, str) else is_missing(value)
