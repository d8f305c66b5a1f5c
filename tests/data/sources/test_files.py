"""Files by their names, and what is in them by theirs."""

import json
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import rspmn
from odd_logs import SCHEMA, long_table
from rspmn import Episodes, LogFormat, Schema, Windows
from rspmn.data.tables import as_table
from rspmn.errors import DataError
from same_windows import assert_same

STEPS = [
    {"x": "p", "y": 1, "a": "l", "u": 0.0},
    {"x": "q", "y": 2, "a": "r", "u": 1.5},
    {"x": "p", "y": 2, "a": "r", "u": 0.5},
]
TABLE = long_table([(STEPS, "terminated"), (STEPS[:2], "cut"), (STEPS, "state")], 0)
EXPECTED = Windows.from_episodes(Episodes.from_long(TABLE, SCHEMA, terminated="done"))


def test_names_that_differ_in_case_are_one_column(tmp_path: Path) -> None:
    frame = pl.DataFrame(TABLE)
    frame[:4].write_parquet(tmp_path / "0.parquet")
    frame[4:].rename({"x": "X", "time": "Time"}).write_parquet(tmp_path / "1.parquet")
    found = rspmn.windows(str(tmp_path / "*.parquet"), SCHEMA, terminated="done")
    assert_same(found, EXPECTED)


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_names_of_files_are_no_patterns(ending: str, tmp_path: Path) -> None:
    frame = pl.DataFrame(TABLE)
    for name, rows in (("log[1]", frame), ("log1", frame[:2])):
        path = tmp_path / f"{name}.{ending}"
        writers: dict[str, Any] = {
            "csv": rows.write_csv, "parquet": rows.write_parquet, "jsonl": rows.write_ndjson,
        }  # fmt: skip
        writers[ending](path)
    found = rspmn.windows(tmp_path / f"log[1].{ending}", SCHEMA, terminated="done")
    assert_same(found, EXPECTED)


def test_folders_with_names_of_columns(tmp_path: Path) -> None:
    """What a file holds is not overruled by its folder's name; what it lacks is read off it."""
    frame = pl.DataFrame(TABLE)
    folder = tmp_path / "x=new"
    folder.mkdir()
    frame.write_parquet(folder / "log.parquet")
    frame.write_csv(folder / "log.csv")
    for name in ("log.parquet", "log.csv"):
        assert_same(rspmn.windows(folder / name, SCHEMA, terminated="done"), EXPECTED)
    for episode in (0, 1, 2):
        own = tmp_path / "log" / f"episode={episode}"
        own.mkdir(parents=True)
        rows = frame.filter(pl.col("episode") == episode).drop("episode")
        rows.write_parquet(own / "rows.parquet")
    found = rspmn.windows(str(tmp_path / "log/*/*.parquet"), SCHEMA, terminated="done")
    assert_same(found, EXPECTED)


@pytest.mark.parametrize("name", ["x", "y", "u", "time"])
def test_not_a_number_in_parquet_is_missing(name: str, tmp_path: Path) -> None:
    """Like null. The bounds of a column in the file leave NaN out, so they tell nothing of it."""
    steps = 120
    columns: dict[str, Any] = {
        "episode": [k // 6 for k in range(steps)],
        "time": [float(k % 6) for k in range(steps)],
        "x": [float(k % 3) for k in range(steps)],
        "y": [k / 7 for k in range(steps)],
        "a": ["l" if k % 5 < 2 else "r" for k in range(steps)],
        "u": [float(k % 2) for k in range(steps)],
    }
    columns[name][4::10] = [float("nan")] * (steps // 10)
    table = pl.DataFrame(columns)
    paths = [tmp_path / "nan.parquet", tmp_path / "null.parquet"]
    table.write_parquet(paths[0])
    table.with_columns(pl.col(name).fill_nan(None)).write_parquet(paths[1])
    schema = Schema([["x", "y"], ["a"]], ["a"], "u", log=LogFormat(ending="cut"))
    found = []
    for path in paths:
        examined = rspmn.examine(path, schema)
        assert examined.survey[name].missing == steps // 10
        said = [str(finding).replace(path.name, "log") for finding in examined.findings]
        try:
            read: object = [repr(c) for c in rspmn.windows(path, schema).columns.values()]
        except DataError as error:
            read = str(error).replace(path.name, "log")
        found.append((examined.survey, said, read))
    assert found[0] == found[1]
    assert isinstance(found[0][2], list) == (name in "xy")


def test_text_in_json_is_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rows = [
        {"day": "2020-1-1", "hour": "10:30:00", "id": 2**64},
        {"day": "2020-01-01", "hour": "11:00:00", "id": -1},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    table = as_table(path)
    found = {name: table.cells(name).present.tolist() for name in table.names}
    assert found == {
        "day": ["2020-1-1", "2020-01-01"],
        "hour": ["10:30:00", "11:00:00"],
        "id": ["18446744073709551616", "-1"],
    }


def test_ids_that_are_too_large_for_numbers_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    frame = pl.DataFrame(TABLE).with_columns((pl.col("episode") + 2**62).cast(pl.Int128) * 4)
    frame.write_csv(path)
    assert_same(rspmn.windows(path, SCHEMA, terminated="done"), EXPECTED)


def test_tables_of_the_caller_by_any_name() -> None:
    with duckdb.connect() as connection:
        connection.register("rows", pa.table(TABLE))
        for name in ("part", "log", "rspmn_result"):
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
        for name in ("part", "log", "rspmn_result"):
            found = rspmn.windows(connection.table(name), SCHEMA, terminated="done")
            assert_same(found, EXPECTED)
        wide = connection.sql("SELECT * REPLACE (y::HUGEINT AS y, u::DECIMAL(9, 2) AS u) FROM rows")
        assert_same(rspmn.windows(wide, SCHEMA, terminated="done"), EXPECTED)


def test_times_that_are_text_in_every_engine() -> None:
    days = {"time": [f"2020-01-0{t + 1}" for t in TABLE["time"]]}
    table = TABLE | days
    made: list[Any] = [table, pl.DataFrame(table), pl.LazyFrame(table), pa.table(table)]
    for source in made:
        assert_same(rspmn.windows(source, SCHEMA, terminated="done"), EXPECTED)
        wrong = pl.DataFrame(TABLE | {"time": ["2020-13-45"] * len(TABLE["time"])})
    for source in (wrong, wrong.to_dict(as_series=False), wrong.to_arrow()):
        with pytest.raises(DataError):
            rspmn.windows(source, SCHEMA, terminated="done")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT *, 1 AS episode FROM rows",
        "SELECT * REPLACE (CASE WHEN time = 1 THEN error('broken') END AS x) FROM rows",
        "SELECT * REPLACE (time::HUGEINT * 10::HUGEINT ** 30 AS time) FROM rows",
    ],
)
def test_relations_that_fail_are_told_in_one_sentence(query: str) -> None:
    with duckdb.connect() as connection:
        connection.register("rows", pa.table(TABLE))
        relation = connection.sql(query)
        with pytest.raises(DataError) as caught:
            rspmn.windows(relation, SCHEMA, terminated="done")
        assert "\n" not in str(caught.value)


def test_errors_of_the_caller_stay_as_they_are(tmp_path: Path) -> None:
    """What fails while windows are kept, but not in reading them, is not a fault of the table."""
    pl.DataFrame(TABLE).write_parquet(tmp_path / "log.parquet")
    for source in (tmp_path / "log.parquet", pl.DataFrame(TABLE)):
        with (
            pytest.raises(duckdb.CatalogException, match="of_the_caller"),
            rspmn.store_windows(source, SCHEMA, terminated="done"),
        ):
            duckdb.sql("SELECT * FROM of_the_caller")
