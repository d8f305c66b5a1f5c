"""Connections to DuckDB; names and values as SQL has them; columns that cannot be learned from.

Such a column is stored as a struct of one field, whose name says why it is refused and which holds
the cells as text. A table may so have columns of values of several types as long as nobody asks for
them, and `LogFormat.numbers` can still read the numbers in their text.
"""

import atexit
import errno
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, TypeVar

import narwhals as nw

from rspmn.errors import DataError
from rspmn.files import own_folder
from rspmn.memory import LIMIT

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")

#: A size: a number, and a unit of thousands (MB) or of 1024 (MiB).
SIZE = r"([0-9]+(?:\.[0-9]*)?)\s*([KMGT]?)(i?)B"

#: So many columns are asked about in one query.
AT_ONCE = 32

#: What the names of folders begin with in which DuckDB keeps what does not fit.
FOLDER = ".rspmn-log-"

#: The settings of every connection: times in one zone, and nothing printed.
SETTINGS = "SET TimeZone = 'UTC'"


@contextmanager
def connect(memory_limit: str | None) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Open DuckDB with a memory limit, in a temporary folder for what does not fit."""
    import duckdb

    with own_folder(gettempdir(), FOLDER) as folder, _opened(f"{folder}/work.duckdb") as connection:
        connection.execute(f"SET memory_limit = '{_bytes_for_duckdb(memory_limit)}B'")
        connection.execute(f"SET temp_directory = {literal(str(folder))}")
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")  # the file is deleted then
        connection.execute(SETTINGS)
        # In a notebook without ipywidgets it has no bar, and refuses to be told so.
        with suppress(duckdb.InvalidInputException):
            connection.execute("SET enable_progress_bar = false")
        yield connection


def _opened(path: str) -> "duckdb.DuckDBPyConnection":
    """Open a database of our own in the temporary folder."""
    import duckdb

    try:
        return duckdb.connect(path)
    except duckdb.IOException as error:
        raise refuse_temporary_folder(error) from None


def refuse_temporary_folder(error: Exception) -> DataError:
    """Return the error of a temporary folder that cannot be written to, or is full."""
    return DataError(
        f"{gettempdir()}: what does not fit into memory cannot be written there: "
        f"{system_error(error).strerror}: name another folder in TMPDIR, or raise memory_limit"
    )


def system_error(error: Exception) -> OSError:
    """Return the error of the system that DuckDB reports."""
    text = str(error)
    codes = (code for code in errno.errorcode if os.strerror(code) in text)
    code = next(codes, errno.EIO)
    return OSError(code, os.strerror(code))


def _bytes_for_duckdb(memory_limit: str | None) -> int:
    """Return what DuckDB may use, so that the process as a whole stays within the limit.

    What the process uses already counts, up to half of the limit.
    """
    found = re.fullmatch(SIZE, (memory_limit or f"{LIMIT}B").strip(), re.IGNORECASE)
    if found is None:
        raise DataError(f"memory_limit {memory_limit!r}: expected a size such as '1GB' or '500MB'")
    prefix, binary = found[2].upper(), found[3]
    allowed = float(found[1]) * (1024 if binary else 1000) ** " KMGT".index(prefix or " ")
    return int(allowed - min(_resident(), allowed / 2))


def _resident() -> int:
    """Return the memory that this process uses, in bytes; 0 where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


@atexit.register
def _release_types() -> None:
    """Clear the cache in which Narwhals keeps DuckDB's types.

    Otherwise they outlive DuckDB 2.0, which then reports them as leaked on standard error.
    """
    namespace = sys.modules.get("narwhals._namespace")
    cached = getattr(namespace, "_builtin_namespace", None)
    if cached is not None:
        cached.cache_clear()


def parts_of(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Divide columns into parts that one query is about: with hundreds it takes too much memory.

    >>> [len(part) for part in parts_of(range(70))]
    [32, 32, 6]
    """
    return (items[first : first + AT_ONCE] for first in range(0, len(items), AT_ONCE))


def quoted(name: str) -> str:
    """Return the name of a column as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def list_of(texts: Iterable[str]) -> str:
    """Return a list of texts as SQL has it."""
    return "[" + ", ".join(map(literal, texts)) + "]"


#: What the name of the field begins with.
REFUSED = "rspmn refuses: "


def refused_cell(text: str, reason: str) -> str:
    """Return the SQL of a cell that is refused, given the SQL of its text."""
    return f"struct_pack({quoted(REFUSED + reason)} := {text})"


def refuse_if_marked(dtype: Any) -> None:
    """Raise the error of a column, if it was stored as one that is refused."""
    reason = reason_of(dtype)
    if reason is not None:
        raise DataError(reason)


def reason_of(dtype: Any) -> str | None:
    """Return why a column is refused; None if it is not."""
    if dtype != nw.Struct:
        return None
    first: str = dtype.fields[0].name
    return first.removeprefix(REFUSED) if first.startswith(REFUSED) else None


def refused_text(name: str, dtype: Any) -> nw.Expr:
    """Return the cells of a refused column as text."""
    return nw.col(name).struct.field(dtype.fields[0].name)
