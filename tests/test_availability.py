"""Laws are declared; where something was never done is said, not taken for a law."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rspmn
from rspmn import RSPMN, SPMN, Episodes, Schema
from rspmn.availability import Law, NeverTaken
from rspmn.cli import main
from rspmn.errors import DataError, ModelFileError, SchemaError
from rspmn.learn import LearnConfig, learn_rspmn, learn_spmn, refit
from rspmn.learn.irrelevant import Reason

SAFE = {"lift": "floor > 0"}
IGNORED = LearnConfig(ignore=["ward"])


def lift_log(**options: Any) -> Episodes:
    """Return steps in a house of three floors: the lift earns 2 and goes down, waiting earns 1.

    On floor 0, and in ward "b", nobody takes the lift.
    """
    rows: list[tuple[object, ...]] = []
    rng = np.random.default_rng(0)
    for episode in range(600):
        floor, ward = int(rng.integers(3)), str(rng.choice(["a", "b"]))
        takes = floor > 0 and ward == "a" and rng.random() < 0.5
        after = max(0, floor - takes), str(rng.choice(["a", "b"]))
        rows.append((episode, 0, floor, ward, "lift" if takes else "wait", 1.0 + takes, False))
        rows.append((episode, 1, *after, None, None, False))
    names = "episode", "time", "floor", "ward", "a", "u", "over"
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    schema = Schema([["floor", "ward"], ["a"]], ["a"], "u", **options)
    return Episodes.from_long(table, schema, terminated="over")


# ---- schemas ---------------------------------------------------------------------------


def test_laws_in_schemas_and_files(tmp_path: Path) -> None:
    schema = Schema([["floor", "ward"], ["a"]], ["a"], "u", available=SAFE)
    assert schema.laws == (Law("a", "lift", "floor > 0", ("floor",)),)
    schema.save(tmp_path / "schema.toml")
    text = (tmp_path / "schema.toml").read_text()
    assert '[available]\nlift = "floor > 0"' in text
    assert Schema.load(tmp_path / "schema.toml") == schema
    assert schema.with_kinds({"floor": "integer"}).laws == schema.laws
    assert schema.with_log(episode="e").laws == schema.laws
    assert schema != Schema([["floor", "ward"], ["a"]], ["a"], "u")
    two = Schema([["x"], ["a"], ["y"], ["b"]], ["a", "b"], "u",
                 available={"a": {"go": "x > 0"}, "b": {"true": "y == low and x < 2"}})  # fmt: skip
    assert [law.variables for law in two.laws] == [("x",), ("y", "x")]
    assert Schema.from_dict(two.to_dict()) == two
    assert "available={'a': {'go': 'x > 0'}" in repr(two)


@pytest.mark.parametrize(
    ("available", "message"),
    [
        ({"lift": "flor > 0"}, "has none of the variables observed before 'a'"),
        ({"lift": "u > 0"}, "has none of the variables observed before 'a'"),
        ({"lift": "floor >"}, "is not an expression of columns"),
        ({"lift": 3}, "expected a condition such as 'floor > 0', found 3"),
        ({"b": {"lift": "floor > 0"}}, "'b' is not a decision"),
        (["lift"], "expected conditions by value of a decision"),
    ],
)
def test_laws_that_cannot_be(available: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Schema([["floor", "ward"], ["a"]], ["a"], "u", available=available)


def test_of_several_decisions_it_must_be_said_which() -> None:
    with pytest.raises(SchemaError, match="expected a table for each decision"):
        Schema([["x"], ["a"], ["b"]], ["a", "b"], "u", available={"go": "x > 0"})


def test_a_law_holds_where_it_is_not_known_to_be_broken() -> None:
    law = Law("a", "true", "x > 0 and y == red", ("x", "y"))
    columns = {
        "x": np.array([0, 1, 1, np.nan]),
        "y": np.array(["red", "red", "blue", "red"], object),
    }
    assert law.holds(columns).tolist() == [False, True, False, True]
    assert law.allows({"a": False}, {"x": 0, "y": "red"})
    assert not law.allows({"a": True}, {"x": 0, "y": "red"})
    assert law.allows({"a": True}, {"x": 0})
    assert str(law) == "a = true is available where x > 0 and y == red"


# ---- learning --------------------------------------------------------------------------


def test_a_habit_is_offered_and_a_law_is_not() -> None:
    """In ward "b" the lift is offered, and the answer says that nobody took it; on floor 0 not."""
    model, info = learn_rspmn(lift_log(available=SAFE), IGNORED)
    assert info.aside == {"ward": Reason.DECLARED}
    found = {a.value: a for a in model.action_values({"floor": 2, "ward": "b"}, horizon=1)}
    assert found["lift"].supported
    (never,) = found["lift"].never_taken
    assert (never.variable, never.at) == ("ward", "b")
    assert str(never).startswith("never taken when ward = b (")
    assert found["wait"].never_taken == ()
    assert model.act({"floor": 2, "ward": "b"}, horizon=1) == "lift"
    down = {a.value: a for a in model.action_values({"floor": 0, "ward": "a"}, horizon=1)}
    assert (down["lift"].available, down["lift"].supported, down["lift"].best) == (0, False, False)
    assert model.meu({"floor": 0}, horizon=1) == 1.0
    assert model.policy(1).act_many({"floor": [0, 2], "ward": ["a", "b"]}).tolist() == [
        "wait", "lift",
    ]  # fmt: skip


def test_how_often_it_was_to_be_expected() -> None:
    """On floor f, n(f, b) steps in ward b, and a share p(f) of all steps there took the lift."""
    log = lift_log(available=SAFE)
    model, _ = learn_rspmn(log, IGNORED)
    columns = {n: np.array(log.columns[n].decode()) for n in ("floor", "ward", "a")}
    lift, b = columns["a"] == "lift", columns["ward"] == "b"
    expected = sum(
        (b & (columns["floor"] == f)).sum() * lift[columns["floor"] == f].mean() for f in (1, 2)
    )
    (never,) = [n for n in model.never_taken if n.variable == "ward"]
    assert replace(never, expected=0) == NeverTaken("a", "lift", "ward", "b", 0)
    assert never.expected == pytest.approx(expected)


def test_where_a_law_says_nothing_else_states_are_divided_by_it() -> None:
    """What follows is the same on all floors, so only the law tells floor 0 from the others."""
    rng = np.random.default_rng(1)
    floor = rng.integers(0, 4, 2000)
    act = np.where((floor > 0) & (rng.random(2000) < 0.5), "lift", "wait")
    table = {"floor": floor, "a": act, "u": np.where(act == "lift", 2.0, 1.0)}
    schema = Schema([["floor"], ["a"]], ["a"], "u", available=SAFE)
    model, _ = learn_spmn(table, schema)
    assert model.meu({"floor": 0}) == 1.0
    assert model.meu({"floor": 3}) == 2.0
    assert model.meu() == pytest.approx(1 + (floor > 0).mean())
    assert len({n for n in model.network.nodes if "Max" in type(n).__name__}) == 2
    free, _ = learn_spmn(table, Schema([["floor"], ["a"]], ["a"], "u"))
    assert free.meu({"floor": 0}) == 1.0  # what was never done there was compared nowhere
    offered = {a.value: a.supported for a in free.action_values({"floor": 0})}
    assert offered == {"lift": False, "wait": True}


def test_a_law_of_numbers_and_one_of_two_variables() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.random(3000).round(3), rng.integers(0, 3, 3000)
    can = (x > 0.3) & (y < 2)
    a = np.where(can & (rng.random(3000) < 0.5), "go", "stay")
    table = {"x": x, "y": y, "a": a, "u": np.where(a == "go", 5.0, 1.0)}
    schema = Schema([["x", "y"], ["a"]], ["a"], "u", available={"go": "x > 0.3 and y < 2"})
    model, _ = learn_spmn(table, schema)
    assert float(model.meu()) == pytest.approx(1 + 4 * can.mean(), abs=0.02)
    policy = model.policy(otherwise="stay")
    for state in ({"x": 0.299, "y": 0}, {"x": 0.31, "y": 2}):
        assert policy.act(state) == "stay"
    assert policy.act({"x": 0.5, "y": 1}) == "go"


def test_logs_that_break_a_law_are_refused() -> None:
    with pytest.raises(DataError, match=r"a = lift is available where floor > 1, but it occurs in"):
        learn_rspmn(lift_log(available={"lift": "floor > 1"}))


def test_what_a_law_forbids_is_not_extrapolated() -> None:
    free, _ = learn_rspmn(lift_log(), LearnConfig())
    lawful, _ = learn_rspmn(lift_log(available=SAFE))
    values = {a.value: a for a in free.action_values({"floor": 0}, 1, offer="all")}
    assert values["lift"].available > 0
    assert lawful.untried is None


# ---- files and commands ------------------------------------------------------------------


def test_notes_are_kept(tmp_path: Path) -> None:
    model, _ = learn_rspmn(lift_log(available=SAFE), IGNORED)
    model.save(tmp_path / "model.json")
    assert RSPMN.load(tmp_path / "model.json") == model
    replace(model, counts=None, set_aside=()).save(tmp_path / "model.json")
    assert refit(model, lift_log(available=SAFE))[0].never_taken == model.never_taken
    single, _ = learn_spmn({"x": [0, 1] * 50, "a": [0, 1] * 50, "u": [1.0] * 100},
                           Schema([["x"], ["a"]], ["a"], "u"))  # fmt: skip
    assert len(single.never_taken) == 2
    single.save(tmp_path / "single.json")
    assert SPMN.load(tmp_path / "single.json") == single
    content = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "broken.json").write_text(json.dumps(content | {"never_taken": [["a", 1]]}))
    with pytest.raises(ModelFileError, match="never_taken: expected a decision"):
        RSPMN.load(tmp_path / "broken.json")


def test_where_laws_forbid_everything_a_single_decision_is_worth_nothing_known() -> None:
    """On floor 0 neither action is lawful, and all were taken on floor 1."""
    log = {"floor": [0, 1, 1] * 50, "a": ["lift", "lift", "wait"] * 50, "u": [1.0, 2.0, 1.0] * 50}
    model, _ = learn_spmn(log, Schema([["floor"], ["a"]], ["a"], "u"))
    laws = {"lift": "floor > 0", "wait": "floor > 0"}
    model = replace(model, schema=Schema([["floor"], ["a"]], ["a"], "u", available=laws))
    found = model.meu({"floor": 0})
    assert np.isnan(found)
    assert found.supported == 0.0
    assert model.meu({"floor": 1}) == pytest.approx(2.0)
    assert model.best_decisions({"floor": 0}) == []


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = lift_log()
    log.to_parquet(tmp_path / "log.parquet")
    schema = Schema([["floor", "ward"], ["a"]], ["a"], "u", available=SAFE)
    schema.with_log(terminated="terminated").save(tmp_path / "schema.toml")
    files = [str(tmp_path / name) for name in ("log.parquet", "schema.toml", "model.json")]
    learn = ["learn", files[0], "--schema", files[1], "-o", files[2]]
    assert main(learn) == 0
    told = capsys.readouterr().out
    assert "not compared: ward: decisions depend on it" in told
    assert main([*learn, "--ignore", "ward", "--force"]) == 0
    told = capsys.readouterr().out
    assert "ignored: ward (declared)" in told
    assert "never taken: a = lift is never taken when ward = b" in told
    assert main(["act", files[2], "--horizon", "1", "--state", "floor=2", "ward=b"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("* "))
    assert lines[first].startswith("* a = lift")
    assert any(line.strip().startswith("never taken when ward = b") for line in lines[first:])
    assert main(["policy", files[2], "--horizon", "1"]) == 0
    assert "a = lift: never taken when ward = b" in capsys.readouterr().out


def test_a_law_about_numbers_holds_for_values_too() -> None:
    """r earns 2 from 5 on, l earns 1: at 4.9 only l is there, whatever knots are around."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, 1500)
    a = np.where(x < 5, "l", rng.choice(["l", "r"], 1500))
    log = {"episode": np.arange(1500), "time": np.zeros(1500, int), "x": x, "a": a,
           "u": np.where(a == "r", 2.0, 1.0)}  # fmt: skip
    schema = Schema([["x"], ["a"]], ["a"], "u", {"x": "continuous"}, available={"r": "x >= 5"})
    policy = learn_rspmn(rspmn.windows(log, schema, ending="end"))[0].policy(1)
    assert policy.act({"x": 4.9}) == "l"
    assert float(policy.value({"x": 4.9})) == pytest.approx(1.0, abs=0.01)
    assert float(policy.value({"x": 8.0})) == pytest.approx(2.0, abs=0.01)
    assert any("laws about numbers" in each for each in policy.honest_value().caveats)
