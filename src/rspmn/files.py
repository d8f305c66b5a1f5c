"""Writing files whole or not at all, and folders that do not outlive their process.

Whatever is being written is in a folder of its own, beside the file that it will be. The process
that writes holds a lock on that folder, which ends with the process, however it ends. So the next
one that writes there can tell what a killed process left from what another is still writing.
"""

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rspmn.errors import ModelFileError, RspmnError

#: None on Windows.
fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None

#: How the names of folders end that are removed with their process, and what is before that.
PART = ".part"
RANDOM = "[a-z0-9_]{8}"
#: So many bytes of a file's name are in that of the folder in which it is written.
LONGEST = 200


def write_atomically(
    path: str | Path, content: bytes, error: type[RspmnError] = ModelFileError
) -> None:
    """Put `content` at `path`; whatever interrupts it, the old file stays as it was."""
    with written_whole(path, error) as part:
        part.write_bytes(content)


@contextmanager
def written_whole(path: str | Path, error: type[RspmnError] = ModelFileError) -> Iterator[Path]:
    """Give a place to write to, beside `path`; if all goes well it becomes `path`.

    A device or a pipe stays what it is, and what was written is copied to it. What the system
    refuses is raised as `error`.
    """
    with _beside(path, error) as (target, folder):
        part = folder / target.name
        yield part
        if _is_stream(target):
            with part.open("rb") as file, target.open("wb") as stream:
                shutil.copyfileobj(file, stream)
            return
        with part.open("rb+") as file:  # Windows writes out only what is open for writing
            os.fsync(file.fileno())
        part.chmod(_mode(target))
        part.replace(target)


def refuse_unwritable(path: str | Path, error: type[RspmnError] = ModelFileError) -> None:
    """Raise what `written_whole` would, before there is anything to write."""
    with _beside(path, error):
        pass


@contextmanager
def _beside(path: str | Path, error: type[RspmnError]) -> Iterator[tuple[Path, Path]]:
    """Give the file that `path` leads to, and a folder beside it that is removed at the end."""
    try:
        target = _resolved(path)
        parent = tempfile.gettempdir() if _is_stream(target) else target.parent
        # with what is added the name may be too long, as most systems allow 255 bytes
        name = target.name.encode(errors="surrogateescape")[:LONGEST].decode(errors="ignore")
        with own_folder(parent, f".{name}.") as folder:
            yield target, folder
    except OSError as refused:
        raise error(f"{path}: cannot be written: {refused.strerror or refused}") from None


@contextmanager
def own_folder(parent: str | Path, prefix: str) -> Iterator[Path]:
    """Make a folder that is removed at the end; those that killed processes left are, too.

    Parameters
    ----------
    parent
        Where the folder is made.
    prefix
        What its name begins with; eight letters and ".part" come after it.
    """
    pattern = re.compile(re.escape(prefix) + RANDOM + re.escape(PART))
    with os.scandir(parent) as entries:
        left = [Path(entry) for entry in entries if pattern.fullmatch(entry.name)]
    for path in left:
        _remove_if_left(path)
    folder, lock = _locked_folder(parent, prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked_folder(parent: str | Path, prefix: str) -> tuple[Path, int]:
    """Return a new folder and the descriptor by which it is locked."""
    while True:
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=prefix, suffix=PART))
        with suppress(FileNotFoundError):  # another process took it for one that was left
            lock = _opened(folder)
            _lock(lock, wait=True)
            if folder.exists():
                return folder, lock
            os.close(lock)


def _remove_if_left(path: Path) -> None:
    """Remove a folder or a file, unless a process holds its lock."""
    with suppress(OSError):  # it is gone, or not ours
        lock = _opened(path)
        try:
            if _lock(lock, wait=False):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        finally:
            os.close(lock)


def _opened(path: Path) -> int:
    """Return the descriptor of a folder; of the null device where folders cannot be opened."""
    if fcntl is None:
        return os.open(os.devnull, os.O_RDONLY)
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW)


def _lock(descriptor: int, wait: bool) -> bool:
    """Lock what is open; return whether that could be done, which some file systems cannot."""
    with suppress(OSError):
        if fcntl is None:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return True
    return False


def _resolved(path: str | Path) -> Path:
    try:
        return Path(path).resolve()
    except RuntimeError:  # what Python 3.11 and 3.12 make of a loop of links
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None


def _is_stream(target: Path) -> bool:
    """Tell whether there is something that cannot be replaced by a file: a device, a pipe."""
    return target.exists() and not (target.is_file() or target.is_dir())


def _mode(target: Path) -> int:
    """Permissions as an ordinary write would leave them (those of new folders are private)."""
    if target.exists():
        return target.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
