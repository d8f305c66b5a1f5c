"""`make demo` prints commands that work, and every block of the README runs after it, in order."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pages import ROOT, Folder, Here, blocks_of, run_blocks

DEMO = re.findall(r"examples/\w+\.py", (ROOT / "Makefile").read_text(encoding="utf-8"))


def with_this_python(folder: Path) -> Folder:
    """Return what `make demo` leaves, with this Python in the place of a new environment."""
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "activate").write_text(f'PATH="{programs}:$PATH"\n')
    for name, command in {"python": sys.executable, "rspmn": f"{sys.executable} -m rspmn"}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (programs / name).chmod(0o755)
    made = Here(folder)
    made.said = "".join(made.script(ROOT / script) for script in DEMO)
    return made


def with_make(folder: Path) -> Folder:
    """Return a copy of the repository after `make demo`: nothing is installed but by that."""
    skipped = shutil.ignore_patterns(".*", "build", "__pycache__")
    shutil.copytree(ROOT, folder, ignore=skipped, dirs_exist_ok=True)
    made = Folder(folder)
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
        assert demo.shell([command])


def test_every_block_runs_as_pasted(demo: Folder) -> None:
    run_blocks(demo, blocks_of(ROOT / "README.md"))
