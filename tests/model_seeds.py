"""Small models of every kind, as files: what mutants are made from.

The files are in tests/golden/models. They are of the versions of the format that hold them, and
must be readable for ever: a file that is there is never written again. A new kind of model gets a
function here, and `python tests/model_seeds.py` writes its file.
"""

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from factored_models import random_factored
from number_worlds import corridor
from random_models import random_rspmn, random_setting
from rspmn import RSPMN, SPMN, Episodes, NetworkBuilder, Schema
from rspmn.circuit import Categorical, IntegerHistogram, PiecewiseLinear, StudentT, fields
from rspmn.data.windows import time_limit_of
from rspmn.end_nodes import end_root, weighted_top
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.envs.inventory import inventory
from rspmn.envs.lessons import lessons
from rspmn.envs.sys_admin import sys_admin
from rspmn.learn import LearnConfig, learn_rspmn, learn_spmn
from rspmn.learn.structure import each_state
from rspmn.values import Value
from soft_models import soft_model

GOLDEN = Path(__file__).parent / "golden"


def every_leaf() -> RSPMN:
    """Return a model with all families of leaves, END, and values of all types."""
    kinds = {"n": "integer", "r": "continuous", "t": "continuous", "b": "boolean"}
    schema = Schema([["c", "n", "r", "t", "b"], ["a"], ["later"]], ["a"], "u", kinds)
    b = NetworkBuilder()
    leaves = [
        b.leaf("c", Categorical(("ü", '"quoted"'), (0.1, 0.8), 0.1)),
        b.leaf("n", IntegerHistogram((-5, 0, 100), (1 / 3, 2 / 3))),
        b.leaf("r", PiecewiseLinear.scaled((-1e-7, 0.1, 1e9), (1.0, 0.3, 0.0))),
        b.leaf("t", StudentT(1.0, 2.0, -3.0)),
        b.leaf("b", Categorical((False, True), (0.5, 0.5))),
    ]

    def outcome(mean: float) -> int:
        return b.product([b.leaf("later", Categorical(("x", 2), (0.5, 0.5))),
                          b.utility("u", mean, 7, 1e-300),
                          b.sum([b.latent(0), b.latent(1)], [0.25, 0.75])])  # fmt: skip

    branches: dict[Value, int] = {1.5: outcome(0.1 + 0.2), "x": outcome(-1)}
    act = b.max("a", branches)
    template = b.build(b.product([*leaves, act]), end_root(b, schema, 1))
    return RSPMN(schema, weighted_top([1.0, 0.0]), template, visits=(12.0, 0.0))


def two_decisions() -> RSPMN:
    """Return a random model with a variable that is observed between two decisions."""
    rng = np.random.default_rng(3)
    return random_rspmn(rng, random_setting(rng, 2), 3, told_apart=True, end=True)


def factored() -> RSPMN:
    """Return a model whose next states are products of factors."""
    return random_factored(np.random.default_rng(5), states=4, components=2)


def soft_marked() -> RSPMN:
    """Return soft boxes, some steps of which have an end or a successor that was not logged."""
    return soft_model(np.random.default_rng(7), 3, 1, marks=True)


def finite(config: LearnConfig | None = None) -> RSPMN:
    """Return a learned model of three cells, with counts."""
    rng = np.random.default_rng(0)
    rows: dict[str, list[Any]] = {n: [] for n in ("episode", "time", "x", "y", "a", "u", "over")}
    for episode in range(80):
        x = int(rng.integers(0, 3))
        for t in range(5):
            a = str(rng.choice(["left", "right"]))
            after = x + (1 if a == "right" else -1) * int(rng.random() < 0.8)
            over = after > 2
            row = (episode, t, x, int(rng.integers(2)), a, 5.0 if over else -1.0, over)
            for name, value in zip(rows, row, strict=True):
                rows[name].append(value)
            x = max(0, after)
            if over:
                break
    schema = Schema([["x", "y"], ["a"]], ["a"], "u")
    log = Episodes.from_long(rows, schema, terminated="over")
    return learn_rspmn(log, config or LearnConfig())[0]


def counted() -> RSPMN:
    """Return the same, weighed by counts alone, by intervals."""
    return finite(LearnConfig(successors="counts", em_passes=1, soft_em=True))


def soft_boxes() -> RSPMN:
    """Return a learned model of numbers, with the counts behind soft boxes."""
    log, schema = corridor(6, 0)
    return learn_rspmn(Episodes.from_long(log, schema, terminated="over"))[0]


def intervals() -> RSPMN:
    """Return a learned model of numbers in intervals: continuous leaves."""
    log, schema = corridor(6, 0)
    windows = Episodes.from_long(log, schema, terminated="over")
    return learn_rspmn(windows, LearnConfig(numbers="intervals"))[0]


def untried() -> RSPMN:
    """Return a learned model with a decision that was never tried in one state."""
    rows: list[tuple[object, ...]] = []
    for m0, m1 in ((0, 0), (0, 1), (1, 0), (1, 1)):
        for action in ("none", "m0", "m1"):
            down = (m0, m1) == (0, 0)
            for _ in range((0 if action == "m1" else 6) if down else 40):
                after = int(action == "m0"), int(action == "m1")
                rows.append((len(rows), 0, m0, m1, action, m0 + 5.0 * m1, False))
                rows.append((len(rows) - 1, 1, *after, None, None, False))
    names = "episode", "time", "m0", "m1", "reboot", "u", "over"
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    schema = Schema([["m0", "m1"], ["reboot"]], ["reboot"], "u")
    return learn_rspmn(Episodes.from_long(table, schema, terminated="over"))[0]


def untried_by_hand() -> RSPMN:
    """Return the same without counts, as the second version of the format held it."""
    return replace(untried(), counts=None)


def beyond() -> RSPMN:
    """Return a learned model with states in which the log has no decision, and shared factors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(each_state, "MANY_STATES", 3)
        return learn_rspmn(sys_admin(4).generate(6, 10, 2, "final"))[0]


def informative() -> RSPMN:
    """Return a learned model with a variable whose absence tells something."""
    rng = np.random.default_rng(0)
    sick, high, treat = rng.random((3, 400)) < 0.5
    crp = np.where(high, 60.0, 10.0) + rng.normal(0, 8, 400).round(2)
    rows = {
        "episode": list(range(400)), "time": [0] * 400,
        "crp": [value if s else None for value, s in zip(crp.tolist(), sick, strict=True)],
        "treat": treat.tolist(),
        "u": np.where(sick, treat == high, 2.0 * ~treat).astype(float).tolist(),
    }  # fmt: skip
    schema = Schema([["crp"], ["treat"]], ["treat"], "u", missing={"crp": "informative"})
    return learn_rspmn(Episodes.from_long(rows, schema, ending="end"))[0]


def _lift() -> tuple[dict[str, list[Any]], Schema]:
    """Return a log in which no lift goes from floor 0, by law, or in ward b, by habit."""
    rng = np.random.default_rng(1)
    floor, b = rng.integers(0, 3, 600), rng.random(600) < 0.5
    lift = (floor > 0) & ~b & (rng.random(600) < 0.5)
    rows = {
        "floor": floor.tolist(), "ward": np.where(b, "b", "a").tolist(),
        "a": np.where(lift, "lift", "wait").tolist(), "u": np.where(lift, 2.0, 1.0).tolist(),
    }  # fmt: skip
    schema = Schema([["floor", "ward"], ["a"]], ["a"], "u", available={"lift": "floor > 0"})
    return rows, schema


def never_taken() -> RSPMN:
    """Return a learned model with a law, and a decision that a habit excludes."""
    rows, schema = _lift()
    rows |= {"episode": list(range(600)), "time": [0] * 600}
    return learn_rspmn(Episodes.from_long(rows, schema, ending="end"))[0]


def single_shot() -> SPMN:
    """Return a learned model of single decisions, with a law and a habit."""
    return learn_spmn(*_lift())[0]


def single_numbers() -> SPMN:
    """Return a learned model of single decisions by numbers: soft classes."""
    rng = np.random.default_rng(2)
    x, treat = rng.normal(0, 1, 60), rng.random(60) < 0.5
    rows = {
        "x": x.tolist(), "a": treat.tolist(), "later": rng.integers(0, 40, 60).tolist(),
        "u": np.where(treat, x, 0.2).tolist(),
    }  # fmt: skip
    kinds = {"x": "continuous", "later": "integer"}
    return learn_spmn(rows, Schema([["x"], ["a"], ["later"]], ["a"], "u", kinds))[0]


def single_classes() -> SPMN:
    """Return a learned model of single decisions in soft classes, with rows that were held out."""
    rng = np.random.default_rng(3)
    x, a = rng.normal(0, 1, (120, 2)), rng.integers(0, 2, 120)
    u = np.where(a == (x.sum(axis=1) > 0), 1.0, 0.0)
    rows = {"x": x[:, 0].tolist(), "y": x[:, 1].tolist(), "a": a.tolist(), "u": u.tolist()}
    model, _ = learn_spmn(rows, Schema([["x", "y"], ["a"]], ["a"], "u"), LearnConfig(classes=2))
    assert model.held_out is not None
    return model


def single_steps() -> RSPMN:
    """Return a recurrent model of single decisions."""
    return single_classes().as_recurrent


def shared_outcomes() -> RSPMN:
    """Return a learned model in which branches share what they earn."""
    return learn_rspmn(lessons(2, 2).generate(40, 6, 0, "final"))[0]


def moves() -> RSPMN:
    """Return a learned model in which an integer is predicted by how far it moves."""
    model, _ = learn_rspmn(inventory(most=4, units=1).generate(60, 8, 0, "final"))
    assert model.counts is not None
    assert model.counts.factors is not None
    assert model.counts.factors.parameter
    return model


def time_limit() -> RSPMN:
    """Return a model of a log that is cut at a time limit, with the ends in its last step."""
    log = frozen_lake().generate(60, 6, 0)
    assert time_limit_of(log.lengths, log.endings) == 6
    return learn_rspmn(log)[0]


def behaviour() -> RSPMN:
    """Return a model of a logger whose decisions depend on a number, a name and each other."""
    rng = np.random.default_rng(0)
    ward, age = np.array(["a", "b", "c"])[rng.integers(0, 3, 300)], rng.integers(20, 90, 300)
    test = rng.random(300) < np.where(ward == "a", 0.9, 0.2)
    drug = rng.random(300) < np.where(test & (age > 60), 0.9, 0.1)
    columns = np.arange(300), np.zeros(300, int), ward, age, test, drug, drug.astype(float)
    names = "episode", "time", "ward", "age", "test", "drug", "u"
    schema = Schema([["ward", "age"], ["test"], ["drug"]], ["test", "drug"], "u")
    log = Episodes.from_long(dict(zip(names, columns, strict=True)), schema, ending="end")
    model, _ = learn_rspmn(log)
    assert [len(tree.given) for tree in model.behaviour.trees] == [1, 2]
    return model


def as_arrays(model: RSPMN | SPMN, path: Path) -> None:
    """Write a model as large ones are: networks as arrays, lists as differences."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fields, "LONG", 3)
        model.save(path)


#: Models that are written as large ones are.
LARGE = (
    factored, beyond, every_leaf, single_numbers, single_classes, shared_outcomes, moves,
)  # fmt: skip
KINDS: tuple[Callable[[], RSPMN | SPMN], ...] = (
    every_leaf, two_decisions, factored, soft_marked, finite, counted, soft_boxes, intervals,
    untried, untried_by_hand, beyond, informative, never_taken, single_shot, single_numbers,
    single_classes, single_steps, shared_outcomes, moves, time_limit,
    behaviour,
)  # fmt: skip


def seed_paths() -> list[Path]:
    """Return the files of all models, that of the first version among them."""
    return [GOLDEN / "grid_v1.json", *sorted((GOLDEN / "models").glob("*.json.gz"))]


def seed_content(path: Path) -> bytes:
    """Return a model file as text."""
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


if __name__ == "__main__":
    for kind in KINDS:
        path = GOLDEN / "models" / f"{kind.__name__}.json.gz"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            kind().save(path)
    for kind in LARGE:
        path = GOLDEN / "models" / f"arrays_{kind.__name__}.json.gz"
        if not path.exists():
            as_arrays(kind(), path)
