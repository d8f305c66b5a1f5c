"""Small tables that conformance checks run plug-ins on."""

from collections.abc import Mapping

import numpy as np

from rspmn.learn.structure.rows import Rows, read_rows
from rspmn.schema import Schema


def rows_of(columns: Mapping[str, object], weights: str | None = None) -> Rows:
    """Return a table of variables as rows; `weights` names the column of their weights."""
    names = [name for name in columns if name != weights]
    size = len(next(iter(columns.values())))  # type: ignore[arg-type]
    table = {**columns, "utility": np.zeros(size)}
    return read_rows(table, Schema([names], [], "utility"), bins=10, weights=weights)[0]


def mixed_table(rng: np.random.Generator, size: int = 2000) -> dict[str, object]:
    """Return columns of every kind, some with missing values.

    `copy` equals `x`, `noise` is independent of everything, `number` grows with `x`, `gaps` is
    `x` with a third of its values missing, and `constant` has one value.
    """
    x = rng.integers(0, 3, size)
    gaps = x.astype(object)
    gaps[rng.random(size) < 1 / 3] = None
    return {
        "x": x,
        "copy": np.array(["a", "b", "c"])[x],
        "noise": rng.integers(0, 3, size),
        "number": x + 0.1 * rng.normal(size=size),
        "gaps": gaps,
        "constant": np.ones(size, dtype=np.int64),
    }
