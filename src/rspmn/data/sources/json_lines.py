"""JSON lines: columns of one type each, told by all of their cells.

DuckDB finds the types. Where it finds cells of several types, or floats so large that they may have
been written as integers, the cells are looked at as they are written. Text is never read as
anything else, whatever it looks like.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rspmn.data.columns import several_types
from rspmn.data.sources.connect import literal, quoted, refused_cell
from rspmn.data.sources.csv import is_identifier

if TYPE_CHECKING:
    import duckdb

#: Types that DuckDB guesses from how text looks.
AS_TEXT = ("DATE", "TIME", "TIMESTAMP", "UUID")
#: Types of integers, of which some may not fit into 64 bits.
WIDE = ("UBIGINT", "HUGEINT", "UHUGEINT")
#: The types of cells, in the words of `rspmn.data.columns`.
SORTS = {"BOOLEAN": "bool", "BIGINT": "int", "UBIGINT": "int", "DOUBLE": "float", "VARCHAR": "str"}
#: The type of a column of cells of these types.
TYPES = {
    frozenset[str](): "VARCHAR",
    frozenset({"bool"}): "BOOLEAN",
    frozenset({"int"}): "BIGINT",
    frozenset({"float"}): "DOUBLE",
    frozenset({"int", "float"}): "DOUBLE",
    frozenset({"str"}): "VARCHAR",
}


def load_json(files: str, by_name: str, name: str, connection: "duckdb.DuckDBPyConnection") -> str:
    """Load files of JSON lines into a table; return a query of it in which columns have types."""
    options = f"{by_name}, sample_size = -1, hive_partitioning = false"
    found = connection.sql(f"SELECT * FROM read_json({files}{options})")
    types = {
        column: "VARCHAR" if str(dtype).startswith(AS_TEXT) else str(dtype)
        for column, dtype in zip(found.columns, found.types, strict=True)
    }
    _load(types, files, name, connection)
    huge = _huge_numbers(types, name, connection)
    floats = [column for column in huge if types[column] == "DOUBLE"]
    if floats:
        types |= dict.fromkeys(floats, "JSON")
        _load(types, files, name, connection)
    shown = []
    for column, dtype in types.items():
        cell = quoted(column)
        if dtype == "JSON":
            cell = _typed_cell(column, name, connection)
        elif dtype in WIDE:
            cell = f"CAST({cell} AS {'VARCHAR' if column in huge else 'BIGINT'})"
        shown.append(f"{cell} AS {quoted(column)}")
    return f"SELECT {', '.join(shown)} FROM {name}"


def _load(
    types: Mapping[str, str], files: str, name: str, connection: "duckdb.DuckDBPyConnection"
) -> None:
    columns = ", ".join(f"{literal(column)}: {literal(dtype)}" for column, dtype in types.items())
    cells = f"SELECT * FROM read_json({files}, columns = {{{columns}}})"
    connection.execute(f"CREATE OR REPLACE TABLE {name} AS {cells}")


def _huge_numbers(
    types: Mapping[str, str], name: str, connection: "duckdb.DuckDBPyConnection"
) -> Sequence[str]:
    """Return the columns of numbers that do not all fit into integers of 64 bits."""
    wide = [column for column, dtype in types.items() if dtype in ("DOUBLE", *WIDE)]
    if not wide:
        return ()
    fits = "BETWEEN -9223372036854775808 AND 9223372036854775807"
    checks = ", ".join(f"bool_and({quoted(column)} {fits})" for column in wide)
    ((*found,),) = connection.execute(f"SELECT {checks} FROM {name}").fetchall()
    return [column for column, all_fit in zip(wide, found, strict=True) if all_fit is False]


def _typed_cell(column: str, name: str, connection: "duckdb.DuckDBPyConnection") -> str:
    """Return the SQL of a cell with the type of all cells; empty text is missing."""
    raw = quoted(column)
    text = f"nullif({raw}->>'$', '')"
    query = (
        f"SELECT json_type({raw}), any_value({text}), "
        f"bool_or(json_type({raw}) != 'VARCHAR' AND {is_identifier(text)}) "
        f"FROM {name} WHERE {text} IS NOT NULL GROUP BY ALL ORDER BY ALL"
    )
    found = connection.execute(query).fetchall()
    examples = {
        SORTS.get(dtype, dtype.lower()): repr(cell) if dtype == "VARCHAR" else cell
        for dtype, cell, _ in found
    }
    dtype = TYPES.get(frozenset(examples))
    if dtype is None:
        return refused_cell(text, str(several_types(column, examples)))
    if any(is_huge for *_, is_huge in found):
        return text
    return f"CAST({text} AS {dtype})"
