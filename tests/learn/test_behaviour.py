"""The policy behind a log as a model: its trees, in the model, in its file, in answers."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rspmn import RSPMN, Schema, learn_rspmn, learn_spmn, load, windows
from rspmn.behaviour import Behaviour, DecisionTree
from rspmn.cli import main
from rspmn.data.columns import Column
from rspmn.errors import CircuitError, ModelFileError
from rspmn.learn import refit
from rspmn.learn.behaviour import learn_behaviour
from rspmn.schema import Kind

SCHEMA = Schema([["ward", "age", "color"], ["test"], ["drug"]], ["test", "drug"], "u")


def log(seed: int = 0, rows: int = 2_000, often: float = 0.8) -> dict[str, list[object]]:
    """Return steps: ward a is tested `often`, others by .3; who is tested above 60 is treated."""
    rng = np.random.default_rng(seed)
    ward, color = (np.array([*names])[rng.integers(0, 3, rows)] for names in ("abc", "rgb"))
    age = rng.uniform(20, 90, rows)
    test = rng.random(rows) < np.where(ward == "a", often, 0.3)
    drug = rng.random(rows) < np.where(test & (age > 60), 0.9, 0.1)
    names = "episode", "time", "ward", "age", "color", "test", "drug", "u"
    columns = np.arange(rows), np.zeros(rows, int), ward, age, color, test, drug, age / 50 + drug
    return {name: column.tolist() for name, column in zip(names, columns, strict=True)}


def learned(seed: int = 0) -> RSPMN:
    return learn_rspmn(windows(log(seed), SCHEMA, ending="end"))[0]


def test_trees_are_what_decisions_depend_on() -> None:
    """The color matters for neither decision; a test depends on the ward alone."""
    test, drug = learned().behaviour.trees
    assert [[each.name for each in tree.given] for tree in (test, drug)] == [
        ["ward"], ["age", "test"],
    ]  # fmt: skip
    behaviour = Behaviour((test, drug))
    assert behaviour.shares("test", {"ward": "a"})[True] == pytest.approx(0.8, abs=0.04)
    assert behaviour.shares("test", {"ward": "c"})[True] == pytest.approx(0.3, abs=0.04)
    asked = {"ward": "b", "age": 70.0, "test": True}
    assert behaviour.shares("drug", asked)[True] == pytest.approx(0.9, abs=0.04)
    assert behaviour.shares("drug", {**asked, "age": 41})[True] == pytest.approx(0.1, abs=0.04)


def test_shares_are_those_of_the_log_by_hand() -> None:
    """30 steps in ward a, 20 of them left, 30 in b, 2 of them: shares 2/3 and 1/15."""
    ward = Column(Kind.CATEGORICAL, np.repeat([0, 1], 30).astype(np.int8), ("a", "b"))
    made = np.concatenate([np.repeat([0, 1], [20, 10]), np.repeat([0, 1], [2, 28])])
    columns = {"ward": ward, "go": Column(Kind.CATEGORICAL, made.astype(np.int8), ("l", "r"))}
    schema = Schema([["ward"], ["go"]], ["go"], "u")
    found = learn_behaviour(columns, np.ones(60), schema)
    assert found.shares("go", {"ward": "a"}) == pytest.approx({"l": 2 / 3, "r": 1 / 3})
    assert found.shares("go", {"ward": "b"}) == pytest.approx({"l": 1 / 15, "r": 14 / 15})
    both = {"l": 22 / 60, "r": 38 / 60}
    assert found.shares("go", {"ward": "never seen"}) == pytest.approx(both)
    assert found.shares("go", {}) == {}  # the ward is not known, and the tree looks at it


def test_a_tree_divides_nothing_by_chance() -> None:
    rng = np.random.default_rng(0)
    columns = {f"x{k}": Column(Kind.CONTINUOUS, rng.normal(size=300)) for k in range(5)}
    made = rng.integers(0, 2, 300).astype(np.int8)
    schema = Schema([[*columns], ["go"]], ["go"], "u")

    def tree(made: Any) -> DecisionTree:
        go = Column(Kind.CATEGORICAL, made, ("l", "r"))
        return learn_behaviour({**columns, "go": go}, np.ones(300), schema).trees[0]

    assert tree(made).given == ()
    columns["x0"].data[:40] = np.nan
    assert [each.name for each in tree((np.arange(300) < 40).astype(np.int8)).given] == ["x0"]


def test_files_hold_it(tmp_path: Path) -> None:
    model = learned()
    for one in (model, learn_spmn(log(), SCHEMA)[0]):
        one.save(tmp_path / "model.json")
        again = load(tmp_path / "model.json")
        assert again.behaviour == one.behaviour
        again.save(tmp_path / "again.json")
        assert (tmp_path / "model.json").read_bytes() == (tmp_path / "again.json").read_bytes()
    plain = json.loads((tmp_path / "model.json").read_text())
    plain["behaviour"][0]["parent"][0] = 5
    (tmp_path / "odd.json").write_text(json.dumps(plain))
    with pytest.raises(ModelFileError, match="behaviour: the tree of 'test': expected nodes after"):
        load(tmp_path / "odd.json")


def test_odd_trees_are_refused() -> None:
    model = learned()
    tree = model.behaviour.trees[0]
    odd: list[dict[str, Any]] = [
        {"variable": (5, *tree.variable[1:])}, {"branch": tree.branch[1:]},
        {"made": (9, *tree.made[1:])}, {"steps": (0.0, *tree.steps[1:])},
        {"value": (99, *tree.value[1:])}, {"node": (0,) * len(tree.node)},
    ]  # fmt: skip
    for each in odd:
        with pytest.raises(CircuitError, match="behaviour"):
            dataclasses.replace(tree, **each)
    late = dataclasses.replace(tree, given=(dataclasses.replace(tree.given[0], name="drug"),))
    with pytest.raises(CircuitError, match="'test' depends on 'drug', which is not known before"):
        dataclasses.replace(model, behaviour=Behaviour((late,)))


def test_answers_say_what_practice_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = learned()
    state = {"ward": "a", "age": 70.0, "color": "r"}
    shares = {a.value: a.practice for a in model.action_values(state, horizon=1)}
    assert shares[True] == pytest.approx(0.8, abs=0.04)
    assert sum(each or 0.0 for each in shares.values()) == pytest.approx(1)
    assert [a.practice for a in model.action_values({"age": 70.0}, horizon=1)] == [None, None]
    model.save(tmp_path / "model.json")
    asked = [
        str(tmp_path / "model.json"),
        "--horizon",
        "1",
        "--state",
        "ward=a",
        "age=70",
        "color=r",
    ]
    assert main(["act", *asked]) == 0
    assert f"practice {100 * (shares[True] or 0):.0f} %" in capsys.readouterr().out
    assert main(["act", *asked, "--json"]) == 0
    assert f'"practice": {shares[True]}' in capsys.readouterr().out


def test_a_new_log_has_a_behaviour_of_its_own() -> None:
    model = learned()
    new = windows(log(1, often=0.1), SCHEMA, ending="end")
    again = refit(model, new)[0]
    assert again.behaviour.shares("test", {"ward": "a"})[True] == pytest.approx(0.1, abs=0.04)


def test_numbers_of_two_values_and_what_is_missing_are_looked_at() -> None:
    """Fault: 0 and 1, or a value and none, were taken for a single value."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 1_000)
    go = np.where(rng.random(1_000) < 0.9, x, 1 - x)
    then = np.where(rng.random(1_000) < 0.95, go, 1 - go)
    table = {
        "episode": range(1_000), "time": [0] * 1_000, "x": x.tolist(), "go": go.tolist(),
        "y": [7 if each else None for each in then], "then": then.tolist(), "u": [0.0] * 1_000,
    }  # fmt: skip
    kinds = {"x": "categorical"}
    for given in ({}, kinds):
        schema = Schema([["x", "y"], ["go"], ["then"]], ["go", "then"], "u", given)
        behaviour = learn_rspmn(windows(table, schema, ending="end"))[0].behaviour
        known = {"x": 1, "y": 7}
        assert {each.name for each in behaviour.trees[0].given} == {"x", "y"}
        assert behaviour.shares("go", known)[1] > 0.9
    schema = Schema([["x"], ["go"], ["then"]], ["go", "then"], "u", kinds)
    model = learn_rspmn(windows(table, schema, ending="end"))[0]
    (one,) = [a for a in model.action_values({"x": 1}, horizon=1) if a.value == 1]
    assert one.practice == pytest.approx(0.9, abs=0.03)
    assert model.behaviour.shares("then", {"x": 1, "go": 0})[0] == pytest.approx(0.95, abs=0.03)


def test_booleans_may_be_asked_as_numbers() -> None:
    model = learned()
    asked = {"ward": "b", "age": 70.0, "test": 1}
    assert model.behaviour.shares("drug", asked)[True] == pytest.approx(0.9, abs=0.04)


def test_codes_must_be_those_of_the_kind() -> None:
    model = learned()
    test, drug = model.behaviour.trees
    ward, (age, earlier) = test.given[0], drug.given
    for tree, given in (
        (test, (dataclasses.replace(ward, values=("a", "a", "b")),)),
        (test, (dataclasses.replace(ward, values=(), borders=(1.0, 2.0)),)),
        (drug, (dataclasses.replace(age, borders=age.borders[::-1]), earlier)),
        (drug, (dataclasses.replace(age, borders=(), values=(1.0,) * age.size), earlier)),
    ):
        odd = dataclasses.replace(tree, given=given)
        with pytest.raises(CircuitError, match="behaviour"):
            dataclasses.replace(model, behaviour=Behaviour((odd,)))
    with pytest.raises(CircuitError, match="one tree for each decision"):
        dataclasses.replace(model, behaviour=Behaviour((test, test)))
