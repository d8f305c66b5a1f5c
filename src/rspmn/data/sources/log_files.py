"""Files of tables, read by DuckDB out of core, within a memory limit.

Parquet files are queried as they are. Text is loaded once, into a table on disk: parsing is most of
the cost, and a log is queried several times.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from glob import glob, has_magic
from os import cpu_count
from pathlib import Path
from typing import TYPE_CHECKING

from rspmn.data.sources.connect import SETTINGS, list_of, quoted
from rspmn.data.sources.csv import load_text
from rspmn.data.sources.engine import errors_named
from rspmn.data.sources.json_lines import load_json
from rspmn.data.tables import Paths
from rspmn.errors import DataError

if TYPE_CHECKING:
    import duckdb


#: The function of DuckDB that reads each kind of file, compressed ones too.
READERS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".txt": "read_csv",
    ".parquet": "read_parquet",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
    ".json": "read_json",
}

#: The largest number of row ranges; if there are more files, several are one range.
MAX_RANGES = 64
#: Small files are one range, of so many bytes, as long as there is a range for each processor: to
#: plan a query takes as long as to count the rows of about half of it.
RANGE_BYTES = 1_000_000


@dataclass(frozen=True, eq=False)
class LogFiles:
    """Files that hold one table, opened by DuckDB."""

    connection: "duckdb.DuckDBPyConnection"
    paths: list[str]
    reader: str
    query: str  # all rows
    options: str = ""  # of the reader

    @property
    def is_parquet(self) -> bool:
        """Whether they are Parquet files, which are queried as they are."""
        return self.reader == "read_parquet"

    @cached_property
    def table(self) -> "duckdb.DuckDBPyRelation":
        """All rows."""
        return self.connection.sql(self.query)

    def cursor(self) -> "duckdb.DuckDBPyConnection":
        """Return another connection, so that several ranges can be read at the same time."""
        cursor = self.connection.cursor()
        cursor.execute(SETTINGS)
        return cursor

    def queries(self) -> list[str]:
        """Return a query for each range of rows, in stored order."""
        if not self.is_parquet or len(self.paths) == 1:
            return [self.query]
        total = sum(Path(path).stat().st_size for path in self.paths)
        most = min(MAX_RANGES, max(cpu_count() or 1, total // RANGE_BYTES))
        size = -(-len(self.paths) // most)
        return [self._query(self.paths[k : k + size]) for k in range(0, len(self.paths), size)]

    def _query(self, paths: list[str]) -> str:
        """Return a query of some files, with columns of the types that they have in all files."""
        query = _query(self.reader, paths, self.options)
        found = self.connection.sql(query)
        if (found.columns, found.types) == (self.table.columns, self.table.types):
            return query
        cells, names = [], {name.lower() for name in found.columns}
        for name, dtype in zip(self.table.columns, self.table.types, strict=True):
            cell = quoted(name) if name.lower() in names else "NULL"
            cells.append(f"CAST({cell} AS {dtype}) AS {quoted(name)}")
        return f"SELECT {', '.join(cells)} FROM ({query})"


def find_files(path: Paths) -> list[str]:
    """Return the files that paths or patterns name, sorted; numbers in names count as such."""
    if not isinstance(path, str | Path):
        found = sorted({name for each in path for name in find_files(each)}, key=_natural_key)
        return _check_kinds(found, f"{len(found)} files")
    named = str(path)
    source = Path(named)
    exists = _exists(source)
    if not has_magic(named) or exists:
        if not exists:
            raise DataError(f"{path}: no such file")
        if source.is_dir():
            inside = sorted(p.suffix for p in source.iterdir() if _reader_of(p.name) is not None)
            hint = f": name its files, '{source}/*{inside[0]}'" if inside else ""
            raise DataError(f"{path}: a folder, not a file{hint}")
        found = [named]
    else:
        found = [p for p in glob(named, recursive=True) if Path(p).is_file()]  # noqa: PTH207
        found.sort(key=_natural_key)
        if not found:
            raise DataError(f"{path}: no file has such a name")
    return _check_kinds(found, named)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:  # too long a name, or a folder that must not be looked into
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def _check_kinds(found: list[str], named: str) -> list[str]:
    """Refuse files that are no tables, or are of different kinds."""
    kinds = {_reader_of(name) for name in found}
    if None in kinds:
        odd = next(name for name in found if _reader_of(name) is None)
        raise DataError(f"{odd}: expected a name ending in {', '.join(READERS)}, .gz included")
    if len(kinds) > 1:
        raise DataError(f"{named}: files of different kinds, {', '.join(found[:3])}: name one kind")
    for name in found:
        if any("\ud800" <= letter <= "\udfff" for letter in name):
            raise DataError(f"{name!r}: expected a name in UTF-8: rename the file")
        if not Path(name).is_file():
            raise DataError(f"{name}: expected a file; a pipe can be given as standard input")
        if Path(name).stat().st_size == 0:
            raise DataError(f"{name}: the file is empty")
    return found


def open_files(path: Paths, connection: "duckdb.DuckDBPyConnection") -> LogFiles:
    """Open the files that paths or patterns name, as one table."""
    import duckdb

    paths = find_files(path)
    reader = _reader_of(paths[0]) or ""
    options = ""
    with errors_named((duckdb.Error,), paths):
        if reader == "read_csv":
            query = load_text(paths, _files(paths), "log", connection)
        elif reader == "read_json":
            query = load_json(_files(paths), _by_name(paths), "log", connection)
        else:
            options = _folder_option(paths, connection)
            query = _query(reader, paths, options)
        files = LogFiles(connection, paths, reader, query, options)
        files.table.columns  # noqa: B018  (fails now if the files cannot be read)
    return files


def _query(reader: str, paths: list[str], options: str = "") -> str:
    return f"SELECT * FROM {reader}({_files(paths)}{_by_name(paths)}{options})"


def _by_name(paths: list[str]) -> str:
    """Return the option by which columns have the type that holds what all files have."""
    return ", union_by_name = true" if len(paths) > 1 else ""


def _files(paths: list[str]) -> str:
    """Return paths in SQL, escaped because DuckDB reads them as patterns."""
    return list_of(re.sub(r"([*?\[])", r"[\1]", path) for path in paths)


def _folder_option(paths: list[str], connection: "duckdb.DuckDBPyConnection") -> str:
    """Return the option by which folders named name=value are columns, unless files have them."""
    names = {part.split("=")[0].lower() for part in Path(paths[0]).parts[:-1] if "=" in part}
    off = ", hive_partitioning = false"
    columns = connection.sql(_query("read_parquet", paths, off)).columns if names else []
    return "" if names and not names & {name.lower() for name in columns} else off


def _reader_of(name: str) -> str | None:
    return READERS.get(Path(Path(name).name.lower().removesuffix(".gz")).suffix)


def _natural_key(path: str) -> list[tuple[int, str]]:
    """Return a sort key by which part-10 comes after part-9."""
    return [(int(p), "") if p.isdecimal() else (-1, p) for p in re.split(r"([0-9]+)", path)]
