"""The columns of an engine's table, as they are stored or derived by an expression."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from rspmn.data.sources.connect import refuse_if_marked
from rspmn.data.sources.engine import ROW
from rspmn.data.tables import refuse_type
from rspmn.errors import DataError, no_column
from rspmn.expressions import Expression, expression_of
from rspmn.expressions.evaluate import Term, fold

#: The beginning of a date, or of a date and a time, in text.
ISO_DATE = r"\d{4}-\d{2}-\d{2}"
#: The time zone at the end of a date and a time in text.
ZONE = r":\d{2}(\.\d+)?\s*(Z|[-+]\d{2}:?\d{2})$"
#: A number in text.
NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"


def plain_column(types: dict[str, Any], name: str, what: str = "column") -> nw.Expr:
    """Return a column as strings, numbers, booleans or dates; any other type is refused."""
    if name not in types:
        names = [found for found in types if found != ROW]
        raise no_column(what, name, names)
    if name == "*" or (name.startswith("^") and name.endswith("$")):
        raise DataError(f"column {name!r}: this name is reserved by engines: rename it")
    found, dtype = nw.col(name), types[name]
    if dtype in (nw.Categorical, nw.Enum, nw.Unknown):  # the type of a column without values
        return found.cast(nw.String)
    if dtype in (nw.Int128, nw.UInt128) or (dtype == nw.Decimal and not has_fraction_digits(dtype)):
        return found.cast(nw.Int64)
    if dtype == nw.Decimal:
        return found.cast(nw.Float64)
    refuse_if_marked(dtype)
    if dtype.is_nested() or dtype in (nw.Binary, nw.Duration, nw.Time, nw.Object):
        raise refuse_type(name, dtype)
    return found


def has_fraction_digits(dtype: Any) -> bool:
    """Return whether decimals have digits after the point."""
    return getattr(dtype, "scale", 1) != 0


def is_missing(types: dict[str, Any], name: str) -> nw.Expr:
    """Return whether a cell is missing, as in `rspmn.data.cells`: null, NaN, empty text."""
    return _is_missing(plain_column(types, name), types[name])


def _is_missing(found: nw.Expr, dtype: Any) -> nw.Expr:
    if dtype.is_float():
        # DuckDB answers isnan by the bounds in a Parquet file, and these leave NaN out.
        return found.is_null() | (~found.is_finite() & (found.abs() != math.inf))
    if dtype in (nw.String, nw.Categorical, nw.Enum, nw.Unknown):
        return found.is_null() | (found == "")
    return found.is_null()


def count_where(condition: nw.Expr) -> nw.Expr:
    """Return the number of rows where a condition holds; not every engine adds up booleans."""
    return nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0)).sum()


def derived_column(types: dict[str, Any], name: str, what: str = "column") -> nw.Expr:
    """Return a column of a table, or what an expression of its columns computes."""
    if name in types:
        return plain_column(types, name, what)
    names = [found for found in types if found != ROW]
    expression = expression_of(name, names, what)
    used = {each: (plain_column(types, each), types[each]) for each in expression.columns(names)}
    return computed(expression, EngineColumns(used, names))


def computed(expression: Expression, columns: "EngineColumns") -> nw.Expr:
    """Return what an expression computes."""
    found = fold(expression, columns)
    value: nw.Expr = found.value
    return value + 0.0 if found.sort == "number" else value  # there is one zero


@dataclass(frozen=True, eq=False)
class EngineColumns:
    """Expressions of an engine's columns; null is missing."""

    cells: Mapping[str, tuple[nw.Expr, Any]]  # the columns that are used, and their types
    names: Collection[str]  # of all columns

    def is_missing(self, name: str) -> nw.Expr:
        """Return whether a cell of a column is missing."""
        return _is_missing(*self.cells[name])

    def column(self, name: str) -> Term:
        """Return a column: booleans are conditions."""
        if name not in self.cells:
            return Term("word", name)
        found, dtype = self.cells[name]
        if dtype == nw.Boolean:
            return Term("condition", found)
        present = nw.when(~self.is_missing(name))
        if dtype.is_numeric():
            return Term("number", present.then(found.cast(nw.Float64)))
        if dtype.is_temporal():
            raise DataError(f"column {name!r}: expected numbers, text or booleans, found {dtype}")
        return Term("text", present.then(found))

    def compare(self, sign: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
        """Return the condition that two numbers compare so."""
        return sign(one, other)

    def is_in(self, text: Any, words: list[str]) -> Any:
        """Return the condition that a text is one of some words."""
        return nw.when(~text.is_null()).then(text.is_in(words))

    def is_same(self, one: Any, other: Any) -> Any:
        """Return the condition that two texts are the same."""
        return one == other

    def lacks(self, value: Any) -> Any:
        """Return the condition that a value is missing."""
        return value.is_null()

    def both(self, one: Any, other: Any) -> Any:
        """Return the conjunction."""
        return one & other

    def negate(self, condition: Any) -> Any:
        """Return the negation."""
        return ~condition

    def number(self, condition: Any) -> Any:
        """Return 1 where a condition holds and 0 where it does not."""
        return condition.cast(nw.Float64)

    def zero_if_missing(self, number: Any) -> Any:
        """Return numbers with 0 where they are missing."""
        return number.fill_null(0.0)


def stored_columns(names: Collection[str], wanted: Collection[str | None]) -> list[str]:
    """Return the columns of a table that some columns, stored or derived, are made of."""
    used: set[str] = set()
    for name in wanted:
        if name is not None and name not in names:
            used.update(expression_of(name, names).columns(names))
        elif name is not None:
            used.add(name)
    return [name for name in names if name in used]
