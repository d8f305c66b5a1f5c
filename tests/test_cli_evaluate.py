"""`rspmn evaluate`: practice beside the recommendation, and any policy."""

import csv
import json
from pathlib import Path

import pytest

from rspmn import Episodes
from rspmn.cli import main
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.evaluate import compare, off_policy
from rspmn.learn import learn_rspmn


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log, which has a column of probabilities, and a model of it."""
    found, world = tmp_path_factory.mktemp("lake"), frozen_lake()
    table = world.generate(600, 8, 0, "final").to_long()
    table["p"] = [None if made is None else 0.25 for made in table["action"]]
    with (found / "log.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        rows = zip(*table.values(), strict=True)
        writer.writerows(["" if value is None else value for value in row] for row in rows)
    model, _ = learn_rspmn(Episodes.from_log(str(found / "log.csv"), world.schema))
    model.save(found / "m.json")
    (found / "rules.csv").write_text("cell,action\n14,right\n,down\n", encoding="utf-8")
    return found


def test_practice_and_recommendation(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("evaluate", folder / "m.json", "--log", folder / "log.csv", "--draws", 50)
    code, out, err = run(capsys, *words, "--top", 3)
    assert (code, err) == (0, "")
    assert "8 steps, 600 logged episodes; 90 % intervals" in out
    assert "95 %" not in out
    for word in ("current practice", "recommended policy", "difference", "with probability"):
        assert word in out
    table = out.split("largest differences:\n")[1].splitlines()
    assert len(table) == 4
    assert table[0].split()[:3] == ["cell", "visits", "practice"]
    facts = json.loads(run(capsys, *words, "--json")[1])
    world = frozen_lake()
    log = Episodes.from_log(str(folder / "log.csv"), world.schema)
    expected = compare(learn_rspmn(log)[0], log, draws=50)
    assert facts["practice"]["value"] == pytest.approx(expected.practice.value)
    assert facts["agreement"] == expected.agreement
    assert len(facts["nodes"]) == 10


def test_any_policy(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("evaluate", folder / "m.json", "--log", folder / "log.csv", "--draws", 50)
    for policy in ("uniform", "practice", "recommended", folder / "rules.csv"):
        code, out, err = run(capsys, *words, "--policy", policy)
        assert (code, err) == (0, "")
        assert out.startswith(f"policy {policy}: 8 steps, 600 logged episodes")
        assert "estimated from the log" in out
        assert "coverage" in out
    narrow, wide = (
        json.loads(run(capsys, *words, "--policy", "uniform", "--level", share, "--json")[1])
        for share in (0.5, 0.99)
    )
    assert (narrow["level"], wide["level"]) == (0.5, 0.99)
    for less, more in zip(narrow["estimates"], wide["estimates"], strict=True):
        assert more["low"] < less["low"] < less["value"] < less["high"] < more["high"]
    facts = json.loads(run(capsys, *words, "--policy", "uniform", "--horizon", 20, "--json")[1])
    log = Episodes.from_log(str(folder / "log.csv"), frozen_lake().schema)
    expected = off_policy(learn_rspmn(log)[0], log, "uniform", 20, draws=50)
    assert [e["value"] for e in facts["estimates"]] == pytest.approx(
        [e.value for e in expected.estimates]
    )
    assert facts["estimates"][0]["effective"] is None
    assert any("truncated before step 20" in note for note in facts["notes"])


def test_probabilities_from_a_column(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("evaluate", folder / "m.json", "--log", folder / "log.csv", "--draws", 20)
    code, out, _ = run(capsys, *words, "--policy", "uniform", "--probability", "p")
    assert code == 0
    assert "from the column p" in out
    text = (folder / "log.csv").read_text().replace(",0.25", ",0", 1)
    (folder / "zero.csv").write_text(text)
    zero = ("evaluate", folder / "m.json", "--log", folder / "zero.csv")
    code, _, err = run(capsys, *zero, "--policy", "uniform", "--probability", "p")
    assert code == 2
    assert "expected probabilities above 0 and at most 1" in err
    code, _, err = run(capsys, *words, "--probability", "p")
    assert (code, "--probability needs --policy" in err) == (2, True)
    code, _, err = run(capsys, *words, "--policy", "uniform", "--probability", "q")
    assert code == 2
    assert "'q'" in err


def test_what_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("evaluate", folder / "m.json", "--log", folder / "log.csv")
    for more, message in (
        (("--policy", "unifrm"), "unifrm"),
        (("--policy", "none.csv"), "none.csv: cannot be read"),
        (("--top", "-1", "--draws", "2"), "--top: expected 0 or more"),
        (("--horizon", "0"), "horizon: expected 1 or more"),
    ):
        code, _, err = run(capsys, *words, *more)
        assert (code, message in err) == (2, True)
