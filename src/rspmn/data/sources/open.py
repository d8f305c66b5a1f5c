"""Any source as a lazy frame: files, data frames, relations, tables of a cluster."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from rspmn.data.sources.duckdb import LogFiles, engine, open_files
from rspmn.data.sources.engine_errors import errors_named
from rspmn.data.sources.row_ranges import OurPart, Part, TheirPart
from rspmn.data.sources.sql import quoted
from rspmn.data.tables import Table, as_table, eager_table, is_paths, native_frame
from rspmn.errors import DataError, no_rows

if TYPE_CHECKING:
    import duckdb

    Frame = nw.LazyFrame[Any]
else:  # `typing` remembers what has been asked for, and would keep DuckDB alive after its end
    Frame = nw.LazyFrame

#: What DuckDB calls a table in memory.
LOG = "log"
#: The column that numbers rows, where their order is all that tells when they were.
ROW = "rspmn: row"


@dataclass(frozen=True, eq=False)
class Source:
    """A log's rows, wherever they are."""

    frame: Frame
    files: LogFiles | None = None  # that they are read from
    connection: "duckdb.DuckDBPyConnection | None" = None  # our own, to make tables in

    @property
    def is_duckdb(self) -> bool:
        """Whether DuckDB holds it."""
        return self.frame.implementation.is_duckdb()

    @property
    def names(self) -> list[str]:
        """The columns' names."""
        return list(self.frame.collect_schema())

    def parts(self) -> list[Part]:
        """Return the rows in parts that DuckDB can read at the same time, as rows stand."""
        if self.connection is None:
            return [TheirPart(nw.to_native(self.frame))]
        if self.files is None:
            return [OurPart(self.connection, f"SELECT * FROM {LOG}")]
        return [OurPart(self.files.cursor(), query) for query in self.files.queries()]

    @contextmanager
    def named(self) -> Iterator[None]:
        """Say of which files it is that something is wrong."""
        try:
            with self.errors_named():
                yield
        except DataError as error:
            if self.files is None or str(error).startswith(self.files.name):
                raise
            raise DataError(f"{self.files.name}: {error}") from None

    def errors_named(self) -> AbstractContextManager[None]:
        """Return a context in which what is wrong with files is said of them by name."""
        return errors_named([] if self.files is None else self.files.paths)

    def read(self, frame: Frame) -> Table:
        """Read what was asked of these rows into memory."""
        with self.errors_named():
            return read_frame(frame, is_text=self.files is not None and self.files.is_text)


@contextmanager
def open_source(source: object, memory_limit: str | None = None) -> Iterator[Source]:
    """Open a source: a path or pattern, a data frame, a DuckDB relation, a Spark table.

    One that is open stays open.
    """
    if isinstance(source, Source):
        yield source
        return
    if is_paths(source):
        with engine(memory_limit) as connection:
            files = open_files(source, connection)
            yield Source(nw.from_native(files.table), files, connection)
        return
    lazy = _as_lazy(source)
    if lazy is not None:
        if lazy.implementation.is_duckdb():
            _check_names(nw.to_native(lazy).columns)
        yield Source(lazy)
        return
    table = as_table(source)
    with engine(memory_limit) as connection:
        _check_names(table.names)
        columns = {name: table.column(name) for name in table.names}
        if not columns or not table.rows:
            raise no_rows()
        connection.register(LOG, columns)
        yield Source(nw.from_native(connection.table(LOG)), connection=connection)


def _check_names(names: list[str]) -> None:
    """Refuse names that are one column to DuckDB."""
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            other = seen[name.lower()]
            same = "are the same" if other == name else "differ in case only"
            raise DataError(f"columns {other!r} and {name!r} {same}: rename one")
        seen[name.lower()] = name


def _as_lazy(source: object) -> Frame | None:
    """Return a frame that an engine of its own can work on, None for what is plain memory."""
    if isinstance(source, np.ndarray | Mapping):
        return None
    found = native_frame(source)
    if isinstance(found, nw.LazyFrame):
        return found
    if isinstance(found, nw.DataFrame) and found.implementation.is_polars():
        return found.lazy()
    return None


def read_frame(frame: Frame, is_text: bool = False) -> Table:
    """Collect a lazy frame."""
    if frame.implementation.is_duckdb():
        columns = nw.to_native(frame).fetchnumpy()
        rows = len(next(iter(columns.values()), ()))
        return Table(columns, rows, is_text)
    spark = frame.implementation.is_spark_like()
    return eager_table(frame.collect("pyarrow" if spark else None))


def numbered(source: Source) -> Source:
    """Return the rows with their number in a column ROW; Spark's have no order."""
    if ROW in source.names:
        raise DataError(f"a column is called {ROW!r}, as row numbers are here: rename it")
    native = nw.to_native(source.frame)
    if source.is_duckdb:
        made = native.select(f"*, row_number() OVER () AS {quoted(ROW)}")
    elif source.frame.implementation.is_polars():
        made = native.with_row_index(ROW)
    else:
        raise DataError(
            "rows of this table have no order of their own: name the column that orders the steps, "
            "time='...'"
        )
    return replace(source, frame=nw.from_native(made))
