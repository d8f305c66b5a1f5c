"""Logs to files and back, in every format and layout."""

from pathlib import Path

import numpy as np
import pytest

from effort import mostly_soak
from rspmn import Episodes, Followed, Schema, Windows
from rspmn.data.tables import as_table
from rspmn.data.write import write_episodes
from rspmn.envs.domains import DOMAINS
from rspmn.envs.logs import LAYOUTS, Layout
from rspmn.errors import DataError


def same(one: Episodes, other: Episodes) -> None:
    assert one.to_long() == other.to_long()
    assert np.array_equal(one.endings, other.endings)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl"])
@pytest.mark.parametrize("layout", mostly_soak(LAYOUTS, ["final", "padded"]))
@pytest.mark.parametrize("name", mostly_soak(["FrozenLake", "Taxi", "Elevators"], ["Taxi"]))
def test_there_and_back(name: str, layout: Layout, ending: str, tmp_path: Path) -> None:
    mdp = DOMAINS[name]()
    log = mdp.generate(20, mdp.horizon, 0, layout)
    path = tmp_path / f"log.{ending}"
    write_episodes(log, path)
    same(Episodes.from_long(as_table(path), mdp.schema, terminated="terminated"), log)


@pytest.mark.parametrize("layout", ["flags", "padded"])
def test_wide(layout: Layout, tmp_path: Path) -> None:
    mdp = DOMAINS["Maze"]()
    log = mdp.generate(30, 8, 0, layout)
    path = tmp_path / "log.csv"
    write_episodes(log, path, wide=True)
    table = as_table(path)
    assert table.names[:4] == ["x_0", "y_0", "action_0", "reward_0"]
    again = Episodes.from_wide(table, mdp.schema, ending="short" if layout == "flags" else "cut")
    assert np.array_equal(again.lengths, log.lengths)
    assert again[3] == log[3]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_same_bytes(ending: str, tmp_path: Path) -> None:
    mdp = DOMAINS["Elevators"]()
    for name in ("one", "two"):
        write_episodes(mdp.generate(500, 10, 7, "final"), tmp_path / f"{name}.{ending}")
    files = [(tmp_path / f"{name}.{ending}").read_bytes() for name in ("one", "two")]
    assert files[0] == files[1]


def test_odd_values(tmp_path: Path) -> None:
    """Quotes, commas, missing values, names of episodes, numbers that are not whole."""
    schema = Schema([['it"s', "n"], ["do"]], ["do"], "u", {"n": "continuous"})
    steps: list[list[dict[str, object]]] = [
        [{'it"s': "a,'b", "n": 0.1, "do": "x;y", "u": 1e-17}, {'it"s': None, "n": 0.2}],
        [{'it"s': "ü", "n": -3.5, "do": "x;y", "u": -2.0}],
    ]
    log = Episodes.from_steps(steps, schema, [Followed.STATE, Followed.END])
    for ending in ("csv", "parquet", "jsonl"):
        path = tmp_path / f"log.{ending}"
        write_episodes(log, path)
        again = Episodes.from_long(as_table(path), log.schema, terminated="terminated")
        assert again.to_long() == log.to_long()
        assert len(Windows.from_episodes(again)) == 2


def test_refusals_leave_nothing_behind(tmp_path: Path) -> None:
    log = DOMAINS["Maze"]().generate(3, 4, 0)
    with pytest.raises(DataError, match="expected a name ending in .csv"):
        write_episodes(log, tmp_path / "log.xls")
    with pytest.raises(DataError, match="cannot be written: No such file"):
        write_episodes(log, tmp_path / "nowhere" / "log.csv")
    assert list(tmp_path.iterdir()) == []
