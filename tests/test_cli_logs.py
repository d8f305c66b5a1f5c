"""Learning from logs, asking and drawing from the command line."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from rspmn import RSPMN, Episodes
from rspmn.cli import main
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.learn import learn_rspmn


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


def write(path: Path, log: Episodes) -> None:
    table = log.to_long()
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        rows = zip(*table.values(), strict=True)
        writer.writerows(["" if value is None else value for value in row] for row in rows)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 1,000 walks over the lake, and their schema."""
    folder, world = tmp_path_factory.mktemp("lake"), frozen_lake()
    write(folder / "lake.csv", world.generate(1000, 8, 0, "final"))
    world.schema.save(folder / "schema.toml")
    return folder


@pytest.fixture(scope="module")
def model(lake: Path) -> Path:
    words = ("learn", lake / "lake.csv", "--schema", lake / "schema.toml", "-o", lake / "m.json")
    assert main([*map(str, words)]) == 0
    return lake / "m.json"


def test_learning_is_that_of_the_library(
    lake: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected, _ = learn_rspmn(frozen_lake().generate(1000, 8, 0, "final"))
    assert RSPMN.load(model) == expected
    words = ("learn", lake / "lake.csv", "--schema", lake / "schema.toml", "-o", lake / "n.json")
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    assert "11 interface nodes" in out
    assert "terminated, " in out
    assert (lake / "n.json").read_bytes() == model.read_bytes()
    code, _, err = run(capsys, *words)
    said = f"rspmn: {lake / 'n.json'} already exists; use --force to overwrite it\n"
    assert (code, err) == (2, said)
    facts = json.loads(run(capsys, *words, "--force", "--json")[1])
    assert facts["interfaces"] == 11
    assert facts["steps"] == sum(expected.visits)
    passes = json.loads(run(capsys, *words, "--force", "--json", "--em-passes", 2, "--soft-em")[1])
    assert len(passes["em"]["log_likelihoods"]) >= 2
    assert run(capsys, *words, "--force", "--paper", "--time-limit", 0)[0] == 0


def test_asking(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    learned = RSPMN.load(model)
    code, out, _ = run(capsys, "meu", model, "--horizon", 100, "--json")
    assert json.loads(out)["meu"] == pytest.approx(float(learned.meu(horizon=100)))
    code, out, _ = run(capsys, "act", model, "--state", "cell=14", "--horizon", 100, "--json")
    best = next(answer for answer in json.loads(out)["actions"] if answer["best"])
    assert best["value"] == learned.policy(100).act({"cell": 14})
    assert run(capsys, "check", model)[0] == 0
    assert json.loads(run(capsys, "info", model, "--json")[1])["interface nodes"] == 11
    assert code == 0


def test_policy_as_a_table(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = model.with_name("policy.csv")
    assert run(capsys, "policy", model, "--horizon", 20, "-o", target)[0] == 0
    with target.open() as file:
        rows = list(csv.DictReader(file))
    policy = RSPMN.load(model).policy(20)
    assert len(rows) == 11
    for row in rows:
        assert row["action"] == policy.act({"cell": int(row["cell"])})
        assert float(row["value"]) == pytest.approx(policy.value({"cell": int(row["cell"])}))
    shown = run(capsys, "policy", model, "--horizon", 20)[1].splitlines()
    plain = [line for line in shown if not line.startswith("warning: ")]
    assert shown[-len(plain) :] == plain  # doubts come first
    assert plain[0].startswith("honest value ")
    assert plain[1].split() == ["node", "cell", "action", "value", "visits", "steps"]
    listed: list[dict[str, Any]] = json.loads(run(capsys, "policy", model, "--json")[1])
    assert {row["cell"] for row in listed} == {int(row["cell"]) for row in rows}
    code, _, err = run(capsys, "policy", model, "--horizon", 3, "-t", 3)
    assert (code, err) == (2, "rspmn: -t: expected 0 to 2, found 3\n")
    code, _, err = run(capsys, "policy", model, "-o", model.with_name("policy.txt"))
    assert (code, "expected a name ending in .csv" in err) == (2, True)


def test_likelihood_and_drawing(
    lake: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    each = lake / "each.csv"
    code, out, _ = run(capsys, "loglik", model, lake / "lake.csv", "-o", each, "--json")
    facts = json.loads(out)
    learned = RSPMN.load(model)
    exact = learned.log_likelihood(frozen_lake().generate(1000, 8, 0, "final"))
    assert facts["mean"] == pytest.approx(exact.mean())
    with each.open() as file:
        assert len(list(csv.DictReader(file))) == 1000
    drawn = lake / "drawn.csv"
    words = ("sample", model, "--horizon", 8, "--episodes", 50, "-o", drawn)
    code, out, _ = run(capsys, *words, "--best")
    assert (code, "50 episodes" in out) == (0, True)
    first = drawn.read_bytes()
    run(capsys, *words, "--best", "--force")
    assert drawn.read_bytes() == first
    # what it draws it reads, and finds likely
    code, out, _ = run(capsys, "loglik", model, drawn)
    assert (code, out.startswith("log-likelihood -")) == (0, True)


def test_what_is_wrong_is_said(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--schema", lake / "schema.toml", "-o", lake / "x.json", "--force")
    plain = (lake / "lake.csv").read_text().replace("terminated", "done").replace("time", "when")
    (lake / "odd.csv").write_text(plain)
    code, _, err = run(capsys, "learn", lake / "odd.csv", *words)
    assert (code, "name it with --time" in err) == (2, True)
    code, _, err = run(capsys, "learn", lake / "odd.csv", *words, "--time", "when")
    assert (code, "does not say why episodes ended" in err) == (2, True)
    named = ("--time", "when", "--terminated", "done")
    assert run(capsys, "learn", lake / "odd.csv", *words, *named)[0] == 0
    assert run(capsys, "learn", lake / "odd.csv", *words, "--in-order", "--ending", "cut")[0] == 0
    assert (lake / "x.json").exists()
    before = (lake / "x.json").read_bytes()
    assert run(capsys, "learn", lake / "none.csv", *words)[0] == 2
    assert (lake / "x.json").read_bytes() == before
