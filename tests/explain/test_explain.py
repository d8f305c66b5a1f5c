"""Explanations: against enumeration, against the policy itself, and in all the odd states."""

import json
import math
from typing import Any

import numpy as np
import pytest

from effort import seeds
from enumerated import ways, without_variance
from random_models import random_rspmn, random_setting
from rspmn.data.episodes import Episodes
from rspmn.data.windows import Windows
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.errors import DataError
from rspmn.explain import Explanation
from rspmn.infer.policy import Policy
from rspmn.learn import learn_rspmn, learn_spmn
from rspmn.schema import Schema
from small_models import chain
from soft_models import soft_model, soft_states


@pytest.fixture(scope="module")
def lake_log() -> Episodes:
    return frozen_lake().generate(800, 30, 0)


@pytest.fixture(scope="module")
def lake(lake_log: Episodes) -> Policy:
    return learn_rspmn(lake_log)[0].policy(10)


@pytest.mark.parametrize("seed", seeds(3, 200))
def test_now_and_next_are_the_enumerated_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    setting = random_setting(rng, decisions=1 + seed % 2)
    model = without_variance(random_rspmn(rng, setting, 3, told_apart=True))
    policy = model.policy(3, 0.9)
    planned, after = policy.planned, policy.planned.after(1)
    for node, value in enumerate(("p", "q", "r")):
        found = policy.explain({"s": value}, 1)
        first = planned.first(node)
        assert first is not None
        for action in found.actions:
            if math.isnan(action.utility):
                continue
            taken = list(model.template.nodes[first].values).index(action.value)  # type: ignore[union-attr]
            child = model.template.nodes[first].children[taken]
            all_ways = ways(model.template, child, lambda i: planned.best_branch(i, after) or 0)
            assert action.now == pytest.approx(sum(p * r for p, r, _ in all_ways))
            assert action.now + action.later == pytest.approx(action.utility)
            for following in action.next:
                expected = sum(p for p, _, to in all_ways if to == following.node)
                assert following.probability == pytest.approx(expected)
        assert found.decided == _decided(policy, {"s": value}, 1)


def _decided(policy: Policy, state: dict[str, Any], t: int = 0) -> dict[str, Any]:
    made = policy.act(state, t)
    return made if isinstance(made, dict) else {policy.model.schema.decisions[0]: made}


@pytest.mark.parametrize("seed", seeds(3, 100))
def test_the_smallest_change_of_a_listed_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_rspmn(rng, random_setting(rng, 1), 3, told_apart=True)
    policy = model.policy(3)
    acts = {value: policy.act({"s": value}) for value in "pqr"}
    for value, act in acts.items():
        found = policy.explain({"s": value})
        others = [v for v in "pqr" if acts[v] != act]
        assert [c.after for c in found.changes] == others[:1]
        assert found.influences[0].decides == bool(others)
        assert found.influences[0].moves


@pytest.mark.parametrize("seed", seeds(4, 100))
def test_the_smallest_change_of_a_number(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = soft_model(rng, 4, 2, soft=seed % 2 == 0)
    policy = model.policy(5, 0.9)
    for state in soft_states(rng, model, 2):
        found = policy.explain(state)
        assert found.seen == bool(policy.nodes(state).any())
        made_here = found.decided or {}
        for change in found.changes if made_here else ():
            there = {**state, change.variable: change.after}
            assert _decided(policy, there) == change.decided != found.decided
            assert isinstance(change.before, float)
            assert isinstance(change.after, float)
            if change.distance < 1e-4:
                continue  # the state is on a border
            # Nothing changes before it, as far as 60 numbers on the way can tell.
            way = np.linspace(change.before, change.after, 61)[:-1]
            rows = {name: np.full(60, value) for name, value in state.items()}
            made = policy.act_many({**rows, change.variable: way}, otherwise=-1)
            assert set(made.tolist()) <= {-1, *made_here.values()}


def test_a_step_of_a_learned_model(lake: Policy, lake_log: Episodes) -> None:
    found = lake.explain({"cell": 14}, 2, log=lake_log)
    best = found.actions[0]
    assert found.decided == {"action": best.value}
    assert best.low <= best.utility <= best.high
    assert best.best > 0.5
    assert best.steps > 10
    assert found.margin == pytest.approx(best.utility - found.actions[1].utility)
    assert found.steps_left == 8
    assert found.places[0].text == "cell=14"
    assert {n.text for n in best.next} >= {"the episode ends"}
    assert all(step.state == {"cell": 14} and step.distance == 0 for step in found.similar)
    assert found.similar[0].count >= found.similar[-1].count
    assert "the episode ended" in {step.followed for step in found.similar}
    windows = Windows.from_episodes(lake_log)
    assert lake.explain({"cell": 14}, 2, log=windows).similar == found.similar
    text = str(found)
    for part in (
        "cell=14, 8 steps to go",
        "decision: action=",
        "leads to",
        "smallest change that matters: cell=",
        " × ",
    ):
        assert part in text
    facts = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert facts["decided"] == found.decided
    assert facts["influences"][0]["decides"] is True


def test_a_state_that_was_never_seen(lake: Policy) -> None:
    found = lake.explain({"cell": 99})
    assert found.decided is None
    assert not found.seen
    assert math.isnan(found.margin)
    assert "was never logged" in found.notes[0]
    assert found.smallest_change is not None  # to a state that is known
    assert "decision: none" in str(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_start_and_partial_states(lake: Policy) -> None:
    found = lake.explain()
    assert "state: the start" in str(found)
    assert found.averaged_over == ("cell",)
    rng = np.random.default_rng(0)
    model = soft_model(rng, 3, 2, marks=True)
    some = model.policy(4).explain({"x0": 1.2})
    assert some.averaged_over == ("x1",)
    assert sum(place.probability for place in some.places) == pytest.approx(1)
    assert [i.variable for i in some.influences] == ["x0"]
    assert all(math.isnan(action.low) for action in some.actions)


def test_later_decisions_of_a_step() -> None:
    rng = np.random.default_rng(5)
    model = random_rspmn(rng, random_setting(rng, 2), 3, told_apart=True)
    policy = model.policy(3)
    first = policy.explain({"s": "p"})
    assert first.decision == "D1"
    second = policy.explain({"s": "p", "D1": 0})
    assert second.decision == "D2"
    assert second.decided == policy.act({"s": "p", "D1": 0})
    assert [i.variable for i in second.influences] == ["s"]


def test_a_single_decision_problem() -> None:
    rng = np.random.default_rng(0)
    x, a = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    table = {"x": x, "a": np.where(a, "one", "zero"), "u": np.where(x == a, 1.0, 0.0)}
    model, _ = learn_spmn(table, Schema([["x"], ["a"]], ["a"], "u"))
    found = model.policy().explain({"x": 1})
    assert found.decided == {"a": "one"}
    assert found.actions[0].now == pytest.approx(found.actions[0].utility)
    assert found.smallest_change is not None
    assert (found.smallest_change.after, found.smallest_change.decided) == (0, {"a": "zero"})


def test_ties_are_named() -> None:
    model = chain([{"l": (1.0, {0: 1.0}), "r": (1.0, {0: 1.0})}])
    found = model.policy(2).explain({"x": 0})
    assert found.ties == ("r",)
    assert "as good: r" in str(found)


def test_a_picture(lake: Policy) -> None:
    found = lake.explain({"cell": 14})
    axes = found.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        a.value for a in found.actions
    ]
    assert "cell=14" in axes.get_title(loc="left")
    assert found.plot(axes) is axes
    assert b"<svg" in found.picture("svg")
    assert lake.returns().plot().get_xlabel() == "return over 10 steps"


def test_what_is_refused(lake: Policy) -> None:
    with pytest.raises(DataError, match="expected Windows or Episodes, found str"):
        lake.explain({"cell": 14}, log="log.csv")
    assert isinstance(lake.explain({"cell": 14}), Explanation)
