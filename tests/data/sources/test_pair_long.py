"""Pairing rows as stored: right if they are in order, and noticed if they are not."""

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rspmn
from effort import share_of_examples
from odd_logs import SCHEMA, Table, logs, long_table, shuffled
from rspmn import Episodes, Windows
from rspmn.data.sources import log_files as files
from rspmn.data.sources.log_rows import LogQuery
from rspmn.data.sources.open import open_source
from rspmn.data.sources.pair_codes import CODE, UNORDERED
from rspmn.data.sources.pair_long import coded_groups, streamed_counts
from same_windows import assert_same

QUERY = LogQuery(SCHEMA.with_log(terminated="done"), ("x", "y"))
#: Names of episodes: plain, far apart, below zero, text.
NAMED: dict[str, Any] = {
    "plain": lambda k: k,
    "far apart": lambda k: 7 + k * 1_000_003,
    "below zero": lambda k: k - 5,
    "too far apart": lambda k: k * 2**59,
    "text": lambda k: f"patient {k}",
}


def marks_of(source: Any) -> set[int]:
    """Return the codes of all pairs of rows in the order in which they are stored."""
    with open_source(source) as opened:
        queries = streamed_counts(opened, QUERY)
        with opened.keep_ranges(queries, partial(coded_groups, asked=QUERY)) as kept:
            return set(opened.read(kept.frame).cells(CODE).present.tolist())


def typed(rows: Table) -> pl.DataFrame:
    """Return a table with types, whatever its columns lack."""
    types = {"x": pl.String, "y": pl.Int64, "a": pl.String, "u": pl.Float64, "done": pl.Boolean}
    return pl.DataFrame(rows, schema_overrides=types)


@share_of_examples(0.05)
@given(st.sampled_from(list(NAMED)), logs, st.integers(0, 2**32), st.integers(-1, 2))
def test_rows_that_are_not_in_order_are_seen(
    tmp_path: Path, named: str, log: Any, seed: int, zero: int
) -> None:
    """Pairing as stored finds a fault if and only if the rows are not sorted."""
    table = long_table(log, zero)
    table["episode"] = [NAMED[named](episode) for episode in table["episode"]]
    rng = np.random.default_rng(seed)
    k, rows = int(rng.integers(len(table["time"]))), list(range(len(table["time"])))
    swapped, twice, lost = rows.copy(), rows.copy(), rows.copy()
    swapped[k], swapped[k - 1] = swapped[k - 1], swapped[k]
    twice.insert(k, k)
    del lost[k]
    backwards = sorted(rows, key=lambda i: (-list(table["episode"]).index(table["episode"][i]), i))
    orders = [rows, rng.permutation(rows).tolist(), swapped, twice, backwards]
    orders += [lost] if lost else []
    for order in orders:
        tried = {name: [column[i] for i in order] for name, column in table.items()}
        keys = list(zip(tried["episode"], tried["time"], strict=True))
        starts = [key for i, key in enumerate(keys) if i == 0 or key[0] != keys[i - 1][0]]
        gaps = [b[1] - a[1] for a, b in pairwise(keys) if a[0] == b[0]]
        sound = (
            keys == sorted(set(keys))
            and all(time == keys[0][1] for _, time in starts)
            and all(gap == 1 for gap in gaps)
        )
        assert (UNORDERED not in marks_of(tried)) == sound
        typed(tried).write_parquet(tmp_path / "log.parquet")
        assert (UNORDERED not in marks_of(tmp_path / "log.parquet")) == sound


@share_of_examples(0.1)
@given(
    logs, st.integers(-1, 3), st.integers(0, 9), st.sampled_from(["state", "tuple"]),
    st.sampled_from([1, 3]),
)  # fmt: skip
def test_parquet_is_counted_as_memory_is(
    tmp_path: Path, log: Any, zero: int, seed: int, successor: Any, ungrouped: int
) -> None:
    table = long_table(log, zero)
    table["episode"] = [ungrouped * episode - 4 for episode in table["episode"]]
    expected = Windows.from_episodes(
        Episodes.from_long(table, SCHEMA, terminated="done"), successor
    )
    options: dict[str, Any] = {"terminated": "done", "successor": successor}
    path = tmp_path / "log.parquet"
    for rows in (table, shuffled(table, np.random.default_rng(seed))):
        typed(rows).write_parquet(path)
        assert_same(rspmn.windows(path, SCHEMA, **options), expected)


@pytest.mark.parametrize("steps", [1, 2])
def test_a_state_and_a_step_at_one_time(steps: int, tmp_path: Path) -> None:
    step = {"x": "p", "y": 1, "a": "l", "u": 0.0}
    table = long_table([([step] * steps, "state"), ([step] * 2, "state")], 0)
    table["time"][steps] -= 1
    typed(table).write_parquet(tmp_path / "log.parquet")
    assert UNORDERED in marks_of(tmp_path / "log.parquet")
    twice = f"episode 0, step {steps}: duplicate time {steps - 1}"
    with pytest.raises(rspmn.errors.DataError, match=twice):
        rspmn.windows(tmp_path / "log.parquet", SCHEMA, terminated="done")


def test_more_files_than_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several files are one range, in the order of the numbers in their names."""
    monkeypatch.setattr(files, "MAX_RANGES", 3)
    monkeypatch.setattr(files, "RANGE_BYTES", 1)
    step = {"x": "p", "y": 1, "a": "l", "u": 0.0}
    table = long_table([([step] * 3, "state")] * 5, 0)
    frame = typed(table)
    for k in range(11):  # part-10 comes after part-9
        frame[2 * k : 2 * k + 2].write_parquet(tmp_path / f"part-{k}.parquet")
    pattern = str(tmp_path / "*.parquet")
    with open_source(pattern) as opened:
        assert len(opened.row_ranges()) == 3
    assert UNORDERED not in marks_of(pattern)
    expected = Windows.from_episodes(Episodes.from_long(table, SCHEMA, terminated="done"))
    assert_same(rspmn.windows(pattern, SCHEMA, terminated="done"), expected)
