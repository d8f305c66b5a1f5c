"""Pairing by sorting: each row with the next one of its episode in time.

It works on every engine and for rows in any order.
"""

import narwhals as nw

from rspmn.data.sources.engine import Engine, Frame
from rspmn.data.sources.engine_columns import count_where
from rspmn.data.sources.log_rows import (
    EPISODE,
    NEXT_TIME,
    NUMBER,
    TIME,
    LogQuery,
    pair_columns,
    refuse_infinite_times,
)
from rspmn.data.sources.pair_codes import (
    GAP,
    NEXT_ROW_CODE,
    NO_KEY,
    ROW_CODE,
    TIE,
    RowPlace,
    coded_pairs,
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
    endless = count_where((time * 0).is_nan()).alias("endless")  # infinity times 0 is not a number
    fractions = count_where(time != time.floor()).alias("fractions")
    found = source.read(rows.select(endless, fractions))
    if found.cells("endless").present[0]:
        raise refuse_infinite_times(asked.log.time)
    return not found.cells("fractions").present[0]
