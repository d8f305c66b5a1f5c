"""Cautious plans: the mean over draws, what huge caution does, constraints, and refusals."""

import math
from collections.abc import Mapping

import numpy as np
import pytest

from rspmn import RSPMN, learn_rspmn
from rspmn.envs.domains import DOMAINS
from rspmn.envs.random_mdp import random_mdp
from rspmn.errors import EvidenceError
from rspmn.evaluate import true_value
from rspmn.infer.criterion import MEU
from rspmn.testing.criterion import example_model
from rspmn.trust.caution import RARER, SEED, CautiousPlan
from rspmn.trust.rules import Fixed, Recorded


@pytest.fixture(scope="module")
def models() -> Mapping[str, RSPMN]:
    lake = DOMAINS["FrozenLake"]()
    logs = {"lake": lake.generate(300, 8, 3), "random": random_mdp(4).generate(10, 20, 4)}
    return {name: learn_rspmn(log)[0] for name, log in logs.items()}


@pytest.mark.parametrize("name", ["lake", "random"])
def test_the_plan_is_the_best_of_each_step_over_draws(
    name: str, models: Mapping[str, RSPMN]
) -> None:
    """Backward induction written out: no branch that is not much rarer has a higher mean."""
    model, horizon = models[name], 6
    plan = CautiousPlan(model, horizon, 0.9, MEU, 0.0, draws=40)
    assert plan.bound == 0.0  # all updates are made
    worlds = model.posterior.worlds(model.posterior.draw(40, np.random.default_rng(SEED)))
    values = np.zeros((40, model.num_interfaces))
    level = model.bellman.levels[0]
    for after in range(horizon):
        choices = plan.at(after).choices
        kept = Recorded(Fixed(choices.chosen))
        values = worlds.update(values, 0.9, after == 0, kept)
        mean, steps = kept.worth[0].mean(axis=0), level.branches.steps
        least = steps[plan.plain.at(after).choices.chosen[0]][level.branches.node]
        allowed = RARER * steps >= least
        assert np.allclose(choices.worth[0][allowed], mean[allowed], atol=1e-12)
        most = np.maximum.reduceat(np.where(allowed, mean, -np.inf), level.starts)
        open_nodes = np.isfinite(most)
        assert mean[choices.chosen[0]][open_nodes] == pytest.approx(most[open_nodes])
        assert allowed[choices.chosen[0]].all()


def test_much_caution_is_the_plain_policy(models: Mapping[str, RSPMN]) -> None:
    for model in models.values():
        plain, cautious = model.policy(8), model.policy(8, caution=1e6)
        for t in (0, 3, 7):
            decision = model.schema.decisions[0]
            assert cautious.table(t)[decision] == plain.table(t)[decision]


@pytest.mark.soak
def test_short_logs_give_better_policies() -> None:
    """Random MDPs from 10 episodes: better on average, and at worst."""
    plain, cautious = [], []
    for seed in range(10):
        world = random_mdp(seed)
        model, _ = learn_rspmn(world.generate(10, 20, seed))
        plain.append(true_value(world, model.policy(20), 20))
        cautious.append(true_value(world, model.policy(20, caution=0.1), 20))
    assert np.mean(cautious) > np.mean(plain)
    assert min(cautious) > min(plain)


def test_all_questions_have_an_answer(models: Mapping[str, RSPMN]) -> None:
    model = models["lake"]
    policy = model.policy(8, caution=0.1)
    answers = policy.action_values({"cell": 4}, 2)
    best = max(answers, key=lambda a: -math.inf if math.isnan(a.utility) else a.utility)
    assert best.best
    assert policy.act({"cell": 4}, 2) == best.value
    assert policy.act_many({"cell": [4]}, 2).tolist() == [best.value]
    assert policy.value({"cell": 4}, 2) == pytest.approx(best.utility)
    assert policy.how_sure({"cell": 4}, 2).recommended is not None
    assert math.isfinite(policy.honest_value(draws=20).point)
    assert policy.act({"cell": 4}, 2) == model.policy(8, caution=0.1).act({"cell": 4}, 2)


def test_constraints_hold(models: Mapping[str, RSPMN]) -> None:
    model = models["lake"]
    policy = model.policy(8, caution=0.1, forbid=["left when cell in (0, 4)", "up"])
    for t in (0, 4, 7):
        table = policy.table(t)
        assert "up" not in table["action"]
        made = policy.act_many({"cell": [0, 4, 8]}, t).tolist()
        assert "left" not in made[:2]
        assert "up" not in made


def test_what_is_not_known_is_not_free() -> None:
    """Where each step costs, a node of which nothing is known must not be worth 0."""
    model, _ = learn_rspmn(DOMAINS["Elevators"]().generate(100, 10, 1))
    plain, cautious = model.policy(10), model.policy(10, caution=0.2)
    assert float(cautious.value()) < float(plain.value()) + 1


def test_without_a_horizon(models: Mapping[str, RSPMN]) -> None:
    forever = models["random"].policy(discount=0.5, caution=0.1)
    long = models["random"].policy(40, discount=0.5, caution=0.1)
    assert forever.table()["a"] == long.table()["a"]
    assert forever.table()["value"] == pytest.approx(long.table()["value"], abs=1e-4)


def test_odd_questions_are_refused(models: Mapping[str, RSPMN]) -> None:
    for caution in (-1.0, math.nan, math.inf, True):
        with pytest.raises(EvidenceError, match="caution: expected a number of 0 or more"):
            models["lake"].policy(8, caution=caution)
    with pytest.raises(EvidenceError, match="caution: expected a model with counts"):
        example_model().policy(2, caution=0.1)
