"""What somebody new to it runs into, on the shell and in Python."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rspmn
from rspmn import Episodes, Schema
from rspmn.cli import main
from rspmn.errors import DataError, SchemaError
from rspmn.learn import learn_rspmn
from same_windows import assert_same


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    """Patients who are cured or leave after three visits; columns have names of their own."""
    rng = np.random.default_rng(0)
    rows = []
    for patient in range(200):
        for visit in range(3):
            cured = bool(rng.random() < 0.3)
            rows.append({
                "patient": f"p{patient}", "visit": visit, "severity": int(rng.integers(3)),
                "treatment": ["wait", "drug"][rng.integers(2)], "reward": float(cured),
                "cured": cured,
            })  # fmt: skip
            if cured:
                break
    pl.DataFrame(rows).write_csv(tmp_path / "clinic.csv")
    return tmp_path


def said(capsys: pytest.CaptureFixture[str]) -> str:
    found = capsys.readouterr()
    return found.out + found.err


def test_a_flag_is_not_known_before_the_decision(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, schema = str(clinic / "clinic.csv"), clinic / "schema.toml"
    assert main(["schema", log, "-o", str(schema)]) == 0
    assert "Does" not in schema.read_text()
    assert 'episode = "patient"\ntime = "visit"\nterminated = "cured"\n' in schema.read_text()
    assert "cured" not in Schema.load(schema).variables
    model = str(clinic / "model.json")
    assert main(["learn", log, "--schema", str(schema), "-o", model]) == 0
    assert "episodes were truncated after 3 steps; they count as going on" in said(capsys)
    known = Schema([["severity", "cured"], ["treatment"]], ["treatment"], "reward")
    columns: Any = {"episode": "patient", "time": "visit", "terminated": "cured"}
    with pytest.raises(DataError, match="would reveal what comes after it"):
        Episodes.from_long(log, known, **columns)
    known.save(schema)
    options = [f"--{name}={column}" for name, column in columns.items()]
    assert main(["learn", log, "--schema", str(schema), "-o", model, "--force", *options]) == 2
    assert "remove it from the schema" in said(capsys)


def test_an_edited_schema_is_not_written_over(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, schema = str(clinic / "clinic.csv"), clinic / "schema.toml"
    schema.write_text("edited")
    assert main(["schema", log, "-o", str(schema)]) == 2
    assert "--force" in said(capsys)
    assert schema.read_text() == "edited"
    assert main(["schema", log, "-o", str(schema), "--force"]) == 0
    assert schema.read_text() != "edited"


def test_messages_name_the_option(clinic: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = clinic / "schema.toml"
    schema.write_text(
        'order = [["severity"], ["treatment"]]\ndecisions = ["treatment"]\nutility = "reward"\n'
    )
    base = ["--schema", str(schema), "-o", str(clinic / "model.json"), "--episode", "patient"]
    log = str(clinic / "clinic.csv")
    assert main(["learn", log, *base, "--time", "visit"]) == 2
    message = said(capsys)
    assert "give --ending, which is 'end'" in message
    assert "name a column with --terminated" in message
    (clinic / "gap.csv").write_text(
        "patient,visit,severity,treatment,reward,cured\n"
        "p0,0,1,wait,0.0,false\np0,2,1,drug,1.0,true\n"
    )
    gap = [str(clinic / "gap.csv"), *base, "--time", "visit", "--terminated", "cured"]
    assert main(["learn", *gap]) == 2
    assert "steps are missing; if they are not, allow gaps (--gaps)" in said(capsys)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("learn log.csv --shcema s.toml -o m.json", "option '--shcema': did you mean '--schema'?"),
        ("act m.json --horizn=3", "unknown option '--horizn': did you mean '--horizon'?"),
        ("lern log.csv", "unknown command 'lern': did you mean 'learn'?"),
        ("--vresion", "unknown option '--vresion': did you mean '--version'?"),
        ("meu m.json --state x=--zeta -- --horizn", "unexpected extra argument (--horizn)"),
    ],
)
def test_a_misspelled_name_is_named(
    command: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command.split()) == 2
    assert said in capsys.readouterr().err


def test_several_files(clinic: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Patterns that the shell resolved, or a list of paths."""
    log = pl.read_csv(clinic / "clinic.csv")
    log[:100].write_csv(clinic / "part-2.csv")
    log[100:].write_csv(clinic / "part-10.csv")
    parts = [str(clinic / "part-10.csv"), str(clinic / "part-2.csv")]
    assert main(["schema", *parts]) == 0
    proposed = said(capsys)
    assert main(["schema", str(clinic / "clinic.csv")]) == 0
    assert said(capsys) == proposed
    schema = Schema([["severity"], ["treatment"]], ["treatment"], "reward")
    names: Any = {"episode": "patient", "time": "visit", "terminated": "cured"}
    assert_same(rspmn.windows(parts, schema, **names), rspmn.windows(log, schema, **names))
    log.write_ndjson(clinic / "log.jsonl")
    with pytest.raises(DataError, match="files of different kinds"):
        rspmn.windows([*parts, clinic / "log.jsonl"], schema, **names)


def test_a_schema_names_the_columns_of_the_log(
    clinic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, schema, model = (str(clinic / name) for name in ("clinic.csv", "s.toml", "model.json"))
    Path(schema).write_text(
        'order = [["severity"], ["treatment"]]\ndecisions = ["treatment"]\nutility = "reward"\n'
        '[log]\nepisode = "patient"\ntime = "visit"\nterminated = "cured"\n'
    )
    assert main(["check", schema]) == 0
    assert main(["learn", log, "--schema", schema, "-o", model]) == 0
    assert "200 episodes: " in said(capsys)
    assert main(["learn", log, "--schema", schema, "-o", model, "--force", "--ending", "cut"]) == 0
    assert "200 truncated" in said(capsys)  # flags come before what the file says
    for table, message in (
        ("[log]\nepisod = 1\n", "unknown key 'episod': did you mean 'episode'"),
        ("[log]\ntime = 1\n", "time: expected the name of a column, found 1"),
        ("log = 3\n", "'log' must be a table"),
    ):
        text = 'order = [["x"], ["a"]]\ndecisions = ["a"]\nutility = "u"\n'
        is_table = table.startswith("[")
        Path(schema).write_text(text + table if is_table else table + text)
        with pytest.raises(SchemaError, match=message):
            Schema.load(schema)


def test_natural_first_calls_are_answered(tmp_path: Path) -> None:
    table: Any = pl.DataFrame({"x": [1], "a": [1], "u": [0.5]})
    schema: Any = Schema([["x"], ["a"]], ["a"], "u")
    with pytest.raises(DataError, match=r"use rspmn\.windows\(log, schema, \.\.\.\)"):
        learn_rspmn(table)
    log = rspmn.windows(table, schema, wide=True, ending="end")
    with pytest.raises(DataError, match="pass the schema with the log"):
        learn_rspmn(log, schema)
    as_path: Any = "schema.toml"
    with pytest.raises(SchemaError, match=r"Schema\.load reads a schema\.toml"):
        rspmn.windows(table, as_path, ending="end")
    with pytest.raises(DataError, match=r"gymnasium\.make\(name\) makes one"):
        rspmn.collect("FrozenLake-v1")
    episodes = Episodes.from_wide(table, schema, ending="end")
    with pytest.raises(DataError, match=r"log\.parquet: cannot be written: No such file"):
        episodes.to_parquet(tmp_path / "none" / "log.parquet")
    assert {"windows", "collect", "Schema"} <= set(dir(rspmn))
