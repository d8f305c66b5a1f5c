"""Numbers end to end: what matters is found, decisions are right, nothing is lost."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rspmn
from number_worlds import corridor
from rspmn import RSPMN, Followed, Schema
from rspmn.errors import DataError
from rspmn.learn import LearnConfig, RSPMNInfo, learn_rspmn, refit

Walk = tuple[RSPMN, RSPMNInfo]


def learned(log: dict[str, list[Any]], schema: Schema, **config: Any) -> Walk:
    return learn_rspmn(rspmn.windows(log, schema, terminated="over"), LearnConfig(**config))


@pytest.fixture(scope="module")
def walk() -> Walk:
    """A corridor with 400 episodes, an attribute and five columns of noise."""
    return learned(*corridor(400, seed=0, noise=5))


def test_what_matters_is_found(walk: Walk) -> None:
    """Not the attribute, which is constant in an episode and predicts only itself."""
    _, info = walk
    assert info.numbers.relevant == ("x",)
    assert set(info.aside) == {"attribute", "z0", "z1", "z2", "z3", "z4"}


def test_decisions_are_right(walk: Walk) -> None:
    """At x the right end is (1 - x) / 0.1 steps away and worth 1, the left x / 0.1 and worth 0.4.

    With a discount of 0.8 a step, right is better from 0.8^((1 - x) / 0.1) > 0.4 · 0.8^(x / 0.1):
    x > 0.5 + 0.05 · ln 0.4 / ln 0.8 · ... = 0.5 - 0.05 · ln(1/0.4) / ln(1/0.8) = 0.295.
    """
    model, _ = walk
    policy = model.policy(discount=0.8)
    border = 0.5 - 0.05 * np.log(1 / 0.4) / np.log(1 / 0.8)
    assert border == pytest.approx(0.295, abs=0.001)
    others = {name: 0.0 for name in model.schema.information_sets[0] if name != "x"}
    for x in (0.05, 0.15, 0.22, 0.37, 0.45, 0.6, 0.9):
        expected = "right" if x > border else "left"
        assert policy.act({"x": x, **others}) == expected, x


def test_the_value_is_that_of_the_world(walk: Walk) -> None:
    """Without a discount everything is worth 1: the right end can always be reached."""
    model, _ = walk
    assert model.meu({"x": 0.5}) == pytest.approx(1.0, abs=0.03)
    assert model.meu({"x": 0.5}, horizon=2) == pytest.approx(0.0, abs=0.05)


def test_a_state_never_seen_has_an_answer(walk: Walk) -> None:
    model, _ = walk
    far = dict.fromkeys(model.schema.information_sets[0], 0.0) | {"x": 1.3, "z0": 40.0}
    assert model.policy(discount=0.8).act(far) == "right"


def test_missing_numbers_lose_no_steps() -> None:
    """With a third missing at random, decisions stay right, also without the number itself."""
    model, info = learned(*corridor(400, seed=1, missing=0.35))
    assert info.steps_left_out == 0
    policy = model.policy(discount=0.8)
    assert policy.act({"x": 0.1}) == "left"
    assert policy.act({"x": 0.8}) == "right"
    assert policy.act({"attribute": 0.0}) == "right"  # most states are better served by it


def test_categories_and_numbers_together() -> None:
    """On a machine of the reverse kind the same ends need the other action."""
    model, info = learned(*corridor(400, seed=2, machine=True))
    assert set(info.numbers.relevant) == {"x", "machine"}
    policy = model.policy(discount=0.8)
    assert policy.act({"x": 0.8, "machine": "forward"}) == "right"
    assert policy.act({"x": 0.8, "machine": "reverse"}) == "left"
    assert policy.act({"x": 0.1, "machine": "reverse"}) == "right"


def test_numbers_that_do_not_matter_are_set_aside() -> None:
    """Where the reward depends on the action alone there is one interface node, and no grid."""
    rng, steps = np.random.default_rng(0), 600
    log: dict[str, list[Any]] = {"episode": [k // 10 for k in range(steps)]}
    log["time"] = [k % 10 for k in range(steps)]
    log |= {"x": rng.normal(size=steps).tolist(), "s": rng.integers(0, 3, steps).tolist()}
    log["a"] = rng.integers(0, 2, steps).tolist()
    log["u"] = [float(a) for a in log["a"]]
    schema = Schema([["x", "s"], ["a"]], ["a"], "u")
    model, info = learn_rspmn(rspmn.windows(log, schema, ending="cut"))
    assert not info.numbers.grid
    assert info.aside["x"] == "noise"
    assert model.policy(horizon=3).act({"x": 1.0, "s": 1}) == 1


def test_refit_on_the_same_log_changes_nothing(walk: Walk) -> None:
    model, info = walk
    assert info.windows_used is not None
    again, check = refit(model, info.windows_used)
    assert again.template == model.template
    assert again.top == model.top
    assert check.fits


def test_refit_fills_gaps_as_learning_does() -> None:
    model, info = learned(*corridor(60, seed=8, missing=0.35))
    assert info.windows_used is not None
    again, _ = refit(model, info.windows_used)
    assert again.template == model.template


def test_refit_reports_numbers_beyond_the_knots(walk: Walk) -> None:
    model, _ = walk
    log, schema = corridor(20, seed=3, noise=5)
    log["x"] = [2.0 + x for x in log["x"]]
    _, check = refit(model, rspmn.windows(log, schema, terminated="over"))
    assert check.new_states == check.steps > 0
    assert not check.fits


@pytest.fixture(scope="module")
def machines() -> Walk:
    """A corridor with 40 episodes on machines of two kinds."""
    return learned(*corridor(40, seed=2, machine=True))


@pytest.mark.parametrize(("column", "new"), [("machine", "sideways"), ("a", "stop")])
def test_refit_leaves_out_what_the_boxes_have_no_place_for(
    column: str, new: str, machines: Walk
) -> None:
    """Steps on a machine of a new kind, or with a new action, are counted and change nothing."""
    model, info = machines
    log, schema = corridor(5, seed=3, machine=True)
    log |= {"x": [0.5] * len(log["a"]), column: [new] * len(log["a"])}
    strange = rspmn.windows(log, schema, terminated="over")
    assert info.windows_used is not None
    again, check = refit(model, info.windows_used + strange)
    assert again.template == model.template
    assert again.top == model.top
    # what a decision leads to is not known in the last step of an episode that was cut
    led = strange.counts[strange.followed != Followed.UNKNOWN].sum()
    steps = (len(log["a"]), 0) if column == "machine" else (0, led)
    assert (check.new_states, check.new_decisions) == steps
    assert not check.fits
    with pytest.raises(DataError, match=f"no step fits the model: {sum(steps)} steps"):
        refit(model, strange.take(np.flatnonzero(strange.followed != Followed.UNKNOWN)))


def test_refit_reports_numbers_that_lead_beyond_the_knots(walk: Walk) -> None:
    """The last step of an episode leads to 5, where no step was ever logged."""
    model, _ = walk
    log, schema = corridor(20, seed=3, noise=5)
    last = log["episode"].index(1) - 1
    log["x"][last] = 5.0
    _, check = refit(model, rspmn.windows(log, schema, terminated="over"))
    assert check.new_states == 2  # the step in 5, and the one that led there


def test_saved_and_loaded_it_is_the_same(walk: Walk, tmp_path: Path) -> None:
    model, _ = walk
    model.save(tmp_path / "model.rspmn")
    again = rspmn.load(tmp_path / "model.rspmn")
    assert isinstance(again, RSPMN)
    assert again.template == model.template


def test_laws_hold_on_a_grid() -> None:
    log, schema = corridor(400, seed=4, right_from=0.4)
    lawful = Schema(schema.order, ["a"], "u", available={"right": "x > 0.4"})
    model, _ = learned(log, lawful)
    policy = model.policy(horizon=1)
    assert policy.act({"x": 0.05, "attribute": 0.0}) == "left"
    assert {a.value for a in policy.action_values({"x": 0.2, "attribute": 0.0}) if a.available} == {
        "left"
    }


def test_em_is_refused() -> None:
    log, schema = corridor(100, seed=5)
    episodes = rspmn.Episodes.from_long(log, schema, terminated="over")
    with pytest.raises(DataError, match='em_passes: .* numbers="intervals"'):
        learn_rspmn(episodes, LearnConfig(em_passes=1))


def test_intervals_are_still_there() -> None:
    _, info = learned(*corridor(100, seed=6), numbers="intervals")
    assert not info.numbers.grid


@pytest.mark.soak
@pytest.mark.parametrize("noise", [3, 10, 30])
def test_noise_changes_nothing(noise: int) -> None:
    """The grid with columns of noise is that without them."""
    _, alone = learned(*corridor(400, seed=7))
    _, beside = learned(*corridor(400, seed=7, noise=noise))
    assert beside.numbers.relevant == alone.numbers.relevant
