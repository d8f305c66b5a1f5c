"""Times in steps, and rows that are there twice: the same from every engine and in memory."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import rspmn
from effort import mostly_soak
from rspmn import Episodes, Followed, LogFormat, Schema, Windows
from rspmn.cli import main
from rspmn.errors import DataError, SchemaError
from same_windows import assert_same

SCHEMA = Schema([["x", "y"], ["a"]], ["a"], "u").with_log(terminated="done")
#: Minutes, two episodes in steps of 15: rows that complete each other, and a state at the end.
MINUTES: dict[str, list[Any]] = {
    "episode": [0, 0, 0, 0, 1, 1, 1],
    "time": [0, 7, 14, 16, 30, 46, 60],
    "x": [None, 1, 2, 3, 1, 2, 3],
    "y": ["p", None, "q", "q", "q", "p", "q"],
    "a": [None, "l", "r", "r", "l", "r", None],
    "u": [1.0, None, 0.5, 2.0, 0.0, 0.25, None],
    "done": [False, False, False, True, False, False, False],
}
START = dt.datetime(2024, 2, 29, 23, 0)


def dates(minutes: list[int]) -> list[dt.datetime]:
    return [START + dt.timedelta(minutes=m) for m in minutes]


def csv_of(table: dict[str, list[Any]], path: Path) -> Path:
    rows = zip(*table.values(), strict=True)
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in rows]
    (path / "log.csv").write_text("\n".join([",".join(table), *lines]) + "\n")
    return path / "log.csv"


SOURCES: dict[str, Callable[[Any, Path], Any]] = {
    "memory": lambda table, _: table,
    "polars": lambda table, _: pl.DataFrame(table),
    "duckdb": lambda table, _: duckdb.from_arrow(pl.DataFrame(table).to_arrow()),
    "csv": csv_of,
}


@pytest.mark.parametrize("how", SOURCES)
@pytest.mark.parametrize("times", mostly_soak(["minutes", "dates"], ["dates"]))
def test_rows_of_a_step_are_one(how: str, times: str, tmp_path: Path) -> None:
    table = dict(MINUTES)
    step: Any = 15
    if times == "dates":
        table["time"], step = dates(table["time"]), "15 minutes"
    order = [6, 2, 0, 5, 1, 3, 4]
    table = {name: [column[k] for k in order] for name, column in table.items()}
    source, schema = SOURCES[how](table, tmp_path), SCHEMA.with_log(step=step)
    episodes = Episodes.from_log(source, schema)
    decoded = {name: column.decode() for name, column in episodes.columns.items()}
    assert decoded == {
        "x": [1, 3, 1, 2],
        "y": ["p", "q", "q", "p"],
        "a": ["l", "r", "l", "r"],
        "u": [1.5, 2.0, 0.0, 0.25],
    }
    assert episodes.endings.tolist() == [Followed.END, Followed.STATE]
    assert_same(rspmn.windows(source, schema), Windows.from_episodes(episodes))


def test_days_are_those_of_the_calendar() -> None:
    """Visits at eight and at seven are on two days, not 23 hours apart."""
    days = [dt.datetime(1969, 12, 31, 8), dt.datetime(1970, 1, 1, 7), dt.datetime(1970, 1, 2, 23)]
    table: dict[str, list[Any]] = {
        "episode": [0, 0, 0], "time": days, "x": [0, 1, 2], "y": ["p"] * 3, "a": ["l"] * 3,
        "u": [0.0] * 3, "done": [False, False, True],
    }  # fmt: skip
    schema = SCHEMA.with_log(step="day")
    for source in (table, pl.DataFrame(table)):
        assert rspmn.windows(source, schema).counts.sum() == 3
    table["time"][2] = dt.datetime(1970, 1, 3)
    for source in (table, pl.DataFrame(table)):
        with pytest.raises(DataError, match="time goes from 1970-01-01 00:00:00 to 1970-01-03"):
            rspmn.windows(source, schema)


@pytest.mark.parametrize("how", ["polars", "csv"])
def test_rows_of_the_same_time(how: str, tmp_path: Path) -> None:
    table = {name: [*column, column[1], column[4]] for name, column in MINUTES.items()}
    source = SOURCES[how](table, tmp_path)
    plain = SCHEMA.with_log(gaps="allow", terminated="done")
    for schema in (SCHEMA.with_log(step=15), plain.with_log(step=15)):
        with pytest.raises(DataError, match="episode 0, step 1: duplicate time 0 in this episode"):
            rspmn.windows(source, schema)
    once = SCHEMA.with_log(duplicates="drop", step=15)
    expected = Windows.from_episodes(Episodes.from_log(MINUTES, SCHEMA.with_log(step=15)))
    assert_same(rspmn.windows(source, once), expected)
    assert_same(Windows.from_episodes(Episodes.from_log(source, once)), expected)
    other = {**table, "x": [*table["x"][:-1], 77]}
    for read in (Episodes.from_log, rspmn.windows):
        with pytest.raises(DataError, match="duplicate time 30 in this episode"):
            read(SOURCES[how](other, tmp_path), once)


def test_lengths_of_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text, seconds in (("4 hours", 14400), ("day", 86400), ("1.5 h", 5400), ("30s", 30)):
        assert LogFormat(step=text).step_length == (seconds, True)
    assert LogFormat(step=2).step_length == (2.0, False)
    wrong: list[Any] = ["fortnight", "", 0, -1, True, float("nan"), "4 hours and more", [1]]
    for step in wrong:
        with pytest.raises(DataError, match="step: expected a number above 0, or a duration"):
            LogFormat(step=step)
    SCHEMA.save(tmp_path / "s.toml")
    schema, model = str(tmp_path / "s.toml"), str(tmp_path / "m.json")
    words = ["learn", "log.csv", "--schema", schema, "-o", model]
    for text in ("1.5.2", "nan", "-1"):
        assert main([*words, "--step", text]) == 2
        said = capsys.readouterr().err
        assert said.startswith("rspmn: --step: expected a number above 0, or a duration"), said
    with pytest.raises(DataError, match="rows in order have no time"):
        LogFormat(step=1, time=None)
    with pytest.raises(SchemaError, match="duplicates 'dorp': did you mean 'drop'"):
        LogFormat.from_dict({"duplicates": "dorp"})
    for table in (MINUTES, pl.DataFrame(MINUTES)):
        with pytest.raises(DataError, match="holds numbers: give the step as a number"):
            rspmn.windows(table, SCHEMA.with_log(step="1 day"))
    dated = MINUTES | {"time": dates(MINUTES["time"])}
    for table in (dated, pl.DataFrame(dated)):
        with pytest.raises(DataError, match="holds dates: give the step such as '1 day'"):
            rspmn.windows(table, SCHEMA.with_log(step=3))


def test_a_time_that_is_missing() -> None:
    table = MINUTES | {"time": [0, None, 14, 16, 30, 46, 60]}
    for source in (table, pl.DataFrame(table)):
        with pytest.raises(DataError, match="a row of episode 0 is empty"):
            rspmn.windows(source, SCHEMA.with_log(step=15))


def test_seconds_of_dates() -> None:
    """Narwhals has no function for them: days are counted by the rules of the calendar."""
    rng = np.random.default_rng(0)
    seconds = rng.integers(-2_000_000_000, 5_000_000_000, 200)
    moments = [dt.datetime(1970, 1, 1) + dt.timedelta(seconds=int(s)) for s in seconds]
    rows = len(moments)
    table: dict[str, list[Any]] = {
        "episode": list(range(rows)), "time": moments, "x": [0] * rows, "y": ["p"] * rows,
        "a": ["l"] * rows, "u": [0.0] * rows, "done": [True] * rows,
    }  # fmt: skip
    from rspmn.data.sources.log_rows import LogQuery, coded_rows
    from rspmn.data.sources.open import open_source

    for source in (pl.DataFrame(table), duckdb.from_arrow(pl.DataFrame(table).to_arrow())):
        with open_source(source) as opened:
            asked = LogQuery(SCHEMA.with_log(step="7 s"), ())
            found = opened.read(coded_rows(opened, asked).sort("e").select("t")).cells("t").present
        np.testing.assert_array_equal(found, seconds // 7)


@pytest.mark.parametrize("how", ["polars", "duckdb"])
def test_time_stamps_as_text(how: str, tmp_path: Path) -> None:
    """Fault: those of universal time were refused, or numpy warned of them."""
    forms = (("Z", "T"), ("", " "), ("+00:00", "T"))
    for ending, between in forms[: 3 if how == "polars" else 1]:
        stamps = [d.isoformat(between) + ending for d in dates(MINUTES["time"])]
        source = SOURCES[how](MINUTES | {"time": stamps}, tmp_path)
        schema = SCHEMA.with_log(step="15 min")
        expected = Windows.from_episodes(Episodes.from_log(MINUTES, SCHEMA.with_log(step=15)))
        assert_same(rspmn.windows(source, schema), expected)
        assert_same(Windows.from_episodes(Episodes.from_log(source, schema)), expected)


def test_time_zones() -> None:
    """Fault: DuckDB left the zone out, and rows of two zones were in another order."""
    zones = ["2024-05-01T10:00:00+02:00", "2024-05-01T09:00:00Z", "2024-05-01T12:10:00+02:00"]
    table: dict[str, list[Any]] = {
        "episode": [0] * 3, "time": zones, "x": [0, 1, 2], "y": ["p"] * 3, "a": ["l"] * 3,
        "u": [0.0] * 3, "done": [False, False, True],
    }  # fmt: skip
    schema = SCHEMA.with_log(step="1 hour")
    episodes = Episodes.from_log(table, schema)
    assert episodes.columns["x"].decode() == [0, 1, 2]
    assert_same(rspmn.windows(table, schema), Windows.from_episodes(episodes))


def test_hours_that_come_twice_are_two() -> None:
    """In Berlin, 27 October 2024 has 2 o'clock twice: times are counted in universal time."""
    first = dt.datetime(2024, 10, 26, 23, tzinfo=dt.UTC)
    times = [first + dt.timedelta(hours=k) for k in range(5)]
    log = {"episode": [0] * 5, "time": times, "x": [*range(5)], "a": [*"lrlrl"],
           "u": [1.0, 2.0, 4.0, 8.0, 16.0], "terminated": [False] * 4 + [True]}  # fmt: skip
    frame = pl.DataFrame(log).with_columns(pl.col("time").dt.convert_time_zone("Europe/Berlin"))
    schema = Schema([["x"], ["a"]], ["a"], "u")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'Europe/Berlin'")
        relation = connection.sql("SELECT * FROM frame")
        for source in (log, frame, frame.to_pandas(), frame.to_arrow(), relation):
            found = rspmn.windows(source, schema, step="1 hour")
            assert sorted(found.columns["u"].numbers().tolist()) == [1.0, 2.0, 4.0, 8.0, 16.0]
            days = rspmn.windows(source, schema, step="1 day")
            assert sorted(days.columns["u"].numbers().tolist()) == [1.0, 30.0]
