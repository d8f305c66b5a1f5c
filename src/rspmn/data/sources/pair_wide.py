"""Pairing in the wide layout: each block of columns with the next block of the same row."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw

from rspmn.data.sources.engine import ROW, Engine, Frame
from rspmn.data.sources.engine_columns import (
    EngineColumns,
    computed,
    count_where,
    is_missing,
    plain_column,
    stored_columns,
)
from rspmn.data.sources.log_rows import (
    FIRST,
    NUMBER,
    LogQuery,
    pair_columns,
)
from rspmn.data.sources.pair_codes import (
    EMPTY_ROW,
    HOLE,
    NEXT_ROW_CODE,
    NO,
    ROW_CODE,
    STATE_ROW,
    RowPlace,
    coded_pairs,
)
from rspmn.errors import DataError
from rspmn.expressions import expression_of, is_computed
from rspmn.schema import Schema

#: Columns: whether a block follows, whether the block is empty, the code of a fault.
FOLLOWED, EMPTY, WRONG = "followed", "empty", "wrong"


def wide_pairs(source: Engine, asked: LogQuery, block: Sequence[str]) -> Frame:
    """Pair the blocks of a wide table: one row per episode, a block of columns for each step."""
    here, after = pair_columns(asked)
    blocks = _Blocks(source, block, asked.schema)
    pairs = [blocks.pair(t, here, after, asked.chosen) for t in range(blocks.steps)]
    followed, first, count, wrong = map(nw.col, (FOLLOWED, FIRST, NUMBER, WRONG))
    place = RowPlace(followed & (wrong == 0), ~followed & (wrong == 0), first, count, wrong)
    names = [ROW, NUMBER] if blocks.is_numbered else []
    return coded_pairs(nw.concat(pairs, how="vertical"), place, names)


def check_block(schema: Schema, found: int) -> list[str]:
    """Return the variables of a block in order; refuse tables that cannot be made of blocks."""
    block = list(schema.log.columns or schema.variables)
    if not schema.log.columns and is_computed(schema.utility):
        raise DataError(
            f"the utility {schema.utility!r} is computed: name the columns of a block in their "
            "order by the option columns"
        )
    if len(set(block)) < len(block) or set(stored_columns(block, schema.variables)) != set(block):
        raise DataError(f"columns: expected {sorted(schema.variables)}, found {sorted(block)}")
    if found % len(block) or not found:
        raise DataError(
            f"the wide layout has blocks of {len(block)} columns ({', '.join(block)}), "
            f"but the table has {found} columns"
        )
    return block


class _Blocks:
    """The blocks of a wide table, all of one variable's columns being of one type."""

    def __init__(self, source: Engine, block: Sequence[str], schema: Schema) -> None:
        self.schema = schema
        self.frame = source.frame
        self.types = dict(source.frame.collect_schema())
        self.is_numbered = ROW in self.types
        names = [name for name in source.names if name != ROW]
        self.steps = len(names) // len(block)
        self.columns = {
            name: [names[t * len(block) + k] for t in range(self.steps)]
            for k, name in enumerate(block)
        }
        self.empty = _empty_text(source, self.columns, self.types)
        self.wanted = {name: self._type(name) for name in block}

    def _type(self, name: str) -> Any:
        """Return the type that holds all of a variable's columns."""
        found = {self.types[c] for c in self.columns[name] if c not in self.empty}
        found -= {nw.Unknown()}  # the type of a column without values
        if len(found) <= 1:
            return next(iter(found), nw.String())
        if all(dtype.is_integer() for dtype in found):
            return nw.Int64()
        if all(dtype.is_numeric() for dtype in found):
            return nw.Float64()
        raise DataError(
            f"column {name!r}: expected values of one type, found "
            f"{', '.join(sorted(map(str, found)))} in different steps"
        )

    def cell(self, name: str, t: int) -> nw.Expr:
        """Return a variable's column in a step; all of it is missing after the last."""
        if name not in self.columns:
            return self._computed(name, t)
        wanted = self.wanted[name]
        column = self.columns[name][t] if t < self.steps else None
        if column is None or column in self.empty:
            return nw.lit(None, wanted)
        found = plain_column(self.types, column)
        return found if self.types[column] == wanted else found.cast(wanted)

    def _computed(self, name: str, t: int) -> nw.Expr:
        """Return a variable that is computed; the utility of a row that is no step is missing."""
        expression = expression_of(name, self.columns)
        used = expression.columns(self.columns)
        cells = {each: (self.cell(each, t), self.wanted[each]) for each in used}
        found = computed(expression, EngineColumns(cells, self.columns))
        if name != self.schema.utility:
            return found
        return nw.when(~self.all_missing([*used, *self.schema.decisions], t)).then(found)

    def is_missing(self, name: str, t: int) -> nw.Expr:
        """Return whether a variable is missing in a step."""
        if name not in self.columns:
            return self.cell(name, t).is_null()
        if t == self.steps or self.columns[name][t] in self.empty:
            return nw.lit(True)
        return is_missing(self.types, self.columns[name][t])

    def all_missing(self, names: Iterable[str], t: int) -> nw.Expr:
        """Return whether some variables are all missing in a step."""
        return nw.all_horizontal(*(self.is_missing(name, t) for name in names), ignore_nulls=False)

    def _row_code(self, chosen: Sequence[str], t: int) -> nw.Expr:
        return nw.when(self.all_missing(chosen, t)).then(nw.lit(STATE_ROW)).otherwise(nw.lit(NO))

    def pair(
        self, t: int, here: Mapping[str, str], after: Mapping[str, str], chosen: Sequence[str]
    ) -> Frame:
        """Return each episode's step t with the step after it."""
        empty, then_empty = self.all_missing(self.columns, t), self.all_missing(self.columns, t + 1)
        paired = self.frame.select(
            *(self.cell(name, t).alias(alias) for name, alias in here.items()),
            *(self.cell(name, t + 1).alias(alias) for name, alias in after.items()),
            *([ROW] if self.is_numbered else []),
            self._row_code(chosen, t).alias(ROW_CODE),
            self._row_code(chosen, t + 1).alias(NEXT_ROW_CODE),
            empty.alias(EMPTY),
            (~then_empty).alias(FOLLOWED),
            nw.lit(t == 0).alias(FIRST),
            nw.lit(t + 1).alias(NUMBER),
        )
        nothing = nw.when(nw.col(FIRST)).then(nw.lit(EMPTY_ROW)).otherwise(nw.lit(0))
        empty = nw.when(nw.col(FOLLOWED)).then(nw.lit(HOLE)).otherwise(nothing)
        wrong = nw.when(nw.col(EMPTY)).then(empty).otherwise(nw.lit(0))
        paired = paired.with_columns(wrong.alias(WRONG))
        return paired.filter(~nw.col(EMPTY) | (nw.col(WRONG) < 0))


def _empty_text(
    source: Engine, columns: Mapping[str, Sequence[str]], types: Mapping[str, Any]
) -> set[str]:
    """Return columns of text without values, where other steps' columns are of another type.

    In a text file an empty column has no type.
    """
    doubtful = [
        column
        for of_steps in columns.values()
        if len({types[c] for c in of_steps}) > 1
        for column in of_steps
        if types[column] in (nw.String, nw.Unknown)
    ]
    if not doubtful:
        return set()
    full = [count_where(~is_missing(dict(types), c)).alias(f"c{k}") for k, c in enumerate(doubtful)]
    counts = source.read(source.frame.select(*full))
    return {c for k, c in enumerate(doubtful) if not counts.cells(f"c{k}").present.any()}
