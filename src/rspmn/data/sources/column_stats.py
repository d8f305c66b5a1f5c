"""Statistics of each column of a table, computed by the engine that holds it."""

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from rspmn.data.columns import infer_kind
from rspmn.data.sources.engine import Engine
from rspmn.data.sources.log_rows import count_where, is_missing, plain_column
from rspmn.errors import no_rows
from rspmn.schema import Kind

#: The number of first rows that examples and kinds are taken from.
HEAD = 1000
#: Types that cannot be learned from.
UNSUPPORTED = (nw.Binary, nw.Time, nw.Duration)


@dataclass(frozen=True)
class SurveyedColumn:
    """Statistics of a column."""

    name: str
    kind: Kind | None  # None: a type that cannot be learned from
    stored: str  # the engine's type
    missing: int  # rows
    distinct: int  # values
    least: Any = None  # of numbers
    most: Any = None
    examples: tuple[Any, ...] = ()

    def is_unique(self, rows: int) -> bool:
        """Return whether nearly every row has a value of its own, as identifiers have."""
        present = rows - self.missing
        return present > 20 and self.distinct > 0.9 * present and self.kind is not Kind.CONTINUOUS

    @property
    def is_constant(self) -> bool:
        """Whether it has at most one value."""
        return self.distinct <= 1


@dataclass(frozen=True)
class Survey:
    """Statistics of all columns of a table."""

    rows: int
    columns: tuple[SurveyedColumn, ...]

    def __getitem__(self, name: str) -> SurveyedColumn:
        return next(column for column in self.columns if column.name == name)

    @property
    def names(self) -> list[str]:
        """The columns' names."""
        return [column.name for column in self.columns]


def survey(source: Engine) -> Survey:
    """Return statistics of all columns of a table."""
    types = dict(source.frame.collect_schema())
    names = [n for n in source.names if not types[n].is_nested() and types[n] not in UNSUPPORTED]
    queries = [nw.len().alias("rows")]
    for k, name in enumerate(names):
        column = plain_column(types, name)
        queries += [
            count_where(is_missing(types, name)).alias(f"m{k}"),
            column.n_unique().alias(f"d{k}"),
        ]
        if types[name].is_numeric():
            queries += [column.min().alias(f"a{k}"), column.max().alias(f"b{k}")]
        if types[name].is_float():
            parts = ~is_missing(types, name) & (column != column.floor())
            queries.append(count_where(parts).alias(f"p{k}"))
    found = source.read(source.frame.select(*queries))
    if not int(found.cells("rows").present[0]):
        raise no_rows()
    first = source.read(source.frame.select(names).head(HEAD))
    facts = {n: _one(found.cells(n)) for n in found.names}
    columns = []
    for name in source.names:
        if name not in names:
            columns.append(SurveyedColumn(name, None, str(types[name]), 0, 0))
            continue
        k, cells = names.index(name), first.cells(name)
        missing = int(facts[f"m{k}"] or 0)
        is_date = cells.present.dtype.kind == "M"
        kind = Kind.CATEGORICAL if is_date else infer_kind(cells.present, name)
        if types[name].is_float():
            kind = Kind.CONTINUOUS if facts[f"p{k}"] else Kind.INTEGER
        columns.append(
            SurveyedColumn(
                name,
                kind,
                str(types[name]),
                missing,
                int(facts[f"d{k}"]) - (missing > 0),  # engines count null as a value
                facts.get(f"a{k}"),
                facts.get(f"b{k}"),
                tuple(dict.fromkeys(cells.present[:20].tolist()))[:3],
            )
        )
    return Survey(int(facts["rows"]), tuple(columns))


def _one(cells: Any) -> Any:
    value = None if cells.missing[0] else cells.present.tolist()[0]
    return None if isinstance(value, float) and np.isnan(value) else value
