"""Policies: what they answer, to whatever kind of state; what partial evidence means."""

from collections import namedtuple

import numpy as np
import pandas as pd
import pytest

from effort import seeds
from random_models import random_rspmn, random_setting
from rspmn.circuit import Categorical, NetworkBuilder
from rspmn.end_nodes import weighted_top
from rspmn.envs.paper_grid import paper_grid
from rspmn.errors import EvidenceError
from rspmn.infer.actions import ActionValue
from rspmn.infer.meu import ExpectedUtility
from rspmn.learn import learn_spmn
from rspmn.model import RSPMN
from rspmn.schema import Schema
from rspmn.spmn import SPMN
from small_models import chain

SCHEMA = Schema([["x", "y"], ["a"]], ["a"], "u")


def matching() -> RSPMN:
    """The action earns 1 if it is x; y does not matter. x = 0 was logged three times as often."""
    b = NetworkBuilder()
    roots = []
    for x in (0, 1):
        outcomes = {a: b.product([b.utility("u", float(a == x)), b.latent(x)]) for a in (0, 1)}
        state = [
            b.leaf("x", Categorical.certain(x)),
            b.leaf("y", Categorical(("l", "r"), (0.5, 0.5))),
        ]
        roots.append(b.product([*state, b.max("a", outcomes)]))
    return RSPMN(SCHEMA, weighted_top([0.5, 0.5]), b.build(*roots), (30.0, 10.0))


def test_a_value_is_the_meu_and_an_action_is_chosen_now() -> None:
    model = matching()
    policy = model.policy(1)
    # x will be observed before the decision: 1. Chosen now, 0 is right three times in four.
    assert policy.value({}) == model.meu({}, horizon=1) == 1.0
    zero, one = policy.action_values({})
    assert (zero.utility, one.utility) == pytest.approx((0.75, 0.25))
    assert zero.averaged_over == one.averaged_over == ("x", "y")
    assert policy.act({}) == 0
    # from the start both are as likely: the first
    assert policy.value() == model.meu(horizon=1) == 1.0
    assert [a.utility for a in policy.action_values()] == [0.5, 0.5]
    assert policy.act() == 0
    # y is not known, but does not matter
    assert policy.value({"x": 1}) == 1.0
    assert [a.averaged_over for a in policy.action_values({"x": 1})] == [("y",)] * 2
    assert [a.averaged_over for a in policy.action_values({"x": 1, "y": "l"})] == [()] * 2


def test_policies_of_a_model_find_states_by_the_same_index() -> None:
    """To make it takes longer than to plan: `RSPMN.act` makes a policy for each question."""
    model = paper_grid()
    assert model.policy(3).index is model.policy(4, 0.9).index


@pytest.mark.parametrize("seed", seeds(8, 200))
def test_values_are_those_of_the_model(seed: int) -> None:
    """In any state, known or partial or impossible, with decisions made, at any time."""
    rng = np.random.default_rng(seed)
    setting = random_setting(rng, decisions=1 + seed % 2)
    model = random_rspmn(rng, setting, 3, told_apart=seed % 3 > 0, end=seed % 5 == 0)
    policy = model.policy(4, 0.9)
    first = model.schema.decisions[0]
    for state in (None, {}, {"s": "p"}, {"s": "q"}, {"s": "q", first: 0}, {first: 1}):
        for t in (0, 3):
            promised = model.meu(state, 4 - t, 0.9)
            assert policy.value(state, t) == pytest.approx(promised, abs=1e-9, nan_ok=True)
            assert policy.value(state, t).supported == promised.supported
    never = policy.value({"s": "never"})
    assert np.isnan(never)
    assert not never.supported


def test_states_of_every_kind() -> None:
    policy = matching().policy(1)
    record = np.array([(1, "r")], dtype=[("x", int), ("y", "U1")])[0]
    named = namedtuple("named", ["y", "x"])
    states = [
        {"x": 1, "y": "r"},
        pd.Series({"y": "r", "x": 1}),
        pd.DataFrame({"x": [0, 1], "y": ["l", "r"]}).iloc[1],
        pd.DataFrame({"episode": [7, 7], "time": [0, 1], "x": [0, 1], "y": ["l", "r"]}).iloc[1],
        (1, "r"),
        [1, "r"],
        np.array([1, "r"], dtype=object),
        record,
        named("r", 1),
    ]
    model = matching()
    for state in states:
        assert policy.act(state) == 1, state
        assert policy.value(state) == model.meu(state, 1) == 1.0
        assert [a.utility for a in policy.action_values(state)] == [0.0, 1.0]
        assert [a.utility for a in model.action_values(state, 1)] == [0.0, 1.0]
    assert policy.act((None, "r")) == 0
    assert policy.act(pd.Series({"x": np.nan, "y": "r"})) == 0
    for wrong, message in [
        ((1,), r"expected a row of 2 values, for \['x', 'y'\], found 1 values"),
        ("xy", "expected values by variable, .* or a row of values, found str"),
        (7, "or a row of values, found int"),
        (np.zeros((1, 2)), "or a row of values, found ndarray"),
        (pd.Series({"z": 1}), "unknown variable 'z'"),
    ]:
        with pytest.raises(EvidenceError, match=message):
            policy.act(wrong)


def test_a_row_may_hold_decisions_already_made() -> None:
    schema = Schema([["x"], ["d"], ["y"], ["e"]], ["d", "e"], "u")
    b = NetworkBuilder()
    last = {
        y: b.max("e", {e: b.product([b.utility("u", float(e == y)), b.latent(0)]) for e in (0, 1)})
        for y in (0, 1)
    }
    seen = b.sum(
        [b.product([b.leaf("y", Categorical.certain(y)), last[y]]) for y in (0, 1)], [0.5, 0.5]
    )
    root = b.product([b.leaf("x", Categorical.certain(0)), b.max("d", {"on": seen})])
    model = RSPMN(schema, weighted_top([1.0]), b.build(root))
    policy = model.policy(1)
    assert policy.act([0]) == {"d": "on"}
    assert policy.act([0, "on", 1]) == {"e": 1}
    assert policy.value([0, "on", 1]) == 1.0
    assert model.meu((0, "on", None), 1) == 1.0


def table(rng: np.random.Generator, rows: int = 3000) -> dict[str, list[object]]:
    x, y = rng.integers(0, 3, rows), rng.integers(0, 2, rows)
    a = rng.integers(0, 3, rows)
    return {
        "x": x.tolist(),
        "y": ["lr"[k] for k in y],
        "a": a.tolist(),
        "u": ((a == x) + 0.1 * y).tolist(),
    }


def test_single_shot_models_have_policies() -> None:
    model, _ = learn_spmn(table(np.random.default_rng(0)), SCHEMA)
    policy = model.policy()
    for x in range(3):
        for y in "lr":
            state = {"x": x, "y": y}
            assert policy.act(state) == model.best_decisions(state)[0].value == x
            assert policy.value(state) == pytest.approx(model.meu(state))
            assert isinstance(policy.value(state), ExpectedUtility)
            mine = sorted(policy.action_values(state), key=lambda a: str(a.value))
            plain = sorted(model.action_values((x, y)), key=lambda a: str(a.value))
            for one, other in zip(mine, plain, strict=True):
                assert isinstance(one, ActionValue)
                assert (one.value, one.best, one.steps) == (other.value, other.best, other.steps)
                assert one.utility == pytest.approx(other.utility)
    assert policy.value() == pytest.approx(model.meu())
    assert policy.act_many({"x": [2, 0], "y": ["l", "r"]}).tolist() == [2, 0]
    with pytest.raises(EvidenceError, match="no decision is known in the state x=7"):
        policy.act({"x": 7, "y": "l"})
    assert model.policy(otherwise=9).act({"x": 7, "y": "l"}) == 9
    unseen = {"x": [7], "y": ["l"]}
    assert model.policy(otherwise=9).act_many(unseen).tolist() == [9]
    assert model.policy(otherwise=9).act_many(unseen, otherwise=8).tolist() == [8]
    (decision,) = model.schema.decisions
    assert policy.act_many(unseen, otherwise={decision: 8}).tolist() == [8]
    with pytest.raises(EvidenceError, match="t: expected 0 to 0, found 1"):
        policy.act({"x": 0, "y": "l"}, t=1)


def test_one_value_is_no_answer_for_two_decisions() -> None:
    b = NetworkBuilder()
    both = b.max("a", {0: b.max("b", {0: b.utility("u", 1.0)})})
    network = b.build(b.product([b.leaf("x", Categorical.certain(0)), both]))
    policy = SPMN(Schema([["x"], ["a"], ["b"]], ["a", "b"], "u"), network).policy()
    answers = policy.act_many({"x": [0, 7]}, otherwise={"a": 2, "b": 3})
    assert {name: of.tolist() for name, of in answers.items()} == {"a": [0, 2], "b": [0, 3]}
    with pytest.raises(EvidenceError, match="otherwise: expected values for .*, found 2"):
        policy.act_many({"x": [7]}, otherwise=2)


def test_what_to_do_otherwise_is_said_for_decisions_only() -> None:
    b = NetworkBuilder()
    both = b.max("a", {0: b.max("b", {0: b.utility("u", 1.0)})})
    network = b.build(b.product([b.leaf("x", Categorical.certain(0)), both]))
    model = SPMN(Schema([["x"], ["a"], ["b"]], ["a", "b"], "u"), network)
    said = r"otherwise: expected values for \['a', 'b'\], found {'"
    for wrong in ({"nonsense": 7}, {"a": 1}, {"a": 1, "b": 2, "c": 3}):
        with pytest.raises(EvidenceError, match=said):
            model.policy(otherwise=wrong)
        with pytest.raises(EvidenceError, match=said):
            model.policy().act_many({"x": [7]}, otherwise=wrong)
    b = NetworkBuilder()
    decided = b.max("a", {0: b.utility("u", 1.0)})
    network = b.build(b.product([b.leaf("x", Categorical.certain(0)), decided]))
    single = SPMN(Schema([["x"], ["a"]], ["a"], "u"), network)
    with pytest.raises(EvidenceError, match="otherwise: expected one value, found {'nonsense': 7}"):
        single.policy().act_many({"x": [7]}, otherwise={"nonsense": 7})
    assert single.policy(otherwise={"a": 9}).act({"x": 7}) == 9
    assert single.policy(otherwise={"a": 9}).act_many({"x": [0, 7]}).tolist() == [0, 9]


def test_a_single_shot_model_is_a_recurrent_one_of_one_step() -> None:
    b = NetworkBuilder()
    left = b.product([b.leaf("x", Categorical.certain(0)), b.max("a", {0: b.utility("u", 1.0)})])
    right = b.product([b.leaf("x", Categorical.certain(1)), b.max("a", {0: b.utility("u", 3.0)})])
    inner = b.sum([left, right], [0.5, 0.5])
    network = b.build(b.sum([inner, right], [0.5, 0.5]))  # 1 in 4, 3 in 4
    model = SPMN(Schema([["x"], ["a"]], ["a"], "u"), network, rows=8.0)
    recurrent = model.as_recurrent
    assert recurrent.visits == (2.0, 6.0, 0.0)
    assert recurrent.meu(horizon=1) == recurrent.meu(horizon=5) == model.meu() == 2.5


def test_answers_are_copies() -> None:
    """What `choices` and `act` return may be changed without harm."""
    policy = chain([{"l": (0.0, {1: 1.0}), "r": (1.0, {1: 1.0})}], end=True).policy(2)
    policy.choices(0)[0]["a"] = "l"
    assert policy.act({"x": 0}) == "r"


def test_utility_beside_a_decision_counts() -> None:
    """Each step earns 3 whatever is decided; the utility is below a product of its own."""
    schema = Schema([["x"], ["a"], ["y"]], ["a"], "u")
    b = NetworkBuilder()
    decide = b.max("a", {a: b.leaf("y", Categorical.certain(a)) for a in (0, 1)})
    earned = b.product([b.utility("u", 3.0), b.latent(0)])
    root = b.product([b.leaf("x", Categorical.certain(0)), earned, decide])
    model = RSPMN(schema, weighted_top([1.0]), b.build(root))
    policy = model.policy(2)
    assert policy.value({"x": 0}) == model.meu({"x": 0}, 2) == 6.0
    assert [a.utility for a in policy.action_values({"x": 0})] == [6.0, 6.0]
    beside = b.product([b.leaf("x", Categorical.certain(0)), b.utility("u", 3.0), decide])
    single = SPMN(schema, b.build(beside)).policy()
    assert single.value({"x": 0}) == 3.0
    assert [a.utility for a in single.action_values((0,))] == [3.0, 3.0]
