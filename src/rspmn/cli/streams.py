"""Files that commands read and write; `-` is standard input or output."""

import csv
import io
import re
import sys
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from rspmn.errors import ModelFileError
from rspmn.files import own_folder, write_atomically

#: The beginning of the names of folders in which streams are kept.
KEPT = ".rspmn-stream-"


class InputFile(click.ParamType):  # type: ignore[type-arg] # generic since Click 8.3
    """The name of a file to read; `-` is standard input, kept in a file while a command runs."""

    name = "file"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name of the file."""
        if value != "-" or ctx is None:
            return value
        if sys.stdin is None:
            raise click.ClickException("standard input is closed: give a file instead of -")
        content = sys.stdin.buffer.read()
        folder = ctx.with_resource(own_folder(tempfile.gettempdir(), KEPT))
        path = folder / f"standard_input{_ending(content)}"
        path.write_bytes(content)
        return str(path)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        """Let the shell complete names of files."""
        return click.Path().shell_complete(ctx, param, incomplete)


def is_printed(path: Path) -> bool:
    """Return whether a file stands for standard output."""
    return path.parent.name.startswith(KEPT)


def with_streams(message: str) -> str:
    """Return a message that speaks of standard input, not of the file in which it is kept."""
    folder = re.escape(tempfile.gettempdir())
    kept = (
        rf"{folder}[/\\]{re.escape(KEPT)}[^/\\]*[/\\]standard_input(\.(csv|tsv|jsonl|parquet|gz))+"
    )
    return re.sub(kept, "standard input", message)


def _ending(content: bytes) -> str:
    """Return the ending of a file with this content."""
    if content[:2] == b"\x1f\x8b":
        return f"{_ending(_unzipped_start(content))}.gz"
    first = content.split(b"\n", 1)[0]
    if content[:4] == b"PAR1":
        return ".parquet"
    if first.startswith(b"{"):  # a model is one object, JSON lines are many
        return ".jsonl"
    return ".tsv" if b"\t" in first and b"," not in first else ".csv"


def _unzipped_start(content: bytes) -> bytes:
    """Return the first bytes of what is compressed; empty if that cannot be read."""
    try:
        return zlib.decompressobj(wbits=31).decompress(content, max_length=10_000)
    except zlib.error:  # said when the file is read
        return b""


class OutputFile(InputFile):
    """The name of a file to write; `-` is standard output.

    Parameters
    ----------
    ending
        That of the file which is kept until it is printed.
    """

    def __init__(self, ending: str) -> None:
        self.ending = ending

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name of the file."""
        if value != "-" or ctx is None:
            return value
        folder = ctx.with_resource(own_folder(tempfile.gettempdir(), KEPT))
        return str(folder / f"standard_output{self.ending}")


def check_ending(path: str, *endings: str) -> str:
    """Return how the name of a file to write ends; refuse other endings than these."""
    ending = Path(path).suffix.lower()
    if ending not in endings:
        listed = " or ".join(filter(None, [", ".join(endings[:-1]), endings[-1]]))
        raise ModelFileError(f"{path}: expected a name ending in {listed}")
    return ending


def write_table(path: str, table: Mapping[str, Sequence[Any]]) -> None:
    """Write a table as CSV, whole or not at all."""
    check_ending(path, ".csv")
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(table)
    writer.writerows(
        ["" if value is None else value for value in row]
        for row in zip(*table.values(), strict=True)
    )
    write_atomically(path, text.getvalue().encode())
