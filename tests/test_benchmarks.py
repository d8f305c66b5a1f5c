"""Every benchmark runs from start to end, at its smallest setting."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"
#: The smallest setting of each that has several.
ARGUMENTS = {
    "act": "--variables 2 --knots 3 --states 20 --rows 100",
    "bandits": "--seeds 1 --data wine",
    "domains": "--seeds 1 --episodes 100",
    "practice": "numbers --worlds CartPole --shares 0.5 --seeds 1",
    "evaluate_numbers": "--seeds 1 --only corridor --most 30",
    "explain": "--episodes 100 --states 5",
    "futures": "--seeds 1 --most 10 --domains FrozenLake --jobs 1",
    "growth": "--episodes 100 --sides 4",
    "growth_operations": "--worlds line --cells 20",
    "habits": "--seeds 1 --worlds lake --episodes 100 --moves drawn --free 0.2",
    "ippc": "--cases Elevators-1",
    "ippc_large": "--cases SkillTeaching-1 --episodes 10 --drawn 10",
    "learn_rspmn": "--episodes 100",
    "learn_spmn": "--rows 10000",
    "logged_bandits": "--logs 1 --rows 200 --contexts numbers --loggers random",
    "many_windows": "100000",
    "missing": "--seeds 1 --worlds lake --episodes 100 --shares 0.1",
    "noise": "--worlds GridUniverse --columns 3 --episodes 100",
    "ratios": "HEAD --rounds 1 --share 0.01 --only act",
    "rings": "--machines 4 --episodes 100",
    "scale": "--steps 10000 --runs 1",
    "serve": "--rows 10 --batches 2 --singles 10 --episodes 300",
    "serve_load": "--requests 100",
    "soft_boxes": "--seeds 1 --only hospital",
    "trust": "--seeds 1 --cases GridUniverse --most 100 --draws 10",
}


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_it_runs(name: str, tmp_path: Path) -> None:
    if name in ("bandits", "logged_bandits", "soft_boxes", "evaluate_numbers", "practice"):
        pytest.importorskip("sklearn")
    if name in ("ippc", "ippc_large"):
        pytest.importorskip("pyRDDLGym", reason="needs rspmn[rddl]")
    command = [sys.executable, str(FOLDER / f"{name}.py"), *ARGUMENTS.get(name, "").split()]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
