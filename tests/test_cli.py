"""The command line as a person meets it: right answers, and one sentence for wrong input."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rspmn import RSPMN, Episodes, NetworkBuilder, Schema
from rspmn.circuit import Categorical
from rspmn.cli import main
from rspmn.end_nodes import marked_root, uniform_top
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.envs.paper_grid import paper_grid
from rspmn.envs.random_mdp import random_mdp
from rspmn.learn import learn_rspmn
from rspmn.values import UNKNOWN


@pytest.fixture
def grid(tmp_path: Path) -> str:
    path = tmp_path / "grid.json"
    paper_grid().save(path)
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    out, err = capsys.readouterr()
    return code, out, err


def test_answers(grid: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "meu", grid, "--horizon", "4") == (0, "16\n", "")
    code, out, _ = run(capsys, "meu", grid, "--state", "x=0", "y=0", "--discount", "0.9")
    assert (code, out) == (0, "71\n")
    code, out, _ = run(capsys, "act", grid, "--state", "x=0", "--state", "y=0", "--horizon", "4")
    assert out.splitlines()[0].split() == ["*", "action", "=", "down", "16"]
    code, out, _ = run(capsys, "meu", grid, "--state", "x=9", "--horizon", "4")
    assert (code, out) == (3, "unsupported: x=9 was never observed; known values: 0, 1\n")
    code, out, _ = run(capsys, "act", grid, "--state", "x=9", "--horizon", "4")
    assert (code, out) == (3, "unsupported: x=9 was never observed; known values: 0, 1\n")


def test_a_state_in_which_no_decision_was_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = Schema([["cell"], ["move"]], ["move"], "r")
    b = NetworkBuilder()
    go = b.max("move", {"go": b.product([b.utility("r", 1.0), b.latent(1)])})
    first, frontier = (b.leaf("cell", Categorical.certain(cell)) for cell in (1, 2))
    roots = [b.product([first, go]), marked_root(b, schema, [frontier], UNKNOWN, 1)]
    path = str(tmp_path / "frontier.json")
    RSPMN(schema, uniform_top(2), b.build(*roots)).save(path)
    for command in ("act", "meu"):
        _, out, _ = run(capsys, command, path, "--state", "cell=2", "--horizon", "2")
        assert out == "unsupported: no decision with a known outcome was ever made in cell=2\n"
    _, out, _ = run(capsys, "meu", path, "--state", "cell=", "--horizon", "2")
    # cell = 1 earns 1 and leads to cell = 2, of which nothing is known: as bad as any, 1
    assert out == "2  (supported 0)\n"
    _, out, _ = run(capsys, "act", path, "--state", "cell=", "--horizon", "1")
    assert out.startswith("* move = go                      1  (supported 0.5, available with")
    _, out, _ = run(capsys, "meu", path, "--state", "cell=1", "move=stop", "--horizon", "2")
    assert out.startswith("unsupported: move=stop was never observed; known values: go")


def test_shares_that_are_supported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of 200 visits one is to a cell in which nothing was done; going on leads there in 1 of 50."""
    schema = Schema([["cell"], ["move"]], ["move"], "r")
    b = NetworkBuilder()
    follows = b.sum([b.latent(0), b.latent(1)], [0.98, 0.02])
    go = b.max("move", {"go": b.product([b.utility("r", 1.0), follows])})
    first, frontier = (b.leaf("cell", Categorical.certain(cell)) for cell in (1, 2))
    roots = [b.product([first, go]), marked_root(b, schema, [frontier], UNKNOWN, 1)]
    path = str(tmp_path / "rare.json")
    RSPMN(schema, uniform_top(2), b.build(*roots), (199.0, 1.0)).save(path)
    assert run(capsys, "meu", path, "--state", "cell=1", "--horizon", "1")[1] == "1\n"
    # 1, then 1 again: in cell 2 as in the worst of all others, which is cell 1
    out = run(capsys, "meu", path, "--state", "cell=1", "--horizon", "2")[1]
    assert out == "2  (supported 0.98)\n"
    out = run(capsys, "meu", path, "--state", "cell=", "--horizon", "2")[1]
    assert out == "2  (supported 0.975)\n"  # .98 · 199 / 200 = .9751
    lines = run(capsys, "policy", path, "--horizon", "2")[1].splitlines()
    assert lines[0].split()[-1] == "supported"
    assert [line.split()[-1] for line in lines[1:]] == ["0.98", "0"]


def test_what_a_decision_is_made_without(grid: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "act", grid, "--state", "x=0", "--horizon", "4")
    assert out.splitlines()[-1] == "not given: y; averaged over logged values"
    _, out, _ = run(capsys, "act", grid, "--state", "x=0", "--horizon", "4", "--json")
    assert {tuple(action["averaged_over"]) for action in json.loads(out)["actions"]} == {("y",)}
    _, out, _ = run(capsys, "act", grid, "--state", "x=0", "y=0", "--horizon", "4")
    assert "not given" not in out


def test_json(grid: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "meu", grid, "--horizon", "4", "--json")
    assert json.loads(out) == {"meu": 16.0, "supported": True, "steps": 0.0, "bound": 0.0}
    _, out, _ = run(capsys, "meu", grid, "--given", "x=9", "--horizon", "4", "--json")
    assert json.loads(out)["meu"] is None
    _, out, _ = run(capsys, "act", grid, "--state", "x=0", "y=0", "--horizon", "4", "--json")
    best, *rest = json.loads(out)["actions"]
    assert (best["value"], best["utility"], best["best"]) == ("down", 16.0, True)
    assert len(rest) == 4
    _, out, _ = run(capsys, "info", grid, "--json")
    assert json.loads(out)["interface nodes"] == 4


def test_check_and_info(grid: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "check", grid)
    assert code == 0
    assert "a sound template of 4 interface nodes" in out
    code, out, _ = run(capsys, "check", grid, "--json")
    assert json.loads(out)["valid"] is True
    schema = tmp_path / "schema.toml"
    paper_grid().schema.save(schema)
    _, out, _ = run(capsys, "check", str(schema))
    assert "a valid schema: {x, y} ≺ {action} ≺ {reward}" in out
    _, out, _ = run(capsys, "info", grid)
    assert "interface nodes: 4" in out


@pytest.mark.parametrize("name", ["grid.svg", "grid.png", "grid.dot"])
@pytest.mark.parametrize("part", ["template", "top", "unfolded"])
def test_draw(
    grid: str, tmp_path: Path, name: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    assert run(capsys, "draw", grid, "-o", str(path), "--part", part)[0] == 0
    assert path.stat().st_size > 100


def test_the_part_that_is_asked_for_is_drawn(
    grid: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, part = tmp_path / "whole.dot", tmp_path / "part.dot"
    assert run(capsys, "draw", grid, "-o", str(whole))[0] == 0
    words = ["draw", grid, "--state", "x=0", "y=0", "--horizon", "4", "-o"]
    assert run(capsys, *words, str(part))[0] == 0
    assert 10 < len(part.read_text().splitlines()) < len(whole.read_text().splitlines()) / 2
    states = ["draw", grid, "--part", "states", "--horizon", "4", "-o", str(tmp_path / "s.png")]
    for more in ([*words, str(tmp_path / "part.svg")], states):
        assert run(capsys, *more) == (0, "", "")
        assert Path(more[-1]).stat().st_size > 1000
    code, _, err = run(capsys, "draw", grid, "--state", "x=9", "--horizon", "4", "-o", "x.svg")
    assert (code, err) == (2, "rspmn: --state: this state was never observed\n")


BAD_SCHEMAS = {
    "unknown key 'decision': did you mean 'decisions'?": 'order = [["x"]]\ndecision = ["x"]',
    "decision 'a' is not in the order": 'order = [["x"]]\ndecisions = ["a"]\nutility = "u"',
    "order: 'x' appears twice": 'order = [["x"], ["x"]]\ndecisions = []\nutility = "u"',
    "is inside the information set": 'order = [["x", "a"]]\ndecisions = ["a"]\nutility = "u"',
    "no 'utility'": 'order = [["x"]]\ndecisions = []',
    "no utility": 'order = [["x"]]\ndecisions = []\nutility = ""',
}


@pytest.mark.parametrize("message", BAD_SCHEMAS)
def test_bad_schemas(message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(BAD_SCHEMAS[message])
    code, out, err = run(capsys, "check", str(path))
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith(f"rspmn: {path}: ")
    assert err.count("\n") == 1


def test_bad_words(grid: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text(Path(grid).read_text()[:500])
    newer = tmp_path / "newer.json"
    newer.write_text(Path(grid).read_text().replace('"version": 14', '"version": 99'))
    for words, message in {
        ("meu", grid, "--state", "x"): "--state x: expected NAME=VALUE",
        ("meu", grid, "--state", "z=1", "--horizon", "1"): "unknown variable 'z'",
        ("meu", grid, "--state", "acton=up"): "did you mean 'action'?",
        ("meu", grid, "--state", "reward=1"): "'reward' is the utility",
        ("meu", grid, "--state", "x=0,y=0"): "its values are numbers, found '0,y=0'",
        ("meu", grid, "--state", "x=nan"): "its values are numbers, found 'nan'",
        ("meu", grid, "--state", "x=1_0"): "its values are numbers, found '1_0'",
        ("meu", grid, "--state", "action=7"): "its values are text, found 7",
        ("meu", grid, "--state", "x=1", "x=0"): "--state: duplicate 'x'",
        ("meu", grid, "--horizon", "0"): "--horizon: expected 1 or more, found 0",
        ("meu", grid, "--discount", "2"): "--discount: expected 0 to 1, found 2",
        ("meu", grid): "values change by 9 per step: without a horizon",
        ("act", grid, "--state", "action=up", "--horizon", "1"): "no decision is left to make",
        ("check", str(tmp_path / "none.json")): "cannot be read: No such file or directory",
        ("check", str(tmp_path)): "cannot be read: Is a directory",
        ("check", str(broken)): "not a model file: ",
        ("info", str(newer)): "format version 99 is newer than this rspmn reads",
        ("draw", grid, "-o", "grid.bmp"): "expected a name ending in .svg, .png or .dot",
        ("draw", grid, "-o", str(tmp_path / "no" / "x.dot")): "cannot be written: No such file",
        (
            "draw",
            grid,
            "-o",
            "x.dot",
            "--part",
            "unfolded",
            "--steps",
            "0",
        ): "--steps: expected 1",
    }.items():
        code, out, err = run(capsys, *words)
        assert (code, out) == (2, ""), words
        assert message in err, words
        assert err.count("\n") == 1, words


def test_wrong_flags(capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in {
        ("fly",): "usage: rspmn [OPTIONS] COMMAND",
        ("meu",): "rspmn: MODEL is missing: a model file; - is standard input\nusage: rspmn meu",
        (): "Usage: rspmn [OPTIONS] COMMAND",
        ("meu", "x", "--horizon", "long"): "--horizon: expected an integer, found 'long'",
    }.items():
        code, out, err = run(capsys, *words)
        assert (code, out) == (2, "")
        assert message in err


def rspmn(*words: str) -> list[str]:
    return [sys.executable, "-m", "rspmn", *words]


def test_as_a_program(grid: str) -> None:
    done = subprocess.run(rspmn("meu", grid, "--horizon", "4"), capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "16\n", "")
    assert subprocess.run(rspmn("--version"), capture_output=True).returncode == 0
    # a reader that goes away is no error worth a traceback
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(rspmn("info", grid), stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert done.stderr == ""
    if Path("/dev/full").exists():
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                rspmn("info", grid), stdout=full, stderr=subprocess.PIPE, text=True
            )
        assert done.returncode == 2
        assert done.stderr == "rspmn: cannot write the output: No space left on device\n"
    plain = {**os.environ, "PYTHONIOENCODING": "ascii"}
    schema = Path(grid).with_name("schema.toml")
    paper_grid().schema.save(schema)
    done = subprocess.run(rspmn("check", str(schema)), capture_output=True, text=True, env=plain)
    assert "{x, y} ? {action} ? {reward}" in done.stdout


def test_values_as_the_model_writes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    b = NetworkBuilder()
    branches = {"up": b.utility("u", 1.0), "Up": b.utility("u", 2.0), "DOWN": b.utility("u", 3.0)}
    below = {value: b.product([utility, b.latent(0)]) for value, utility in branches.items()}
    template = b.build(b.max("a", below))
    path = str(tmp_path / "model.json")
    RSPMN(Schema([["a"]], ["a"], "u"), uniform_top(1), template).save(path)
    for text, worth in {"up": "1", "Up": "2", "down": "3", "": "3"}.items():
        words = ["meu", path, "--state", f"a={text}", "--horizon", "1"]
        assert run(capsys, *words)[1] == f"{worth}\n"
    _, out, _ = run(capsys, "meu", path, "--state", "a=uP", "--horizon", "1")
    assert out == "unsupported: a=uP was never observed; known values: up, Up, DOWN\n"


def test_interrupted(
    grid: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rspmn.cli.act.load", interrupt)
    code, out, err = run(capsys, "meu", grid)
    assert (code, out) == (130, "")
    assert err == "rspmn: interrupted; no file was left incomplete\n"


def test_the_honest_value_of_computed_variables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A state may be given by the columns that its variables are computed from."""
    steps = 400
    table: dict[str, Any] = {
        "episode": [k // 4 for k in range(steps)],
        "time": [k % 4 for k in range(steps)],
        "map": [50 + k * 7 % 30 for k in range(steps)],
        "a": ["press" if k % 3 else "rest" for k in range(steps)],
    }
    table["u"] = [
        float((m < 65) == (a == "press")) for m, a in zip(table["map"], table["a"], strict=True)
    ]
    schema = Schema([["map < 65"], ["a"]], ["a"], "u")
    path = str(tmp_path / "model.json")
    learn_rspmn(Episodes.from_long(table, schema, ending="cut"))[0].save(path)
    for command in ("act", "meu"):
        found = []
        for state in ("map=55", "map < 65=yes"):
            words = [command, path, "--state", state, "--horizon", "2"]
            code, out, _ = run(capsys, *words)
            assert (code, out.split()[:2]) == (0, ["honest", "value"])
            found.append(json.loads(run(capsys, *words, "--json")[1])["honest"])
        assert found[0] == found[1]


def test_the_honest_value_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "lake.json")
    model, _ = learn_rspmn(frozen_lake().generate(3000, 8, 2))
    model.save(path)
    _, out, _ = run(capsys, "meu", path, "--horizon", "8")
    lines = out.splitlines()
    found = model.honest_value(8)
    assert lines[0].startswith(f"honest value {found.point:.4g}  (90 % interval {found.low:.4g} to")
    assert lines[1].startswith(f"promise (MEU) {found.promise:.4g}  (")
    assert (len(lines) == 2) == found.kept
    _, out, _ = run(capsys, "meu", path, "--horizon", "8", "--json")
    assert json.loads(out)["honest"]["low"] == found.low
    _, out, _ = run(capsys, "meu", path, "--state", "cell=0", "--horizon", "8")
    assert out.startswith("honest value ")
    for command in ("act", "policy"):
        state = ["--state", "cell=0"] if command == "act" else []
        _, out, _ = run(capsys, command, path, "--horizon", "8", *state)
        assert out.startswith(f"honest value {found.point:.4g}  (90 % interval {found.low:.4g} to")
        assert f"; promise {found.promise:.4g}\n" in out


def test_a_promise_that_is_not_kept_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "random.json")
    learn_rspmn(random_mdp(0).generate(10, 20, 0))[0].save(path)
    _, out, _ = run(capsys, "meu", path, "--horizon", "20")
    lines = out.splitlines()
    warned = lines.index("warning: the MEU is higher than the log supports")
    assert warned < next(k for k, line in enumerate(lines) if "promise (MEU)" in line)


def test_a_table_with_states_that_were_never_observed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, table = tmp_path / "lake.json", tmp_path / "states.csv"
    learned = learn_rspmn(frozen_lake().generate(300, 8, 0))[0]
    learned.save(model)
    table.write_text("cell\n0\n99\n1\n", encoding="utf-8")
    asked = ["act", str(model), "--table", str(table), "--horizon", "5"]
    assert main([*asked, "--json"]) == 0
    out, told = capsys.readouterr()
    policy = learned.policy(5)
    expected = [policy.act({"cell": 0}), None, policy.act({"cell": 1})]
    assert [row["action"] for row in json.loads(out)] == expected
    assert "1 of 3 states were never observed, the first in row 2" in told
    table.write_text("cell\n99\n", encoding="utf-8")
    assert run(capsys, *asked)[0] == 3


def test_a_variable_whose_name_has_an_equals_sign(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = {"episode": [*range(40)], "time": [0] * 40, "v": [k % 4 for k in range(40)],
             "a": ["lr"[k // 4 % 2] for k in range(40)]}  # fmt: skip
    steps["u"] = [
        float((v >= 2) == (a == "r")) for v, a in zip(steps["v"], steps["a"], strict=True)
    ]
    log = Episodes.from_long(steps, Schema([["v >= 2"], ["a"]], ["a"], "u"), ending="end")
    learn_rspmn(log)[0].save(tmp_path / "m.json")
    for value, best in (("true", "r"), ("false", "l")):
        asked = [
            "act",
            str(tmp_path / "m.json"),
            "--horizon",
            "1",
            "--state",
            f"v >= 2={value}",
            "-q",
        ]
        assert run(capsys, *asked) == (0, f"{best}\n", "")


def test_more_than_there_is_memory_for(
    grid: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_much(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(RSPMN, "sample", too_much)
    asked = ["sample", grid, "--horizon", "5", "--episodes", "9", "-o", str(tmp_path / "s.csv")]
    code, out, told = run(capsys, *asked)
    assert (code, out) == (2, "")
    assert told.startswith("rspmn: not enough memory")


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_streams_that_are_closed(
    stream: str, grid: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ["info", "-"] if stream == "stdin" else ["report", grid, "--horizon", "2", "-o", "-"]
    monkeypatch.setattr(sys, stream, None)
    assert main(asked) == 2
    assert "is closed: give a file instead of -" in capsys.readouterr().err
