"""Why files cannot be read, in one sentence."""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rspmn.errors import DataError

#: What DuckDB says of rows of text, and what it means.
MEANT = {
    "unterminated quote": "a quote is not closed",
    "invalid state": "a quote is not closed, or lines end in different ways",
    "Maximum line size": "a line is too long",
}


@contextmanager
def errors_named(paths: Sequence[str] = ()) -> Iterator[None]:
    """Turn what engines say of files, or of a table, while they read them into one sentence."""
    try:
        yield
    except RuntimeError as error:  # what DuckDB makes of Ctrl-C
        if "interrupted" in str(error).lower():
            raise KeyboardInterrupt from None
        raise
    except _engine_errors() as error:
        raise (_of_files(error, paths) if paths else _of_table(error)) from None


def _engine_errors() -> tuple[type[Exception], ...]:
    """Return the errors of the engines that are in use."""
    import duckdb
    from narwhals.exceptions import NarwhalsError

    found: list[type[Exception]] = [duckdb.Error, NarwhalsError]
    if "polars" in sys.modules:
        found.append(sys.modules["polars"].exceptions.PolarsError)
    return tuple(found)


def _of_table(error: Exception) -> DataError:
    return DataError(f"the table cannot be read: {_first_line(error)}")


def _of_files(error: Exception, paths: Sequence[str]) -> DataError:
    import duckdb

    text = str(error)
    path = next((p for p in paths if p in text), shown(paths))
    if isinstance(error, duckdb.OutOfMemoryException):
        return DataError(
            f"{path}: does not fit into the memory limit: {_first_line(error)}: "
            "give it more, memory_limit='4GB'"
        )
    if "utf-8" in text.lower() or "unicode" in text.lower():
        return DataError(f"{path}: not a text file in UTF-8{_at(text)}: save it as UTF-8")
    if "No magic bytes" in text:
        return DataError(f"{path}: not a Parquet file, or cut short: write it again")
    meant = next((said for sign, said in MEANT.items() if sign in text), None)
    if meant is not None:
        return DataError(f"{path}: {meant}{_at(text)}")
    wrong = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
    if wrong:
        return DataError(f"{path}: expected {wrong[1]} cells, found {wrong[2]}{_at(text)}")
    return DataError(f"{path}: cannot be read: {_first_line(error)}")


def shown(paths: Sequence[str]) -> str:
    """Return what to call files."""
    return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"


def _at(text: str) -> str:
    line = re.search(r"Line: (\d+)", text)
    return f" in line {line[1]}" if line else ""


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
