"""The compiled queries equal the plain ones, on random sound models."""

import math

import numpy as np
import pytest

from effort import seeds
from plain_queries import evidence_of, settled
from random_models import random_rspmn, random_setting, simplex
from rspmn import RSPMN, NetworkBuilder, Schema
from rspmn.circuit import Categorical, IntegerHistogram, Leaf, Network, PiecewiseLinear
from rspmn.end_nodes import marked_root, unknown_root, weighted_top
from rspmn.infer.actions import action_values, best_among
from rspmn.infer.bellman import Future, update
from rspmn.infer.compiled.layers import compile_likelihood
from rspmn.infer.compiled.leaf_tables import Distinct
from rspmn.infer.compiled.state_index import StateIndex
from rspmn.infer.likelihood import episode_log_likelihood, node_log_likelihoods
from rspmn.infer.policy import Policy
from rspmn.values import UNKNOWN, Value

SEEDS = seeds(4, 200)
BITS = (0, 1)


def model_of(seed: int) -> tuple[RSPMN, np.random.Generator]:
    rng = np.random.default_rng(seed)
    setting = random_setting(rng, decisions=1 + seed % 3)
    return random_rspmn(rng, setting, 3, told_apart=seed % 2 == 0, end=seed % 5 == 0), rng


def with_edge(seed: int) -> RSPMN:
    """Return a random model in which some decisions lead to UNKNOWN and one node is a frontier."""
    rng = np.random.default_rng(seed)
    schema = Schema([["s"], ["D"]], ["D"], "u")
    b = NetworkBuilder()
    count, unknown = 4, 5
    roots = []
    for s in range(count):
        branches = {}
        for value in range(3):
            lost = rng.random() < 0.4 or s == 3
            to = [unknown] if lost else rng.permutation(count + 1)[:2].tolist()
            leads = b.sum([b.latent(i) for i in to], simplex(rng, len(to)))
            branches[value] = b.product([b.utility("u", float(rng.normal())), leads])
        state = b.leaf("s", Categorical.certain(s))
        roots.append(b.product([state, b.max("D", branches)]))
    state = b.leaf("s", Categorical.certain(count))
    roots.append(marked_root(b, schema, [state], UNKNOWN, count))
    roots.append(unknown_root(b, schema, unknown))
    visits = (5.0, 4.0, 3.0, 2.0, 1.0, 0.0)
    return RSPMN(schema, weighted_top([1.0] + [0.0] * 5), b.build(*roots), visits)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("edge", [False, True])
def test_bellman_updates(seed: int, edge: bool) -> None:
    model = with_edge(seed) if edge else model_of(seed)[0]
    future = Future.nothing(model)
    found, planned = model.bellman.values(6, 0.9), settled(model, 6, 0.9)
    for steps in range(1, 7):
        future = update(model, future, 0.9)
        plain = [root.utility for root in future.roots]
        assert found[steps] == pytest.approx(plain, abs=1e-12)
        assert planned[0][steps] == pytest.approx(plain, abs=1e-12)
        assert planned[1][steps] == pytest.approx([r.delay for r in future.roots], abs=1e-12)
        assert planned[2][steps] == pytest.approx([r.supported for r in future.roots], abs=1e-12)


def test_the_frontier_by_hand() -> None:
    """Node 3 knows only what is cut, node 4 nothing: both are worth what the worst of 0 to 2 is."""
    model = with_edge(3)
    one, two = model.values(1), model.values(2)
    best = {s: max(a.utility for a in model.action_values({"s": s}, 1)) for s in range(4)}
    assert one[:4] == pytest.approx([best[s] for s in range(4)])  # the last step counts as it is
    assert one[4] == min(one[:4])
    assert two[4] == two[3] == min(two[:3])
    assert math.isnan(two[5])
    # as a successor; who asks about the state itself is told that nothing is known
    assert math.isnan(model.meu({"s": 4}, 2))
    assert model.meu({"s": 4}, 2).supported == 0
    assert all(a.supported == 0 and math.isnan(a.utility) for a in model.action_values({"s": 3}, 2))
    assert all(a.supported == 1 for a in model.action_values({"s": 3}, 1))


@pytest.mark.parametrize("seed", SEEDS)
def test_likelihood_of_rows(seed: int) -> None:
    model, rng = model_of(seed)
    setting = {
        name: [v for n in model.template.nodes for v in _values(n, name)]
        for name in model.schema.variables
        if name != model.schema.utility
    }
    rows = [
        {
            name: rng.choice(np.array([*dict.fromkeys(v), None], object))
            for name, v in setting.items()
        }
        for _ in range(20)
    ]
    columns = {}
    for name in setting:
        values = [row[name] for row in rows]
        named = [v for v in dict.fromkeys(values) if v is not None]
        columns[name] = Distinct(
            named, np.array([-1 if v is None else named.index(v) for v in values])
        )
    found = compile_likelihood(model.template)(columns, len(rows))
    for k, row in enumerate(rows):
        known = {name: value for name, value in row.items() if value is not None}
        plain = node_log_likelihoods(model.template, known)
        assert found[:, k] == pytest.approx([plain[r] for r in model.template.roots], abs=1e-12)


def _values(node: object, name: str) -> tuple[object, ...]:
    if isinstance(node, Leaf) and node.variable == name:
        assert isinstance(node.distribution, Categorical)
        return node.distribution.values
    return getattr(node, "values", ()) if getattr(node, "decision", None) == name else ()


@pytest.mark.parametrize("seed", SEEDS)
def test_likelihood_of_episodes(seed: int) -> None:
    model, rng = model_of(seed)
    log = model.sample(15, 6, rng)
    plain = [episode_log_likelihood(model, evidence_of(log, e)) for e in range(len(log))]
    assert model.log_likelihood(log) == pytest.approx(plain, abs=1e-10)


def plain_future(model: RSPMN, policy: Policy) -> Future:
    """Return the future of the first step; without a horizon there is no plain way to it."""
    if policy.horizon is None:
        return policy._planned.future(0)
    future = Future.nothing(model)
    for _ in range(policy.horizon - 1):
        future = update(model, future, policy.discount)
    return future


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("horizon", [1, 4, None])
def test_policies_answer_as_the_network_does(seed: int, horizon: int | None) -> None:
    model, _ = model_of(seed)
    discount = 0.8 if horizon is None else 1.0
    policy = model.policy(horizon, discount)
    future = plain_future(model, policy).discounted(discount)
    first = model.schema.decisions[0]
    for state in ({"s": "p"}, {"s": "q"}, {"s": "r"}, {}):
        answers = action_values(model.from_anywhere, state, first, future)
        plain = {a.value: a for a in answers}
        found = {a.value: a for a in policy.action_values(state)}
        assert {v for v, a in found.items() if a.available} == {
            v for v, a in plain.items() if a.available
        }
        for value, answer in plain.items():
            assert found[value].utility == pytest.approx(answer.utility, abs=1e-9, nan_ok=True)
            assert found[value].available == pytest.approx(answer.available, abs=1e-9)
            assert (found[value].best, found[value].averaged_over) == (
                answer.best,
                answer.averaged_over,
            )
            if answer.available:
                assert found[value].steps == pytest.approx(answer.steps)
                assert found[value].delay == pytest.approx(answer.delay, abs=1e-9)
        made = policy.act(state)
        assert (made[first] if isinstance(made, dict) else made) == best_among(answers)[0].value
        assert policy.value(state) == pytest.approx(model.meu(state, horizon, discount), abs=1e-9)


def test_numbers_in_leaves() -> None:
    leaves = [
        Leaf("x", PiecewiseLinear.scaled((0.0, 1.0, 3.0), (0.0, 2.0, 1.0))),
        Leaf("x", IntegerHistogram((0, 1, 5), (0.25, 0.75))),
        Leaf("x", Categorical((2, 3.5), (0.5, 0.5))),
    ]
    numbers: list[Value] = [-1, 0, 0.5, 1, 2, 3, 3.5, 4, 5, "text"]
    column = {"x": Distinct(numbers, np.arange(len(numbers)))}
    for leaf in leaves:
        found = compile_likelihood(Network((leaf,), (0,)))(column, len(numbers))[0]
        plain = [leaf.distribution.log_prob(v) for v in numbers]
        assert found.tolist() == pytest.approx(plain, abs=1e-12)


def test_states_of_several_values_and_missing_ones() -> None:
    schema = Schema([["x", "y"], ["d"]], ["d"], "u")
    b = NetworkBuilder()
    roots = []
    for k in range(2):
        x = b.leaf("x", Categorical((0, 1), (0.9, 0.1) if k == 0 else (0.2, 0.8)))
        y = b.leaf("y", Categorical.certain(k))
        outcome = b.product([b.utility("u", float(k)), b.latent(k)])
        roots.append(b.product([x, y, b.max("d", {True: outcome})]))
    model = RSPMN(schema, weighted_top([0.5, 0.5]), b.build(*roots), (30.0, 10.0))
    index = StateIndex.of(model)
    # visits · likelihood: 30 · .9 and 10 · .2 for x = 0; y tells the two apart
    assert index.belief({"x": 0}).weights == pytest.approx([1, 2 / 27])
    assert index.belief({"x": 0, "y": 1}).nodes.tolist() == [1]
    assert index.belief({"y": 5}).nodes.tolist() == []
    policy = model.policy(1)
    assert policy.action_values({"x": 0})[0].utility == pytest.approx(2 / 29)
    assert policy.act_many({"x": [0, 1, 1], "y": [1, 0, None]}).tolist() == [True] * 3


@pytest.mark.parametrize("hidden", [False, True])
def test_decisions_with_something_unseen_between_them(hidden: bool) -> None:
    """D1 = 1 earns 1 more; below it a product, or a choice by chance, of decisions D2."""
    schema = Schema([["s"], ["D1"], ["D2"]], ["D1", "D2"], "u")
    b = NetworkBuilder()

    def second(first: int) -> int:
        if hidden:
            kinds = [
                b.max(
                    "D2", {v: b.product([b.utility("u", first + w * v), b.latent(0)]) for v in BITS}
                )
                for w in (1.0, -3.0)
            ]
            return b.sum(kinds, [0.5, 0.5])
        return b.product([b.utility("u", first), b.max("D2", {0: b.latent(0), 1: b.latent(0)})])

    d1 = b.max("D1", {first: second(first) for first in (0, 1)})
    root = b.product([b.leaf("s", Categorical.certain("x")), d1])
    model = RSPMN(schema, weighted_top([1.0]), b.build(root))
    assert model.policy(2).act({"s": "x"}) == {"D1": 1, "D2": 0}  # on average D2 = 1 loses 1
    assert model.policy(2).act_many({"s": ["x"]})["D2"].tolist() == [0]
