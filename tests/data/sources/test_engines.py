"""Windows from every engine: the same as by the definition, and the same faults."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rspmn
from effort import SOAK, mostly_soak, share_of_examples
from odd_logs import SCHEMA, Table, logs, long_table, shuffled
from rspmn import Episodes, Schema, Windows
from rspmn.data.write import write_episodes
from rspmn.envs.domains import DOMAINS
from rspmn.errors import DataError
from same_windows import assert_same


def relation(table: Table) -> Any:
    return duckdb.from_arrow(pa.table(table))


#: Engines that hold tables, and what makes a table theirs.
ENGINES: dict[str, Callable[[Table], Any]] = {
    "mapping": dict,
    "pandas": pd.DataFrame,
    "polars": lambda table: pl.DataFrame(table, strict=False),
    "polars lazy": lambda table: pl.LazyFrame(table, strict=False),
    "pyarrow": pa.table,
    "duckdb": relation,
}
FILES = ["csv", "tsv", "parquet", "jsonl"]


@pytest.mark.parametrize("engine", mostly_soak(ENGINES, {*ENGINES} - {"pandas"}))
@share_of_examples(0.1)
@given(logs, st.integers(-1, 3), st.integers(0, 9), st.sampled_from(["state", "tuple"]))
def test_the_same_windows_from_every_engine(
    engine: str, log: Any, zero: int, seed: int, successor: Any
) -> None:
    table = long_table(log, zero)
    expected = Windows.from_episodes(
        Episodes.from_long(table, SCHEMA, terminated="done"), successor
    )
    options: dict[str, Any] = {"terminated": "done", "successor": successor}
    made = ENGINES[engine]
    assert_same(rspmn.windows(made(table), SCHEMA, **options), expected)
    mixed = shuffled(table, np.random.default_rng(seed))
    assert_same(rspmn.windows(made(mixed), SCHEMA, **options), expected)


@pytest.mark.parametrize("ending", ["end", "cut", "short", "final_row"])
@share_of_examples(0.05)
@given(logs)
def test_endings_as_the_caller_says(ending: Any, log: Any) -> None:
    table = long_table(log, 0)
    expected = Windows.from_episodes(Episodes.from_long(table, SCHEMA, ending=ending))
    for engine in ("polars", "duckdb"):
        assert_same(rspmn.windows(ENGINES[engine](table), SCHEMA, ending=ending), expected)


@pytest.mark.parametrize("ending", FILES)
@pytest.mark.parametrize("layout", mostly_soak(["flags", "final"], ["final"]))
@pytest.mark.parametrize("name", mostly_soak(["FrozenLake", "CrossingTraffic"], ["FrozenLake"]))
def test_files_of_every_kind(ending: str, layout: Any, name: str, tmp_path: Path) -> None:
    log = DOMAINS[name]().generate(200, 8, 0, layout)
    path = tmp_path / f"log.{ending}"
    write_episodes(log, path)
    found = rspmn.windows(path, log.schema, terminated="terminated")
    assert_same(found, Windows.from_episodes(log))


def test_several_files_in_any_order(tmp_path: Path) -> None:
    """An episode may go on in the next file, and names of files need not sort as episodes do."""
    log = DOMAINS["Maze"]().generate(40, 8, 1, "final")
    frame = pl.DataFrame(log.to_long())
    cuts = [0, 3, 4, 4, 100, len(frame)]  # one of them is empty, one is a single row
    for place, name in enumerate("dacbe"):
        frame[cuts[place] : cuts[place + 1]].write_parquet(tmp_path / f"{name}.parquet")
    found = rspmn.windows(str(tmp_path / "*.parquet"), log.schema, terminated="terminated")
    assert_same(found, Windows.from_episodes(log))
    shuffled_rows = frame.sample(fraction=1, shuffle=True, seed=0)
    shuffled_rows[:50].write_csv(tmp_path / "one.csv")
    shuffled_rows[50:].write_csv(tmp_path / "two.csv")
    found = rspmn.windows(str(tmp_path / "*.csv"), log.schema, terminated="terminated")
    assert_same(found, Windows.from_episodes(log))


def test_values_of_every_type() -> None:
    """Text, whole numbers in floats, dates and times, booleans, numbers, and what is missing."""
    table: Table = {
        "episode": ["b", "b", "a", "a"],
        "time": [dt.date(2024, 1, d) for d in (1, 3, 1, 2)],
        "day": [dt.date(2024, 2, d) for d in (1, 2, 2, 1)],
        "when": [dt.datetime(2024, 2, 1, h, 30) for h in (1, 2, 2, 1)],
        "whole": [1.0, 2.0, None, 2.0],
        "half": [0.5, 0.25, 0.5, None],
        "is": [True, False, None, True],
        "word": ["", "w", "v", None],
        "a": [0, 1, 1, 0],
        "u": [1.0, -0.0, 0.0, 2.0],
    }
    schema = Schema([["day", "when", "whole", "half", "is", "word"], ["a"]], ["a"], "u")
    expected = Windows.from_episodes(Episodes.from_long(table, schema, ending="cut"))
    assert expected.columns["day"].domain == ("2024-02-01", "2024-02-02")
    assert expected.columns["when"].domain == ("2024-02-01T01:30:00", "2024-02-01T02:30:00")
    assert expected.columns["whole"].domain == (1, 2)
    assert expected.columns["word"].domain == ("v", "w")
    for made in ENGINES.values():
        found = rspmn.windows(made(table), schema, ending="cut")
        assert_same(found, expected)
        read = Windows.from_episodes(Episodes.from_long(made(table), schema, ending="cut"))
        assert_same(read, expected)


def test_times_that_are_text_dates(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "episode,time,x,a,u\n1,2024-02-01,p,0,1\n1,2023-12-31,q,1,0\n1,2024-01-05,p,1,0.5\n"
    )
    schema = Schema([["x"], ["a"]], ["a"], "u")
    found = rspmn.windows(path, schema, ending="cut")
    log = Episodes.from_long(path, schema, ending="cut")
    assert [step["x"] for step in log[0]] == ["q", "p", "p"]
    assert_same(found, Windows.from_episodes(log))
    path.write_text("episode,time,x,a,u\n1,soon,p,0,1\n1,later,q,1,0\n")
    with pytest.raises(DataError, match="time column 'time': expected numbers or dates, found 's"):
        rspmn.windows(path, schema, ending="cut")


def test_rows_in_order_without_times() -> None:
    table = long_table([([{"x": "p", "y": 1, "a": "l", "u": 0.0}] * 3, "cut")] * 2, 0)
    del table["time"]
    expected = Windows.from_episodes(Episodes.from_long(table, SCHEMA, time=None, ending="cut"))
    for engine in ENGINES.values():
        assert_same(rspmn.windows(engine(table), SCHEMA, time=None, ending="cut"), expected)


WRONG: dict[str, tuple[dict[str, list[Any]], dict[str, Any]]] = {
    "episode 1, step 2: duplicate time 1": ({"time": [0, 1, 1, 0]}, {"ending": "cut"}),
    "episode 1, step 1: time goes from 0 to 5": ({"time": [0, 5, 6, 0]}, {"ending": "cut"}),
    "episode 1, step 1: 'a' is missing; only state variables may be (1 such rows)": (
        {"a": ["l", None, "l", "r"]},
        {"ending": "cut"},
    ),
    "episode 2, step 0: 'u' is missing": (
        {"u": [1.0, 0.5, 1.0, float("nan")]},
        {"ending": "cut"},
    ),
    "episode 1, step 0: terminated, but the episode goes on": (
        {"done": [True, False, False, True]},
        {"terminated": "done"},
    ),
    "the terminated flag is empty": ({"done": [False, None, False, True]}, {"terminated": "done"}),
    "terminated column 'done': expected true and false, or 1 and 0": (
        {"done": [0, 0, 0, 2]},
        {"terminated": "done"},
    ),
    "time column 'time': a row of episode 1 is empty": (
        {"time": [0, None, 1, 0]},
        {"ending": "cut"},
    ),
    "episode column 'episode': a row is empty": ({"episode": [1, None, 1, 2]}, {"ending": "cut"}),
    "episode 2 has no step with a decision": (
        {"a": ["l", "l", "l", None], "u": [1.0, 0.5, 1.0, None]},
        {"ending": "cut"},
    ),
    "column 'u': expected finite numbers": (
        {"u": [1.0, float("inf"), 0.0, 1.0]},
        {"ending": "cut"},
    ),
    "no column 'x' in the table": ({"z": [1, 2, 3, 4]}, {"ending": "cut"}),
    "no episode column 'id' in the table": ({}, {"ending": "cut", "episode": "id"}),
    "the table does not say why episodes ended": ({}, {}),
    "decision 'a' holds numbers that are not whole": (
        {"a": [0.5, 1.0, 1.0, 1.0]},
        {"ending": "cut"},
    ),
}


#: DuckDB reads a mapping too: its faults are those of `test_episodes`, by the same queries.
@pytest.mark.parametrize("engine", mostly_soak(["mapping", "polars", "duckdb"], ["polars"]))
@pytest.mark.parametrize("message", WRONG)
def test_faults_are_named(engine: str, message: str) -> None:
    change, options = WRONG[message]
    table: Table = {
        "episode": [1, 1, 1, 2], "time": [0, 1, 2, 0], "x": ["p", "q", "p", "p"],
        "y": [1, 1, 2, 2], "a": ["l", "l", "r", "r"], "u": [1.0, 0.5, 1.0, 2.0],
        "done": [False, False, True, True],
    }  # fmt: skip
    table |= change
    if "z" in change:
        del table["x"]
    with pytest.raises(DataError) as caught:
        rspmn.windows(ENGINES[engine](table), SCHEMA, **options)
    assert message in str(caught.value)


def test_gaps_may_be_allowed() -> None:
    table = long_table([([{"x": "p", "y": 1, "a": "l", "u": 0.0}] * 3, "cut")], 0)
    table["time"] = [0, 4, 9]
    expected = Windows.from_episodes(Episodes.from_long(table, SCHEMA, ending="cut", gaps="allow"))
    for engine in ENGINES.values():
        assert_same(rspmn.windows(engine(table), SCHEMA, ending="cut", gaps="allow"), expected)


# ---- the wide layout -----------------------------------------------------------------


@share_of_examples(0.1)
@given(logs, st.sampled_from(["end", "short", "final_row"]))
def test_the_wide_layout(log: Any, ending: Any) -> None:
    longest = max(len(steps) + (end == "state") for steps, end in log)
    table: Table = {f"{name}{t}": [] for t in range(longest) for name in "xyau"}
    for of_episode, end in log:
        rows = [*of_episode, {"x": "r", "y": 2}] if end == "state" else of_episode
        for t in range(longest):
            for name in "xyau":
                table[f"{name}{t}"].append(rows[t].get(name) if t < len(rows) else None)
    expected = Windows.from_episodes(Episodes.from_wide(table, SCHEMA, ending=ending))
    for engine in ("mapping", "polars", "pandas"):
        found = rspmn.windows(ENGINES[engine](table), SCHEMA, wide=True, ending=ending)
        assert_same(found, expected)


def test_wide_files(tmp_path: Path) -> None:
    log = DOMAINS["Maze"]().generate(60, 3, 0, "flags")
    for ending in FILES if SOAK else ("csv", "parquet"):
        path = tmp_path / f"log.{ending}"
        write_episodes(log, path, wide=True)
        found = rspmn.windows(path, log.schema, wide=True, ending="short")
        read = Episodes.from_wide(path, log.schema, ending="short")
        assert_same(found, Windows.from_episodes(read))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0, 1, 2.0, None, None, None], [None] * 6], "row 1 is empty: every row must be an"),
        ([[None, None, None, 0, 1, 2.0]], "row 0"),
        ([[0, 1, 2.0, None, None, None, 0, 1, 2.0]], "row 0: step 1 is empty, but later steps"),
        ([[0, None, 2.0]], "episode 0, step 0: 'a' is missing"),
        ([[0, 1, 2.0, 5]], "blocks of 3 columns"),
    ],
)
def test_wide_faults_are_named(rows: list[list[Any]], message: str) -> None:
    schema = Schema([["x"], ["a"]], ["a"], "u")
    table = {f"c{k}": [row[k] for row in rows] for k in range(len(rows[0]))}
    for engine in ("mapping", "polars"):
        with pytest.raises(DataError) as caught:
            rspmn.windows(ENGINES[engine](table), schema, wide=True, ending="cut")
        assert message in str(caught.value)


# ---- odd tables ----------------------------------------------------------------------


PLAIN: Table = {
    "episode": [1, 1, 1, 2, 2], "time": [0, 1, 2, 0, 1], "x": list("pqpqp"), "y": [1, 2, 1, 1, 2],
    "a": list("lrllr"), "u": [0.0, 1.0, 2.0, 0.0, 1.0],
}  # fmt: skip


def test_several_files_have_the_types_of_all_of_them(tmp_path: Path) -> None:
    """The first file's utilities are whole numbers; those of the second must not become so."""
    one = PLAIN | {"u": [0, 1, 2, 0, 1]}
    other = PLAIN | {"episode": [3, 3, 3, 4, 4], "u": [0.5] * 5, "y": [1.25] * 5}
    both = {name: [*one[name], *other[name]] for name in PLAIN}
    expected = rspmn.windows(both, SCHEMA, ending="cut")
    for ending in ("parquet", "csv", "jsonl"):
        for k, table in enumerate((one, other)):
            frame = pl.DataFrame(table)
            path = tmp_path / f"{ending}{k}.{ending}"
            writers: dict[str, Any] = {
                "parquet": frame.write_parquet,
                "csv": frame.write_csv,
                "jsonl": frame.write_ndjson,
            }
            writers[ending](path)
        found = rspmn.windows(str(tmp_path / f"{ending}*.{ending}"), SCHEMA, ending="cut")
        assert_same(found, expected)


@pytest.mark.parametrize("engine", mostly_soak(ENGINES, ["pandas", "polars"]))
def test_nothing_is_nothing_however_it_is_written(engine: str) -> None:
    nan = float("nan")
    table: Table = {
        "episode": [1, 1, 2, 2, 3, 3, 3], "time": [0, 1, 0, 1, 0, 1, 2],
        "x": ["p", "q", "p", "q", "p", "p", ""], "y": [1.0, 2.0, 1.0, 1.0, 2.0, 1.0, nan],
        "a": ["l", "r", "l", "r", "l", "l", None], "u": [1.0, 0.0, 1.0, 0.0, 1.0, 1.0, None],
        "done": [False, True, False, True, False, False, None],
    }  # fmt: skip
    expected = Windows.from_episodes(Episodes.from_long(table, SCHEMA, terminated="done"))
    assert_same(rspmn.windows(ENGINES[engine](table), SCHEMA, terminated="done"), expected)
    for change, message in (
        ({"episode": ["b", "b", "b", "", ""]}, "episode column 'episode': a row is empty"),
        ({"episode": [1.0, 1.0, 1.0, nan, 2.0]}, "episode column 'episode': a row is empty"),
        ({"time": [0.0, 1.0, nan, 0.0, 1.0]}, "time column 'time': a row of episode 1"),
        ({"time": [0.0, 1.0, float("inf"), 0.0, 1.0]}, "time column 'time': expected finite"),
    ):
        with pytest.raises(DataError) as caught:
            rspmn.windows(ENGINES[engine](PLAIN | change), SCHEMA, ending="cut")
        assert message in str(caught.value)


def test_times_at_the_end_of_their_type() -> None:
    table = {name: np.array(column) for name, column in PLAIN.items()}
    table["time"] = np.array([253, 254, 255, 253, 254], np.uint8)
    expected = rspmn.windows(PLAIN, SCHEMA, ending="cut")
    assert_same(rspmn.windows(table, SCHEMA, ending="cut"), expected)


def test_times_with_a_zone() -> None:
    query = "SELECT * REPLACE ('2020-01-01 10:00'::TIMESTAMPTZ AS x) FROM log"
    with duckdb.connect() as connection:
        connection.register("log", pa.table(PLAIN))
        found = rspmn.windows(connection.sql(query), SCHEMA, ending="cut")
        assert len(found.columns["x"].domain) == 1
        left = connection.sql("SELECT table_name FROM duckdb_tables()").fetchall()
        assert left == []  # nothing of ours stays in another's database


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (PLAIN | {"X": [1] * 5}, "columns 'x' and 'X' differ in case only: rename one"),
        (PLAIN | {"y": np.array([b"1"] * 5)}, "column 'y': expected strings, numbers"),
        (PLAIN | {"y": np.array([1j] * 5)}, "column 'y': expected strings, numbers"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), "columns of the same name"),
        (3, "expected a path, a pandas, Polars or PyArrow table"),
    ],
)
def test_tables_that_are_none(source: Any, message: str) -> None:
    with pytest.raises(DataError) as caught:
        rspmn.windows(source, SCHEMA, ending="cut")
    assert message in str(caught.value)


def test_names_that_are_patterns() -> None:
    schema = Schema([["*", "y"], ["a"]], ["a"], "u")
    table = {("*" if name == "x" else name): column for name, column in PLAIN.items()}
    for engine in ("mapping", "polars", "duckdb"):
        with pytest.raises(DataError, match="this name is reserved by engines: rename it"):
            rspmn.windows(ENGINES[engine](table), schema, ending="cut")


def test_files_that_do_not_go_together(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("episode,time,x,y,a,u\n1,0,p,1,l,0\n")
    (tmp_path / "b.csv").write_text("episode;time;x;y;a;u\n2;0;p;1;l;0\n")
    with pytest.raises(DataError, match=r"\.csv"):
        rspmn.windows(str(tmp_path / "*.csv"), SCHEMA, ending="cut")
