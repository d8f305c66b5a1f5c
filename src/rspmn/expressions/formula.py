"""Expressions as plain lists, which other languages evaluate: a page, a query, a file.

A formula is a number; `["column", name]`; or an operation and its operands:

========================= =============================================================
``+ - * /``               numbers
``== != < <= > >=``       two numbers; 1 or 0
``in``                    a text and a list of words; 1 or 0
``same``                  two texts; 1 or 0
``lacks``                 1 where the operand is missing, else 0
``both``                  two conditions: 0 where one is 0, else 1
``not``                   1 where a condition is 0, 0 where it is 1
``number``                a condition as a number
``filled``                a number, 0 where it is missing
========================= =============================================================

A missing operand makes the result missing, except of ``lacks``, ``filled``, and of ``both`` where
the other operand is 0. Conditions in columns are 1 and 0.
"""

import ast
import math
import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rspmn.errors import DataError
from rspmn.expressions.evaluate import Term, fold
from rspmn.expressions.parse import Expression

#: A formula, as JSON has it.
Formula = float | list[Any]
#: What a column holds.
Holds = Literal["number", "condition", "text"]

SIGNS: Mapping[Callable[[Any, Any], Any], str] = {
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
}


def formula_of(expression: Expression, columns: Mapping[str, Holds]) -> Formula:
    """Return an expression as a formula.

    `columns`: what each column holds.

    Examples
    --------
    >>> formula_of(Expression.parse("floor > 0"), {"floor": "number"})
    ['>', ['column', 'floor'], 0.0]
    """
    found: Formula = _plain(fold(expression, _Formulas(columns)).value)
    return found


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of a formula, with the operators of numbers."""

    value: list[Any]

    def __add__(self, other: Any) -> "_Part":
        return _part("+", self, other)

    def __radd__(self, other: Any) -> "_Part":
        return _part("+", other, self)

    def __sub__(self, other: Any) -> "_Part":
        return _part("-", self, other)

    def __rsub__(self, other: Any) -> "_Part":
        return _part("-", other, self)

    def __mul__(self, other: Any) -> "_Part":
        return _part("*", self, other)

    def __rmul__(self, other: Any) -> "_Part":
        return _part("*", other, self)

    def __truediv__(self, other: Any) -> "_Part":
        return _part("/", self, other)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, _Part) else value


def _part(kind: str, *operands: Any) -> _Part:
    return _Part([kind, *map(_plain, operands)])


@dataclass(frozen=True, eq=False)
class _Formulas:
    """The algebra that writes expressions as formulas."""

    columns: Mapping[str, Holds]

    @property
    def names(self) -> Collection[str]:
        return self.columns.keys()

    def column(self, name: str) -> Term:
        if name not in self.columns:
            return Term("word", name)
        return Term(self.columns[name], _part("column", name))

    def compare(self, sign: Callable[[Any, Any], Any], one: Any, other: Any) -> _Part:
        return _part(SIGNS[sign], one, other)

    def is_in(self, text: Any, words: list[str]) -> _Part:
        return _part("in", text, list(words))

    def is_same(self, one: Any, other: Any) -> _Part:
        return _part("same", one, other)

    def lacks(self, value: Any) -> _Part:
        return _part("lacks", value)

    def both(self, one: Any, other: Any) -> _Part:
        return _part("both", one, other)

    def negate(self, condition: Any) -> _Part:
        return _part("not", condition)

    def number(self, condition: Any) -> _Part:
        return _part("number", condition)

    def zero_if_missing(self, number: Any) -> _Part:
        return _part("filled", number)


def summed(parts: object) -> str:
    """Return one expression for a utility as people write it.

    Parameters
    ----------
    parts
        An expression; or a list of them, which are added up; or a mapping of columns to the values
        of their words, `{"status": {"cured": 100, "died": -100}}`, in which other words count 0.

    Examples
    --------
    >>> summed(["reward", "-0.1*cost"])
    'reward - 0.1*cost'
    >>> summed({"status": {"cured": 100, "died": -100}})
    "100*(status == 'cured') - 100*(status == 'died')"
    """
    if isinstance(parts, str):
        return parts
    texts = list(_summands(parts))
    return texts[0] + "".join(
        f" - {text[1:].lstrip()}" if text.startswith("-") else f" + {text}" for text in texts[1:]
    )


def _summands(parts: object) -> Iterator[str]:
    if isinstance(parts, list | tuple) and parts:
        for part in parts:
            yield from [_summand(part)] if isinstance(part, str) else _summands(part)
    elif isinstance(parts, Mapping) and parts:
        for name, values in parts.items():
            if not isinstance(values, Mapping) or not values:
                raise DataError(
                    f"utility: expected the values of the words of {name!r}, found {values!r}"
                )
            yield from (_worth(str(name), word, value) for word, value in values.items())
    else:
        raise DataError(
            "utility: expected a column, an expression such as '-cost', a list of them, or the "
            f"values of the words of a column, {{'status': {{'died': -100}}}}, found {parts!r}"
        )


def _summand(text: str) -> str:
    """Return an expression that can be added to others; a name that is no word is quoted."""
    try:
        tree = Expression.parse(text).tree
    except DataError:
        return f"`{text}`"
    is_simple = isinstance(tree, ast.Name | ast.Constant | ast.BinOp) or (
        isinstance(tree, ast.UnaryOp) and not isinstance(tree.op, ast.Not)
    )
    return text.strip() if is_simple else f"({text.strip()})"


def _worth(name: str, word: object, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(f"utility: {name!r}, {word!r}: expected a number, found {value!r}")
    return f"{value!r}*({name if name.isidentifier() else f'`{name}`'} == {word!r})"
