"""Counting: the distinct windows of a log, by the engine that holds its rows.

Windows are what is learned from, and there are few of them: an engine groups the pairs of rows and
counts each group, and only the groups leave it. The expression is one for all engines. What the
groups mean is read off here: values are coded, and what followed a last step is decided.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from rspmn.data.cells import Cells
from rspmn.data.episodes import Followed
from rspmn.data.sources.engine import Engine, Frame
from rspmn.data.sources.log_rows import Asked, columns_of, gone
from rspmn.data.sources.pair_codes import MARK, STATE, STEP, YES, Marks, is_key
from rspmn.data.sources.utility_bins import Moments
from rspmn.data.tables import Table, code_cells
from rspmn.data.windows import Windows, fair_endings, group_windows, time_limit_of
from rspmn.log_format import LogFormat
from rspmn.schema import Kind, Schema
from rspmn.types import Bools, Ints

#: The column of how often each group occurred.
COUNT = "count"
#: Whether a row that is not a step holds a state.
SEEN = "seen"


def grouped(pairs: Frame) -> Frame:
    """Count equal pairs: the query that is most of the work, whatever engine does it."""
    keys = [name for name in pairs.collect_schema() if is_key(name)]
    return pairs.group_by(keys).agg(nw.len().cast(nw.Int64).alias(COUNT))


@dataclass(frozen=True, eq=False)
class Lengths:
    """How many episodes ended how, and after how many steps."""

    lengths: Ints  # [n], steps
    endings: NDArray[np.int8]  # [n], a Followed
    counts: Ints  # [n], of episodes
    steps: int  # of all episodes

    @property
    def episodes(self) -> int:
        """The number of episodes."""
        return int(self.counts.sum())

    def ended_by(self, followed: Followed) -> int:
        """Return how many episodes ended so."""
        return int(self.counts[self.endings == followed].sum())


@dataclass(frozen=True)
class Endings:
    """How last steps are read: as the format says, and by facts about all episodes of a log."""

    longest: int  # steps
    time_limit: int  # steps after which an END is as good as unknown; 0: none

    @classmethod
    def found(cls, groups: Table, asked: Asked, time_limit: int | None) -> "Endings":
        """Look for the longest episodes, and whether a limit cut them."""
        marks = Marks(np.maximum(groups.cells(MARK).present.astype(np.int64), 0))
        longest = int(marks.lengths.max(initial=0))
        if time_limit is None:
            plain = cls(longest, 0)
            last = plain.of(marks, groups.cells(SEEN).present.astype(bool), asked.log)
            time_limit = time_limit_of(marks.lengths, last)
        return cls(longest, time_limit)

    def lengths(self, groups: Table, asked: Asked) -> "Lengths":
        """Return how many episodes ended how, and after how many steps."""
        marks = Marks(groups.cells(MARK).present.astype(np.int64))
        seen, counts = groups.cells(SEEN).present.astype(bool), groups.cells(COUNT).present
        last = marks.follows != STEP
        plain = Endings(self.longest, 0)
        return Lengths(
            marks.lengths[last],
            plain.of(marks, seen, asked.log)[last],
            counts[last].astype(np.int64),
            int(counts.sum()),
        )

    def of(self, marks: Marks, seen: Bools, log: LogFormat) -> NDArray[np.int8]:  # [n]
        """Return what followed steps that are the last of their episodes."""
        no_step = marks.follows == STATE
        match log.ending:
            case None:
                ended = (marks.flags == YES) | (marks.next_flags == YES)
            case "end":
                ended = np.ones(len(no_step), dtype=bool)
            case "cut":
                ended = np.zeros(len(no_step), dtype=bool)
            case "short":
                ended = marks.lengths < self.longest
            case "final_row":
                ended = no_step
        cut = np.where(no_step & seen, Followed.STATE, Followed.UNKNOWN)
        last = np.where(ended, Followed.END, cut).astype(np.int8)
        return fair_endings(marks.lengths, last, self.time_limit)


def endings_in(groups: Frame, asked: Asked) -> Frame:
    """Return the distinct marks of a log, whether a state was seen after them, and how often."""
    _, after = columns_of(asked)
    types = dict(groups.collect_schema())
    state = [~gone(types, after[name]) for name in asked.schema.information_sets[0]]
    seen = nw.any_horizontal(nw.lit(False), *state, ignore_nulls=False)
    groups = groups.select(MARK, seen.alias(SEEN), COUNT)
    return groups.group_by(MARK, SEEN).agg(nw.col(COUNT).sum().cast(nw.Int64))


@dataclass(frozen=True)
class GroupReader:
    """Reads groups of pairs, or some of them, as windows."""

    asked: Asked
    endings: Endings
    moments: Moments | None = None  # where utilities were counted together

    def __call__(self, table: Table) -> Windows:
        """Code values, say what followed, and count together what is the same then."""
        return group_windows(*self.apart(table).parts)

    def apart(self, table: Table) -> Windows:
        """Code values and say what followed; each group is a window of its own, equal or not."""
        asked, schema = self.asked, self.asked.schema
        found = Marks(table.cells(MARK).present.astype(np.int64))
        counts = table.cells(COUNT).present.astype(np.int64)
        here, after = columns_of(asked)
        columns, following = {}, {}
        rows = len(counts)
        for name in schema.variables:
            if name == schema.utility and self.moments is not None:
                columns[name] = self.moments.column_of(table)
                continue
            cells = table.cells(here[name])
            if name in after:
                cells = _both(cells, table.cells(after[name]))
            column = code_cells(cells, name, schema)
            columns[name] = column.take(np.arange(rows))
            if name in after:
                following[name] = column.take(np.arange(rows, 2 * rows))
        unseen = [following[name].missing for name in schema.information_sets[0]]
        last = self.endings.of(found, ~np.logical_and.reduce(unseen, initial=True), asked.log)
        step = Followed.TUPLE if asked.told == schema.variables else Followed.STATE
        followed = np.where(found.follows == STEP, step, last).astype(np.int8)
        nothing = np.isin(followed, (Followed.END, Followed.UNKNOWN))
        for column in following.values():
            column.data[nothing] = column.absent
        return Windows(
            schema.with_kinds({name: column.kind for name, column in columns.items()}),
            columns,
            following,
            followed,
            counts,
            np.where(found.first, counts, 0),
        )


def _both(one: Cells, other: Cells) -> Cells:
    """Return one column after the other."""
    parts = [cells.present for cells in (one, other) if len(cells.present)]
    present = np.concatenate(parts) if parts else one.present
    return Cells(present, np.concatenate([one.missing, other.missing]))


def kinds_of(
    groups: Frame, source: Engine, schema: Schema, here: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, Kind]:
    """Return the kind of every variable, as coding all of its values at once would find it."""
    types = dict(groups.collect_schema())
    found: dict[str, Kind] = dict(schema.kinds) | {schema.utility: Kind.CONTINUOUS}
    open_ones = {}
    for name in schema.variables:
        columns = [nw.col(c) for c in (here[name], after.get(name)) if c is not None]
        dtype = types[here[name]]
        if name in found:
            continue
        if dtype == nw.Boolean:
            found[name] = Kind.BOOLEAN
        elif dtype.is_float():
            odd = [(c != c.floor()) & ~c.is_null() & ~c.is_nan() for c in columns]
            open_ones[name] = nw.any_horizontal(*odd, ignore_nulls=True).any()
        elif dtype.is_numeric():
            found[name] = Kind.INTEGER
        elif source.is_text:
            words = [~c.str.to_lowercase().is_in(["true", "false", ""]) for c in columns]
            open_ones[name] = nw.any_horizontal(*words, ignore_nulls=True).any()
        else:
            found[name] = Kind.CATEGORICAL
    if not open_ones:
        return found
    asked = [expression.alias(f"k{k}") for k, expression in enumerate(open_ones.values())]
    table = source.read(groups.select(*asked))
    for k, name in enumerate(open_ones):
        told = table.cells(f"k{k}").present
        is_so = bool(len(told) and told[0])
        if types[here[name]].is_float():
            found[name] = Kind.CONTINUOUS if is_so else Kind.INTEGER
        else:
            found[name] = Kind.CATEGORICAL if is_so else Kind.BOOLEAN
    return found
