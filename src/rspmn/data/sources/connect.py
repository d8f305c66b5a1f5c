"""Connections to DuckDB, and names and values as SQL has them."""

import atexit
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from tempfile import gettempdir
from typing import TYPE_CHECKING

from rspmn.errors import DataError
from rspmn.files import own_folder

if TYPE_CHECKING:
    import duckdb

#: The memory that DuckDB may use by default; what does not fit goes to a temporary folder.
MEMORY_LIMIT = "1GB"

#: The settings of every connection: times in one zone, and nothing printed.
SETTINGS = "SET TimeZone = 'UTC'"


@contextmanager
def connect(memory_limit: str | None) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Open DuckDB with a memory limit, in a temporary folder for what does not fit."""
    import duckdb

    with (
        own_folder(gettempdir(), ".rspmn-log-") as folder,
        duckdb.connect(f"{folder}/work.duckdb") as connection,
    ):
        try:
            connection.execute(f"SET memory_limit = {literal(memory_limit or MEMORY_LIMIT)}")
        except duckdb.Error:
            raise DataError(
                f"memory_limit {memory_limit!r}: expected a size such as '1GB' or '500MB'"
            ) from None
        connection.execute(f"SET temp_directory = {literal(str(folder))}")
        connection.execute(SETTINGS)
        # In a notebook without ipywidgets it has no bar, and refuses to be told so.
        with suppress(duckdb.InvalidInputException):
            connection.execute("SET enable_progress_bar = false")
        yield connection


@atexit.register
def _release_types() -> None:
    """Clear the cache in which Narwhals keeps DuckDB's types.

    Otherwise they outlive DuckDB 2.0, which then reports them as leaked on standard error.
    """
    namespace = sys.modules.get("narwhals._namespace")
    cached = getattr(namespace, "_builtin_namespace", None)
    if cached is not None:
        cached.cache_clear()


def quoted(name: str) -> str:
    """Return the name of a column as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def list_of(texts: Iterable[str]) -> str:
    """Return a list of texts as SQL has it."""
    return "[" + ", ".join(map(literal, texts)) + "]"
