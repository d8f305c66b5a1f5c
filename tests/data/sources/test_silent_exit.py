"""A script that reads a log ends in silence: no engine complains while Python shuts down."""

import subprocess
import sys
from pathlib import Path

import pytest

from effort import mostly_soak

SOURCES = {
    "csv": "'log.csv'",
    "parquet": "'log.parquet'",
    "mapping": "table",
    "pandas": "__import__('pandas').DataFrame(table)",
    "polars": "__import__('polars').DataFrame(table)",
    "pyarrow": "__import__('pyarrow').table(table)",
    "duckdb": "__import__('duckdb').sql(\"SELECT * FROM 'log.parquet'\")",
}

SCRIPT = """
import rspmn
schema = rspmn.Schema([["{state}"], ["a"]], ["a"], "u")
table = {{"episode": [1, 1], "time": [0, 1], "x": [0, 1], "a": ["l", "r"], "u": [0.0, 1.0]}}
source = {source}
print(rspmn.windows(source, schema, ending="end"))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    import polars as pl

    table = {"episode": [1, 1], "time": [0, 1], "x": [0, 1], "a": ["l", "r"], "u": [0.0, 1.0]}
    pl.DataFrame(table).write_csv(tmp_path / "log.csv")
    pl.DataFrame(table).write_parquet(tmp_path / "log.parquet")
    return tmp_path


def run(folder: Path, source: str, state: str) -> subprocess.CompletedProcess[str]:
    code = SCRIPT.format(source=SOURCES[source], state=state)
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("source", mostly_soak(SOURCES, ["csv", "duckdb"]))
def test_a_script_ends_in_silence(source: str, folder: Path) -> None:
    done = run(folder, source, "x")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Windows(2 distinct of 2)\n", "")


@pytest.mark.parametrize("source", mostly_soak(["csv", "parquet", "duckdb"], ["csv"]))
def test_a_script_that_fails_ends_with_its_error(source: str, folder: Path) -> None:
    done = run(folder, source, "y")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("rspmn.errors.DataError: ")
    assert "leaked" not in done.stderr


def test_a_command_ends_in_silence(folder: Path) -> None:
    command = [sys.executable, "-m", "rspmn", "schema", "log.csv", "-o", "schema.toml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "leaked" not in done.stderr
    assert (folder / "schema.toml").exists()
