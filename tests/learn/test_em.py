"""EM over sequences: the likelihood never falls, and what windows gave is a fixed point of it."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from effort import seeds
from random_models import random_rspmn, random_setting
from rspmn import RSPMN, Episodes, Followed, NetworkBuilder, Schema, Windows
from rspmn.circuit import Categorical, Utility
from rspmn.data.windows import fair_endings
from rspmn.end_nodes import weighted_top
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.errors import DataError
from rspmn.learn import LearnConfig, em, learn_rspmn


@pytest.mark.parametrize("seed", seeds(2, 24))
def test_soft_em_never_lowers_the_likelihood(seed: int) -> None:
    """Hidden choices everywhere: the same state may be in any interface node."""
    rng = np.random.default_rng(seed)
    setting = random_setting(rng, decisions=1 + seed % 2)
    truth = random_rspmn(rng, setting, 3, told_apart=False, end=seed % 3 == 0)
    log = truth.sample(60, 5, rng)
    # an end in the very last step is not counted
    log = replace(log, endings=fair_endings(log.lengths, log.endings))
    learned, info = em(truth, log, passes=5, soft=True)
    assert info.impossible == 0
    assert all(b >= a - 1e-9 * abs(a) for a, b in pairwise(info.log_likelihoods))
    assert info.log_likelihoods[-1] > info.log_likelihoods[0]  # the truth is not the best fit
    assert info.log_likelihoods[-1] == pytest.approx(
        learned.log_likelihood(log, smoothed=False).sum(), rel=1e-9
    )


@pytest.mark.parametrize("soft", [False, True])
def test_what_windows_gave_is_a_fixed_point(soft: bool) -> None:
    log = frozen_lake().generate(500, 8, 0, "final")
    model, _ = learn_rspmn(log)
    again, info = em(model, log, passes=3, soft=soft)
    assert info.converged
    assert len(info.log_likelihoods) == 2
    assert again.values(50) == pytest.approx(model.values(50), abs=1e-12)
    assert again.visits == pytest.approx(model.visits)


def noisy_machine(works: float, breaks: float) -> RSPMN:
    """Two hidden conditions, told apart by a sensor that is right three times in four."""
    schema = Schema([["sensor"], ["run"]], ["run"], "u")
    b = NetworkBuilder()
    roots = []
    for right, stays in ((0, works), (1, breaks)):
        sensor = b.leaf("sensor", Categorical((right, 1 - right), (0.75, 0.25)))
        weights = [stays, 1 - stays] if right == 0 else [1 - stays, stays]
        leads = b.sum([b.latent(0), b.latent(1)], weights)
        outcome = b.product([b.utility("u", 1.0 - right), leads])
        roots.append(b.product([sensor, b.max("run", {True: outcome})]))
    return RSPMN(schema, weighted_top([0.5, 0.5]), b.build(*roots), (1.0, 1.0))


def test_soft_em_finds_hidden_dynamics() -> None:
    """The sensor alone says little; over time the dynamics show: they stay with .95 and .9."""
    log = noisy_machine(0.95, 0.9).sample(300, 30, rng=0)
    learned, info = em(noisy_machine(0.6, 0.6), log, passes=25, soft=True)
    assert all(b >= a - 1e-9 * abs(a) for a, b in pairwise(info.log_likelihoods))
    found = [node.weights for node in learned.template.nodes if len(node.children) == 2
             and hasattr(node, "weights")]  # fmt: skip
    # 9,000 steps, the condition known with an error of about a quarter: a few hundredths
    assert sorted(max(weights) for weights in found) == pytest.approx([0.9, 0.95], abs=0.03)


def test_hard_em_stops_when_the_assignment_does() -> None:
    log = noisy_machine(0.95, 0.9).sample(200, 30, rng=1)
    _, info = em(noisy_machine(0.8, 0.8), log, passes=30)
    assert info.converged
    assert len(info.log_likelihoods) < 30


def test_passes_are_part_of_learning_and_need_sequences() -> None:
    log = frozen_lake().generate(300, 8, 0, "final")
    model, info = learn_rspmn(log, LearnConfig(em_passes=2, soft_em=True))
    assert info.em is not None
    assert info.em.converged
    plain, _ = learn_rspmn(log, LearnConfig(successors="counts"))  # which passes end with
    assert model.values(20) == pytest.approx(plain.values(20), abs=1e-12)
    with pytest.raises(DataError, match="em_passes: expected Episodes"):
        learn_rspmn(Windows.from_episodes(log), LearnConfig(em_passes=2))
    with pytest.raises(DataError, match="1 or more passes"):
        em(model, log, passes=0)


def test_episodes_that_are_impossible_take_no_part() -> None:
    machine = noisy_machine(0.9, 0.9)
    log = machine.sample(5, 4, rng=0)
    odd = [dict(step) for step in log[0]]
    odd[1]["sensor"] = 7
    mixed = Episodes.from_steps(
        [log.steps(e) for e in range(5)] + [odd], machine.schema, [Followed.UNKNOWN] * 6
    )
    _, info = em(machine, mixed, passes=2, soft=True)
    assert info.impossible == 1
    assert np.isfinite(info.log_likelihoods).all()


@pytest.mark.parametrize("soft", [False, True])
def test_costs_are_counted_as_rewards_are(soft: bool) -> None:
    """Utilities that are lower by 7 give means that are."""
    machine = noisy_machine(0.9, 0.8)
    log = machine.sample(40, 10, rng=0)
    table = log.to_long()
    table["u"] = (np.asarray(table["u"], np.float64) - 7).tolist()
    lower = Episodes.from_long(table, machine.schema, ending="cut")
    one, other = (em(machine, each, passes=2, soft=soft)[0] for each in (log, lower))
    means = [[n.mean for n in m.template.nodes if isinstance(n, Utility)] for m in (one, other)]
    assert len(set(means[0])) > 1
    assert means[1] == pytest.approx([mean - 7 for mean in means[0]])
