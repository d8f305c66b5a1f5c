"""Columns that go their own way and that nothing depends on change nothing, however many."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rspmn
from rspmn import RSPMN, Schema
from rspmn.data.columns import Column
from rspmn.data.windows import Windows
from rspmn.envs.taxi import taxi
from rspmn.learn import LearnConfig, learn_rspmn
from rspmn.learn.info import RSPMNInfo
from rspmn.learn.irrelevant import Reason, irrelevant_variables
from rspmn.learn.two_step import wrap
from rspmn.schema import Kind

STEPS = 6
#: How often columns keep their value, in turn; every fourth is a number.
KEPT = 1.0, 0.8, 0.0, 0.0, 1.0, 0.8, 0.0, 1.0


def corridor(
    episodes: int, columns: int = 0, matters: float = 0.0, seed: int = 0, decision: str = "a"
) -> Windows:
    """Return a log of a corridor of three places; a step that ends at the right earns 1.

    Columns are attributes of the episode, keep their value in four of five steps or are drawn anew,
    and every fourth is a number. In a share `matters` of the episodes that the
    variable "site" is 1 in, right and left are exchanged.
    """
    rng = np.random.default_rng(seed)
    log: dict[str, list[Any]] = {n: [] for n in ("episode", "time", "x", "site", decision, "u")}
    log |= {f"z{k}": [] for k in range(columns)}
    for episode in range(episodes):
        x, site, swapped = int(rng.integers(3)), int(rng.integers(2)), rng.random() < matters
        noise = [_fresh(k, rng) for k in range(columns)]
        for time in range(STEPS):
            right = bool(rng.integers(2))
            after = min(2, x + 1) if right != (swapped and site == 1) else max(0, x - 1)
            row = (episode, time, x, site, "right" if right else "left", float(after == 2), *noise)
            for name, value in zip(log, row, strict=True):
                log[name].append(value)
            x = after
            noise = [
                z if rng.random() < KEPT[k % len(KEPT)] else _fresh(k, rng)
                for k, z in enumerate(noise)
            ]
    schema = Schema(
        [["x", "site", *(f"z{k}" for k in range(columns))], [decision]], [decision], "u"
    )
    return rspmn.windows(log, schema, ending="cut")


def _fresh(column: int, rng: np.random.Generator) -> Any:
    return float(rng.normal()) if column % 4 == 3 else int(rng.integers(2 + column % 9))


@pytest.fixture(scope="module")
def noisy() -> tuple[RSPMN, RSPMNInfo]:
    return learn_rspmn(corridor(400, 24))


def test_noise_of_all_sorts_is_set_aside(noisy: tuple[RSPMN, RSPMNInfo]) -> None:
    model, info = noisy
    plain, _ = learn_rspmn(corridor(400))
    assert info.interfaces == plain.num_state_interfaces == 3
    assert [info.aside[f"z{k}"] for k in range(4)] == [Reason.ATTRIBUTE, *[Reason.NOISE] * 3]
    assert info.aside["site"] is info.aside["z7"] is Reason.ATTRIBUTE
    assert "x" not in info.aside
    assert model.policy(horizon=4).act({"x": 0}) == "right"


def test_values_that_were_never_seen_exclude_no_state(noisy: tuple[RSPMN, RSPMNInfo]) -> None:
    """Neither a number far away, nor an integer or category that is not in the log."""
    model, info = noisy
    policy = model.policy(horizon=4)
    state = {"x": 1, "site": 7, "z0": -3, "z3": 1e6}
    assert set(state) - {"x"} <= set(info.aside)
    assert policy.act(state) == "right"
    table = {name: [state.get(name)] for name in model.schema.state_variables}
    assert policy.act_many(table).tolist() == ["right"]
    assert model.meu(state, horizon=4) == model.meu({"x": 1}, horizon=4)


def test_an_attribute_that_matters_is_kept() -> None:
    model, info = learn_rspmn(corridor(400, 8, matters=1.0))
    assert set(info.aside) == {f"z{k}" for k in range(8)}
    policy = model.policy(horizon=4)
    assert policy.act({"x": 0, "site": 0}) == "right"
    assert policy.act({"x": 0, "site": 1}) == "left"


def test_a_few_events_that_only_one_variable_explains_keep_it() -> None:
    """Of 540 steps nine earn 1: "go" at x = 1, where z is 4; "noise" says nothing of them."""
    x, a, z, _ = np.indices((3, 2, 10, 9)).reshape(4, -1)
    noise = np.random.default_rng(0).integers(2, size=540)
    log = {"episode": range(540), "time": [0] * 540, "x": x, "z": z, "noise": noise, "a": a,
           "u": 1.0 * ((x == 1) & (a == 1) & (z == 4))}  # fmt: skip
    windows = rspmn.windows(log, Schema([["x", "z", "noise"], ["a"]], ["a"], "u"), ending="end")
    assert _noise(windows) == ("noise",)


def test_a_decision_of_any_name() -> None:
    assert "z3" in _noise(corridor(200, 4))
    assert _noise(corridor(200, 4, decision="change")) == _noise(corridor(200, 4))


def test_what_matters_only_given_two_others_is_kept() -> None:
    """What is earned is x xor y xor z, where decisions turn x or y: given one, z says nothing.

    Noise beside z, which is drawn anew as z is, is still noise.
    """
    rng = np.random.default_rng(0)
    steps, turn = 1200, rng.integers(2, size=1200)
    x, y = (np.append(0, np.cumsum(turn == k)[:-1]) % 2 for k in (0, 1))
    z, noise = rng.integers(2, size=(2, steps))
    log = {"episode": [0] * steps, "time": range(steps), "x": x, "y": y, "z": z, "noise": noise,
           "a": turn, "u": (x + y + z) % 2 * 1.0}  # fmt: skip
    schema = Schema([["x", "y", "z", "noise"], ["a"]], ["a"], "u")
    assert _noise(rspmn.windows(log, schema, ending="cut")) == ("noise",)


def test_attributes_that_are_numbers() -> None:
    """Ages near the border of two bins go with different episodes, and so with different places."""
    log = taxi().generate(200, 50, 0, "final")
    ages = np.random.default_rng(0).normal(size=(8, len(log)))
    named = {f"age{k}": Column(Kind.CONTINUOUS, age) for k, age in enumerate(ages)}
    of_step = np.repeat(np.arange(len(log)), log.lengths)
    old = log.schema
    schema = Schema([[*old.order[0], *named], *old.order[1:]], old.decisions, old.utility,
                    {**old.kinds, **dict.fromkeys(named, Kind.CONTINUOUS)})  # fmt: skip
    columns = {**log.columns, **{name: age.take(of_step) for name, age in named.items()}}
    wide = replace(log, schema=schema, columns=columns, finals={**log.finals, **named})
    assert set(_noise(Windows.from_episodes(wide))) == set(named)


def test_from_a_short_log_nothing_is_set_aside() -> None:
    assert _noise(corridor(60, 2)) == ()


@pytest.mark.parametrize("looks", [0, 1, 30])
def test_what_was_not_tested_in_time_is_kept(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time runs out at once, or after so many looks at the clock."""
    ticks = itertools.count()
    monkeypatch.setattr("time.monotonic", lambda: next(ticks))
    two = wrap(corridor(400, 24), LearnConfig())
    assert {*irrelevant_variables(two, LearnConfig(), looks)[0].values()} <= {Reason.LARGE}
    assert Reason.LARGE not in irrelevant_variables(two, LearnConfig(), 10**6)[0].values()


def _noise(windows: Windows) -> tuple[str, ...]:
    return tuple(irrelevant_variables(wrap(windows, LearnConfig()), LearnConfig())[0])


def test_numbers_of_states_are_no_noise() -> None:
    """Fault: 150 codes in bins say nothing of the next code, though decisions lead to others."""
    rng = np.random.default_rng(0)
    leads, win = rng.integers(0, 150, (150, 4, 3)), rng.random(150)
    steps = 12_000
    state, action = np.zeros(steps, dtype=int), rng.integers(0, 4, steps)
    for k in range(steps - 1):
        state[k + 1] = leads[state[k], action[k], rng.integers(3)]
    table = {
        "episode": np.arange(steps) // 12, "time": np.arange(steps) % 12, "state": state,
        "a": action, "u": (rng.random(steps) < 0.05 * win[state]).astype(float),
    }  # fmt: skip
    log = rspmn.windows(table, Schema([["state"], ["a"]], ["a"], "u"), ending="cut")
    assert learn_rspmn(log)[1].aside == {}
