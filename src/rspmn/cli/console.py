"""What is printed: colours for those who see them, and tables that fit the terminal."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import IO, Any

from rspmn.display import table_lines


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
    for line in table_lines(table, width_of_output(), lambda line: styled(line, "heading")):
        print(line)
