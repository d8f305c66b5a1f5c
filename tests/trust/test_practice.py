"""What practice is worth in a model, against what the log's episodes earned."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rspmn
from rspmn import RSPMN, learn_rspmn
from rspmn.data.episodes import Episodes
from rspmn.data.windows import Windows
from rspmn.errors import CircuitError
from rspmn.learn import LearnConfig
from rspmn.learn.refit import refit
from rspmn.model_file import load
from rspmn.trust.practice import doubt_of_practice, logged_of

EPISODES = 200
#: Episodes end by chance, and after so many steps at the latest.
LIMIT = 12


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


def test_what_equal_parts_have_in_common_counts_for_each() -> None:
    """Below each of four first decisions the same was done, and earned, equally often."""
    rows = [(first, then, 2.0 * then) for first in "abcd" for then in (0, 1) for _ in range(20)]
    first, then, earned = (list(column) for column in zip(*rows, strict=True))
    log = {
        "episode": range(160), "time": [0] * 160, "s": ["x"] * 160, "first": first, "then": then,
        "u": earned,
    }  # fmt: skip
    schema = rspmn.Schema([["s"], ["first"], ["then"]], ["first", "then"], "u")
    model = learn_rspmn(rspmn.windows(log, schema, ending="end"))[0]
    assert logged_of(model) == pytest.approx((1, 1))
    assert doubt_of_practice(model) == ()


def log_of_ends(limit: int, episodes: int, clock: bool = False) -> dict[str, list[Any]]:
    """Return episodes that end with .08 a step or, at the latest, after some steps, and pay 1 then.

    Nothing else matters; the state may be the time.
    """
    rng = np.random.default_rng(0)
    log: dict[str, list[Any]] = {n: [] for n in ("episode", "time", "s", "d", "u", "over")}
    for episode in range(episodes):
        for time in range(limit):
            over = time == limit - 1 or rng.random() < 0.08
            state, made = int(rng.integers(2)), int(rng.integers(2))
            row = (episode, time, time if clock else state, made, float(over), bool(over))
            for name, value in zip(log, row, strict=True):
                log[name].append(value)
            if over:
                break
    return log


SCHEMA = rspmn.Schema([["s"], ["d"]], ["d"], "u").with_log(terminated="over")


def test_a_time_limit_that_is_logged_as_an_end_is_noticed() -> None:
    """The model ends late: in 12 steps it has not earned what all episodes of the log had."""
    log = log_of_ends(LIMIT, 400)
    model = learn_rspmn(rspmn.windows(log, SCHEMA))[0]
    assert model.last_end == LIMIT
    (doubt,) = doubt_of_practice(model)
    assert f"of {LIMIT} steps, did not end but were cut by a time limit" in doubt
    found = model.honest_value(LIMIT)
    assert found.high < 1
    assert doubt in found.caveats


@pytest.mark.parametrize("clock", [False, True])
@pytest.mark.parametrize("episodes", [20, 400])
def test_ends_that_the_state_tells_are_believed(episodes: int, clock: bool) -> None:
    """Ends by chance alone, or at a time that is in the state."""
    log = log_of_ends(LIMIT if clock else 1000, episodes, clock)
    model = learn_rspmn(rspmn.windows(log, SCHEMA))[0]
    assert model.last_end
    assert doubt_of_practice(model) == ()


def test_the_last_end_is_known_if_all_of_the_longest_episodes_ended() -> None:
    log = log_of_ends(LIMIT, 100)
    early = np.array(log["time"]) < LIMIT - 1
    cut = log | {"over": (np.array(log["over"]) & early).tolist()}
    for each, last in ((log, LIMIT), (cut, 0)):
        read = rspmn.windows(each, SCHEMA)
        episodes = Windows.from_episodes(Episodes.from_log(each, SCHEMA))
        assert read.last_end == episodes.last_end == last
    ended, short = rspmn.windows(log, SCHEMA), rspmn.windows(log_of_ends(3, 9), SCHEMA)
    assert (ended + short).last_end == LIMIT
    assert (ended + rspmn.windows(cut, SCHEMA)).last_end == 0


def test_files_and_new_parameters_keep_the_last_end(tmp_path: Path) -> None:
    old, new = (rspmn.windows(log_of_ends(limit, 100), SCHEMA) for limit in (LIMIT, LIMIT + 1))
    model = learn_rspmn(old)[0]
    model.save(tmp_path / "model.json")
    assert load(tmp_path / "model.json") == model
    assert refit(model, old + new)[0].last_end == LIMIT + 1
    with pytest.raises(CircuitError, match="last_end: expected 0 to"):
        replace(model, last_end=-1)


def test_samples_of_large_logs_keep_the_last_end() -> None:
    log = log_of_ends(LIMIT, 100)
    with rspmn.store_windows(log, SCHEMA) as stored:
        model = learn_rspmn(stored, LearnConfig(max_windows=5))[0]
    assert model.last_end == LIMIT
