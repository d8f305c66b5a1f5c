"""Statistics and kinds of the columns of a table, computed by the engine that holds it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from rspmn.data.sources.connect import parts_of
from rspmn.data.sources.engine import Engine, Frame
from rspmn.data.sources.engine_columns import (
    ISO_DATE,
    NUMBER,
    count_where,
    derived_column,
    is_missing,
)
from rspmn.data.tables import Table
from rspmn.errors import no_rows
from rspmn.schema import Kind

#: The number of first rows that examples are taken from.
HEAD = 1000
#: How many of the cells that are no numbers are shown.
MAX_ODD = 5
#: A variable with more values than MANY, each seen less than FEW times, is not learned well.
MANY, FEW = 100, 20
#: What is said for the engine's type of a variable that is computed.
COMPUTED = "computed"
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
    is_dates: bool = False  # dates, or text that begins with one
    numbers: int = 0  # cells of text that are numbers
    #: Of text that is mostly numbers, the cells that are none, the most frequent first.
    odd: tuple[tuple[str, int], ...] = ()

    def is_unique(self, rows: int) -> bool:
        """Return whether nearly every row has a value of its own, as identifiers have."""
        present = rows - self.missing
        return present > 20 and self.distinct > 0.9 * present and self.kind is not Kind.CONTINUOUS

    def is_scarce(self, rows: int) -> bool:
        """Return whether values are many, and seen too rarely to be learned one by one."""
        return (
            self.kind is not Kind.CONTINUOUS and self.distinct > MANY and rows / self.distinct < FEW
        )

    def is_fine(self, rows: int) -> bool:
        """Return whether whole numbers are better learned as continuous ones."""
        return self.kind is Kind.INTEGER and self.is_scarce(rows)

    @property
    def is_computed(self) -> bool:
        """Whether it is no column of the table."""
        return self.stored == COMPUTED

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


def survey(source: Engine, variables: Sequence[str] = ()) -> Survey:
    """Return statistics of all columns of a table, and of variables that are computed from them."""
    types = dict(source.frame.collect_schema())
    names = [n for n in source.names if not types[n].is_nested() and types[n] not in UNSUPPORTED]
    names += [name for name in variables if name not in types]
    frame = source.frame.select(derived_column(types, name).alias(name) for name in names)
    plain = dict(frame.collect_schema())
    facts: dict[str, Any] = {}
    for part in parts_of(range(len(names))):
        queries = [nw.len().alias("rows")]
        for k in part:
            queries += _queries(plain, names[k], k)
        facts |= only_row(source.read(frame.select(*queries)))
    if not facts.get("rows"):
        raise no_rows()
    first = source.read(frame.head(HEAD))
    kinds = infer_kinds(source, frame, {name: [name] for name in names})
    columns = []
    for name in dict.fromkeys((*source.names, *names)):
        if name not in names:
            columns.append(SurveyedColumn(name, None, str(types[name]), 0, 0))
            continue
        k = names.index(name)
        missing = int(facts[f"m{k}"])
        present = int(facts["rows"]) - missing
        numbers = int(facts.get(f"n{k}") or 0)
        is_dates = plain[name] in (nw.Date, nw.Datetime) or facts.get(f"t{k}") == present
        columns.append(
            SurveyedColumn(
                name,
                kinds[name],
                str(types.get(name, COMPUTED)),
                missing,
                int(facts[f"d{k}"]) - (missing > 0),  # engines count null as a value
                facts.get(f"a{k}"),
                facts.get(f"b{k}"),
                tuple(dict.fromkeys(first.cells(name).present[:20].tolist()))[:3],
                present > 0 and is_dates,
                numbers,
                _odd_cells(source, frame, name) if present / 2 <= numbers < present else (),
            )
        )
    return Survey(int(facts["rows"]), tuple(columns))


def _queries(types: dict[str, Any], name: str, k: int) -> Iterator[nw.Expr]:
    """Return what is asked of a column; the names of the answers end in its number."""
    missing = is_missing(types, name)
    column = nw.when(~missing).then(nw.col(name))
    yield count_where(missing).alias(f"m{k}")
    yield column.n_unique().alias(f"d{k}")
    if types[name].is_numeric():
        yield column.min().alias(f"a{k}")
        yield column.max().alias(f"b{k}")
    elif types[name] == nw.String:
        for what, pattern in (("n", NUMBER), ("t", f"^{ISO_DATE}")):
            yield count_where(column.str.contains(pattern)).alias(f"{what}{k}")


def _odd_cells(source: Engine, frame: Frame, name: str) -> tuple[tuple[str, int], ...]:
    """Return the cells of a column of text that are no numbers, the most frequent first."""
    cell = nw.col(name)
    odd = frame.filter((cell != "") & ~cell.str.contains(NUMBER)).select(word=cell)
    counted = odd.group_by("word").agg(nw.len().alias("rows"))
    table = source.read(counted.sort("rows", "word", descending=[True, False]).head(MAX_ODD))
    words, rows = (table.cells(column).present.tolist() for column in ("word", "rows"))
    return tuple((word, int(number)) for word, number in zip(words, rows, strict=True))


def infer_kinds(
    source: Engine, frame: Frame, columns: Mapping[str, Sequence[str]]
) -> dict[str, Kind]:
    """Return the kind of every variable, given the columns that hold it, of one type.

    It is the kind that `rspmn.data.columns.infer_kind` returns for all values in memory.
    """
    types = dict(frame.collect_schema())
    found, floats = {}, {}
    for name, several in columns.items():
        dtype = types[several[0]]
        if dtype == nw.Boolean:
            found[name] = Kind.BOOLEAN
        elif dtype.is_float():
            floats[name] = [
                (nw.col(c) != nw.col(c).floor()) & ~is_missing(types, c) for c in several
            ]
        elif dtype.is_numeric():
            found[name] = Kind.INTEGER
        else:
            found[name] = Kind.CATEGORICAL
    if floats:
        questions = [
            nw.any_horizontal(*odd, ignore_nulls=True).any().alias(f"k{k}")
            for k, odd in enumerate(floats.values())
        ]
        answers = only_row(source.read(frame.select(*questions)))
        for answer, name in zip(answers.values(), floats, strict=True):
            found[name] = Kind.CONTINUOUS if answer else Kind.INTEGER
    return found


def only_row(table: Table) -> dict[str, Any]:
    """Return the values of a table of one row; None where they are missing."""
    cells = {name: table.cells(name) for name in table.names}
    return {n: None if c.missing[0] else c.present.tolist()[0] for n, c in cells.items()}
