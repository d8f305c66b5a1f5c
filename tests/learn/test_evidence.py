"""Evidence where tests have no power: Bayes factors by hand, and learning from short logs."""

import math

import numpy as np
import pytest

from effort import seeds
from rspmn import Episodes, Followed, Schema
from rspmn.envs.crossing_traffic import crossing_traffic
from rspmn.envs.mdp import MDP
from rspmn.envs.taxi import taxi
from rspmn.evaluate import true_value
from rspmn.learn import LearnConfig, learn_rspmn
from rspmn.learn.structure.bayes_factors import log_bayes_factors, observed_enough
from rspmn.learn.structure.rows import Rows, read_rows
from rspmn.learn.structure.targets import Later


def rows_of(x: list[int], y: list[int]) -> Rows:
    schema = Schema([["x", "y"]], [], "u")
    return read_rows({"x": x, "y": y, "u": np.zeros(len(x))}, schema, bins=10)[0]


def evidence(x: list[int], y: list[int]) -> float:
    rows = rows_of(x, y)
    return float(log_bayes_factors(rows, ["x"], [Later(("y",), np.zeros(len(rows), np.int64))])[0])


def test_two_rows_by_hand() -> None:
    """Two outcomes, each with half a row in the prior.

    Different after different values: apart 1/2 · 1/2, together 1/2 · (1/2)/2. The same after
    different values: apart 1/2 · 1/2, together 1/2 · (3/2)/2.
    """
    assert evidence([0, 1], [0, 1]) == pytest.approx(math.log((1 / 4) / (1 / 8)))
    assert evidence([0, 1, 0], [0, 0, 1]) < evidence([0, 1, 1], [0, 1, 1])
    same = rows_of([0, 1, 2, 2], [0, 0, 0, 1])
    first = Rows(same.table, same.index[:2], same.weights[:2])
    seen = [Later(("y",), np.zeros(2, np.int64))]
    assert log_bayes_factors(first, ["x"], seen)[0] == pytest.approx(math.log((1 / 4) / (3 / 8)))


def test_where_nothing_can_be_compared() -> None:
    rows = rows_of([0, 1], [0, 1])
    assert log_bayes_factors(rows, ["x"], [Later(("y",), np.array([0, 1]))])[0] == 0.0


def test_what_is_observed_enough() -> None:
    rows = rows_of([0] * 20 + [1] * 20, [0, 1] * 20)
    strata = rows.codes("y").astype(np.int64)
    assert observed_enough(rows, ["x"], Later(("x",), strata), 10.0).tolist() == [True]
    assert observed_enough(rows, ["x"], Later(("x",), strata), 11.0).tolist() == [False]


@pytest.mark.parametrize("rare", [0, 1, 2])
def test_each_value_must_be_observed_enough(rare: int) -> None:
    rows = rows_of([x for x in (0, 1, 2) for _ in range(3 if x == rare else 20)], [0] * 43)
    target = Later(("y",), np.zeros(len(rows), np.int64))
    assert observed_enough(rows, ["x"], target, 3.0).tolist() == [True]
    assert observed_enough(rows, ["x"], target, 4.0).tolist() == [False]


@pytest.mark.parametrize(
    ("world", "episodes"),
    [(taxi(), 100), pytest.param(crossing_traffic(), 300, marks=pytest.mark.soak)],
)
def test_short_logs_are_no_worse_than_a_table(world: MDP, episodes: int) -> None:
    """A table keeps all states apart. To pool those hardly seen lost Taxi's passengers."""
    found = []
    for config in (LearnConfig(), LearnConfig.exact()):
        worth = []
        for seed in seeds(1, 3):
            log = world.generate(episodes, world.horizon, seed, "final")
            model, _ = learn_rspmn(log, config)
            worth.append(true_value(world, model.policy(world.horizon), world.horizon))
        found.append(float(np.mean(worth)))
    assert found[0] >= found[1] - 1e-9


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_noise_is_dropped_from_short_logs(seed: int) -> None:
    """Three states beside eight variables of noise, five values each, in 300 steps."""
    rng = np.random.default_rng(seed)
    names = ["x", *(f"n{k}" for k in range(8))]
    schema = Schema([names, ["a"]], ["a"], "u")
    episodes = []
    for _ in range(30):
        x, steps = 0, []
        for _ in range(10):
            noise = dict(zip(names[1:], rng.integers(0, 5, 8).tolist(), strict=True))
            a = int(rng.integers(2))
            steps.append({"x": x, **noise, "a": a, "u": float(x == 2)})
            x = min(2, x + 1) if a == 1 and rng.random() < 0.8 else 0
        episodes.append(steps)
    log = Episodes.from_steps(episodes, schema, [Followed.UNKNOWN] * 30)
    model, info = learn_rspmn(log)
    assert info.interfaces == 3
    assert model.policy(10).act({**dict.fromkeys(names, 0), "x": 1}) == 1
