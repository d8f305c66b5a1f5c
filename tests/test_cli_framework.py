"""What all commands have: examples that work, pipes, colours, tables that fit, exit codes."""

import gzip
import io
import json
import shlex
import sys
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest

from effort import SOAK
from reproductions.single_shot import oil_wildcatter
from rspmn import Schema, learn_spmn, load
from rspmn.cli import COMMANDS, main
from rspmn.cli.console import wants_colour
from rspmn.cli.framework import Commands
from rspmn.data.write import write_episodes
from rspmn.display import table_lines
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.envs.paper_grid import paper_grid
from rspmn.errors import DataError
from rspmn.learn import learn_rspmn

Run = pytest.CaptureFixture[str]


def run(capsys: Run, *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the examples of the help name."""
    path, world, problem = tmp_path_factory.mktemp("examples"), frozen_lake(), oil_wildcatter()
    log = world.generate(300, 8, 0, "final")
    write_episodes(log, str(path / "log.csv"))
    world.schema.save(path / "schema.toml")
    learn_rspmn(log)[0].save(path / "lake.json")
    (path / "cases.csv").write_text("cell\n0\n14\n")
    table = problem.sample(500, 0)
    rows = [[*table], *zip(*table.values(), strict=True)]
    (path / "oil.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    problem.schema.save(path / "oil.toml")
    learn_spmn(table, problem.schema)[0].save(path / "oil.json")
    paper_grid().save(path / "grid.json")
    return path


class Piped(io.TextIOWrapper):
    """A standard input that holds what another program has printed."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content))


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_has_examples_that_work(
    command: str, folder: Path, capsys: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    examples = COMMANDS[command].examples
    assert examples
    with chdir(folder):
        assert all(example in out for example in examples)
        if command in ("completion", "reproduce", "decide", "serve"):  # see their own tests
            return
        for example in examples if SOAK else examples[:1]:
            *source, words = example.split(" | ")
            if source:
                name = source[0].removeprefix("cat ")
                monkeypatch.setattr(sys, "stdin", Piped(Path(name).read_bytes()))
            code, _, err = run(capsys, *shlex.split(words)[1:])
            assert code == 0, (example, err)


def test_standard_input_and_output(
    folder: Path, capsys: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = folder / "lake.json"
    monkeypatch.setattr(sys, "stdin", Piped(model.read_bytes()))
    piped = run(capsys, "meu", "-", "--horizon", 8)
    assert piped == run(capsys, "meu", model, "--horizon", 8)
    code, out, err = run(capsys, "policy", model, "--horizon", 8, "-o", "-")
    assert (code, err) == (0, "-: 11 interface nodes\n")
    assert out.splitlines()[0] == "node,cell,action,value,visits,steps"
    assert run(capsys, "policy", model, "--horizon", 8, "-o", "-", "--quiet")[2] == ""
    monkeypatch.setattr(sys, "stdin", Piped(b"cell,action,rewrad\n0,up,1\n"))
    code, out, err = run(capsys, "learn", "-", "--schema", folder / "schema.toml", "-o", "-")
    assert (code, out) == (2, "")
    assert err.startswith("rspmn: standard input: no ")


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv", "log.tsv"])
def test_standard_input_may_be_compressed(
    name: str, folder: Path, tmp_path: Path, capsys: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, schema = tmp_path / name, folder / "schema.toml"
    assert run(capsys, "generate", "FrozenLake", "--episodes", 50, "-o", log)[0] == 0
    written = []
    for content in (log.read_bytes(), gzip.compress(log.read_bytes())):
        monkeypatch.setattr(sys, "stdin", Piped(content))
        code, out, err = run(capsys, "learn", "-", "--schema", schema, "-o", "-", "--quiet")
        assert (code, err) == (0, "")
        written.append(out)
    assert written[0] == written[1] != ""
    monkeypatch.setattr(sys, "stdin", Piped(gzip.compress(log.read_bytes())[:40]))
    code, _, err = run(capsys, "learn", "-", "--schema", schema, "-o", "-")
    assert code == 2
    assert err.startswith("rspmn: standard input: ")


def test_standard_output_takes_one_file(tmp_path: Path, capsys: Run) -> None:
    words = ["generate", "FrozenLake", "--episodes", 9, "-o", "-"]
    assert run(capsys, *words, "--schema", "-") == (
        2, "", "rspmn: standard output takes one file: name the others\n",
    )  # fmt: skip
    assert run(capsys, *words, "--files", 3) == (
        2, "", "rspmn: --files: expected 1 for standard output, found 3: name a file\n",
    )  # fmt: skip
    code, out, _ = run(capsys, *words, "--schema", tmp_path / "s.toml")
    assert (code, out.splitlines()[0]) == (0, "episode,time,cell,action,reward,terminated")


def test_quiet_answers_are_answers_only(folder: Path, capsys: Run) -> None:
    words = ["--state", "cell=14", "--horizon", 8, "-q"]
    code, out, _ = run(capsys, "act", folder / "lake.json", *words)
    assert (code, out) == (0, f"{load(folder / 'lake.json').policy(8).act({'cell': 14})}\n")
    _, out, _ = run(capsys, "meu", folder / "lake.json", *words)
    assert float(out) > 0
    assert len(run(capsys, "act", folder / "lake.json", *words[:-1])[1].splitlines()) > 1


def test_all_decisions_of_a_step_are_shown(tmp_path: Path, capsys: Run) -> None:
    rng = np.random.default_rng(0)
    table = {name: rng.integers(0, 2, 400).tolist() for name in ("x", "drug", "dose")}
    table["cured"] = [int(a == b == c) for a, b, c in zip(*table.values(), strict=True)]
    schema = Schema([["x"], ["drug"], ["dose"]], ["drug", "dose"], "cured")
    model, _ = learn_spmn(table, schema)
    model.save(tmp_path / "m.json")
    words = ["act", tmp_path / "m.json", "--state", "x=1"]
    assert run(capsys, *words, "--quiet")[1] == "drug=1\ndose=1\n"
    lines = run(capsys, *words)[1].splitlines()
    assert "with drug = 1:" in lines
    assert lines[lines.index("with drug = 1:") + 1].startswith("* dose = 1")
    facts = json.loads(run(capsys, *words, "--json")[1])["actions"]
    assert [(f["decision"], f.get("after")) for f in facts if f["best"]] == [
        ("drug", None),
        ("dose", {"drug": 1}),
    ]
    assert run(capsys, *words, "drug=0", "--quiet")[1] in ("0\n", "1\n")


def test_what_is_observed_between_decisions_is_waited_for(folder: Path, capsys: Run) -> None:
    out = run(capsys, "act", folder / "oil.json")[1]
    assert out.splitlines()[-1] == "next: drill, once result is observed"
    assert "* drill" not in out


def test_truth_is_written_as_people_do(tmp_path: Path, capsys: Run) -> None:
    table = {"ill": [True, False] * 50, "treat": [True, True, False, False] * 25}
    utility = [float(a == b) for a, b in zip(*table.values(), strict=True)]
    schema = Schema([["ill"], ["treat"]], ["treat"], "u")
    model, _ = learn_spmn({**table, "u": utility}, schema)
    model.save(tmp_path / "m.json")
    for text, said in {"yes": "True", "TRUE": "True", "No": "False", "false": "False"}.items():
        words = ["act", tmp_path / "m.json", "--state", f"ill={text}", "--quiet"]
        assert run(capsys, *words) == (0, f"{said}\n", "")


def test_nothing_is_overwritten_unasked(folder: Path, tmp_path: Path, capsys: Run) -> None:
    target = tmp_path / "policy.csv"
    target.write_text("mine")
    words = ["policy", folder / "lake.json", "--horizon", 3, "-o", target]
    code, _, err = run(capsys, *words)
    assert (code, err) == (2, f"rspmn: {target} already exists; use --force to overwrite it\n")
    assert target.read_text() == "mine"
    assert run(capsys, *words, "--force")[0] == 0
    assert target.read_text() != "mine"
    words = ["generate", "Maze", "--episodes", 4, "--files", 2, "-o", tmp_path / "log.csv"]
    assert run(capsys, *words)[0] == 0
    assert "log-0.csv already exists" in run(capsys, *words)[2]


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    assert wants_colour(Terminal())
    assert not wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour(Terminal())


@pytest.mark.parametrize("width", [20, 40, 80])
def test_tables_fit_the_width(width: int) -> None:
    table = {f"variable {k}": [k * 1e6, 2.5] for k in range(9)} | {"note": ["a" * 90, "b"]}
    lines = table_lines(table, width)
    assert max(map(len, lines)) <= width
    for name in table:
        assert any(name in line for line in lines)
    whole = table_lines(table)
    assert len(whole) == 3
    assert "a" * 90 in whole[1]


def test_errors_say_where_they_arose_if_asked(tmp_path: Path, capsys: Run) -> None:
    words = ["check", tmp_path / "none.json"]
    code, _, err = run(capsys, *words)
    assert (code, err.count("\n")) == (2, 1)
    code, _, err = run(capsys, *words, "--verbose")
    assert code == 2
    assert "Traceback" in err


def test_messages_speak_of_options() -> None:
    command = Commands(COMMANDS).get_command(None, "learn")  # type: ignore[arg-type]
    assert command is not None
    for message, said in {
        "max_nodes must be 1": "--max-nodes must be 1",
        "horizon: 0": "horizon: 0",  # learning has no horizon
        "give the option ending": "give --ending",
        "rows (duplicates='drop' in Python, --drop-duplicates on the command line)":
            "rows (--drop-duplicates)",
        "raise the option memory_limit": "raise --memory-limit",
    }.items():  # fmt: skip
        assert command._said(str(DataError(message))) == said


def test_shells_complete_names(folder: Path, capsys: Run) -> None:
    from click.shell_completion import ShellComplete

    assert "rspmn" in run(capsys, "completion", "bash")[1]
    complete = ShellComplete(Commands(COMMANDS), {}, "rspmn", "_RSPMN_COMPLETE")

    def offered(args: list[str], incomplete: str) -> list[str]:
        return [item.value for item in complete.get_completions(args, incomplete)]

    assert offered([], "learn") == ["learn", "learn-spmn"]
    assert offered(["act"], "--hor") == ["--horizon"]
    assert offered(["act", str(folder / "lake.json"), "--state"], "") == ["cell=", "action="]
