"""`rspmn explain`."""

import json
from pathlib import Path

import pytest

from rspmn.cli import main
from rspmn.envs.grid_universe import grid_universe
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
    for part in ("6 steps to go", "90 % interval", "what decides", "logged steps like this"):
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
