"""Utilities and ends that are computed from columns: the same from every engine and in memory."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import rspmn
from rspmn import Episodes, Followed, Schema, Windows
from rspmn.cli import main
from rspmn.data.tables import as_table
from rspmn.errors import DataError, EvidenceError
from rspmn.learn import learn_spmn
from rspmn.model_file import load_rspmn
from same_windows import assert_same

#: Stays in a ward: costs and bonuses of each day, and how the stay ended, if it did.
STAYS: dict[str, list[Any]] = {
    "episode": [0, 0, 0, 1, 1, 2, 2, 2, 3, 3],
    "time": [0, 1, 2, 0, 1, 0, 1, 2, 0, 1],
    "x": ["p", "q", "p", "p", "q", "p", "q", "p", "p", "q"],
    "drug": ["a", "b", "a", "a", "b", "b", "a", None, "a", "a"],
    "cost": [1, 2, 1, 0, 3, 1, 1, None, 2, 2],
    "bonus": [0.5, 0.0, 2.5, 0.0, 0.0, 0.0, 0.25, None, 0.0, 1.0],
    "status": [None, None, "discharged", None, "in ward", None, None, None, None, "died"],
    "night": [True, False, True, False, True, False, False, None, True, True],
}
TOML = """
order = [["x"], ["drug"]]
decisions = ["drug"]
utility = {utility}
[log]
terminated = "status in (discharged, died)"
"""
UTILITIES: dict[str, list[float]] = {
    '"-cost"': [-1, -2, -1, 0, -3, -1, -1, -2, -2],
    '["bonus", "-0.5*cost"]': [0, -1, 2, 0, -1.5, -0.5, -0.25, -1, 0],
    "{status = {discharged = 100, died = -100}}": [0, 0, 100, 0, 0, 0, 0, 0, -100],
    '["-cost", {status = {died = -9.5}}]': [-1, -2, -1, 0, -3, -1, -1, -2, -11.5],
    '"bonus - (night or cost > 2)"': [-0.5, 0, 1.5, 0, -1, 0, 0.25, -1, 0],
}


def csv_of(table: dict[str, list[Any]], path: Path) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    return path


SOURCES: dict[str, Callable[[Any, Path], Any]] = {
    "memory": lambda table, _: table,
    "polars": lambda table, _: pl.DataFrame(table),
    "duckdb": lambda table, _: duckdb.from_arrow(pl.DataFrame(table).to_arrow()),
    "csv": lambda table, path: csv_of(table, path / "log.csv"),
}


@pytest.mark.parametrize(
    ("how", "utility"),
    [
        *(("memory", utility) for utility in UTILITIES),
        *(("polars", utility) for utility in UTILITIES),
        ("duckdb", list(UTILITIES)[-2]),
        ("csv", list(UTILITIES)[-1]),
    ],
)
def test_the_same_from_everywhere(how: str, utility: str, tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(TOML.format(utility=utility))
    schema = Schema.load(tmp_path / "schema.toml")
    assert Schema.from_dict(schema.to_dict()) == schema
    for rows in (range(10), [7, 2, 9, 0, 5, 3, 8, 1, 6, 4]):
        table = {name: [column[k] for k in rows] for name, column in STAYS.items()}
        source = SOURCES[how](table, tmp_path)
        episodes = Episodes.from_log(source, schema)
        assert episodes.columns[schema.utility].data.tolist() == UTILITIES[utility]
        ends = [Followed.END, Followed.UNKNOWN, Followed.STATE, Followed.END]
        assert episodes.endings.tolist() == ends
        if how != "memory":  # which DuckDB would count
            assert_same(rspmn.windows(source, schema), Windows.from_episodes(episodes))


@pytest.mark.parametrize("how", ["polars", "csv"])
def test_wide_tables(how: str, tmp_path: Path) -> None:
    wide: dict[str, list[Any]] = {
        "x0": ["p", "p"], "drug0": ["a", "b"], "cost0": [1, 2], "status0": ["", "died"],
        "x1": ["q", None], "drug1": ["b", None], "cost1": [3, None], "status1": [None, None],
    }  # fmt: skip
    schema = Schema([["x"], ["drug"]], ["drug"], ["-cost", {"status": {"died": -10}}])
    schema = schema.with_log(wide=True, ending="end", columns=["x", "drug", "cost", "status"])
    source = SOURCES[how](wide, tmp_path)
    episodes = Episodes.from_log(source, schema)
    assert episodes.columns[schema.utility].data.tolist() == [-1, -3, -12]
    assert_same(rspmn.windows(source, schema), Windows.from_episodes(episodes))
    for columns in ([], ["x", "drug", "cost", "other"]):
        with pytest.raises(DataError, match="columns"):
            rspmn.windows(source, schema, columns=columns)


def test_the_model_remembers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    rows = [(k, t) for k in range(60) for t in range(2)]
    cost = [float(rng.integers(3)) for _ in rows]
    log: dict[str, list[Any]] = {
        "episode": [k for k, _ in rows],
        "time": [t for _, t in rows],
        "x": [str(rng.choice(["p", "q"])) for _ in rows],
        "drug": [str(rng.choice(["a", "b"])) for _ in rows],
        "cost": cost,
        "status": ["died" if t else "" for _, t in rows],
    }
    path, schema, model = (str(tmp_path / name) for name in ("log.csv", "s.toml", "m.json"))
    csv_of(log, Path(path))
    Path(schema).write_text(TOML.format(utility='"-cost"'))
    assert main(["learn", path, "--schema", schema, "-o", model]) == 0
    assert load_rspmn(model).schema.utility == "-cost"
    assert main(["loglik", model, path]) == 0
    out = str(tmp_path / "sample.csv")
    assert main(["sample", model, "--horizon", "3", "-o", out]) == 0
    assert Path(out).read_text().splitlines()[0] == "episode,time,x,drug,-cost,terminated"
    capsys.readouterr()
    # a table that has the column already is read as it is
    assert main(["loglik", model, out, "--terminated", "terminated"]) == 0
    assert main(["doctor", path, "--schema", schema]) == 0
    assert "-cost" in capsys.readouterr().out
    wrong = ["--terminated", "stats == died", "--force"]
    assert main(["learn", path, "--schema", schema, "-o", model, *wrong]) == 2
    assert "no terminated column 'stats == died'" in capsys.readouterr().err


def test_single_decisions() -> None:
    table = {
        "x": ["p", "q"] * 20,
        "d": ["l", "l", "r", "r"] * 10,
        "cost": [0.0, 1.0, 1.0, 0.0] * 10,
    }
    model, _ = learn_spmn(as_table(table), Schema([["x"], ["d"]], ["d"], "-cost"))
    assert [found.value for found in model.best_decisions({"x": "p"})] == ["l"]


@pytest.mark.parametrize("how", ["polars", "csv"])
def test_what_is_refused_alike(how: str, tmp_path: Path) -> None:
    source = SOURCES[how](STAYS, tmp_path)
    for utility, terminated, message in (
        ("-csot", "status == died", "no column '-csot' in the table"),
        ("bonus - csot", "status == died", "no column 'csot': did you mean 'cost'"),
        ("2*status", "status == died", "status: expected numbers, found text"),
        ("cost", "status = died", "no terminated column 'status = died' in the table"),
        ("cost", "staus == died", "no terminated column 'staus == died'"),
        ("cost", "status == cost", "quote the number"),
        ("cost", "cost - 1", "terminated 'cost - 1': expected a column, or a condition"),
    )[:: 1 if how == "polars" else 3]:
        schema = Schema([["x"], ["drug"]], ["drug"], utility).with_log(terminated=terminated)
        for read in (Episodes.from_log, rspmn.windows):
            with pytest.raises(DataError, match=message):
                read(source, schema)


def test_questions_give_what_variables_are_computed_from() -> None:
    table: dict[str, list[Any]] = {
        "x": [1, 2, 3, 4] * 10,
        "d": ["l"] * 20 + ["r"] * 20,
        "kind": ["a", "b"] * 20,
    }
    gain = [float((x > 2) == (d == "r")) for x, d in zip(table["x"], table["d"], strict=True)]
    schema = Schema([["x > 2", "kind"], ["d"]], ["d"], "gain")
    model, _ = learn_spmn(as_table(table | {"gain": gain}), schema)
    for state in ({"x": 3}, {"x > 2": True}, {"x": 3, "x > 2": True}, {"x": 4, "kind": "a"}):
        assert [found.value for found in model.best_decisions(state)] == ["r"]
    assert len(model.best_decisions({"x": None, "kind": "a"})) == 2
    with pytest.raises(EvidenceError, match="unknown variable 'y'"):
        model.best_decisions({"x": 3, "y": 1})
    with pytest.raises(EvidenceError, match="text can be compared by == and != only"):
        model.best_decisions({"x": "three"})
