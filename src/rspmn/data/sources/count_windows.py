"""Windows that an engine keeps: counted there, and read as a whole or in parts."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Unpack

import narwhals as nw
import numpy as np

from rspmn.data.episodes import Episodes
from rspmn.data.sources.engine import Engine, Frame, Kept
from rspmn.data.sources.log_rows import Asked, columns_of, rows_of
from rspmn.data.sources.open import open_source
from rspmn.data.sources.pair_codes import MARK, SKIPPED, UNORDERED, Marks
from rspmn.data.sources.pair_sorted import in_time
from rspmn.data.sources.pair_streamed import marked_groups, streamed_counts
from rspmn.data.sources.pair_wide import check_block, in_blocks
from rspmn.data.sources.sample import sampled
from rspmn.data.sources.utility_bins import Moments
from rspmn.data.sources.validate import EngineRows, Validator, count_lacking
from rspmn.data.sources.window_groups import (
    COUNT,
    Endings,
    GroupReader,
    Lengths,
    endings_in,
    grouped,
    kinds_of,
)
from rspmn.data.tables import Table
from rspmn.data.windows import Successor, Windows, group_windows, successor_variables
from rspmn.errors import DataError, no_rows
from rspmn.log_format import LogOptions
from rspmn.schema import Schema, schema_of_log
from rspmn.types import Ints

#: More distinct windows than this are not read into memory unless asked for.
MAX_WINDOWS = 2_000_000


@dataclass(frozen=True, eq=False)
class StoredWindows:
    """The distinct windows of a log, counted and kept by its engine."""

    kept: Kept
    source: Engine
    reader: GroupReader
    lengths: Lengths

    def __len__(self) -> int:
        return self.kept.rows

    @property
    def schema(self) -> Schema:
        """What the columns mean."""
        return self.reader.asked.schema

    def read(self) -> Windows:
        """Read all of them into memory."""
        with self.source.named():
            return self.reader(self.source.read(self.kept.frame))

    def occurrences(self) -> tuple[Ints, Ints]:
        """Return how often windows occurred, and how many did so often."""
        groups = self.kept.frame.group_by(COUNT).agg(nw.len().alias("windows"))
        table = self.source.read(groups)
        counts, number = (table.cells(name).present.astype(np.int64) for name in (COUNT, "windows"))
        return counts, number

    def map(self, function: Callable[[Windows], str], size: int) -> Iterator[str]:
        """Return what a function says of every batch of windows, of at most so many.

        A cluster runs it where the windows are; only what it says comes back.
        """
        reader = self._told
        return self.source.map_batches(self.kept, lambda table: function(reader(table)), size)

    def sample(
        self, share: float, seed: int, function: Callable[[Windows], str], size: int
    ) -> Iterator[str]:
        """Return what a function says of a share of the steps of every batch.

        Which are taken hangs on what they are, not on how they lie in batches.
        """
        reader = self._told

        def of_table(table: Table) -> str:
            marks = table.cells(MARK).present.astype(np.int64)
            taken = sampled(reader.apart(table), share, seed, marks)
            return function(group_windows(*taken.parts))

        return self.source.map_batches(self.kept, of_table, size)

    @property
    def told_schema(self) -> Schema:
        """The schema with the kinds of all variables."""
        return self._told.asked.schema

    @cached_property
    def _told(self) -> GroupReader:
        """A reader that knows the kind of every variable: a batch may show less."""
        here, after = columns_of(self.reader.asked)
        kinds = kinds_of(self.kept.frame, self.source, self.schema, here, after)
        asked = replace(self.reader.asked, schema=self.schema.with_kinds(kinds))
        return replace(self.reader, asked=asked)


def windows(
    source: object,
    schema: Schema,
    *,
    successor: Successor = "state",
    time_limit: int | None = None,
    memory_limit: str | None = None,
    max_windows: int = MAX_WINDOWS,
    **options: Unpack[LogOptions],
) -> Windows:
    """Count the distinct windows of a log, wherever its rows are.

    Parameters
    ----------
    source
        The path of a CSV, TSV, Parquet or JSON lines file, gzipped text too, or a pattern such as
        "log/*.parquet", or a list of them; a pandas, Polars or PyArrow table; a DuckDB relation; a
        PySpark data frame; a mapping of names to arrays; `Episodes`. Files are read by DuckDB, and
        Polars, DuckDB and Spark count what they hold: only windows leave them.
    schema
        What the columns mean, and the format of the log.
    successor, time_limit
        As in `Windows.from_episodes`.
    memory_limit
        What DuckDB may take to read files, "1GB" if not given. What does not fit goes to a
        temporary folder.
    max_windows
        More windows than this are not read into memory. If they are so many because the utility is
        a measured number, those that earn about the same are counted together, with the sum of
        their utilities and squares; if they are too many all the same, they are refused.
    **options
        Fields of `LogFormat` that override the schema's: episode, time, terminated, ending, gaps,
        wide, columns.

    >>> schema = Schema([["x"], ["a"]], ["a"], "u")
    >>> log = {"episode": [1, 1, 1], "time": [2, 0, 1], "x": [0, 0, 0], "a": ["r", "l", "l"],
    ...        "u": [1.0, 0.0, 0.0]}
    >>> windows(log, schema, ending="end")
    Windows(2 distinct of 3)
    """
    if isinstance(source, Episodes):
        return Windows.from_episodes(source, successor, time_limit)
    stored = store_windows(
        source, schema, successor=successor, time_limit=time_limit, memory_limit=memory_limit,
        max_windows=max_windows, **options,
    )  # fmt: skip
    with stored as kept:
        if len(kept) > max_windows:
            raise DataError(
                f"the log has {len(kept)} distinct windows, more than {max_windows}: raise "
                "max_windows, or learn from the log itself, which needs only some of them at a time"
            )
        return kept.read()


@contextmanager
def store_windows(
    source: object,
    schema: Schema,
    *,
    successor: Successor = "state",
    time_limit: int | None = None,
    memory_limit: str | None = None,
    max_windows: int = MAX_WINDOWS,
    **options: Unpack[LogOptions],
) -> Iterator[StoredWindows]:
    """Count the distinct windows of a log and leave them where they were counted.

    For logs with more distinct windows than memory holds; `learn_rspmn` takes what it needs of
    them. The parameters are those of `windows`; more windows than `max_windows` that differ in
    nothing but a measured utility are counted together, with the moments of it.
    """
    schema = schema_of_log(schema, options)
    asked = Asked(schema, successor_variables(schema, successor))
    with open_source(source, memory_limit) as opened, ExitStack() as stack:
        with opened.named():
            asked.log.check_names(opened.names, schema.variables)
            if asked.log.wide:
                kept, found_rows = _kept_wide(opened, asked, stack)
            else:
                rows = rows_of(opened, asked)
                found_rows = EngineRows(opened, asked, partial(in_time, opened, rows, asked))
                kept = stack.enter_context(_kept_long(opened, rows, asked))
            if not kept.rows:
                raise no_rows()
            # dropped here, where there are few rows: engines move a filter before the grouping
            groups = kept.frame.filter(nw.col(MARK) != SKIPPED)
            number = opened.read(groups.select(nw.len().alias(COUNT))).cells(COUNT).present
            found = opened.read(endings_in(groups, asked))
            marks = found.cells(MARK).present.astype(np.int64)
            validator = Validator(asked.log, found_rows)
            validator.check_codes(marks)
            validator.check_flags(Marks(marks))
            validator.check_complete(count_lacking(groups, opened, asked))
            endings = Endings.found(found, asked, time_limit)
            lengths = endings.lengths(found, asked)
            kept, moments = Kept(groups, int(number[0])), None
            if kept.rows > max_windows:
                earned = columns_of(asked)[0][schema.utility]
                moments = Moments.wanted(groups, opened, earned)
            if moments is not None:
                kept = stack.enter_context(opened.keep(moments.collapsed(groups)))
        yield StoredWindows(kept, opened, GroupReader(asked, endings, moments), lengths)


def _kept_wide(source: Engine, asked: Asked, stack: ExitStack) -> tuple[Kept, EngineRows]:
    """Count the pairs of a wide table."""
    block = check_block(asked.schema, len(source.names))
    rows = EngineRows(source, asked, partial(_numbered_blocks, source, asked, block))
    return stack.enter_context(source.keep(grouped(in_blocks(source, asked, block)))), rows


@contextmanager
def _kept_long(source: Engine, rows: Frame, asked: Asked) -> Iterator[Kept]:
    """Count the pairs of a long table: as its rows stand if they are in order, else sorted."""
    queries = streamed_counts(source, asked)
    if queries:
        with source.keep_ranges(queries, partial(marked_groups, asked=asked)) as kept:
            unordered = kept.frame.filter(nw.col(MARK) == UNORDERED).head(1)
            if not source.read(unordered.select(MARK)).rows:
                yield kept
                return
    with source.keep(grouped(in_time(source, rows, asked))) as kept:
        yield kept


def _numbered_blocks(source: Engine, asked: Asked, block: Sequence[str]) -> Frame:
    return in_blocks(source.numbered(), asked, block)
