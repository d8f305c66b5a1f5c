"""Utilities of many values: windows that differ in nothing else, counted together.

Where a utility is a measured number, hardly any window comes twice. Then those that earn about the
same are one, and what travels with it is how many steps it stands for, the sum of their utilities
and of their squares: means are exact, and no step counts as the middle of a bin.

Sums are of whole numbers, so that they are the same whatever engine adds them up and in whatever
order: a utility is scaled by a power of two and cut into a high and a low part of 28 bits each,
which is more than a float as large as the largest of them has. Squares are of the distance to the
lower border of the bin, in 28 bits of its width.
"""

import math
from dataclasses import dataclass

import narwhals as nw
import numpy as np

from rspmn.data.columns import Column
from rspmn.data.sources.engine import Engine, Frame
from rspmn.data.sources.pair_codes import is_key
from rspmn.data.tables import Table
from rspmn.errors import DataError
from rspmn.schema import Kind

#: Utilities of at most so many values are left as they are; others are put into as many bins.
BINS = 1024
#: The bits of each part of a utility, and of a square.
BITS = 28

#: Columns of a group; MOST is the largest utility, the least is in the utility's own.
BIN, HIGH, LOW, SQUARES, MOST, COUNT = "bin", "high", "low", "squares", "most", "count"


@dataclass(frozen=True)
class Moments:
    """How utilities are put into bins: by a width that is a power of two."""

    column: str  # of the utility, in pairs
    width: float
    scale: float  # of the high part

    @classmethod
    def wanted(cls, groups: Frame, source: Engine, column: str) -> "Moments | None":
        """Return how to put utilities into bins; None if they have few values."""
        u = nw.col(column)
        found = source.read(
            groups.filter(~u.is_null()).select(
                u.n_unique().alias("n"), u.min().alias("a"), u.max().alias("b")
            )
        )
        number, low, high = (found.cells(name).present for name in "nab")
        if not len(low) or int(number[0]) <= BINS:
            return None
        least, most = float(low[0]), float(high[0])
        if not math.isfinite(most - least):
            raise DataError("the utility: expected finite numbers, found an infinite one")
        largest = max(abs(least), abs(most))
        if not 1e-100 < largest < 1e100:  # squares would not be numbers any more
            return None
        width = 2.0 ** math.ceil(math.log2((most - least) / BINS))
        return cls(column, width, 2.0 ** (BITS - math.ceil(math.log2(largest)) - 1))

    def collapsed(self, groups: Frame) -> Frame:
        """Count together what differs in the utility alone, and not by a bin."""
        u, count = nw.col(self.column).cast(nw.Float64), nw.col(COUNT)
        keys = [n for n in groups.collect_schema() if is_key(n) and n != self.column]
        part = 2.0**BITS
        scaled = u * self.scale
        from_border = u / self.width - (u / self.width).floor()
        away = from_border * from_border  # not a power: engines round it differently
        split = groups.with_columns(
            (u / self.width).floor().cast(nw.Int64).alias(BIN),
            scaled.floor().cast(nw.Int64).alias(HIGH),
            ((scaled - scaled.floor()) * part).floor().cast(nw.Int64).alias(LOW),
            (away * part).floor().cast(nw.Int64).alias(SQUARES),
        )
        added = [(nw.col(n) * count).sum().cast(nw.Int64).alias(n) for n in (HIGH, LOW, SQUARES)]
        least = nw.col(self.column).min().alias(self.column)
        most = nw.col(self.column).max().alias(MOST)
        return split.group_by([*keys, BIN]).agg(count.sum().cast(nw.Int64), least, most, *added)

    def column_of(self, table: Table) -> Column:
        """Return mean and variance of the utility of each group."""
        names = (COUNT, HIGH, LOW, SQUARES, BIN, self.column, MOST)
        found = (table.cells(name).present.astype(np.float64) for name in names)
        count, high, low, squares, bin_, least, most = found
        part = 2.0**BITS
        mean = (high / count + low / part / count) / self.scale
        mean = np.clip(mean, least, most)  # rounding does not lead outside
        from_border = mean - bin_ * self.width
        spread = squares / part / count * self.width**2 - from_border**2
        alike = least == most
        return Column(
            Kind.CONTINUOUS,
            np.where(alike, least, mean) + 0.0,
            (),
            np.where(alike, 0.0, np.maximum(spread, 0.0)),
        )
