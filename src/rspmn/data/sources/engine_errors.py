"""Errors of engines as one sentence about the table or the file."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rspmn.errors import DataError

#: What DuckDB reports of rows of text, and what it means.
MEANINGS = {
    "unterminated quote": "a quote is not closed",
    "invalid state": "a quote is not closed, or lines end in different ways",
    "Maximum line size": "a line is too long",
}


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
        raise (_file_error(error, paths) if paths else _table_error(error)) from None


def _table_error(error: Exception) -> DataError:
    return DataError(f"the table cannot be read: {_first_line(error)}")


def _file_error(error: Exception, paths: Sequence[str]) -> DataError:
    text = str(error)
    path = next((p for p in paths if p in text), shown(paths))
    if type(error).__name__ == "OutOfMemoryException":
        return DataError(
            f"{path}: does not fit into the memory limit: {_first_line(error)}: "
            "give it more, memory_limit='4GB'"
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
