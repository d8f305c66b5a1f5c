"""Files are written whole or not at all, and nothing that a killed process left stays."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from rspmn.cli import main
from rspmn.errors import ModelFileError
from rspmn.files import own_folder, refuse_unwritable, write_atomically, written_whole

#: Writes half a file, says so, and waits to be killed.
HALF = """
import sys, time
from rspmn.files import written_whole
with written_whole(sys.argv[1]) as part:
    part.write_bytes(b"half")
    print("begun", flush=True)
    time.sleep(60)
"""


def half_written(path: Path) -> subprocess.Popen[str]:
    running = subprocess.Popen(
        [sys.executable, "-c", HALF, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    with running.stdout as told:
        assert told.readline() == "begun\n"
    return running


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(b"old")
    alive, killed = half_written(path), half_written(path)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 3
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert len(list(tmp_path.iterdir())) == 2, "what another process is writing stays"
    alive.kill()
    alive.wait()
    write_atomically(path, b"newer")
    assert list(tmp_path.iterdir()) == [path]


def test_only_names_that_are_ours_are_removed(tmp_path: Path) -> None:
    others = [".model.json.old.part", "model.json.abcdefgh.part", ".model.json.abcdefgh"]
    for name in others:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".model.json.abcdefgh.part").write_text("left by an older version")
    write_atomically(tmp_path / "model.json", b"x")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "model.json"])


def test_two_writers_of_one_file(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    contents = [bytes([k]) * 200_000 for k in range(4)]

    def write(content: bytes) -> None:
        for _ in range(20):
            write_atomically(path, content)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if path.exists():
            assert path.read_bytes() in contents
    for thread in threads:
        thread.join()
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(b"old")

    def fail() -> None:
        with written_whole(path) as part:
            part.write_bytes(b"half")
            raise OSError("no space")

    with pytest.raises(ModelFileError, match="cannot be written: no space"):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_files_are_written_where_folders_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows, which has no locks of this kind either, and writes out no read-only files."""
    opened, synced = os.open, os.fsync

    def refuse_folders(path: str, flags: int, *mode: int, **of: Any) -> int:
        if Path(path).is_dir() and not of:  # `shutil.rmtree` does it otherwise on Windows
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, *mode, **of)

    def refuse_read_only(file: int) -> None:
        if fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(9, "Bad file descriptor")
        synced(file)

    monkeypatch.setattr("rspmn.files.fcntl", None)
    monkeypatch.setattr(os, "open", refuse_folders)
    monkeypatch.setattr(os, "fsync", refuse_read_only)
    left = tmp_path / ".model.json.abcdefgh.part"
    left.mkdir()
    write_atomically(tmp_path / "model.json", b"new")
    assert (tmp_path / "model.json").read_bytes() == b"new"
    assert len(list(tmp_path.iterdir())) == 2, "what may be another process's stays"


def test_folders_of_processes_that_live_stay(tmp_path: Path) -> None:
    with own_folder(tmp_path, "work-") as one, own_folder(tmp_path, "work-") as other:
        assert one.exists()
        assert other.exists()
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_refused_before_there_is_anything(tmp_path: Path) -> None:
    """Below a file, which root cannot change either."""
    (tmp_path / "file").write_text("old")
    for path in (tmp_path / "file" / "model.json", tmp_path / "no" / "model.json"):
        with pytest.raises(ModelFileError) as late:
            write_atomically(path, b"x")
        with pytest.raises(ModelFileError) as early:
            refuse_unwritable(path)
        assert str(early.value) == str(late.value)
        assert str(early.value).startswith(f"{path}: cannot be written: N")
    refuse_unwritable(tmp_path / "file")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "old")]


def test_commands_refuse_such_a_place_before_they_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fault: a log was read and learned from, and then there was nowhere to write the model."""
    (tmp_path / "file").write_text("old")
    output = str(tmp_path / "file" / "m.json")
    assert main(["learn", "no log.csv", "--schema", "no schema.toml", "-o", output]) == 2
    assert capsys.readouterr().err == f"rspmn: {output}: cannot be written: Not a directory\n"


def test_what_is_no_file_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, b"text")
    reader.join()
    assert read == [b"text"]
    assert pipe.is_fifo()
    write_atomically(os.devnull, b"text")
    assert Path(os.devnull).is_char_device()
    assert [*tmp_path.iterdir()] == [pipe]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_device_that_is_full(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="/dev/full: cannot be written: No space left"):
        write_atomically("/dev/full", b"text")
    assert Path("/dev/full").is_char_device()


def test_the_longest_names(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    write_atomically(path, b"text")
    assert [*tmp_path.iterdir()] == [path]
    with pytest.raises(ModelFileError, match="File name too long"):
        write_atomically(tmp_path / ("x" * 256), b"text")
