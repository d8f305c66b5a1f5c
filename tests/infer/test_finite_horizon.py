"""Long horizons: updates stop early, and what they leave out is known within the bound."""

import numpy as np
import pytest

from effort import seeds
from factored_models import random_factored
from plain_queries import settled
from random_models import simplex
from rspmn import RSPMN
from rspmn.envs.paper_grid import paper_grid
from rspmn.infer.compiled import finite_horizon, planned
from rspmn.infer.compiled.finite_horizon import StepValues, values_over
from rspmn.types import Array
from small_models import Moves, chain

HORIZON = 400


@pytest.fixture(autouse=True)
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finite_horizon, "FIRST_LOOK", 32)


def random_moves(rng: np.random.Generator, states: range, among: range) -> list[Moves]:
    """Return moves of some states to others, with rewards from 0 to 1."""

    def move() -> tuple[float, dict[int, float]]:
        to = rng.permutation(among)[:4].tolist()
        return float(rng.random()), dict(zip(to, simplex(rng, len(to)), strict=True))

    return [{"a": move(), "b": move()} for _ in states]


def connected(seed: int) -> RSPMN:
    return chain(random_moves(np.random.default_rng(seed), range(8), range(8)))


def ending(seed: int) -> RSPMN:
    rng = np.random.default_rng(seed)
    moves: list[Moves] = []
    for _ in range(6):
        to = dict(zip([*rng.permutation(6)[:3].tolist(), 6], [0.3, 0.3, 0.2, 0.2], strict=True))
        moves.append({name: (float(rng.random()), to) for name in "ab"})
    return chain(moves, end=True)


def two_parts(seed: int) -> RSPMN:
    """Some states lead to either of two parts that are never left, with gains of their own."""
    rng = np.random.default_rng(seed)
    moves = random_moves(rng, range(4), range(4)) + random_moves(rng, range(4), range(4, 8))
    return chain(moves + random_moves(rng, range(3), range(11)))


def stay_or_end(seed: int) -> RSPMN:
    """It pays to go on, but each state may also end for a reward that is had once."""
    rng = np.random.default_rng(seed)
    moves = random_moves(rng, range(5), range(5))
    return chain([{**m, "end": (float(10 * rng.random()), {5: 1.0})} for m in moves], end=True)


def factored(seed: int) -> RSPMN:
    return random_factored(np.random.default_rng(seed), frontier=seed % 2 == 1)


WORLDS = [connected, ending, two_parts, stay_or_end, factored]


def apart(found: StepValues, expected: Array) -> float:
    """Return how far values are off at most, at any number of steps to go."""
    known = np.isfinite(expected[-1])
    return max(float(np.abs(found[h] - row)[known].max()) for h, row in enumerate(expected[2:], 2))


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("seed", seeds(1, 2))
@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_what_is_left_out_is_known_within_the_bound(world, seed: int, discount: float) -> None:  # type: ignore[no-untyped-def]
    model = world(seed)
    expected = model.bellman.values(HORIZON, discount)
    for keep in (True, False):
        found = values_over(model.bellman, HORIZON, discount, keep=keep)
        assert found.last < HORIZON
        assert found.bound <= finite_horizon.TOLERANCE * np.abs(found[HORIZON]).max()
        rounding = 1e-13 * float(np.abs(expected[np.isfinite(expected)]).max())
        if keep:
            assert apart(found, expected) <= found.bound + rounding
        known = np.isfinite(expected[-1])
        assert np.abs(found[HORIZON] - expected[-1])[known].max() <= found.bound + rounding


@pytest.mark.parametrize("world", WORLDS)
def test_policies_and_values_of_a_long_horizon(world) -> None:  # type: ignore[no-untyped-def]
    model = world(1)
    values, delays, supports = settled(model, HORIZON)
    policy = model.policy(HORIZON)
    assert model.values(HORIZON) == pytest.approx(values[-1].tolist(), rel=1e-10)
    for t in (0, 1, 100, HORIZON - 40, HORIZON - 10, HORIZON - 1):
        after = HORIZON - 1 - t
        exact = model.bellman.choose(values[after], delays[after], 1.0, after == 0)
        found = policy.planned.at(after, delays=True)
        assert all(map(np.array_equal, found.choices.chosen, exact.chosen))
        assert found.worth[:-1] == pytest.approx(
            policy.planned.in_order(exact.worth)[:-1], rel=1e-9
        )
        known = [np.ones(len(w)) for w in exact.worth]
        if exact.shares is not None:
            known = list(model.bellman.supports(exact, supports[after], 1.0, after == 0)[1])
        assert found.supported == pytest.approx(policy.planned.in_order(tuple(known)), abs=1e-8)


def test_delays_go_on_too() -> None:
    model = connected(0)
    _, delays, _ = settled(model, HORIZON)
    late = model.policy(HORIZON + 1).planned.future(HORIZON).roots
    assert [root.delay for root in late] == pytest.approx(delays[-1].tolist(), rel=1e-8)


def test_values_that_oscillate_are_updated_to_the_end() -> None:
    model = chain([{"a": (1.0, {1: 1.0})}, {"a": (0.0, {0: 1.0})}])
    found = values_over(model.bellman, 101)
    assert found.last == 101
    assert found[101].tolist() == [51.0, 50.0]


def test_what_pays_only_in_the_long_run_is_not_overlooked() -> None:
    """Waiting costs 1 in each of 300 steps, then 2 per step are earned for ever.

    Over fewer steps one earns 1 by staying: values look as if they had settled long before.
    """
    length = 300
    moves: list[Moves] = [{"stay": (1.0, {0: 1.0}), "go": (-1.0, {1: 1.0})}]
    moves += [{"go": (-1.0, {i + 1: 1.0})} for i in range(1, length)]
    moves.append({"stay": (2.0, {length: 1.0})})
    model = chain(moves)
    steps = 2000
    assert model.values(steps)[0] == pytest.approx(-length + 2 * (steps - length), abs=1e-9)


def test_few_steps_are_kept_of_templates_with_many_branches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = paper_grid()
    plenty, states = model.policy(6), [{"x": x, "y": y} for x in (0, 1) for y in (0, 1)]
    monkeypatch.setattr(planned, "MOST_BRANCHES", 0)
    little = model.policy(6)
    for t in range(6):
        for state in states:
            assert plenty.action_values(state, t) == little.action_values(state, t)
    assert len(plenty.planned._kept) == 6
    assert len(little.planned._kept) == 1
