"""Values without a horizon by updates are those of equations, within the bound."""

import numpy as np
import pytest

from effort import seeds
from factored_models import random_factored
from random_models import simplex
from rspmn import RSPMN
from rspmn.circuit import Categorical, NetworkBuilder
from rspmn.end_nodes import unknown_root, weighted_top
from rspmn.errors import ConvergenceError
from rspmn.infer.compiled import limit_by_updates
from rspmn.infer.compiled.bellman import Bellman, Chain, Choices
from rspmn.infer.compiled.infinite_horizon import limit
from rspmn.infer.compiled.ties import _Tied
from rspmn.infer.criterion import MEU
from small_models import SCHEMA, Moves, chain


def large(model: RSPMN, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no equations solved; where latents are not factored, but those of delays."""
    monkeypatch.setattr(limit_by_updates, "LARGE", 0)
    monkeypatch.setattr(limit_by_updates, "LARGE_FACTORED", 0)
    if model.bellman.factored:
        monkeypatch.setattr(type(model.bellman), "chain", None)
    else:
        monkeypatch.setattr(limit_by_updates, "TRIED", 100_000)
    monkeypatch.setattr(type(model.bellman), "leaking_chain", None)


def ending(seed: int) -> RSPMN:
    """Every state ends with a probability of .01 to .1, whatever is done."""
    rng = np.random.default_rng(seed)

    def move() -> tuple[float, dict[int, float]]:
        chance = float(rng.uniform(0.01, 0.1))
        to = dict(zip(rng.permutation(6)[:3].tolist(), simplex(rng, 3), strict=True))
        return float(rng.normal()), {i: (1 - chance) * p for i, p in to.items()} | {6: chance}

    moves: list[Moves] = [{name: move() for name in "abc"} for _ in range(6)]
    return chain(moves, end=True)


def corridor() -> RSPMN:
    """A reward at the end of three steps; to stay is worth as much as to go, if one goes later."""
    moves: list[Moves] = [
        {"stay": (0.0, {i: 1.0}), "go": (float(i == 2), {i + 1: 1.0})} for i in range(3)
    ]
    return chain(moves, end=True)


def factored(seed: int) -> RSPMN:
    return random_factored(np.random.default_rng(seed), frontier=seed % 2 == 1)


@pytest.mark.parametrize("seed", seeds(2, 4))
@pytest.mark.parametrize(("world", "discount"), [(ending, 1.0), (ending, 0.9), (factored, 0.9)])
def test_updates_reach_what_equations_say(  # type: ignore[no-untyped-def]
    world, discount: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = world(seed)
    expected, near = limit(plain, discount)
    policy = plain.policy(discount=discount)
    answers = [policy.action_values({"x": 0}), policy.action_values()]
    model = world(seed)
    large(model, monkeypatch)
    values, bound = limit(model, discount)
    known = np.isfinite(expected)
    assert np.abs(values - expected)[known].max() <= bound + near
    assert bound <= 1e-8 * np.abs(expected[known]).max()
    policy = model.policy(discount=discount)
    for found, before in zip(
        [policy.action_values({"x": 0}), policy.action_values()], answers, strict=True
    ):
        assert [a.value for a in found if a.best] == [a.value for a in before if a.best]
        assert [a.utility for a in found] == pytest.approx(
            [a.utility for a in before], rel=1e-8, nan_ok=True
        )
        assert [a.supported for a in found] == pytest.approx(
            [a.supported for a in before], abs=1e-5
        )


@pytest.mark.parametrize("model", [corridor(), ending(0), ending(1)])
def test_delays_by_updates_are_those_of_equations(model: RSPMN) -> None:
    gamma = 0.99
    values, bound = limit(model, 1.0)
    tied = _Tied(model.bellman, np.where(np.isfinite(values), values, 0.0), MEU, 2 * bound)
    expected = tied.least_delays(gamma)
    found = tied._by_updates(np.zeros(len(expected)), gamma)
    # an update that adds at most c to all leaves at most c / (1 - γ)
    near = limit_by_updates.SETTLED * np.abs(expected).max()
    assert np.ptp(found - expected) <= 2 * near
    one, other = tied.choose(found), tied.choose(expected)
    assert [*map(list, one.chosen)] == [*map(list, other.chosen)]


def test_ties_are_broken_by_who_gets_there(monkeypatch: pytest.MonkeyPatch) -> None:
    model = corridor()
    large(model, monkeypatch)
    policy = model.policy()
    assert [policy.act({"x": x}) for x in range(3)] == ["go"] * 3
    assert policy.value({"x": 0}) == 1.0


def test_values_that_grow_for_ever_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    moves: list[Moves] = [{"a": (1.0, {0: 0.5, 1: 0.5})}, {"a": (3.0, {0: 0.5, 1: 0.5})}]
    model = chain(moves)
    large(model, monkeypatch)
    with pytest.raises(ConvergenceError, match=r"change by 2 per step.*give a horizon"):
        model.policy()


@pytest.mark.parametrize("known_first", [0, 100])
def test_a_reward_that_is_far_away_takes_few_rounds(
    known_first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reward of 1 after 200 steps: n steps before it, a state is worth .99ⁿ.

    A round of policy iteration tells one more state of it. `known_first` updates are tried before.
    """
    steps = 200
    model = chain(
        [
            {"back": (0.0, {max(i - 1, 0): 1.0}), "go": (float(i == steps - 1), {i + 1: 1.0})}
            for i in range(steps)
        ],
        end=True,
    )
    monkeypatch.setattr(limit_by_updates, "LARGE", 0 if known_first else 1000)
    monkeypatch.setattr(limit_by_updates, "TRIED", known_first)
    solved, of_choices = list[Choices](), Bellman.chain

    def counted(bellman: Bellman, choices: Choices) -> Chain:
        solved.append(choices)
        return of_choices(bellman, choices)

    monkeypatch.setattr(Bellman, "chain", counted)
    values, bound = limit(model, 0.99)
    expected = 0.99 ** np.arange(steps - 1, -1, -1)
    assert np.abs(values[:steps] - expected).max() <= bound <= 1e-9
    assert len(solved) <= 14


def test_supports_by_updates_are_those_of_the_equation() -> None:
    """In every step, 1 in 100 leads to where nothing is known; .999 is the discount.

    s = .99 · (1 - .999 + .999 · s), so s = .99 · .001 / (1 - .99 · .999).
    """
    b = NetworkBuilder()
    follows = b.sum([b.latent(0), b.latent(1)], [0.99, 0.01])
    step = b.max("a", {"go": b.product([b.utility("u", 1.0, 10.0), follows])})
    state = b.product([b.leaf("x", Categorical.certain(0)), step])
    template = b.build(state, unknown_root(b, SCHEMA, 1))
    bellman = RSPMN(SCHEMA, weighted_top([1.0, 0.0]), template, (10.0, 0.0)).bellman
    choices = bellman.choose(np.zeros(2), None, 0.999, False, MEU)
    found = limit_by_updates.supports_by_updates(bellman, choices, 0.999)
    assert found[0] == pytest.approx(0.99 * 0.001 / (1 - 0.99 * 0.999), abs=1e-6)
