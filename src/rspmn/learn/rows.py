"""Weighted rows: what structure learning looks at.

Equal rows are one row with a weight, so that a million rows of few distinct values cost what the
distinct ones cost. Each variable has a code for tests of independence: its values if they are
few, quantile bins if they are many. The values themselves stay with the rows, for the leaves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.data.coding import MISSING, Column, encode, one_key
from rspmn.data.tables import Cells, as_table
from rspmn.errors import DataError
from rspmn.schema import Kind, Schema

__all__ = [
    "RowTable",
    "Rows",
    "group_rows",
    "joined",
    "read_columns",
    "read_rows",
    "rebinned",
    "weigh",
]

#: More distinct numbers than this are binned for tests.
MOST_VALUES = 64


@dataclass(frozen=True, eq=False)
class RowTable:
    """All distinct rows; `Rows` are subsets of them."""

    columns: Mapping[str, Column]  # the values, [n]
    codes: Mapping[str, NDArray[np.int32]]  # for tests, [n]; MISSING where there is none
    sizes: Mapping[str, int]  # how many codes there are
    ordered: frozenset[str]  # whose codes are bins of a number line
    bins: int  # how many there are at most


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a table, each with a weight."""

    table: RowTable
    index: NDArray[np.int64]  # [n]
    weights: NDArray[np.float64]  # [n], above 0

    def __len__(self) -> int:
        return len(self.index)

    @property
    def total(self) -> float:
        """The weight of all rows together."""
        return float(self.weights.sum())

    def codes(self, name: str) -> NDArray[np.int32]:  # [n]
        """Return the codes of a variable."""
        return self.table.codes[name][self.index]

    def column(self, name: str) -> Column:
        """Return the values of a variable."""
        return self.table.columns[name].take(self.index)

    def where(self, chosen: NDArray[np.bool_]) -> "Rows":
        """Return the rows that are chosen."""
        return replace(self, index=self.index[chosen], weights=self.weights[chosen])

    def joint_codes(self, names: Sequence[str]) -> NDArray[np.int64]:  # [n]
        """Return one code for the values of several variables together."""
        if not names:
            return np.zeros(len(self), dtype=np.int64)
        keys = [(self.codes(n).astype(np.int64) + 1, self.table.sizes[n] + 1) for n in names]
        return np.unique(one_key(keys), return_inverse=True)[1]


def rebinned(rows: Rows) -> Rows:
    """Return the same rows with bins of their own for numbers, so that borders can be refined."""
    if not rows.table.ordered:
        return rows
    columns = {name: column.take(rows.index) for name, column in rows.table.columns.items()}
    codes, sizes = dict(rows.table.codes), dict(rows.table.sizes)
    for name, column in columns.items():
        if name in rows.table.ordered:
            codes[name], sizes[name] = _bin_codes(column, rows.weights, rows.table.bins)
        else:
            codes[name] = codes[name][rows.index]
    table = replace(rows.table, columns=columns, codes=codes, sizes=sizes)
    return Rows(table, np.arange(len(rows)), rows.weights)


def weigh(groups: NDArray[Any], weights: NDArray[np.float64], size: int = 0) -> NDArray[np.float64]:
    """Return the weight of each group."""
    return np.bincount(groups, weights=weights, minlength=size).astype(np.float64)


def joined(rows: Rows, names: Sequence[str]) -> tuple[Rows, str]:
    """Add a variable that holds the values of several together; return its name too."""
    name = " and ".join(names)
    codes = np.full(len(rows.table.codes[names[0]]), MISSING, dtype=np.int32)
    codes[rows.index] = rows.joint_codes(names)
    size = int(codes.max(initial=0)) + 1
    table = replace(
        rows.table,
        columns={**rows.table.columns, name: Column(Kind.CATEGORICAL, codes, tuple(range(size)))},
        codes={**rows.table.codes, name: codes},
        sizes={**rows.table.sizes, name: size},
    )
    return replace(rows, table=table), name


def read_columns(source: object, names: Sequence[str] | None, bins: int) -> Rows:
    """Read columns of a table, all of them if none are named."""
    table = as_table(source)
    columns = {}
    for name in names or table.names:
        cells = table.cells(name)
        columns[name] = encode(cells.present, cells.missing, None, name)
    return group_rows(columns, np.ones(table.rows), bins)


def read_rows(
    source: object, schema: Schema, bins: int, weights: str | None = None
) -> tuple[Rows, Schema]:
    """Read a table of one row per decision problem; return it and the schema with all kinds.

    `weights` names a column that says how often each row occurred.
    """
    table = as_table(source)
    columns = {}
    for name in schema.variables:
        cells = table.cells(name)
        kind = Kind.CONTINUOUS if name == schema.utility else schema.kinds.get(name)
        columns[name] = encode(cells.present, cells.missing, kind, name)
    for name in (*schema.decisions, schema.utility):
        gone = columns[name].missing
        if gone.any():
            raise DataError(
                f"row {int(np.argmax(gone))}: {name!r} is missing; only state variables may be "
                f"({int(gone.sum())} such rows)"
            )
        if name in schema.decisions and columns[name].kind is Kind.CONTINUOUS:
            raise DataError(f"decision {name!r} holds numbers that are not whole: bin it")
    counts = np.ones(table.rows) if weights is None else _weights(table.cells(weights), weights)
    known = schema.with_kinds({name: column.kind for name, column in columns.items()})
    return group_rows(columns, counts, bins), known


def _weights(cells: Cells, name: str) -> NDArray[np.float64]:
    column = encode(cells.present, cells.missing, Kind.CONTINUOUS, name)
    wrong = np.flatnonzero(~((column.data >= 0) & (column.data < 1e15)))
    if len(wrong):
        raise DataError(
            f"row {wrong[0]}: weight {name!r} must be from 0 to 1e15, found {column.data[wrong[0]]}"
        )
    if 0 < column.data.sum() < (column.data > 0).sum() / 2:
        raise DataError(
            f"weights {name!r} add up to {column.data.sum():g} for {len(column.data)} rows, but "
            "they say how often each row occurred: scale them so that they count rows"
        )
    return np.asarray(column.data, dtype=np.float64)


def group_rows(columns: Mapping[str, Column], counts: NDArray[np.float64], bins: int) -> Rows:
    """Make weighted distinct rows, sorted, so that the order of the input does not matter."""
    used = np.flatnonzero(counts > 0)
    if not len(used):
        raise DataError("there are no rows to learn from")
    key = one_key([column.keys() for column in columns.values()])[used]
    # equal rows by weight too: sums of fractions hang on the order in which they are added
    order = np.argsort(key) if (counts == 1).all() else np.lexsort((counts[used], key))
    starts = np.flatnonzero(np.append(True, np.diff(key[order]) != 0))
    weights = np.add.reduceat(counts[used][order], starts)
    first = order[starts]
    del key, order
    distinct = {name: column.take(used[first]) for name, column in columns.items()}
    codes, sizes, ordered = {}, {}, set()
    for name, column in distinct.items():
        many = column.kind is Kind.INTEGER and len(column.domain) > max(MOST_VALUES, bins)
        if column.kind is Kind.CONTINUOUS or many:
            ordered.add(name)
            codes[name], sizes[name] = _bin_codes(column, weights, bins)
        else:
            codes[name], sizes[name] = column.data, max(1, len(column.domain))
    table = RowTable(distinct, codes, sizes, frozenset(ordered), bins)
    return Rows(table, np.arange(len(first)), weights)


def _bin_codes(
    column: Column, weights: NDArray[np.float64], bins: int
) -> tuple[NDArray[np.int32], int]:
    """Return codes for tests of numbers: the values if they are few, else quantile bins."""
    gone = column.missing
    numbers = np.where(gone, np.nan, column.data.astype(np.float64))
    distinct, inverse = np.unique(numbers[~gone], return_inverse=True)
    codes = np.full(len(numbers), MISSING, dtype=np.int32)
    if len(distinct) <= bins:
        codes[~gone] = inverse
        return codes, max(1, len(distinct))
    below = np.cumsum(np.bincount(inverse, weights=weights[~gone]))
    # the bin of a value: where the middle of its own weight falls among equal shares
    middle = below - np.bincount(inverse, weights=weights[~gone]) / 2
    bin_of = np.minimum((middle / below[-1] * bins).astype(np.int32), bins - 1)
    bin_of = np.unique(bin_of, return_inverse=True)[1].astype(np.int32)
    codes[~gone] = bin_of[inverse]
    return codes, int(bin_of.max()) + 1
