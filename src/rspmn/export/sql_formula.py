"""Values, and formulas over the state, as SQL has them; missing values are NULL."""

from collections.abc import Callable
from typing import Any

from rspmn.data.sources import connect
from rspmn.errors import EvidenceError
from rspmn.expressions.formula import Formula
from rspmn.values import Mark, Value


def literal(value: Value | None) -> str:
    """Return a value as SQL has it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        if "\0" in value:
            raise EvidenceError(f"{value!r}: text with a NUL character cannot be written in SQL")
        return connect.literal(value)
    if isinstance(value, Mark):
        raise EvidenceError(f"{value} cannot be written in SQL")
    return repr(value)


#: The expression of a column.
Column = Callable[[str], str]


def sql_condition(formula: Formula, column: Column) -> str:
    """Return a formula as a condition; a number holds where it is not 0.

    >>> sql_condition([">", ["column", "floor"], 0.0], lambda name: f'"{name}"')
    '("floor" > 0.0)'
    """
    match formula:
        case ["both", one, other]:
            return f"({sql_condition(one, column)} AND {sql_condition(other, column)})"
        case ["not", one]:
            return f"(NOT {sql_condition(one, column)})"
        case ["lacks", one]:
            return f"({_any(one, column)} IS NULL)"
        case ["in", one, list(words)]:
            return f"({_any(one, column)} IN ({', '.join(map(literal, words))}))"
        case ["same", one, other]:
            return f"({_any(one, column)} = {_any(other, column)})"
        case [("==" | "!=" | "<" | "<=" | ">" | ">=") as sign, one, other]:
            word = {"==": "=", "!=": "<>"}.get(sign, sign)
            return f"({_number(one, column)} {word} {_number(other, column)})"
        case ["column", str(name)]:
            return column(name)
    return f"({_number(formula, column)} <> 0)"


def sql_number(formula: Formula, column: Column) -> str:
    """Return a formula as a number; a condition is 1 where it holds, else 0."""
    if _is_condition(formula):
        return _number(["number", formula], column)
    return _number(formula, column)


def _is_condition(formula: Formula) -> bool:
    numbers = ("column", "+", "-", "*", "/", "filled", "number")
    return isinstance(formula, list) and formula[0] not in numbers


def _number(formula: Any, column: Column) -> str:
    match formula:
        case ["column", str(name)]:
            return column(name)
        case [("+" | "-" | "*" | "/") as sign, one, other]:
            return f"({_number(one, column)} {sign} {_number(other, column)})"
        case ["filled", one]:
            return f"COALESCE({_number(one, column)}, 0.0)"
        case ["number", one]:
            found = sql_condition(one, column)
            return f"(CASE WHEN {found} THEN 1.0 WHEN NOT {found} THEN 0.0 END)"
    return repr(formula)


def _any(formula: Any, column: Column) -> str:
    return sql_condition(formula, column) if _is_condition(formula) else _number(formula, column)
