"""Spark: tables of a cluster. Rows never leave it; see docs/spark.md."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from rspmn.data.sources.engine import Engine, Frame, Kept
from rspmn.data.tables import Table, eager_table, native_frame

#: The column of what a function returned.
ANSWER = "answer"


@dataclass(frozen=True, eq=False)
class Spark(Engine):
    """A PySpark data frame."""

    @classmethod
    def opens(cls, source: object) -> bool:
        """Return whether the source is a table of Spark, or of a library with its interface."""
        frame = native_frame(source)
        return frame is not None and bool(frame.implementation.is_spark_like())

    def read(self, frame: Frame) -> Table:
        """Collect a query as an Arrow table."""
        with self.errors_named():
            return eager_table(frame.collect("pyarrow"))

    @contextmanager
    def keep(self, frame: Frame) -> Iterator[Kept]:
        """Cache the result on the cluster."""
        cached = nw.to_native(frame).persist()
        try:
            yield Kept(nw.from_native(cached), cached.count())
        finally:
            cached.unpersist()

    def map_batches(self, kept: Kept, function: Callable[[Table], str], size: int) -> Iterator[str]:
        """Send the function to the partitions; only what it returns comes back."""

        def answers(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa

            for batch in batches:
                for start in range(0, batch.num_rows, size):
                    part = nw.from_native(pa.Table.from_batches([batch.slice(start, size)]))
                    yield pa.RecordBatch.from_pydict({ANSWER: [function(eager_table(part))]})

        mapped = nw.to_native(kept.frame).mapInArrow(answers, f"{ANSWER} string")
        for row in mapped.toLocalIterator():
            yield row[ANSWER]
