"""What is done at max nodes: the best, a plan, a mixture."""

import numpy as np

from rspmn import RSPMN, learn_rspmn
from rspmn.envs.domains import DOMAINS
from rspmn.trust.rules import Best, Fixed, Mixed


def _lake() -> RSPMN:
    return learn_rspmn(DOMAINS["FrozenLake"]().generate(100, 8, 0))[0]


def test_the_best_a_plan_and_a_mixture_by_loops() -> None:
    level = _lake().bellman.levels[0]
    size = len(level.untried)
    rng = np.random.default_rng(0)
    worth = rng.normal(size=(3, size))
    worth[rng.random(worth.shape) < 0.2] = -np.inf
    shares = rng.random(size)
    best = Best()
    highest = best.settle(0, level, worth)
    planned = Fixed(best.taken).settle(0, level, worth)
    mixed = Mixed([shares]).settle(0, level, worth)
    bounds = [*level.starts.tolist(), size]
    for draw in range(3):
        for node in range(len(level.nodes)):
            here = slice(bounds[node], bounds[node + 1])
            known = np.isfinite(worth[draw, here])
            assert highest[draw, node] == planned[draw, node] == worth[draw, here].max()
            if known.any():
                expected = np.average(worth[draw, here][known], weights=shares[here][known])
                assert abs(mixed[draw, node] - expected) < 1e-12
            else:
                assert mixed[draw, node] == -np.inf


def test_a_mixture_of_nothing_but_the_best_is_the_best() -> None:
    """In one world: all mass on the branches of the plan gives the plan's values."""
    model = _lake()
    posterior = model.posterior
    worlds = posterior.worlds(posterior.draw(1, np.random.default_rng(0)))
    best, rules = np.zeros((1, model.num_interfaces)), []
    for after in range(5):
        rule = Best()
        best = worlds.update(best, 1.0, after == 0, rule)
        shares = np.zeros(len(model.bellman.levels[0].untried))
        shares[rule.taken[0][0]] = 1.0
        rules.append(Mixed([shares]))
    assert np.allclose(worlds.values(rules, 1.0, 1), best, rtol=1e-12)
    assert model.posterior is posterior
