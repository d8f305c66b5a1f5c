"""Polars: data frames and lazy frames, which Polars itself counts."""

from dataclasses import dataclass

import narwhals as nw

from rspmn.data.sources.engine import ROW, Engine, Frame
from rspmn.data.tables import native_frame


@dataclass(frozen=True, eq=False)
class Polars(Engine):
    """A Polars data frame, or a lazy one."""

    @classmethod
    def opens(cls, source: object) -> bool:
        """Return whether the source is a frame of Polars."""
        frame = native_frame(source)
        return frame is not None and bool(frame.implementation.is_polars())

    def with_row_numbers(self) -> Frame:
        """Return rows with their index."""
        numbered: Frame = nw.from_native(nw.to_native(self.frame).with_row_index(ROW))
        return numbered

    def as_dates(self, column: nw.Expr) -> nw.Expr:
        """Parse the dates: Polars does not cast text, nor read Z, which is universal time."""
        return column.str.replace_all(r"\s*(Z|[+]00:?00)$", "").str.to_datetime()

    def errors(self) -> tuple[type[Exception], ...]:
        """Return the errors of Polars and of Narwhals."""
        import polars as pl

        return (*super().errors(), pl.exceptions.PolarsError)
