"""Utilities as people write them: an expression, a list of them, words with values."""

import ast
import math
from collections.abc import Iterator, Mapping

from rspmn.errors import DataError
from rspmn.expressions.parse import Expression


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
