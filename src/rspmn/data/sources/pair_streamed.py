"""Pairing without sorting: each row is taken with the next one as they stand.

That costs far less than to sort, and is right if the rows are in order. Every pair that shows that
they are not is marked: if none is, the rows are sorted by episode and time, so that each was paired
with the row after it.

As little as can be is done for every row. Where the bounds of episodes and times are known, both
are one number, with what the row before must know, so that one difference tells what a pair is.
What it means is read off when equal pairs have been counted, of which there are few.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain

import narwhals as nw

from rspmn.data.sources.log_rows import (
    EPISODE,
    FIRST,
    FLAG,
    TIME,
    Asked,
    cells_of,
    columns_of,
    either,
    flag_of,
    hint_of,
)  # fmt: skip
from rspmn.data.sources.open import Frame, Source
from rspmn.data.sources.pair_codes import (
    ADD,
    HINT,
    NEXT_HINT,
    NO,
    UNEXPECTED,
    UNORDERED,
    Place,
    marked,
)  # fmt: skip
from rspmn.data.sources.row_ranges import PART, Part
from rspmn.data.sources.sql import literal, quoted
from rspmn.data.sources.standing import (
    APART,
    BY_STEPS,
    LAST,
    NEXT,
    REST,
    TOLD,
    WRONG,
    Row,
    Standing,
)  # fmt: skip
from rspmn.data.sources.text_codes import Codes
from rspmn.data.sources.window_groups import COUNT

#: Types of whole numbers that fit into 64 bits with a sign.
WHOLE = ("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UINTEGER", "USMALLINT", "UTINYINT")


@dataclass(frozen=True)
class Ordered:
    """Pairs of rows as they stand, and how they are counted."""

    asked: Asked
    queries: Mapping[Part, str]  # that count equal pairs of parts
    codes: Codes

    def marked(self, groups: Frame) -> Frame:
        """Return what groups of all parts mean: values, the next row's values and a mark."""
        _, after = columns_of(self.asked)
        expected, groups = nw.col("expected"), self._decoded(groups)
        groups = groups.with_columns(hint_of(groups, self.asked).alias(HINT))
        rest, apart = nw.col(REST), nw.col(REST) % BY_STEPS
        hint = nw.col(HINT)
        told = apart - APART + nw.when(hint >= ADD).then(hint - ADD + 1).otherwise(nw.lit(0))
        then = nw.when(told > 0).then(told - 1 + ADD).otherwise(nw.lit(NO))
        place = Place(
            sound=expected & (rest != WRONG) & (apart != LAST),
            ends=expected & (rest != WRONG) & (apart == LAST),
            first=nw.col(FIRST),
            count=rest // BY_STEPS,
            wrong=nw.when(expected).then(nw.lit(UNORDERED)).otherwise(nw.lit(UNEXPECTED)),
        )
        groups = groups.with_columns(then.alias(NEXT_HINT))
        return added(marked(groups, place, after, [COUNT]))

    def _decoded(self, groups: Frame) -> Frame:
        """Return groups with values for codes, and whether all of them have one."""
        native = nw.to_native(groups)
        here, after = columns_of(self.asked)
        of_row = {after[name]: here[name] for name in after}
        cells = [
            f"{self.codes.cell(row, name)} AS {name}" if row in self.codes else name
            for name in native.columns
            for row in [of_row.get(name, name)]
        ]
        codes = [f"{name} IS NOT NULL" for name in native.columns if name in self.codes]
        known = " AND ".join(codes) or "true"
        found: Frame = nw.from_native(native.select(f"{', '.join(cells)}, {known} AS expected"))
        return found


def added(groups: Frame) -> Frame:
    """Add up the counts of equal groups."""
    keys = [name for name in groups.collect_schema() if name != COUNT]
    return groups.group_by(keys).agg(nw.col(COUNT).sum().cast(nw.Int64))


def in_order(source: Source, asked: Asked) -> Iterator[Ordered]:
    """Pair rows with the next ones as they stand, and count pairs, in one way after the other.

    Files are parts that can be read at the same time, whatever they are called: each is followed
    by the first row of the next. Nothing is returned if rows cannot be told to be in order: the
    engine does not keep it, or times do not count steps.
    """
    if not source.is_duckdb or asked.log.time is None or asked.log.gaps == "allow":
        return
    if not cells_of(source.frame, asked).collect_schema()[TIME].is_integer():
        return
    rows = _Rows.of(source, asked)
    with source.errors_named():
        heads = sorted(rows.heads(source.parts()), key=_key)
        if not heads or any(head[name] is None for _, head in heads for name in (EPISODE, TIME)):
            return  # an episode or a time is missing: sorting says which
        placed = [asked.log.episode, asked.log.time]
        known = [] if source.files is None else source.files.bounds(placed)
        is_whole = rows.types[EPISODE] in WHOLE
        place = Standing.of(int(heads[0][1][TIME] or 0), known if is_whole else [])
        is_parquet = source.files is not None and source.files.is_parquet
        texts = rows.texts if is_parquet else []
        parts = [part for part, _ in heads]
        codes = Codes.at_a_glance(texts, rows.query, parts)
    thens = [head for _, head in heads[1:]]
    for found in (codes, Codes()) if codes.values else (codes,):
        counted = (rows.counted(place, found, then) for then in [*thens, None])
        yield Ordered(asked, dict(zip(parts, counted, strict=True)), found)


def _key(head: tuple[Part, Row]) -> tuple[int, str, int]:
    """Return what parts are ordered by; if it misleads, pairs show it, and rows are sorted."""
    episode, time = head[1][EPISODE] or "", int(head[1][TIME] or 0)
    is_number = re.fullmatch(r"-?\d+", episode)
    return (int(episode), "", time) if is_number else (0, episode, time)


@dataclass(frozen=True)
class _Rows:
    """What is asked of every row, as SQL has it."""

    asked: Asked
    query: str  # of a table called PART
    types: Mapping[str, str]

    @classmethod
    def of(cls, source: Source, asked: Asked) -> "_Rows":
        """Write the expression of rows as SQL, by way of an empty table like the log."""
        import duckdb

        log = nw.to_native(source.frame)
        wanted = {asked.log.episode, asked.log.time, asked.log.flag, *asked.schema.variables}
        types = zip(log.columns, log.types, strict=True)
        columns = ", ".join(f"{quoted(name)} {dtype}" for name, dtype in types if name in wanted)
        ours = source.connection
        with duckdb.connect() if ours is None else nullcontext(ours) as connection:
            connection.execute(f"CREATE OR REPLACE TABLE {PART} ({columns})")
            cells = cells_of(nw.from_native(connection.table(PART)), asked)
            told = either(cells, asked, state=flag_of(cells, asked) + 1, step=nw.lit(0))
            rows = nw.to_native(cells.with_columns(told.alias(TOLD)))
            found = dict(zip(rows.columns, map(str, rows.types), strict=True))
            return cls(asked, rows.sql_query(), found)

    @property
    def texts(self) -> list[str]:
        """The variables that are text."""
        return [n for n, dtype in self.types.items() if dtype == "VARCHAR" and n[0] == "v"]

    def heads(self, parts: Sequence[Part]) -> Iterator[tuple[Part, Row]]:
        """Return parts with their first rows, if they have any."""
        as_text = ", ".join(f"CAST({name} AS VARCHAR)" for name in self.types)
        query = f"SELECT {as_text} FROM ({self.query}) LIMIT 1"
        with ThreadPoolExecutor() as pool:
            for part, rows in zip(parts, pool.map(lambda p: p.ask(query), parts), strict=True):
                for row in rows:
                    yield part, dict(zip(self.types, row, strict=True))

    def counted(self, place: Standing, codes: Codes, then: Row | None) -> str:
        """Return a query that pairs the rows of a part, the last with a row given, and counts."""
        here, after = columns_of(self.asked)
        kept = [name for name in self.types if name in here.values() or name == FLAG]
        ends = dict.fromkeys([*kept, *place.cells], "NULL")
        if then is not None:
            types, cells = {**self.types, **place.types}, {**then, **place.cells_of(then)}
            ends = {name: _literal(cells[name], types[name]) for name in ends}
        coded = [f"{codes.code(n, n)} AS {n}" if n in codes else n for n in kept]
        placed = [f"{cell} AS {name}" for name, cell in place.cells.items()]
        rows = f"SELECT {_list(coded, placed)}, t = {place.zero} AS {FIRST} FROM ({self.query})"
        ends |= {name: codes.code(name, ends[name]) for name in codes.values}
        coming = {after[name]: here[name] for name in after} | {NEXT + n: n for n in place.cells}
        leads = [f"lead({v}, 1, {ends[v]}) OVER () AS {n}" for n, v in coming.items()]
        # Without PARTITION BY and ORDER BY this streams: nothing is sorted, nothing is kept.
        paired = f"SELECT *, {_list(leads)} FROM ({rows})"
        keys = _list(kept, after.values(), [FIRST, REST])
        pairs = f"SELECT *, CAST({place.rest} AS BIGINT) AS {REST} FROM ({paired})"
        return f"SELECT {keys}, count(*) AS {COUNT} FROM ({pairs}) GROUP BY {keys}"


def _list(*names: Iterable[str]) -> str:
    return ", ".join(chain(*names))


def _literal(value: str | None, dtype: str) -> str:
    """Return a value, which is text, as SQL has it."""
    return "NULL" if value is None else f"CAST({literal(value)} AS {dtype})"
