"""What is wrong with a log, and where first: the checks of every reader, and what they say.

Faults show in the codes of pairs of rows, which do not say where they are from. Only if there is a
fault are the rows searched for it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import narwhals as nw
import numpy as np

from rspmn.data.sources.engine import ROW, Engine, Frame
from rspmn.data.sources.engine_columns import is_missing
from rspmn.data.sources.log_rows import (
    COUNT,
    EPISODE,
    NEXT_TIME,
    NUMBER,
    TIME,
    LogQuery,
    pair_columns,
)
from rspmn.data.sources.pair_codes import (
    BY_FLAG,
    BY_NEXT_FLAG,
    CODE,
    EMPTY_ROW,
    GAP,
    HOLE,
    INVALID,
    MISSING,
    NO_KEY,
    NO_STEP,
    STEP,
    TIE,
    YES,
    PairCodes,
)  # fmt: skip
from rspmn.errors import DataError
from rspmn.log_format import LogFormat
from rspmn.types import Ints

#: Which pairs have a fault, by their codes: an array or an expression of an engine.
Fault = Callable[[Any], Any]


@dataclass(frozen=True)
class Location:
    """Where a row is: its episode, or its number in a wide table, and its step."""

    episode: Any  # None where the cell is empty
    step: int
    time: Any = None
    next_time: Any = None  # of the row after it


class NumberedRows(Protocol):
    """Rows that can be searched."""

    def first(self, fault: Fault, lacking: str | None = None) -> Location:
        """Return the first row whose pair has a fault, and lacks a variable if one is given."""


@dataclass(frozen=True, eq=False)
class Validator:
    """Refuses logs with faults, and names the first row that has one."""

    log: LogFormat
    rows: NumberedRows

    def check_codes(self, codes: Ints) -> None:
        """Refuse pairs of rows that must not be."""
        for code in (NO_KEY, EMPTY_ROW, HOLE, NO_STEP, TIE, GAP):
            if (codes == code).any():
                raise DataError(self._text_of(code))

    def _text_of(self, code: int) -> str:
        found = self.rows.first(lambda codes: codes == code)
        if code == NO_KEY:
            if found.episode is None:
                return f"episode column {self.log.episode!r}: a row is empty"
            return f"time column {self.log.time!r}: a row of episode {found.episode} is empty"
        if code == EMPTY_ROW:
            return f"row {found.episode} is empty: every row must be an episode"
        if code == HOLE:
            return f"row {found.episode}: step {found.step} is empty, but later steps are not"
        if code == NO_STEP:
            return f"episode {found.episode} has no step with a decision"
        where = f"episode {found.episode}, step {found.step + 1}"
        time, then = self._shown(found.time), self._shown(found.next_time)
        if code == TIE:
            return (
                f"{where}: duplicate time {time} in this episode; if these rows are equal, count "
                "them once (duplicates='drop' in Python, --drop-duplicates on the command line)"
            )
        return (
            f"{where}: time goes from {time} to {then}: steps are missing; if they are not, allow "
            "gaps (gaps='allow' in Python, --gaps on the command line)"
        )

    def _shown(self, time: Any) -> Any:
        """Return a time as it was given: whole numbers as such, the beginning of a step."""
        if self.log.step is not None:
            length, is_duration = self.log.step_length
            time = float(time * length)
            if is_duration:
                return np.datetime64(int(time), "s").item()
        return int(time) if isinstance(time, float) and time == int(time) else time

    def check_flags(self, codes: PairCodes) -> None:
        """Refuse flags that say nothing, or that an episode ended before its end."""
        if (codes.flags == INVALID).any() or (codes.next_flags == INVALID).any():
            raise DataError(
                f"terminated column {self.log.flag!r}: expected true and false, or 1 and 0, found "
                "something else"
            )
        if (codes.flags == MISSING).any():
            found = self.rows.first(lambda codes: _flag_of(codes) == MISSING)
            raise DataError(f"{_named(found)}: the terminated flag is empty")
        if ((codes.flags == YES) & (codes.follows == STEP)).any():
            found = self.rows.first(
                lambda codes: (_flag_of(codes) == YES) & (codes % BY_FLAG == STEP) & (codes >= 0)
            )
            raise DataError(f"{_named(found)}: terminated, but the episode goes on after it")

    def check_complete(self, lacking: Mapping[str, int]) -> None:
        """Refuse steps that lack a decision or the utility, given how many lack each."""
        for name, number in lacking.items():
            if number:
                found = self.rows.first(lambda codes: codes >= 0, lacking=name)
                raise DataError(
                    f"{_named(found)}: {name!r} is missing; only state variables may be "
                    f"({number} such rows)"
                )


def _flag_of(codes: Any) -> Any:
    return codes % BY_NEXT_FLAG // BY_FLAG


def _named(found: Location) -> str:
    return f"episode {found.episode}, step {found.step}"


# ---- rows that an engine holds ---------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EngineRows:
    """The rows of a log that an engine holds."""

    source: Engine
    asked: LogQuery
    pairs: Callable[[], Frame]  # with what names a row: episode, time and step, or the row's number

    def first(self, fault: Fault, lacking: str | None = None) -> Location:
        """Return the first row whose pair has a fault, and lacks a variable if one is given."""
        pairs = self.pairs()
        chosen = fault(nw.col(CODE))
        if lacking is not None:
            here, _ = pair_columns(self.asked)
            chosen = chosen & is_missing(dict(pairs.collect_schema()), here[lacking])
        is_long = EPISODE in pairs.collect_schema()
        order = [EPISODE, TIME] if is_long else [ROW, NUMBER]
        first = pairs.filter(chosen).sort(*order, nulls_last=False).head(1)
        found = self.source.read(first)
        row: dict[str, Any] = {}
        for name in found.names:
            cells = found.cells(name)
            row[name] = None if cells.missing[0] else cells.present.tolist()[0]
        if is_long:
            return Location(row[EPISODE], row[NUMBER] - 1, row[TIME], row[NEXT_TIME])
        return Location(row[ROW], row[NUMBER] - 1)


def count_lacking(groups: Frame, source: Engine, asked: LogQuery) -> dict[str, int]:
    """Return how many steps lack each decision, and the utility."""
    here, _ = pair_columns(asked)
    types = dict(groups.collect_schema())
    counts = [
        nw.when(is_missing(types, here[name])).then(nw.col(COUNT)).otherwise(nw.lit(0)).sum()
        for name in asked.chosen
    ]
    found = source.read(groups.select(*(c.alias(f"c{k}") for k, c in enumerate(counts))))
    cells = (found.cells(f"c{k}").present for k in range(len(counts)))
    return {
        name: int(number[0]) if len(number) else 0
        for name, number in zip(asked.chosen, cells, strict=True)
    }
