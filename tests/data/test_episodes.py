"""Episodes from every layout and make of table, and what their ends mean."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rspmn
from rspmn import Episodes, Followed, Kind, Schema
from rspmn.errors import DataError

SCHEMA = Schema([["x", "y"], ["a"]], ["a"], "u")
NAN = float("nan")


def long_table() -> dict[str, list[Any]]:
    """Three episodes of 3, 1 and 2 steps, shuffled."""
    return {
        "episode": ["k", "m", "k", "l", "k", "m"],
        "time": [2, 0, 0, 0, 1, 1],
        "x": ["c", "a", "a", "b", "b", "a"],
        "y": [3, None, 1, 1, 2, 5],
        "a": [True, False, False, True, True, True],
        "u": [0.5, -1.0, 0.25, 2.0, 0.75, 3.0],
        "done": [True, False, False, False, False, False],
    }


EXPECTED = [
    [("a", 1, False, 0.25), ("b", 2, True, 0.75), ("c", 3, True, 0.5)],
    [("b", 1, True, 2.0)],
    [("a", None, False, -1.0), ("a", 5, True, 3.0)],
]


def decoded(episodes: Episodes) -> list[list[tuple[Any, ...]]]:
    return [[tuple(step.values()) for step in episodes.steps(e)] for e in range(len(episodes))]


def sources() -> dict[str, Any]:
    table = long_table()
    return {
        "mapping": table,
        "numpy": {
            name: np.array(v, dtype=object) if None in v else np.array(v)
            for name, v in table.items()
        },
        "pandas": pd.DataFrame(table),
        "pandas nullable": pd.DataFrame(table).convert_dtypes(),
        "pandas category": pd.DataFrame(table).astype({"x": "category", "episode": "category"}),
        "polars": pl.DataFrame(table),
        "pyarrow": pa.table(table),
        "polars category": pl.DataFrame(table).with_columns(pl.col("x").cast(pl.Categorical)),
    }


@pytest.mark.parametrize("source", sources())
def test_the_same_episodes_from_any_table(source: str) -> None:
    episodes = Episodes.from_long(sources()[source], SCHEMA, terminated="done")
    assert decoded(episodes) == EXPECTED
    assert episodes.ids.tolist() == ["k", "l", "m"]
    assert episodes.lengths.tolist() == [3, 1, 2]
    assert episodes.endings.tolist() == [Followed.END, Followed.UNKNOWN, Followed.UNKNOWN]
    assert episodes.followed.tolist() == [0, 0, 2, 3, 0, 3]
    assert episodes.schema.kinds == {
        "x": Kind.CATEGORICAL,
        "y": Kind.INTEGER,
        "a": Kind.BOOLEAN,
        "u": Kind.CONTINUOUS,
    }
    # the types come back too: y is an int, also where gaps made its column one of floats
    assert all(type(s["y"]) in (int, type(None)) for s in episodes.steps(2))
    assert all(type(s["a"]) is bool for s in episodes.steps(0))
    assert episodes.columns["x"].domain == ("a", "b", "c")


def test_out_and_in_again() -> None:
    episodes = Episodes.from_long(long_table(), SCHEMA, terminated="done")
    for table in (episodes.to_long(), pd.DataFrame(episodes.to_long())):
        again = Episodes.from_long(table, SCHEMA, terminated="terminated")
        assert decoded(again) == EXPECTED
        assert again.endings.tolist() == episodes.endings.tolist()
    assert [tuple(step.values()) for step in episodes[-1]] == EXPECTED[-1]
    assert decoded(episodes[1:]) == EXPECTED[1:]
    assert decoded(episodes[::-2]) == EXPECTED[::-2]
    for wrong in ([0, 1], np.array([True, False, True]), "0", 1.0):
        with pytest.raises(DataError, match="expected the number of an episode or a slice, found"):
            episodes[wrong]  # type: ignore[call-overload]
    assert episodes[1:].endings.tolist() == episodes.endings[1:].tolist()
    assert episodes[1:].ids.tolist() == episodes.ids[1:].tolist()
    assert (len(episodes[:0]), episodes[:0].num_steps) == (0, 0)


def wide_rows() -> list[list[Any]]:
    return [
        ["a", 1, 0, 0.25, "b", 2, 1, 0.75, "c", 3, 1, 0.5],
        ["b", 1, 1, 2.0, None, None, None, None, None, None, None, None],
        ["a", None, 0, -1.0, "a", 5, 1, 3.0, None, None, None, None],
    ]


@pytest.mark.parametrize("make", ["pandas", "polars", "numpy", "strings"])
def test_the_paper_s_wide_layout(make: str) -> None:
    rows = wide_rows()
    names = [f"{v}{t}" for t in range(3) for v in ("x", "y", "a", "u")]
    source: Any
    if make == "pandas":
        source = pd.DataFrame(rows, columns=names)
    elif make == "polars":
        source = pl.DataFrame(rows, schema=names, orient="row")
    elif make == "numpy":
        source = np.array(rows, dtype=object)
    else:  # an empty cell may be an empty string
        source = np.array([["" if c is None else c for c in row] for row in rows], dtype=object)
    episodes = Episodes.from_wide(source, SCHEMA, ending="short")
    assert decoded(episodes) == EXPECTED
    assert episodes.endings.tolist() == [Followed.UNKNOWN, Followed.END, Followed.END]
    swapped = Episodes.from_wide(
        source, SCHEMA.with_kinds({"a": "categorical"}), columns=["x", "y", "a", "u"], ending="end"
    )
    assert decoded(swapped) == EXPECTED


def test_frames_without_names() -> None:
    """`read_csv(header=None)` numbers its columns, which is no reason to fail."""
    frame = pd.DataFrame(wide_rows())
    assert decoded(Episodes.from_wide(frame, SCHEMA, ending="short")) == EXPECTED
    twice = pd.DataFrame([[0, 1, 2.0]], columns=["x", "x", "u"])
    with pytest.raises(DataError, match="columns of the same name: rename them"):
        Episodes.from_wide(twice, Schema([["x"], ["a"]], ["a"], "u"), ending="cut")


def test_large_integers_are_identifiers_and_keep_their_digits() -> None:
    schema = Schema([["x"]], [], "u")
    columns: list[Any] = [np.array([2**63 + 5, 1], np.uint64), [2**63 + 5, 1], [2**70, -(2**70)]]
    for large in columns:
        log = {"episode": [0, 1], "x": large, "u": [0.0, 0.0]}
        episodes = Episodes.from_long(log, schema, time=None, ending="cut")
        assert [episodes[e][0]["x"] for e in (0, 1)] == [str(v) for v in large]


def test_what_counts_as_missing() -> None:
    schema = Schema([["x"]], [], "u")
    masked: Any = np.ma.array([1, 2, 3], mask=[False, True, False])
    columns: list[Any] = [[1, pd.NA, 3], [1, None, 3], [1.0, NAN, 3.0], masked, ["1", "", "3"]]
    for gappy in columns:
        log = {"episode": [0, 1, 2], "x": gappy, "u": [0.0] * 3}
        episodes = Episodes.from_long(log, schema, time=None, ending="cut")
        assert episodes.columns["x"].missing.tolist() == [False, True, False]
    for wrong in ([[1], [2, 3], [4]], [np.zeros(2)] * 3):
        log = {"episode": [0, 1, 2], "x": wrong, "u": [0.0] * 3}
        with pytest.raises(DataError, match="column 'x': expected"):
            Episodes.from_long(log, schema, time=None, ending="cut")


def test_wide_numbers_in_another_order() -> None:
    schema = Schema([["x"], ["a"]], ["a"], "u")
    rows = np.array([[0.5, 3, 7, -0.5, 4, 8], [1.5, 5, 9, NAN, NAN, NAN]])
    episodes = Episodes.from_wide(rows, schema, columns=["u", "x", "a"], ending="cut")
    assert decoded(episodes) == [[(3, 7, 0.5), (4, 8, -0.5)], [(5, 9, 1.5)]]


def test_a_row_without_a_decision_is_a_final_state() -> None:
    schema = Schema([["x"], ["a"]], ["a"], "u")
    log: dict[str, list[Any]] = {
        "episode": [0, 0, 1, 1, 2],
        "time": [0, 1, 0, 1, 0],
        "x": ["p", "q", "p", "r", "p"],
        "a": ["l", None, "l", None, "l"],
        "u": [1.0, None, 1.0, None, 0.0],
    }
    cut = Episodes.from_long(log, schema, ending="cut")
    assert cut.endings.tolist() == [Followed.STATE, Followed.STATE, Followed.UNKNOWN]
    assert [cut.final_state(e) for e in range(3)] == [{"x": "q"}, {"x": "r"}, None]
    assert cut.num_steps == 3
    # where the final state is the end, it is not a successor
    ended = Episodes.from_long(log, schema, ending="final_row")
    assert ended.endings.tolist() == [Followed.END, Followed.END, Followed.UNKNOWN]
    assert ended.final_state(0) is None
    # flags tell ends from cuts, whether they stand in the last step or in the final row
    for done in ([1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [True, None, False, None, False]):
        flagged = Episodes.from_long({**log, "done": done}, schema, terminated="done")
        assert flagged.endings.tolist() == [Followed.END, Followed.STATE, Followed.UNKNOWN]
    again = Episodes.from_long(flagged.to_long(), schema, terminated="terminated")
    assert again.to_long() == flagged.to_long()
    assert again.final_state(1) == {"x": "r"}
    with pytest.raises(DataError, match="episode 2, step 0: the terminated flag is empty"):
        Episodes.from_long({**log, "done": [1, 0, 0, 0, None]}, schema, terminated="done")
    # a last row that is empty altogether says nothing
    blank = Episodes.from_long({**log, "x": ["p", None, "p", "r", "p"]}, schema, ending="cut")
    assert blank.endings.tolist() == [Followed.UNKNOWN, Followed.STATE, Followed.UNKNOWN]


def test_kinds() -> None:
    def kind(values: list[Any], given: str | None = None) -> Kind:
        schema = Schema([["x"]], [], "u", {"x": given} if given else {})
        log = {"episode": range(len(values)), "x": values, "u": np.zeros(len(values))}
        return Episodes.from_long(log, schema, time=None, ending="cut").columns["x"].kind

    assert kind(["a", "b"]) == Kind.CATEGORICAL
    assert kind([True, False]) == Kind.BOOLEAN
    assert kind([1, 2]) == Kind.INTEGER
    assert kind([1.0, 2.0, NAN]) == Kind.INTEGER  # whole numbers in a column with gaps
    assert kind([1.0, 2.5]) == Kind.CONTINUOUS
    assert kind([1, 2], "categorical") == Kind.CATEGORICAL
    assert kind([0, 1], "boolean") == Kind.BOOLEAN
    assert kind([0.5, 1.5], "categorical") == Kind.CATEGORICAL
    assert kind([1, 2], "continuous") == Kind.CONTINUOUS
    cases: list[tuple[list[Any], str | None, str]] = [
        ([0, 2], "boolean", "column 'x' is boolean, but holds 2"),
        ([0.5, 2], "integer", "column 'x' is integer, but holds 0.5"),
        (["a"], "continuous", "column 'x' is continuous, but holds text, 'a'"),
        ([1, "a"], None, r"expected values of one type, found 1 \(int\), 'a' \(str\)"),
        ([object()], None, "expected strings, numbers or booleans, found <object"),
        ([float("inf"), 0.5], None, "expected finite numbers, found an infinite one"),
    ]
    for wrong, given, message in cases:
        with pytest.raises(DataError, match=message):
            kind(wrong, given)


def changed(**columns: Any) -> dict[str, Any]:
    return {**long_table(), **columns}


WRONG: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the table does not say why episodes ended: name a column": (long_table(), {}),
    "ending 'shrot': did you mean 'short'?": (long_table(), {"ending": "shrot"}),
    "no column 'x' in the table": (
        {k: v for k, v in long_table().items() if k != "x"},
        {"ending": "cut"},
    ),
    "no episode column 'eposide' in the table: did you mean 'episode'?": (
        long_table(),
        {"ending": "cut", "episode": "eposide"},
    ),
    "episode k, step 1: 'a' is missing; only state variables may be (1 such rows)": (
        changed(a=["r", "l", "l", "r", None, "r"]),
        {"ending": "cut"},
    ),
    "episode m, step 1: 'u' is missing": (
        changed(u=[0.5, -1.0, 0.25, 2.0, 0.75, NAN]),
        {"ending": "cut"},
    ),
    "episode k, step 2: duplicate time 1 in this episode": (
        changed(time=[1, 0, 0, 0, 1, 1]),
        {"ending": "cut"},
    ),
    "episode k, step 2: time goes from 1 to 5: steps are missing": (
        changed(time=[5, 0, 0, 0, 1, 1]),
        {"ending": "cut"},
    ),
    "episode k, step 0: terminated, but the episode goes on after it": (
        changed(done=[0, 0, 1, 0, 0, 0]),
        {"terminated": "done"},
    ),
    "time column 'time': a row of episode m is empty": (
        changed(time=[2, None, 0, 0, 1, 1]),
        {"ending": "cut"},
    ),
    "time column 'time': expected numbers or dates, found '2': text does not sort": (
        changed(time=["2", "0", "0", "0", "1", "1"]),
        {"ending": "cut"},
    ),
    "time goes from 0 to 5: steps are missing": (
        changed(time=[6.0, 0.0, 0.0, 0.0, 5.0, 1.0]),
        {"ending": "cut"},
    ),
    "column 'episode': expected values of one type, found 2 (int), 'k' (str)": (
        changed(episode=["k", "k", "k", 2, 2, 2]),
        {"ending": "cut"},
    ),
    "both terminated and ending say why": (long_table(), {"ending": "cut", "terminated": "done"}),
    "gaps 'alow': did you mean 'allow'?": (long_table(), {"ending": "cut", "gaps": "alow"}),
    "decision 'a' holds numbers that are not whole: bin it": (
        changed(a=[0.5, 1, 1, 1, 1, 1]),
        {"ending": "cut"},
    ),
    "episode l has no step with a decision": (
        changed(a=[True, False, False, None, True, True], u=[0.5, -1.0, 0.25, None, 0.75, 3.0]),
        {"ending": "cut"},
    ),
    "the table has no rows": ({k: [] for k in long_table()}, {"ending": "cut"}),
    "expected columns of one length": (changed(x=["a"]), {"ending": "cut"}),
    "column 'x': expected one dimension, found 2": (
        changed(x=np.zeros((6, 2))),
        {"ending": "cut"},
    ),
    "column 'x': expected one dimension, found 0": (changed(x=1), {"ending": "cut"}),
    "column 'a': expected one dimension, found 0": (changed(a="abcdef"), {"ending": "cut"}),
    "column 'u' is continuous, but holds text, 'much'": (
        changed(u=["much"] * 6),
        {"ending": "cut"},
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_tables_are_answered(message: str) -> None:
    table, options = WRONG[message]
    with pytest.raises(DataError) as caught:
        Episodes.from_long(table, SCHEMA, **options)
    assert message in str(caught.value)
    with pytest.raises(DataError) as by_engine:
        rspmn.windows(table, SCHEMA, **options)
    assert str(by_engine.value) == str(caught.value)


def test_gaps_may_be_allowed() -> None:
    gapped = changed(time=[5, 0, 0, 0, 1, 1])
    assert decoded(Episodes.from_long(gapped, SCHEMA, ending="cut", gaps="allow")) == EXPECTED


def test_wrong_wide_tables_are_answered() -> None:
    schema = Schema([["x"], ["a"]], ["a"], "u")
    wrong: list[tuple[Any, str]] = [
        (np.zeros((1, 4)), "blocks of 3 columns .* the table has 4 columns"),
        (np.array([[0, 1, 2], [NAN] * 3]), "row 1 is empty: every row must be an episode"),
        (np.array([[NAN, NAN, NAN, 0, 1, 2]]), "row 0: step 0 is empty, but later steps are not"),
        (np.array([[0, NAN, NAN]]), "episode 0 has no step with a decision"),
        (np.array([[0, NAN, 2, 0, 1, 2]]), "episode 0, step 0: 'a' is missing"),
    ]
    for table, message in wrong:
        with pytest.raises(DataError, match=message) as caught:
            Episodes.from_wide(table, schema, ending="cut")
        with pytest.raises(DataError) as by_engine:
            rspmn.windows(table, schema, wide=True, ending="cut")
        assert str(by_engine.value) == str(caught.value)
    with pytest.raises(DataError, match="columns: expected"):
        Episodes.from_wide(np.zeros((1, 3)), schema, columns=["x", "a", "a"], ending="cut")
    with pytest.raises(DataError, match="expected a path, a pandas, Polars or PyArrow table"):
        Episodes.from_wide(3, schema, ending="cut")
    with pytest.raises(DataError, match=r"expected values of one type, found 1 \(int\), 'b' \(str"):
        Episodes.from_wide(
            {"x0": ["b"], "a0": [0], "u0": [0], "x1": [1], "a1": [0], "u1": [0]},
            schema,
            ending="cut",
        )


def test_steps_one_by_one() -> None:
    schema = Schema([["x"], ["a"]], ["a"], "u")
    steps: list[dict[str, Any]] = [{"x": 1, "a": "l", "u": 0.5}, {"x": None, "a": "r", "u": 1.5}]
    episodes = Episodes.from_steps(
        [steps, [*steps, {"x": 4}]], schema, [Followed.END, Followed.STATE]
    )
    assert episodes.steps(0) == steps
    assert episodes.final_state(1) == {"x": 4}
    assert repr(episodes) == "Episodes(2 episodes, 4 steps, ended by: 1 STATE, 1 END)"
    with pytest.raises(DataError, match="episode 0: its ending is STATE, but its last step is"):
        Episodes.from_steps([steps], schema, [Followed.STATE])
    with pytest.raises(DataError, match="unknown variable 'z'"):
        Episodes.from_steps([[{"z": 1}]], schema, [Followed.END])
    with pytest.raises(DataError, match="episode 0: its ending is UNKNOWN, but its last step is a"):
        Episodes.from_steps([[*steps, {"x": 4}]], schema, [Followed.UNKNOWN])
    with pytest.raises(DataError, match="episode 0 has no steps"):
        Episodes.from_steps([[]], schema, [Followed.END])
    with pytest.raises(DataError, match=r"expected Followed.END and the like, found 'end'"):
        Episodes.from_steps([steps], schema, ["end"])  # type: ignore[list-item]
    with pytest.raises(DataError, match="1 episodes but 2 endings"):
        Episodes.from_steps([steps], schema, [Followed.END, Followed.END])
