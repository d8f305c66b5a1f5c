"""Files that cannot be read: one sentence each, exit code 2, nothing written."""

import gzip
import os
from pathlib import Path

import pytest

from rspmn.cli import main
from rspmn.data.episodes import Episodes
from rspmn.data.tables import as_table
from rspmn.data.write import write_episodes


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log and its schema, and files that are broken in every way."""
    folder = tmp_path_factory.mktemp("files")
    for name in ("good.csv", "good.parquet"):
        words = ["generate", "FrozenLake", "--episodes", "60", "-o", str(folder / name), "--force"]
        assert main([*words, "--schema", str(folder / "schema.toml")]) == 0
    text = (folder / "good.csv").read_text()
    lines = text.splitlines()
    parquet = (folder / "good.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(parquet[: len(parquet) // 2])
    (folder / "not.parquet").write_text(text)
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text(lines[0] + "\n")
    (folder / "short.csv").write_text("\n".join([*lines[:20], "7,1,2", *lines[20:]]) + "\n")
    (folder / "long.csv").write_text("\n".join([*lines[:20], lines[20] + ",9"]) + "\n")
    (folder / "utf16.csv").write_bytes(text.encode("utf-16"))
    (folder / "latin.csv").write_bytes((text + "99,0,1,l\xe9ft,0.0,false\n").encode("latin-1"))
    (folder / "mixed.csv").write_text(text + "99,0,1,left,much,false\n")
    (folder / "column.csv").write_text(text.replace("reward", "gain"))
    (folder / "bad.jsonl").write_text('{"episode": 1, "time":\n')
    (folder / "cut.csv.gz").write_bytes(gzip.compress(text.encode())[:200])
    (folder / "plain.csv.gz").write_text(text)
    (folder / "folder").mkdir()
    (folder / "table.xlsx").write_text("x")
    return folder


WRONG = {
    "cut.parquet": "not a Parquet file, or cut short",
    "not.parquet": "not a Parquet file, or cut short",
    "empty.csv": "the file is empty",
    "header.csv": "the table has no rows",
    "short.csv": "expected 6 cells, found 3 in line 21",
    "long.csv": "expected 6 cells, found 7 in line 21",
    "utf16.csv": "not a text file in UTF-8",
    "latin.csv": "not a text file in UTF-8",
    "mixed.csv": "column 'reward' is continuous, but holds text, 'much'",
    "column.csv": "no column 'reward' in the table",
    "bad.jsonl": "cannot be read",
    "cut.csv.gz": "cannot be read",
    "plain.csv.gz": "cannot be read",
    "folder": "a folder, not a file",
    "table.xlsx": "expected a name ending in .csv",
    "none.csv": "no such file",
    "none*.csv": "no file has such a name",
    "*.csv*": "",  # of several files, one is damaged
}


#: The doctor reads files as learning does.
@pytest.mark.parametrize(
    ("command", "name"),
    [
        *(("learn", name) for name in WRONG),
        *(
            pytest.param("doctor", name, marks=[pytest.mark.soak] if number > 2 else [])
            for number, name in enumerate(WRONG)
        ),
    ],
)
def test_broken_files(
    name: str, command: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(files.iterdir())
    model = files / "model.json"
    arguments = [command, str(files / name), "--schema", str(files / "schema.toml")]
    assert main([*arguments, "-o", str(model)] if command == "learn" else arguments) in (1, 2)
    said = capsys.readouterr()
    text = said.err + (said.out if command == "doctor" else "")
    assert WRONG[name] in text
    assert "Traceback" not in text
    if command == "learn":
        assert len(said.err.strip().splitlines()) == 1
        assert not model.exists()
    assert sorted(files.iterdir()) == before


def test_several_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log in parts is the log: the same model from the parts as from them all in one file."""
    schema, parts, whole = (str(tmp_path / n) for n in ("s.toml", "part.csv", "whole.csv"))
    options = ["--episodes", "330", "--schema", schema]
    assert main(["generate", "Maze", *options, "--files", "11", "-o", parts]) == 0
    names = sorted(path.name for path in tmp_path.glob("part-*.csv"))
    assert names[0] == "part-00.csv"
    assert len(names) == 11
    table = [(tmp_path / name).read_text().splitlines() for name in names]
    (tmp_path / "whole.csv").write_text(
        "\n".join([table[0][0], *(line for part in table for line in part[1:])]) + "\n"
    )
    episodes = as_table(whole).cells("episode").present
    assert len(set(episodes.tolist())) == 330
    for log, model in ((str(tmp_path / "part-*.csv"), "a.json"), (whole, "b.json")):
        assert main(["learn", log, "--schema", schema, "-o", str(tmp_path / model)]) == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    capsys.readouterr()
    assert main(["generate", "Maze", "--episodes", "3", "--files", "4", "-o", parts]) == 2
    assert "--files: expected 1 to 3" in capsys.readouterr().err


def test_an_interruption_keeps_finished_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def write(log: Episodes, path: str, wide: bool) -> None:
        if path.endswith("-1.csv"):
            raise KeyboardInterrupt
        write_episodes(log, path, wide)

    monkeypatch.setattr("rspmn.cli.generate.write_episodes", write)
    words = ["generate", "Maze", "--episodes", "9", "--files", "3", "-o", str(tmp_path / "log.csv")]
    assert main(words) == 130
    assert [path.name for path in tmp_path.iterdir()] == ["log-0.csv"]
    assert "nothing was written" not in capsys.readouterr().err


def test_the_log_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, schema = str(tmp_path / "log.csv"), str(tmp_path / "s.toml")
    assert main(["generate", "FrozenLake", "--episodes", "9", "--schema", schema, "-o", log]) == 0
    before = Path(log).read_bytes()
    capsys.readouterr()
    assert main(["learn", log, "--schema", schema, "-o", log, "--force"]) == 2
    assert "is the log: give another file" in capsys.readouterr().err
    assert Path(log).read_bytes() == before
    assert main(["generate", "Maze", "--schema", log, "-o", log, "--force"]) == 2
    assert "would be written twice" in capsys.readouterr().err
    assert Path(log).read_bytes() == before


def test_a_file_of_the_name_that_stands_for_standard_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "standard_output.csv"
    assert main(["generate", "FrozenLake", "--episodes", "2", "-o", str(path), "-q"]) == 0
    assert capsys.readouterr().out == ""
    assert path.exists()


def test_what_is_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "s.toml").write_text('order = [["x"], ["a"]]\ndecisions = ["a"]\nutility = "u"\n')
    schema = str(tmp_path / "s.toml")
    assert main(["doctor", str(tmp_path / "pipe.csv"), "--schema", schema]) == 2
    assert "expected a file; a pipe can be given as standard input" in capsys.readouterr().err
    odd = os.fsdecode(bytes(tmp_path / "n") + b"\xff.csv")
    Path(odd).write_text("episode,time,x,a,u\n1,0,1,2,3\n")
    assert main(["doctor", odd, "--schema", schema]) == 2
    assert "expected a name in UTF-8: rename the file" in capsys.readouterr().err
