"""States that may be in several interface nodes: array code against the network's answers."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from effort import seeds
from gaussian import Gaussian
from random_models import random_rspmn, random_setting, simplex
from rspmn.circuit import (
    Categorical,
    Distribution,
    IntegerHistogram,
    Leaf,
    NetworkBuilder,
    Node,
    PiecewiseLinear,
)
from rspmn.circuit.distributions import as_numbers
from rspmn.data.tables import as_table
from rspmn.end_nodes import weighted_top
from rspmn.infer import actions
from rspmn.infer.actions import ActionValue, best_among
from rspmn.infer.branches import Branches
from rspmn.infer.compiled import state_part
from rspmn.infer.compiled.state_index import StateIndex
from rspmn.infer.criterion import MEU, Criterion
from rspmn.infer.evaluation import evaluate
from rspmn.infer.policy import Policy
from rspmn.model import RSPMN
from rspmn.schema import Schema
from rspmn.spmn import SPMN
from rspmn.types import Array
from rspmn.values import as_value
from soft_models import soft_model, soft_states

State = Mapping[str, object]


class Cautious:
    """Takes off what is earned the less the better it was tried."""

    def scores(self, worth: Array, branches: Branches) -> Array:
        return worth - 1 / np.sqrt(branches.steps + 1)


class Never:
    """Forbids action 0 where x0 may be low."""

    def scores(self, worth: Array, branches: Branches) -> Array:
        low = (branches.values == 0) & (branches.decisions == "D0") & branches.may_be("x0", 1.6)
        return np.where(low, np.nan, worth)


def plain_answers(policy: Policy, known: State, t: int = 0) -> list[ActionValue]:
    """Return the answers of the definition, on the network of a step at any time."""
    after = policy.horizon - 1 - t if policy.horizon is not None else 0
    future = policy._planned.future(after).discounted(policy.discount)
    network = policy.model.from_anywhere
    asked = next(name for name in policy.model.schema.decisions if name not in known)
    return actions.action_values(network, known, asked, future, policy.criterion, 2 * policy.bound)


def plain_act(policy: Policy, known: State, t: int = 0) -> dict[str, object]:
    """Return the decisions made one after the other, each by the definition."""
    made: dict[str, object] = {}
    for decision in policy._planned.together:
        best = best_among(plain_answers(policy, {**known, **made}, t))
        if not best:
            return {}
        made[decision] = best[0].value
    return made


def assert_equal_answers(policy: Policy, state: State, t: int = 0) -> None:
    known = {name: value for name, value in state.items() if value is not None}
    found = {a.value: a for a in policy.action_values(state, t)}
    expected = {a.value: a for a in plain_answers(policy, known, t)}
    assert list(found) == list(expected)
    for value, one in found.items():
        other = expected[value]
        for name in ("utility", "available", "known", "supported", "delay", "steps"):
            numbers = getattr(one, name), getattr(other, name)
            assert numbers[0] == pytest.approx(numbers[1], rel=1e-9, abs=1e-9, nan_ok=True), name
        assert (one.best, one.averaged_over) == (other.best, other.averaged_over), state


def assert_equal_decisions(policy: Policy, states: list[dict[str, float | None]], t: int) -> None:
    names = list(states[0])
    table = {n: [math.nan if s[n] is None else s[n] for s in states] for n in names}
    nothing = dict.fromkeys(policy.model.schema.decisions, 99)
    several = len(nothing) > 1
    many = policy.act_many(table, t, otherwise=nothing if several else 99)
    for k, state in enumerate(states):
        known = {name: value for name, value in state.items() if value is not None}
        expected = plain_act(policy, known, t) or nothing
        found = {n: v[k] for n, v in many.items()} if several else {"D0": many[k]}
        assert {n: found[n] for n in expected} == expected, state


@pytest.mark.parametrize("seed", seeds(5, 12))
def test_soft_states_are_valued_as_the_network_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = soft_model(
        rng, 3, 2, cells=1 + seed % 3, decisions=1 + seed % 2, whole=seed % 4 > 1,
        marks=seed % 3 > 0, soft=seed % 5 > 0,
    )  # fmt: skip
    criteria: list[Criterion] = [MEU, MEU, Never(), Cautious()]
    criterion = criteria[seed % 4]
    horizon = None if seed % 6 == 5 else 3
    policy = model.policy(horizon, 0.9, criterion=criterion)
    states = soft_states(rng, model, 8, missing=0.2)
    for state in states[:3]:
        assert_equal_answers(policy, state, t=0)
        value, expected = policy.value(state), model.meu(state, horizon, 0.9, criterion=criterion)
        assert value == pytest.approx(expected, abs=1e-9, nan_ok=True)
        assert value.steps == expected.steps
        if horizon is not None:  # without one, ties may be broken in another way
            assert value.supported == pytest.approx(expected.supported, abs=1e-9)
    assert_equal_decisions(policy, states, t=0)
    if horizon is not None:
        assert_equal_answers(policy, states[4], t=2)
        assert_equal_decisions(policy, states[5:7], t=2)


@pytest.mark.parametrize("seed", seeds(5, 12))
def test_overlapping_states_are_valued_as_the_network_does(seed: int) -> None:
    """Discrete states, decisions below hidden choices among them: only the network knows those."""
    rng = np.random.default_rng(seed)
    setting = random_setting(rng, decisions=1 + seed % 2)
    model = random_rspmn(rng, setting, 3, told_apart=False, end=seed % 3 == 0)
    policy = model.policy(3)
    for state in ({}, {"s": "p"}, {"s": "q"}, {"s": "never"}):
        assert_equal_answers(policy, state)
        value = policy.value(state)
        assert value == pytest.approx(model.meu(state, 3), nan_ok=True)
        assert value.steps == model.meu(state, 3).steps
    many = policy.act_many({"s": ["q", None, "p", "q"]})
    for k, known in enumerate(({"s": "q"}, {}, {"s": "p"})):
        expected = plain_act(policy, known)
        found = {n: v[k] for n, v in many.items()} if isinstance(many, dict) else {"D1": many[k]}
        assert {n: found[n] for n in expected} == expected


def assert_equal_beliefs(model: RSPMN, states: Sequence[State]) -> None:
    """Compare with visits · likelihood, node by node; one state at a time, and all at once."""
    index = StateIndex.of(model)
    table = {name: np.array([s[name] for s in states], dtype=object) for name in index.names}
    routes = index.routes(as_table(table))
    many = np.zeros((len(routes.row), model.num_interfaces))
    certain = np.flatnonzero(routes.node >= 0)
    many[certain, routes.node[certain]] = 1.0
    for part, beliefs in routes.uncertain():
        which = np.repeat(part, np.diff(beliefs.starts))
        np.add.at(many, (which, beliefs.nodes), beliefs.weights)
    columns = {name: as_table(table).coded(name) for name in index.names}
    pairs = index.pairs(columns, len(states))
    assert (np.diff(pairs.row * model.num_interfaces + pairs.node) > 0).all()
    for k, state in enumerate(states):
        known = {name: as_value(v, name) for name, v in state.items() if v is not None}
        logs = evaluate(index.network, known)
        likelihood = np.array([math.exp(logs[root].log_likelihood) for root in index.network.roots])
        alone = np.zeros(len(likelihood))
        alone[pairs.node[pairs.row == k]] = np.exp(pairs.logs[pairs.row == k])
        assert alone == pytest.approx(likelihood * (index.prior > -math.inf), abs=1e-12), known
        expected = np.exp(index.prior) * likelihood
        expected /= expected.sum() or 1.0
        belief = index.belief(known)
        found = np.zeros(len(expected))
        found[belief.nodes] = belief.weights / (belief.weights.sum() or 1.0)
        assert found == pytest.approx(expected, abs=1e-12), known
        mine = many[routes.state[k]]
        assert mine / (mine.sum() or 1.0) == pytest.approx(expected, abs=1e-12), known


@pytest.fixture(params=[True, False])
def expanded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Expand mixtures into products, or do not, as if they were too many."""
    if not request.param:
        monkeypatch.setattr(state_part, "MOST_PRODUCTS", 0)


@pytest.mark.usefixtures("expanded")
def test_beliefs_near_soft_borders() -> None:
    rng = np.random.default_rng(3)
    model = soft_model(rng, 3, 3, cells=2, marks=True)
    assert_equal_beliefs(model, soft_states(rng, model, 30, missing=0.3))
    hard = soft_model(rng, 3, 2, soft=False)
    assert_equal_beliefs(hard, soft_states(rng, hard, 30, missing=0.3))


@pytest.mark.usefixtures("expanded")
def test_beliefs_of_leaves_of_all_families() -> None:
    leaves: dict[str, list[Distribution]] = {
        "x": [
            PiecewiseLinear.scaled((0.0, 1.0, 2.0, 3.0), (1.0, 0.0, 0.0, 1.0)),  # a hole inside
            PiecewiseLinear.scaled((0.5, 4.0), (0.0, 1.0)),
            Gaussian(1.0, 2.0),
            Gaussian(1.0, 0.5, low=0.0),
            Categorical((1, 2.5), (0.25, 0.75)),
            Categorical.certain("low"),
            Categorical((1, 2), (0.5, 0.25), other=0.25),
        ],
        "k": [
            IntegerHistogram((0, 2, 5), (0.5, 0.5)),
            Categorical((1, 7), (0.25, 0.75)),
            IntegerHistogram((-3, 1), (1.0,)),
        ],
        "c": [Categorical(("a", "b"), (0.5, 0.5)), Categorical.certain("a")],
    }
    rng = np.random.default_rng(0)
    b = NetworkBuilder()

    def part() -> int:
        chosen = [(n, of[int(rng.integers(len(of)))]) for n, of in leaves.items()]
        return b.product([b.leaf(name, leaf) for name, leaf in chosen])

    roots = []
    for _ in range(12):
        state = b.sum([part(), part()], simplex(rng, 2))
        roots.append(b.product([state, b.max("a", {0: b.latent(0)}), b.utility("u", 0.0)]))
    schema = Schema([["x", "k", "c"], ["a"]], ["a"], "u")
    model = RSPMN(schema, weighted_top([1.0] + [0.0] * 11), b.build(*roots), tuple(range(12)))
    numbers = [None, 0, 0.5, 1, 1.5, 2.5, 3, 4, -7, 9.5]
    for x in (numbers, [None, "low", "high"]):
        states: list[dict[str, object]] = [
            {"x": x[rng.integers(len(x))], "k": k, "c": c}
            for k in (None, -3, 0, 1, 2, 4, 5, 7, 99)
            for c in (None, "a", "b", "z")
        ]
        assert_equal_beliefs(model, states)


def test_states_of_one_box_need_no_density() -> None:
    """In boxes all rows of a cell are one state; near soft borders each row is one."""
    rng = np.random.default_rng(1)
    for soft, expected in ((False, 9), (True, 500)):
        model = soft_model(rng, 3, 2, soft=soft)
        knots = model.template.nodes
        inside = {
            name: rng.uniform(*_span(knots, name), 500) for name in model.schema.information_sets[0]
        }
        routes = StateIndex.of(model).routes(as_table(inside))
        assert len(np.unique(routes.state)) == expected
        assert (routes.node[routes.state] >= 0).all() != soft


def _span(nodes: Sequence[Node], name: str) -> tuple[float, float]:
    leaves = [n.distribution for n in nodes if isinstance(n, Leaf) and n.variable == name]
    ends = [end for leaf in leaves for end in as_numbers(leaf.support()).tolist()]
    return min(ends), max(ends)


def test_a_model_without_states() -> None:
    schema = Schema([["a"]], ["a"], "u")
    b = NetworkBuilder()
    roots = [
        b.max("a", {v: b.product([b.utility("u", w * v), b.latent(0)]) for v in (0, 1)})
        for w in (1.0, -3.0)
    ]
    model = RSPMN(schema, weighted_top([0.5, 0.5]), b.build(*roots), (1.0, 1.0))
    policy = model.policy(1)
    assert_equal_answers(policy, {})
    assert policy.act({}) == 0
    routes = StateIndex.of(model).routes(as_table({"other": np.zeros(3)}))
    assert routes.state.tolist() == [0, 0, 0]
    assert policy.act_many({"other": [0.0, 0.0]}).tolist() == [0, 0]


def test_one_action_is_chosen_in_a_state_that_two_nodes_share() -> None:
    """At x = 0 both parts are as likely: left is worth (10 - 8) / 2, right (-10 + 14) / 2.

    If the part were seen first, the best would be worth (10 + 14) / 2 = 12: so where x is missing,
    which is observed before the decision.
    """
    builder = NetworkBuilder()
    parts = []
    for left, right in ((10.0, -10.0), (-8.0, 14.0)):
        choice = {"left": builder.utility("u", left), "right": builder.utility("u", right)}
        state = builder.leaf("x", Categorical.certain(0))
        parts.append(builder.product([state, builder.max("a", choice)]))
    single = SPMN(Schema([["x"], ["a"]], ["a"], "u"), builder.build(builder.sum(parts, [0.5, 0.5])))
    model = single.as_recurrent
    policy = model.policy(1)
    values = {answer.value: answer.utility for answer in policy.action_values({"x": 0})}
    assert values == {"left": 1.0, "right": 2.0}
    assert policy.act({"x": 0}) == "right"
    assert policy.value({"x": 0}) == model.meu({"x": 0}, 1) == 2.0
    assert single.policy().value({"x": 0}) == single.meu({"x": 0}) == 2.0
    assert policy.value({}) == single.meu({}) == 12.0
