"""Writing files whole or not at all."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_atomically(path: str | Path, content: bytes) -> None:
    """Put `content` at `path`; whatever interrupts it, the old file stays as it was."""
    target = _resolved(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.chmod(_mode(target))
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)  # gone already if all went well


@contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Give a place to write to, beside `path`; if all goes well it becomes `path`."""
    target = _resolved(path)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        part = Path(folder) / target.name
        yield part
        part.chmod(_mode(target))
        part.replace(target)


def _resolved(path: str | Path) -> Path:
    try:
        return Path(path).resolve()
    except RuntimeError:  # what Python 3.11 and 3.12 make of a loop of links
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None


def _mode(target: Path) -> int:
    """Permissions as an ordinary write would leave them (mkstemp's are private)."""
    if target.exists():
        return target.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
