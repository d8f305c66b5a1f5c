"""Merging by value: what is said to be lost is lost, by enumeration of all states and steps."""

import numpy as np
import pytest

from effort import seeds
from rspmn import RSPMN, Schema
from rspmn.circuit import Categorical, NetworkBuilder
from rspmn.end_nodes import end_root, weighted_top
from rspmn.envs.paper_grid import paper_grid
from rspmn.envs.random_mdp import random_mdp
from rspmn.errors import CircuitError, EvidenceError
from rspmn.infer.merge_by_value import _divided, _earned
from rspmn.learn import learn_rspmn

HORIZON = 4
#: Of each state and pair of decisions: what it earns, and the probability of each next state.
World = dict[int, dict[tuple[int, int], tuple[float, list[float]]]]


def random_world(rng: np.random.Generator, states: int = 7) -> World:
    """Return a world in which few rewards and successors differ, so that some states are alike."""
    world: World = {}
    for s in range(states):
        offered = [(a, b) for a in (0, 1) for b in (0, 1) if rng.random() < 0.8] or [(0, 0)]
        if rng.random() < 0.5 and s:  # nearly a copy of another state
            world[s] = {made: (earned + rng.normal(0, 0.05), after)
                        for made, (earned, after) in world[s - 1].items()}  # fmt: skip
            continue
        world[s] = {}
        for made in offered:
            after = [0.0] * states + [0.2]  # the last one is END
            after[int(rng.integers(states))] += 0.5
            after[int(rng.integers(states))] += 0.3
            world[s][made] = (float(rng.integers(0, 3)), after)
    return world


def model_of(world: World) -> RSPMN:
    """Return the model of a world: an interface node for each state, and END."""
    b = NetworkBuilder()
    schema = Schema([["s"], ["a"], ["b"]], ["a", "b"], "u", kinds={"s": "categorical"})
    roots = []
    for s, offers in world.items():
        firsts = {}
        for a in sorted({made[0] for made in offers}):
            seconds = {}
            for (first, second), (earned, after) in offers.items():
                if first == a:
                    to = [k for k, weight in enumerate(after) if weight]
                    latents = b.sum([b.latent(k) for k in to], [after[k] for k in to])
                    seconds[second] = b.product([b.utility("u", earned, 3.0), latents])
            firsts[a] = b.max("b", seconds)
        roots.append(b.product([b.leaf("s", Categorical.certain(s)), b.max("a", firsts)]))
    roots.append(end_root(b, schema, len(world)))
    starts = [1 / len(world)] * len(world) + [0.0]
    return RSPMN(schema, weighted_top(starts), b.build(*roots), (1.0,) * (len(world) + 1))


def enumerated(world: World, discount: float) -> list[list[float]]:
    """Return the best values of states with 0, 1, … steps to go."""
    found = [[0.0] * (len(world) + 1)]
    for _ in range(HORIZON):
        later = found[-1]
        found.append([
            max(earned + discount * sum(w * v for w, v in zip(after, later, strict=True))
                for earned, after in offers.values())
            for offers in world.values()
        ] + [0.0])  # fmt: skip
    return found


def followed(world: World, small: RSPMN, discount: float) -> list[list[float]]:
    """Return what states are worth if the policy of the smaller model decides."""
    policy, found = small.policy(HORIZON, discount), [[0.0] * (len(world) + 1)]
    for steps in range(1, HORIZON + 1):
        later, values = found[-1], []
        for s, offers in world.items():
            made = policy.act({"s": s}, HORIZON - steps)
            earned, after = offers[made["a"], made["b"]]
            values.append(earned + discount * sum(w * v for w, v in zip(after, later, strict=True)))
        found.append([*values, 0.0])
    return found


@pytest.mark.parametrize("seed", seeds(3, 6))
@pytest.mark.parametrize("tolerance", [0.0, 0.2, 1.0])
def test_what_is_lost_is_what_enumeration_says(seed: int, tolerance: float) -> None:
    world = random_world(np.random.default_rng(seed))
    discount = 1.0 if seed % 2 else 0.9
    model = model_of(world)
    small, info = model.merged(tolerance, HORIZON, discount)
    lost = np.array(enumerated(world, discount)) - np.array(followed(world, small, discount))
    assert sum(small.visits) == sum(model.visits)
    assert info.worst == pytest.approx(lost.max(), abs=1e-9)
    assert info.loss == pytest.approx(lost[-1, :-1].mean(), abs=1e-9)
    if tolerance == 0:
        assert info.worst == pytest.approx(0, abs=1e-9)
        assert small.meu(horizon=HORIZON, discount=discount) == pytest.approx(
            model.meu(horizon=HORIZON, discount=discount)
        )


def test_most_tolerances_merge_something() -> None:
    sizes = [
        model_of(random_world(np.random.default_rng(seed))).merged(1.0, HORIZON)[0].num_interfaces
        for seed in range(12)
    ]
    assert np.mean(sizes) < 7  # of 8


def test_classes_are_apart_by_no_more_than_the_tolerance() -> None:
    rng = np.random.default_rng(0)
    numbers, label = rng.normal(size=200), rng.integers(0, 3, 200)
    numbers[::10] = -np.inf
    found = _divided(label, numbers, 0.3)
    for k in range(found.max() + 1):
        inside = numbers[found == k]
        assert len(set(label[found == k])) == 1
        assert np.isneginf(inside).all() or np.ptp(inside) <= 0.3
    assert (_divided(label, np.zeros(200), 0.0) == np.unique(label, return_inverse=True)[1]).all()


def test_what_cannot_be_merged_is_refused() -> None:
    with pytest.raises(EvidenceError, match="tolerance: expected a number of 0 or more"):
        paper_grid().merged(-1.0, 4)
    with pytest.raises(EvidenceError):
        paper_grid().merged(1.0, 0)
    b = NetworkBuilder()
    schema = Schema([["s"], ["a"], ["o"]], ["a"], "u", kinds={"s": "categorical"})
    seen = [b.product([b.leaf("o", Categorical.certain(0)), b.utility("u", 1.0), b.latent(0)])]
    root = b.product([b.leaf("s", Categorical.certain(0)), b.max("a", {0: seen[0]})])
    model = RSPMN(schema, weighted_top([1.0]), b.build(root), (1.0,))
    with pytest.raises(CircuitError, match="interface node 0: expected nothing that is observed"):
        model.merged(1.0, 4)


@pytest.mark.parametrize("seed", seeds(2, 20))
def test_branches_with_several_outcomes(seed: int) -> None:
    """A branch earns the mean of its outcomes: with no tolerance nothing changes."""
    model = learn_rspmn(random_mdp(seed).generate(100, 10, seed))[0]
    small, info = model.merged(0.0, HORIZON)
    assert info.worst == pytest.approx(0, abs=1e-12)
    assert float(small.meu(horizon=HORIZON)) == pytest.approx(float(model.meu(horizon=HORIZON)))


def test_what_a_branch_earns_by_hand() -> None:
    """1 with variance 4, or 5 with none, with 1/4 and 3/4: mean 4, variance 1 + 9/4 + 3/4 = 4."""
    b = NetworkBuilder()
    parts = [b.product([b.utility("u", 1.0, 2.0, 4.0), b.latent(0)]),
             b.product([b.utility("u", 5.0, 6.0, 0.0), b.latent(0)])]  # fmt: skip
    network = b.build(b.sum(parts, [0.25, 0.75]))
    assert _earned(network, network.roots[0]) == (4.0, 4.0, 8.0)
