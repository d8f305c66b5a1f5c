"""Episodes: the rows of a log in memory, coded as pairs and checked as those of engines are.

Rows that are in memory already do not go through an engine, which would take twice as long. This
code shares no expression with that of the engines, so engines are tested against it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rspmn.data.episodes import Episodes, Followed
from rspmn.data.sources.engine import Engine
from rspmn.data.sources.engine_columns import derived_column, plain_column, stored_columns
from rspmn.data.sources.memory import MemoryRows, long_rows, pair_codes_of, wide_rows
from rspmn.data.sources.open import open_source
from rspmn.data.sources.pair_codes import (
    BY_FLAG,
    FINAL_STATE,
    STEP,
    PairCodes,
)  # fmt: skip
from rspmn.data.sources.text_numbers import table_with_numbers, with_plain_columns
from rspmn.data.sources.validate import Validator
from rspmn.data.sources.window_groups import Endings
from rspmn.data.tables import Table, as_table, code_cells, is_paths
from rspmn.errors import DataError, did_you_mean, no_rows
from rspmn.schema import Schema


def read_episodes(source: object, schema: Schema) -> Episodes:
    """Read a log into memory."""
    if not (is_paths(source) or isinstance(source, Engine)):
        return _episodes(as_table(source), schema)
    with open_source(source) as opened, opened.named():
        log, names = schema.log, opened.names
        log.check_names(names, schema.variables)
        opened = with_plain_columns(opened, schema)
        types = dict(opened.frame.collect_schema())
        if not log.wide:
            wanted = (log.episode, log.time, log.flag, *schema.variables)
            for name in wanted:
                if name is not None and name not in names:
                    derived_column(types, name)  # refused with the names of all columns
            names = stored_columns(names, wanted)
        cells = (plain_column(types, name).alias(name) for name in names)
        return _episodes(opened.read(opened.frame.select(*cells)), schema)


def _episodes(table: Table, schema: Schema) -> Episodes:
    schema.log.check_names(table.names, schema.variables)
    if not table.rows:
        raise no_rows()
    table = table_with_numbers(table, schema.log)
    rows = wide_rows(table, schema) if schema.log.wide else long_rows(table, schema)
    return _assemble(rows, schema)


def _assemble(rows: MemoryRows, schema: Schema) -> Episodes:
    """Check the rows, tell steps from final states, and find out how each episode ended."""
    validator = Validator(schema.log, rows)
    validator.check_codes(rows.codes)
    is_step = rows.codes != FINAL_STATE
    codes = rows.codes[is_step]
    if schema.log.flag is not None:
        validator.check_flags(PairCodes(codes))
    chosen = (*schema.decisions, schema.utility)
    validator.check_complete(
        {name: int((rows.columns[name].missing & is_step).sum()) for name in chosen}
    )
    ends = PairCodes(codes[codes % BY_FLAG != STEP])
    last = rows.offsets[1:] - 1
    unseen = [rows.columns[name].missing[last] for name in schema.information_sets[0]]
    seen = ~np.logical_and.reduce(unseen, initial=True)
    longest = int(ends.lengths.max(initial=0))
    endings = Endings(longest, 0).of(ends, seen, schema.log)
    final = np.where(endings == Followed.STATE, last, -1)
    columns = rows.columns
    if not is_step.all():
        steps = np.flatnonzero(is_step)
        columns = {name: column.take(steps) for name, column in columns.items()}
    return Episodes(
        schema.with_kinds({name: column.kind for name, column in rows.columns.items()}),
        columns,
        np.concatenate([[0], np.cumsum(ends.lengths)]),
        endings,
        {name: rows.columns[name].take(final) for name in schema.information_sets[0]},
        rows.ids,
    )


def assemble_steps(
    episodes: Sequence[Sequence[Mapping[str, object]]],
    schema: Schema,
    endings: Sequence[Followed],
) -> Episodes:
    """Make episodes of steps given one by one."""
    for index, steps in enumerate(episodes):
        if not steps:
            raise DataError(f"episode {index} has no steps")
        for t, step in enumerate(steps):
            for name in step:
                if name not in schema.variables:
                    raise DataError(
                        f"episode {index}, step {t}: unknown variable {name!r}: "
                        f"{did_you_mean(name, schema.variables)}"
                    )
    flat = [step for steps in episodes for step in steps]
    cells = {n: np.array([step.get(n) for step in flat], dtype=object) for n in schema.variables}
    table = as_table(cells)
    columns = {name: code_cells(table.cells(name), name, schema) for name in schema.variables}
    offsets = np.concatenate([[0], np.cumsum([len(steps) for steps in episodes], dtype=np.int64)])
    none = np.zeros(len(flat), dtype=np.int64)
    codes = pair_codes_of(columns, schema, offsets, none, none)
    rows = MemoryRows(columns, offsets, np.arange(len(episodes)), codes)
    made = _assemble(rows, schema.with_log(ending="cut"))
    has_final = made.endings == Followed.STATE
    given = np.array(endings, dtype=np.int8)
    wrong = np.flatnonzero((given == Followed.TUPLE) | ((given == Followed.STATE) != has_final))
    if len(wrong):
        last = "a state only" if has_final[wrong[0]] else "a whole step"
        raise DataError(
            f"episode {wrong[0]}: its ending is {Followed(given[wrong[0]]).name}, "
            f"but its last step is {last}"
        )
    return replace(made, schema=schema.with_kinds(made.schema.kinds), endings=given)
