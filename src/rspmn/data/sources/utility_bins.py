"""Utilities of many values: windows that differ in nothing else are counted together.

If a utility is a measured number, hardly any window occurs twice. Then windows whose utilities are
in the same bin become one, with the number of steps, the sum of their utilities and the sum of
their squares. So means are exact: no step counts as the middle of a bin.

Sums are of integers, so that they do not depend on the engine or on the order of rows. A utility is
scaled by a power of two and split into a high and a low part of 28 bits each, more than a float as
large as the largest utility has. Squares are of the distance to the lower edge of the bin, in 28
bits of its width.
"""

import math
from dataclasses import dataclass

import narwhals as nw
import numpy as np

from rspmn.data.columns import Column
from rspmn.data.sources.engine import Engine, Frame
from rspmn.data.sources.log_rows import COUNT
from rspmn.data.sources.pair_codes import is_key
from rspmn.data.tables import Table
from rspmn.errors import DataError
from rspmn.schema import Kind

#: Utilities of at most so many values stay as they are; others are put into so many bins.
BINS = 1024
#: The bits of each part of a utility, and of a square.
BITS = 28

#: Columns of a group; MOST is the largest utility, the least is in the utility's own.
BIN, HIGH, LOW, SQUARES, MOST = "bin", "high", "low", "squares", "most"


@dataclass(frozen=True)
class UtilityBins:
    """Bins of utilities, whose width is a power of two."""

    column: str  # of the utility, in pairs
    width: float
    scale: float  # of the high part

    @classmethod
    def for_groups(cls, groups: Frame, source: Engine, column: str) -> "UtilityBins | None":
        """Return bins for the utilities of some groups; None if they have few values."""
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
        if not 1e-100 < largest < 1e100:  # squares would overflow or underflow
            return None
        width = 2.0 ** math.ceil(math.log2((most - least) / BINS))
        return cls(column, width, 2.0 ** (BITS - math.ceil(math.log2(largest)) - 1))

    def binned(self, groups: Frame) -> Frame:
        """Return groups in which windows that differ only within a bin are one."""
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

    def utilities(self, table: Table) -> Column:
        """Return the mean and the variance of the utility of each group."""
        names = (COUNT, HIGH, LOW, SQUARES, BIN, self.column, MOST)
        found = (table.cells(name).present.astype(np.float64) for name in names)
        count, high, low, squares, bin_, least, most = found
        part = 2.0**BITS
        mean = (high / count + low / part / count) / self.scale
        mean = np.clip(mean, least, most)  # rounding must not lead outside
        from_border = mean - bin_ * self.width
        variance = squares / part / count * self.width**2 - from_border**2
        alike = least == most
        return Column(
            Kind.CONTINUOUS,
            np.where(alike, least, mean) + 0.0,
            (),
            np.where(alike, 0.0, np.maximum(variance, 0.0)),
        )
