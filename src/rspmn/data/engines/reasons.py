"""Why files cannot be read, in one sentence."""

import re
from collections.abc import Sequence

from rspmn.errors import DataError

__all__ = ["reason", "shown"]


def reason(error: Exception, paths: Sequence[str]) -> DataError:
    """Return what DuckDB says of files as one sentence."""
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
