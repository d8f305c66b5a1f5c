"""Values as SQL has them."""

from rspmn.data.sources import connect
from rspmn.errors import EvidenceError
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
