"""Values of plans that are followed from state to state."""

from dataclasses import replace

import numpy as np
import pytest

import rspmn
from number_worlds import corridor
from rspmn import RSPMN, Schema
from rspmn.learn import learn_rspmn
from rspmn.trust import followed_states
from rspmn.trust.followed_states import FollowedStates, drawn_of_each, spread_of_states


def walks(episodes: int, machine: bool = False) -> RSPMN:
    log, schema = corridor(episodes, seed=0, machine=machine)
    return learn_rspmn(rspmn.windows(log, schema, terminated="over"))[0]


def by_the_model_alone(model: RSPMN) -> RSPMN:
    """Return a model without the logged steps that values are checked against."""
    assert model.soft_counts is not None
    return replace(model, soft_counts=replace(model.soft_counts, sample=None))


@pytest.fixture(scope="module")
def model() -> RSPMN:
    return by_the_model_alone(walks(200))


def poles(episodes: int) -> RSPMN:
    """Learn to balance: x moves by 0.1 to a side and away from 0, and from 1 on it has fallen."""
    rng = np.random.default_rng(0)
    names = "episode", "time", "x", "v", "a", "u", "over"
    log: dict[str, list[object]] = {name: [] for name in names}
    for episode in range(episodes):
        x, v = rng.uniform(-0.05, 0.05, 2)
        for t in range(60):
            action = int(rng.integers(2))
            after, speed = x + 0.3 * v, v + 0.25 * x + (0.2 if action else -0.2)
            over = abs(after) > 1
            row = episode, t, float(x), float(v), action, 1.0, bool(over)
            for name, value in zip(names, row, strict=True):
                log[name].append(value)
            x, v = after, speed
            if over:
                break
    schema = Schema([["x", "v"], ["a"]], ["a"], "u")
    return learn_rspmn(rspmn.windows(log, schema, terminated="over"))[0]


def balanced(model: RSPMN, steps: int) -> float:
    """Return for how many steps the policy of a model balances, on average."""
    policy, rng = model.policy(steps), np.random.default_rng(1)
    (x, v), going, total = rng.uniform(-0.05, 0.05, (2, 100)), np.ones(100, dtype=bool), 0.0
    for t in range(steps):
        total += going.mean()
        action = np.asarray(policy.act_many({"x": x, "v": v}, t))
        x, v = x + 0.3 * v, v + 0.25 * x + np.where(action == 1, 0.2, -0.2)
        going &= np.abs(x) <= 1
    return float(total)


def test_what_interpolated_values_lose_is_not_lost() -> None:
    """Between knots that are far apart, a pole seems to fall that the policy keeps up."""
    model = by_the_model_alone(poles(40))
    true, found = balanced(model, 100), model.honest_value(100)
    assert abs(found.promise - true) > 5
    assert found.low - 1e-3 * true <= true <= found.high + 1e-3 * true
    assert abs(found.point - true) < abs(found.promise - true) / 3
    assert any("far apart" in caveat for caveat in found.caveats)


def test_few_ends_are_said(model: RSPMN) -> None:
    """Of 12 walks that end, boxes of 20 steps cannot tell where ends are."""
    few = walks(12)
    assert few.soft_posterior.ended == pytest.approx(12, rel=0.5)
    assert any("ended an episode" in c for c in few.honest_value(20).caveats)
    assert not any("ended an episode" in c for c in model.honest_value(20).caveats)


def test_the_noise_of_moves_is_that_of_the_log(model: RSPMN) -> None:
    """It is 0.005, known from about 1,000 steps of each action: to 1 / √2,000, three times over."""
    found = FollowedStates(model.soft_posterior, model.policy(30, 0.9).planned)
    assert found.noise == pytest.approx(np.full((2, 1), 0.005), rel=3 / 2_000**0.5)


def test_a_known_state_is_where_walks_begin(model: RSPMN) -> None:
    """From 0.57 the right end is reached with the fifth step: 0.9^4."""
    policy = model.policy(30, 0.9)
    found = policy.honest_value({"x": 0.57})
    assert found.low < 0.9**4 < found.high
    assert policy.honest_value({"x": 0.97}).point > found.point + 0.2


def test_categories_are_drawn_with_the_move() -> None:
    """A machine of kind "reverse" stays one: its episodes are worth as much as the others."""
    model = walks(300, machine=True)
    policy = model.policy(30, 0.9)
    for kind in ("forward", "reverse"):
        found = policy.honest_value({"x": 0.57, "machine": kind})
        assert found.low < 0.9**4 < found.high


def test_what_follows_the_last_step_is_interpolated(
    model: RSPMN, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Followed for a step only, a plan is worth about what is planned, without a horizon too."""
    for policy in (model.policy(30, 0.9), model.policy(discount=0.9)):
        planned = float(policy.value({"x": 0.57}))
        with monkeypatch.context() as patch:
            patch.setattr(followed_states, "MOST_STEPS", 1)
            assert policy.honest_value({"x": 0.57}).point == pytest.approx(planned, rel=1e-6)
        assert policy.honest_value({"x": 0.57}).point != pytest.approx(planned, rel=1e-6)


def test_places_are_drawn_by_their_weights() -> None:
    rng, weights = np.random.default_rng(0), np.array([3.0, 1.0, 0.0, 2.0, 2.0])
    starts, stops = np.repeat([[0], [2]], 4000, axis=1), np.repeat([[2], [5]], 4000, axis=1)
    found = drawn_of_each(weights, starts.ravel(), stops.ravel(), rng).reshape(2, -1)
    # Standard deviations of the shares are √(p (1 - p) / 4,000); four of them.
    assert np.mean(found[0] == 0) == pytest.approx(0.75, abs=4 * (0.75 * 0.25 / 4000) ** 0.5)
    assert np.mean(found[1] == 3) == pytest.approx(0.5, abs=4 * (0.25 / 4000) ** 0.5)
    assert not (found == 2).any()


def test_states_vary_less_than_the_knots_that_share_them() -> None:
    """Numbers from 0 to 4, shared by knots at 0, 1, …: their variance is 16 / 12."""
    numbers = np.random.default_rng(0).uniform(0, 4, 100_000)
    points = np.arange(5.0)[:, None]
    weights = np.maximum(0, 1 - np.abs(numbers - points)).sum(axis=1)
    mean = float(weights @ points[:, 0]) / weights.sum()
    variance = float(weights @ (points[:, 0] - mean) ** 2) / weights.sum()
    assert variance == pytest.approx(numbers.var() + 1 / 6, rel=0.01)
    spread = spread_of_states(points, weights)
    assert spread**2 * variance == pytest.approx(numbers.var(), rel=0.01)


def test_one_point_varies_by_nothing_but_rounding() -> None:
    # Its mean with three equal weights is not 7.7 to the last bit, so that the variance is not 0.
    assert spread_of_states(np.full((3, 1), 7.7), np.ones(3)).tolist() == [1.0]
