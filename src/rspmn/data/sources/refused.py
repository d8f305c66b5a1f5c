"""Columns that cannot be learned from, in tables of DuckDB: refused only if they are used.

Such a column is stored as a struct of one field, whose name says why and which holds the cells as
text. A table may so have columns of values of several types as long as nobody asks for them, and
`LogFormat.numbers` can still read the numbers in their text.
"""

from typing import Any

import narwhals as nw

from rspmn.data.sources.connect import quoted
from rspmn.errors import DataError

#: What the name of the field begins with.
REFUSED = "rspmn refuses: "


def refused_cell(text: str, reason: str) -> str:
    """Return the SQL of a cell that is refused, given the SQL of its text."""
    return f"struct_pack({quoted(REFUSED + reason)} := {text})"


def refuse_if_marked(dtype: Any) -> None:
    """Raise the error of a column, if it was stored as one that is refused."""
    reason = reason_of(dtype)
    if reason is not None:
        raise DataError(reason)


def reason_of(dtype: Any) -> str | None:
    """Return why a column is refused; None if it is not."""
    if dtype != nw.Struct:
        return None
    first: str = dtype.fields[0].name
    return first.removeprefix(REFUSED) if first.startswith(REFUSED) else None


def refused_text(name: str, dtype: Any) -> nw.Expr:
    """Return the cells of a refused column as text."""
    return nw.col(name).struct.field(dtype.fields[0].name)
