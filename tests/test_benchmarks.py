"""Every benchmark runs from start to end, at its smallest setting."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"
#: The smallest setting of each.
ARGUMENTS = {
    "act": "--variables 2 --knots 3 --states 20 --rows 100",
    "bandits": "--seeds 1 --data wine",
    "density": "",
    "domains": "--seeds 1 --episodes 100",
    "functions_entered": "",
    "futures": "--seeds 1 --most 10 --domains FrozenLake --jobs 1",
    "growth": "--episodes 100 --sides 4",
    "habits": "--seeds 1 --worlds lake --episodes 100 --moves drawn --free 0.2",
    "hospital": "",  # the world only
    "learn_rspmn": "--episodes 100",
    "learn_spmn": "--rows 10000",
    "many_windows": "100000",
    "missing": "--seeds 1 --worlds lake --episodes 100 --shares 0.1",
    "noise": "--worlds GridUniverse --columns 3 --episodes 100",
    "scale": "--steps 10000 --runs 1",
    "soft_boxes": "--seeds 1 --only hospital",
    "startup": "",
    "tied_leaves": "",
    "trust": "--seeds 1 --cases GridUniverse --most 100 --draws 10",
}


def test_each_benchmark_has_a_smallest_setting() -> None:
    assert [*ARGUMENTS] == sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.mark.soak
@pytest.mark.parametrize("name", ARGUMENTS)
def test_it_runs(name: str, tmp_path: Path) -> None:
    if name in ("bandits", "soft_boxes"):
        pytest.importorskip("sklearn")
    command = [sys.executable, str(FOLDER / f"{name}.py"), *ARGUMENTS[name].split()]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
