"""Results that stay with their engine: tables of DuckDB's, data frames, cached tables of Spark's.

Narwhals says what to compute; where the result is put is the engines' own affair, and all that
differs between them.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from os import cpu_count
from typing import Any

import narwhals as nw

from rspmn.data.sources.open import Frame, Source
from rspmn.data.sources.row_ranges import PART, OurPart, Part, TheirPart

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
        ours = source.connection
        part: Part = TheirPart(native) if ours is None else OurPart(ours, native.sql_query())
        with _made({part: f"SELECT * FROM {PART}"}, source) as (name,):
            table = part.table(f'SELECT *, rowid AS "{PLACE}" FROM {name}')
            yield Kept(nw.from_native(table), part.ask(f"SELECT count(*) FROM {name}")[0][0])
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
    queries: Mapping[Part, str], source: Source, joined: Callable[[Frame], Frame]
) -> Iterator[Kept]:
    """Ask parts at the same time, and keep what their answers are when joined."""
    with _made(queries, source) as names:
        union = " UNION ALL ".join(f"SELECT * FROM {name}" for name in names)
        whole: Frame = nw.from_native(next(iter(queries)).table(union))
        with keep(joined(whole), source) as kept:
            yield kept


@contextmanager
def _made(queries: Mapping[Part, str], source: Source) -> Iterator[list[str]]:
    """Make tables of what parts answer, at the same time, as long as the context lasts."""
    names = [f"rspmn_kept_{next(_numbers)}" for _ in queries]
    with ExitStack() as stack:
        with source.errors_named(), ThreadPoolExecutor(cpu_count()) as pool:
            for part, name in zip(queries, names, strict=True):
                stack.callback(part.drop, name)
            list(pool.map(lambda part, name: part.make(name, queries[part]), queries, names))
        yield names
