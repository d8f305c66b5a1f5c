"""`rspmn explain`."""

import json
from pathlib import Path

import pytest

from rspmn.cli import main
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.envs.grid_universe import grid_universe
from rspmn.envs.paper_grid import paper_grid
from rspmn.learn import learn_rspmn


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explain")
    words = ["generate", "GridUniverse", "--episodes", "300", "-o", path / "log.csv"]
    assert main([*map(str, words)]) == 0
    learn_rspmn(grid_universe().generate(300, 8, 0))[0].save(path / "model.json")
    return path


def test_a_state(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["explain", folder / "model.json", "--state", "cell=0", "--horizon", 8, "-t", 2]
    code, out, err = run(capsys, *words, "--log", folder / "log.csv")
    assert (code, err) == (0, "")
    for part in (
        "6 steps to go",
        "90 % interval",
        "effect of each variable",
        "similar logged steps",
    ):
        assert part in out
    facts = json.loads(run(capsys, *words, "--json")[1])
    assert facts["t"] == 2
    assert f"decision: action={facts['decided']['action']}" in out


def test_a_picture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["explain", folder / "model.json", "--horizon", 8, "-o"]
    assert run(capsys, *words, folder / "why.svg")[0] == 0
    assert "<svg" in (folder / "why.svg").read_text()
    code, _, err = run(capsys, *words, folder / "why.gif")
    assert code == 2
    assert "expected a name ending in .svg or .png" in err


def test_what_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "explain", folder / "model.json", "--horizon", 3, "-t", 3)
    assert code == 2
    assert "t: expected 0 to 2, found 3" in err


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("grid") / "grid.json"
    paper_grid().save(path)
    return path


def test_returns(grid: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["returns", grid, "--state", "x=0", "y=0", "--horizon", 4]
    code, out, err = run(capsys, *words, "--tail", 0.1)
    assert (code, err) == (0, "")
    assert out.startswith("return over 4 steps: mean 16")  # -1 - 1 + 9 + 9
    assert "if the worst 10 % are optimised:\nreturn over 4 steps: mean 16" in out
    facts = json.loads(run(capsys, *words, "--tail", 0.1, "--json")[1])
    assert facts["mean"] == facts["tail"]["cvar"]["0.1"] == 16
    code, _, err = run(capsys, *words, "--tail", 0.1, "-t", 1)
    assert code == 2
    assert "needs -t 0" in err


def test_information(grid: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["information", grid, "--state", "x=0", "--horizon", 4]
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1].split() == ["y", "5", "50%"]
    (facts,) = json.loads(run(capsys, *words, "--observe", "y", "--json")[1])
    assert (facts["variable"], facts["gain"], facts["changes"]) == ("y", 5.0, 0.5)
    code, _, err = run(capsys, *words, "--observe", "x")
    assert code == 2
    assert "'x' is already given in the state" in err
    out = run(capsys, "information", grid, "--state", "x=0", "y=0", "--horizon", 4)[1]
    assert "all variables observed before the decision are given in --state" in out


def test_sensitivity(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sensitivity", folder / "lake.json", "--state", "cell=14", "--horizon", 8]
    frozen, _ = learn_rspmn(frozen_lake().generate(2000, 20, 0))
    frozen.save(folder / "lake.json")
    expected = frozen.policy(8).sensitivity({"cell": 14})
    code, out, err = run(capsys, *words, "--top", 2)
    assert (code, err) == (0, "")
    assert out.splitlines() == [str(each) for each in expected[:2]]
    facts = json.loads(run(capsys, *words, "--event", "cell=13", "--json")[1])
    assert facts
    assert all(each["event"] == "cell=13" for each in facts)
    out = run(capsys, "sensitivity", folder / "model.json", "--state", "cell=0", "--horizon", 8)[1]
    assert "no change of a single probability changes the best action" in out  # nothing is random
