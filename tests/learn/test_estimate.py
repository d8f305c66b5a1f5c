"""Step 4: refit of what was learned changes nothing, missing values or not; missing steps."""

import itertools
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import mostly_soak, share_of_examples
from rspmn import RSPMN, Episodes, Followed, Schema, Windows
from rspmn.envs.domains import DOMAINS
from rspmn.learn import LearnConfig, learn_rspmn, refit
from rspmn.learn.flows import Moments


def test_steps_that_lack_values_are_shared() -> None:
    """x is 0, 1 or 2 or, in 30 % of the steps, missing; what is earned depends on x > 0.

    Decision and utility tell on which side x is, so that all steps count as if x was known. A
    share is small but above 0 where no certain step was like it: less than 1 in 1000.
    """
    rng = np.random.default_rng(0)
    x, a = rng.integers(3, size=6000), rng.integers(2, size=6000)
    gone = rng.random(6000) < 0.3
    schema = Schema([["x"], ["a"]], ["a"], "u")
    table = {
        "episode": np.arange(6000).tolist(), "time": [0] * 6000,
        "x": [None if g else int(v) for g, v in zip(gone, x, strict=True)],
        "a": a.tolist(), "u": ((x > 0) == (a > 0)).astype(float).tolist(),
    }  # fmt: skip
    windows = Windows.from_episodes(Episodes.from_long(table, schema, ending="end"))
    model, info = learn_rspmn(windows)
    assert info.lacking == {"x": gone.sum()}
    assert info.steps_left_out == info.steps_doubtful == 0
    assert sum(model.visits) == pytest.approx(6000)
    starts = sorted(share for share in model.starts if share)
    assert starts == pytest.approx([np.mean(x == 0), np.mean(x > 0)], abs=1e-3)
    assert model.values(1)[:2] == pytest.approx([1.0, 1.0], abs=1e-3)
    again, check = refit(model, windows)
    assert check.doubtful == 0
    assert_same(again, model)


@pytest.mark.parametrize("is_shared", [False, True])
def test_what_is_known_alone_would_mix_states(is_shared: bool) -> None:
    """Noise hides x in half of the steps: draws and shares follow all that is known, unbiased.

    y tells x in 3 of 4 steps. Going earns 1 with probability .9 if x = 1, and .1 if x = 0. Of 8000
    steps 1000 certain ones go from each x: a standard error of sqrt(.09 / 1000) = .0095.
    """
    rng = np.random.default_rng(1)
    x, a = rng.integers(2, size=(2, 8000))
    y = np.where(rng.random(8000) < 0.75, x, 1 - x)
    u = a * (rng.random(8000) < np.where(x == 1, 0.9, 0.1))
    gone = rng.random(8000) < 0.5
    order = [["x", "y"], ["a"], *([["z"]] if is_shared else [])]  # if z is seen nothing is drawn
    schema = Schema(order, ["a"], "u", {"x": "integer", "y": "integer"})
    table = {
        "episode": np.arange(8000), "time": np.zeros(8000, int), "y": y, "a": a, "z": 0 * a,
        "x": [None if g else int(v) for g, v in zip(gone, x, strict=True)], "u": u.astype(float),
    }  # fmt: skip
    log = Episodes.from_long(table, schema, ending="end")
    model, info = learn_rspmn(log)
    assert info.steps_shared == (gone.sum() if is_shared else 0)
    assert info.steps_completed == (0 if is_shared else gone.sum())
    for value, chance in ((0, 0.1), (1, 0.9)):
        found = model.meu({"x": value, "a": 1}, horizon=1)
        assert found == pytest.approx(chance, abs=0.03)


def assert_same(one: RSPMN, other: RSPMN) -> None:
    """Compare models, numbers to the last digits: sums are added up in another order."""
    assert one.num_interfaces == other.num_interfaces
    assert one.starts == pytest.approx(other.starts, abs=1e-12)
    assert one.visits == pytest.approx(other.visits)
    for horizon in (1, 2, 7):
        values = one.values(horizon), other.values(horizon)
        assert values[0] == pytest.approx(values[1], abs=1e-9, nan_ok=True)
    assert len(one.template) == len(other.template)
    assert (one.untried is None) == (other.untried is None)


@pytest.mark.parametrize("budget", mostly_soak([0.5, 1.0], [0.5]))
def test_the_time_budget_is_that_of_all_stages(
    budget: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With missing values, and a clock that every look at it sets forward by 10 ms."""
    rng = np.random.default_rng(0)
    mdp = DOMAINS["Elevators"]()
    table = mdp.generate(30, 10, 0, "padded").to_long()
    for name in mdp.schema.state_variables:
        table[name] = [None if rng.random() < 0.1 else value for value in table[name]]
    log = Episodes.from_long(table, mdp.schema, ending="cut")
    looks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: next(looks) / 100)
    _, info = learn_rspmn(log, LearnConfig(max_seconds=budget))
    assert info.structure.stopped_by == "seconds"
    assert info.lacking
    trees = 4 * len(mdp.schema.state_variables)  # each looks at the clock once more
    assert sum(info.seconds.values()) < budget + 0.1 + 0.01 * trees  # and ten more looks


@st.composite
def logs(draw: st.DrawFn) -> Windows:
    """Draw logs with missing values in all states, ends, cuts, final states, a second set."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    later = draw(st.booleans())  # whether something is seen after the decision
    schema = Schema([["x", "y"], ["d"], ["z"]] if later else [["x", "y"], ["d"]], ["d"], "u")
    lost = draw(st.sampled_from([0.0, 0.05, 0.3]))
    episodes, endings = [], []
    for _ in range(draw(st.integers(3, 60))):
        x, y = int(rng.integers(3)), int(rng.integers(2))
        steps: list[dict[str, Any]] = []
        for _ in range(int(rng.integers(1, 6))):
            d, z = int(rng.integers(2)), int(rng.integers(3))
            step = {"x": x, "y": y, "d": d, "u": float((x == d) + 2 * (z == 2) * later)}
            if later:
                step["z"] = z
            hidden = [n for n in ("x", "y", "z") if n in step and rng.random() < lost]
            steps.append({**step, **dict.fromkeys(hidden)})
            x = (x + d + int(rng.random() < 0.2)) % 3 if z else x
            y = y if rng.random() < 0.7 else int(rng.integers(2))
        ending = Followed(int(rng.choice([Followed.END, Followed.UNKNOWN, Followed.STATE])))
        if ending is Followed.STATE:
            steps.append({"x": x, "y": None if rng.random() < lost else y})
        episodes.append(steps)
        endings.append(ending)
    return Windows.from_episodes(Episodes.from_steps(episodes, schema, endings))


@share_of_examples(0.3)
@given(logs(), st.sampled_from(["factored", "counts"]))
def test_refit_of_the_same_log_changes_nothing(windows: Windows, successors: str) -> None:
    if not (windows.followed != Followed.UNKNOWN).any():
        return
    config = LearnConfig(successors=successors)
    model, info = learn_rspmn(windows, config)
    again, check = refit(model, windows, config)
    assert_same(again, model)
    assert check.new_states + check.new_decisions + check.new_ends <= info.steps_left_out


def test_refit_where_no_step_is_known_to_be_anywhere() -> None:
    """All steps of the new log were cut: nothing follows them, so there is nothing to test."""
    schema = Schema([["x"], ["d"]], ["d"], "u")
    steps = [[{"x": k % 2, "d": k % 3, "u": k}, {"x": 0}] for k in range(12)]
    log = Episodes.from_steps(steps, schema, [Followed.STATE] * 12)
    model, _ = learn_rspmn(log)
    cut = Episodes.from_steps([each[:1] for each in steps], schema, [Followed.UNKNOWN] * 12)
    again, info = refit(model, Windows.from_episodes(cut))
    assert info.new_states == 0
    assert again.num_interfaces == model.num_interfaces


@pytest.mark.parametrize("layout", mostly_soak(["final", "padded", "flags"], ["final"]))
@pytest.mark.parametrize(
    "name", mostly_soak(DOMAINS, {*DOMAINS} - {"SkillTeaching", "CrossingTraffic"})
)
def test_refit_of_the_domains_changes_nothing(name: str, layout: Any) -> None:
    windows = Windows.from_episodes(DOMAINS[name]().generate(60, 15, 0, layout))
    model, info = learn_rspmn(windows)
    assert bool(info.aside) == (name == "Taxi")  # from so few episodes, its destination is
    again, _ = refit(model, windows)
    assert_same(again, model)
    assert again.untried == model.untried
    assert replace(again, untried=None).values(5) == pytest.approx(
        replace(model, untried=None).values(5), abs=1e-9, nan_ok=True
    )


def test_moments_are_added_by_hand() -> None:
    """Two steps at 1 and two at 4: mean 2.5, and four squares of 1.5."""
    one, other = (Moments.of(np.zeros(2, int), np.full(2, u), np.ones(2)) for u in (1.0, 4.0))
    total = one + other
    assert (total.steps.tolist(), total.mean.tolist(), total.squares.tolist()) == ([4], [2.5], [9])
