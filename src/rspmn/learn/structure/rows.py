"""Weighted rows: the data of structure learning.

Equal rows are one row with a weight, so that a million rows of few distinct values cost what the
distinct ones cost. Each variable has codes for tests of independence: one for each value if there
are few, quantile bins if there are many. The values themselves are kept for the leaves.
"""

import math
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.data.columns import MISSING, Column
from rspmn.data.keys import column_keys, join, joint_key
from rspmn.data.single_decisions import decision_columns
from rspmn.data.tables import as_table
from rspmn.errors import DataError
from rspmn.learn.structure.code_table import Codes, CodeTable
from rspmn.schema import Kind, Schema
from rspmn.types import Array, Bools, Ints
from rspmn.values import unused

#: More distinct integers than this are binned for tests, unless each occurs ENOUGH times on
#: average.
MOST_VALUES = 64
ENOUGH = 100
#: Joint values of variables are mixed-radix codes if there can be at most so many. Otherwise the
#: joint values that occur are numbered, and the numbers cached.
FEW_CODES = 4096


@dataclass(frozen=True, eq=False)
class Prior:
    """What is known of the mean of the utility before rows are counted: empirical Bayes."""

    means: Array  # [n], for the decisions of each row
    strength: float  # the rows that it is worth; infinite if the means are not to be moved
    variance: float  # of single utilities


class TakenColumns(Mapping[str, Column]):
    """Some rows of columns, each taken when it is asked for.

    Growing a network holds thousands of small tables, and asks each for few of its columns.
    """

    def __init__(self, columns: Mapping[str, Column], rows: Ints) -> None:
        self._columns, self._rows = columns, rows
        if isinstance(columns, TakenColumns):
            self._columns, self._rows = columns._columns, columns._rows[rows]

    def __getitem__(self, name: str) -> Column:
        return self._columns[name].take(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns


@dataclass(frozen=True, eq=False)
class RowTable:
    """All distinct rows; `Rows` are subsets of them."""

    columns: Mapping[str, Column]  # the values, [n]
    codes: CodeTable  # for tests, [n] each; MISSING where there is none
    sizes: Mapping[str, int]  # how many codes there are
    ordered: frozenset[str]  # variables whose codes are ordered as numbers
    binned: frozenset[str]  # variables whose codes are bins of several values
    bins: int  # the largest number of bins
    origin: Ints  # [n], the row number in the table that was read
    #: The interval of each number that rows were divided by, or that has open ends.
    spans: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    #: Variables that rows were divided by and that are missing in these rows.
    absent: frozenset[str] = frozenset()
    prior: Prior | None = None
    memo: dict[Any, Any] = field(init=False, repr=False, default_factory=dict)  # cached counts


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a table, each with a weight."""

    table: RowTable
    index: Ints  # [n]
    weights: Array  # [n], above 0
    memo: dict[Any, Any] = field(init=False, repr=False, default_factory=dict)  # cached counts

    def __len__(self) -> int:
        return len(self.index)

    @property
    def total(self) -> float:
        """The weight of all rows together."""
        return float(self.weights.sum())

    @cached_property
    def together(self) -> Ints:  # [n]
        """One stratum of all rows: statistics given it are kept, as those of other strata are."""
        return np.zeros(len(self), dtype=np.int64)

    @property
    def origin(self) -> Ints:  # [n]
        """The number of each row in the table that was read."""
        return self.table.origin[self.index]

    def codes(self, name: str) -> NDArray[np.int32]:  # [n]
        """Return the codes of a variable."""
        return self.table.codes.of(name, self.index)

    def codes_of(self, names: Sequence[str]) -> Codes:
        """Return the codes of several variables."""
        sizes = np.array([self.table.sizes[name] for name in names], dtype=np.int64)
        return Codes(self.table.codes.take(self.index, names), sizes)

    def column(self, name: str) -> Column:
        """Return the values of a variable."""
        return self.table.columns[name].take(self.index)

    def varying(self, names: Sequence[str]) -> list[str]:
        """Return the variables that have several values."""
        if not names:
            return []
        coded = [name for name in names if name not in self.table.ordered]
        codes = self.table.codes.take(self.index, coded)
        differ = np.flatnonzero((codes != codes[:1]).any(axis=0)).tolist()
        lacking = (codes[:, differ] < 0).any(axis=0)  # then a code that differs may be no value
        unsure = {coded[differ[k]] for k in np.flatnonzero(lacking).tolist()}
        varied = {coded[k] for k in differ}
        varied -= {name for name in unsure if not self.varies(name)}
        numbers = self.table.ordered
        return [n for n in names if n in varied or (n in numbers and self.varies(n))]

    def varies(self, name: str) -> bool:
        """Return whether a variable has several values, even if they are in one bin."""
        column = self.table.columns[name]
        values = column.data[self.index]
        if column.spread is not None and (column.spread[self.index] > 0).any():
            return True
        if not len(values) or (values == values[0]).all():
            return False
        values = (
            values[~np.isnan(values)] if column.kind is Kind.CONTINUOUS else values[values >= 0]
        )
        return len(values) > 0 and bool((values != values[0]).any())

    def numbers(self, name: str) -> Array:  # [n]
        """Return the values of a variable of numbers, NaN where it is missing."""
        return self.column(name).numbers()

    def marked_absent(self, names: Sequence[str]) -> "Rows":
        """Return the same rows, marked as those in which some variables are missing."""
        table = replace(self.table, absent=self.table.absent | frozenset(names))
        return Rows(table, self.index, self.weights)

    def with_span(self, name: str, span: tuple[float, float]) -> "Rows":
        """Return the same rows, restricted to an interval of a variable."""
        table = replace(self.table, spans={**self.table.spans, name: span})
        return Rows(table, self.index, self.weights)

    def with_open_ends(self, names: Sequence[str]) -> "Rows":
        """Return the same rows; of the numbers among some variables, others may be beyond all."""
        spans = {name: (-math.inf, math.inf) for name in names if name in self.table.ordered}
        return Rows(replace(self.table, spans=spans), self.index, self.weights)

    def with_prior(self, prior: Prior | None) -> "Rows":
        """Return the same rows with a prior of the mean utility; its means are of these rows."""
        if prior is None:
            return Rows(replace(self.table, prior=None), self.index, self.weights)
        means = np.zeros(len(self.table.origin))
        means[self.index] = prior.means
        table = replace(self.table, prior=replace(prior, means=means))
        return Rows(table, self.index, self.weights)

    def weighted(self, shares: Array) -> "Rows":
        """Return the same rows, each with a share of its weight."""
        return Rows(self.table, self.index, self.weights * shares)

    def without(self, parts: "Sequence[Rows]") -> "Rows":
        """Return the rows that are in none of some parts."""
        taken = np.concatenate([part.origin for part in parts])
        return self.where(~np.isin(self.origin, taken))

    def where(self, chosen: Bools | Ints | slice) -> "Rows":
        """Return the rows of a mask, or at some positions."""
        return Rows(self.table, self.index[chosen], self.weights[chosen])

    def joint_codes(self, names: Sequence[str]) -> Ints:  # [n]
        """Return a code for the joint value of several variables; codes may leave gaps."""
        if not names:
            return np.zeros(len(self), dtype=np.int64)
        if len(names) == 1:
            return self.codes(names[0]).astype(np.int64) + 1
        sizes = [self.table.sizes[name] + 1 for name in names]
        if math.prod(sizes) <= FEW_CODES:
            codes = (self.codes(name).astype(np.int64) + 1 for name in names)
            return joint_key(list(zip(codes, sizes, strict=True)))
        key = ("joint", *names)
        if key not in self.table.memo:
            of_table = (self.table.codes[name].astype(np.int64) + 1 for name in names)
            keys = joint_key(list(zip(of_table, sizes, strict=True)))
            self.table.memo[key] = np.unique(keys, return_inverse=True)[1]
        return np.asarray(self.table.memo[key][self.index])


def codes_together(rows: Sequence[Rows], names: Sequence[str]) -> Codes:
    """Return the codes of rows that may be of different tables, one after the other."""
    tables, parts = [], []
    for _, several in groupby(rows, key=lambda part: id(part.table.codes)):
        same = [*several]
        tables.append(same[0].table)
        index = np.concatenate([part.index for part in same])
        parts.append(same[0].table.codes.take(index, names))
    sizes = [max(table.sizes[name] for table in tables) for name in names]
    return Codes(np.concatenate(parts), np.array(sizes, dtype=np.int64))


def rebinned(rows: Rows) -> Rows:
    """Return the same rows with numbers binned anew, so that splits can be refined."""
    if not rows.table.binned:
        return rows
    columns = TakenColumns(rows.table.columns, rows.index)
    codes, sizes, binned = {}, dict(rows.table.sizes), set()
    for name in rows.table.ordered:
        found = _bin_codes(columns[name], rows.weights, rows.table.bins)
        codes[name], sizes[name], still = found
        binned |= {name} if still else set()
    table = replace(
        rows.table, columns=columns, codes=rows.table.codes.recoded(rows.index, codes), sizes=sizes,
        binned=frozenset(binned), origin=rows.origin,
    )  # fmt: skip
    return Rows(table, np.arange(len(rows)), rows.weights)


def with_joint_variable(rows: Rows, names: Sequence[str]) -> tuple[Rows, str]:
    """Add a variable that is the joint value of several; return its name too."""
    name = unused(" and ".join(names), rows.table.columns)
    codes = np.full(len(rows.table.origin), MISSING, dtype=np.int32)
    codes[rows.index] = np.unique(rows.joint_codes(names), return_inverse=True)[1]
    size = int(codes.max(initial=0)) + 1
    joint = Column(Kind.CATEGORICAL, codes, tuple(range(size)))
    return with_columns(rows, {name: joint}), name


def with_columns(rows: Rows, columns: Mapping[str, Column]) -> Rows:
    """Return the same rows with more columns of categories, one cell for each row of the table."""
    table = replace(
        rows.table,
        columns=ChainMap({**columns}, rows.table.columns),  # type: ignore[arg-type]  # only read
        codes=rows.table.codes.with_more({n: c.data.astype(np.int32) for n, c in columns.items()}),
        sizes={**rows.table.sizes, **{n: len(c.domain) for n, c in columns.items()}},
    )
    return replace(rows, table=table)


def read_columns(source: object, names: Sequence[str] | None, bins: int) -> Rows:
    """Read columns of a table, all of them if none are named."""
    table = as_table(source)
    columns = {}
    for name in names or table.names:
        columns[name] = table.coded(name)
    return group_rows(columns, np.ones(table.rows), bins)


def read_rows(
    source: object, schema: Schema, bins: int, weights: str | None = None
) -> tuple[Rows, Schema]:
    """Read a table of one row per decision problem; return it and the schema with all kinds.

    `weights` names a column that says how often each row occurred.
    """
    columns, counts = decision_columns(source, schema, weights)
    known = schema.with_kinds({name: column.kind for name, column in columns.items()})
    return group_rows(columns, counts, bins, schema.decisions), known


def group_rows(
    columns: Mapping[str, Column],
    counts: Array,
    bins: int,
    decisions: Sequence[str] = (),
) -> Rows:
    """Return distinct rows with weights, sorted: the order of the input does not matter."""
    used = np.flatnonzero(counts > 0)
    if not len(used):
        raise DataError("there are no rows to learn from")
    key = join([column_keys(column) for column in columns.values()]).codes[used]
    # sort equal rows by weight: a sum of fractions depends on the order of its terms
    order = np.argsort(key) if (counts == 1).all() else np.lexsort((counts[used], key))
    starts = np.flatnonzero(np.append(True, np.diff(key[order]) != 0))
    weights = np.add.reduceat(counts[used][order], starts)
    first = order[starts]
    del key, order
    distinct = {name: column.take(used[first]) for name, column in columns.items()}
    return Rows(table_of(distinct, weights, bins, decisions), np.arange(len(first)), weights)


def table_of(
    columns: Mapping[str, Column],
    weights: Array,
    bins: int,
    decisions: Sequence[str] = (),
) -> RowTable:
    """Return distinct rows with codes for tests; `weights` place the borders of bins.

    Decisions have a code for every value, however many there are.
    """
    codes, sizes, ordered, binned = {}, {}, set(), set()
    known = weights.sum() / ENOUGH
    for name, column in columns.items():
        many = column.kind is Kind.INTEGER and len(column.domain) > max(MOST_VALUES, bins, known)
        if column.kind is Kind.CONTINUOUS or (many and name not in decisions):
            ordered.add(name)
            codes[name], sizes[name], in_bins = _bin_codes(column, weights, bins)
            binned |= {name} if in_bins else set()
        else:
            codes[name], sizes[name] = column.data.astype(np.int32), max(1, len(column.domain))
    origin = np.arange(len(weights))
    return RowTable(
        columns, CodeTable(codes), sizes, frozenset(ordered), frozenset(binned), bins, origin
    )


def _bin_codes(column: Column, weights: Array, bins: int) -> tuple[NDArray[np.int32], int, bool]:
    """Return codes of numbers, how many there are, and whether they are bins of several values.

    Rows of weight 0 have a code too.
    """
    gone = column.missing
    numbers = np.where(gone, np.nan, column.data.astype(np.float64))
    distinct, inverse = np.unique(numbers[~gone], return_inverse=True)
    codes = np.full(len(numbers), MISSING, dtype=np.int32)
    if len(distinct) <= bins:
        codes[~gone] = inverse
        return codes, max(1, len(distinct)), False
    below = np.cumsum(np.bincount(inverse, weights=weights[~gone]))
    # the bin of a value is the quantile of the middle of its weight
    middle = below - np.bincount(inverse, weights=weights[~gone]) / 2
    bin_of = np.minimum((middle / max(below[-1], 1e-300) * bins).astype(np.int32), bins - 1)
    bin_of = np.unique(bin_of, return_inverse=True)[1].astype(np.int32)
    codes[~gone] = bin_of[inverse]
    return codes, int(bin_of.max()) + 1, True
