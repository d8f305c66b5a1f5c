"""What practice is worth in a model, against what the log's episodes earned."""

from typing import Any

import numpy as np
import pytest

import rspmn
from rspmn import RSPMN, learn_rspmn
from rspmn.trust.practice import doubt_of_practice, logged_of

EPISODES = 200


def learned(first: list[str], second: list[str]) -> RSPMN:
    """Learn from the first two of three steps: to sell earns 1, once."""
    log: dict[str, list[Any]] = {n: [] for n in ("episode", "time", "s", "d", "u")}
    for episode, decisions in enumerate(zip(first, second, ["wait"] * EPISODES, strict=True)):
        state = "stocked"
        for time, decision in enumerate(decisions):
            sold = state == "stocked" and decision == "sell"
            for name, value in zip(log, (episode, time, state, decision, float(sold)), strict=True):
                log[name].append(value)
            state = "sold" if sold else state
    schema = rspmn.Schema([["s"], ["d"]], ["d"], "u")
    return learn_rspmn(rspmn.windows(log, schema, ending="cut"))[0]


def test_a_logger_who_knows_more_than_the_state_is_noticed() -> None:
    """Who waits, then sells, earns 1; to sell in half of the steps earns 1/2 + 1/4 in two."""
    model = learned(["wait"] * EPISODES, ["sell"] * EPISODES)
    assert logged_of(model) == pytest.approx((2, 1))
    (doubt,) = doubt_of_practice(model)
    assert doubt.startswith("the mean logged return is 1, but in the model current practice is")
    assert doubt in model.honest_value(2).caveats


def test_a_logger_who_acts_by_the_state_is_believed() -> None:
    rng = np.random.default_rng(0)
    first, second = (rng.choice(["wait", "sell"], EPISODES).tolist() for _ in range(2))
    model = learned(first, second)
    assert doubt_of_practice(model) == ()
    assert model.honest_value(2).caveats == ()


@pytest.mark.parametrize("seed", range(20))
def test_what_episodes_earned_is_the_log_s_mean(seed: int) -> None:
    """Fault: branches with the same counts have one outcome in common, which counted once."""
    rng = np.random.default_rng(seed)
    rows = 3 * int(rng.integers(8, 40))
    log = {
        "episode": np.arange(rows) // 3, "time": np.arange(rows) % 3,
        "s": rng.integers(0, 3, rows), "d": rng.permutation(np.arange(rows) % 4),
        "u": np.where(np.arange(rows) % 3 < 2, 0.0, rng.random(rows) < 0.5),
    }  # fmt: skip
    schema = rspmn.Schema([["s"], ["d"]], ["d"], "u")
    model = learn_rspmn(rspmn.windows(log, schema, ending="end"))[0]
    assert logged_of(model) == pytest.approx((3, log["u"].sum() / (rows / 3)))
