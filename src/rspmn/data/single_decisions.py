"""Tables of single decisions: each row is a decision of its own, an episode of one step."""

import numpy as np

from rspmn.data.cells import Cells
from rspmn.data.columns import Column, encode
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.tables import as_table, code_cells
from rspmn.errors import DataError
from rspmn.schema import Kind, Schema
from rspmn.types import Array


def decision_columns(
    source: object, schema: Schema, weights: str | None = None
) -> tuple[dict[str, Column], Array]:
    """Read the variables of a table, and how often each row occurred.

    `weights` names the column that says so; by default each row did once.
    """
    table = as_table(source)
    columns = {name: code_cells(table.cells(name), name, schema) for name in schema.variables}
    for name in (*schema.decisions, schema.utility):
        gone = columns[name].missing
        if gone.any():
            raise DataError(
                f"row {int(np.argmax(gone))}: {name!r} is missing; only state variables may be "
                f"({int(gone.sum())} such rows)"
            )
    counts = np.ones(table.rows) if weights is None else _weights(table.cells(weights), weights)
    return columns, counts


def single_decisions(source: object, schema: Schema, weights: str | None = None) -> Episodes:
    """Return the rows of a table as episodes of one step, in order.

    `weights` names a column with the number of times that each row occurred, which is whole.

    Examples
    --------
    >>> rows = {"x": [0, 1], "a": ["l", "r"], "u": [0.0, 1.0], "times": [2, 1]}
    >>> single_decisions(rows, Schema([["x"], ["a"]], ["a"], "u"), "times")
    Episodes(3 episodes, 3 steps, ended by: 3 END)
    """
    columns, counts = decision_columns(source, schema, weights)
    if (counts % 1).any():
        odd = counts[counts % 1 > 0][0]
        raise DataError(f"weights {weights!r}: expected whole numbers, found {odd:g}")
    rows = np.repeat(np.arange(len(counts)), counts.astype(np.int64))
    columns = {name: column.take(rows) for name, column in columns.items()}
    firsts = schema.information_sets[0]
    return Episodes(
        schema.with_kinds({name: column.kind for name, column in columns.items()}), columns,
        np.arange(len(rows) + 1), np.full(len(rows), Followed.END, dtype=np.int8),
        {name: columns[name].without_values(len(rows)) for name in firsts}, np.arange(len(rows)),
    )  # fmt: skip


def _weights(cells: Cells, name: str) -> Array:
    column = encode(cells, Kind.CONTINUOUS, name)
    wrong = np.flatnonzero(~((column.data >= 0) & (column.data < 1e15)))
    if len(wrong):
        raise DataError(
            f"row {wrong[0]}: weight {name!r} must be from 0 to 1e15, found {column.data[wrong[0]]}"
        )
    if 0 < column.data.sum() < (column.data > 0).sum() / 2:
        raise DataError(
            f"weights {name!r} add up to {column.data.sum():g} for {len(column.data)} rows: "
            "expected the number of times that each row occurred"
        )
    return np.asarray(column.data, dtype=np.float64)
