"""Recurrent = unfolded = brute-force sum-max-sum, for MEU and likelihood."""

import math

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from effort import share_of_examples
from oracle import sum_max_sum, tabulate
from plain_queries import evaluate_from_start
from random_models import (
    Domains,
    Setting,
    random_rspmn,
    random_setting,
    random_spn,
    step_domains,
)
from rspmn.circuit.rewrite import at_step
from rspmn.infer import log_likelihood, meu
from rspmn.infer.likelihood import episode_log_likelihood
from rspmn.model import RSPMN
from rspmn.values import END, Value

MOST_ASSIGNMENTS = 70_000
# Every value is a sum of fewer than 1e5 products of fewer than 100 rounded numbers below 1e3:
# 1e5 · 100 · 2⁻⁵³ · 1e3 < 2e-6 at worst; rounding errors being independent, far less.
CLOSE = 1e-8

seeds = st.integers(0, 2**32 - 1)
sizes = st.tuples(st.integers(1, 3), st.integers(1, 4))  # decisions per step, T


def unfolded_domains(model: RSPMN, domains: Domains, steps: int) -> Domains:
    """Return every variable of every step in order, x@0 first."""
    here = step_domains(model, domains)
    names = [n for n in model.schema.variables if n != model.schema.utility]
    return {at_step(n, t): here[n] for t in range(steps) for n in names}


def setting_that_fits(rng: np.random.Generator, decisions: int, steps: int, end: bool) -> Setting:
    """Return a setting with as many variables between the decisions as can be enumerated."""
    for variables in (3, 2, 1, 0):
        setting = random_setting(rng, decisions, variables, states=3 if decisions < 3 else 2)
        per_step = math.prod(len(values) + end for values in setting.domains.values())
        if per_step**steps <= MOST_ASSIGNMENTS:
            return setting
    return reject()


def draw_evidence(rng: np.random.Generator, domains: Domains, share: float) -> dict[str, Value]:
    return {
        name: values[int(rng.integers(len(values)))]
        for name, values in domains.items()
        if rng.random() < share
    }


def by_step(evidence: dict[str, Value], steps: int) -> list[dict[str, object]]:
    cut: list[dict[str, object]] = [{} for _ in range(steps)]
    for name, value in evidence.items():
        variable, _, step = name.rpartition("@")
        cut[int(step)][variable] = value
    return cut


@share_of_examples(0.7)
@given(seeds, sizes, st.integers(1, 3), st.booleans(), st.sampled_from([0.0, 0.2, 0.6]))
def test_three_ways_agree(
    seed: int, size: tuple[int, int], roots: int, end: bool, share: float
) -> None:
    rng = np.random.default_rng(seed)
    decisions, steps = size
    setting = setting_that_fits(rng, decisions, steps, end)
    roots = min(roots, len(setting.domains["s"]))
    model = random_rspmn(rng, setting, roots, told_apart=True, end=end)
    domains = unfolded_domains(model, setting.domains, steps)

    network = model.unfold(steps)
    table = tabulate(network, domains)
    decided = [at_step(d, t) for t in range(steps) for d in setting.schema.decisions]
    for evidence in ({}, draw_evidence(rng, domains, share)):
        p, u = sum_max_sum(table, domains, decided, evidence)
        recurrent = evaluate_from_start(model, by_step(evidence, steps), steps)
        unfolded = meu(network, evidence)
        assert math.exp(recurrent.log_likelihood) == pytest.approx(p, rel=CLOSE, abs=1e-12)
        assert unfolded.supported == (p > 0)
        assert float(unfolded) == pytest.approx(u, abs=CLOSE, nan_ok=True)
        assert recurrent.utility == pytest.approx(u, abs=CLOSE, nan_ok=True)
        # likelihood alone: decisions that are open are made for the largest likelihood
        p, _ = sum_max_sum(table, domains, decided, evidence, by_likelihood=True)
        for found in (
            log_likelihood(network, evidence),
            episode_log_likelihood(model, by_step(evidence, steps)),
        ):
            assert math.exp(found) == pytest.approx(p, rel=CLOSE, abs=1e-12)


@share_of_examples(0.5)
@given(seeds, sizes, st.booleans(), st.floats(0, 1))
def test_likelihood_three_ways(seed: int, size: tuple[int, int], end: bool, share: float) -> None:
    """Decisions given, states partly missing; hidden choices anywhere."""
    rng = np.random.default_rng(seed)
    decisions, steps = size
    setting = setting_that_fits(rng, decisions, steps, end)
    model = random_rspmn(rng, setting, 2, told_apart=False, end=end)
    domains = unfolded_domains(model, setting.domains, steps)

    network = model.unfold(steps)
    decided = {n: v for n, v in domains.items() if n.startswith("D")}
    evidence = draw_evidence(rng, domains, share) | draw_evidence(rng, decided, 1.0)
    p, _ = sum_max_sum(tabulate(network, domains), domains, list(decided), evidence)
    assert math.exp(log_likelihood(network, evidence)) == pytest.approx(p, abs=1e-12, rel=CLOSE)
    recurrent = episode_log_likelihood(model, by_step(evidence, steps))
    assert math.exp(recurrent) == pytest.approx(p, abs=1e-12, rel=CLOSE)


@share_of_examples(0.5)
@given(seeds, st.integers(1, 3), st.integers(1, 5), st.booleans())
def test_recurrent_equals_unfolded_with_hidden_choices(
    seed: int, decisions: int, steps: int, end: bool
) -> None:
    """Also where a sum above a decision hides its choice, and nothing can be enumerated."""
    rng = np.random.default_rng(seed)
    setting = random_setting(rng, decisions, most_variables=3, values=3)
    model = random_rspmn(rng, setting, 3, told_apart=False, end=end)
    domains = unfolded_domains(model, setting.domains, steps)
    network = model.unfold(steps)
    for evidence in ({}, draw_evidence(rng, domains, 0.3)):
        recurrent = evaluate_from_start(model, by_step(evidence, steps), steps)
        unfolded = meu(network, evidence)
        assert recurrent.utility == pytest.approx(float(unfolded), abs=CLOSE, nan_ok=True)
        assert math.exp(episode_log_likelihood(model, by_step(evidence, steps))) == pytest.approx(
            math.exp(log_likelihood(network, evidence)), rel=CLOSE, abs=1e-300
        )


@given(seeds, st.integers(1, 6))
def test_all_assignments_of_an_spn_sum_to_one(seed: int, variables: int) -> None:
    rng = np.random.default_rng(seed)
    domains: Domains = {f"x{k}": tuple(range(int(rng.integers(1, 4)))) for k in range(variables)}
    network = random_spn(rng, domains)
    p, _ = tabulate(network, domains)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assignment = draw_evidence(rng, domains, 1.0)
    index = tuple(domains[name].index(value) for name, value in assignment.items())
    assert math.exp(log_likelihood(network, assignment)) == pytest.approx(p[index], rel=1e-9)
    assert log_likelihood(network, {}) == pytest.approx(0, abs=1e-12)


def test_an_episode_that_ended_has_end_for_evidence() -> None:
    rng = np.random.default_rng(3)
    setting = random_setting(rng, 1)
    model = random_rspmn(rng, setting, 2, told_apart=True, end=True)
    names = [*setting.domains]
    over = dict.fromkeys(names, END)
    first = {"s": "p", "D1": 0}
    ended = episode_log_likelihood(model, [first, over])
    went_on = [episode_log_likelihood(model, [first, {"s": s}]) for s in setting.domains["s"]]
    total = math.exp(ended) + sum(map(math.exp, went_on))
    assert total == pytest.approx(math.exp(episode_log_likelihood(model, [first])), rel=1e-12)
    # once over, always over
    assert episode_log_likelihood(model, [first, over, over]) == pytest.approx(ended)
    assert episode_log_likelihood(model, [first, over, {"s": "p"}]) == -math.inf
