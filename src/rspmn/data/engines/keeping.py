"""Results that stay with their engine: tables of DuckDB's, data frames, cached tables of Spark's.

Narwhals says what to compute; where the result is put is the engines' own affair, and all that
differs between them.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count, cycle
from os import cpu_count
from typing import Any

import narwhals as nw

from rspmn.data.engines.frames import Frame, Source

__all__ = ["Kept", "keep", "keep_parts"]

#: The column that numbers the rows of a kept table, where the engine has one.
PLACE = "rspmn: place"

_numbers = count()


@dataclass(frozen=True, eq=False)
class Kept:
    """A result that an engine keeps."""

    frame: Frame
    rows: int


@contextmanager
def keep(frame: Frame, source: Source) -> Iterator[Kept]:
    """Compute a frame once and keep the result as long as the context lasts."""
    native: Any = nw.to_native(frame)
    if source.is_duckdb:
        with source.errors_named():
            name = _make(native, "TABLE" if source.is_ours else "TEMP TABLE")
        try:
            table = native.query("rspmn_result", f'SELECT *, rowid AS "{PLACE}" FROM {name}')
            yield Kept(nw.from_native(table), table.aggregate("count(*)").fetchall()[0][0])
        finally:
            _drop(native, name)
    elif frame.implementation.is_spark_like():
        cached = native.persist()
        try:
            yield Kept(nw.from_native(cached), cached.count())
        finally:
            cached.unpersist()
    else:
        made = frame.collect()
        yield Kept(made.lazy(), len(made))


@contextmanager
def keep_parts(
    parts: Sequence[Frame], source: Source, joined: Callable[[Frame], Frame]
) -> Iterator[Kept]:
    """Compute parts at the same time, and keep what they are when joined."""
    if len(parts) == 1:
        with keep(parts[0], source) as kept:
            yield kept
        return
    with ExitStack() as stack:
        with source.errors_named(), ThreadPoolExecutor(cpu_count()) as pool:
            names = list(pool.map(_make, (nw.to_native(part) for part in parts), cycle(["TABLE"])))
        for part, name in zip(parts, names, strict=True):
            stack.callback(_drop, nw.to_native(part), name)
        assert source.files is not None  # only files have parts
        union = " UNION ALL ".join(f"SELECT * FROM {name}" for name in names)
        whole: Frame = nw.from_native(source.files.connection.sql(union))
        with keep(joined(whole), source) as kept:
            yield kept


def _make(relation: Any, kind: str) -> str:
    """Make a table of a relation, on its connection; a temporary one is seen on no other."""
    name = f"rspmn_kept_{next(_numbers)}"
    relation.query("rspmn_result", f"CREATE {kind} {name} AS SELECT * FROM rspmn_result")
    return name


def _drop(relation: Any, name: str) -> None:
    """Drop a table; in a transaction that failed it is gone, and what failed is to be told."""
    import duckdb

    with suppress(duckdb.TransactionException):
        relation.query("rspmn_result", f"DROP TABLE {name}")
