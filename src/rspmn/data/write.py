"""Logs written to CSV, TSV, Parquet or JSON lines files by DuckDB, whole or not at all.

The same log gives the same bytes.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rspmn.data.columns import Column
from rspmn.data.episodes import Episodes
from rspmn.data.sources.connect import literal, quoted, system_error
from rspmn.errors import DataError
from rspmn.files import written_whole
from rspmn.schema import Kind
from rspmn.values import Value

#: How DuckDB writes each kind of file.
FORMATS = {
    ".csv": "FORMAT csv, HEADER",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    ".parquet": "FORMAT parquet",
    ".jsonl": "FORMAT json",
}


def write_episodes(episodes: Episodes, path: str | Path, wide: bool = False) -> None:
    """Write a log, one row per step or, if wide, the paper's one row per episode.

    A long table has the columns episode, time, every variable and terminated, which `from_long`
    reads back; a state that followed a last step is a row of its own. A wide one has a block of the
    schema's variables for each step; what followed a last step is lost.
    """
    target = Path(path)
    options = FORMATS.get(target.suffix.lower())
    if options is None:
        raise DataError(f"{path}: expected a name ending in {', '.join(FORMATS)}")
    columns = _wide(episodes) if wide else _long(episodes)
    _write(columns, target, options)


def _long(episodes: Episodes) -> dict[str, Column]:
    _, _, episode, time = episodes.long_rows()
    columns = {"episode": _plain(episodes.ids[episode]), "time": _plain(time)}
    flags = Column(Kind.BOOLEAN, episodes.terminated_rows().astype(np.int8), (False, True))
    return columns | episodes.long_columns() | {"terminated": flags}


def _wide(episodes: Episodes) -> dict[str, Column]:
    longest = int(episodes.lengths.max(initial=0))
    columns = {}
    for t in range(longest):
        step = np.where(t < episodes.lengths, episodes.offsets[:-1] + t, -1)
        for name in episodes.schema.variables:
            columns[f"{name}_{t}"] = episodes.columns[name].take(step)
    return columns


def _plain(numbers: NDArray[np.generic]) -> Column:
    """Return whole numbers, or the names of episodes, as a column."""
    if numbers.dtype.kind in "iu":
        return Column(Kind.INTEGER, numbers)
    domain, codes = np.unique(numbers.astype(str), return_inverse=True)
    return Column(Kind.CATEGORICAL, codes, tuple(domain.tolist()))


def _write(columns: dict[str, Column], target: Path, options: str) -> None:
    """Write columns; codes become values in the query."""
    import duckdb

    arrays = {f"c{k}": column.data for k, column in enumerate(columns.values())}
    chosen = ", ".join(
        f"{_expression(f'c{k}', column)} AS {quoted(name)}"
        for k, (name, column) in enumerate(columns.items())
    )
    with written_whole(target, DataError) as part, duckdb.connect() as connection:
        connection.execute("SET threads = 1")  # in order, the same bytes
        connection.register("log", arrays)
        place = literal(str(part))
        try:
            connection.execute(f"COPY (SELECT {chosen} FROM log) TO {place} ({options})")
        except duckdb.IOException as error:
            raise system_error(error) from None


def _expression(name: str, column: Column) -> str:
    """Return the query of a column's values, NULL where they are missing."""
    if column.kind is Kind.CONTINUOUS:
        return f"CASE WHEN NOT isnan({name}) THEN {name} END"
    if not column.domain:
        return name
    values = ", ".join(map(_literal, column.domain))
    return f"CASE WHEN {name} >= 0 THEN [{values}][{name} + 1] END"


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    return str(value) if isinstance(value, int) else literal(str(value))
