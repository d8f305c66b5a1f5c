"""Predictions of next states: given state and decisions, not what was earned."""

import math

import numpy as np
import pytest

from rspmn import Episodes, Schema
from rspmn.envs.grid_universe import grid_universe
from rspmn.evaluate import predictions
from rspmn.learn import learn_rspmn

COIN = Schema([["x"], ["d"]], ["d"], "u")


def coin(seed: int, start: int = 0) -> Episodes:
    """Return throws of a coin that is paid at once: the reward tells what follows."""
    rng = np.random.default_rng(seed)
    x = start + rng.integers(2, size=(500, 5))
    paid = np.roll(x, -1, axis=1) - start + 10 * x  # and states are told apart by it
    table = {
        "episode": np.repeat(np.arange(500), 5), "time": np.tile(np.arange(5), 500),
        "x": x.ravel(), "d": np.zeros(2500, int), "u": paid.ravel().astype(float),
    }  # fmt: skip
    return Episodes.from_long(table, COIN, ending="cut")


def test_a_coin_stays_a_coin() -> None:
    model, _ = learn_rspmn(coin(0))
    found = predictions(model, coin(1))
    assert found.log_likelihood(share=1e-6) == pytest.approx(math.log(0.5), abs=0.01)
    assert found.best_log_likelihood() == pytest.approx(math.log(0.5), abs=0.01)


def test_what_is_certain() -> None:
    model, _ = learn_rspmn(grid_universe().generate(2000, 8, 0, "final"))
    found = predictions(model, grid_universe().generate(200, 8, 1, "final"))
    assert found.log_likelihood() == 0.0
    assert found.left_out == 0.0


def test_where_nothing_can_be_predicted() -> None:
    model, _ = learn_rspmn(coin(0))
    found = predictions(model, coin(1, start=7))
    assert found.left_out == 1.0
    assert math.isnan(found.best_log_likelihood())
