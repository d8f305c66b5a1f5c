"""Odd tables in every format: windows as plain loops find them, or one clear sentence."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rspmn
from effort import SOAK
from odd_tables import FORMATS, counted, expected, odd_table
from rspmn import Episodes, Schema, Windows
from rspmn.errors import DataError
from same_windows import assert_same

#: Formats whose tables are read within a millisecond or two: no engine is started for them.
QUICK = [name for name, how in FORMATS.items() if how.in_memory and not how.is_text_file]
QUICK = [name for name in QUICK if "json" not in name and "parquet" not in name]
OTHERS = [name for name in FORMATS if name not in QUICK]
#: Seeds of the tables of `make test` and of `make soak`, or others: TABLES=8000:9000. Each is read
#: in all quick formats, and some in one of the others.
FIRST, LAST = map(int, os.environ.get("TABLES", "0:20000" if SOAK else "0:120").split(":"))
OTHERS_EACH = 0.1 if SOAK else 0.08


@pytest.mark.parametrize("part", range(10))
def test_odd_tables_are_the_same_in_every_format(part: int, tmp_path: Path) -> None:
    for seed in range(FIRST + part, LAST, 10):
        rng = np.random.default_rng(seed)
        number = int(rng.random() < OTHERS_EACH)
        check(seed, [*QUICK, *rng.choice(OTHERS, number, replace=False)], tmp_path)


def check(seed: int, formats: list[str], folder: Path) -> int:
    """Assert that a table is read from some formats as it should be; return how many hold it."""
    table, held = odd_table(seed), 0
    for name in formats:
        how = FORMATS[name]
        try:
            made = how.make(table, folder)
        except TypeError:  # the format cannot hold the table
            continue
        held += 1
        wanted = expected(table, how.is_text_file, how.has_dates)
        found, refusal = None, ""
        try:
            found = counted(how.read(table, made))
        except DataError as error:
            refusal = str(error)
        assert found == wanted, f"table {seed} as {name}: {refusal or 'other windows'}"
        assert "\n" not in refusal, f"table {seed} as {name}"
    return held


# ---- values of several types ----------------------------------------------------------------

SCHEMA = Schema([["x"], ["a"]], ["a"], "u")
ROWS = 3


def log(x: list[Any], **others: list[Any]) -> dict[str, list[Any]]:
    return {"episode": [0] * ROWS, "time": [0, 1, 2], "x": x, "a": list("lrl"),
            "u": [0.0, 1.0, 0.5], **others}  # fmt: skip


def json_lines(table: dict[str, list[Any]], folder: Path) -> Path:
    rows = zip(*table.values(), strict=True)
    lines = (json.dumps(dict(zip(table, row, strict=True))) for row in rows)
    path = folder / "log.jsonl"
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1, "p", 2], "column 'x': expected values of one type, found 1 (int), 'p' (str)"),
        ([True, 2, False], "column 'x': expected values of one type, found True (bool), 2 (int)"),
        ([True, "inf", 1.5], "column 'x': expected values of one type, found"),
        ([0.5, float("inf"), 1.5], "column 'x': expected finite numbers, found an infinite one"),
        ([[1], [2], [3]], "column 'x': expected"),
    ],
)
def test_values_of_several_types_are_refused_in_every_format(
    x: list[Any], message: str, tmp_path: Path
) -> None:
    """Fault: JSON lines took them for text, and lists of Python took booleans for numbers."""
    table = log(x)
    sources: list[Any] = [table, pd.DataFrame(table), json_lines(table, tmp_path)]
    for source in sources:
        for read in (rspmn.windows, Episodes.from_log):
            with pytest.raises(DataError) as caught:
                read(source, SCHEMA, ending="cut")
            assert message.lower() in str(caught.value).lower()
            assert len(str(caught.value)) < 400


def test_columns_that_are_not_used_may_be_anything(tmp_path: Path) -> None:
    table = log(["p", "q", "p"])
    expected = rspmn.windows(table, SCHEMA, ending="cut")
    odd = table | {"note": [1, "p", None], "more": [[1], [2], {"a": 1}]}
    for source in (odd, pd.DataFrame(odd), json_lines(odd, tmp_path)):
        assert_same(rspmn.windows(source, SCHEMA, ending="cut"), expected)
        read = Episodes.from_log(source, SCHEMA, ending="cut")
        assert_same(Windows.from_episodes(read), expected)


def test_numbers_among_text_are_read_where_the_format_says_so(tmp_path: Path) -> None:
    table = log([2.5, "<0.5", "n/a"])
    expected = rspmn.windows(log([2.5, 0.5, None]), SCHEMA, ending="cut")
    for source in (table, pd.DataFrame(table), json_lines(table, tmp_path)):
        options: Any = {"ending": "cut", "numbers": {"x": "limits"}}
        assert_same(rspmn.windows(source, SCHEMA, **options), expected)
        read = Episodes.from_log(source, SCHEMA, **options)
        assert_same(Windows.from_episodes(read), expected)


def test_flags_that_are_text(tmp_path: Path) -> None:
    """Of tables of any format: numpy's text, as Polars gives it, was no flag."""
    check(16307, [*FORMATS], tmp_path)
