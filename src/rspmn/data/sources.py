"""Files of tables, read by DuckDB into columns of numpy arrays."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rspmn.errors import DataError

__all__ = ["read_source"]

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


def read_source(path: str | Path) -> Mapping[str, Any]:
    """Read a CSV, TSV, Parquet or JSON lines file; gzipped text too."""
    import duckdb

    source = Path(path)
    if not source.exists():
        raise DataError(f"{path}: no such file")
    if source.is_dir():
        raise DataError(f"{path}: a folder, not a file")
    name = source.name.lower().removesuffix(".gz")
    reader = READERS.get(Path(name).suffix)
    if reader is None:
        raise DataError(f"{path}: expected a name ending in {', '.join(READERS)}, .gz included")
    if source.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty")
    with duckdb.connect() as connection:
        try:
            options = {"auto_type_candidates": TYPES} if reader == "read_csv" else {}
            columns = getattr(connection, reader)(str(source), **options).fetchnumpy()
        except duckdb.Error as error:
            raise DataError(f"{path}: cannot be read: {_first_line(error)}") from None
    return {name: _as_booleans(column) for name, column in columns.items()}


def _as_booleans(column: Any) -> Any:
    """Turn a text column of true and false into booleans."""
    if column.dtype.kind != "O":
        return column
    mask = np.ma.getmaskarray(column)
    values = np.asarray(column)[~mask].tolist()
    if set(map(type, values)) != {str} or not {v.lower() for v in set(values)} <= {"true", "false"}:
        return column
    booleans = np.array([str(value).lower() == "true" for value in np.asarray(column)])
    return np.ma.array(booleans, mask=mask)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
