"""Statistics of the episodes of a long table, computed by the engine that holds it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np

from rspmn.data.sources.column_stats import Survey, SurveyedColumn, only_row
from rspmn.data.sources.engine import Engine, Frame
from rspmn.data.sources.engine_columns import (
    count_where,
    derived_column,
    is_missing,
    plain_column,
)
from rspmn.schema import Kind
from rspmn.types import Array

#: Only columns with at most this many values can say that an episode ended.
MAX_ENDS = 20
#: Values are of last rows only if chance would give that with a probability below exp(-SURE).
SURE = 14.0
#: Whether columns of more whole numbers than this are codes is not looked at.
MAX_CODES = 100_000
#: What happens more often than by chance does so by this many standard deviations.
CLEAR = 5.0
#: Values are near those that they follow if the correlation is larger.
NEAR = 0.25
#: Columns while rows are grouped.
EPISODE, TIME, LAST, ROWS = "episode", "time", "last", "rows"


@dataclass(frozen=True)
class EpisodeStats:
    """How columns behave in the episodes of a table."""

    episodes: int
    #: The number of episodes in which each column has more than one value.
    changing: Mapping[str, int] = field(default_factory=dict)
    #: The values of a column that last rows have, and no others.
    only_last: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    same_time: int = 0  # rows of an episode and a time that another row has
    equal: int = 0  # of these, rows that are equal to another in all columns
    gaps: int = 0  # rows of whole-number times that the next one does not follow at once
    usual_gap: float = 0.0  # the mean of all differences of times
    episode: str | None = None  # the column of episodes
    #: Columns of many whole numbers, and whether they are codes: None if the log does not show it.
    are_codes: Mapping[str, bool | None] = field(default_factory=dict)

    def is_constant(self, name: str) -> bool:
        """Return whether a column has one value in each of several episodes."""
        return self.episodes > 1 and self.changing.get(name) == 0


def episode_stats(
    source: Engine, found: Survey, episode: str, time: str | None, names: Sequence[str]
) -> EpisodeStats:
    """Return statistics of episodes, and of some columns in them."""
    types = dict(source.frame.collect_schema())
    chosen = [found[n] for n in names if found[n].kind is not None and n not in (episode, time)]
    keys = [name for name in (episode, time) if name is not None]
    # names of our own: DuckDB reads a name to group by as SQL, one with a dot as a table's
    named = zip((EPISODE, TIME), keys, strict=False)
    rows = source.frame.select(
        *(plain_column(types, name).alias(key) for key, name in named),
        *(_sortable(types, column).alias(f"c{k}") for k, column in enumerate(chosen)),
    )
    facts = only_row(source.read(_changes(rows, len(chosen))))
    changing = {column.name: int(facts[f"c{k}"] or 0) for k, column in enumerate(chosen)}
    episodes = int(facts[ROWS])
    if time is None:
        return EpisodeStats(episodes, changing, episode=episode)
    only_last = {}
    marked = rows.with_columns((nw.col(TIME) == nw.col(TIME).max().over(EPISODE)).alias(LAST))
    for k, column in enumerate(chosen):
        if _may_end(column):
            values = _only_last(source, marked, f"c{k}", episodes / found.rows)
            if column.kind is not Kind.CATEGORICAL:
                values = tuple(value for value in values if value == 1)
            if values:
                only_last[column.name] = values
    stored = [c.name for c in found.columns if c.kind is not None and not c.is_computed]
    repeated = _repeated(source, keys, stored)
    gaps = _gaps(source, rows) if types[time].is_integer() else (0, 0.0)
    are_codes = {
        column.name: _are_codes(source, rows, f"c{k}")
        for k, column in enumerate(chosen)
        if column.is_fine(found.rows) and column.distinct <= MAX_CODES
    }
    return EpisodeStats(episodes, changing, only_last, *repeated, *gaps, episode, are_codes)


def episode_by_times(source: Engine, found: Survey, time: str) -> str | None:
    """Return the column in which no value has a time twice, although times repeat; None if none.

    Of several, the one with the fewest values is taken: the longest episodes.
    """
    candidates = [
        column
        for column in found.columns
        if column.name != time
        and column.kind not in (None, Kind.CONTINUOUS)
        and not column.is_computed
        and 1 < column.distinct <= found.rows / 2
        and found.rows <= column.distinct * found[time].distinct
    ]
    for column in sorted(candidates, key=lambda column: column.distinct):
        if _more_than_one(source, [column.name, time]) == 0:
            return column.name
    return None


def _sortable(types: dict[str, Any], column: SurveyedColumn) -> nw.Expr:
    """Return a column with null for what is missing, booleans as numbers."""
    found = derived_column(types, column.name)
    if column.name in types:
        found = nw.when(~is_missing(types, column.name)).then(found)
    return found.cast(nw.Int64) if column.kind is Kind.BOOLEAN else found


def _changes(rows: Frame, columns: int) -> Frame:
    """Return in how many episodes each column changes, and the number of episodes."""
    bounds = [
        bound.alias(f"{what}{k}")
        for k in range(columns)
        for what, bound in (("a", nw.col(f"c{k}").min()), ("b", nw.col(f"c{k}").max()))
    ]
    groups = rows.group_by(EPISODE).agg(nw.len().alias(ROWS), *bounds)
    return groups.select(
        nw.len().alias(ROWS),
        *(count_where(nw.col(f"a{k}") != nw.col(f"b{k}")).alias(f"c{k}") for k in range(columns)),
    )


def _may_end(column: SurveyedColumn) -> bool:
    """Return whether a column can say that an episode ended: a flag, or a few words."""
    if column.kind is Kind.INTEGER:
        return (column.least, column.most) == (0, 1)
    return column.kind is Kind.BOOLEAN or (
        column.kind is Kind.CATEGORICAL and column.distinct <= MAX_ENDS
    )


def _only_last(source: Engine, rows: Frame, name: str, share: float) -> tuple[Any, ...]:
    """Return the values that last rows have, and no others; none if that may be by chance.

    `share` is the share of last rows in all rows.
    """
    groups = rows.filter(~(nw.col(name).is_null() | nw.col(LAST).is_null())).group_by(name, LAST)
    table = source.read(groups.agg(nw.len().alias(ROWS)).sort(name))
    counts = zip(*(table.cells(c).present.tolist() for c in (name, LAST, ROWS)), strict=True)
    inside: set[Any] = set()
    last: dict[Any, int] = {}
    for value, is_last, number in counts:
        if is_last:
            last[value] = int(number)
        else:
            inside.add(value)
    found = {value: number for value, number in last.items() if value not in inside}
    is_sure = share < 1 and -math.log(share) * max(found.values(), default=0) > SURE
    return tuple(found) if is_sure else ()


def _are_codes(source: Engine, rows: Frame, name: str) -> bool | None:
    """Return whether whole numbers are codes, by the values that follow each; staying is aside."""
    now, then = nw.col("now"), nw.col("then")
    after = nw.col(name).shift(-1).over(EPISODE, order_by=TIME)
    moves = rows.select(nw.col(name).alias("now"), after.alias("then")).filter(then != now)
    table = source.read(moves.group_by("now", "then").agg(nw.len().alias(ROWS)))
    return are_codes(*(table.cells(column).present for column in ("now", "then", ROWS)))


def are_codes(now: Array, then: Array, counts: Array) -> bool | None:
    """Return whether whole numbers are codes; None if what follows them hardly depends on them.

    Given are values, values that follow, and how often. An amount is near the one that it follows.
    Otherwise, the share of two steps from the same value that have the same successor is compared
    with that of any two steps: it is larger if what follows depends on the value; and with that of
    two steps from neighbours: for an amount it is similar, for a code it is that of any two steps.

    >>> steps = np.random.default_rng(0).integers(0, 10, (2, 4000))  # +0 to +9, from 400 values
    >>> now = np.arange(4000) % 400
    >>> codes = np.random.default_rng(1).permutation(410)
    >>> for x, y in [(now, now + steps[0]), (codes[now], codes[now + steps[0]]), (now, steps[1])]:
    ...     print(are_codes(x, y, np.ones(4000)))
    False
    True
    None
    """
    from scipy.sparse import coo_array

    if len(now) < 2:
        return None
    x, y = now - np.average(now, weights=counts), then - np.average(then, weights=counts)
    squares = float(np.average(x * x, weights=counts) * np.average(y * y, weights=counts))
    near = abs(float(np.average(x * y, weights=counts))) / math.sqrt(squares or 1.0)
    if near > max(NEAR, CLEAR / math.sqrt(counts.sum())):
        return False
    here, there = (np.unique(x, return_inverse=True)[1] for x in (now, then))
    table = coo_array((counts.astype(float), (here, there))).tocsr()
    n, ends = table.sum(axis=1), table.sum(axis=0)
    of_any = float(((ends / ends.sum()) ** 2).sum())
    pairs, beside = float((n * (n - 1)).sum()) / 2, float((n[1:] * n[:-1]).sum())
    same = float((table.multiply(table).sum() - n.sum()) / 2)
    if same - of_any * pairs < CLEAR * (1 + math.sqrt(of_any * pairs)):
        return None
    excess = float(table[1:].multiply(table[:-1]).sum()) / max(beside, 1.0) - of_any
    return bool(excess < (same / pairs - of_any) / 2)


def _gaps(source: Engine, rows: Frame) -> tuple[int, float]:
    """Return how many whole-number times leave some out, and the mean difference."""
    now = nw.col(TIME)
    steps = rows.select((now.shift(-1).over(EPISODE, order_by=TIME) - now).alias(ROWS))
    gap = nw.col(ROWS)
    found = steps.select(count_where(gap > 1).alias("gaps"), gap.mean().alias("mean"))
    facts = only_row(source.read(found))
    return int(facts["gaps"] or 0), float(facts["mean"] or 0.0)


def _repeated(source: Engine, keys: Sequence[str], stored: Sequence[str]) -> tuple[int, int]:
    """Return the rows that have keys which another row has, and those that are equal to another."""
    return _more_than_one(source, keys), _more_than_one(source, stored)


def _more_than_one(source: Engine, names: Sequence[str]) -> int:
    """Return the number of rows that are equal in some columns to another, which is not counted."""
    keys = {f"k{k}": nw.col(name) for k, name in enumerate(names)}
    groups = source.frame.select(**keys).group_by(list(keys), drop_null_keys=False)
    more = groups.agg(nw.len().alias(ROWS)).select((nw.col(ROWS) - 1).sum())
    return int(only_row(source.read(more))[ROWS] or 0)
