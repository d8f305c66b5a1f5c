"""Columns of numbers with some cells of text: the same from every engine and in memory."""

from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import rspmn
from rspmn import Episodes, Kind, LogFormat, Schema, Windows
from rspmn.errors import DataError
from same_windows import assert_same

SCHEMA = Schema([["lactate"], ["drug"]], ["drug"], "u").with_log(ending="cut")
LABS: dict[str, list[Any]] = {
    "episode": [0, 0, 0, 1, 1, 1],
    "time": [0, 1, 2, 0, 1, 2],
    "lactate": ["1.5", "<0.5", " 2", "n/a", "", "> +9e0"],
    "drug": ["a", "b", "a", "b", "a", "b"],
    "u": [0.0, 1.0, 0.0, 1.0, 0.0, 1.0],
}


def sources(path: Path) -> list[Any]:
    rows = zip(*LABS.values(), strict=True)
    text = "\n".join([",".join(LABS), *(",".join(map(str, row)) for row in rows)]) + "\n"
    (path / "log.csv").write_text(text)
    frame = pl.DataFrame(LABS)
    return [LABS, frame, duckdb.from_arrow(frame.to_arrow()), path / "log.csv"]


def test_they_are_numbers(tmp_path: Path) -> None:
    expected = {
        "missing": [1.5, None, 2.0, None, None, None],
        "limits": [1.5, 0.5, 2.0, None, None, 9.0],
    }
    for how, values in expected.items():
        numbers: Any = {"lactate": how}
        schema = SCHEMA.with_log(numbers=numbers)
        assert LogFormat.from_dict(schema.log.to_dict()) == schema.log
        for source in sources(tmp_path):
            episodes = Episodes.from_log(source, schema)
            assert episodes.schema.kinds["lactate"] is Kind.CONTINUOUS
            assert episodes.columns["lactate"].decode() == values
            assert_same(rspmn.windows(source, schema), Windows.from_episodes(episodes))


def test_what_is_refused() -> None:
    wrong: Any = {"lactate": "limit"}
    with pytest.raises(DataError, match="'lactate': 'limit': did you mean 'limits'"):
        LogFormat(numbers=wrong)
    other: Any = {"lactat": "limits"}
    for source in (LABS, pl.DataFrame(LABS)):
        for read in (Episodes.from_log, rspmn.windows):
            with pytest.raises(DataError, match="no numbers column 'lactat' in the table"):
                read(source, SCHEMA.with_log(numbers=other))
