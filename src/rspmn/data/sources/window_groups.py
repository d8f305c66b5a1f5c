"""Groups of equal pairs, and the windows that they are.

The engine counts equal pairs of rows, and only the groups leave it. Here their values are coded,
and it is decided what followed the last step of an episode.
"""

from dataclasses import dataclass

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from rspmn.data.cells import Cells
from rspmn.data.episodes import Followed
from rspmn.data.sources.engine import Frame
from rspmn.data.sources.engine_columns import is_missing
from rspmn.data.sources.log_rows import COUNT, LogQuery, pair_columns
from rspmn.data.sources.pair_codes import CODE, NOTHING, STATE, STEP, YES, PairCodes, is_key
from rspmn.data.sources.utility_bins import UtilityBins
from rspmn.data.tables import Table, code_cells
from rspmn.data.windows import Windows, fair_endings, group_windows, last_end_of, time_limit_of
from rspmn.log_format import LogFormat
from rspmn.types import Bools, Ints

#: The column of whether a row that is not a step has a state.
SEEN = "seen"


def pair_counts(pairs: Frame) -> Frame:
    """Return the number of equal pairs: the query that is most of the work."""
    keys = [name for name in pairs.collect_schema() if is_key(name)]
    return pairs.group_by(keys).agg(nw.len().cast(nw.Int64).alias(COUNT))


@dataclass(frozen=True, eq=False)
class Lengths:
    """The number of episodes by length and ending."""

    lengths: Ints  # [n], steps
    endings: NDArray[np.int8]  # [n], a Followed
    counts: Ints  # [n], of episodes
    steps: int  # of all episodes

    @property
    def episodes(self) -> int:
        """The number of episodes."""
        return int(self.counts.sum())

    def ended_by(self, followed: Followed) -> int:
        """Return the number of episodes with an ending."""
        return int(self.counts[self.endings == followed].sum())


@dataclass(frozen=True)
class Endings:
    """How last steps are read: as the format says, and by what is known of all episodes."""

    longest: int  # steps
    time_limit: int  # steps after which episodes that did not end went on; 0: none
    last_end: int = 0  # steps of the longest episodes, if all of these ended; 0: not

    @classmethod
    def found(cls, groups: Table, asked: LogQuery, time_limit: int | None) -> "Endings":
        """Find the longest episodes, and whether a time limit cut them."""
        codes = PairCodes(np.maximum(groups.cells(CODE).present.astype(np.int64), 0))
        longest = int(codes.lengths.max(initial=0))
        plain = cls(longest, 0)
        last = plain.of(codes, groups.cells(SEEN).present.astype(bool), asked.log)
        if time_limit is None:
            time_limit = time_limit_of(codes.lengths, last)
        return cls(longest, time_limit, last_end_of(codes.lengths, last))

    def lengths(self, groups: Table, asked: LogQuery) -> "Lengths":
        """Return the number of episodes by length and ending."""
        codes = PairCodes(groups.cells(CODE).present.astype(np.int64))
        seen, counts = groups.cells(SEEN).present.astype(bool), groups.cells(COUNT).present
        last = codes.follows != STEP
        plain = Endings(self.longest, 0)
        return Lengths(
            codes.lengths[last],
            plain.of(codes, seen, asked.log)[last],
            counts[last].astype(np.int64),
            int(counts.sum()),
        )

    def of(self, codes: PairCodes, seen: Bools, log: LogFormat) -> NDArray[np.int8]:  # [n]
        """Return what followed the last steps of episodes."""
        no_step = codes.follows == STATE
        match log.ending:
            case None:
                ended = (codes.flags == YES) | (codes.next_flags == YES)
            case "end":
                ended = np.ones(len(no_step), dtype=bool)
            case "cut":
                ended = np.zeros(len(no_step), dtype=bool)
            case "short":
                ended = codes.lengths < self.longest
            case "final_row":
                ended = no_step
        cut = np.where(no_step & seen, Followed.STATE, Followed.UNKNOWN)
        last = np.where(ended, Followed.END, cut).astype(np.int8)
        return fair_endings(codes.lengths, last, self.time_limit)


def ending_counts(groups: Frame, asked: LogQuery) -> Frame:
    """Return the distinct codes of a log, with whether a state followed, and their numbers."""
    _, after = pair_columns(asked)
    types = dict(groups.collect_schema())
    state = [~is_missing(types, after[name]) for name in asked.schema.information_sets[0]]
    seen = nw.any_horizontal(nw.lit(False), *state, ignore_nulls=False)
    groups = groups.select(CODE, seen.alias(SEEN), COUNT)
    return groups.group_by(CODE, SEEN).agg(nw.col(COUNT).sum().cast(nw.Int64))


@dataclass(frozen=True)
class GroupReader:
    """Reads groups of pairs, or some of them, as windows."""

    asked: LogQuery
    endings: Endings
    bins: UtilityBins | None = None  # where utilities were counted together

    def __call__(self, table: Table) -> Windows:
        """Return the windows of some groups; equal ones are counted together."""
        return group_windows(self.ungrouped(table))

    def ungrouped(self, table: Table) -> Windows:
        """Return a window for each group, equal or not."""
        asked, schema = self.asked, self.asked.schema
        found = PairCodes(table.cells(CODE).present.astype(np.int64))
        counts = table.cells(COUNT).present.astype(np.int64)
        here, after = pair_columns(asked)
        columns, following = {}, {}
        rows = len(counts)
        for name in schema.variables:
            if name == schema.utility and self.bins is not None:
                columns[name] = self.bins.utilities(table)
                continue
            cells = table.cells(here[name])
            if name in after:
                cells = _concatenated(cells, table.cells(after[name]))
            column = code_cells(cells, name, schema)
            columns[name] = column.take(np.arange(rows))
            if name in after:
                following[name] = column.take(np.arange(rows, 2 * rows))
        unseen = [following[name].missing for name in schema.information_sets[0]]
        last = self.endings.of(found, ~np.logical_and.reduce(unseen, initial=True), asked.log)
        step = Followed.TUPLE if asked.following == schema.variables else Followed.STATE
        followed = np.where(found.follows == STEP, step, last).astype(np.int8)
        nothing = (followed == Followed.END) | (followed == Followed.UNKNOWN)
        nothing |= found.follows == NOTHING
        for column in following.values():
            column.data[nothing] = column.absent
        return Windows(
            schema.with_kinds({name: column.kind for name, column in columns.items()}),
            columns,
            following,
            followed,
            counts,
            np.where(found.first, counts, 0),
            self.endings.last_end,
        )


def _concatenated(one: Cells, other: Cells) -> Cells:
    """Return two columns as one."""
    parts = [cells.present for cells in (one, other) if len(cells.present)]
    present = np.concatenate(parts) if parts else one.present
    return Cells(present, np.concatenate([one.missing, other.missing]))
