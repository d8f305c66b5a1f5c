"""Variables that are set aside take no part in learning, and are in the model all the same."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rspmn
from rspmn import RSPMN, Episodes, Followed, Schema
from rspmn.circuit import Categorical, Leaf, NetworkBuilder, soundness_violations
from rspmn.data.windows import Windows
from rspmn.end_nodes import weighted_top
from rspmn.errors import CircuitError, ModelFileError
from rspmn.learn import LearnConfig, learn_rspmn, refit
from rspmn.learn.set_aside import (
    fitted_leaves,
    located_without,
    put_back,
    take_out,
    without_variables,
)
from rspmn.learn.two_step import wrap
from rspmn.values import END

SCHEMA = Schema([["x", "z"], ["a"]], ["a"], "u")


def log(tied: bool) -> Episodes:
    """Return episodes of three places, that end. z is ten times the place, or drawn."""
    rng = np.random.default_rng(0)
    episodes = [
        [
            {"x": x, "z": 10 * (x if tied else int(rng.integers(3))), "a": int(rng.integers(2)),
             "u": float(x)}
            for x in range(3)
        ]
        for _ in range(60)
    ]  # fmt: skip
    return Episodes.from_steps(episodes, SCHEMA, [Followed.END] * len(episodes))


@pytest.mark.parametrize("tied", [True, False])
def test_the_rest_is_learned_as_if_they_were_not_there(tied: bool) -> None:
    windows, config = Windows.from_episodes(log(tied)), LearnConfig()
    narrow = without_variables(windows, ["z"])
    assert narrow.schema.variables == ("x", "a", "u")
    assert narrow.counts.sum() == windows.counts.sum()
    assert len(narrow) < len(windows) or tied
    model, _ = learn_rspmn(narrow, config)
    whole = with_leaves(model, windows, config)
    assert soundness_violations(whole.template) == []
    assert whole.schema.variables == windows.schema.variables
    assert whole.values(4) == model.values(4)
    assert (whole.visits, whole.starts, whole.end) == (model.visits, model.starts, model.end)
    assert whole.set_aside == ("z",)
    narrowed, leaves = take_out(whole)
    assert (narrowed.schema, len(narrowed.template)) == (narrow.schema, len(model.template))
    assert put_back(narrowed, whole.schema, leaves).values(4) == whole.values(4)
    assert take_out(model) == (model, {})


def with_leaves(model: RSPMN, windows: Windows, config: LearnConfig) -> RSPMN:
    here, rows = located_without(model, windows, ["z"]).of_steps(), wrap(windows, config).rows
    leaves = fitted_leaves(rows, ["z"], here[rows.origin], model.num_interfaces, {})
    return put_back(model, windows.schema, leaves)


def widened(tied: bool) -> tuple[RSPMN, list[Leaf]]:
    windows, config = Windows.from_episodes(log(tied)), LearnConfig()
    model, _ = learn_rspmn(without_variables(windows, ["z"]), config)
    whole = with_leaves(model, windows, config)
    leaves = {n for n in whole.template.nodes if isinstance(n, Leaf) and n.variable == "z"}
    return whole, [leaf for leaf in leaves if leaf.distribution != Categorical.certain(END)]


def test_leaves_are_those_of_the_node_where_they_differ() -> None:
    """Of three nodes with 60 steps each: (60 + 1/3)/61 for the node's own value of z.

    A share of 1/62² is for values that were never seen.
    """
    model, leaves = widened(tied=True)
    found = sorted(np.exp(leaf.distribution.log_prob(z)) for leaf in leaves for z in (0, 10, 20))
    assert found == pytest.approx([1 / 183] * 6 + [181 / 183] * 3, rel=1.1 / 62**2)
    answer = model.meu({"x": 1, "z": 0}, horizon=1)
    assert (answer, answer.supported) == (1.0, True)


def test_one_leaf_for_all_nodes_where_they_do_not() -> None:
    assert len(widened(tied=False)[1]) == 1


def ward_log(missing: float, changed: bool = False) -> dict[str, list[Any]]:
    """Return a log of a corridor; who is in ward 0 goes left, as a habit that does not matter.

    A number and a share of missing values come with it. If `changed`, the ward does matter.
    """
    rng = np.random.default_rng(0)
    log: dict[str, list[Any]] = {n: [] for n in ("episode", "time", "x", "ward", "age", "a", "u")}
    for episode in range(250):
        x, ward, age = int(rng.integers(3)), int(rng.integers(3)), float(rng.normal())
        for time in range(6):
            a = int(ward > 0) if rng.random() < 0.9 else int(rng.integers(2))
            after = min(2, x + 1) if a != (changed and ward == 0) else max(0, x - 1)
            row: list[Any] = [episode, time, x, ward, age, a, float(after == 2)]
            row[2:5] = [None if rng.random() < missing else value for value in row[2:5]]
            for name, value in zip(log, row, strict=True):
                log[name].append(value)
            x = after
    return log


WARDS = Schema([["x", "ward", "age"], ["a"]], ["a"], "u", {"ward": "integer"})


def ward_windows(missing: float = 0.0, changed: bool = False) -> Windows:
    return rspmn.windows(ward_log(missing, changed), WARDS, ending="cut")


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_refit_of_the_same_log_changes_nothing(missing: float, tmp_path: Path) -> None:
    windows = ward_windows(missing)
    model, info = learn_rspmn(windows)
    assert model.set_aside == tuple(info.aside)
    assert set(info.aside) == ({"age"} if missing else {"age", "ward"})
    model.save(tmp_path / "model.json")
    again, check = refit(RSPMN.load(tmp_path / "model.json"), windows)
    assert again == model
    assert check.fits


def test_a_sampled_log_is_counted_without_them() -> None:
    config = LearnConfig(successors="counts")
    whole, _ = learn_rspmn(ward_windows(), config)
    with rspmn.store_windows(ward_log(0.0), WARDS, ending="cut") as stored:
        model, info = learn_rspmn(stored, replace(config, max_windows=700))
    assert info.sample is not None
    assert info.sample.steps_placed == 1500
    assert model.set_aside == whole.set_aside == ("ward", "age")
    assert model.values(4) == pytest.approx(whole.values(4))


def test_refit_finds_that_what_was_set_aside_matters_now() -> None:
    model, _ = learn_rspmn(ward_windows())
    _, check = refit(model, ward_windows(changed=True))
    assert check.apart


def test_names_are_checked(tmp_path: Path) -> None:
    model, _ = learn_rspmn(ward_windows())
    with pytest.raises(CircuitError, match="'a' was set aside, but the variables known before"):
        replace(model, set_aside=("a",))
    model.save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "broken.json").write_text(json.dumps(content | {"set_aside": [1]}))
    with pytest.raises(ModelFileError, match="'set_aside' must be a list of strings, found 1"):
        RSPMN.load(tmp_path / "broken.json")


def test_a_variable_without_a_leaf_of_its_own_cannot_be_taken_out() -> None:
    b, schema = NetworkBuilder(), Schema([["x"], ["a"]], ["a"], "u")
    outcome = b.product([b.utility("u", 1.0), b.latent(0)])
    either = b.sum([b.leaf("x", Categorical.certain(x)) for x in (0, 1)], [0.5, 0.5])
    template = b.build(b.product([either, b.max("a", {0: outcome})]))
    model = RSPMN(schema, weighted_top([1.0]), template, (1.0,), set_aside=("x",))
    with pytest.raises(CircuitError, match="'x' was set aside: expected a leaf of it"):
        take_out(model)
