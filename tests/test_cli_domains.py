"""`rspmn domains` and `rspmn generate`."""

import json
from pathlib import Path

import pytest

from rspmn import Episodes, Schema
from rspmn.cli import main
from rspmn.data.tables import as_table
from rspmn.envs.domains import DOMAINS


def test_the_domains(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["domains", "--json"]) == 0
    rows = {row["domain"]: row for row in json.loads(capsys.readouterr().out)}
    assert [*rows] == [*DOMAINS, "SysAdmin"]
    assert rows["Elevators"]["optimum"] == -7.330074
    assert (rows["Taxi"]["states"], rows["Taxi"]["actions"]) == (404, 6)
    assert main(["domains"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 9


def test_a_log_to_learn_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, schema, model = (str(tmp_path / n) for n in ("log.parquet", "s.toml", "model.json"))
    arguments = ["--episodes", "500", "--layout", "final", "-o", log, "--schema", schema]
    assert main(["generate", "griduniverse", *arguments, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["episodes"] == 500
    read = Episodes.from_long(as_table(log), Schema.load(schema), terminated="terminated")
    expected = DOMAINS["GridUniverse"]().generate(500, 8, 0, "final")
    assert read.to_long() == expected.to_long()
    assert facts["steps"] == expected.num_steps
    assert main(["learn", log, "--schema", schema, "-o", model]) == 0
    capsys.readouterr()
    assert main(["meu", model, "--horizon", "8"]) == 0
    assert "promise (MEU) 6  (" in capsys.readouterr().out


def test_wrong_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = str(tmp_path / "log.csv")
    assert main(["generate", "Taxy", "-o", target]) == 2
    assert "did you mean 'Taxi'" in capsys.readouterr().err
    assert main(["generate", "Taxi", "--layout", "final", "--wide", "-o", target]) == 2
    assert "wide" in capsys.readouterr().err
    assert main(["generate", "Taxi", "--episodes", "0", "-o", target]) == 2
    assert "expected 1 or more" in capsys.readouterr().err
    assert main(["generate", "Maze", "-o", str(tmp_path / "no" / "log.csv")]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
