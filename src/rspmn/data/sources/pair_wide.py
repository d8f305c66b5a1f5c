"""Pairing in the wide layout: a step and the one after it stand side by side already."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw

from rspmn.data.sources.engine import ROW, Engine, Frame
from rspmn.data.sources.log_rows import (
    COUNT,
    FIRST,
    Asked,
    columns_of,
    count_where,
    gone,
    plain_column,
)
from rspmn.data.sources.pair_codes import ADD, HINT, HOLE, NEXT_HINT, NO, VOID, Place, marked
from rspmn.errors import DataError
from rspmn.schema import Schema

#: Whether a step follows, whether there is none, and what must not be.
SAME, GONE, WRONG = "same", "gone", "wrong"


def in_blocks(source: Engine, asked: Asked, block: Sequence[str]) -> Frame:
    """Pair the blocks of a wide table: one row per episode, a block of columns for each step."""
    here, after = columns_of(asked)
    blocks = _Blocks(source, block)
    pairs = [blocks.pair(t, here, after, asked.chosen) for t in range(blocks.steps)]
    same, first, count, wrong = map(nw.col, (SAME, FIRST, COUNT, WRONG))
    place = Place(same & (wrong == 0), ~same & (wrong == 0), first, count, wrong)
    names = [ROW, COUNT] if blocks.is_numbered else []
    return marked(nw.concat(pairs, how="vertical"), place, names)


def check_block(schema: Schema, found: int) -> list[str]:
    """Return the variables of a block in order, or say why a table cannot be made of blocks."""
    block = list(schema.log.columns or schema.variables)
    if sorted(block) != sorted(schema.variables):
        raise DataError(f"columns: expected {sorted(schema.variables)}, found {sorted(block)}")
    if found % len(block) or not found:
        raise DataError(
            f"the wide layout has blocks of {len(block)} columns ({', '.join(block)}), "
            f"but the table has {found} columns"
        )
    return block


class _Blocks:
    """The blocks of a wide table, all of one variable's columns being of one type."""

    def __init__(self, source: Engine, block: Sequence[str]) -> None:
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
        found -= {nw.Unknown()}  # a column of nothing has no type
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
        """Return a variable's column in a step, empty after the last."""
        wanted = self.wanted[name]
        column = self.columns[name][t] if t < self.steps else None
        if column is None or column in self.empty:
            return nw.lit(None, wanted)
        found = plain_column(self.types, column)
        return found if self.types[column] == wanted else found.cast(wanted)

    def gone(self, name: str, t: int) -> nw.Expr:
        """Return whether a variable is missing in a step."""
        if t == self.steps or self.columns[name][t] in self.empty:
            return nw.lit(True)
        return gone(self.types, self.columns[name][t])

    def all_gone(self, names: Iterable[str], t: int) -> nw.Expr:
        """Return whether some variables are all missing in a step."""
        return nw.all_horizontal(*(self.gone(name, t) for name in names), ignore_nulls=False)

    def _hint(self, chosen: Sequence[str], t: int) -> nw.Expr:
        return nw.when(self.all_gone(chosen, t)).then(nw.lit(ADD)).otherwise(nw.lit(NO))

    def pair(
        self, t: int, here: Mapping[str, str], after: Mapping[str, str], chosen: Sequence[str]
    ) -> Frame:
        """Return each episode's step t with the step after it."""
        empty, then_empty = self.all_gone(self.columns, t), self.all_gone(self.columns, t + 1)
        paired = self.frame.select(
            *(self.cell(name, t).alias(alias) for name, alias in here.items()),
            *(self.cell(name, t + 1).alias(alias) for name, alias in after.items()),
            *([ROW] if self.is_numbered else []),
            self._hint(chosen, t).alias(HINT),
            self._hint(chosen, t + 1).alias(NEXT_HINT),
            empty.alias(GONE),
            (~then_empty).alias(SAME),
            nw.lit(t == 0).alias(FIRST),
            nw.lit(t + 1).alias(COUNT),
        )
        nothing = nw.when(nw.col(FIRST)).then(nw.lit(VOID)).otherwise(nw.lit(0))
        empty = nw.when(nw.col(SAME)).then(nw.lit(HOLE)).otherwise(nothing)
        wrong = nw.when(nw.col(GONE)).then(empty).otherwise(nw.lit(0))
        paired = paired.with_columns(wrong.alias(WRONG))
        return paired.filter(~nw.col(GONE) | (nw.col(WRONG) < 0))


def _empty_text(
    source: Engine, columns: Mapping[str, Sequence[str]], types: Mapping[str, Any]
) -> set[str]:
    """Return columns of text that hold nothing, where other steps' columns hold something else.

    A text file does not say what an empty column would have held.
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
    full = [count_where(~gone(dict(types), c)).alias(f"c{k}") for k, c in enumerate(doubtful)]
    counts = source.read(source.frame.select(*full))
    return {c for k, c in enumerate(doubtful) if not counts.cells(f"c{k}").present.any()}
