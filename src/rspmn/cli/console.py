"""What is printed: colours for those who see them, and tables that fit the width."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import IO, Any


class ExitCode(IntEnum):
    """How a command ended, as the shell sees it."""

    ANSWERED = 0
    PROBLEMS = 1  # of a log or a table, by the doctor: nothing can be learned from it
    WRONG_INPUT = 2  # options, files or values that make no sense
    UNSUPPORTED = 3  # the model cannot answer: the log does not say
    INTERRUPTED = 130
    BROKEN_PIPE = 141


#: What a kind of text looks like on a terminal, as the parameters of an escape sequence.
STYLES = {"heading": "1", "best": "1;32", "warning": "33", "error": "1;31", "dim": "2"}
#: Cells of tables are shortened to this where the width is limited.
LONGEST_CELL = 40


def wants_colour(stream: IO[str] | None = None) -> bool:
    """Tell whether a stream is a terminal whose user has not asked for plain text."""
    found = sys.stdout if stream is None else stream
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return found is not None and found.isatty() and not plain


def styled(text: str, style: str, stream: IO[str] | None = None) -> str:
    """Return a text in a style, if the stream shows it."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if wants_colour(stream) else text


def warn(text: str) -> None:
    """Print what makes an answer doubtful."""
    print(styled(f"warning: {text}", "warning"))


def width_of_output() -> int | None:
    """Return the number of columns of the terminal; None if the output goes elsewhere."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def print_table(table: Mapping[str, Sequence[Any]]) -> None:
    """Print columns side by side, in blocks one below the other if they are too wide."""
    for line in table_lines(table, width_of_output()):
        print(line)


def table_lines(table: Mapping[str, Sequence[Any]], width: int | None = None) -> list[str]:
    """Return the lines of a table.

    Parameters
    ----------
    table
        Columns by their names.
    width
        The number of characters in a line. Long cells are shortened, and columns that do not fit
        are continued in a block of their own, below. Without it, nothing is.

    Examples
    --------
    >>> table_lines({"cell": [0, 14], "action": ["up", "down"]})
    ['cell  action', '   0  up', '  14  down']
    >>> table_lines({"cell": [0, 14], "action": ["up", "down"]}, width=8)
    ['cell', '   0', '  14', '', 'action', 'up', 'down']
    """
    columns = [_laid_out(name, column, width) for name, column in table.items()]
    lines: list[str] = []
    for block in _blocks(columns, width):
        lines += [""] if lines else []
        rows = ["  ".join(row).rstrip() for row in zip(*block, strict=True)]
        lines += [styled(rows[0], "heading"), *rows[1:]]
    return lines


def _laid_out(name: str, column: Sequence[Any], width: int | None) -> list[str]:
    """Return the cells of a column, all of one length: numbers to the right, text to the left."""
    cells = [name, *map(cell_text, column)]
    if width is not None:
        cells = [shortened(cell, min(LONGEST_CELL, width)) for cell in cells]
    longest = max(map(len, cells))
    if all(map(_is_number, column)):
        return [cell.rjust(longest) for cell in cells]
    return [cell.ljust(longest) for cell in cells]


def _is_number(value: Any) -> bool:
    """Tell whether a cell is a number, or a share in percent."""
    try:
        float(cell_text(value).removesuffix("%") or 0)
    except ValueError:
        return isinstance(value, bool)
    return True


def _blocks(columns: list[list[str]], width: int | None) -> list[list[list[str]]]:
    """Return the columns in groups, each of which fits the width."""
    blocks: list[list[list[str]]] = [[]]
    used = 0
    for column in columns:
        needed = len(column[0]) + (2 if blocks[-1] else 0)
        if width is not None and blocks[-1] and used + needed > width:
            blocks.append([])
            used, needed = 0, len(column[0])
        blocks[-1].append(column)
        used += needed
    return blocks


def shortened(text: str, length: int) -> str:
    """Return a text of at most a length."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def cell_text(value: Any) -> str:
    """Return a value as tables show it."""
    if isinstance(value, float):
        from rspmn.values import short  # with numpy: not before there is a number to show

        return short(value)
    return "" if value is None else str(value)
