"""Commands that are killed at any moment: whole files or none, and nothing left by the next run."""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from effort import SOAK, mostly_soak
from lake_files import write_lake

#: How often each command is killed. The campaign of docs/reliability.md: KILLS=50.
KILLS = int(os.environ.get("KILLS", "5" if SOAK else "2"))


@dataclass(frozen=True)
class Killed:
    """A command, the files that it writes, and what is a whole one."""

    words: tuple[str, ...]
    outputs: tuple[str, ...]
    has_same_bytes: bool = True


COMMANDS = {
    "learn": Killed(
        ("learn", "log.csv", "--schema", "s.toml", "-o", "m.json", "--force"), ("m.json",)
    ),
    "generate": Killed(
        ("generate", "Maze", "--episodes", "20000", "-o", "made.parquet", "--force"),
        ("made.parquet",),
    ),
    "report": Killed(("report", "model.json", "-o", "page.html", "--force"), ("page.html",), False),
    "reproduce": Killed(
        ("reproduce", "--domains", "GridUniverse", "--scale", "0.1", "--seeds", "2", "-o", "."),
        ("reproduction/table_1.csv", "reproduction/table_2.csv", "reproduction/curves.csv"),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lake(tmp_path_factory.mktemp("inputs"))


def start(words: tuple[str, ...], folder: Path) -> subprocess.Popen[bytes]:
    """Start a command in a folder, which is where it keeps temporary files, too."""
    (folder / "tmp").mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "rspmn", *words], cwd=folder, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
    )  # fmt: skip


def kill(running: subprocess.Popen[bytes]) -> None:
    """Kill a command and all that it has started, if it still runs."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def left(folder: Path) -> list[str]:
    """Return what is in a folder and was meant to be there for a while only."""
    hidden = [str(path) for path in folder.rglob(".*")]
    return hidden + [str(path) for path in (folder / "tmp").iterdir()]


def wait_until(condition: Callable[[], Any], running: subprocess.Popen[bytes]) -> None:
    while not condition() and running.poll() is None:
        time.sleep(0.001)


@pytest.mark.parametrize("name", mostly_soak(COMMANDS, ["learn"]))
def test_killed_at_any_moment(name: str, inputs: Path, tmp_path: Path) -> None:
    """Half of the kills come at any time, the others while a file is being written."""
    command, rng = COMMANDS[name], random.Random(0)
    for path in inputs.iterdir():
        (tmp_path / path.name).symlink_to(path)
    began = time.monotonic()
    assert start(command.words, tmp_path).wait() == 0
    seconds = time.monotonic() - began
    assert left(tmp_path) == []
    outputs = [tmp_path / output for output in command.outputs]
    whole = [output.read_bytes() for output in outputs]
    for number in range(KILLS):
        if name == "reproduce":  # it would have nothing to do otherwise
            cells = sorted((tmp_path / "reproduction" / "cells").glob("*.json"))
            for cell in rng.sample(cells, len(cells) // 2):
                cell.unlink()
        running = start(command.words, tmp_path)
        if number % 2:
            wait_until(lambda: any(tmp_path.rglob(".*.part")), running)
            time.sleep(rng.random() * 0.02)
        else:
            time.sleep(rng.random() * seconds)
        kill(running)
        for output, content in zip(outputs, whole, strict=True):
            found = output.read_bytes()
            assert found == content if command.has_same_bytes else found.endswith(b"</html>\n")
    assert start(command.words, tmp_path).wait() == 0
    assert left(tmp_path) == []
    if command.has_same_bytes:
        assert [output.read_bytes() for output in outputs] == whole


@pytest.mark.soak
def test_a_service_that_was_killed_starts_again(inputs: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "model.json").symlink_to(inputs / "model.json")

    def answers() -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as asked:
                asked.sendall(b"GET /models HTTP/1.0\r\nHost: localhost\r\n\r\n")
                return b"200 OK" in asked.recv(4096)
        except OSError:
            return False

    for number in range(KILLS):
        running = start(("serve", "model.json", "--port", str(port)), tmp_path)
        if number % 2:
            time.sleep(random.Random(number).random())
        else:
            wait_until(answers, running)
            assert answers()
        kill(running)
        assert left(tmp_path) == []


# ---- nowhere to write ------------------------------------------------------------------------

#: Runs the command line with files of at most so many bytes, as on a disk that is full.
LIMITED = """
import resource, sys
from rspmn.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("name", mostly_soak(["learn", "generate", "report"], ["learn"]))
def test_a_full_disk(name: str, inputs: Path, tmp_path: Path) -> None:
    """The old file stays, nothing is left, and one line says why."""
    command = COMMANDS[name]
    for path in inputs.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "tmp").mkdir()
    old = tmp_path / command.outputs[0]
    old.write_text("old")
    # what measures coverage would write files, too
    known = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, "1000", *command.words], cwd=tmp_path, check=False,
        capture_output=True, text=True, env={**known, "TMPDIR": str(tmp_path / "tmp")},
    )  # fmt: skip
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert old.read_text() == "old"
    assert left(tmp_path) == []


#: Root may write anywhere, unless this is taken from it.
NO_RIGHTS = ["setpriv", "--bounding-set", "-dac_override"] if os.geteuid() == 0 else []


@pytest.mark.skipif(
    bool(NO_RIGHTS) and shutil.which("setpriv") is None, reason="root writes anywhere"
)
@pytest.mark.parametrize("name", mostly_soak(COMMANDS, ["learn"]))
def test_a_folder_that_is_read_only(name: str, inputs: Path, tmp_path: Path) -> None:
    """The old file stays, nothing is left, and one line says why."""
    command, folder = COMMANDS[name], tmp_path / "only read"
    old = folder / command.outputs[0]
    old.parent.mkdir(parents=True)
    for path in inputs.iterdir():
        (folder / path.name).symlink_to(path)
    old.write_text("old")
    (tmp_path / "tmp").mkdir()
    held = sorted(folder.rglob("*"))
    closed = [folder, *filter(Path.is_dir, held)]
    for each in closed:
        each.chmod(0o555)
    done = subprocess.run(
        [*NO_RIGHTS, sys.executable, "-m", "rspmn", *command.words], cwd=folder, check=False,
        capture_output=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
    )  # fmt: skip
    for each in closed:
        each.chmod(0o755)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "Permission denied" in done.stderr
    assert old.read_text() == "old"
    assert sorted(folder.rglob("*")) == held
    assert left(tmp_path) == []
