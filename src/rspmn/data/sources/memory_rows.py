"""The rows of a log in memory: coded variables, and codes of each row with the one after it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.data.cells import Cells
from rspmn.data.columns import Column
from rspmn.data.sources.engine_columns import stored_columns
from rspmn.data.sources.pair_codes import (
    BY_FIRST,
    BY_FLAG,
    BY_LENGTH,
    BY_NEXT_FLAG,
    FINAL_STATE,
    NO_STEP,
    NOTHING,
    STATE,
    STEP,
)  # fmt: skip
from rspmn.data.sources.validate import Fault, Location
from rspmn.data.tables import Table, code_cells
from rspmn.schema import Schema
from rspmn.types import Ints


@dataclass(frozen=True, eq=False)
class MemoryRows:
    """The rows of a log, those of one episode together and in the order of time."""

    columns: Mapping[str, Column]  # of each variable, [n]
    offsets: Ints  # [num_episodes + 1]
    ids: NDArray[Any]  # [num_episodes]
    codes: Ints  # [n], of each row with the one after it
    times: NDArray[Any] | None = None  # [n]

    def first(self, fault: Fault, lacking: str | None = None) -> Location:
        """Return the first row whose pair has a fault, and lacks a variable if one is given."""
        found = fault(self.codes)
        if lacking is not None:
            found = found & self.columns[lacking].missing
        row = int(np.argmax(found))
        episode = int(np.searchsorted(self.offsets, row, side="right")) - 1
        times = [] if self.times is None else self.times[row : row + 2].tolist()
        (name,) = self.ids[episode : episode + 1].tolist()
        return Location(name, row - int(self.offsets[episode]), *times)


def coded_variables(table: Table, schema: Schema) -> dict[str, Column]:
    """Return the variables; a utility that is computed is missing in rows that hold nothing of it.

    These are the states after last steps, which have no decisions either.
    """
    cells = {name: table.cells(name) for name in schema.variables}
    if schema.utility not in table.names:
        used = stored_columns(table.names, (schema.utility, *schema.decisions))
        nothing = np.logical_and.reduce([table.cells(name).missing for name in used])
        earned = cells[schema.utility]
        known = Cells(earned.present[~nothing[~earned.missing]], earned.missing | nothing)
        cells[schema.utility] = known
    return {name: code_cells(found, name, schema) for name, found in cells.items()}


def pair_codes_of(
    columns: Mapping[str, Column],
    schema: Schema,
    offsets: Ints,
    flags: Ints,
    wrong: Ints,  # [n], the code of what must not be, or 0
) -> Ints:  # [n]
    """Return the code of each row with the one after it, as `pair_codes.coded_pairs` has it."""
    starts, last = offsets[:-1], offsets[1:] - 1
    chosen = (*schema.decisions, schema.utility)
    lone = np.logical_and.reduce([columns[name].missing for name in chosen])  # no step
    codes = flags * BY_FLAG + STEP
    codes[starts] += BY_FIRST
    before = np.flatnonzero(lone[1:])  # rows with a state after them
    codes[before] += flags[before + 1] * BY_NEXT_FLAG + STATE
    codes[last] = flags[last] * BY_FLAG + (last == starts) * BY_FIRST + NOTHING
    ends = np.union1d(before, last)
    number = ends + 1 - offsets[np.searchsorted(offsets, ends, side="right") - 1]
    codes[ends] += number * BY_LENGTH
    codes[lone] = 0  # a step that lacks everything, if rows follow it
    final = last[lone[last]]
    codes[final] = np.where(np.isin(final, starts), NO_STEP, FINAL_STATE)
    return np.where(wrong < 0, wrong, codes)
