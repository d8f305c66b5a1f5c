"""Windows counted by the engine that holds the log, and read as a whole, in batches or in part."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Unpack

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from rspmn.data.columns import Column
from rspmn.data.episodes import Episodes
from rspmn.data.sources.column_stats import infer_kinds
from rspmn.data.sources.engine import Engine, Frame, Kept
from rspmn.data.sources.log_rows import COUNT, LogQuery, coded_rows, pair_columns
from rspmn.data.sources.open import open_source
from rspmn.data.sources.pair_codes import CODE, FINAL_STATE, UNORDERED, PairCodes
from rspmn.data.sources.pair_long import coded_groups, sorted_pairs, streamed_counts
from rspmn.data.sources.pair_wide import check_block, wide_pairs
from rspmn.data.sources.text_numbers import with_plain_columns
from rspmn.data.sources.utility_bins import UtilityBins
from rspmn.data.sources.validate import EngineRows, Validator, count_lacking
from rspmn.data.sources.window_groups import (
    Endings,
    GroupReader,
    Lengths,
    ending_counts,
    pair_counts,
)
from rspmn.data.tables import Table
from rspmn.data.windows import Successor, Windows, group_windows, successor_variables
from rspmn.errors import DataError, no_rows
from rspmn.log_format import LogOptions
from rspmn.schema import Kind, Schema, schema_of_log
from rspmn.types import Array, Ints

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
        """The meaning of the columns."""
        return self.reader.asked.schema

    def read(self) -> Windows:
        """Read all windows into memory."""
        with self.source.named():
            return self.reader(self.source.read(self.kept.frame))

    def occurrences(self) -> tuple[Ints, Ints]:
        """Return the counts that windows have, and the number of windows with each."""
        groups = self.kept.frame.group_by(COUNT).agg(nw.len().alias("windows"))
        table = self.source.read(groups)
        counts, number = (table.cells(name).present.astype(np.int64) for name in (COUNT, "windows"))
        return counts, number

    def map(self, function: Callable[[Windows], str], size: int) -> Iterator[str]:
        """Apply a function to every batch of at most `size` windows.

        A cluster runs it where the windows are; only its results come back.
        """
        reader = self._typed_reader
        return self.source.map_batches(self.kept, lambda table: function(reader(table)), size)

    def sample(
        self, share: float, seed: int, function: Callable[[Windows], str], size: int
    ) -> Iterator[str]:
        """Apply a function to a sample of the steps of every batch.

        Whether a step is in the sample depends on its values, not on the batches.
        """
        reader = self._typed_reader

        def of_table(table: Table) -> str:
            codes = table.cells(CODE).present.astype(np.int64)
            taken = sampled(reader.ungrouped(table), share, seed, codes)
            return function(group_windows(taken))

        return self.source.map_batches(self.kept, of_table, size)

    @property
    def typed_schema(self) -> Schema:
        """The schema with the kinds of all variables."""
        return self._typed_reader.asked.schema

    @cached_property
    def _typed_reader(self) -> GroupReader:
        """A reader with the kind of every variable, which a batch alone may not show."""
        here, after = pair_columns(self.reader.asked)
        known = {**self.schema.kinds, self.schema.utility: Kind.CONTINUOUS}
        columns = {
            name: [names[name] for names in (here, after) if name in names]
            for name in self.schema.variables
            if name not in known
        }
        kinds = known | infer_kinds(self.source, self.kept.frame, columns)
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
    """Count the distinct windows of a log, in files, in memory or in an engine.

    Parameters
    ----------
    source
        The path of a CSV, TSV, Parquet or JSON lines file, gzipped text too, or a pattern such as
        "log/*.parquet", or a list of them; a pandas, Polars or PyArrow table; a DuckDB relation; a
        PySpark data frame; an opened `Engine`; a mapping of names to arrays; `Episodes`. Files are
        read by DuckDB. Polars, DuckDB and Spark count their own rows; only windows are transferred.
    schema
        The meaning of the columns, and the format of the log.
    successor, time_limit
        As in `Windows.from_episodes`.
    memory_limit
        The memory that DuckDB may use to read files, "1GB" by default. Beyond that, a temporary
        folder is used.
    max_windows
        The maximum number of windows in memory. If there are more because the utility is a measured
        number, windows with similar utilities are merged, with the sums of utilities and their
        squares. If there are still more, a `DataError` is raised.
    **options
        Fields of `LogFormat` that override the schema's: episode, time, terminated, ending, gaps,
        duplicates, step, numbers, wide, columns.

    Examples
    --------
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
                f"the log has {len(kept)} distinct windows, more than {max_windows}: increase "
                "max_windows, or use rspmn.store_windows, which does not keep them in memory"
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
    """Count the distinct windows of a log and keep them in the engine.

    Use it for logs whose distinct windows do not fit in memory; `learn_rspmn` reads what it needs.
    The parameters are those of `windows`. If there are more windows than `max_windows`, those that
    differ only in a measured utility are merged, with its mean and variance.
    """
    schema = schema_of_log(schema, options)
    asked = LogQuery(schema, successor_variables(schema, successor))
    with open_source(source, memory_limit) as opened, ExitStack() as stack:
        with opened.named():
            asked.log.check_names(opened.names, schema.variables)
            opened = with_plain_columns(opened, schema)
            if asked.log.wide:
                kept, found_rows = _kept_wide(opened, asked, stack)
            else:
                rows = coded_rows(opened, asked)
                found_rows = EngineRows(opened, asked, partial(sorted_pairs, opened, rows, asked))
                kept = stack.enter_context(_kept_long(opened, rows, asked))
            if not kept.rows:
                raise no_rows()
            # filtered after grouping, where there are few rows
            groups = kept.frame.filter(nw.col(CODE) != FINAL_STATE)
            number = opened.read(groups.select(nw.len().alias(COUNT))).cells(COUNT).present
            found = opened.read(ending_counts(groups, asked))
            codes = found.cells(CODE).present.astype(np.int64)
            validator = Validator(asked.log, found_rows)
            validator.check_codes(codes)
            validator.check_flags(PairCodes(codes))
            validator.check_complete(count_lacking(groups, opened, asked))
            endings = Endings.found(found, asked, time_limit)
            lengths = endings.lengths(found, asked)
            kept, bins = Kept(groups, int(number[0])), None
            if kept.rows > max_windows:
                earned = pair_columns(asked)[0][schema.utility]
                bins = UtilityBins.for_groups(groups, opened, earned)
            if bins is not None:
                kept = stack.enter_context(opened.keep(bins.binned(groups)))
        yield StoredWindows(kept, opened, GroupReader(asked, endings, bins), lengths)


def _kept_wide(source: Engine, asked: LogQuery, stack: ExitStack) -> tuple[Kept, EngineRows]:
    """Count the pairs of a wide table."""
    block = check_block(asked.schema, len(source.names))
    rows = EngineRows(source, asked, partial(_numbered_pairs, source, asked, block))
    return stack.enter_context(source.keep(pair_counts(wide_pairs(source, asked, block)))), rows


@contextmanager
def _kept_long(source: Engine, rows: Frame, asked: LogQuery) -> Iterator[Kept]:
    """Count the pairs of a long table: as stored if the rows are in order, sorted otherwise."""
    queries = streamed_counts(source, asked)
    if queries:
        with source.keep_ranges(queries, partial(coded_groups, asked=asked)) as kept:
            unordered = kept.frame.filter(nw.col(CODE) == UNORDERED).head(1)
            if not source.read(unordered.select(CODE)).rows:
                yield kept
                return
    with source.keep(pair_counts(sorted_pairs(source, rows, asked))) as kept:
        yield kept


def _numbered_pairs(source: Engine, asked: LogQuery, block: Sequence[str]) -> Frame:
    return wide_pairs(source.numbered(), asked, block)


Words = NDArray[np.uint64]


def sampled(windows: Windows, share: float, seed: int, codes: Ints | None = None) -> Windows:
    """Return the windows of a share of the steps; `codes` distinguish equal windows, [n]."""
    drawn = _uniform(windows, seed, codes)
    counts = _binomial(windows.counts, share, drawn)
    starts = np.minimum(counts, np.round(windows.starts * (counts / windows.counts)))
    kept = np.flatnonzero(counts)
    return replace(windows, counts=counts, starts=starts.astype(np.int64)).take(kept)


def _binomial(counts: Ints, share: float, drawn: Array) -> Ints:
    """Return how many of each window's steps are sampled, given a number in [0, 1) for each."""
    from scipy.stats import binom

    found = (drawn < share).astype(np.int64)
    several = counts > 1
    found[several] = binom.ppf(1 - drawn[several], counts[several], share).astype(np.int64)
    return found


def _uniform(windows: Windows, seed: int, codes: Ints | None) -> Array:  # [n]
    """Return numbers in [0, 1) that depend on the windows' values alone."""
    mixed = np.full(len(windows), seed, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in (*windows.columns.values(), *windows.next_columns.values()):
            mixed = _mix(mixed ^ _words(column))
        mixed = _mix(mixed ^ windows.followed.astype(np.uint64))
        if codes is not None:
            mixed = _mix(mixed ^ codes.astype(np.uint64))
    return (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53


def _words(column: Column) -> Words:  # [n]
    """Return a word for each value: the bits of a number, the checksum of any other value."""
    if column.kind is Kind.CONTINUOUS:
        numbers = np.where(column.missing, np.inf, column.data)  # NaN has many bit patterns
        return np.asarray(numbers.view(np.uint64))
    sums = [zlib.crc32(repr(value).encode()) for value in column.domain]
    return np.asarray(np.array([*sums, 0], dtype=np.uint64)[column.data])


def _mix(words: Words) -> Words:
    """Scatter the bits (the finalizer of splitmix64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
