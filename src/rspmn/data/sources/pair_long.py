"""Pairing the rows of the long layout: as they are stored or, on every engine, by sorting.

Without sorting, each row is paired with the next one in the order in which rows are stored. This
costs far less than sorting, and is right if the rows are in order. A pair is sound if its second
row is the next step of the same episode, or the first step of a later episode. If all pairs are
sound, the rows are sorted by episode and time, so each was paired with its successor. A pair that
is not sound gets the code UNORDERED, and then the rows are sorted after all.

Little is computed for every row: equal pairs are counted first, and coded afterwards.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import narwhals as nw

from rspmn.data.sources.connect import literal
from rspmn.data.sources.engine import Engine, Frame, RowRange, in_threads
from rspmn.data.sources.engine_columns import count_where, stored_columns
from rspmn.data.sources.log_rows import (
    COUNT,
    EPISODE,
    FIRST,
    FLAG,
    NEXT_TIME,
    NUMBER,
    TIME,
    LogQuery,
    flag_code,
    named_cells,
    pair_columns,
    refuse_infinite_times,
    row_code,
    state_or_step,
)  # fmt: skip
from rspmn.data.sources.pair_codes import (
    BY_FLAG,
    CODE,
    GAP,
    NEXT_ROW_CODE,
    NO,
    NO_KEY,
    NOTHING,
    ROW_CODE,
    STATE_ROW,
    TIE,
    UNORDERED,
    RowPlace,
    coded_pairs,
)  # fmt: skip

#: Columns of rows and pairs: 0 for a step and 1 + its flag for a state; how a pair goes together:
#: 0 if a step follows, k > 0 if a state follows the k-th step of an episode, -k if nothing does,
#: null if the pair is not sound.
STATE_FLAG, NEXT_STATE_FLAG, FOLLOWS = "s", "ns", "follows"
NEXT_EPISODE = "ne"
#: Longer episodes are sorted: codes hold their lengths.
MAX_STEPS = 2**40

#: A row, its cells as text.
Row = Mapping[str, str | None]


def streamed_counts(source: Engine, asked: LogQuery) -> dict[RowRange, str]:
    """Return a query for each range of rows that counts its pairs, the rows being as stored.

    Ranges are in the order of their first rows, and the last row of each is paired with the first
    one of the next. No query is returned if rows cannot be shown to be in order: the engine does
    not keep their order, or times do not count steps.
    """
    log = asked.log
    if log.time is None or log.gaps == "allow":
        return {}
    if log.duplicates == "drop" or log.step is not None:
        return {}
    if not named_cells(source.frame, asked).collect_schema()[TIME].is_integer():
        return {}
    with source.errors_named():
        ranges = source.row_ranges()
        if not ranges:
            return {}
        rows = _Rows.of(source, asked)
        heads = sorted(rows.heads(ranges), key=_key)
    if not heads or any(head[name] is None for _, head in heads for name in (EPISODE, TIME)):
        return {}  # an episode or a time is missing: sorting finds the row
    zero = int(heads[0][1][TIME] or 0)
    following = [*(head for _, head in heads[1:]), None]
    return {
        range_: rows.counts(zero, then) for (range_, _), then in zip(heads, following, strict=True)
    }


def coded_groups(groups: Frame, asked: LogQuery) -> Frame:
    """Return the counted pairs of all ranges with their codes."""
    _, after = pair_columns(asked)
    follows, then, code = nw.col(FOLLOWS), nw.col(NEXT_STATE_FLAG), nw.col(CODE)
    place = RowPlace(
        sound=follows >= 0,
        ends=follows < 0,
        first=nw.col(FIRST),
        count=follows.abs(),
        wrong=nw.lit(UNORDERED),
    )
    groups = groups.with_columns(
        row_code(groups, asked).alias(ROW_CODE),
        nw.when(then > 0).then(then - 1 + STATE_ROW).otherwise(nw.lit(NO)).alias(NEXT_ROW_CODE),
    )
    groups = coded_pairs(groups, place, [COUNT])
    is_followed = (code >= 0) & (code % BY_FLAG != NOTHING)
    groups = groups.with_columns(  # the next row of other pairs belongs to another episode
        nw.when(is_followed).then(nw.col(name)).alias(name) for name in after.values()
    )
    keys = [name for name in groups.collect_schema() if name != COUNT]
    return groups.group_by(keys).agg(nw.col(COUNT).sum().cast(nw.Int64))


def _key(head: tuple[RowRange, Row]) -> tuple[int, str, int]:
    """Return the sort key of a range; if it misleads, a pair is not sound."""
    episode, time = head[1][EPISODE] or "", int(head[1][TIME] or 0)
    is_number = re.fullmatch(r"-?\d+", episode)
    return (int(episode), "", time) if is_number else (0, episode, time)


@dataclass(frozen=True)
class _Rows:
    """The rows of a log in SQL."""

    asked: LogQuery
    query: str  # of a table called RANGE
    types: Mapping[str, str]

    @classmethod
    def of(cls, source: Engine, asked: LogQuery) -> "_Rows":
        """Write the expression of rows as SQL, by way of an empty table like the log."""
        wanted = (asked.log.episode, asked.log.time, asked.log.flag, *asked.schema.variables)
        with source.empty_range(stored_columns(source.names, wanted)) as table:
            cells = named_cells(table, asked)
            state = state_or_step(cells, asked, state=flag_code(cells, asked) + 1, step=nw.lit(0))
            rows = nw.to_native(cells.with_columns(state.alias(STATE_FLAG)))
            found = dict(zip(rows.columns, map(str, rows.types), strict=True))
            return cls(asked, rows.sql_query(), found)

    def heads(self, ranges: Sequence[RowRange]) -> Iterator[tuple[RowRange, Row]]:
        """Return the ranges that have rows, with their first rows."""
        as_text = ", ".join(f"CAST({name} AS VARCHAR)" for name in self.types)
        query = f"SELECT {as_text} FROM ({self.query}) LIMIT 1"
        for range_, rows in zip(ranges, in_threads(ranges, lambda r: r.ask(query)), strict=True):
            for row in rows:
                yield range_, dict(zip(self.types, row, strict=True))

    def counts(self, zero: int, then: Row | None) -> str:
        """Return a query that pairs the rows of a range and counts equal pairs.

        The last row is paired with `then`; episodes begin at time `zero`.
        """
        here, after = pair_columns(self.asked)
        coming = {NEXT_EPISODE: EPISODE, NEXT_TIME: TIME, NEXT_STATE_FLAG: STATE_FLAG}
        coming |= {after[name]: here[name] for name in after}
        # Without PARTITION BY and ORDER BY this streams: nothing is sorted, nothing is kept.
        leads = [
            f"lead({column}, 1, {self._literal(then, column)}) OVER () AS {name}"
            for name, column in coming.items()
        ]
        flags = [FLAG] if FLAG in self.types else []
        keys = ", ".join([*here.values(), *flags, *after.values(), NEXT_STATE_FLAG, FIRST, FOLLOWS])
        return (
            f"SELECT {keys}, count(*) AS {COUNT} FROM (SELECT *, {TIME} = {zero} AS {FIRST}, "
            f"{_follows(zero)} AS {FOLLOWS} FROM (SELECT *, {', '.join(leads)} "
            f"FROM ({self.query}))) GROUP BY {keys}"
        )

    def _literal(self, row: Row | None, name: str) -> str:
        """Return the cell of a row as SQL."""
        value = None if row is None else row[name]
        return "NULL" if value is None else f"CAST({literal(value)} AS {self.types[name]})"


def _follows(zero: int) -> str:
    """Return the SQL of FOLLOWS; most rows are steps followed by steps, the first case."""
    sound = f"{NEXT_EPISODE} = {EPISODE} AND {NEXT_TIME} = {TIME} + 1"
    begins = f"{NEXT_EPISODE} > {EPISODE} AND {NEXT_TIME} = {zero}"
    is_last = f"{NEXT_EPISODE} IS NULL AND {EPISODE} IS NOT NULL"
    is_short = f"{TIME} BETWEEN {zero} AND {zero + MAX_STEPS}"  # null if the time is missing
    steps = f"CAST({TIME} - {zero - 1} AS BIGINT)"
    return (
        f"CASE WHEN {sound} AND {NEXT_STATE_FLAG} = 0 THEN 0 WHEN {sound} AND {is_short} "
        f"THEN {steps} WHEN (({begins}) OR ({is_last})) AND {is_short} THEN -{steps} END"
    )


def sorted_pairs(source: Engine, rows: Frame, asked: LogQuery) -> Frame:
    """Pair the rows of each episode in the order of their times."""
    here, after = pair_columns(asked)
    coming = {NEXT_TIME: TIME, NEXT_ROW_CODE: ROW_CODE} | {
        after[name]: here[name] for name in after
    }
    paired = rows.with_columns(
        nw.col(TIME).cum_count().over(EPISODE, order_by=TIME).alias(NUMBER),
        *(nw.col(v).shift(-1).over(EPISODE, order_by=TIME).alias(n) for n, v in coming.items()),
    )
    time, then = nw.col(TIME), nw.col(NEXT_TIME)
    wrong = nw.when(then == time).then(nw.lit(TIE)).otherwise(nw.lit(0))
    if asked.log.gaps == "error" and _counts_steps(source, rows, asked):
        wrong = nw.when(then > time + 1).then(nw.lit(GAP)).otherwise(wrong)
    nowhere = nw.col(EPISODE).is_null() | time.is_null()
    place = RowPlace(
        sound=~then.is_null() & (wrong == 0) & ~nowhere,
        ends=then.is_null() & ~nowhere,
        first=nw.col(NUMBER) == 1,
        count=nw.col(NUMBER),
        wrong=nw.when(nowhere).then(nw.lit(NO_KEY)).otherwise(wrong),
    )
    return coded_pairs(paired, place, [EPISODE, TIME, NEXT_TIME, NUMBER])


def _counts_steps(source: Engine, rows: Frame, asked: LogQuery) -> bool:
    """Return whether times count steps: they are whole, and not the numbers of rows."""
    dtype = rows.collect_schema()[TIME]
    if asked.log.time is None or not dtype.is_numeric():
        return False
    if dtype.is_integer():
        return True
    time = nw.col(TIME)
    endless = count_where(time.abs() == math.inf).alias("endless")
    fractions = count_where(time != time.floor()).alias("fractions")
    found = source.read(rows.select(endless, fractions))
    if found.cells("endless").present[0]:
        raise refuse_infinite_times(asked.log.time)
    return not found.cells("fractions").present[0]
