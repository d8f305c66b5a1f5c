"""Odd tables of a seed, and every format that can hold them."""

import csv
import datetime as dt
import gzip
import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import plain_log
from rspmn import Episodes, Schema, Windows
from rspmn import windows as windows_of

NAN, INF = float("nan"), float("inf")
DAY = dt.date(2024, 2, 28)
NOON = dt.datetime(2024, 2, 28, 12, 30)

#: Values of columns, all of one type or not.
FLAVOURS: dict[str, list[Any]] = {
    "integers": [0, 1, 2, -1],
    "words": ["p", "q", "r"],
    "odd words": ["é", "e\u0301", "日本", "a b", " a", 'say "so"', "it's", "x,y;z\t|"],
    "more words": ["-", "\U0001f600", "NULL"],
    "booleans": [True, False],
    "whole floats": [1.0, 2.0, -0.0, 1e18, 1e20],
    "numbers": [0.5, 1.0, -0.0, 1e-300, 2**53 + 1],
    "infinite": [0.5, 1.0, INF],
    "endless": [1.0, -INF],
    "nothing": [None],
    "empty words": ["", "p", None],
    "not a number": [NAN, 1.5, 2.5],
    "long integers": [2**63 - 1, -(2**63), 0],
    "huge integers": [2**63, 1, 2**64 + 1],
    "huge and numbers": [2**70, 2.5],
    "dates": [DAY, DAY + dt.timedelta(days=1)],
    "moments": [NOON, NOON + dt.timedelta(seconds=1), NOON + dt.timedelta(microseconds=3)],
    "midnights": [dt.datetime(2024, 2, 28), dt.datetime(2024, 3, 1)],
    "numbers in words": ["1", "2.5"],
    "booleans in words": ["True", "False", "true"],
    "dates in words": ["2024-01-01", "10:30:00"],
    "words and numbers": [1, "p"],
    "words and floats": ["inf", 1.5],
    "booleans and integers": [True, 0, 1],
    "booleans and floats": [True, 0.5],
    "booleans and words": [True, "x"],
    "dates and words": [DAY, "p"],
    "empty and integers": ["", 1, 2],
}  # fmt: skip
#: Cells of text, for columns of text files.
CELLS = [
    "1", "2", "-3", "+4", "007", "1.5", "2.0", ".5", "1.", "1e3", "1E-5", "1e400", "1_000",
    "0x10", "0b1", "+-1", " 5 ", "\t3", "\u00a03", "", " ", "true", "False", "TRUE",
    "yes", "inf", "-Infinity", "nan", "NaN", "NA", "null", "None", "p",
    "9223372036854775807", "9223372036854775808",
    "123456789012345678901234", "2024-01-01", "1,5", '"', "a\nb", "1 000", "--1",
    "e5", ".", "1d", "é",
]  # fmt: skip
#: Names of columns.
NAMES = [
    "x", "x y", 'x"y', "x'y", "x;DROP TABLE log", "e", "v0", "n1", "rspmn: odd 0", "select", "日本",
    "x,y", "x > 1", "log", "count", "%s", "{x}", "x" * 300, "$1", "a.b", "_x", "1", "-",
]  # fmt: skip


@dataclass(frozen=True)
class OddTable:
    """A table, and how it is to be read."""

    columns: dict[str, list[Any]]
    names: dict[str, str]  # of the columns: episode, time, x, y, a, u, done
    ending: str | None
    is_text: bool  # whether all cells are text as a text file has it

    @property
    def schema(self) -> Schema:
        """The meaning of the columns."""
        x, y, a, u = (self.names[part] for part in "xyau")
        return Schema([[x, y], [a]], [a], u)

    @property
    def options(self) -> dict[str, Any]:
        """The format of the log."""
        said = {"ending": self.ending} if self.ending else {"terminated": self.names["done"]}
        return {"episode": self.names["episode"], "time": self.names["time"], **said}


def odd_table(seed: int) -> OddTable:
    """Return the table of a seed."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for episode in range(rng.integers(1, 5)):
        steps = int(rng.integers(1, 5))
        rows += [_row(episode, t, t == steps - 1, rng) for t in range(steps)]
        if rng.random() < 0.3:  # a state after the last step
            last = rows[-1]
            rows.append({**last, "time": steps, "a": None, "u": None})
            last["done"] = False
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    is_text = bool(rng.random() < 0.35)
    if is_text:
        columns = {name: list(map(text_of, column)) for name, column in columns.items()}
    columns = _spoiled(columns, is_text, rng)
    names = dict(zip(columns, columns, strict=True))
    if rng.random() < 0.3:
        part = str(rng.choice(list(names)))
        chosen = str(rng.choice(NAMES))
        if chosen.lower() not in names:
            names[part] = chosen
    ending = [None, None, "cut", "end", "short", "final_row"][rng.integers(6)]
    return OddTable({names[n]: c for n, c in columns.items()}, names, ending, is_text)


def _row(episode: int, t: int, is_last: bool, rng: np.random.Generator) -> dict[str, Any]:
    return {
        "episode": episode, "time": t, "x": int(rng.integers(2)), "y": "pq"[rng.integers(2)],
        "a": "lr"[rng.integers(2)], "u": float(rng.integers(-2, 3)) / 2,
        "done": is_last and bool(rng.integers(2)),
    }  # fmt: skip


def _spoiled(
    columns: dict[str, list[Any]], is_text: bool, rng: np.random.Generator
) -> dict[str, list[Any]]:
    """Return the columns with some cells, columns or rows changed."""
    rows = len(columns["time"])
    for name in columns:
        chance = rng.random()
        lacks = "" if is_text else None
        if name in ("x", "y", "a", "done", "u", "episode") and chance < (
            0.5 if name in "xy" else 0.04
        ):
            columns[name] = _other_column(rows, is_text, rng)
        elif name == "time" and chance < 0.1:
            columns[name] = _other_times(columns[name], is_text, rng)
        elif chance > 0.98 or (name in "xy" and chance > 0.8):
            columns[name] = [lacks if rng.random() < 0.2 else value for value in columns[name]]
    chance = rng.random()
    if chance < 0.05:
        order = [*range(rows), int(rng.integers(rows))]  # a row twice
    elif chance < 0.45:
        order = rng.permutation(rows).tolist()
    else:
        order = list(range(rows)) if chance < 0.98 else []
    return {name: [column[row] for row in order] for name, column in columns.items()}


def _other_column(rows: int, is_text: bool, rng: np.random.Generator) -> list[Any]:
    if is_text:
        few = [CELLS[k] for k in rng.integers(len(CELLS), size=rng.integers(1, 4))]
        return [few[k] for k in rng.integers(len(few), size=rows)]
    values = FLAVOURS[list(FLAVOURS)[rng.integers(len(FLAVOURS))]]
    column = [values[k] for k in rng.integers(len(values), size=rows)]
    return [None if rng.random() < 0.1 else v for v in column] if rng.random() < 0.3 else column


def _other_times(found: list[Any], is_text: bool, rng: np.random.Generator) -> list[Any]:
    """Return times of another type: dates, text, numbers that are not whole, later ones."""
    changes: list[Callable[[int], Any]] = [
        lambda t: t + 7, lambda t: t * 2, lambda t: float(t), lambda t: t + 0.5 * (t % 2),
        lambda t: f"2024-02-{t + 10}", lambda t: f"2024-02-{t + 10} 06:00", lambda t: f"day {t}",
        lambda t: bool(t), lambda t: INF if t == 2 else float(t),
        lambda t: DAY + dt.timedelta(days=t), lambda t: NOON + dt.timedelta(hours=t),
        lambda t: t + 2**63, lambda t: f"2024-13-{t + 10}",
    ]  # fmt: skip
    change = changes[rng.integers(len(changes))]
    changed = [change(int(t)) for t in found]
    return list(map(text_of, changed)) if is_text else changed


def text_of(value: Any) -> str:
    """Return a value as a text file has it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, dt.datetime):
        return value.isoformat()
    return str(value)


# ---- formats -------------------------------------------------------------------------------


def expected(table: OddTable, is_text_file: bool, has_dates: bool) -> plain_log.Counts | None:
    """Return the windows of a table as a format holds it; None if it must be refused."""
    columns = table.columns
    if is_text_file:
        columns = {n: plain_log.text_column(list(map(text_of, c))) for n, c in columns.items()}
    elif not has_dates:
        columns = {n: [_json_value(value) for value in c] for n, c in columns.items()}
    try:
        return plain_log.windows(columns, table.names, table.ending)
    except plain_log.RefusedError:
        return None


def counted(found: Windows) -> plain_log.Counts:
    """Return windows as the plain ones are."""
    here = [found.columns[name].decode() for name in found.schema.variables]
    after = [found.next_columns[name].decode() for name in found.schema.information_sets[0]]
    ends = ["STATE", "STATE", "END", "UNKNOWN"]
    kinds = [ends[code] for code in found.followed.tolist()]
    keys = [tuple(map(plain_log.shown, row)) for row in zip(*here, kinds, *after, strict=True)]
    assert len(set(keys)) == len(keys), "windows are distinct"
    numbers = zip(found.counts.tolist(), found.starts.tolist(), strict=True)
    return dict(zip(keys, numbers, strict=True))


def _typed(columns: dict[str, list[Any]], huge: Callable[[list[Any]], Any]) -> dict[str, Any]:
    """Return columns of one type each; TypeError if a column has several."""
    made: dict[str, Any] = {}
    for name, column in columns.items():
        sorts = {type(value) for value in column if value is not None}
        if sorts == {int, float}:
            column = [None if value is None else float(value) for value in column]
            if any(isinstance(v, int) and not -(2**63) <= v < 2**63 for v in columns[name]):
                raise TypeError("integers that floats do not hold")
        elif len(sorts) > 1:
            raise TypeError("values of several types")
        if sorts == {int} and not all(-(2**63) <= v < 2**63 for v in column if v is not None):
            made[name] = huge(column)
        else:
            made[name] = column
    return made


def _arrow(table: OddTable) -> pa.Table:
    from decimal import Decimal

    def huge(column: list[Any]) -> Any:
        decimals = [None if value is None else Decimal(value) for value in column]
        return pa.array(decimals, pa.decimal128(38, 0))

    return pa.table(_typed(table.columns, huge))


def _polars(table: OddTable) -> pl.DataFrame:
    return pl.DataFrame(_typed(table.columns, lambda column: pl.Series(column, dtype=pl.Int128)))


def _pandas(table: OddTable) -> pd.DataFrame:
    """Return a data frame; TypeError if pandas rounds integers beside missing cells."""
    for column in table.columns.values():
        sorts = {type(value) for value in column if value is not None}
        if (
            sorts == {int}
            and None in column
            and max(abs(v) for v in column if v is not None) > 2**53
        ):
            raise TypeError("integers that floats do not hold")
    return pd.DataFrame(table.columns)


def _json_value(value: Any) -> Any:
    return text_of(value) if isinstance(value, dt.date) else value


def _json_lines(table: OddTable, folder: Path) -> Path:
    rows = zip(*table.columns.values(), strict=True)
    lines = [
        json.dumps(dict(zip(table.columns, map(_json_value, r), strict=True))) + "\n" for r in rows
    ]
    return _file(folder / "log.jsonl", "".join(lines).encode())


def _text_file(table: OddTable, folder: Path, ending: str, line_end: str) -> Path:
    text = io.StringIO()
    writer = csv.writer(
        text, delimiter="\t" if "tsv" in ending else ",", lineterminator=line_end,
        quoting=csv.QUOTE_ALL if "tsv" in ending else csv.QUOTE_MINIMAL,
    )  # fmt: skip
    writer.writerow(table.columns)
    writer.writerows(list(map(text_of, row)) for row in zip(*table.columns.values(), strict=True))
    content = text.getvalue().encode()
    return _file(folder / f"log.{ending}", gzip.compress(content) if "gz" in ending else content)


def _parquet(table: OddTable, folder: Path) -> Path:
    pq.write_table(_arrow(table), folder / "log.parquet")
    return folder / "log.parquet"


def _file(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@dataclass(frozen=True)
class Format:
    """How a table is made, and how it is read."""

    make: Callable[[OddTable, Path], Any]
    is_text_file: bool = False
    has_dates: bool = True
    in_memory: bool = False  # read by Episodes.from_log

    def read(self, table: OddTable, made: Any) -> Windows:
        """Return the windows of what was made."""
        if self.in_memory:
            log = Episodes.from_log(made, table.schema, **table.options)
            return Windows.from_episodes(log)
        return windows_of(made, table.schema, **table.options)


FORMATS: dict[str, Format] = {
    "csv": Format(lambda t, folder: _text_file(t, folder, "csv", "\n"), True),
    "tsv": Format(lambda t, folder: _text_file(t, folder, "tsv", "\r\n"), True),
    "csv.gz": Format(lambda t, folder: _text_file(t, folder, "csv.gz", "\r\n"), True),
    "csv in memory": Format(lambda t, f: _text_file(t, f, "csv", "\n"), True, in_memory=True),
    "json lines": Format(_json_lines, has_dates=False),
    "json lines in memory": Format(_json_lines, has_dates=False, in_memory=True),
    "parquet": Format(_parquet),
    "parquet in memory": Format(_parquet, in_memory=True),
    "mapping": Format(lambda t, _: t.columns),
    "mapping in memory": Format(lambda t, _: t.columns, in_memory=True),
    "pandas": Format(lambda t, _: _pandas(t)),
    "pandas in memory": Format(lambda t, _: _pandas(t), in_memory=True),
    "polars": Format(lambda t, _: _polars(t)),
    "polars lazy": Format(lambda t, _: _polars(t).lazy()),
    "polars in memory": Format(lambda t, _: _polars(t), in_memory=True),
    "pyarrow": Format(lambda t, _: _arrow(t)),
    "pyarrow in memory": Format(lambda t, _: _arrow(t), in_memory=True),
    "duckdb": Format(lambda t, _: duckdb.from_arrow(_arrow(t))),
}
