"""Windows: counted right, added right, and the same whatever the order of rows."""

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rspmn
from rspmn import Episodes, Followed, Schema, Windows, windows
from rspmn.data.cut_steps import CutSteps, cut_steps_that_differ
from rspmn.errors import DataError
from rspmn.schema import Kind

SCHEMA = Schema([["x"], ["a"], ["y"]], ["a"], "u", {"y": "continuous"})

steps = st.tuples(
    st.sampled_from(["p", "q", None]),
    st.booleans(),
    st.sampled_from([0.5, 1.5, None]),
    st.sampled_from([0.0, -2.5]),
).map(lambda row: dict(zip("xayu", row, strict=True)))
logs = st.lists(
    st.tuples(
        st.lists(steps, min_size=1, max_size=4), st.sampled_from(["END", "UNKNOWN", "STATE"])
    ),
    min_size=1,
    max_size=6,
)
Log = list[tuple[list[dict[str, Any]], str]]


def read(log: Log) -> Episodes:
    rows = [[*steps, {"x": "r"}] if end == "STATE" else steps for steps, end in log]
    return Episodes.from_steps(rows, SCHEMA, [Followed[end] for _, end in log])


def counted(log: Log, whole: bool = False) -> Counter[Any]:
    """Count the windows by the definition, step by step."""
    found: Counter[Any] = Counter()
    for steps, end in log:
        for t, step in enumerate(steps):
            after: tuple[Any, ...]
            if t + 1 < len(steps):
                after = tuple(steps[t + 1].values()) if whole else (steps[t + 1]["x"],)
                kind = "TUPLE" if whole else "STATE"
            else:
                after, kind = (("r", None, None, None) if whole else ("r",)), end
                if end != "STATE":
                    after = (None,) * len(after)
            found[(*step.values(), *after, kind)] += 1
    return found


def tallied(windows: Windows) -> Counter[Any]:
    columns = [c.decode() for c in (*windows.columns.values(), *windows.next_columns.values())]
    kinds = [Followed(f).name for f in windows.followed]
    keys = zip(*columns, kinds, strict=True)
    return Counter(dict(zip(keys, windows.counts.tolist(), strict=True)))


def same(one: Windows, other: Windows) -> bool:
    columns = [
        (a[name].domain, a[name].data.tobytes()) == (b[name].domain, b[name].data.tobytes())
        for a, b in [(one.columns, other.columns), (one.next_columns, other.next_columns)]
        for name in a
    ]
    arrays = [
        np.array_equal(getattr(one, field), getattr(other, field))
        for field in ("followed", "counts", "starts")
    ]
    return all(columns + arrays)


@given(logs, st.booleans())
def test_counts_by_the_definition(log: Log, whole: bool) -> None:
    windows = Windows.from_episodes(read(log), "tuple" if whole else "state", time_limit=0)
    assert tallied(windows) == counted(log, whole)
    assert windows.starts.sum() == len(log)
    assert (windows.starts <= windows.counts).all()


@given(logs, logs)
def test_windows_add_up(one: Log, other: Log) -> None:
    parts = [Windows.from_episodes(read(log), time_limit=2) for log in (one, other, one + other)]
    assert same(parts[0] + parts[1], parts[2])
    assert same(parts[1] + parts[0], parts[2])


def test_what_did_not_end_at_the_time_limit_went_on() -> None:
    """Half of all steps end. Of four episodes with two steps, two lost the state after them."""
    step = {"x": "p", "a": True, "y": 0.5, "u": 0.0}
    log: Log = [([step], "END")] * 4 + [([step] * 2, "END")] * 2 + [([step] * 2, "UNKNOWN")] * 2
    windows = Windows.from_episodes(read(log))
    assert windows.counts[windows.followed == Followed.END].sum() == 6  # of 12
    assert windows.counts[windows.followed == Followed.STATE].sum() == 6
    assert windows.counts[windows.went_on].sum() == 2
    counted_all = Windows.from_episodes(read(log), time_limit=0)
    assert counted_all.counts[counted_all.followed == Followed.END] == 6  # of 10 that are known
    assert not counted_all.went_on.any()
    final: Log = [*log, ([step] * 2, "STATE")]  # what followed was kept: there is no limit
    assert Windows.from_episodes(read(final)).counts.sum() == 14
    assert (Windows.from_episodes(read(final)).followed == Followed.UNKNOWN).sum() == 1


@given(logs, st.randoms())
def test_the_order_of_rows_does_not_matter(log: Log, random: Any) -> None:
    episodes = read(log)
    table = episodes.to_long()
    order = list(range(len(table["time"])))
    random.shuffle(order)
    shuffled = {
        name: np.array([column[i] for i in order], dtype=object) for name, column in table.items()
    }
    shuffled |= {name: shuffled[name].astype(int) for name in ("episode", "time")}
    kinds = SCHEMA.with_kinds({"x": "categorical"})
    windows = [
        Windows.from_episodes(Episodes.from_long(t, kinds, terminated="terminated"))
        for t in (table, shuffled)
    ]
    assert same(*windows)
    assert same(windows[0], Windows.from_episodes(episodes))


def test_starts_and_many_columns() -> None:
    """60 columns of 10 values: their product overflows 64 bits, their windows do not."""
    rng = np.random.default_rng(0)
    names = [f"x{k}" for k in range(60)]
    log: dict[str, Any] = {name: rng.integers(0, 10, 100) for name in names}
    log |= {"episode": np.repeat(np.arange(20), 5), "time": np.tile(np.arange(5), 20)}
    log["u"] = rng.normal(size=100)
    schema = Schema([names], [], "u")
    windows = Windows.from_episodes(Episodes.from_long(log, schema, ending="end"))
    assert len(windows) == 100
    assert windows.starts.sum() == 20
    assert (windows.followed == Followed.END).sum() == 20
    assert repr(windows) == "Windows(100 distinct of 100)"


def test_a_log_without_decisions_is_counted_by_engines_too() -> None:
    """A last row without a utility is a state."""
    log: dict[str, Any] = {"episode": [0, 0, 0], "time": [0, 1, 2], "x": [0, 1, 0]}
    log["u"] = [1.0, 2.0, None]
    schema = Schema([["x"]], [], "u")
    windows = rspmn.windows(pl.DataFrame(log), schema, ending="cut")
    assert same(windows, Windows.from_episodes(Episodes.from_long(log, schema, ending="cut")))
    assert windows.followed.tolist() == [Followed.STATE] * 2


def test_only_windows_of_one_schema_add_up() -> None:
    one = Windows.from_episodes(read([([{"x": "p", "a": True, "y": 0.5, "u": 0.0}], "END")]))
    whole = Windows.from_episodes(
        read([([{"x": "p", "a": True, "y": 0.5, "u": 0.0}], "END")]), "tuple"
    )
    with pytest.raises(DataError, match="cannot be added"):
        one + whole
    with pytest.raises(DataError, match="successor 'stat': did you mean 'state'?"):
        Windows.from_episodes(read([([{"x": "p", "a": True, "u": 0.0}], "END")]), "stat")  # type: ignore[arg-type]


def test_there_is_one_zero() -> None:
    schema = Schema([["x"], ["a"]], ["a"], "u", {"x": "continuous"})
    steps = [[{"x": x, "a": 0, "u": u}] for x, u in ((0.0, -0.0), (-0.0, 0.0))]
    windows = Windows.from_episodes(Episodes.from_steps(steps, schema, [Followed.END] * 2))
    assert len(windows) == 1
    assert not np.signbit(windows.columns["x"].data).any()


def ends_in(cut: list[float], goes_on: list[float]) -> CutSteps | None:
    """Compare episodes of one state and decision that are cut after one step, and after two."""
    rows: list[tuple[int, int, float | None]] = [(e, 0, u) for e, u in enumerate(cut)]
    for e, u in enumerate(goes_on, len(cut)):
        rows += [(e, 0, u), (e, 1, None)]
    names = ("episode", "time", "u")
    log: dict[str, list[Any]] = {n: [row[k] for row in rows] for k, n in enumerate(names)}
    log |= {"x": [0] * len(rows), "a": [None if u is None else "l" for _, _, u in rows]}
    schema = Schema([["x"], ["a"]], ["a"], "u")
    return cut_steps_that_differ(windows(log, schema, ending="cut"))


def test_cut_steps_that_earn_something_else() -> None:
    """20 of 9 and 20 of 0: a deviation of 4.5, so means are known to 4.5 √(2/20) = 1.4, and 9 is
    more than 4 times that. With 8 of each it is 2.25, and 9 is not."""
    assert ends_in([9.0] * 20, [0.0] * 20) == CutSteps(20, 9.0, 0.0)
    assert ends_in([9.0] * 8, [0.0] * 8) is None
    assert ends_in([9.0, 0.0] * 20, [0.0, 9.0] * 20) is None
    assert ends_in([9.0] * 20, []) is None
    assert ends_in([], [9.0] * 20) is None


def test_whole_numbers_in_one_part_are_continuous_if_the_other_has_fractions() -> None:
    schema = Schema([["x"], ["a"]], ["a"], "u")
    parts = []
    for numbers in ([1, 2], [2.0, 2.5]):
        log = {"episode": [0, 1], "time": [0, 0], "x": numbers, "a": ["l", "r"], "u": [0.0, 1.0]}
        parts.append(Windows.from_episodes(Episodes.from_long(log, schema, ending="end")))
    assert [part.columns["x"].kind for part in parts] == [Kind.INTEGER, Kind.CONTINUOUS]
    both = parts[0] + parts[1]
    assert both.schema.kinds["x"] is Kind.CONTINUOUS
    assert sorted(both.columns["x"].numbers().tolist()) == [1.0, 2.0, 2.0, 2.5]
