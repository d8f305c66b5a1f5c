"""Policies on logs of numbers: states belong to several soft boxes."""

from functools import cache

import numpy as np
import pytest

import rspmn
from number_worlds import corridor
from rspmn import RSPMN, Episodes
from rspmn.evaluate import compare, off_policy, practice
from rspmn.evaluate.behaviour import estimated_behaviour
from rspmn.evaluate.logged import logged_steps
from rspmn.evaluate.target_on_log import TargetOnLog
from rspmn.evaluate.target_policies import Planned
from rspmn.infer.compiled.node_membership import knots
from rspmn.learn import learn_rspmn

STEPS, DISCOUNT = 20, 0.95


@cache
def walks(missing: float = 0.0) -> tuple[RSPMN, Episodes]:
    log, schema = corridor(120, seed=0, missing=missing)
    model, _ = learn_rspmn(rspmn.windows(log, schema, terminated="over"))
    assert model.soft_counts is not None
    return model, Episodes.from_long(log, schema, terminated="over")


def mean_return(log: Episodes) -> tuple[float, float]:
    """Return what episodes earned within the horizon, on average, and its standard error."""
    time = np.arange(log.num_steps) - np.repeat(log.offsets[:-1], log.lengths)
    earned = np.where(time < STEPS, DISCOUNT**time * log.columns["u"].numbers(), 0.0)
    returns = np.add.reduceat(earned, log.offsets[:-1])
    return float(returns.mean()), float(returns.std() / np.sqrt(len(returns)))


def test_practice_is_worth_what_the_log_earned() -> None:
    model, log = walks()
    found = practice(model, STEPS, DISCOUNT)
    earned, _ = mean_return(log)
    assert found.low < earned < found.high
    assert found.value == pytest.approx(earned, rel=0.1)


def test_the_recommendation_beside_practice() -> None:
    model, log = walks()
    found = compare(model, log, STEPS, DISCOUNT)
    assert found.better == 1
    assert found.difference.low > 0
    assert sum(node.visits for node in found.nodes) == pytest.approx(
        sum(min(n, STEPS) for n in log.lengths.tolist())
    )
    assert found.nodes[0].recommended == "right"
    assert sum(node.gain for node in found.nodes) == pytest.approx(
        found.policy.promise - found.practice.value, rel=0.15
    )


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_states_belong_to_all_boxes_around_them(missing: float) -> None:
    model, log = walks(missing)
    places = logged_steps(model, log).situations.places
    assert np.allclose(places.shares.sum(axis=1), 1)
    assert not places.nowhere.any()
    policy, row = model.policy(STEPS), 5
    state = logged_steps(model, log).situations.known[row]
    assert np.allclose(places.shares[[row]].toarray()[0, :-1], policy.nodes(state))


def test_estimators_see_interpolated_values() -> None:
    """What the model says of a step's decision is what the policy's own table says of it."""
    model, log = walks()
    steps, policy = logged_steps(model, log), model.policy(STEPS, DISCOUNT)
    found = TargetOnLog(model, steps, Planned(policy), STEPS, DISCOUNT, None)
    worth, last = found.worth(STEPS - 1), policy.planned.horizon
    assert last == STEPS
    for row in range(0, steps.situations.count, 97):
        answers = {a.value: a.utility for a in policy.action_values(
            steps.situations.known[row], STEPS - 1)}  # fmt: skip
        mine = [answers[made[0]] for made in steps.situations.decisions if made[0] is not None]
        assert worth[row] == pytest.approx(mine)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_all_estimators_answer(missing: float) -> None:
    """The uniform policy is the practice of this log: all estimators must say what it earned."""
    model, log = walks(missing)
    found = off_policy(model, log, "uniform", STEPS, DISCOUNT, draws=100)
    earned, error = mean_return(log)
    for estimate in found.estimates:
        assert estimate.low < estimate.high
        assert abs(estimate.value - earned) < 3 * error
    assert any("interpolated" in note for note in found.notes)
    assert found.coverage == pytest.approx(1)


def test_the_recommended_policy_is_worth_its_promise() -> None:
    """At the knot of a box the policy does what is planned in the box."""
    model, log = walks()
    found = off_policy(model, log, "recommended", STEPS, DISCOUNT, draws=20)
    assert found["model"].value == pytest.approx(model.meu(horizon=STEPS, discount=DISCOUNT))


def test_knots_belong_to_their_box_alone() -> None:
    model, _ = walks()
    policy = model.policy(STEPS)
    for node, x in enumerate(knots(model)["x"].tolist()[:-1]):
        assert policy.nodes({"x": x})[node] == pytest.approx(1)


def test_behaviour_is_averaged_over_boxes() -> None:
    """Both actions are taken everywhere with probability 1/2."""
    model, log = walks()
    assert abs(estimated_behaviour(logged_steps(model, log)) - 0.5).max() < 0.2
