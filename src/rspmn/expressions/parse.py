"""Parsing of expressions: Python's syntax, of which only what is listed is accepted."""

import ast
import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from rspmn.errors import DataError, no_column

ARITHMETIC: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
COMPARISONS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
BOOLEANS = {"true": 1.0, "false": 0.0}
#: The largest constant, and the longest text.
LARGEST, LONGEST = 1e300, 10_000
BACKQUOTED = re.compile("`([^`]+)`")


@dataclass(frozen=True)
class Expression:
    """A parsed expression.

    >>> Expression.parse("reward - 0.1*cost").names
    ('reward', 'cost')
    """

    text: str
    tree: ast.expr = field(compare=False, repr=False)
    names: tuple[str, ...]  # of columns, or words that columns are compared with

    @classmethod
    def parse(cls, text: str) -> "Expression":
        """Parse a text; whatever is not an expression of columns is refused."""
        if len(text) > LONGEST:
            raise DataError(f"expression {text[:60]!r}…: longer than {LONGEST} characters")
        quoted: list[str] = []

        def placeholder(found: re.Match[str]) -> str:
            quoted.append(found[1])
            return f"backquoted_{len(quoted) - 1}_"

        try:
            tree = ast.parse(BACKQUOTED.sub(placeholder, text).strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise DataError(
                f'{text!r} is not an expression of columns: write one as in Python, "status in '
                "(died, 'sent home')\"; put names that are not identifiers in backquotes"
            ) from None
        names = {f"backquoted_{k}_": name for k, name in enumerate(quoted)}
        seen: dict[str, None] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                node.id = names.get(node.id, node.id)
                seen[node.id] = None
            _check_node(node, text)
        return cls(text, tree, tuple(name for name in seen if name.lower() not in BOOLEANS))

    @property
    def is_condition(self) -> bool:
        """Whether it is true or false."""
        is_not = isinstance(self.tree, ast.UnaryOp) and isinstance(self.tree.op, ast.Not)
        return is_not or (isinstance(self.tree, ast.Compare | ast.BoolOp) and not self._is_or_0)

    @property
    def _is_or_0(self) -> bool:
        match self.tree:
            case ast.BoolOp(op=ast.Or(), values=[_, ast.Constant(value=0)]):
                return True
        return False

    def columns(self, names: Collection[str]) -> tuple[str, ...]:
        """Return the columns that are used, of those that a table has."""
        return tuple(name for name in self.names if name in names)


def expression_of(text: str, names: Collection[str], what: str = "column") -> Expression:
    """Return the expression of columns that a text is which is not the name of a column itself.

    Parameters
    ----------
    text
        The expression.
    names
        The columns of the table.
    what
        The role of the column that is computed, for errors.
    """
    missing = no_column(what, text, names)
    if text.isidentifier():
        raise missing
    try:
        found = Expression.parse(text)
    except DataError as error:
        raise DataError(f"{missing}; {error}") from None
    if not found.columns(names):
        raise missing
    return found


def missing_of(name: str) -> str:
    """Return the condition that a column is missing.

    >>> missing_of("crp"), missing_of("crp (mg/l)")
    ('crp is missing', '`crp (mg/l)` is missing')
    """
    return f"{name if name.isidentifier() else f'`{name}`'} is missing"


def is_computed(text: str) -> bool:
    """Return whether a text is an expression of more than the name of a column.

    >>> is_computed("-cost"), is_computed("cost"), is_computed("cost (in EUR)")
    (True, False, False)
    """
    try:
        return not isinstance(Expression.parse(text).tree, ast.Name)
    except DataError:
        return False


def _check_node(node: ast.AST, text: str) -> None:
    """Refuse what is not listed."""
    if isinstance(node, ast.BinOp) and type(node.op) not in ARITHMETIC:
        raise not_understood(node, text)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        raise not_understood(node, text)
    if isinstance(node, ast.Constant):
        if not isinstance(node.value, int | float | str):
            raise not_understood(node, text)
        if not isinstance(node.value, str) and not abs(node.value) < LARGEST:
            raise not_understood(node, text)
    elif isinstance(node, ast.Compare):
        if any(isinstance(sign, ast.Is | ast.IsNot) for sign in node.ops) and not asks_missing(
            node
        ):
            raise not_understood(node, text)
    elif isinstance(node, ast.expr) and not isinstance(
        node,
        ast.Name | ast.BinOp | ast.UnaryOp | ast.BoolOp | ast.Tuple | ast.List | ast.Set,
    ):
        raise not_understood(node, text)


def asks_missing(node: ast.Compare) -> bool:
    """Say whether a comparison is `x is missing`, or `x is not missing`."""
    match node.comparators:
        case [ast.Name(id="missing")]:
            return True
    return False


def not_understood(node: ast.expr, text: str) -> DataError:
    """Return the error of a part that is not accepted."""
    return DataError(
        f"expression {text!r}: {ast.unparse(node)!r} is not supported: expected columns, numbers, "
        "+ - *, division by a number, comparisons, in, is missing, and, or, not; put names that "
        "are not identifiers in backquotes"
    )
