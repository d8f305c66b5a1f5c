"""The paper's tables from one command: figures, and going on after being killed."""

import csv
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import rspmn
from reproductions.paper_tables import Campaign, run_campaign, write_report
from reproductions.paper_tables.cells import Cell, _deviation, run_cell
from reproductions.paper_tables.printed import PAPER
from reproductions.paper_tables.tables import Results, Table, curves, table_1, table_2
from rspmn.cli import main
from rspmn.envs.domains import DOMAINS
from rspmn.errors import DataError

SMALL = Campaign(("GridUniverse",), 0.002, 2)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small campaign."""
    folder = tmp_path_factory.mktemp("report")
    facts = run_campaign(SMALL, folder / "reproduction" / "cells", jobs=1)
    write_report(SMALL, facts, folder)
    return folder


def test_what_it_writes(report: Path) -> None:
    text = (report / "reproduction.md").read_text(encoding="utf-8")
    for head in ("Table 1", "Table 2", "Table 3", "MEU by horizon", "By number of episodes"):
        assert head in text
    assert "cores" in text
    for plot in ("meu_by_horizon.svg", "value_by_episodes.svg"):
        assert f"reproduction/{plot}" in text
        assert (report / "reproduction" / plot).read_text(encoding="utf-8").startswith("<?xml")


def test_the_figures_are_those_of_the_cells(report: Path) -> None:
    table = rows(report / "reproduction" / "table_2.csv")
    grid = next(row for row in table if row["data set"] == "GridUniverse")
    cells = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in (report / "reproduction" / "cells").glob("factored-GridUniverse-200-*.json")
    ]
    assert len(cells) == 2
    mean, spread = (float(part) for part in grid["MEU"].split(" ± "))
    meus = [cell["meu_8"] for cell in cells]
    assert mean == pytest.approx(np.mean(meus), abs=1e-4)
    assert spread == pytest.approx(np.std(meus, ddof=1), abs=1e-4)
    assert grid["optimal, exact"] == "6.0000"
    assert grid["MEU, paper"] == PAPER["GridUniverse"].rspmn_meu


def test_the_lake_has_three_horizons() -> None:
    """Of the paper's own, 8 steps, the optimum is known exactly."""
    table = table_2(Results([run_cell(Cell("factored", "FrozenLake", 100, 0, simulated=100))]))
    found = table.part(["steps", "SPMN's, paper", "optimal, exact"]).rows
    assert [row[:2] for row in found] == [("100", ""), ("8", "0.13"), ("300", "")]
    assert found[1][2] == "0.0189"


def test_bcq_is_trained_on_all_domains() -> None:
    cells = Campaign(baselines=("bcq",)).cells()
    assert {cell.domain for cell in cells if cell.way == "bcq-tuned"} == {*DOMAINS}


def test_every_kept_cell_is_used_again(report: Path) -> None:
    """A second run finds all of it, and runs nothing."""
    told: list[tuple[int, int]] = []
    cells = report / "reproduction" / "cells"
    before = {path: path.stat().st_mtime_ns for path in cells.iterdir()}
    run_campaign(SMALL, cells, done=lambda *numbers: told.append(numbers))
    assert told == [(len(before), len(before))]
    assert {path: path.stat().st_mtime_ns for path in cells.iterdir()} == before


def test_no_process_outlives_it(tmp_path: Path) -> None:
    """Killed alone, without its workers: they look for it twice a second, and end."""
    command = [sys.executable, "-m", "rspmn", "reproduce", "--domains", "Elevators", "-o"]
    running = subprocess.Popen(
        [*command, str(tmp_path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip

    def session() -> list[str]:
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rsplit(")", 1)[1].split()
            except OSError:  # it has just ended
                continue
            if fields[3] == str(running.pid) and fields[0] != "Z":
                found.append(path.parent.name)
        return found

    if not Path("/proc").exists():
        pytest.skip("needs /proc to see other processes")
    while running.poll() is None and len(session()) < 3:
        time.sleep(0.05)
    running.kill()
    running.wait()
    late = time.monotonic() + 120  # however busy the machine is
    while session() and time.monotonic() < late:
        time.sleep(0.1)
    assert session() == []


def test_what_is_missing_is_run(report: Path, tmp_path: Path) -> None:
    """Some cells are there, one was being written: the others are run, with the same tables."""
    cells = tmp_path / "reproduction" / "cells"
    shutil.copytree(report / "reproduction" / "cells", cells)
    for path in sorted(cells.glob("*-GridUniverse-*.json"))[:3]:
        path.unlink()
    (cells / ".factored-GridUniverse-200-0.json.x.part").write_text('{"way": "fac')
    told: list[tuple[int, int]] = []
    facts = run_campaign(SMALL, cells, done=lambda *numbers: told.append(numbers))
    assert [done for done, _ in told] == [len(facts) - 3 + k for k in range(4)]
    for name, table in (("table_1", table_1), ("table_2", table_2), ("curves", curves)):
        kept = (report / "reproduction" / f"{name}.csv").read_bytes()
        assert table(Results(facts)).csv().encode() == kept, name


def assert_same_tables(one: Path, other: Path) -> None:
    for name in ("table_1.csv", "table_2.csv", "curves.csv"):
        texts = {(p / "reproduction" / name).read_text(encoding="utf-8") for p in (one, other)}
        assert len(texts) == 1, name


@pytest.mark.soak
@pytest.mark.parametrize("after", [1, 7])
def test_killed_and_started_again(report: Path, tmp_path: Path, after: int) -> None:
    """Killed for good once some cells are finished; the same tables at the end."""
    command = [sys.executable, "-m", "rspmn", "reproduce", "--domains", *SMALL.domains, "--scale"]
    command += [str(SMALL.scale), "--seeds", str(SMALL.seeds), "-o", str(tmp_path)]
    cells = tmp_path / "reproduction" / "cells"
    running = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    while running.poll() is None and len(list(cells.glob("*.json"))) < after:
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    kept = len(list(cells.glob("*.json")))
    assert not (tmp_path / "reproduction.md").exists()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "cells" in done.stdout
    assert kept >= after
    assert_same_tables(tmp_path, report)


def test_interrupted_by_hand(tmp_path: Path) -> None:
    """Ctrl-C says what is kept, and runs none of the cells that wait: they would take 15 s."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [sys.executable, "-m", "rspmn", "reproduce", "--domains", "GridUniverse", "--scale"]
    command += ["0.1", "--seeds", "50", "--jobs", "1", "-o", str(tmp_path)]
    running = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    cells = tmp_path / "reproduction" / "cells"
    while running.poll() is None and len(list(cells.glob("*.json"))) < 1:
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=300)
    assert running.returncode == 130
    assert "goes on from there" in said.splitlines()[-1]
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 10


def test_deviations_by_hand() -> None:
    """The optimal policy deviates nowhere; in the grid's corners other actions are as good."""
    grid = DOMAINS["GridUniverse"]()
    values = grid.action_values(8)
    first = np.argmax(values >= values.max(axis=1, keepdims=True) - 1e-12, axis=1)
    assert _deviation(grid, first, 8) == (0.0, 0.0)
    last = values.shape[1] - 1 - np.argmax(values[:, ::-1] >= values.max(axis=1)[:, None], axis=1)
    raw, worse = _deviation(grid, last, 8)
    assert raw > 0  # another action, as good
    assert worse == 0
    assert _deviation(grid, values.argmin(axis=1), 8)[1] > 50


def test_where_the_table_is_better_it_shows() -> None:
    facts = [
        {"domain": "Maze", "way": way, "episodes": 10, "seed": 0, "meu_8": 0.5, "worth_8": worth}
        for way, worth in (("factored", 0.4), ("counts", 0.4), ("table", 0.5))
    ]
    assert curves(Results(facts)).rows[0][-1] == "by 0.1000"


def test_tables_are_written_as_they_should() -> None:
    table = Table(("|a|", "b"), [("1", "x, y")])
    assert table.markdown() == "| \\|a\\| | b |\n|---|---|\n| 1 | x, y |\n"
    assert table.csv() == '|a|,b\r\n1,"x, y"\r\n'
    assert table.part(["b"]).rows == [("x, y",)]


def test_baselines_of_sequences() -> None:
    facts = run_cell(Cell("spmn", "GridUniverse", 100, 0))
    assert facts["nodes"] > 100
    assert facts["stopped_by"] == ""
    more = [facts, run_cell(Cell("factored", "GridUniverse", 100, 0, simulated=100))]
    (row,) = table_2(Results(more)).part(["SPMN's MEU"]).rows
    assert row[0].startswith(f"{facts['meu_8']:.4f}")


def test_wrong_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = ["-o", str(tmp_path / "out")]
    assert main(["reproduce", "--domains", "Mase", *target]) == 2
    assert "did you mean 'Maze'" in capsys.readouterr().err
    assert main(["reproduce", "--domains", "SysAdmin", *target]) == 2
    assert "not one of the paper's" in capsys.readouterr().err
    assert main(["reproduce", "--baselines", "bqc", *target]) == 2
    assert "did you mean 'bcq'" in capsys.readouterr().err
    assert main(["reproduce", "--scale", "0", *target]) == 2
    assert "scale" in capsys.readouterr().err
    with pytest.raises(DataError, match="seeds"):
        Campaign(seeds=0)
    (tmp_path / "file").write_text("")
    assert main(["reproduce", "--scale", "0.001", "-o", str(tmp_path / "file")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_outside_a_checkout_it_says_how_to_get_it(tmp_path: Path) -> None:
    """The installed package, as a wheel holds it: nothing beside `rspmn/`."""
    package = Path(rspmn.__file__).parent
    shutil.copytree(package, tmp_path / "rspmn", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [sys.executable, "-m", "rspmn", "reproduce", "-o", "out"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 2
    assert "clone the repository of rspmn" in done.stderr
    assert done.stderr.count("\n") == 1
