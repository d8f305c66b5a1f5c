"""Kept results in batches: the same function on each, wherever the rows are.

On a cluster the function goes to the rows and only what it returns comes back; elsewhere batches
are read one after another.
"""

from collections.abc import Callable, Iterator
from typing import Any

import narwhals as nw

from rspmn.data.sources.materialize import PLACE, Kept
from rspmn.data.sources.open import Source, read_frame
from rspmn.data.tables import Table, eager_table


def map_batches(
    kept: Kept, source: Source, function: Callable[[Table], str], size: int
) -> Iterator[str]:
    """Return what a function says of every batch of rows."""
    frame = kept.frame
    if frame.implementation.is_spark_like():
        yield from _on_spark(nw.to_native(frame), function, size)
    elif source.is_duckdb:
        place = nw.col(PLACE)
        bounds = read_frame(frame.select(place.min().alias("a"), place.max().alias("b")))
        first, last = (int(bounds.cells(name).present[0]) for name in "ab")
        for start in range(first, last + 1, size):
            batch = source.read(frame.filter((place >= start) & (place < start + size)))
            if batch.rows:
                yield function(batch)
    else:
        native = nw.to_native(frame.collect())
        for start in range(0, kept.rows, size):
            yield function(eager_table(nw.from_native(native[start : start + size])))


def _on_spark(native: Any, function: Callable[[Table], str], size: int) -> Iterator[str]:
    """Send the function to the partitions; rows do not leave them."""

    def told(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for start in range(0, batch.num_rows, size):
                part = nw.from_native(pa.Table.from_batches([batch.slice(start, size)]))
                yield pa.RecordBatch.from_pydict({"told": [function(eager_table(part))]})

    for row in native.mapInArrow(told, "told string").toLocalIterator():
        yield row["told"]
