"""Columns may have any name: nothing depends on how the variables of a log are called."""

import contextlib
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from effort import seeds
from rspmn import Schema, learn_rspmn, learn_spmn
from rspmn.cli import main
from rspmn.data.episodes import Episodes
from rspmn.data.write import write_episodes
from rspmn.evaluate import compare
from rspmn.learn.structure.rows import read_columns, with_joint_variable
from rspmn.report import report_data

PLAIN = "x", "z", "d", "r"
#: Names of columns that the library makes, of things that it speaks of, and hard ones. Four in a
#: row are a state variable, a number, a decision and a reward.
HOSTILE = (
    "node", "weight", "value", "count", "visits", "next", "steps", "step",
    "supported", "a.b", "change", "a,b", "practice", "it's", "recommended", "__x",
    "per episode", "utility", "node_", "error", "größe", "episode_", 'say "so"', "<b>",
    "select", "x=y", "__proto__", "action",
)  # fmt: skip


def log_of(names: Sequence[str]) -> tuple[dict[str, list[Any]], Schema]:
    """Return steps on a ring of three places, and a number that only predicts itself."""
    place, number, decision, reward = names
    rng = np.random.default_rng(0)
    log: dict[str, list[Any]] = {n: [] for n in ("episode", "time", *names)}
    for episode in range(60):
        x, z = int(rng.integers(3)), float(rng.normal())
        for time in range(5):
            d = str(rng.choice(["go", "stay"]))
            row = episode, time, x, round(z, 3), d, float(x == 2) + (d == "stay") / 2
            for column, cell in zip(log.values(), row, strict=True):
                column.append(cell)
            x, z = (x + (d == "go")) % 3, 0.5 * z + float(rng.normal())
    order, kinds = [[place, number], [decision]], {place: "integer", number: "continuous"}
    return log, Schema(order, [decision], reward, kinds)


def numbers_in(found: Any) -> list[Any]:
    """Return the numbers and booleans of plain data, in their order."""
    if isinstance(found, dict | list | tuple):
        parts = found.values() if isinstance(found, dict) else found
        return [number for part in parts for number in numbers_in(part)]
    return [] if isinstance(found, str) or found is None else [found]


def said(*words: object) -> str:
    """Return what a command prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main([str(word) for word in words]) == 0
    return out.getvalue()


def answers(names: Sequence[str], folder: Path) -> dict[str, Any]:
    """Return what the library and the command line say of a log, without the names in it."""
    log, schema = log_of(names)
    episodes = Episodes.from_long(log, schema, ending="cut")
    model, info = learn_rspmn(episodes)
    policy, report = model.policy(3), report_data(model, episodes, 3)
    compared = compare(model, episodes, 3, draws=10).nodes
    found: dict[str, Any] = {
        "aside": [(names.index(name), why) for name, why in info.aside.items()],
        "table": [*policy.table().values()],
        "compared": [[*node.state.values(), node.visits, node.practice] for node in compared],
        "report": {part: numbers_in(report[part]) for part in report if part != "card"},
        "html": policy._repr_html_().count("<td>"),
    }
    model.save(folder / "model.json")
    write_episodes(episodes, folder / "log.csv")
    schema.save(folder / "schema.toml")
    ask, horizon = [folder / "model.json", "--state", f"{names[0]}=1"], ["--horizon", 3]
    logged = folder / "log.csv", "--ending", "cut"
    for words in (
        ["policy", folder / "model.json", *horizon], ["act", *ask, *horizon],
        ["explain", *ask, *horizon], ["meu", *ask, *horizon],
        ["evaluate", folder / "model.json", "--log", *logged, *horizon, "--draws", 10],
        ["doctor", *logged, "--schema", folder / "schema.toml"],
    ):  # fmt: skip
        found[str(words[0])] = numbers_in(json.loads(said(*words, "--json")))
    for command in ("policy", "evaluate"):
        words = [command, folder / "model.json", *horizon]
        words += ["--log", *logged, "--draws", 10] if command == "evaluate" else []
        lines = said(*words).splitlines()
        found[f"{command}, cells"] = [len(re.split("  +", line.strip())) for line in lines]
    said("draw", folder / "model.json", "--part", "states", *horizon, "-o", folder / "states.svg")
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is said of the log with plain names."""
    return answers(PLAIN, tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("seed", seeds(7, 28))
def test_names_change_no_answer(seed: int, expected: dict[str, Any], tmp_path: Path) -> None:
    start = 4 * seed + seed // 7  # by 28 each name was each kind of variable
    names = [HOSTILE[(start + k) % len(HOSTILE)] for k in range(4)]
    found = answers(names, tmp_path)
    for question, numbers in expected.items():
        assert found[question] == numbers, (names, question)


def test_a_schema_is_proposed_for_dotted_names(tmp_path: Path) -> None:
    """Of episodes, times, words in a column of numbers, and what says that an episode ended."""
    log, schema = log_of(("Sepal.Length", "lab.val", "action", "reward"))
    words: dict[str, list[Any]] = {
        "lab.val": ["<-1.5" if x < -1.5 else str(x) for x in log["lab.val"]]
    }
    words |= {"patient.id": log.pop("episode"), "the.day": log.pop("time")}
    words["dis.charged"] = ["yes" if day == 4 else "no" for day in words["the.day"]]
    pd.DataFrame(log | words).to_csv(tmp_path / "log.csv", index=False)
    to = tmp_path / "schema.toml"
    said("schema", tmp_path / "log.csv", "--episode", "patient.id", "--time", "the.day", "-o", to)
    found = Schema.load(to)
    assert (found.order, found.kinds) == (schema.order, {**schema.kinds, "action": "categorical"})
    assert (found.log.episode, found.log.time) == ("patient.id", "the.day")
    assert found.log.terminated == "`dis.charged` == yes"
    assert dict(found.log.numbers) == {"lab.val": "limits"}


def test_a_table_says_which_column_is_whose() -> None:
    model, _ = learn_rspmn(Episodes.from_long(*log_of(("value", "z", "node", "r")), ending="cut"))
    table = model.policy(3).table()
    assert [*table] == ["node_", "value", "z", "node", "value_", "visits", "steps"]
    assert set(table["value"]) == {0, 1, 2}
    assert set(table["node"]) == {"go", "stay"}


def test_single_decisions_of_any_name() -> None:
    log = {"x": [0, 1] * 50, "utility": ["go", "go", "stay", "stay"] * 25, "u": [0.0, 1.0] * 50}
    model, _ = learn_spmn(log, Schema([["x"], ["utility"]], ["utility"], "u"))
    found = model.decide({"x": [0, 1]})
    assert [*found] == ["utility", "utility_", "error", "usual"]
    assert set(found["utility"]) <= {"go", "stay"}
    assert found["utility_"].tolist() == [0.0, 1.0]


def test_a_joint_variable_replaces_none() -> None:
    rows = read_columns({"a": [0, 1], "b": [0, 0], "a and b": [5, 5]}, None, 10)
    joined, name = with_joint_variable(rows, ["a", "b"])
    assert name == "a and b_"
    assert joined.table.columns["a and b"].decode() == [5, 5]
