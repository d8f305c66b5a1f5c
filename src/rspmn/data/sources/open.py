"""Any source, opened by the engine that holds its rows."""

from collections.abc import Iterator
from contextlib import contextmanager

from rspmn.data.sources.duckdb import DuckDB
from rspmn.data.sources.engine import Engine
from rspmn.data.sources.polars import Polars
from rspmn.data.sources.spark import Spark
from rspmn.data.tables import refuse_source

#: The engines, in the order in which they are asked; the last takes any other lazy frame.
ENGINES: tuple[type[Engine], ...] = (Polars, Spark, DuckDB, Engine)


@contextmanager
def open_source(source: object, memory_limit: str | None = None) -> Iterator[Engine]:
    """Open a source: a path or pattern, a data frame, a DuckDB relation, a Spark table.

    An engine that is open already stays open.

    >>> with open_source({"x": [1, 2, 2]}) as opened:
    ...     opened.names, type(opened).__name__
    (['x'], 'DuckDB')
    """
    if isinstance(source, Engine):
        yield source
        return
    for engine in ENGINES:
        if engine.opens(source):
            with engine.open(source, memory_limit) as opened:
                yield opened
            return
    raise refuse_source(source)
