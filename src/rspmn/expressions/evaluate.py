"""Evaluation of expressions: a fold over the parts, by an algebra that knows the columns."""

import ast
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rspmn.errors import DataError, did_you_mean
from rspmn.expressions.parse import (
    ARITHMETIC,
    BOOLEANS,
    COMPARISONS,
    Expression,
    not_understood,
)
from rspmn.types import Array

#: The sort of an operand. A word is text in the expression, or a name that is no column.
Sort = Literal["number", "condition", "text", "word"]


@dataclass(frozen=True, eq=False)
class Term:
    """An operand: its sort and its value, a Python constant or what the algebra computes with."""

    sort: Sort
    value: Any

    @property
    def is_constant(self) -> bool:
        """Whether the value does not depend on columns."""
        return isinstance(self.value, str | float)


class Algebra(Protocol):
    """What an expression is evaluated with; missing values stay missing unless it says otherwise.

    Numbers have the operators + - * / of Python.
    """

    @property
    def names(self) -> Collection[str]:
        """The names of all columns."""

    def column(self, name: str) -> Term:
        """Return a column; a word if there is none of this name."""

    def compare(self, sign: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
        """Return the condition that two numbers compare so."""

    def is_in(self, text: Any, words: list[str]) -> Any:
        """Return the condition that a text is one of some words."""

    def is_same(self, one: Any, other: Any) -> Any:
        """Return the condition that two texts are the same."""

    def lacks(self, value: Any) -> Any:
        """Return the condition that a number, a condition or a text is missing."""

    def both(self, one: Any, other: Any) -> Any:
        """Return the conjunction; false if one is false, also where the other is missing."""

    def negate(self, condition: Any) -> Any:
        """Return the negation."""

    def number(self, condition: Any) -> Any:
        """Return 1 where a condition holds and 0 where it does not."""

    def zero_if_missing(self, number: Any) -> Any:
        """Return numbers with 0 where they are missing."""


def evaluate(expression: Expression, columns: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return the value of an expression for each row: numbers, conditions as 1 and 0, or text.

    Parameters
    ----------
    columns
        Arrays of one length: numbers, booleans, or objects that are text. NaN and None are missing,
        also in what is returned.

    Examples
    --------
    >>> evaluate(
    ...     Expression.parse("floor > 0 and not busy"),
    ...     {"floor": np.array([0, 1, 2]), "busy": np.array([False, False, True])},
    ... )
    array([0., 1., 0.])
    """
    return np.asarray(fold(expression, Arrays(columns)).value)


def fold(expression: Expression, algebra: Algebra) -> Term:
    """Return a number, a condition or a text that an expression computes from columns."""
    try:
        found = _Fold(expression.text, algebra).of(expression.tree)
    except RecursionError:
        raise DataError(f"expression {expression.text[:60]!r}…: nested too deeply") from None
    if found.is_constant:
        raise DataError(f"expression {expression.text!r}: no column in it")
    return found


@dataclass(frozen=True)
class _Fold:
    """Evaluates the nodes of an expression, operands first."""

    text: str
    algebra: Algebra

    def of(self, node: ast.expr) -> Term:
        match node:
            case ast.Constant(value=str() as word):
                return Term("word", word)
            case ast.Constant(value=number):
                return Term("number", float(number))  # type: ignore[arg-type]
            case ast.Name(id=name):
                return self._name(name)
            case ast.UnaryOp(op=ast.Not()):
                return Term("condition", self.algebra.negate(self._condition(node.operand)))
            case ast.UnaryOp(op=ast.USub()):
                return Term("number", 0.0 - self._number(node.operand))
            case ast.UnaryOp():
                return Term("number", self._number(node.operand))
            case ast.BinOp():
                return self._arithmetic(node)
            case ast.BoolOp(op=ast.And()):
                found = map(self._condition, node.values)
                return Term("condition", reduce(self.algebra.both, found))
            case ast.BoolOp(values=[first, ast.Constant(value=0)]):
                return Term("number", self.algebra.zero_if_missing(self._number(first)))
            case ast.BoolOp():  # a or b is not (not a and not b)
                none = reduce(self.algebra.both, map(self._negated, node.values))
                return Term("condition", self.algebra.negate(none))
            case ast.Compare(ops=[ast.Is() | ast.IsNot() as sign]):
                found = self.algebra.lacks(self._present(self.of(node.left)).value)
                is_so = isinstance(sign, ast.Is)
                return Term("condition", found if is_so else self.algebra.negate(found))
            case ast.Compare():
                sides = [node.left, *node.comparators]
                found = map(self._comparison, sides[:-1], node.ops, sides[1:])
                return Term("condition", reduce(self.algebra.both, found))
        raise not_understood(node, self.text)

    def _name(self, name: str) -> Term:
        found = self.algebra.column(name)
        if found.sort == "word" and name.lower() in BOOLEANS:
            return Term("number", BOOLEANS[name.lower()])
        return found

    def _number(self, node: ast.expr) -> Any:
        """Return a number; a condition counts 1 where it holds."""
        term = self._present(self.of(node))
        if term.sort == "text":
            raise self._error(
                f"{ast.unparse(node)}: expected numbers, found text; map its values to numbers, "
                f'utility = {{{ast.unparse(node)} = {{word = 1, "other word" = -1}}}}'
            )
        if term.sort == "condition":
            return self.algebra.zero_if_missing(self.algebra.number(term.value))
        return term.value

    def _condition(self, node: ast.expr) -> Any:
        """Return a condition; a number holds where it is not 0."""
        term = self._present(self.of(node))
        if term.sort == "text" or term.is_constant:
            raise self._error(f"{ast.unparse(node)!r} is not a condition: compare it with a value")
        if term.sort == "number":
            return self.algebra.compare(operator.ne, term.value, 0.0)
        return term.value

    def _negated(self, node: ast.expr) -> Any:
        return self.algebra.negate(self._condition(node))

    def _arithmetic(self, node: ast.BinOp) -> Term:
        one, other = self._number(node.left), self._number(node.right)
        if isinstance(node.op, ast.Div) and (not isinstance(other, float) or other == 0):
            raise self._error(
                f"{ast.unparse(node)!r}: expected division by a constant other than 0"
            )
        return Term("number", ARITHMETIC[type(node.op)](one, other))

    def _comparison(self, left: ast.expr, sign: ast.cmpop, right: ast.expr) -> Any:
        if isinstance(sign, ast.In | ast.NotIn):
            several = right.elts if isinstance(right, ast.Tuple | ast.List | ast.Set) else [right]
            found = self._is_one_of(self._present(self.of(left)), list(map(self.of, several)))
            return found if isinstance(sign, ast.In) else self.algebra.negate(found)
        one, other = self.of(left), self.of(right)
        if one.is_constant and other.is_constant:
            self._present(one)
            self._present(other)
            raise self._error(f"{ast.unparse(left)} and {ast.unparse(right)} are both constants")
        if "text" in (one.sort, other.sort):
            if not isinstance(sign, ast.Eq | ast.NotEq):
                raise self._error("text can be compared by == and != only")
            text, than = (one, other) if one.sort == "text" else (other, one)
            found = self._is_one_of(text, [than])
            return found if isinstance(sign, ast.Eq) else self.algebra.negate(found)
        return self.algebra.compare(COMPARISONS[type(sign)], self._plain(one), self._plain(other))

    def _is_one_of(self, term: Term, several: list[Term]) -> Any:
        if term.is_constant:
            raise self._error("no column on the left of in")
        if term.sort == "text" and all(each.sort == "word" for each in several):
            return self.algebra.is_in(term.value, [each.value for each in several])
        if term.sort == "text":
            found = [self._same_text(term, each) for each in several]
        else:
            number = self._plain(term)
            others = map(self._plain, several)
            found = [self.algebra.compare(operator.eq, number, other) for other in others]
        none = reduce(self.algebra.both, map(self.algebra.negate, found))
        return self.algebra.negate(none)

    def _same_text(self, term: Term, other: Term) -> Any:
        if other.sort == "word":
            return self.algebra.is_in(term.value, [other.value])
        if other.sort != "text":
            raise self._error(
                "text is compared with a number: quote the number, and text that is the name of a "
                "column"
            )
        return self.algebra.is_same(term.value, other.value)

    def _plain(self, term: Term) -> Any:
        """Return a number that is to be compared; a word is one if it reads as one."""
        if term.sort == "condition":
            return self.algebra.number(term.value)
        if term.sort == "word":
            if term.value.lower() in BOOLEANS:
                return BOOLEANS[term.value.lower()]
            try:
                return float(term.value)
            except ValueError:
                raise self._error(f"numbers are compared with the text {term.value!r}") from None
        return term.value

    def _present(self, term: Term) -> Term:
        """Return a term that must not be a word; a word was to be a column."""
        if term.sort == "word":
            names = self.algebra.names
            raise self._error(f"no column {term.value!r}: {did_you_mean(term.value, names)}")
        return term

    def _error(self, message: str) -> DataError:
        return DataError(f"expression {self.text!r}: {message}")


class ArrayAlgebra:
    """Expressions of arrays; NaN is missing in numbers and conditions, None in text."""

    def compare(self, sign: Callable[[Any, Any], Any], one: Any, other: Any) -> Array:
        """Return 1 where two numbers compare so, 0 where not."""
        return np.where(np.isnan(one) | np.isnan(other), np.nan, sign(one, other))

    def is_in(self, text: Any, words: list[str]) -> Array:
        """Return 1 where a text is one of some words."""
        wanted = set(words)
        return np.array([np.nan if t is None else t in wanted for t in text.tolist()], float)

    def is_same(self, one: Any, other: Any) -> Array:
        """Return 1 where two texts are the same."""
        pairs = zip(one.tolist(), other.tolist(), strict=True)
        return np.array([np.nan if None in pair else pair[0] == pair[1] for pair in pairs], float)

    def lacks(self, value: Any) -> Array:
        """Return 1 where a value is missing, 0 where not."""
        if value.dtype.kind == "O":
            return np.array([each is None for each in value.tolist()], float)
        return np.asarray(np.isnan(value), dtype=np.float64)

    def both(self, one: Any, other: Any) -> Array:
        """Return 0 where one of them is 0, else their product."""
        return np.where((one == 0) | (other == 0), 0.0, one * other)

    def negate(self, condition: Any) -> Any:
        """Return 1 where a condition is 0."""
        return 1.0 - condition

    def number(self, condition: Any) -> Any:
        """Return the condition, which is 1 or 0."""
        return condition

    def zero_if_missing(self, number: Any) -> Array:
        """Return numbers with 0 where they are missing."""
        return np.where(np.isnan(number), 0.0, number)


@dataclass(frozen=True, eq=False)
class Arrays(ArrayAlgebra):
    """Expressions of arrays by name; booleans are conditions."""

    arrays: Mapping[str, NDArray[Any]]

    @property
    def names(self) -> Collection[str]:
        """The names of all columns."""
        return self.arrays.keys()

    def column(self, name: str) -> Term:
        """Return a column; a word if there is none of this name."""
        if name not in self.arrays:
            return Term("word", name)
        found = self.arrays[name]
        if found.dtype.kind not in "biuf":
            return Term("text", found)
        return Term("condition" if found.dtype.kind == "b" else "number", found.astype(float))
