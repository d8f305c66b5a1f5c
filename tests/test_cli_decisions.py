"""The command line on tables of single decisions."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rspmn import Schema
from rspmn.cli import main


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


def write(path: Path, columns: dict[str, Any]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table in which the right action is whether x is above 0, and a model of it."""
    path, rng = tmp_path_factory.mktemp("decisions"), np.random.default_rng(0)
    x, a = rng.normal(size=300).round(3), rng.integers(0, 2, 300)
    write(path / "log.csv", {"x": x, "a": a, "u": (a == (x > 0)).astype(int)})
    write(path / "cases.csv", {"x": [-1.5, 1.5, 99.0]})
    Schema([["x"], ["a"]], ["a"], "u").save(path / "schema.toml")
    words = ["learn-spmn", path / "log.csv", "--schema", path / "schema.toml"]
    assert main([*map(str, words), "-o", str(path / "model.json")]) == 0
    return path


def test_a_table_of_cases(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["decide", folder / "model.json", "--table", folder / "cases.csv"]
    code, out, err = run(capsys, *words, "--json")
    assert (code, err) == (0, "")
    rows = json.loads(out)
    assert [row["a"] for row in rows][:2] == [0, 1]
    assert rows[0]["utility"] > 0.8
    assert rows[2]["usual"] == 0
    assert run(capsys, *words)[1].split()[:4] == ["a", "utility", "error", "usual"]
    code, out, _ = run(capsys, *words, "-o", folder / "made.csv")
    assert out == f"{folder / 'made.csv'}: 3 rows\n"
    with (folder / "made.csv").open() as file:
        assert [row["a"] for row in csv.DictReader(file)][:2] == ["0", "1"]
    code, _, err = run(capsys, *words, "--state", "x=1")
    assert (code, err) == (2, "rspmn: --table and --state cannot be combined\n")
    code, _, err = run(capsys, *words, "--horizon", 3)
    assert code == 2
    assert "omit --horizon" in err


def test_policy_and_likelihood(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "policy", folder / "model.json")
    assert code == 0
    assert out.startswith("honest value ")
    assert out.splitlines()[1].split()[:3] == ["node", "x", "a"]
    code, out, _ = run(capsys, "loglik", folder / "model.json", folder / "log.csv", "--json")
    assert code == 0
    assert json.loads(out)["rows"] == 300
    assert np.isfinite(json.loads(out)["mean"])


def test_the_doctor_of_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["doctor", folder / "log.csv", "--single", "--schema", folder / "schema.toml"]
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert out.startswith("300 rows")
    assert out.endswith("no problems found\n")
    u = np.arange(30.0)
    columns = {"x": 2 * u + 1, "c": [f"case {k}" for k in range(30)], "a": [0] * 30, "u": u}
    bad = write(folder / "bad.csv", columns)
    Schema([["x", "c"], ["a"]], ["a"], "u").save(folder / "bad.toml")
    code, out, _ = run(capsys, "doctor", bad, "--single", "--schema", folder / "bad.toml", "--json")
    assert code == 0
    about = [finding["about"] for finding in json.loads(out)["findings"]]
    assert about == ["decisions", "leak", "identifier"]
    code, _, err = run(capsys, "doctor", bad, "--single")
    assert code == 2
    assert "--single needs --schema" in err


def test_a_table_without_a_variable_of_the_model(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write(folder / "misspelled.csv", {"zell": [1]})
    code, _, err = run(capsys, "act", folder / "model.json", "--table", table)
    assert code == 2
    assert "the table has no variable of the model: expected one of" in err
