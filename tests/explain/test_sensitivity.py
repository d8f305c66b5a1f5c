"""Thresholds of probabilities: the best action changes there, and not before."""

import numpy as np
import pytest

from effort import seeds
from rspmn.errors import EvidenceError
from rspmn.infer.policy import Policy
from rspmn.values import END
from small_models import Moves, chain


def random_moves(rng: np.random.Generator) -> list[Moves]:
    """Return states of which the first leads to the others, in which there is one action."""
    first = {
        name: (float(rng.normal()), dict(zip((1, 2, 3), rng.dirichlet(np.ones(3)), strict=True)))
        for name in ("l", "m", "r")
    }
    return [first, *({"on": (float(rng.normal(scale=3)), {4: 1.0})} for _ in range(3))]


def moved(moves: list[Moves], action: str, to: int, probability: float) -> Policy:
    """Return a policy if an action leads somewhere with another probability."""
    earns, leads = moves[0][action]
    scale = (1 - probability) / (1 - leads[to])
    other = {i: probability if i == to else p * scale for i, p in leads.items()}
    return chain([{**moves[0], action: (earns, other)}, *moves[1:]], end=True).policy(2)


@pytest.mark.parametrize("seed", seeds(4, 300))
def test_the_best_action_changes_at_the_threshold(seed: int) -> None:
    moves = random_moves(np.random.default_rng(seed))
    policy = chain(moves, end=True).policy(2)
    best = policy.act({"x": 0})
    found = policy.sensitivity({"x": 0})
    assert [each.distance for each in found] == sorted(each.distance for each in found)
    for each in found:
        to = int(each.event.removeprefix("x="))
        assert each.probability == pytest.approx(moves[0][str(each.action)][1][to])
        step = 1e-6 if each.threshold > each.probability else -1e-6
        beyond, before = each.threshold + step, each.threshold - step
        if 0 < before < 1:
            assert moved(moves, str(each.action), to, before).act({"x": 0}) == best
        if 0 < beyond < 1:
            assert moved(moves, str(each.action), to, beyond).act({"x": 0}) == each.becomes != best


@pytest.mark.parametrize("seed", seeds(3, 100))
def test_without_a_threshold_nothing_changes_it(seed: int) -> None:
    moves = random_moves(np.random.default_rng(100 + seed))
    policy = chain(moves, end=True).policy(2)
    told = {(each.action, each.event) for each in policy.sensitivity({"x": 0})}
    for action in "lmr":
        for to in (1, 2, 3):
            if (action, f"x={to}") not in told:
                made = {moved(moves, action, to, p).act({"x": 0}) for p in (1e-9, 0.5, 1 - 1e-9)}
                assert made == {policy.act({"x": 0})}


def test_a_bet_by_hand() -> None:
    """A bet wins 10 with probability .3 and costs 2: worth 1. It is worth 0 at .2."""
    bet = (-2.0, {1: 0.3, 2: 0.7})
    model = chain([{"bet": bet, "pass": (0.0, {2: 1.0})}, {"on": (10.0, {3: 1.0})},
                   {"on": (0.0, {3: 1.0})}], end=True)  # fmt: skip
    policy = model.policy(2)
    for event in (None, {"x": 1}):
        found = policy.sensitivity({"x": 0}, event=event)[0]
        assert found.action == "bet"
        assert found.probability == pytest.approx(0.3)
        assert found.threshold == pytest.approx(0.2)
        assert (found.with_event, found.without) == pytest.approx((8, -2))
        assert found.becomes == "pass"
    assert str(found) == "after bet, x=1: probability 0.3; below 0.2, pass is best"
    assert policy.sensitivity({"x": 0}, event=END) == ()  # it never follows
    with pytest.raises(EvidenceError, match="'u' is not a variable of the next state"):
        policy.sensitivity({"x": 0}, event={"u": 1})
    with pytest.raises(EvidenceError, match="no decision with a known outcome"):
        policy.sensitivity({"x": 8})
