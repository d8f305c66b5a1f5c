"""What outcomes earn by where they lead: by hand, and against closed forms."""

import numpy as np
import pytest

from rspmn.successor_counts import SharedUtilities
from rspmn.trust.utilities import MOST, POOLED, Added, Means, Utilities
from rspmn.types import Array

DRAWS = 2000


def utilities(
    steps: list[float], mean: list[float], variance: list[float], successors: int = 2
) -> Utilities:
    """Return the utilities of outcomes with so many successors each, and of one never logged."""
    outcome = np.arange(len(steps)) // successors
    n, mu, var = (np.array(part, dtype=float) for part in (steps, mean, variance))
    outcomes, ranges = len(steps) // successors + 1, np.array([[-10.0, 10.0], [np.nan, np.nan]])
    otherwise, none = np.full(outcomes, 9.0), Added.of(None, outcomes)
    return Utilities(outcome, n, mu, var, 0 * outcome, ranges, otherwise, none)


def asked(found: Utilities, means: Means) -> Array:
    """Return what each logged edge earns, one of outcome 0 that was not, and one of the last."""
    edge = np.append(np.arange(len(found.steps)), [-1, -1])
    outcome = np.append(found.outcome, [0, len(found.otherwise) - 1])
    return found.of_edges(means, edge, outcome, 0 * edge)


def test_the_goal_is_paid_where_it_is_reached() -> None:
    """Rewards that are certain given the successor are not averaged, and not drawn."""
    found = utilities([2, 4, 5, 1], [1.0, 0.0, 0.0, 0.0], [0.0] * 4)
    assert found.worth == 0
    assert (found.draw(3, np.random.default_rng(0)).edges == found.mean).all()
    *logged, unseen, never = asked(found, found.expected).tolist()
    assert (logged, never) == ([1, 0, 0, 0], 9)
    # What was never logged earns what the outcome does, 2 / 6, drawn towards all steps, 2 / 12.
    assert 1 / 6 < unseen < 1 / 3


def test_where_successors_do_not_matter_the_mean_of_the_outcome_is_all() -> None:
    rng = np.random.default_rng(1)
    rewards = rng.normal(size=(40, 10))  # 40 pairs, 10 steps each, all of the same mean
    found = utilities([10] * 40, rewards.mean(axis=1).tolist(), rewards.var(axis=1).tolist())
    assert found.worth > 30
    even = utilities([4, 4], [0.0, 0.0], [1.0, 1.0])
    assert even.worth == MOST
    drawn = even.draw(5, rng)
    # Both successors earn the same in each draw: what the outcome does.
    assert asked(even, drawn)[:, 0] == pytest.approx(drawn.parts[:, 0], abs=1e-3)
    assert asked(even, drawn)[:, 1] == pytest.approx(drawn.parts[:, 0], abs=1e-3)


def test_analysis_of_variance_by_hand() -> None:
    """Two successors, 5 steps each: means 0 and 2, rewards that vary by 1.6 around them."""
    found = utilities([5, 5], [0.0, 2.0], [1.6, 1.6])
    # σ² = 10 · 1.6 / 8 = 2; around the mean 1: 10 · 1 = 10 = σ² + τ² · (10 - 50 / 10), so
    # τ² = 8 / 5 and σ² / τ² = 1.25
    assert found.worth == pytest.approx(1.25)
    # (5 · 0 + 1.25 · 1) / 6.25
    assert asked(found, found.expected)[:2] == pytest.approx([0.2, 1.8])


def test_means_of_many_steps_are_as_sure_as_those_of_a_normal_of_unknown_variance() -> None:
    steps, variance = np.array([40.0, 50.0, 90.0]), np.array([2.0, 1.0, 0.5])
    mean = np.array([-1.0, 0.0, 7.0])  # of rewards from -10 to 10
    found = utilities(steps.tolist(), mean.tolist(), variance.tolist(), successors=1)
    drawn = found.draw(DRAWS, np.random.default_rng(1)).edges
    pooled = float(steps @ variance) / steps.sum()
    # E[1 / χ²(ν)] = 1 / (ν - 2)
    expected = (POOLED * pooled + steps * variance) / (POOLED + steps - 2) / steps
    assert drawn.var(axis=0) == pytest.approx(expected, rel=0.25)
    # Means of outcomes vary by far more than errors do, so those of the kind tell next to nothing.
    assert drawn.mean(axis=0) == pytest.approx(mean, abs=0.05)


def test_rewards_that_are_paid_at_the_end_are_between_0_and_1_and_others_are_0() -> None:
    """Outcomes with a step that goes on for nothing, and 1 to 3 that end and pay 0 or 1."""
    rng = np.random.default_rng(0)
    steps = np.stack([np.ones(200), rng.integers(1, 4, size=200)], axis=1).ravel()
    wins = np.where(np.arange(400) % 2 == 1, rng.binomial(steps.astype(int), 0.8), 0)
    mean, ends = wins / steps, np.arange(400) % 2
    ranges = np.array([[0.0, 0.0], [0.0, 1.0]])
    outcome, none = np.arange(400) // 2, Added.of(None, 200)
    found = Utilities(outcome, steps, mean, mean * (1 - mean), ends, ranges, np.zeros(200), none)
    drawn = found.draw(DRAWS, rng).edges
    assert (drawn[:, ends == 0] == 0).all()
    paid = drawn[:, ends == 1]
    assert 0 <= paid.min() < paid.max() <= 1
    assert found.expected.edges.max() < 0.95  # one win is no certain win
    # The share of wins in some 400 steps is known to √(.8 · .2 / 400) = .02.
    total = steps[ends == 1]
    assert (paid @ total / total.sum()).std() == pytest.approx((0.16 / total.sum()) ** 0.5, rel=0.3)


def test_outcomes_of_one_leaf_are_more_probable_together() -> None:
    """Two branches, each with a success of 1 and a failure of 0, predicted by one leaf of 10 steps.

    In the leaf a success has probability .7, so it is Beta(7, 3) in a draw, in both branches.
    """
    shared = SharedUtilities(
        5.0, 5.0, (0, 1, 2, 3), (0.3, 0.7, 0.3, 0.7), (0.0, 1.0, 0.0, 1.0), (0.0,) * 4, (0,) * 4,
        (10.0,),
    )  # fmt: skip
    odds = Added.of(shared, 4).draw_odds(20_000, np.random.default_rng(0))
    assert np.array_equal(odds[:, :2], odds[:, 2:])
    sizes = np.array([0.3, 0.7]) * odds[:, :2]
    chance = sizes[:, 1] / sizes.sum(axis=1)
    # Errors of a mean and of a variance over 20,000 draws: 1/√20,000 of a deviation, and √2 times
    # that of the variance; four of them, and more of the latter as the tails are those of a beta.
    assert chance.mean() == pytest.approx(0.7, abs=4 * (0.7 * 0.3 / 11 / 20_000) ** 0.5)
    assert chance.var() == pytest.approx(0.7 * 0.3 / 11, rel=6 * (2 / 20_000) ** 0.5)


def test_leaves_err_apart() -> None:
    shared = SharedUtilities(
        5.0, 5.0, (0, 1), (1.0, 1.0), (1.0, 1.0), (0.0, 0.0), (0, 1), (10.0, 1e9)
    )
    odds = Added.of(shared, 2).draw_odds(100, np.random.default_rng(0))
    assert odds[:, 0].std() > 0.1
    assert odds[:, 1] == pytest.approx(1, abs=1e-3)
