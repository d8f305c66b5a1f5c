"""DuckDB: files, relations, and tables in memory, which DuckDB counts out of core."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Self

import narwhals as nw
import numpy as np

from rspmn.data.sources.connect import connect, quoted, refused_cell
from rspmn.data.sources.csv import check_names
from rspmn.data.sources.engine import RANGE, ROW, Engine, Frame, Kept, RowRange, in_threads
from rspmn.data.sources.log_files import LogFiles, open_files
from rspmn.data.tables import Table, as_table, is_paths, native_frame
from rspmn.errors import DataError, no_rows

if TYPE_CHECKING:
    import duckdb

#: The name of a table in memory, and of its arrays where some of its columns are refused.
LOG, ARRAYS = "log", "rspmn_arrays"
#: The column that numbers the rows of a kept table.
PLACE = "rspmn: place"

_numbers = count()


@dataclass(frozen=True, eq=False)
class DuckDB(Engine):
    """Rows that DuckDB reads: from files, from arrays, or from a relation of the caller."""

    connection: "duckdb.DuckDBPyConnection | None" = None  # None: that of the caller's relation
    files: LogFiles | None = None

    @classmethod
    def opens(cls, source: object) -> bool:
        """Return whether the source is a path, a relation, or a table in memory."""
        if is_paths(source) or isinstance(source, Table | Mapping | np.ndarray):
            return True
        frame = native_frame(source)
        if isinstance(frame, nw.LazyFrame):
            return frame.implementation.is_duckdb()
        return frame is not None

    @classmethod
    @contextmanager
    def open(cls, source: object, memory_limit: str | None = None) -> Iterator[Self]:
        """Open files or arrays with a connection of our own, a relation with the caller's."""
        frame = None if is_paths(source) else native_frame(source)
        if isinstance(frame, nw.LazyFrame):
            relation = nw.to_native(frame)
            check_names(relation.columns)
            yield cls(nw.from_native(_in_universal_time(relation)))
            return
        with connect(memory_limit) as connection:
            if is_paths(source):
                files = open_files(source, connection)
                yield cls(nw.from_native(files.table), connection, files)
            else:
                table = as_table(source)
                check_names(table.names)
                if not table.names or not table.rows:
                    raise no_rows()
                _register(table, connection)
                yield cls(nw.from_native(connection.table(LOG)), connection)

    def read(self, frame: Frame) -> Table:
        """Fetch a query as numpy arrays; Ctrl-C stops it."""
        fetch = nw.to_native(frame).fetchnumpy
        with self.errors_named():
            if self.connection is None:
                columns = fetch()
            else:
                (columns,) = in_threads([OwnRange(self.connection, "")], lambda _: fetch())
        rows = len(next(iter(columns.values()), ()))
        return Table(columns, rows)

    @contextmanager
    def keep(self, frame: Frame) -> Iterator[Kept]:
        """Make a table of the result."""
        native: Any = nw.to_native(frame)
        ours = self.connection
        rows: RowRange = CallersRange(native)
        if ours is not None:
            rows = OwnRange(ours, native.sql_query())
        with self._tables({rows: f"SELECT * FROM {RANGE}"}) as (name,):
            frame = rows.frame(f"SELECT *, rowid AS {quoted(PLACE)} FROM {name}")
            yield Kept(frame, rows.ask(f"SELECT count(*) FROM {name}")[0][0])

    def map_batches(self, kept: Kept, function: Callable[[Table], str], size: int) -> Iterator[str]:
        """Read batches one after another."""
        place = nw.col(PLACE)
        bounds = self.read(kept.frame.select(place.min().alias("a"), place.max().alias("b")))
        first, last = (int(bounds.cells(name).present[0]) for name in "ab")
        for start in range(first, last + 1, size):
            batch = self.read(kept.frame.filter((place >= start) & (place < start + size)))
            if batch.rows:
                yield function(batch)

    def with_row_numbers(self) -> Frame:
        """Return rows with numbers in the order in which DuckDB reads them."""
        native = nw.to_native(self.frame)
        numbers = f"row_number() OVER () - 1 AS {quoted(ROW)}"
        numbered: Frame = nw.from_native(native.select(f"*, {numbers}"))
        return numbered

    def row_ranges(self) -> Sequence[RowRange]:
        """Return the files, or all rows as one range; none if columns are not as stored."""
        if self.is_changed:
            return ()
        if self.connection is None:
            return [CallersRange(nw.to_native(self.frame))]
        if self.files is None:
            return [OwnRange(self.connection, f"SELECT * FROM {LOG}")]
        return [OwnRange(self.files.cursor(), query) for query in self.files.queries()]

    @contextmanager
    def empty_range(self, names: Collection[str]) -> Iterator[Frame]:
        """Make an empty table RANGE; not in the database of the caller."""
        import duckdb

        log, ours = nw.to_native(self.frame), self.connection
        types = zip(log.columns, log.types, strict=True)
        columns = ", ".join(f"{quoted(name)} {dtype}" for name, dtype in types if name in names)
        with duckdb.connect() if ours is None else nullcontext(ours) as connection:
            connection.execute(f"CREATE OR REPLACE TABLE {RANGE} ({columns})")
            yield nw.from_native(connection.table(RANGE))

    @contextmanager
    def keep_ranges(
        self, queries: Mapping[RowRange, str], combine: Callable[[Frame], Frame]
    ) -> Iterator[Kept]:
        """Query the ranges in threads, and make a table of the combined answers."""
        with self._tables(queries) as names:
            union = " UNION ALL ".join(f"SELECT * FROM {name}" for name in names)
            with self.keep(combine(next(iter(queries)).frame(union))) as kept:
                yield kept

    @contextmanager
    def _tables(self, queries: Mapping[RowRange, str]) -> Iterator[list[str]]:
        """Make a table of the answer of each range; they are dropped when the context ends."""
        names = [f"rspmn_kept_{next(_numbers)}" for _ in queries]
        with ExitStack() as stack:
            made = dict(zip(queries, names, strict=True))
            for rows, name in made.items():
                stack.callback(rows.drop, name)
            with self.errors_named():
                in_threads(list(queries), lambda rows: rows.make(made[rows], queries[rows]))
            yield names

    def as_dates(self, column: nw.Expr) -> nw.Expr:
        """Cast the dates by way of universal time: a plain cast leaves their zones out.

        Connections of the caller may be in another time zone, and are asked for none.
        """
        if self.connection is None:
            return super().as_dates(column)
        return column.cast(nw.Datetime("us", "UTC")).cast(nw.Datetime("us"))

    @property
    def paths(self) -> Sequence[str]:
        """The files that rows are read from."""
        return () if self.files is None else self.files.paths

    def errors(self) -> tuple[type[Exception], ...]:
        """Return the errors of DuckDB and of Narwhals."""
        import duckdb

        return (*super().errors(), duckdb.Error)


def _register(table: Table, connection: "duckdb.DuckDBPyConnection") -> None:
    """Make a table in memory known as LOG; columns that cannot be read are refused when used."""
    columns, refused = {}, {}
    for name in table.names:
        try:
            columns[name] = table.column(name)
        except DataError as error:
            columns[name] = table.text(name)
            refused[name] = refused_cell(quoted(name), str(error))
    if not refused:
        connection.register(LOG, columns)
        return
    connection.register(ARRAYS, columns)
    cells = ", ".join(f"{cell} AS {quoted(name)}" for name, cell in refused.items())
    connection.execute(f"CREATE TEMP VIEW {LOG} AS SELECT * REPLACE ({cells}) FROM {ARRAYS}")


@dataclass(frozen=True, eq=False)
class OwnRange:
    """Rows that a connection of our own reads."""

    connection: "duckdb.DuckDBPyConnection"
    query: str

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows that answer a query."""
        return self.connection.execute(self._with_range(query)).fetchall()

    def frame(self, query: str) -> Frame:
        """Return the answer to a query of other tables as a lazy frame."""
        found: Frame = nw.from_native(self.connection.sql(query))
        return found

    def make(self, name: str, query: str) -> None:
        """Make a table of the answer to a query."""
        self.connection.execute(f"CREATE TABLE {name} AS {self._with_range(query)}")

    def drop(self, name: str) -> None:
        """Drop a table, if it was made."""
        self.connection.execute(f"DROP TABLE IF EXISTS {name}")

    def interrupt(self) -> None:
        """Stop the query that is running."""
        self.connection.interrupt()

    def _with_range(self, query: str) -> str:
        return f"WITH {RANGE} AS NOT MATERIALIZED ({self.query}) SELECT * FROM ({query})"


@dataclass(frozen=True, eq=False)
class CallersRange:
    """All rows of a relation of the caller, read by its connection."""

    relation: "duckdb.DuckDBPyRelation"

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows that answer a query."""
        return self._query(query).fetchall()

    def frame(self, query: str) -> Frame:
        """Return the answer to a query of other tables as a lazy frame."""
        found: Frame = nw.from_native(self._query(query))
        return found

    def _query(self, query: str) -> "duckdb.DuckDBPyRelation":
        found = self.relation.query(RANGE, query)
        assert found is not None  # None for statements
        return found

    def make(self, name: str, query: str) -> None:
        """Make a temporary table of the answer to a query."""
        self.relation.query(RANGE, f"CREATE TEMP TABLE {name} AS {query}")

    def drop(self, name: str) -> None:
        """Drop a table, if it was made; a transaction that failed has none."""
        import duckdb

        with suppress(duckdb.TransactionException):
            self.relation.query(RANGE, f"DROP TABLE IF EXISTS {name}")

    def interrupt(self) -> None:
        """Do nothing: a relation does not tell its connection."""


def _in_universal_time(relation: Any) -> Any:
    """Return a relation whose times have no zone: the caller's connection may be in another one."""
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    if "TIMESTAMP WITH TIME ZONE" not in types.values():
        return relation
    cells = (
        f"timezone('UTC', {quoted(name)}) AS {quoted(name)}"
        if dtype == "TIMESTAMP WITH TIME ZONE"
        else quoted(name)
        for name, dtype in types.items()
    )
    return relation.project(", ".join(cells))
