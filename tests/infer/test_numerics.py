"""Rounding: every form of a model is as near to exact arithmetic as can be derived.

Let u = 2⁻⁵³, R the largest utility, and c the roundings of a root's number (`exact.operations`). A
value with h steps to go is at most h·R. A step rounds it by c·u times what is added up, at most
c·u·h·R to first order, and passes on what the steps after it are off, as it takes means and maxima.
So values are off by c·u·R·h·(h+1)/2, twice that with what is of second order. A network that is
unfolded rounds h·c times what is at most h·R: the bound of both is 2·c·u·R·h·(h+1).
"""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest

from effort import SOAK, mostly_soak, seeds
from exact import EXACTLY, ROUNDING, exact_log_likelihood, exact_values, operations
from factored_models import multiplied_out, random_factored
from model_seeds import finite
from plain_queries import evidence_of, settled
from random_models import random_rspmn, random_setting
from rspmn import LearnConfig, load
from rspmn.circuit import Leaf, Network, Node, Sum, Utility
from rspmn.infer.likelihood import episode_log_likelihood
from rspmn.infer.meu import meu
from rspmn.model import RSPMN
from small_models import Moves, chain


def random_model(seed: int) -> RSPMN:
    rng = np.random.default_rng(seed)
    if seed % 3 == 2:
        return random_factored(rng)
    setting = random_setting(rng, 1 + seed % 2)
    return random_rspmn(rng, setting, 3, told_apart=seed % 4 < 2, end=seed % 3 == 0)


def largest_utility(model: RSPMN) -> float:
    return max(abs(node.mean) for node in model.template.nodes if isinstance(node, Utility))


def value_bound(model: RSPMN, steps: int) -> float:
    most = operations(model.template) + operations(model.top)
    return 2 * most * ROUNDING * largest_utility(model) * steps * (steps + 1)


def off(found: float, exact: Decimal) -> float:
    with localcontext(EXACTLY):
        return abs(float(Decimal(found) - exact))


def _dot(one: Iterable[Decimal], other: Iterable[Decimal]) -> Decimal:
    return sum((a * b for a, b in zip(one, other, strict=True)), Decimal(0))


@pytest.mark.parametrize("seed", seeds(3, 600))
@pytest.mark.parametrize("discount", [1.0, 0.75])
def test_all_forms_are_near_to_exact_arithmetic(seed: int, discount: float) -> None:
    """Plain, compiled, contracted or multiplied out, and unfolded."""
    model = random_model(seed)
    for steps in (1, 2, 5):
        bound = value_bound(model, steps)
        exact = exact_values(model, steps, discount)
        forms = [
            model.values(steps, discount),
            multiplied_out(model).values(steps, discount),
            settled(model, steps, discount)[0][steps].tolist(),
        ]
        for form in forms:
            assert max(map(off, form, exact)) <= bound
        with localcontext(EXACTLY):
            total = sum(map(Decimal, model.starts))
            start = _dot(map(Decimal, model.starts), exact) / total
        assert off(model.meu(None, steps, discount), start) <= bound
        if discount == 1 and steps < 5:
            assert off(meu(model.unfold(steps), {}), start) <= bound


@pytest.mark.parametrize("seed", seeds(1, 40))
def test_likelihoods_of_many_steps(seed: int) -> None:
    """A step rounds a logarithm L by c·u·|L| at most, so n steps by n·c·u·|L|."""
    rng = np.random.default_rng(seed)
    model = random_rspmn(rng, random_setting(rng, 1), 3, told_apart=bool(seed % 2))
    number = 1000 if SOAK else 400
    log = model.sample(1, number, seed)
    steps = evidence_of(log, 0)
    assert len(steps) == number
    exact = exact_log_likelihood(model, steps)
    if seed == 0:  # worlds of few variables are more predictable
        assert exact < -700  # it would be 0 if it were not a logarithm
    most = operations(model.template) + operations(model.top)
    bound = len(steps) * most * ROUNDING * (1 - float(exact))
    assert off(float(model.log_likelihood(log, False)[0]), exact) <= bound
    assert off(episode_log_likelihood(model, steps), exact) <= bound
    assert bound < 1e-10 * -float(exact)


def scaled(model: RSPMN, factor: float) -> RSPMN:
    """Return the model with all utilities multiplied."""

    def times(node: Node) -> Node:
        return replace(node, mean=node.mean * factor) if isinstance(node, Utility) else node

    return replace(
        model, template=Network(tuple(map(times, model.template.nodes)), model.template.roots)
    )


@pytest.mark.parametrize("seed", seeds(2, 200))
@pytest.mark.parametrize("power", [-40, 40])
def test_utilities_of_any_size(seed: int, power: int) -> None:
    """Powers of 2, here about 1e-12 and 1e12, are passed on without rounding: bits are equal."""
    model, factor = random_model(seed), 2.0**power
    other = scaled(model, factor)
    for horizon, discount in ((4, 1.0), (200, 1.0), (None, 0.9)):
        expected = [value * factor for value in model.values(horizon, discount)]
        assert other.values(horizon, discount) == expected
    one, another = model.policy(4), other.policy(4)
    for node in range(model.num_interfaces):
        assert one.choices(node)[0] == another.choices(node)[0]


@pytest.mark.parametrize("factor", [1e-12, 1e-3, 1e12])
def test_utilities_of_other_sizes(factor: float) -> None:
    """Other factors round each utility once, which `operations` counts as a rounding of weights."""
    for seed in range(3):
        model = scaled(random_model(seed), factor)
        exact = exact_values(model, 5)
        assert max(map(off, model.values(5), exact)) <= value_bound(model, 5)


# ---- long horizons ---------------------------------------------------------------------

LONG = 10**6


def exact_power(moves: list[Moves], steps: int, end: bool) -> list[Decimal]:
    """Return values of a chain without choices, by powers of the affine map v → r + P v."""
    size = len(moves) + end
    with localcontext(EXACTLY):
        rewards = [Decimal(0)] * size
        follows = [[Decimal(0)] * size for _ in range(size)]
        if end:
            follows[-1][-1] = Decimal(1)
        for state, ((earns, to),) in enumerate(map(dict.values, moves)):
            rewards[state] = Decimal(earns)
            total = sum(map(Decimal, to.values()))
            for after, weight in to.items():
                follows[state][after] = Decimal(weight) / total
        found = [Decimal(0)] * size
        while steps:
            if steps % 2:
                found = [r + _dot(p, found) for r, p in zip(rewards, follows, strict=True)]
            columns = list(zip(*follows, strict=True))
            rewards = [r + _dot(p, rewards) for r, p in zip(rewards, follows, strict=True)]
            follows = [[_dot(p, column) for column in columns] for p in follows]
            steps //= 2
        return found


CHAINS: dict[str, tuple[list[Moves], bool]] = {
    "ends after ten steps": ([{"on": (1.0, {0: 0.9, 1: 0.1})}], True),
    "ends after a million steps": ([{"on": (1.0, {0: 1 - 1e-6, 1: 1e-6})}], True),
    "goes on": ([{"on": (1.0, {0: 0.3, 1: 0.7})}, {"on": (-0.25, {0: 0.6, 1: 0.4})}], False),
    "goes on in a circle": ([{"on": (1.0, {1: 1.0})}, {"on": (3.0, {0: 1.0})}], False),
    "goes on in two parts": (
        [{"on": (0.0, {1: 0.5, 2: 0.5})}, {"on": (1.0, {1: 1.0})}, {"on": (0.1, {2: 1.0})}], False,
    ),
}  # fmt: skip

#: Others are updated to the end, some ten seconds: their values are no line.
SHORT = "ends after ten steps", "goes on", "goes on in two parts"


@pytest.mark.parametrize("name", mostly_soak(CHAINS, SHORT))
def test_a_horizon_of_a_million_steps(name: str) -> None:
    """Values are as near as their bound says; and that is 1e-9 of the largest, or less."""
    moves, end = CHAINS[name]
    model, exact = chain(moves, end), exact_power(moves, LONG, end)
    found = model.meu({"x": 0}, LONG)
    assert off(found, exact[0]) <= found.bound + 1e-9 * abs(found)
    assert found.bound <= 1e-9 * abs(found)


# ---- probabilities -----------------------------------------------------------------------


def furthest_from_one(model: RSPMN) -> float:
    """Return how far the probabilities of a sum or a leaf are from summing to 1, at most."""
    sums = [1.0]
    for network in model.networks:
        for node in network.nodes:
            if isinstance(node, Sum):
                sums.append(float(np.sum(node.weights)))
            elif isinstance(node, Leaf) and (atoms := node.distribution.atoms()) is not None:
                sums.append(sum(atoms.values()) + node.distribution.unlisted())
    return max(abs(total - 1) for total in sums)


@pytest.mark.parametrize("soft", [False, True])
def test_probabilities_sum_to_one_after_em(soft: bool, tmp_path: Path) -> None:
    model = finite(LearnConfig(em_passes=5, soft_em=soft))
    assert furthest_from_one(model) <= 1e-12
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again == model
