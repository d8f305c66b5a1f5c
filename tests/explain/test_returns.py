"""The distribution of the return against enumeration, arithmetic and simulation."""

import math

import numpy as np
import pytest

from effort import seeds
from enumerated import returns, without_variance
from random_models import random_rspmn, random_setting
from rspmn.circuit import Utility
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.envs.random_mdp import random_mdp
from rspmn.errors import EvidenceError
from rspmn.explain import ReturnDistribution
from rspmn.explain.outcome_rows import _of_mean
from rspmn.infer.policy import Policy
from rspmn.learn import learn_rspmn
from rspmn.learn.successors.factored import FutureInfo
from small_models import chain
from soft_models import soft_model


def start_of(policy: Policy) -> dict[int, float]:
    return {i: p for i, p in enumerate(policy.model.starts) if p > 0}


def enumerated(policy: Policy, discount: float) -> dict[float, float]:
    assert policy.horizon is not None
    planned = policy.planned

    def branch(index: int, t: int) -> int:
        return planned.best_branch(index, planned.after(t)) or 0

    return returns(policy.model, start_of(policy), branch, policy.horizon, discount)


@pytest.mark.parametrize("seed", seeds(4, 200))
def test_it_is_the_enumerated_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    setting = random_setting(rng, decisions=1 + seed % 2)
    model = without_variance(random_rspmn(rng, setting, 2, told_apart=True, end=seed % 3 == 0))
    discount = 1.0 if seed % 4 else 0.8
    policy = model.policy(3, discount)
    found = policy.returns()
    expected = enumerated(policy, discount)
    assert found.error == 0
    cdf = np.cumsum([*expected.values()])
    for place, (value, below) in enumerate(zip(expected, cdf, strict=True)):
        assert found.prob_below(value + 1e-6) == pytest.approx(below, abs=1e-9), place
    assert found.mean == pytest.approx(float(policy.value()))


@pytest.mark.parametrize("seed", seeds(4, 200))
def test_the_mean_is_the_promise(seed: int) -> None:
    """Also where successors are unknown, and no decision was tried; on a rough grid, too."""
    rng = np.random.default_rng(seed)
    model = soft_model(rng, 3, 2, decisions=1 + seed % 2, marks=True)
    policy = model.policy(4, 0.9)
    for points in (10_000, 16):
        assert policy.returns(points=points).mean == pytest.approx(float(policy.value()))


@pytest.mark.parametrize("seed", seeds(3, 100))
def test_quantiles_on_a_grid_are_within_the_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = without_variance(random_rspmn(rng, random_setting(rng, 1), 3, told_apart=True))
    policy = model.policy(4, 0.9)
    exact, rough = policy.returns(), policy.returns(points=30)
    apart = rough.error + exact.error + 1e-9
    for q in np.linspace(0.01, 1, 40):
        assert abs(exact.quantile(q) - rough.quantile(q)) <= apart
        assert abs(exact.cvar(q) - rough.cvar(q)) <= apart
    assert (
        rough.cvar(0.2) <= exact.cvar(0.2) + exact.error + 1e-9
    )  # rounding to both sides only spreads


def test_two_tosses() -> None:
    """A toss earns 3 with 1/4, else 0: 0 with 9/16, 3 with 6/16, 6 with 1/16."""
    model = chain([{"toss": (0.0, {1: 0.25, 2: 0.75})}, {"on": (3.0, {0: 1.0})},
                   {"on": (0.0, {0: 1.0})}])  # fmt: skip
    found = model.policy(4).returns()
    assert found.values.tolist() == [0, 3, 6]
    assert found.probabilities == pytest.approx([9 / 16, 6 / 16, 1 / 16])
    assert found.mean == pytest.approx(1.5)
    assert found.deviation == pytest.approx(3 * math.sqrt(2 * 3 / 16))
    # The worst three quarters: 9/16 earn 0, 3/16 earn 3, on average 3 · 3/16 / (12/16).
    assert found.cvar(0.75) == pytest.approx(0.75)
    assert [found.quantile(q) for q in (0, 0.5, 9 / 16, 0.6, 1)] == [0, 0, 0, 3, 6]
    assert found.prob_below(3) == pytest.approx(9 / 16)
    assert model.policy(4).returns(2).values.tolist() == [0, 3]
    assert model.policy(4).returns(state={"x": 1}, t=3).values.tolist() == [3]
    assert "mean 1.5" in str(found)
    assert found.to_dict()["mean"] == pytest.approx(1.5)


def test_rewards_that_vary_are_normal() -> None:
    rng = np.random.default_rng(0)
    model = random_rspmn(rng, random_setting(rng, 1), 2, told_apart=True)
    policy = model.policy(2)
    quiet = without_variance(model).policy(2).returns()
    # In each of two steps the variance is 1.5, whatever is done.
    noisy = policy.returns()
    assert noisy.deviation**2 == pytest.approx(quiet.deviation**2 + 2 * 1.5)
    drawn = policy.returns(episodes=1000, rng=1)
    assert drawn.episodes == 1000
    # 1000 draws: five standard errors.
    assert drawn.mean == pytest.approx(noisy.mean, abs=5 * drawn.deviation / 31)
    assert drawn.cvar(0.2) == pytest.approx(noisy.cvar(0.2), abs=0.8)


def test_a_goal_is_paid_once() -> None:
    """Rewards at the goal vary, but where the step leads says which it is: 0 or 1."""
    model, _ = learn_rspmn(frozen_lake().generate(800, 30, 0))
    assert any(isinstance(node, Utility) and node.variance > 0.1 for node in model.template.nodes)
    policy = model.policy(20)
    found = policy.returns()
    assert set(found.values.round(9).tolist()) == {0, 1}
    assert found.mean == pytest.approx(float(policy.value()), abs=0.02)


def test_what_cannot_be_told_apart_is_simulated() -> None:
    rng = np.random.default_rng(3)
    model = random_rspmn(rng, random_setting(rng, 1), 2, told_apart=True)
    found = model.policy(3).returns(episodes=50, rng=3)
    again = model.policy(3).returns(episodes=50, rng=3)
    assert found.values.tolist() == again.values.tolist()
    assert math.isnan(found.error)


def test_what_is_refused() -> None:
    model = chain([{"on": (1.0, {0: 1.0})}])
    with pytest.raises(EvidenceError, match="at most 3 steps as horizon, found 4"):
        model.policy(3).returns(4)
    with pytest.raises(EvidenceError, match="a number of steps"):
        model.policy(discount=0.9).returns()
    with pytest.raises(EvidenceError, match="this state was never observed"):
        model.policy(3).returns(state={"x": 9})
    one = ReturnDistribution(np.zeros(1), np.ones(1), 1)
    with pytest.raises(EvidenceError, match="share"):
        one.cvar(0)
    with pytest.raises(EvidenceError, match="quantile"):
        one.quantile(2)
    assert model.policy(discount=0.9).returns(2).mean == pytest.approx(1.9)


@pytest.mark.parametrize("seed", seeds(3, 30))
def test_the_mean_is_the_value_where_factors_share_what_follows(seed: int) -> None:
    """Outcomes lead elsewhere more or less often than was counted, with other rewards there."""
    model, info = learn_rspmn(random_mdp(seed).generate(30, 15, seed))
    assert isinstance(info.future, FutureInfo)
    assert info.future.strength > 0
    for horizon in (1, 5):
        policy = model.policy(horizon)
        assert policy.returns().mean == pytest.approx(float(policy.value()), rel=1e-9)


def test_parts_of_an_outcome_have_its_mean() -> None:
    """It earns 1, in a quarter 4 and else 0. If the quarter is a half, 4 is 2, and 0 is 0.

    The next one earned nothing anywhere; the last one, 2 and -2, cannot earn 5 by its size.
    """
    outcome, share = np.array([0, 0, 1, 2, 2]), np.array([0.5, 0.5, 1.0, 0.5, 0.5])
    parts = np.array([4.0, 0.0, 0.0, 2.0, -2.0])
    found = _of_mean(np.array([1.0, 3.0, 5.0]), outcome, share, parts)
    assert found.tolist() == [2.0, 0.0, 3.0, 7.0, 3.0]
    tiny = _of_mean(np.array([1.0]), np.array([0]), np.array([1.0]), np.array([5e-324]))
    assert tiny.tolist() == [1.0]
