"""Text files of tables: the names and the types of their columns.

Types are not guessed from the first rows. All cells are loaded as text. A column is of integers if
every cell is an integer, of numbers if every cell is a number, of booleans if every cell is the
word true or false, and of text otherwise. Integers that do not fit into 64 bits are identifiers,
and stay text. `INTEGER` and `NUMBER` say what is a number, not DuckDB, which also takes 1_000, 0x10
and +-1 for one.
"""

import csv
import gzip
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rspmn.data.sources.connect import list_of, literal, parts_of, quoted
from rspmn.errors import DataError

if TYPE_CHECKING:
    import duckdb


#: What DuckDB says of lines that end in different ways, and of quotes that are not closed.
UNLIKE_LINE_ENDS = ("invalid state", "unterminated quote")
#: The first line is looked for in this many bytes.
FIRST_BYTES = 1 << 20
#: So many rows suggest the types of columns.
FIRST_ROWS = 20_480
#: An integer, and a number, as all of a cell but the spaces around it.
INTEGER = "[-+]?[0-9]+"
NUMBER = r"(?i)[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?|inf|infinity|nan)"
#: How most programs write cells of each type; nothing else is read by them as that type.
PLAIN = {
    "BIGINT": "-?[0-9]{1,18}",
    "DOUBLE": r"-?[0-9]{1,18}(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?",
    "BOOLEAN": "true|false|True|False|TRUE|FALSE",
}
#: Columns that say whether a cell is written in another way.
ODD = "rspmn: odd"
#: Possible delimiters; a file's is the most frequent one in its header.
DELIMITERS = ",;\t|"


def load_text(
    paths: Sequence[str], files: str, name: str, connection: "duckdb.DuckDBPyConnection"
) -> str:
    """Load text files into a table; return a query of it in which columns have types.

    The first rows suggest the types. If all cells are written plainly, the table is made with these
    types in one pass. Else all cells are loaded as text, and looked at again.
    """
    sign, names = _columns(paths)
    columns = ", ".join(f"{literal(column)}: 'VARCHAR'" for column in names)
    options = (
        f"auto_detect = false, header = true, delim = {literal(sign)}, quote = '\"', "
        f"escape = '\"', columns = {{{columns}}}, hive_partitioning = false"
    )

    def load(cells: str, limit: str = "") -> None:
        _load(paths, files, f"CREATE OR REPLACE TABLE {name} AS SELECT {cells} FROM", options,
              limit, connection)  # fmt: skip

    load("*", f" LIMIT {FIRST_ROWS}")
    types = _types(name, names, connection)
    ((rows,),) = connection.execute(f"SELECT count(*) FROM {name}").fetchall()
    if rows == FIRST_ROWS:
        for _ in range(2):  # integers, at first sight, may be numbers
            load(_plain_cells(types))
            odd = _odd_columns(name, names, connection)
            if not odd:
                return f"SELECT {', '.join(map(quoted, names))} FROM {name}"
            types |= {c: "DOUBLE" for c in odd if types[c] == "BIGINT"}
        load("*")
        types = _types(name, names, connection)
    shown = [
        f"CAST({_cell(c)} AS {dtype}) AS {c}" if dtype in PLAIN else c
        for c, dtype in zip(map(quoted, names), types.values(), strict=True)
    ]
    return f"SELECT {', '.join(shown)} FROM {name}"


def _types(
    name: str, names: Sequence[str], connection: "duckdb.DuckDBPyConnection"
) -> dict[str, str]:
    """Return the type of each column of text, by all of its cells: "" is text, "NULL" no cells."""
    tests = {"BIGINT": _whole, "DOUBLE": _number, "BOOLEAN": _boolean}
    found: list[bool | None] = []
    for part in parts_of(names):
        checks = ", ".join(test(c) for c in map(quoted, part) for test in tests.values())
        found += connection.execute(f"SELECT {checks} FROM {name}").fetchall()[0]
    types = {}
    for k, column in enumerate(names):
        passed = found[k * len(tests) : (k + 1) * len(tests)]
        dtype = next((dtype for dtype, ok in zip(tests, passed, strict=True) if ok), "")
        types[column] = "NULL" if passed[0] is None else dtype
    return types


def _plain_cells(types: Mapping[str, str]) -> str:
    """Return columns with types, and for each of them whether a cell is not written plainly."""
    cells = []
    for k, (name, dtype) in enumerate(types.items()):
        column = quoted(name)
        plain = f"regexp_full_match({column}, '{PLAIN[dtype]}')" if dtype in PLAIN else "false"
        odd = f"{column} IS NOT NULL AND NOT {plain}" if dtype else "false"
        value = f"TRY_CAST({column} AS {dtype})" if dtype in PLAIN else column
        cells += [f"{value} AS {column}", f"({odd}) AS {quoted(f'{ODD} {k}')}"]
    return ", ".join(cells)


def _odd_columns(
    name: str, names: Sequence[str], connection: "duckdb.DuckDBPyConnection"
) -> list[str]:
    """Return the columns with cells that are not written plainly."""
    checks = ", ".join(f"bool_or({quoted(f'{ODD} {k}')})" for k in range(len(names)))
    ((*found,),) = connection.execute(f"SELECT {checks} FROM {name}").fetchall()
    return [column for column, odd in zip(names, found, strict=True) if odd]


def _load(
    paths: Sequence[str],
    files: str,
    create: str,
    options: str,
    limit: str,
    connection: "duckdb.DuckDBPyConnection",
) -> None:
    """Load text files into a table; those whose lines end in different ways, from copies."""
    import duckdb

    try:
        connection.execute(f"{create} read_csv({files}, {options}){limit}")
    except duckdb.InvalidInputException as error:
        if not any(sign in str(error) for sign in UNLIKE_LINE_ENDS):
            raise
        ((folder,),) = connection.execute("SELECT current_setting('temp_directory')").fetchall()
        copies = with_one_line_end(paths, folder)
        connection.execute(f"{create} read_csv({list_of(copies)}, {options}){limit}")


def _cell(column: str) -> str:
    """Return a cell without spaces around it, null if it is empty."""
    return f"nullif(trim({column}, ' '), '')"


def _whole(column: str) -> str:
    """Return whether all cells are integers; most are written as DuckDB writes them."""
    cell, number = _cell(column), f"TRY_CAST({_cell(column)} AS BIGINT)"
    return (
        f"bool_and(CASE WHEN {cell} IS NULL THEN NULL WHEN CAST({number} AS VARCHAR) = {cell} "
        f"THEN true ELSE {number} IS NOT NULL AND regexp_full_match({cell}, '{INTEGER}') END)"
    )


def _number(column: str) -> str:
    """Return whether all cells are numbers, and none is an integer that is an identifier."""
    cell = _cell(column)
    return (
        f"bool_and(CASE WHEN {cell} IS NULL THEN NULL "
        f"ELSE regexp_full_match({cell}, '{NUMBER}') AND NOT {is_identifier(cell)} END)"
    )


def is_identifier(cell: str) -> str:
    """Return whether a cell of text is an integer that does not fit into 64 bits."""
    return (
        f"(length({cell}) > 18 AND TRY_CAST({cell} AS BIGINT) IS NULL "
        f"AND regexp_full_match({cell}, '{INTEGER}'))"
    )


def _boolean(column: str) -> str:
    """Return whether all cells are the words true and false."""
    return f"bool_and(lower({_cell(column)}) IN ('true', 'false'))"


# ---- headers -------------------------------------------------------------------------


def _columns(paths: Sequence[str]) -> tuple[str, list[str]]:
    """Return the delimiter and the names of columns, which are the same in all files."""
    header = _header(paths[0])
    if not header.strip():
        raise DataError(f"{paths[0]}: its first line is empty: expected the names of columns")
    plain = re.sub('"[^"]*"', "", header)
    sign = max(DELIMITERS, key=lambda s: (plain.count(s), -DELIMITERS.index(s)))
    found = [name.strip() for name in _split(header, sign, paths[0])]
    names = [name or f"column{k}" for k, name in enumerate(found)]
    check_names(names, f"{paths[0]}: ")
    for path in paths[1:]:
        if _header(path) != header:
            raise DataError(
                f"{path}: its header differs from that of {paths[0]}: expected {header!r}, found "
                f"{_header(path)!r}"
            )
    return sign, names


def check_names(names: Sequence[str], where: str = "") -> None:
    """Refuse names that are one column to DuckDB."""
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            other = seen[name.lower()]
            same = "are the same" if other == name else "differ in case only"
            raise DataError(f"{where}columns {other!r} and {name!r} {same}: rename one")
        seen[name.lower()] = name


def _split(header: str, sign: str, path: str) -> list[str]:
    try:
        return next(csv.reader([header], delimiter=sign, skipinitialspace=True), [])
    except csv.Error as error:
        raise DataError(
            f"{path}: its first line is not a header: {error}: save it with one line per row"
        ) from None


def _header(path: str) -> str:
    """Return the first line of a text file."""
    try:
        with open_bytes(path) as file:
            first: bytes = file.read(FIRST_BYTES)
        return re.split(rb"[\r\n]", first, maxsplit=1)[0].decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path}: not a text file in UTF-8: save it as UTF-8") from None
    except (OSError, EOFError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None


#: The number of bytes that are read at a time.
CHUNK = 1 << 20
#: A line end: CR LF, LF or CR, also with more carriage returns before the line feed.
LINE_END = re.compile(rb"\r+\n|\r|\n")


def open_bytes(path: str) -> Any:
    """Open a file, compressed or not, to read its bytes."""
    return gzip.open(path, "rb") if path.lower().endswith(".gz") else Path(path).open("rb")


def with_one_line_end(paths: Sequence[str], folder: str) -> list[str]:
    """Copy text files to a folder, every line with LF at its end; cells in quotes stay as they are.

    Returns the names of the copies.
    """
    copies = []
    for number, path in enumerate(paths):
        copy = Path(folder) / f"lines-{number}.csv"
        with open_bytes(path) as source, copy.open("wb") as target:
            target.writelines(_converted(source))
        copies.append(str(copy))
    return copies


def _converted(source: Any) -> Iterator[bytes]:
    """Return the text in chunks; a carriage return at the end of one waits for the next."""
    is_quoted, rest = False, b""
    while chunk := source.read(CHUNK):
        text = rest + chunk
        kept = len(text.rstrip(b"\r"))
        text, rest = text[:kept], text[kept:]
        parts = text.split(b'"')
        for k, part in enumerate(parts):
            if k:
                is_quoted = not is_quoted
                yield b'"'
            yield part if is_quoted else LINE_END.sub(b"\n", part)
    yield b"\n" if rest and not is_quoted else rest
