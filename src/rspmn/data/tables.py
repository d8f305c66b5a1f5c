"""Tables in memory of any type: pandas, Polars, PyArrow, numpy, plain lists; whole files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from rspmn.data.cells import INT64, Cells, split_missing
from rspmn.data.columns import Column, encode, sort_of
from rspmn.errors import DataError
from rspmn.expressions import expression_of
from rspmn.expressions.evaluate import ArrayAlgebra, Term, fold
from rspmn.schema import Kind, Schema
from rspmn.types import objects

#: A path or a pattern of files, or several.
Paths = str | Path | Sequence[str | Path]


class Table:
    """The columns of a table by name, in order."""

    def __init__(self, columns: Mapping[str, Any], rows: int) -> None:
        self._columns = columns
        self.names = list(columns)
        self.rows = rows

    def with_columns(self, columns: Mapping[str, Any]) -> "Table":
        """Return the table with some columns replaced."""
        return Table({**self._columns, **columns}, self.rows)

    def cells(self, name: str, what: str = "column") -> Cells:
        """Return the cells of a column; `what` names its role in errors."""
        if name not in self._columns:
            return self._derived(name, what)
        column = self._columns[name]
        if isinstance(column, Cells):
            return column
        if isinstance(column, np.ndarray):
            return split_missing(column)
        nulls = column.is_null().to_numpy().astype(bool)
        inner = split_missing(_array_of(column.drop_nulls()))
        missing = nulls.copy()
        missing[~nulls] = inner.missing
        return Cells(inner.present, missing)

    def _derived(self, text: str, what: str) -> Cells:
        """Return the cells that an expression of columns computes."""
        found = fold(expression_of(text, self.names, what), _TableColumns(self))
        if found.sort == "text":
            return split_missing(found.value)
        missing = np.isnan(found.value)
        present = found.value[~missing]
        return Cells(present == 1 if found.sort == "condition" else present + 0.0, missing)

    def coded(self, name: str, kind: Kind | None = None) -> Column:
        """Return a column in codes; its kind is inferred from its values if it is not given."""
        return encode(self.cells(name), kind, name)

    def column(self, name: str) -> NDArray[Any]:
        """Return a column as an array, masked where it is empty; text as objects."""
        cells = self.cells(name)
        if cells.present.dtype.kind not in "biufMOUT":
            raise refuse_type(name, cells.present.dtype)
        if cells.present.dtype.kind in "OUT":
            sort_of(cells.present, name)  # DuckDB would make text of values of different types
            words = np.full(len(cells.missing), None, dtype=object)
            words[~cells.missing] = cells.present
            return words
        full = np.zeros(len(cells.missing), dtype=cells.present.dtype)
        full[~cells.missing] = cells.present
        return np.ma.array(full, mask=cells.missing) if cells.missing.any() else full

    def text(self, name: str) -> NDArray[Any]:
        """Return the cells of a column as text, None where they are missing."""
        cells = self.cells(name)
        words = np.full(len(cells.missing), None, dtype=object)
        words[~cells.missing] = [str(value) for value in cells.present.tolist()]
        return words


class _TableColumns(ArrayAlgebra):
    """Expressions of the columns of a table."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return self.table.names

    def column(self, name: str) -> Term:
        """Return a column: booleans are conditions, a column without values is text."""
        if name not in self.table.names:
            return Term("word", name)
        cells = self.table.cells(name)
        sort = sort_of(cells.present, name) if len(cells.present) else "str"
        full: NDArray[Any] = np.full(len(cells.missing), None if sort == "str" else np.nan)
        full[~cells.missing] = cells.present
        if sort == "str":
            return Term("text", full)
        return Term("condition" if sort == "bool" else "number", full)


def _array_of(series: Any) -> NDArray[Any]:
    """Return a series of Narwhals as an array; numpy has no integers of 128 bits."""
    if str(series.dtype) not in ("Int128", "UInt128"):
        return np.asarray(series.to_numpy())
    return objects(series.to_list())


def refuse_type(name: str, found: object) -> DataError:
    """Return the error of a column whose type cannot be learned from."""
    return DataError(
        f"column {name!r}: expected strings, numbers, booleans or dates, found {found}: leave it "
        "out of the table"
    )


def is_paths(source: object) -> TypeGuard[Paths]:
    """Return whether a source is a path or a pattern of files, or several."""
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(each, str | Path) for each in source)
    return isinstance(source, str | Path)


def as_table(source: object) -> Table:
    """Read a file, a data frame, a mapping of names to arrays, or a 2-D array ("0", "1", …)."""
    if isinstance(source, Table):
        return source
    if is_paths(source):
        from rspmn.data.sources.open import open_source

        with open_source(source) as opened:
            return opened.read(opened.frame.select(opened.names))
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
    if array.ndim == 0:
        return array  # one value, which is no column
    if array.dtype.kind in "UT" or (array.dtype.kind in "iuf" and _loses_types(column)):
        # numpy turns large integers into rounded floats, and [True, 2] into [1, 2]
        return objects(list(column))
    return array


def _loses_types(column: Any) -> bool:
    """Return whether values are booleans among others, or integers that floats do not hold."""
    types = set(map(type, column))
    return not types.isdisjoint((bool, np.bool_)) or any(
        isinstance(value, int) and not INT64.min <= value <= INT64.max for value in column
    )


def native_frame(source: object) -> Any:
    """Return a data frame of any library as Narwhals has it, None for anything else."""
    import narwhals as nw

    if isinstance(source, np.ndarray | str | Path):  # Narwhals takes columns of arrays for series
        return None
    try:
        found = nw.from_native(source, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise DataError(f"the table has columns of the same name: rename them ({error})") from None
    return found if isinstance(found, nw.DataFrame | nw.LazyFrame) else None


def refuse_source(source: object) -> DataError:
    """Return the error of an object that is no table."""
    return DataError(
        "expected a path, a pandas, Polars or PyArrow table, a DuckDB relation, a Spark table, "
        f"a mapping of names to arrays, or a 2-D numpy array, found {type(source).__name__}"
    )


def _frame(source: object) -> Table:
    import narwhals as nw

    frame = native_frame(source)
    if frame is None:
        raise refuse_source(source)
    if isinstance(frame, nw.LazyFrame):
        from rspmn.data.sources.open import open_source

        with open_source(source) as opened:
            return opened.read(opened.frame)
    return eager_table(frame)


def eager_table(frame: Any) -> Table:
    """Return a Narwhals data frame as a table."""
    names = [str(name) for name in frame.columns]
    return Table(dict(zip(names, frame.iter_columns(), strict=True)), len(frame))


def code_cells(cells: Cells, name: str, schema: Schema) -> Column:
    """Return the cells of a variable as a column of the kind that the schema gives."""
    kind = Kind.CONTINUOUS if name == schema.utility else schema.kinds.get(name)
    column = encode(cells, kind, name)
    if name in schema.decisions and column.kind is Kind.CONTINUOUS:
        raise DataError(
            f"decision {name!r} holds numbers that are not whole: bin it, or, if its values are "
            "few, give it the kind 'categorical' in the schema"
        )
    return column
