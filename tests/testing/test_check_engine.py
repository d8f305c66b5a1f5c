"""Conformance checks of engines: ours pass, and each broken rule is found."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import narwhals as nw
import polars as pl
import pyarrow as pa
import pytest

from conformance import check_engine
from effort import mostly_soak
from rspmn.data.sources.duckdb import DuckDB
from rspmn.data.sources.engine import ROW, Engine, Frame
from rspmn.data.sources.polars import Polars

MAKERS: dict[str, tuple[type[Engine], Callable[[Any], object]]] = {
    "mapping": (DuckDB, dict),
    "duckdb": (DuckDB, lambda table: duckdb.from_arrow(pa.table(table))),
    "polars lazy": (Polars, pl.LazyFrame),
}


@pytest.mark.parametrize("name", mostly_soak(MAKERS, ["polars lazy"]))
def test_our_engines_pass(name: str) -> None:
    check_engine(*MAKERS[name])


def test_any_lazy_frame_passes() -> None:
    """What Narwhals does alone is enough, but for row numbers and dates in text."""

    @dataclass(frozen=True, eq=False)
    class Plain(Engine):
        def as_dates(self, column: nw.Expr) -> nw.Expr:
            return column.str.to_datetime()

    check_engine(Plain, pl.LazyFrame)


class OpensAnything(Polars):
    @classmethod
    def opens(cls, source: object) -> bool:
        return True


class LosesARow(Polars):
    def read(self, frame: Frame) -> Any:
        return super().read(frame.head(9))


class LosesTheLastBatch(Polars):
    def map_batches(self, kept: Any, function: Any, size: int) -> Iterator[str]:
        *found, _ = super().map_batches(kept, function, size)
        yield from found


class NumbersBackwards(Polars):
    def with_row_numbers(self) -> Frame:
        return super().with_row_numbers().with_columns(-nw.col(ROW).cast(nw.Int64))


class SaysItsOwn(Polars):
    @property
    def paths(self) -> list[str]:
        return ["log.xyz"]


@pytest.mark.parametrize(
    ("engine", "rule"),
    [
        (OpensAnything, r"opens\(None\) is True"),
        (LosesARow, "read 9 rows, expected 10"),
        (LosesTheLastBatch, "batches of 1 hold"),
        (NumbersBackwards, "rows are numbered"),
        (SaysItsOwn, "a duplicate time: refused with .log.xyz: episode 0"),
    ],
)
def test_broken_engines_are_found(engine: type[Engine], rule: str) -> None:
    with pytest.raises(AssertionError, match=rule):
        check_engine(engine, pl.DataFrame)
