"""What is wrong with a log, and where first.

Faults show in the groups of a log, which do not say where they are from; only if there is one are
the rows asked for it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from rspmn.data.sources.log_rows import COUNT, EPISODE, NEXT_TIME, TIME, Asked, columns_of, gone
from rspmn.data.sources.open import ROW, Frame, Source
from rspmn.data.sources.pair_codes import (
    BY_FLAG,
    BY_NEXT_FLAG,
    EMPTY,
    GAP,
    HOLE,
    MARK,
    NEITHER,
    NO_STEP,
    STEP,
    TIE,
    UNSAID,
    VOID,
    YES,
    Marks,
)  # fmt: skip
from rspmn.errors import DataError
from rspmn.types import Ints


@dataclass(frozen=True, eq=False)
class Offenders:
    """Finds the first row of a log with a fault."""

    source: Source
    asked: Asked
    pairs: Callable[[], Frame]  # with what names a row: episode, time and step, or the row's number

    def check_marks(self, marks: Ints) -> None:
        """Refuse pairs with marks of what must not be."""
        for mark in (EMPTY, VOID, HOLE, NO_STEP, TIE, GAP):
            if (marks == mark).any():
                raise DataError(self._said_of(mark))

    def _said_of(self, mark: int) -> str:
        row, _ = self._first(nw.col(MARK) == mark)
        match mark:
            case m if m == EMPTY:
                if row[EPISODE] is None:
                    return f"episode column {self.asked.log.episode!r}: a row is empty"
                return (
                    f"time column {self.asked.log.time!r}: a row of episode {row[EPISODE]} is empty"
                )
            case m if m == VOID:
                return f"row {row[ROW]} is empty: every row must be an episode"
            case m if m == HOLE:
                return f"row {row[ROW]}: step {row[COUNT] - 1} is empty, but later steps are not"
            case m if m == NO_STEP:
                name = row[EPISODE] if EPISODE in row else row[ROW]
                return f"episode {name} has no step with a decision"
            case m if m == TIE:
                return f"{self._next(row)}: time {row[TIME]} stands twice in this episode"
        return (
            f"{self._next(row)}: time goes from {_shown(row[TIME])} to {_shown(row[NEXT_TIME])}: "
            "steps are missing; if they are not, pass gaps='allow'"
        )

    @staticmethod
    def _next(row: Mapping[str, Any]) -> str:
        """Name the row after a row."""
        return f"episode {row[EPISODE]}, step {row[COUNT]}"

    def check_flags(self, marks: Marks) -> None:
        """Refuse flags that say nothing, or that an episode ended before its end."""
        name, flags = self.asked.log.flag, nw.col(MARK) % BY_NEXT_FLAG // BY_FLAG
        if (marks.flags == NEITHER).any() or (marks.next_flags == NEITHER).any():
            raise DataError(
                f"terminated column {name!r}: expected true and false, or 1 and 0, found something "
                "else"
            )
        if (marks.flags == UNSAID).any():
            _, where = self._first(flags == UNSAID)
            raise DataError(f"{where}: the terminated flag is empty")
        if ((marks.flags == YES) & (marks.follows == STEP)).any():
            _, where = self._first((flags == YES) & (nw.col(MARK) % BY_FLAG == STEP))
            raise DataError(f"{where}: terminated, but the episode goes on after it")

    def check_complete(self, groups: Frame) -> None:
        """Refuse steps that lack a decision or the utility."""
        here, _ = columns_of(self.asked)
        types = dict(groups.collect_schema())
        empty = {name: gone(types, here[name]) for name in self.asked.chosen}
        rows = [
            nw.when(fault).then(nw.col("count")).otherwise(nw.lit(0)).sum().alias(f"c{k}")
            for k, fault in enumerate(empty.values())
        ]
        found = self.source.read(groups.select(*rows))
        for k, (name, fault) in enumerate(empty.items()):
            number = found.cells(f"c{k}").present
            if len(number) and number[0] > 0:
                _, where = self._first(fault & (nw.col(MARK) >= 0))
                raise DataError(
                    f"{where}: {name!r} is missing; only state variables may be "
                    f"({int(number[0])} such rows)"
                )

    def _first(self, fault: nw.Expr) -> tuple[dict[str, Any], str]:
        """Return the first row with a fault, and what to call it."""
        pairs = self.pairs().filter(fault)
        is_long = EPISODE in pairs.collect_schema()
        order = [EPISODE, TIME] if is_long else [ROW, COUNT]
        found = self.source.read(pairs.sort(*order, nulls_last=False).head(1))
        row: dict[str, Any] = {}
        for name in found.names:
            cells = found.cells(name)
            row[name] = None if cells.missing[0] else cells.present.tolist()[0]
        if not is_long and ROW in row:
            row[ROW] -= self.source.is_duckdb  # DuckDB counts from 1
        return row, f"episode {row[EPISODE if is_long else ROW]}, step {row[COUNT] - 1}"


def _shown(time: Any) -> Any:
    """Return a whole number as one, however it is stored."""
    return int(time) if isinstance(time, float) and time == int(time) else time
