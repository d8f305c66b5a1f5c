"""Policies that are good in the tail: against all policies of small models, and by hand."""

from itertools import product

import numpy as np
import pytest

import rspmn
from effort import seeds
from enumerated import returns, without_variance
from random_models import random_rspmn, random_setting
from rspmn import Schema
from rspmn.errors import EvidenceError
from rspmn.explain import ReturnDistribution
from rspmn.learn import learn_rspmn
from rspmn.model import RSPMN
from small_models import Moves, chain
from soft_models import soft_model


def lottery() -> RSPMN:
    """Earn 4 or 0, as likely; then take 1 for sure, or 3 or 0, as likely.

    Risky on average: 1.5 > 1. The worst quarter of returns, if it is always taken, is 0. If the 1
    is taken after 0, returns are 1 (1/2) and, after 4, what follows it: the worst quarter is 1.
    """
    return chain([
        {"go": (0.0, {1: 0.5, 2: 0.5})}, {"on": (4.0, {3: 1.0})}, {"on": (0.0, {3: 1.0})},
        {"safe": (1.0, {6: 1.0}), "risky": (0.0, {4: 0.5, 5: 0.5})},
        {"on": (3.0, {6: 1.0})}, {"on": (0.0, {6: 1.0})},
    ], end=True)  # fmt: skip


def test_a_lottery_by_hand() -> None:
    policy = lottery().policy(4)
    tail = policy.tail(0.25)
    assert tail.error == 0
    assert tail.value == 1
    assert policy.returns().cvar(0.25) == 0
    # What was earned decides; after 4 the worst quarter is out of reach, and the mean counts.
    assert tail.act({"x": 3}, 2, earned=0) == "safe"
    assert tail.act({"x": 3}, 2, earned=4) == "risky"
    found = tail.returns()
    assert found.values.tolist() == [1, 4, 7]
    assert found.probabilities == pytest.approx([1 / 2, 1 / 4, 1 / 4])
    # Of the worst half, both outcomes of the risk are: (0 + 3) / 2 > 1.
    assert policy.tail(0.5).value == 1.5
    assert policy.tail(0.5).act({"x": 3}, 2, earned=0) == "risky"
    # All returns: the mean.
    assert policy.tail(1).value == pytest.approx(float(policy.value()))


def _taken(actions: tuple[int, dict[int, int]], t: int, node: int) -> int:
    return actions[0] if t == 0 else actions[1][node]


def every_policy(moves: list[Moves], share: float) -> float:
    """Return the best mean of the worst share over all policies of two steps from state 0.

    A policy knows the state and what was earned: one action first, then one for each pair.
    """
    model, best = chain(moves), -np.inf
    places = {i: model.template.roots[i] for i in range(len(moves))}
    actions = [list(branches) for branches in moves]
    maxes = {model.template.nodes[root].children[-1]: i for i, root in places.items()}
    for first in range(len(actions[0])):
        reached = sorted(moves[0][actions[0][first]][1])
        for later in product(*(range(len(actions[i])) for i in reached)):
            after = dict(zip(reached, later, strict=True))

            def branch(
                index: int, t: int, first: int = first, after: dict[int, int] = after
            ) -> int:
                return first if t == 0 else after[maxes[index]]

            found = returns(model, {0: 1.0}, branch, 2, 1.0)
            law = ReturnDistribution(np.array([*found]), np.array([*found.values()]), 2)
            best = max(best, law.cvar(share))
    return best


@pytest.mark.parametrize("seed", seeds(4, 300))
def test_no_policy_of_two_steps_is_better(seed: int) -> None:
    """An action of `chain` earns one amount, so that what is earned follows from the action."""
    rng = np.random.default_rng(seed)
    moves: list[Moves] = [
        {a: (float(rng.integers(-2, 4)), dict(enumerate(rng.dirichlet(np.ones(3)).tolist())))
         for a in "lr"}
        for _ in range(3)
    ]  # fmt: skip
    policy = chain(moves).policy(2)
    for share in (0.1, 0.4):
        tail = policy.tail(share)
        assert tail.value == pytest.approx(every_policy(moves, share))
        assert tail.returns().cvar(share) == pytest.approx(tail.value)


@pytest.mark.parametrize("seed", seeds(3, 100))
def test_it_keeps_what_it_promises(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = without_variance(random_rspmn(rng, random_setting(rng, 1 + seed % 2), 2, True))
    policy = model.policy(3, 0.9 if seed % 3 == 0 else 1.0)
    tail = policy.tail(0.2, points=2000)
    got = tail.returns()
    assert got.cvar(0.2) == pytest.approx(tail.value, abs=2 * tail.error + 1e-9)
    assert tail.value >= policy.returns().cvar(0.2) - tail.error - 1e-9
    assert got.mean <= float(policy.value()) + 1e-9


@pytest.mark.parametrize("seed", seeds(2, 50))
def test_where_successors_are_unknown(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = soft_model(rng, 3, 1, marks=True, whole=True, decisions=1 + seed % 2)
    policy = model.policy(3)
    tail = policy.tail(1)
    assert tail.value == pytest.approx(float(policy.value()))
    assert tail.returns().mean == pytest.approx(float(policy.value()))


def test_what_is_refused() -> None:
    model = lottery()
    with pytest.raises(EvidenceError, match="share"):
        model.policy(4).tail(0)
    with pytest.raises(EvidenceError, match="the policy needs a horizon"):
        model.policy(discount=0.9).tail()
    tail = model.policy(4).tail(0.25)
    with pytest.raises(EvidenceError, match="t: expected 0 to 3, found 4"):
        tail.act({"x": 3}, 4)
    with pytest.raises(EvidenceError, match="no decision is known"):
        tail.act({"x": 99})


@pytest.mark.parametrize("penalty", [-1e1, -1e6, -1e9])
def test_a_huge_penalty_that_nobody_pays_hides_nothing(penalty: float) -> None:
    """0 for sure, or .2 with a deviation of .5, or the penalty: the best tail is 0."""
    rng = np.random.default_rng(0)
    made = np.repeat(["safe", "noisy", "fatal"], 200)
    earned = np.where(made == "noisy", 0.2 + 0.5 * rng.standard_normal(600), 0.0)
    log = {"episode": np.arange(600), "time": np.zeros(600, int), "x": np.zeros(600, int),
           "a": made, "u": np.where(made == "fatal", penalty, earned)}  # fmt: skip
    schema = Schema([["x"], ["a"]], ["a"], "u")
    model = learn_rspmn(rspmn.windows(log, schema, ending="end"))[0]
    policy, noisy = model.policy(1), earned[made == "noisy"]
    found = policy.returns()
    assert policy.act() == "noisy"
    assert found.deviation == pytest.approx(noisy.std(), rel=1e-3)
    # a normal distribution of 32 values, and one of 200 drawn numbers
    assert found.prob_below(0) == pytest.approx(np.mean(noisy < 0), abs=0.1)
    assert policy.tail(0.1).act() == "safe"
