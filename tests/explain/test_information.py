"""Value of information, against enumeration with plain queries and a problem worked by hand."""

import math
from itertools import product

import numpy as np
import pytest

from effort import seeds
from rspmn.circuit import Categorical, NetworkBuilder
from rspmn.end_nodes import weighted_top
from rspmn.errors import EvidenceError
from rspmn.infer import action_values, best_among, log_likelihood, log_likelihoods
from rspmn.infer.policy import Policy
from rspmn.learn import learn_spmn
from rspmn.model import RSPMN
from rspmn.schema import Schema
from soft_models import soft_model

SCHEMA = Schema([["x", "y"], ["a"]], ["a"], "u")


def random_two(rng: np.random.Generator, mixed: bool) -> RSPMN:
    """Return a model of two variables of three values each; if mixed, roots overlap."""
    b = NetworkBuilder()
    pairs = list(product(range(3), repeat=2))

    def leaf(name: str, value: int) -> int:
        if not mixed:
            return b.leaf(name, Categorical.certain(value))
        return b.leaf(name, Categorical((0, 1, 2), tuple(rng.dirichlet(np.ones(3)).tolist())))

    def leads() -> int:
        to = b.sum([b.latent(i) for i in range(len(pairs))], rng.dirichlet(np.ones(9)).tolist())
        return b.product([b.utility("u", float(rng.normal())), to])

    roots = [
        b.product([leaf("x", x), leaf("y", y), b.max("a", {a: leads() for a in "lmr"})])
        for x, y in pairs
    ]
    starts = rng.dirichlet(np.ones(9)).tolist()
    visits = tuple(rng.integers(1, 30, 9).tolist())
    return RSPMN(SCHEMA, weighted_top(starts), b.build(*roots), visits)


def enumerated(policy: Policy, state: dict[str, object], name: str, t: int) -> tuple[float, float]:
    """Return what is expected if a variable is seen first, and if it is not."""
    network = policy.model.from_anywhere
    future = policy.planned.future(policy.planned.after(t)).discounted(policy.discount)
    total = log_likelihood(network, state)
    seen = 0.0
    for value in range(3):
        there = {**state, name: value}
        share = math.exp(log_likelihood(network, there) - total)
        best = best_among(action_values(network, there, future=future))
        seen += share * best[0].utility
    return seen, best_among(action_values(network, state, future=future))[0].utility


@pytest.mark.parametrize("seed", seeds(3, 200))
def test_it_is_the_enumerated_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    policy = random_two(rng, mixed=seed % 2 == 0).policy(3, 0.9)
    for state in ({"x": 1}, {}):
        found = policy.value_of_information(state, "y", 1)
        seen, unseen = enumerated(policy, dict(state), "y", 1)
        assert (found.seen, found.unseen) == pytest.approx((seen, unseen))
        assert found.gain >= -1e-12
        assert found.known == pytest.approx(1)
        assert sum(share for _, share, _ in found.values) == pytest.approx(1)
        made = {value: act for value, _, act in found.values}
        assert made == {v: policy.act({**state, "y": v}, 1) for v in range(3)}


@pytest.mark.parametrize("seed", seeds(2, 50))
def test_of_a_number(seed: int) -> None:
    """Against many numbers, one by one."""
    rng = np.random.default_rng(seed)
    model = soft_model(rng, 4, 2)
    policy, state = model.policy(3, 0.9), {"x0": 2.0}
    found = policy.value_of_information(state, "x1")
    numbers = np.linspace(0.3, 6, 500)
    table = {"x0": np.full(500, 2.0), "x1": numbers}
    shares = np.exp(log_likelihoods(model.from_anywhere, table))
    inside = shares > 0
    seen = [
        best_among(policy.action_values({**state, "x1": x}))[0].utility for x in numbers[inside]
    ]
    # Utilities jump where an action begins to be offered, somewhere in an interval.
    assert found.seen == pytest.approx(shares[inside] @ seen / shares.sum(), abs=0.05)
    unseen = best_among(policy.action_values(state))[0].utility
    assert found.unseen == pytest.approx(unseen, abs=0.05)
    assert found.gain == found.seen - found.unseen


def test_a_match_by_hand() -> None:
    """X is 0 or 1, as likely; to match it earns 1: unseen 1/2, seen 1, the gain 1/2."""
    table = {"x": [0, 0, 1, 1] * 50, "a": ["zero", "one"] * 100, "u": [1.0, 0.0, 0.0, 1.0] * 50}
    model, _ = learn_spmn(table, Schema([["x"], ["a"]], ["a"], "u"))
    found = model.policy().value_of_information({}, "x")
    assert (found.seen, found.unseen, found.gain) == pytest.approx((1, 0.5, 0.5))
    assert found.changes == pytest.approx(0.5)


def test_from_the_start() -> None:
    """At the start the model's start counts, not how often nodes were visited."""
    model = random_two(np.random.default_rng(0), mixed=False)
    policy = model.policy(2)
    found = policy.value_of_information(None, "x")
    assert found.unseen == pytest.approx(max(a.utility for a in policy.action_values()))
    at_start = np.array(model.starts).reshape(3, 3).sum(axis=1)
    assert [share for _, share, _ in found.values] == pytest.approx(at_start.tolist())


def test_what_is_refused() -> None:
    policy = random_two(np.random.default_rng(0), mixed=False).policy(2)
    with pytest.raises(EvidenceError, match="'x' is already given in the state"):
        policy.value_of_information({"x": 1}, "x")
    with pytest.raises(EvidenceError, match="'u' is not observed before 'a'"):
        policy.value_of_information({}, "u")
    with pytest.raises(EvidenceError, match="this state was never observed"):
        policy.value_of_information({"x": 9}, "y")
