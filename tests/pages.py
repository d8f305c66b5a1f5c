"""Pages whose blocks are run as a reader would paste them: shell, Python, and what that prints."""

import io
import os
import re
import runpy
import subprocess
import tomllib
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from rspmn import Schema
from rspmn.cli import main

T = TypeVar("T")
R = TypeVar("R")

ROOT = Path(__file__).parent.parent
#: Lines of a shell that make an environment, which is there already.
PREPARING = ("make ", "pip install ", "python3 -m venv ")


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """Return the fenced blocks of a page: the language and the text of each."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)


@dataclass
class Folder:
    """A folder to work in, what `make demo` printed there, and its Python."""

    path: Path
    said: str = ""
    python: str = ".venv/bin/python"

    def shell(self, lines: list[str]) -> str:
        """Return what lines of a shell print; they must say nothing on standard error."""
        return self.run("bash", "-e", "-c", "\n".join(lines))

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

    def shell(self, lines: list[str]) -> str:
        """Run each line; what the shell makes of the words of a command is left to it."""
        names = "rspmn", ".venv/bin/rspmn"
        as_words = "\n".join(f"{name}() {{ printf '%s\\n' \"$@\"; }}" for name in names)
        said = ""
        for line in lines:
            words = self.run("bash", "-e", "-c", f"{as_words}\n{line}").splitlines()
            code, printed = self._printed(main, words) if words else (0, "")
            assert code == 0, line
            said += printed
        return said

    def script(self, path: Path) -> str:
        """Return what a script prints."""
        return self._printed(partial(runpy.run_path, run_name="__main__"), str(path))[1]

    def _printed(self, function: Callable[[T], R], argument: T) -> tuple[R, str]:
        """Return what a function returns and prints; it must say nothing on standard error."""
        said, errors = io.StringIO(), io.StringIO()
        with chdir(self.path), redirect_stdout(said), redirect_stderr(errors):
            found = function(argument)
        assert errors.getvalue() == ""
        return found, said.getvalue()


MARK = "--- pasted ---"


def paste(session: subprocess.Popen[str], code: str) -> str:
    """Return what a block prints in a Python, line by line as if typed at its prompt."""
    assert session.stdin is not None
    assert session.stdout is not None
    session.stdin.write(f"{code}\nprint({MARK!r})\n")
    session.stdin.flush()
    return "".join(iter(session.stdout.readline, f"{MARK}\n"))


def run_blocks(folder: Folder, blocks: list[tuple[str, str]]) -> None:
    """Run blocks from top to bottom; each must do what the page says, and warn of nothing."""
    errors, activation, printed = folder.path / "errors.txt", "", ""
    with errors.open("w") as file, subprocess.Popen(
        [folder.python, "-i", "-q", "-u"], cwd=folder.path, env=folder.env,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True,
    ) as session:  # fmt: skip
        for kind, block in blocks:
            if kind == "python":
                printed = paste(session, block)
            elif kind == "text":
                assert printed == block, errors.read_text()
            elif kind == "sh":
                lines = [line for line in block.splitlines() if not line.startswith(PREPARING)]
                folder.shell([activation, *lines])
                activation = next((line for line in lines if "activate" in line), activation)
            else:
                assert kind == "toml"
                assert Schema.from_dict(tomllib.loads(block)).utility == "profit"
    prompts = re.compile(r">>> |\.\.\. ")
    assert prompts.sub("", errors.read_text()).strip() == ""
