"""Names and values as SQL has them."""

from collections.abc import Iterable


def quoted(name: str) -> str:
    """Return the name of a column."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text."""
    return "'" + text.replace("'", "''") + "'"


def list_of(texts: Iterable[str]) -> str:
    """Return a list of texts."""
    return "[" + ", ".join(map(literal, texts)) + "]"
