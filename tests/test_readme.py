"""`make demo` prints commands that work, and every block of the README runs after it, in order."""

import io
import os
import re
import shutil
import subprocess
import sys
import tomllib
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from rspmn import Schema
from rspmn.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.M | re.S)
DEMO = re.findall(r"examples/\w+\.py", (ROOT / "Makefile").read_text(encoding="utf-8"))


@dataclass
class Folder:
    """A folder after `make demo`, and what that printed."""

    path: Path
    said: str

    def shell(self, lines: list[str]) -> None:
        """Run lines of a shell, which must succeed and say nothing on standard error."""
        self.run("bash", "-e", "-c", "\n".join(lines))

    def run(self, *words: str) -> str:
        """Return what a program prints; it must succeed and say nothing on standard error."""
        done = subprocess.run(
            words, cwd=self.path, capture_output=True, text=True, check=False, env=self.env
        )
        assert (done.returncode, done.stderr) == (0, ""), words
        return done.stdout

    @property
    def env(self) -> dict[str, str]:
        """The environment of a user who has nothing else set."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        source = {} if (self.path / "src").exists() else {"PYTHONPATH": str(ROOT / "src")}
        return {**kept, **source}


class Here(Folder):
    """The same with this Python, in which commands are run: to start it for each takes long."""

    def shell(self, lines: list[str]) -> None:
        """Run each line; what the shell makes of the words of a command is left to it."""
        as_words = "rspmn() { printf '%s\\n' \"$@\"; }"
        for line in lines:
            words = self.run("bash", "-e", "-c", f"{as_words}\n{line}").splitlines()
            said, errors = io.StringIO(), io.StringIO()
            with chdir(self.path), redirect_stdout(said), redirect_stderr(errors):
                code = main(words) if words else 0
            assert (code, errors.getvalue()) == (0, ""), line


def with_this_python(folder: Path) -> Folder:
    """Return what `make demo` leaves, with this Python in the place of a new environment."""
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "activate").write_text(f'PATH="{programs}:$PATH"\n')
    for name, command in {"python": sys.executable, "rspmn": f"{sys.executable} -m rspmn"}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (programs / name).chmod(0o755)
    made = Here(folder, "")
    made.said = "".join(made.run(sys.executable, str(ROOT / script)) for script in DEMO)
    return made


def with_make(folder: Path) -> Folder:
    """Return a copy of the repository after `make demo`: nothing is installed but by that."""
    skipped = shutil.ignore_patterns(".*", "build", "__pycache__")
    shutil.copytree(ROOT, folder, ignore=skipped, dirs_exist_ok=True)
    made = Folder(folder, "")
    done = subprocess.run(
        ["make", "demo"], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
    )
    made.said = done.stdout
    return made


@pytest.fixture(scope="module", params=["here", pytest.param("fresh", marks=pytest.mark.soak)])
def demo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    folder = tmp_path_factory.mktemp("demo")
    return (with_make if request.param == "fresh" else with_this_python)(folder)


def test_the_demo_prints_paths_and_commands_that_work(demo: Folder) -> None:
    paths = re.findall(r"build/[\w./]+\w", demo.said)
    assert len(paths) > 6
    for path in paths:
        assert (demo.path / path).exists(), path
    commands = re.findall(r"\.venv/bin/rspmn .*", demo.said)
    assert len(commands) == len(DEMO)
    for command in commands:
        assert demo.run("sh", "-c", command)


MARK = "--- pasted ---"


def paste(session: subprocess.Popen[str], code: str) -> str:
    """Return what a block prints in a Python, line by line as if typed at its prompt."""
    assert session.stdin is not None
    assert session.stdout is not None
    session.stdin.write(f"{code}\nprint({MARK!r})\n")
    session.stdin.flush()
    return "".join(iter(session.stdout.readline, f"{MARK}\n"))


def test_every_block_runs_as_pasted(demo: Folder) -> None:
    errors, activation, printed = demo.path / "errors.txt", "", ""
    with errors.open("w") as file, subprocess.Popen(
        [demo.path / ".venv/bin/python", "-i", "-q", "-u"], cwd=demo.path, env=demo.env,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True,
    ) as session:  # fmt: skip
        for kind, block in BLOCKS:
            if kind == "python":
                printed = paste(session, block)
            elif kind == "text":
                assert printed == block, errors.read_text()
            elif kind == "sh":
                lines = [line for line in block.splitlines() if not line.startswith("make ")]
                demo.shell([activation, *lines])
                activation = next((line for line in lines if "activate" in line), activation)
            else:
                assert kind == "toml"
                assert Schema.from_dict(tomllib.loads(block)).utility == "profit"
    prompts = re.compile(r">>> |\.\.\. ")
    assert prompts.sub("", errors.read_text()).strip() == ""
