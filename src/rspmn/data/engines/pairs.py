"""Rows in pairs: beside each row of a log stands the one after it in its episode.

There are three ways to pair them. `in_time` lets the engine sort by episode and time: it works on
every engine and for rows in any order. `in_order` takes each row with the next one as they stand,
which costs far less, and marks every pair that shows that they do not stand in order: if none
does, the rows are sorted by episode and time, so that each was paired with the row after it. And
in the wide layout, `in_blocks`, pairs stand side by side already.

What a pair tells besides its values is one integer, its mark: whether a step or only a state
follows, what the flags say, whether it is the first step and, if it is the last, how many there
were. So a pair costs one key more, and all that can be wrong with it can be read off its mark.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from rspmn.data.engines.files import FILE, literal
from rspmn.data.engines.frames import ROW, Frame, Source, numbered
from rspmn.data.readers import ISO_DATE, refuse_time
from rspmn.errors import DataError, did_you_mean
from rspmn.schema import Schema

__all__ = [
    "Asked",
    "Marks",
    "columns_of",
    "count_where",
    "gone",
    "in_blocks",
    "in_order",
    "in_time",
    "is_key",
    "plain_column",
    "rows_of",
]

#: The columns of pairs: a mark beside v0, v1, … of the row and n0, n1, … of the one after it.
MARK = "mark"
EPISODE, TIME, HINT = "e", "t", "h"
NEXT_EPISODE, NEXT_TIME, NEXT_HINT = "ne", "nt", "nh"
SAME, FIRST, COUNT, WRONG, GONE = "same", "first", "k", "wrong", "gone"

#: What follows a row: another step, a row without decisions, no row.
STEP, STATE, NOTHING = 0, 1, 2
#: What a terminated flag says: no, yes, nothing, something that is neither.
NO, YES, UNSAID, NEITHER = 0, 1, 2, 3
#: A mark is what follows + 3 · flag + 12 · next row's flag + 48 · is first + 96 · length if last.
BY_FLAG, BY_NEXT_FLAG, BY_FIRST, BY_LENGTH = 3, 12, 48, 96
#: Marks of what must not be: a step is missing, a time stands twice, no episode or time; an empty
#: block before a full one, an empty row; an episode without a step; rows that are not in order.
GAP, TIE, EMPTY, HOLE, VOID, NO_STEP, UNORDERED = -1, -2, -3, -4, -5, -6, -7
#: The mark of a row that is not a step, but the state after the last one.
SKIPPED = -8
#: A decided row's hint is its flag; an undecided one's is more by this.
ADD = 4

Gaps = Literal["error", "allow"]


@dataclass(frozen=True)
class Asked:
    """What is asked of a log: which columns say what, and what follows a step."""

    schema: Schema
    told: tuple[str, ...]  # the successor's variables
    episode: str = "episode"
    time: str | None = "time"
    terminated: str | None = None
    gaps: Gaps = "error"

    @property
    def chosen(self) -> tuple[str, ...]:
        """What only a step has."""
        return (*self.schema.decisions, self.schema.utility)


@dataclass(frozen=True, eq=False)
class Marks:
    """Marks taken apart."""

    marks: NDArray[np.int64]  # [n], none below 0
    follows: NDArray[np.int64] = field(init=False)
    flags: NDArray[np.int64] = field(init=False)
    next_flags: NDArray[np.int64] = field(init=False)
    first: NDArray[np.bool_] = field(init=False)
    lengths: NDArray[np.int64] = field(init=False)  # steps of the episode; 0 if it goes on

    def __post_init__(self) -> None:
        marks = self.marks
        for name, by, below in (
            ("follows", 1, BY_FLAG),
            ("flags", BY_FLAG, BY_NEXT_FLAG),
            ("next_flags", BY_NEXT_FLAG, BY_FIRST),
            ("first", BY_FIRST, BY_LENGTH),
            ("lengths", BY_LENGTH, np.iinfo(np.int64).max),
        ):
            part = marks % below // by
            object.__setattr__(self, name, part == 1 if name == "first" else part)


# ---- columns -------------------------------------------------------------------------


def columns_of(asked: Asked) -> tuple[dict[str, str], dict[str, str]]:
    """Return what each variable is called in pairs, of the row and of the one after it."""
    variables = asked.schema.variables
    here = {name: f"v{k}" for k, name in enumerate(variables)}
    after = {name: f"n{k}" for k, name in enumerate(variables) if name in asked.told}
    return here, after


def is_key(name: str) -> bool:
    """Say whether a column of pairs is a value or a mark: what tells pairs apart."""
    return name == MARK or (name[0] in "vn" and name[1:].isdigit())


def rows_of(source: Source, asked: Asked) -> Frame:
    """Return the rows of a long table under their own names: e, t, f, v0, v1, …."""
    if asked.time is None:
        source = numbered(source)
    rows = _rows_of(source.frame, asked)
    if rows.collect_schema()[TIME] == nw.String:
        return _with_dates(source, rows, asked)
    return rows


def _with_dates(source: Source, rows: Frame, asked: Asked) -> Frame:
    """Return the rows with times that are text as the dates that they are."""
    odd = rows.filter(~nw.col(TIME).str.contains(f"^{ISO_DATE}")).select(TIME).head(1)
    found = source.read(odd)
    if found.rows:
        raise refuse_time(asked.time or ROW, found.cells(TIME).present.tolist()[0])
    return rows.with_columns(nw.col(TIME).cast(nw.Datetime("us")))


def _rows_of(frame: Frame, asked: Asked) -> Frame:
    types = dict(frame.collect_schema())
    here, _ = columns_of(asked)
    chosen = [
        _present(types, asked.episode, "episode column").alias(EPISODE),
        _time(types, asked.time or ROW).alias(TIME),
        *(plain_column(types, name).alias(alias) for name, alias in here.items()),
        _hint(types, asked).alias(HINT),
    ]
    return frame.select(*chosen)


def plain_column(types: dict[str, Any], name: str, what: str = "column") -> nw.Expr:
    """Return a column of values that can be compared, text for categories."""
    if name not in types:
        names = [found for found in types if found not in (FILE, ROW)]
        raise DataError(f"no {what} {name!r} in the table: {did_you_mean(name, names)}")
    if name == "*" or (name.startswith("^") and name.endswith("$")):
        raise DataError(f"column {name!r}: engines take this name for a pattern: rename it")
    found, dtype = nw.col(name), types[name]
    if dtype in (nw.Categorical, nw.Enum, nw.Unknown):  # a column of nothing has no type
        return found.cast(nw.String)
    if isinstance(dtype, nw.Decimal) or dtype == nw.Decimal:
        return found.cast(nw.Float64)
    if dtype.is_nested() or dtype in (nw.Binary, nw.Duration, nw.Time):
        raise DataError(
            f"column {name!r}: expected strings, numbers, booleans or dates, found {dtype}"
        )
    return found


def _present(types: dict[str, Any], name: str, what: str) -> nw.Expr:
    """Return a column in which everything that is empty is null."""
    found = plain_column(types, name, what)
    if types[name].is_float() or types[name] == nw.String:
        return nw.when(~gone(types, name)).then(found)
    return found


def _time(types: dict[str, Any], name: str) -> nw.Expr:
    """Return the times, whole numbers as long ones: one more must not overflow."""
    found = _present(types, name, "time column")
    if types[name] == nw.Boolean:
        raise refuse_time(name, True)
    return found.cast(nw.Int64) if types[name].is_integer() and types[name] != nw.UInt64 else found


def gone(types: dict[str, Any], name: str) -> nw.Expr:
    """Return whether a cell is empty."""
    found = plain_column(types, name)
    if types[name].is_float():
        return found.is_null() | found.is_nan()
    if types[name] in (nw.String, nw.Categorical, nw.Enum, nw.Unknown):
        return found.is_null() | (found == "")
    return found.is_null()


def count_where(told: nw.Expr) -> nw.Expr:
    """Return in how many rows something is so; not every engine adds up booleans."""
    return nw.when(told).then(nw.lit(1)).otherwise(nw.lit(0)).sum()


def _undecided(types: dict[str, Any], names: Sequence[str]) -> nw.Expr:
    """Return whether a row lacks the utility, as few do, and all decisions."""
    *decisions, utility = (gone(types, name) for name in names)
    lacking = nw.all_horizontal(*decisions, ignore_nulls=False)
    return nw.when(utility).then(lacking).otherwise(nw.lit(False))


def _flag(types: dict[str, Any], name: str | None) -> nw.Expr:
    """Return what a terminated flag says."""
    if name is None:
        return nw.lit(NO)
    found = plain_column(types, name, "terminated column")
    if types[name] == nw.Boolean:
        said = nw.when(found).then(nw.lit(YES)).otherwise(nw.lit(UNSAID))
        return nw.when(~found).then(nw.lit(NO)).otherwise(said)
    if types[name].is_numeric():
        yes, no = found == 1, found == 0
    elif types[name] == nw.String:
        yes, no = found.str.to_lowercase() == "true", found.str.to_lowercase() == "false"
    else:
        raise DataError(f"terminated column {name!r}: expected booleans, found {types[name]}")
    said = nw.when(yes).then(nw.lit(YES)).otherwise(nw.lit(NEITHER))
    said = nw.when(no).then(nw.lit(NO)).otherwise(said)
    return nw.when(gone(types, name)).then(nw.lit(UNSAID)).otherwise(said)


def _hint(types: dict[str, Any], asked: Asked) -> nw.Expr:
    """Return what the row before must know of a row, in one number: is it a step, and its flag."""
    flag = _flag(types, asked.terminated)
    return nw.when(_undecided(types, asked.chosen)).then(flag + ADD).otherwise(flag)


# ---- long tables ---------------------------------------------------------------------


def in_time(source: Source, rows: Frame, asked: Asked) -> Frame:
    """Pair the rows of each episode in the order of their times."""
    here, after = columns_of(asked)
    coming = {NEXT_TIME: TIME, NEXT_HINT: HINT} | {after[name]: here[name] for name in after}
    paired = rows.with_columns(
        nw.col(TIME).cum_count().over(EPISODE, order_by=TIME).alias(COUNT),
        *(nw.col(v).shift(-1).over(EPISODE, order_by=TIME).alias(n) for n, v in coming.items()),
    )
    time, then = nw.col(TIME), nw.col(NEXT_TIME)
    wrong = nw.when(then == time).then(nw.lit(TIE)).otherwise(nw.lit(0))
    if asked.gaps == "error" and _counts_steps(source, rows, asked):
        wrong = nw.when(then > time + 1).then(nw.lit(GAP)).otherwise(wrong)
    nowhere = nw.col(EPISODE).is_null() | time.is_null()
    place = Place(
        sound=~then.is_null() & (wrong == 0) & ~nowhere,
        ends=then.is_null() & ~nowhere,
        first=nw.col(COUNT) == 1,
        count=nw.col(COUNT),
        wrong=nw.when(nowhere).then(nw.lit(EMPTY)).otherwise(wrong),
    )
    return _marked(paired, place, after, [EPISODE, TIME, NEXT_TIME, COUNT])


def _counts_steps(source: Source, rows: Frame, asked: Asked) -> bool:
    """Say whether times count steps: whole numbers, and not the numbers of rows."""
    dtype = rows.collect_schema()[TIME]
    if asked.time is None or not dtype.is_numeric():
        return False
    if dtype.is_integer():
        return True
    time = nw.col(TIME)
    endless = count_where((time * 0).is_nan()).alias("endless")  # infinity times 0 is not a number
    fractions = count_where(time != time.floor()).alias("fractions")
    found = source.read(rows.select(endless, fractions))
    if found.cells("endless").present[0]:
        raise DataError(f"time column {asked.time!r}: expected finite numbers")
    return not found.cells("fractions").present[0]


def in_order(source: Source, asked: Asked) -> list[Frame]:
    """Pair rows with the next ones as they stand; pairs that are not in order are marked.

    Files are parts that can be read at the same time, whatever they are called: each is followed
    by the first row of the next. Empty if the rows cannot be told to be in order: the engine does
    not keep it, or times do not count steps.
    """
    if not source.is_duckdb or asked.time is None or asked.gaps == "allow":
        return []
    if not _rows_of(source.frame, asked).collect_schema()[TIME].is_integer():
        return []
    heads = []
    for part in source.parts():
        rows = nw.to_native(_rows_of(part, asked))
        as_text = ", ".join(f"CAST({name} AS VARCHAR)" for name in rows.columns)
        with source.errors_named():
            first = rows.limit(1).select(as_text).fetchall()
        if first:
            heads.append((part, dict(zip(rows.columns, first[0], strict=True)), rows.types))
    if not heads or any(head[name] is None for _, head, _ in heads for name in (EPISODE, TIME)):
        return []  # an episode or a time is missing: `in_time` says which
    heads.sort(key=lambda found: (_sortable(found[1][EPISODE]), int(found[1][TIME])))
    zero = int(heads[0][1][TIME])
    thens = [_literals(head, types) for _, head, types in heads[1:]] + [None]
    return [_in_order(p, asked, zero, then) for (p, *_), then in zip(heads, thens, strict=True)]


def _sortable(episode: str) -> tuple[int, str]:
    """Return what parts are ordered by; if it misleads, pairs show it, and rows are sorted."""
    return (int(episode), "") if re.fullmatch(r"-?\d+", episode) else (0, episode)


def _literals(row: Mapping[str, str | None], types: Sequence[Any]) -> dict[str, str]:
    """Return a row's values, which are text, as SQL has them."""
    return {
        name: "NULL" if value is None else f"CAST({literal(value)} AS {dtype})"
        for (name, value), dtype in zip(row.items(), types, strict=True)
    }


def _in_order(part: Frame, asked: Asked, zero: int, then: Mapping[str, str] | None) -> Frame:
    """Pair the rows of a part as they stand; `then` is the first row of the next part."""
    here, after = columns_of(asked)
    coming = {NEXT_EPISODE: EPISODE, NEXT_TIME: TIME, NEXT_HINT: HINT}
    coming |= {after[name]: here[name] for name in after}
    rows = _rows_of(part, asked)
    end = {} if then is None else then
    leads = ", ".join(
        f"lead({v}, 1, {end.get(v, 'NULL')}) OVER () AS {n}" for n, v in coming.items()
    )
    # Without PARTITION BY and ORDER BY this streams: nothing is sorted, nothing is kept.
    paired: Frame = nw.from_native(nw.to_native(rows).select(f"*, {leads}"))
    episode, time = nw.col(EPISODE), nw.col(TIME)
    next_episode, next_time = nw.col(NEXT_EPISODE), nw.col(NEXT_TIME)
    begins = (next_episode > episode) & (next_time == zero)
    # The last row has nothing to be compared with, but must be in an episode at a time itself.
    alone = next_episode.is_null() & (episode == episode) & (time == time)
    place = Place(
        sound=(next_episode == episode) & (next_time == time + 1),
        ends=begins | alone,
        first=time == zero,
        count=time - (zero - 1),
        wrong=nw.lit(UNORDERED),
    )
    return _marked(paired, place, after, [])


# ---- wide tables ---------------------------------------------------------------------


def in_blocks(source: Source, asked: Asked, block: Sequence[str]) -> Frame:
    """Pair the blocks of a wide table: one row per episode, a block of columns for each step."""
    here, after = columns_of(asked)
    blocks = _Blocks(source, block)
    pairs = [blocks.pair(t, here, after, asked.chosen) for t in range(blocks.steps)]
    same, first, count, wrong = map(nw.col, (SAME, FIRST, COUNT, WRONG))
    place = Place(same & (wrong == 0), ~same & (wrong == 0), first, count, wrong)
    names = [ROW, COUNT] if blocks.is_numbered else []
    return _marked(nw.concat(pairs, how="vertical"), place, after, names)


class _Blocks:
    """The blocks of a wide table, all of one variable's columns being of one type."""

    def __init__(self, source: Source, block: Sequence[str]) -> None:
        self.frame = source.frame
        self.types = dict(source.frame.collect_schema())
        self.is_numbered = ROW in self.types
        names = [name for name in source.names if name != ROW]
        self.steps = len(names) // len(block)
        self.columns = {
            name: [names[t * len(block) + k] for t in range(self.steps)]
            for k, name in enumerate(block)
        }
        self.empty = _empty_text(source, self.columns, self.types)
        self.wanted = {name: self._type(name) for name in block}

    def _type(self, name: str) -> Any:
        """Return the type that holds all of a variable's columns."""
        found = {self.types[c] for c in self.columns[name] if c not in self.empty}
        found -= {nw.Unknown()}  # a column of nothing has no type
        if len(found) <= 1:
            return next(iter(found), nw.String())
        if all(dtype.is_integer() for dtype in found):
            return nw.Int64()
        if all(dtype.is_numeric() for dtype in found):
            return nw.Float64()
        raise DataError(
            f"column {name!r}: expected values of one type, found "
            f"{', '.join(sorted(map(str, found)))} in different steps"
        )

    def cell(self, name: str, t: int) -> nw.Expr:
        """Return a variable's column in a step, empty after the last."""
        wanted = self.wanted[name]
        column = self.columns[name][t] if t < self.steps else None
        if column is None or column in self.empty:
            return nw.lit(None, wanted)
        found = plain_column(self.types, column)
        return found if self.types[column] == wanted else found.cast(wanted)

    def gone(self, name: str, t: int) -> nw.Expr:
        """Return whether a variable is missing in a step."""
        if t == self.steps or self.columns[name][t] in self.empty:
            return nw.lit(True)
        return gone(self.types, self.columns[name][t])

    def all_gone(self, names: Iterable[str], t: int) -> nw.Expr:
        """Return whether some variables are all missing in a step."""
        return nw.all_horizontal(*(self.gone(name, t) for name in names), ignore_nulls=False)

    def _hint(self, chosen: Sequence[str], t: int) -> nw.Expr:
        return nw.when(self.all_gone(chosen, t)).then(nw.lit(ADD)).otherwise(nw.lit(NO))

    def pair(
        self, t: int, here: Mapping[str, str], after: Mapping[str, str], chosen: Sequence[str]
    ) -> Frame:
        """Return each episode's step t with the step after it."""
        empty, then_empty = self.all_gone(self.columns, t), self.all_gone(self.columns, t + 1)
        paired = self.frame.select(
            *(self.cell(name, t).alias(alias) for name, alias in here.items()),
            *(self.cell(name, t + 1).alias(alias) for name, alias in after.items()),
            *([ROW] if self.is_numbered else []),
            self._hint(chosen, t).alias(HINT),
            self._hint(chosen, t + 1).alias(NEXT_HINT),
            empty.alias(GONE),
            (~then_empty).alias(SAME),
            nw.lit(t == 0).alias(FIRST),
            nw.lit(t + 1).alias(COUNT),
        )
        nothing = nw.when(nw.col(FIRST)).then(nw.lit(VOID)).otherwise(nw.lit(0))
        empty = nw.when(nw.col(SAME)).then(nw.lit(HOLE)).otherwise(nothing)
        wrong = nw.when(nw.col(GONE)).then(empty).otherwise(nw.lit(0))
        paired = paired.with_columns(wrong.alias(WRONG))
        return paired.filter(~nw.col(GONE) | (nw.col(WRONG) < 0))


def _empty_text(
    source: Source, columns: Mapping[str, Sequence[str]], types: Mapping[str, Any]
) -> set[str]:
    """Return columns of text that hold nothing, where other steps' columns hold something else.

    A text file does not say what an empty column would have held.
    """
    doubtful = [
        column
        for of_steps in columns.values()
        if len({types[c] for c in of_steps}) > 1
        for column in of_steps
        if types[column] in (nw.String, nw.Unknown)
    ]
    if not doubtful:
        return set()
    full = [count_where(~gone(dict(types), c)).alias(f"c{k}") for k, c in enumerate(doubtful)]
    counts = source.read(source.frame.select(*full))
    return {c for k, c in enumerate(doubtful) if not counts.cells(f"c{k}").present.any()}


# ---- what they share -----------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where a row stands in its episode."""

    sound: nw.Expr  # whether the row beside it is the next one of its episode
    ends: nw.Expr  # whether it is the last one
    first: nw.Expr
    count: nw.Expr  # steps of the episode up to it
    wrong: nw.Expr  # the mark of what must not be, if it is neither


def _marked(paired: Frame, place: Place, after: Mapping[str, str], also: list[str]) -> Frame:
    """Return values, the next row's values and a mark; rows that are final states are SKIPPED.

    Most rows are a step like any other: the first branch tells them, and engines do not look
    further. So what a mark is made of stands in it, and is not computed before.
    """
    values = [name for name in paired.collect_schema() if name[0] == "v"]
    hint, then = nw.col(HINT), nw.col(NEXT_HINT)
    first = nw.when(place.first).then(nw.lit(BY_FIRST)).otherwise(nw.lit(0))
    step = hint * BY_FLAG + first
    ends = step + place.count * BY_LENGTH
    lone = nw.when(place.first).then(nw.lit(NO_STEP)).otherwise(nw.lit(SKIPPED))
    last = nw.when(hint >= ADD).then(lone).otherwise(ends + NOTHING)
    mark = nw.when(place.ends).then(last).otherwise(place.wrong)
    then_state = ends + (then - ADD) * BY_NEXT_FLAG + STATE
    mark = nw.when(place.sound & (hint < ADD)).then(then_state).otherwise(mark)
    mark = nw.when(place.sound & (then < ADD) & (hint < ADD)).then(step).otherwise(mark)
    mark = nw.when(place.sound & (then < ADD) & (hint == NO)).then(first).otherwise(mark)
    return paired.select(
        *values,
        *(nw.when(place.sound).then(nw.col(name)).alias(name) for name in after.values()),
        mark.cast(nw.Int64).alias(MARK),
        *also,
    )
