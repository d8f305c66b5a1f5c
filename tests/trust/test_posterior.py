"""Draws of all weights: their means by hand, and against closed forms."""

from dataclasses import replace

import numpy as np
import pytest

from rspmn import LearnConfig, learn_rspmn
from rspmn.data.episodes import Episodes
from rspmn.envs.domains import DOMAINS
from rspmn.envs.logs import Layout
from rspmn.envs.random_mdp import random_mdp
from rspmn.errors import EvidenceError
from rspmn.model import RSPMN
from rspmn.schema import Schema
from rspmn.trust import Posterior
from rspmn.trust.novelty import NODE, Novelty
from rspmn.trust.posterior import _components, draw_cells
from rspmn.types import Array, Ints

DRAWS = 2000


def two_states() -> Episodes:
    """Return 40 episodes of two steps: x, in which "go" leads to y 3 times of 4; then a "stay"."""
    rows = []
    for episode in range(40):
        after = "x" if episode % 4 == 0 else "y"
        rows += [(episode, 0, "x", "go", 1.0), (episode, 1, after, "stay", 5.0 * (after == "y"))]
    table = {name: [row[k] for row in rows] for k, name in enumerate(["e", "t", "s", "a", "u"])}
    table["end"] = [row[1] == 1 for row in rows]
    schema = Schema([["s"], ["a"]], ["a"], "u")
    return Episodes.from_long(table, schema, episode="e", time="t", terminated="end")


def learned(name: str, episodes: int, layout: Layout = "flags") -> RSPMN:
    world = DOMAINS[name]()
    return learn_rspmn(world.generate(episodes, world.horizon, 0, layout))[0]


def near(found: Array, expected: Array, variance: Array, draws: int = DRAWS) -> bool:
    """Tell whether a mean of draws is within 6 of its standard errors."""
    return bool((np.abs(found - expected) <= 6 * np.sqrt(variance / draws) + 1e-12).all())


def test_two_states_by_hand() -> None:
    model, _ = learn_rspmn(two_states(), LearnConfig(successors="counts"))
    posterior = Posterior(model)
    evidence = posterior.evidence
    assert model.end is not None
    x = model.starts.index(1.0)
    y = next(k for k in range(3) if k not in (x, model.end))
    # Branches: go and stay in x, stay in y. "go" led to x 10 times and to y 30 times.
    core = {
        (int(node), earns): row.round(12).tolist()
        for node, earns, row in zip(
            evidence.node, posterior.mean_earned, posterior.mean_core.toarray(), strict=True
        )
    }
    go = [0.0, 0.0, 0.0]
    go[x], go[y] = 0.25, 0.75
    over = [float(k == model.end) for k in range(3)]
    assert core[x, 1.0] == go
    assert core[x, 0.0] == core[y, 5.0] == over
    assert sorted(evidence.steps) == [0, 10, 30, 40]  # END's own branch was never logged
    # Beta(30, 10) has mean 3/4 and variance 3/4 · 1/4 / 41.
    cells = evidence.cells
    _, edges, _, _ = draw_cells(evidence, DRAWS, np.random.default_rng(0))
    branch = int(np.flatnonzero((evidence.node == x) & (posterior.mean_earned == 1))[0])
    edge = np.flatnonzero((cells.branch[cells.of_edges] == branch) & (cells.to == y))
    drawn = edges[:, edge[0]]
    assert near(drawn.mean(), np.array(0.75), np.array(0.75 * 0.25 / 41))
    # The variance of a sample variance is below E[(p - 3/4)⁴] / draws, here 3.2 · variance².
    expected = 0.75 * 0.25 / 41
    assert drawn.var() == pytest.approx(expected, rel=6 * (3.2 / DRAWS) ** 0.5)


@pytest.mark.parametrize(("name", "episodes"), [("FrozenLake", 300), ("SkillTeaching", 100)])
def test_means_of_draws_are_the_mean_world(name: str, episodes: int) -> None:
    posterior = Posterior(learned(name, episodes))
    rng, count = np.random.default_rng(0), 400
    found = posterior.draw(count, rng)
    worlds, mean = posterior.worlds(found), posterior.mean_world()
    values = rng.normal(size=posterior.evidence.bellman.interfaces)
    drawn = worlds.expect(np.tile(values, (count, 1)))
    # Large shares of what is new are rare, and a sample may lack them: their part of the variance
    # is at most E[s²] · range². E[s²] of Beta(k, n) is k (k + 1) / ((n + k) (n + k + 1)).
    novelty, known = posterior.novelty, posterior.evidence.known[:, None]
    k = novelty.strength
    second = (novelty.responsibility * k * (k + 1) / ((known + k) * (known + k + 1))).sum(axis=1)
    rare = second * np.ptp(values) ** 2
    expected = mean.expect(values[None, :])[0]
    assert near(drawn.mean(axis=0), expected, drawn.var(axis=0) + rare, count)
    rare = second * np.ptp(posterior.evidence.utilities.mean) ** 2
    assert near(found.earned.mean(axis=0), mean.earned[0], found.earned.var(axis=0) + rare, count)
    # Weights of a branch sum to 1, in every draw.
    assert worlds.expect(np.ones((count, len(values)))) == pytest.approx(1.0)
    assert mean.expect(np.ones((1, len(values)))) == pytest.approx(1.0)
    lost = posterior.worlds(posterior.anywhere(found, rng))
    assert lost.expect(np.ones((count, len(values)))) == pytest.approx(1.0)


@pytest.mark.parametrize(("name", "episodes"), [("FrozenLake", 300), ("Elevators", 30)])
def test_mean_utilities_are_sums_over_all_pairs(
    name: str, episodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    posterior = Posterior(learned(name, episodes))
    novelty, node, earned = posterior.novelty, posterior.evidence.node, posterior.usual
    size, branches = novelty.interfaces, len(node)
    pairs = np.repeat(np.arange(branches), size), np.tile(np.arange(size), branches)
    ends = (pairs[1] == posterior.model.end).astype(np.int64)
    pays = novelty.utilities(*pairs, earned[pairs[0], ends]).reshape(branches, size)
    expected = (novelty.by_nodes.toarray()[node] * pays).sum(axis=1), pays @ novelty.everywhere
    looked_at = []

    def counted(branch: Ints, to: Ints, otherwise: Array) -> Array:
        looked_at.append(len(branch))
        return Novelty.utilities(novelty, branch, to, otherwise)

    monkeypatch.setattr(novelty, "utilities", counted)
    found = novelty.mean_utilities(earned)
    assert found == pytest.approx(np.array(expected), abs=1e-12)
    # Only successors of the branch's node: as many as there are keys of the node, each.
    of_nodes = np.bincount(novelty.keys // size, minlength=size)
    assert looked_at == [of_nodes[node].sum()]
    assert looked_at[0] < branches * size / 2


def test_the_core_has_the_weights_of_the_model_where_factors_are_shared() -> None:
    model = learned("Elevators", 300)
    assert model.counts is not None
    assert model.counts.factors is not None
    matrix = model.bellman.levels[0].forms.matrix
    weights = np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.toarray())
    posterior = Posterior(model)
    counted = posterior.evidence.steps > 0
    found = posterior.mean_core.toarray()
    assert found[counted] == pytest.approx(weights[counted, : model.num_interfaces])


def test_new_successors_are_expected_where_they_were_found() -> None:
    """Branches that rarely lead to the same state twice are not certain, others nearly are."""
    certain = Posterior(learned("GridUniverse", 1000)).novelty.shares.sum(axis=0)
    slippery = Posterior(learned("FrozenLake", 300))
    tried = slippery.evidence.steps
    shares = slippery.novelty.shares.sum(axis=0)
    assert certain.max() < 0.01
    assert shares[(tried > 0) & (tried <= 3)].mean() > 0.1
    assert shares[tried > 100].max() < 0.03
    assert slippery.novelty.responsibility.sum(axis=1) == pytest.approx(1.0)


def test_likelihoods_are_those_of_an_urn() -> None:
    """In each step a successor has k · q chances and one for each time that it followed before."""
    novelty = Posterior(learned("FrozenLake", 300, "final")).novelty  # whole steps
    steps = novelty.evidence.steps
    for branch in np.flatnonzero((steps >= 2) & (steps <= 12)):
        for component, k in enumerate(novelty.strength):
            base = base_of(novelty, int(branch), bool(novelty.base[component] == NODE))
            followed, log = dict.fromkeys(base, 0), 0.0
            for to, (times, q) in base.items():
                for _ in range(times):
                    log += np.log((followed[to] + k * q) / (sum(followed.values()) + k))
                    followed[to] += 1
            assert novelty.logs[branch, component] == pytest.approx(log, rel=1e-9)


def base_of(novelty: Novelty, branch: int, by_node: bool) -> dict[int, tuple[int, float]]:
    """Return the successors of a branch: how often each followed, and what others say of it."""
    counted, node = novelty.evidence.counted, novelty.evidence.node
    other = counted.branch != branch
    near = other & (node[counted.branch] == node[branch])
    reached, found = len(np.unique(counted.to)), {}
    for to, steps in zip(counted.to[~other], counted.steps[~other], strict=True):
        far, here = (
            counted.steps[group & (counted.to == to)].sum() / counted.steps[group].sum()
            for group in (other, near)
        )
        far += 1e-3 / reached
        found[int(to)] = int(steps), float(0.9 * here + 0.1 * far if by_node else far)
    return found


def test_a_branch_that_led_to_one_place_only_is_not_certain_where_others_are_not() -> None:
    cases = [("FrozenLake", 300), ("Taxi", 50)]
    slippery, certain = (Posterior(learned(*case, "final")) for case in cases)
    for posterior, low, high in [(slippery, 0.15, 1.0), (certain, 0.0, 0.01)]:
        counted, steps = posterior.evidence.counted, posterior.evidence.steps
        alone = (counted.steps == steps[counted.branch]) & (counted.steps >= 2)
        shares = posterior.novelty.shares.sum(axis=0)[counted.branch[alone & (counted.steps <= 3)]]
        assert len(shares)
        assert low <= shares.mean() <= high


def test_a_model_without_counts_is_refused() -> None:
    with pytest.raises(EvidenceError, match="no counts: learn it again"):
        Posterior(replace(learned("FrozenLake", 100), counts=None))


def test_what_few_successors_say_of_a_new_one() -> None:
    """Two groups of two: within them the squares are 2 + 2 over 2, so inner = 2.

    Their means are 1 and 5, 3 in all: 2 · (4 + 4) / 1 = 16 between them, and (16 - 2) / 2 = 7 is
    the variance of groups. Two members have the weight 2 · 7 / (2 · 7 + 2) = 7/8; none has 0.
    """
    overall, weight, deviation = _components(np.array([0, 0, 1, 1]), np.array([0.0, 2, 4, 6]), 3)
    assert overall == 3
    assert weight.tolist() == [7 / 8, 7 / 8, 0]
    assert deviation == pytest.approx(np.sqrt([2 + 7 / 8, 2 + 7 / 8, 2 + 7]))


def test_successors_that_all_earn_the_same_say_what_a_new_one_does() -> None:
    _, weight, deviation = _components(np.array([0, 0, 1, 1]), np.array([1.0, 1, 4, 4]), 2)
    assert weight.tolist() == [1, 1]
    assert not deviation.any()


def test_a_branch_of_one_lucky_reward_earns_less_where_it_leads_to_something_new() -> None:
    """In random MDPs each transition has a reward of its own, so that one says little."""
    posterior = Posterior(learn_rspmn(random_mdp(1).generate(50, 20, 0))[0])
    counted = posterior.evidence.counted
    lucky = counted.branch[counted.utility.argmax()]
    assert posterior.usual[lucky, 0] < counted.utility.max() - 0.1
