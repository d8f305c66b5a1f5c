"""Engines: the libraries that hold the rows of a log and run queries on them.

A query is a Narwhals expression, the same for all engines. An engine says which sources it opens,
how a query is read into memory, where an intermediate result is kept, and how rows are numbered.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from os import cpu_count
from threading import Event
from time import sleep
from typing import TYPE_CHECKING, Any, Protocol, Self

import narwhals as nw

from rspmn.data.sources.connect import FOLDER, refuse_temporary_folder
from rspmn.data.tables import Table, eager_table, native_frame
from rspmn.errors import DataError

if TYPE_CHECKING:
    Frame = nw.LazyFrame[Any]
else:  # `typing` caches what is subscripted, and would keep DuckDB alive after its end
    Frame = nw.LazyFrame

#: The column of row numbers.
ROW = "rspmn: row"
#: The name of a range of rows in queries of it.
RANGE = "rspmn_range"
#: What DuckDB reports of rows of text, and what it means.
MEANINGS = {
    "unterminated quote": "a quote is not closed",
    "invalid state": "a quote is not closed",
    "Maximum line size": "a line is too long",
}


@dataclass(frozen=True, eq=False)
class Kept:
    """A result that an engine keeps."""

    frame: Frame
    rows: int


class RowRange(Protocol):
    """Some rows of a log in the order in which they are stored: a table RANGE in SQL."""

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows that answer a query."""

    def frame(self, query: str) -> Frame:
        """Return the answer to a query of other tables as a lazy frame."""

    def make(self, name: str, query: str) -> None:
        """Make a table of the answer to a query."""

    def drop(self, name: str) -> None:
        """Drop a table, if it was made."""

    def interrupt(self) -> None:
        """Stop the query that is running, if there is one."""


def in_threads(ranges: Sequence[RowRange], function: Callable[[RowRange], Any]) -> list[Any]:
    """Apply a function to all ranges at the same time; Ctrl-C stops their queries.

    It may come while a thread starts, of which the pool does not know yet, or just before a query
    does, which cannot be stopped yet. So threads say themselves what they are at.
    """
    stopped, running = Event(), set[RowRange]()

    def run(rows: RowRange) -> Any:
        running.add(rows)
        try:
            return None if stopped.is_set() else function(rows)
        finally:
            running.discard(rows)

    with ThreadPoolExecutor(cpu_count()) as pool:
        try:
            return list(pool.map(run, ranges))
        except KeyboardInterrupt:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            while running:
                for rows in ranges:
                    rows.interrupt()
                sleep(0.01)
            raise


@dataclass(frozen=True, eq=False)
class Engine:
    """An opened log: its rows, and what their library does in its own way.

    This class works for every lazy frame that Narwhals knows. Subclasses override what their
    library does differently, or better.
    """

    frame: Frame  # all rows
    is_changed: bool = field(default=False, kw_only=True)  # whether columns are not as stored

    @classmethod
    def opens(cls, source: object) -> bool:
        """Return whether this engine opens a source; it must not fail for any object."""
        return isinstance(native_frame(source), nw.LazyFrame)

    @classmethod
    @contextmanager
    def open(cls, source: object, memory_limit: str | None = None) -> Iterator[Self]:  # noqa: ARG003
        """Open a source; what was opened is closed when the context ends.

        Parameters
        ----------
        source
            An object for which `opens` returned True.
        memory_limit
            The memory that the engine may use, such as "1GB", if it can be limited.
        """
        yield cls(native_frame(source).lazy())

    # ---- queries -------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """The columns' names."""
        return list(self.frame.collect_schema())

    def read(self, frame: Frame) -> Table:
        """Read a query of the rows into memory."""
        with self.errors_named():
            return eager_table(frame.collect())

    @contextmanager
    def keep(self, frame: Frame) -> Iterator[Kept]:
        """Compute a query once, and keep the result until the context ends."""
        with self.errors_named():
            made = frame.collect()
        yield Kept(made.lazy(), len(made))

    def map_batches(self, kept: Kept, function: Callable[[Table], str], size: int) -> Iterator[str]:
        """Apply a function to every batch of at most `size` rows of a kept result."""
        made = kept.frame.collect()
        for start in range(0, len(made), size):
            yield function(eager_table(made[start : start + size]))

    def with_columns(self, columns: Sequence[nw.Expr]) -> Self:
        """Return the same log with some columns replaced by what is computed of them."""
        if not columns:
            return self
        return replace(self, frame=self.frame.with_columns(*columns), is_changed=True)

    # ---- rows in order -------------------------------------------------------------------

    def numbered(self) -> Self:
        """Return the same log with row numbers."""
        if ROW in self.names:
            raise DataError(f"the column name {ROW!r} is reserved for row numbers: rename it")
        return replace(self, frame=self.with_row_numbers())

    def with_row_numbers(self) -> Frame:
        """Return all rows with their numbers, from 0, in a column ROW; refused by default."""
        raise DataError(
            "the rows of this table have no order: name the column that orders the steps with the "
            "option time"
        )

    def row_ranges(self) -> Sequence[RowRange]:
        """Return all rows as ranges that can be queried in SQL at the same time.

        Empty if the engine does not keep the order of rows, or does not know SQL: then rows are
        sorted. Engines that return ranges also have `empty_range` and `keep_ranges`.
        """
        return ()

    def empty_range(self, names: Collection[str]) -> AbstractContextManager[Frame]:
        """Make an empty table RANGE with some columns of the log, to write queries of it."""
        raise NotImplementedError

    def keep_ranges(
        self, queries: Mapping[RowRange, str], combine: Callable[[Frame], Frame]
    ) -> AbstractContextManager[Kept]:
        """Run a query on each of the row ranges, and keep the combined answers."""
        raise NotImplementedError

    # ---- values and errors ---------------------------------------------------------------

    def as_dates(self, column: nw.Expr) -> nw.Expr:
        """Return a column of text, all of it dates, as dates."""
        return column.cast(nw.Datetime("us"))

    @property
    def paths(self) -> Sequence[str]:
        """The files that rows are read from."""
        return ()

    def errors(self) -> tuple[type[Exception], ...]:
        """Return the errors of the library that mean that rows cannot be read."""
        return (nw.exceptions.NarwhalsError,)

    def errors_named(self) -> AbstractContextManager[None]:
        """Return a context that turns errors of the library into a `DataError`."""
        return errors_named(self.errors(), self.paths)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Begin every `DataError` with the names of the files."""
        try:
            with self.errors_named():
                yield
        except DataError as error:
            if not self.paths or str(error).startswith(shown(self.paths)):
                raise
            raise DataError(f"{shown(self.paths)}: {error}") from None


# ---- errors as one sentence about the table or the file ----------------------------------


@contextmanager
def errors_named(errors: tuple[type[Exception], ...], paths: Sequence[str] = ()) -> Iterator[None]:
    """Turn errors of an engine into a `DataError` about files, or about the table."""
    try:
        yield
    except RuntimeError as error:
        if "interrupted" in str(error).lower():  # DuckDB's answer to Ctrl-C
            raise KeyboardInterrupt from None
        raise
    except errors as error:
        if type(error).__name__ == "IOException" and FOLDER in str(error):
            raise refuse_temporary_folder(error) from None
        raise (_file_error(error, paths) if paths else _table_error(error)) from None


def _table_error(error: Exception) -> DataError:
    return DataError(f"the table cannot be read: {_first_line(error)}")


def _file_error(error: Exception, paths: Sequence[str]) -> DataError:
    text = str(error)
    path = next((p for p in paths if p in text), shown(paths))
    if type(error).__name__ == "OutOfMemoryException":
        return DataError(
            f"{path}: does not fit into the memory limit: {_first_line(error)}: "
            "raise the option memory_limit, to 4GB for example"
        )
    if "utf-8" in text.lower() or "unicode" in text.lower():
        return DataError(f"{path}: not a text file in UTF-8{_at(text)}: save it as UTF-8")
    if "No magic bytes" in text:
        return DataError(f"{path}: not a Parquet file, or cut short: write it again")
    meaning = next((meant for sign, meant in MEANINGS.items() if sign in text), None)
    if meaning is not None:
        return DataError(f"{path}: {meaning}{_at(text)}")
    wrong = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
    if wrong:
        return DataError(f"{path}: expected {wrong[1]} cells, found {wrong[2]}{_at(text)}")
    return DataError(f"{path}: cannot be read: {_first_line(error)}")


def shown(paths: Sequence[str]) -> str:
    """Return how messages name files."""
    return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"


def _at(text: str) -> str:
    line = re.search(r"Line: (\d+)", text)
    return f" in line {line[1]}" if line else ""


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
