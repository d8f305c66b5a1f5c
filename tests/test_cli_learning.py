"""Learning and asking from the command line."""

import csv
import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from reproductions.single_shot import oil_wildcatter
from rspmn.cli import main


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture(scope="module")
def oil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 20,000 drillings, as CSV, and their schema."""
    folder, problem = tmp_path_factory.mktemp("oil"), oil_wildcatter()
    table = problem.sample(20_000, 0)
    with (folder / "oil.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    problem.schema.save(folder / "schema.toml")
    return folder


def test_learn_and_ask(oil: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = oil / "schema.toml"
    model = oil / "model.json"
    code, out, err = run(capsys, "learn-spmn", oil / "oil.csv", "--schema", schema, "-o", model)
    assert (code, err) == (0, "")
    assert out.startswith("learned ")
    assert "from 20000 rows" in out
    code, out, _ = run(capsys, "meu", model, "--json")
    assert json.loads(out)["meu"] == pytest.approx(22.5, abs=3)  # 20,000 rows vary that much
    code, out, _ = run(capsys, "decide", model, "--given", "test=yes", "result=closed")
    assert out.splitlines()[0].split()[:4] == ["*", "drill", "=", "yes"]
    code, out, _ = run(capsys, "decide", model, "--given", "test=yes", "result=none", "--json")
    best = next(a for a in json.loads(out)["actions"] if a["best"])
    assert (best["decision"], best["value"]) == ("drill", "no")
    code, out, _ = run(capsys, "info", model, "--json")
    assert json.loads(out)["kind"] == "spmn"
    assert run(capsys, "check", model)[0] == 0
    assert run(capsys, "draw", model, "-o", oil / "model.svg") == (0, "", "")
    drawn = run(capsys, "draw", model, "-o", oil / "model.svg", "--json", "--force")[1]
    assert json.loads(drawn)["picture"] == str(oil / "model.svg")
    assert (oil / "model.svg").read_text().startswith("<?xml")


def test_the_same_model_from_any_file(oil: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (oil / "oil.csv.gz").write_bytes(gzip.compress((oil / "oil.csv").read_bytes()))
    frame = pl.read_csv(oil / "oil.csv")
    frame.write_parquet(oil / "oil.parquet")
    frame.write_ndjson(oil / "oil.jsonl")
    frame.write_csv(oil / "oil.tsv", separator="\t")
    models = set()
    for name in ("oil.csv", "oil.csv.gz", "oil.parquet", "oil.jsonl", "oil.tsv"):
        words = ["learn-spmn", oil / name, "--schema", oil / "schema.toml", "-o", oil / "m.json"]
        assert run(capsys, *words, "--force")[0] == 0
        models.add((oil / "m.json").read_bytes())
    assert len(models) == 1


def test_budgets_and_the_paper_s_way(oil: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["learn-spmn", oil / "oil.csv", "--schema", oil / "schema.toml", "-o", oil / "m.json"]
    words.append("--force")
    _, out, _ = run(capsys, *words, "--max-nodes", 3)
    assert "stopped early: the limit of nodes was reached" in out
    _, out, _ = run(capsys, *words, "--max-seconds", 0, "--json")
    assert json.loads(out)["stopped_by"] == "seconds"
    code, out, _ = run(capsys, *words, "--paper", "--seed", 3, "--json")
    assert (code, json.loads(out)["stopped_by"]) == (0, "")


def test_wrong_input(oil: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = oil / "schema.toml"
    learn = ("--schema", schema, "-o", oil / "none.json")
    (oil / "empty.csv").write_text("")
    (oil / "cut.parquet").write_bytes(b"PAR1 and then nothing")
    (oil / "short.csv").write_text("test,result,drill,hole,profit\nyes,open,yes,dry,1\nyes,open\n")
    (oil / "text.csv").write_text("test,result,drill,hole,profit\nyes,open,yes,dry,much\n")
    (oil / "lacks.csv").write_text("test,result,drill,profit\nyes,open,yes,1\n")
    good = oil / "good.json"
    run(capsys, "learn-spmn", oil / "oil.csv", "--schema", schema, "-o", good)
    for words, message in {
        ("learn-spmn", oil / "no.csv", *learn): "no such file",
        ("learn-spmn", oil, *learn): "a folder, not a file",
        ("learn-spmn", schema, *learn): "expected a name ending in .csv",
        ("learn-spmn", oil / "empty.csv", *learn): "the file is empty",
        ("learn-spmn", oil / "cut.parquet", *learn): "not a Parquet file, or cut short",
        ("learn-spmn", oil / "short.csv", *learn): "",
        ("learn-spmn", oil / "text.csv", *learn): "column 'profit' is continuous, but holds text",
        ("learn-spmn", oil / "lacks.csv", *learn): "no column 'hole' in the table",
        ("learn-spmn", oil / "oil.csv", *learn, "--weights", "n"): "no column 'n' in the table",
        (
            "learn-spmn",
            oil / "oil.csv",
            *learn,
            "--max-nodes",
            -1,
        ): "--max-nodes: expected 0 or",
        ("meu", good, "--horizon", 3): "omit --horizon and --discount",
        ("decide", good, "--discount", 0.5): "omit --horizon and --discount",
        ("draw", good, "-o", "x.svg", "--part", "top"): "has no top: omit --part",
    }.items():
        code, out, err = run(capsys, *words)
        assert (code, out) == (2, ""), (words, err)
        assert message in err, (words, err)
        assert err.count("\n") == 1, (words, err)
    assert not (oil / "none.json").exists()
