"""The command line with constraints, and how sure its answers are."""

import json
from pathlib import Path

import numpy as np
import pytest

from rspmn import Schema, learn_rspmn, windows
from rspmn.cli import main
from rspmn.envs.domains import DOMAINS


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("constraints") / "model.json"
    learn_rspmn(DOMAINS["FrozenLake"]().generate(1000, 8, 0))[0].save(path)
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


def test_how_sure(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["act", model, "--state", "cell=14", "--horizon", 20, "--sure"]
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "too close to call: up may be as good" in out
    assert "90 % interval" in out.splitlines()[2]
    assert "best with probability" in out.splitlines()[2]
    facts = json.loads(run(capsys, *words, "--json")[1])["actions"]
    assert facts[0]["sure"]["low"] <= facts[0]["sure"]["mean"] <= facts[0]["sure"]["high"]
    assert facts[3]["sure"]["low"] is None
    assert facts[3]["sure"]["notes"] == ["unsupported: the successors are unknown"]
    _, out, _ = run(capsys, "act", model, "--state", "cell=99", "--horizon", 20, "--sure")
    assert out.startswith("unsupported: cell=99 was never observed")


def test_rules(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--state", "cell=4", "--horizon", 20]
    rule = ["--forbid", "left when cell in (0, 4)", "--forbid", "up"]
    _, out, _ = run(capsys, "act", model, *words, *rule)
    assert "action = left                       (forbidden: left when cell in (0, 4))" in out
    assert "action = up                         (forbidden: up)" in out
    code, out, _ = run(capsys, "act", model, *words, "--only", "up", "--forbid", "up")
    assert code == 3
    assert out.startswith("all known actions are forbidden here: down: only up;")
    free, bound = (
        json.loads(run(capsys, "meu", model, *words, *more, "--json")[1])["meu"]
        for more in ([], rule)
    )
    assert bound < free
    assert run(capsys, "policy", model, "--horizon", 3, "--only", "up", "--json")[1].count("up") > 5
    code, _, err = run(capsys, "act", model, *words, "--forbid", "lft")
    assert code == 2
    assert err == "rspmn: --forbid: 'action' never has the value 'lft': did you mean 'left'?\n"
    _, out, _ = run(capsys, "act", model, *words, "--min-support", 1e6)
    assert "left: fewer than 1e+06 steps" in out


def test_tables_and_samples(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cases.csv").write_text("cell\n0\n4\n")
    words = ["act", model, "--table", tmp_path / "cases.csv", "--horizon", 5, "--json"]
    made = json.loads(run(capsys, *words, "--only", "up", "--only", "down when cell == 4")[1])
    assert made[0]["action"] == "up"
    out = ["--horizon", 4, "--episodes", 5, "-o", tmp_path / "drawn.csv"]
    assert run(capsys, "sample", model, *out, "--best", "--only", "up")[0] == 0
    assert set((tmp_path / "drawn.csv").read_text().split()[1].split(",")) >= {"up"}
    for option, value in (("--only", "up"), ("--forbid", "up"), ("--discount", 0.9)):
        code, _, err = run(capsys, "sample", model, *out, "--force", option, value)
        assert (code, err) == (2, f"rspmn: {option} needs --best: other decisions are random\n")
    code, _, err = run(capsys, *words, "--sure")
    assert code == 2
    assert err == "rspmn: --table and --sure cannot be combined: use --sure with --state\n"


def test_numbers_outside_the_log_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    x, a = rng.uniform(0, 10, 2000), rng.choice(["go", "stay"], 2000)
    log = {"episode": np.repeat(np.arange(400), 5), "time": np.tile(np.arange(5), 400), "x": x,
           "a": a, "u": np.where(a == "go", x, 5.0)}  # fmt: skip
    schema = Schema([["x"], ["a"]], ["a"], "u", {"x": "continuous"})
    path = tmp_path / "model.json"
    learn_rspmn(windows(log, schema, ending="end"))[0].save(path)
    for command in ("act", "meu"):
        said = run(capsys, command, path, "--state", "x=50", "--horizon", 3)[1]
        assert "warning: x=50 is outside the log, 0" in said
        assert "outside" not in run(capsys, command, path, "--state", "x=5", "--horizon", 3)[1]
    sure = run(capsys, "act", path, "--state", "x=50", "--horizon", 3, "--sure")[1]
    assert sure.count("x=50 is outside the log") == 1
