"""Tables of figures that are made by several commands: rows of other cases stay as they are."""

from collections.abc import Sequence
from pathlib import Path


def write_rows(
    path: Path, about: str, command: str, lines: Sequence[str], order: Sequence[str]
) -> None:
    """Write a page with a table; rows of other cases that are there already are kept.

    Parameters
    ----------
    path
        The page.
    about
        What comes before the table, with a place for "{commands}" behind "Made by ".
    command
        What made the rows.
    lines
        The head of the table, its rule, and the rows.
    order
        The first cells of all rows, in the order of the page.
    """
    commands, rows = [f"`{command}`"], {_case(row): row for row in lines[2:]}
    if path.exists():
        text = path.read_text(encoding="utf-8")
        if lines[0] in text:
            made = text.split("Made by ")[1].split(".\n")[0].split(",\n")
            commands = [*(part for part in made if part not in commands), *commands]
            old = [row for row in text.splitlines() if row.startswith("| ")][1:]
            rows = {_case(row): row for row in old} | rows
    table = [*lines[:2], *(rows[name] for name in order if name in rows)]
    text = about.format(commands=",\n".join(commands)) + "\n".join(table) + "\n"
    path.write_text(text, encoding="utf-8")


def _case(row: str) -> str:
    return row.split("|")[1].strip()
