"""Files of tables, read by DuckDB: out of core, with a limit on memory."""

import csv
import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rspmn.errors import DataError

if TYPE_CHECKING:
    import duckdb

__all__ = ["MEMORY_LIMIT", "LogFiles", "engine", "find_files", "name_of_file", "open_files"]

#: What DuckDB may take unless told otherwise; what does not fit goes to a temporary folder.
MEMORY_LIMIT = "1GB"

#: How DuckDB reads each kind of file, compressed ones too.
READERS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".txt": "read_csv",
    ".parquet": "read_parquet",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
    ".json": "read_json",
}

#: What a column of text may be. DuckDB would also take yes and no for booleans, and text that looks
#: like a date for one.
TYPES = ["BIGINT", "DOUBLE", "VARCHAR"]

#: The column that says which file a row is from.
FILE = "rspmn: file"

#: What may stand between the cells of a text file; the most frequent in its header does.
DELIMITERS = ",;\t|"


@dataclass(frozen=True, eq=False)
class LogFiles:
    """Files that hold one table, opened by DuckDB."""

    connection: "duckdb.DuckDBPyConnection"
    query: str  # all of them, with a column FILE
    table: "duckdb.DuckDBPyRelation"
    paths: list[str]
    is_text: bool  # types are guesses; booleans are words

    @property
    def name(self) -> str:
        """What to call them."""
        return _shown(self.paths)

    def part(self, path: str) -> "duckdb.DuckDBPyRelation":
        """Return one file's rows in their order.

        It has a connection of its own, so that several can be read at the same time.
        """
        cursor = self.connection.cursor()
        cursor.execute("SET TimeZone = 'UTC'")
        return cursor.sql(f"{self.query} WHERE {quoted(FILE)} = {literal(path)}")


@contextmanager
def engine(memory_limit: str | None) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Open DuckDB with a limit on memory, in a temporary folder for what does not fit."""
    import duckdb

    with (
        TemporaryDirectory(prefix="rspmn-") as folder,
        duckdb.connect(f"{folder}/work.duckdb") as connection,
    ):
        try:
            connection.execute(f"SET memory_limit = {literal(memory_limit or MEMORY_LIMIT)}")
        except duckdb.Error:
            raise DataError(
                f"memory_limit {memory_limit!r}: expected a size such as '1GB' or '500MB'"
            ) from None
        connection.execute(f"SET temp_directory = {literal(folder)}")
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def find_files(path: str | Path) -> list[str]:
    """Return the files that a path or a pattern names, sorted."""
    named = str(path)
    if not has_magic(named) or Path(named).exists():
        source = Path(named)
        if not source.exists():
            raise DataError(f"{path}: no such file")
        if source.is_dir():
            inside = sorted(p.suffix for p in source.iterdir() if _kind(p.name) is not None)
            hint = f": name its files, '{source}/*{inside[0]}'" if inside else ""
            raise DataError(f"{path}: a folder, not a file{hint}")
        found = [named]
    else:
        found = sorted(p for p in glob(named, recursive=True) if Path(p).is_file())  # noqa: PTH207
        if not found:
            raise DataError(f"{path}: no file has such a name")
    kinds = {_kind(name) for name in found}
    if None in kinds:
        odd = next(name for name in found if _kind(name) is None)
        raise DataError(f"{odd}: expected a name ending in {', '.join(READERS)}, .gz included")
    if len(kinds) > 1:
        raise DataError(f"{path}: files of different kinds, {', '.join(found[:3])}: name one kind")
    for name in found:
        if Path(name).stat().st_size == 0:
            raise DataError(f"{name}: the file is empty")
    return found


def open_files(path: str | Path, connection: "duckdb.DuckDBPyConnection") -> LogFiles:
    """Open the files that a path or a pattern names, as one table."""
    import duckdb

    paths = find_files(path)
    reader = _kind(paths[0]) or ""
    query = f"SELECT * FROM {reader}({_list(paths)}, filename = {literal(FILE)}{_options(paths)})"
    try:
        table = connection.sql(query)
    except duckdb.Error as error:
        raise DataError(_reason(error, paths, connection)) from None
    if reader == "read_csv":
        _check_header(table.columns, paths, connection)
    return LogFiles(connection, query, table, paths, reader == "read_csv")


@contextmanager
def name_of_file(files: LogFiles) -> Iterator[None]:
    """Turn what DuckDB says of files while it reads them into one sentence."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise DataError(
            f"{files.name}: does not fit into the memory limit: {_first_line(error)}: "
            "give it more, memory_limit='4GB'"
        ) from None
    except duckdb.Error as error:
        raise DataError(_reason(error, files.paths, files.connection)) from None


def quoted(name: str) -> str:
    """Return a name of a column as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


# ---- how each kind is read -----------------------------------------------------------


def _kind(name: str) -> str | None:
    return READERS.get(Path(Path(name).name.lower().removesuffix(".gz")).suffix)


def _options(paths: list[str]) -> str:
    # By name, so that a column has the type that holds what all files have, not the first file's.
    by_name = ", union_by_name = true" if len(paths) > 1 else ""
    if _kind(paths[0]) == "read_parquet":
        return by_name
    if _kind(paths[0]) == "read_json":
        return f", sample_size = -1{by_name}"
    types = "[" + ", ".join(map(literal, TYPES)) + "]"
    return (
        f", delim = {literal(_delimiter(paths[0]))}, header = true, sample_size = -1, "
        f"auto_type_candidates = {types}"
    )


def _header(path: str) -> str:
    """Return the first line of a text file."""
    opened: Any = gzip.open if path.lower().endswith(".gz") else open
    try:
        with opened(path, "rb") as file:
            line: bytes = file.readline()
        return line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise DataError(f"{path}: not a text file in UTF-8: save it as UTF-8") from None
    except (OSError, EOFError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None


def _check_header(
    found: list[str], paths: list[str], connection: "duckdb.DuckDBPyConnection"
) -> None:
    """Refuse a text file whose first line was not taken as its header: a row does not fit it."""
    expected = next(csv.reader([_header(paths[0])], delimiter=_delimiter(paths[0])))
    if len(found) != len(expected) + 1:  # and the column FILE
        odd = DataError(_plainly(paths, connection) or "its rows do not fit its header")
        raise DataError(_reason(odd, paths, None))


def _delimiter(path: str) -> str:
    header = _header(path)
    return max(DELIMITERS, key=lambda sign: (header.count(sign), -DELIMITERS.index(sign)))


# ---- what went wrong -----------------------------------------------------------------


def _reason(
    error: Exception, paths: list[str], connection: "duckdb.DuckDBPyConnection | None"
) -> str:
    """Say in one sentence why files cannot be read."""
    text = str(error)
    if "sniffing" in text and connection is not None:  # ask again without any guessing
        text = _plainly(paths, connection) or text
    path = next((p for p in paths if p in text), _shown(paths))
    if "utf-8" in text.lower() or "unicode" in text.lower():
        return f"{path}: not a text file in UTF-8{_at(text)}: save it as UTF-8"
    if "No magic bytes" in text:
        return f"{path}: not a Parquet file, or cut short: write it again"
    wrong = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
    if wrong:
        return f"{path}: expected {wrong[1]} cells, found {wrong[2]}{_at(text)}"
    column = re.search(r'Error when converting column "(.*?)"', text)
    value = re.search(r'Could not convert string "(.*?)" to', text)
    if column and value:
        return f"{path}: column {column[1]!r}: values of different types, {value[1]!r}{_at(text)}"
    return f"{path}: cannot be read: {_first_line(error)}"


def _plainly(paths: list[str], connection: "duckdb.DuckDBPyConnection") -> str:
    """Read text files with all types told, and return what goes wrong."""
    import duckdb

    for path in paths:
        sign = _delimiter(path)
        cells = len(_header(path).split(sign))
        columns = ", ".join(f"'c{k}': 'VARCHAR'" for k in range(cells))
        try:
            connection.sql(
                f"SELECT count(*) FROM read_csv({literal(path)}, auto_detect = false, "
                f"header = true, delim = {literal(sign)}, quote = '\"', columns = {{{columns}}})"
            ).fetchall()
        except duckdb.Error as error:
            return f"{path}: {error}"
    return ""


def _at(text: str) -> str:
    line = re.search(r"Line: (\d+)", text)
    return f" in line {line[1]}" if line else ""


def _shown(paths: list[str]) -> str:
    return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"


def _list(paths: list[str]) -> str:
    return "[" + ", ".join(map(literal, paths)) + "]"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
