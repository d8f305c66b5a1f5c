"""MPE against the maximum of an enumerated table."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle import tabulate
from random_models import Domains, random_leaf, random_rspmn, random_setting, random_spn, simplex
from rspmn.circuit import Categorical, Network, NetworkBuilder
from rspmn.circuit.rewrite import at_step
from rspmn.infer import log_likelihood, mpe
from rspmn.infer.likelihood import episode_log_likelihood
from rspmn.infer.mpe import episode_mpe

seeds = st.integers(0, 2**32 - 1)


def selective_spn(rng: np.random.Generator, domains: Domains) -> Network:
    """Return an SPN whose sums are told apart by a variable, so that MPE is exact."""
    b = NetworkBuilder()

    def grow(names: list[str]) -> int:
        name, rest = names[0], names[1:]
        if not rest:
            return random_leaf(rng, b, name, domains[name])
        if rng.random() < 0.4:
            return b.product([random_leaf(rng, b, name, domains[name]), grow(rest)])
        parts = [
            b.product([b.leaf(name, Categorical.certain(value)), grow(rest)])
            for value in domains[name]
        ]
        return b.sum(parts, simplex(rng, len(parts)))

    return b.build(grow(list(domains)))


@given(seeds, st.integers(1, 5), st.floats(0, 0.7))
def test_exact_where_sums_are_told_apart(seed: int, variables: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    domains: Domains = {f"x{k}": (0, 1, 2)[: int(rng.integers(2, 4))] for k in range(variables)}
    network = selective_spn(rng, domains)
    p, _ = tabulate(network, domains)
    evidence = {n: v[int(rng.integers(len(v)))] for n, v in domains.items() if rng.random() < share}
    index = tuple(domains[n].index(evidence[n]) if n in evidence else slice(None) for n in domains)
    completed = mpe(network, evidence)
    assert completed is not None
    assert {n: completed[n] for n in evidence} == evidence
    assert math.exp(log_likelihood(network, completed)) == pytest.approx(p[index].max(), rel=1e-9)


@given(seeds)
def test_a_completion_everywhere(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = random_spn(rng, {f"x{k}": (0, 1, 2) for k in range(4)})
    completed = mpe(network, {"x1": 2})
    assert completed is not None
    assert set(completed) == {"x0", "x1", "x2", "x3"}
    assert completed["x1"] == 2
    assert log_likelihood(network, completed) > -math.inf


@given(seeds, st.integers(1, 4))
def test_recurrent_equals_unfolded(seed: int, steps: int) -> None:
    rng = np.random.default_rng(seed)
    setting = random_setting(rng, 1)
    model = random_rspmn(rng, setting, 3, told_apart=True, end=bool(seed % 2))
    evidence: list[dict[str, object]] = [
        {"s": setting.domains["s"][int(rng.integers(3))]} if rng.random() < 0.5 else {}
        for _ in range(steps)
    ]
    completed = episode_mpe(model, evidence)
    flat = {at_step(n, t): v for t, step in enumerate(evidence) for n, v in step.items()}
    unfolded = mpe(model.unfold(steps), flat)
    if unfolded is None:
        assert completed is None
        return
    assert completed is not None
    again = {at_step(n, t): v for t, step in enumerate(completed) for n, v in step.items()}
    assert again == unfolded
    assert episode_log_likelihood(model, completed) > -math.inf


def test_a_decision_that_was_made_is_kept() -> None:
    b = NetworkBuilder()
    branches = {
        "sure": b.leaf("x", Categorical(("a", "b"), (0.9, 0.1))),
        "fair": b.leaf("x", Categorical(("a", "b"), (0.4, 0.6))),
    }
    network = b.build(b.max("d", branches))
    assert mpe(network, {"d": "fair"}) == {"d": "fair", "x": "b"}
    assert mpe(network, {}) == {"d": "sure", "x": "a"}  # .9 is the likeliest of all
    assert mpe(network, {"x": "b"}) == {"d": "fair", "x": "b"}
    assert mpe(network, {"d": "never"}) is None


def test_impossible_evidence_has_no_completion() -> None:
    rng = np.random.default_rng(0)
    assert mpe(random_spn(rng, {"x": (0, 1)}), {"x": 7}) is None
    model = random_rspmn(rng, random_setting(rng, 1), 2, told_apart=True)
    assert model.mpe([{"s": "never"}]) is None
