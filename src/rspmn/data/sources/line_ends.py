"""Text files whose lines end in different ways, copied with one."""

import gzip
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

#: The number of bytes that are read at a time.
CHUNK = 1 << 20
#: A line end: CR LF, LF or CR, also with more carriage returns before the line feed.
LINE_END = re.compile(rb"\r+\n|\r|\n")


def open_bytes(path: str) -> Any:
    """Open a file, compressed or not, to read its bytes."""
    return gzip.open(path, "rb") if path.lower().endswith(".gz") else Path(path).open("rb")


def with_one_line_end(paths: Sequence[str], folder: str) -> list[str]:
    """Copy text files to a folder, every line with LF at its end; cells in quotes stay as they are.

    Returns the names of the copies.
    """
    copies = []
    for number, path in enumerate(paths):
        copy = Path(folder) / f"lines-{number}.csv"
        with open_bytes(path) as source, copy.open("wb") as target:
            target.writelines(_converted(source))
        copies.append(str(copy))
    return copies


def _converted(source: Any) -> Iterator[bytes]:
    """Return the text in chunks; a carriage return at the end of one waits for the next."""
    is_quoted, rest = False, b""
    while chunk := source.read(CHUNK):
        text = rest + chunk
        kept = len(text.rstrip(b"\r"))
        text, rest = text[:kept], text[kept:]
        parts = text.split(b'"')
        for k, part in enumerate(parts):
            if k:
                is_quoted = not is_quoted
                yield b'"'
            yield part if is_quoted else LINE_END.sub(b"\n", part)
    yield b"\n" if rest and not is_quoted else rest
