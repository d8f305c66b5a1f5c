"""The wide layout in memory: blocks of columns stacked, and coded as pairs."""

import numpy as np

from rspmn.data.cells import Cells
from rspmn.data.sources.memory_rows import MemoryRows, coded_variables, pair_codes_of
from rspmn.data.sources.pair_codes import (
    EMPTY_ROW,
    HOLE,
    NO,
)  # fmt: skip
from rspmn.data.sources.pair_wide import check_block
from rspmn.data.tables import Table
from rspmn.schema import Schema
from rspmn.types import Bools


def wide_rows(table: Table, schema: Schema) -> MemoryRows:
    """Stack the blocks of a wide table, and code them as pairs."""
    block = check_block(schema, len(table.names))
    steps = len(table.names) // len(block)
    cells = {
        name: [table.cells(table.names[t * len(block) + k]) for t in range(steps)]
        for k, name in enumerate(block)
    }
    empty = np.array([[c.missing for c in cells[name]] for name in block])  # [block, T, E]
    filled: Bools = np.asarray(~empty.all(axis=0))  # [T, E]
    lengths = steps - np.argmax(filled[::-1], axis=0)
    void = np.asarray(~filled.any(axis=0))
    lengths[void] = 1
    episode, step = np.nonzero(np.arange(steps) < lengths[:, None])
    stacked = Table({name: _stacked(cells[name]) for name in block}, steps * table.rows)
    read = coded_variables(stacked, schema)
    columns = {name: column.take(step * table.rows + episode) for name, column in read.items()}
    wrong = np.zeros(len(step), dtype=np.int64)
    if (~filled & (np.arange(steps)[:, None] < lengths)).any():
        wrong = np.where(filled[step, episode], 0, np.where(void[episode], EMPTY_ROW, HOLE))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    codes = pair_codes_of(columns, schema, offsets, np.full(len(step), NO), wrong)
    return MemoryRows(columns, offsets, np.arange(table.rows), codes)


def _stacked(blocks: list[Cells]) -> Cells:  # [T · E]
    """Return the cells of one variable of all steps, step after step."""
    parts = [cells.present for cells in blocks if len(cells.present)]
    if len({part.dtype.kind for part in parts} - {"f"}) > 1:
        parts = [part.astype(object) for part in parts]  # let coding see every value's own type
    present = np.concatenate(parts) if parts else np.empty(0)
    return Cells(present, np.concatenate([c.missing for c in blocks]))
