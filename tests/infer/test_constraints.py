"""Constraints at query time: forbidden actions, rules by state, minimum support, and none left."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from conformance import check_criterion
from conformance.criterion import example_model
from rspmn import RSPMN, Episodes, Followed, Schema, learn_rspmn
from rspmn.circuit import Categorical, NetworkBuilder
from rspmn.end_nodes import end_root, weighted_top
from rspmn.envs.domains import DOMAINS
from rspmn.envs.paper_grid import paper_grid
from rspmn.errors import EvidenceError
from rspmn.infer.constraints import Constraints, Forbidden, constraints
from rspmn.infer.criterion import MEU

WARD = Schema([["map"], ["drug"]], ["drug"], "u")


def ward() -> RSPMN:
    """Return one node with map 70 (probability .75) and 90: "press" earns 3, "rest" 1, for ever.

    Visits and steps: 40 in all, 30 of "press".
    """
    b = NetworkBuilder()
    press = b.product([b.utility("u", 3.0, 30.0), b.latent(0)])
    rest = b.product([b.utility("u", 1.0, 10.0), b.latent(0)])
    state = b.leaf("map", Categorical((70, 90), (0.75, 0.25)))
    root = b.product([state, b.max("drug", {"press": press, "rest": rest})])
    return RSPMN(WARD, weighted_top([1.0, 0.0]), b.build(root, end_root(b, WARD, 1)), (40.0, 0.0))


def test_rules_by_state_in_a_node_that_holds_both_sides() -> None:
    model = ward()
    policy = model.policy(3, forbid="press when map > 80")
    assert policy.act({"map": 70}) == "press"
    assert policy.act({"map": 90}) == "rest"
    assert policy.act_many({"map": [70, 90, 70]}).tolist() == ["press", "rest", "press"]
    assert [v.tolist() for v in policy.plan({"map": [90, 70]}, [0, 2])] == [["rest", "press"]] * 2
    # A step later the state is 70 in three of four cases: .75 · 3 + .25 · 1 = 2.5 per step.
    assert policy.value({"map": 70}) == pytest.approx(3 + 2.5 + 2.5)
    assert policy.value({"map": 90}) == pytest.approx(1 + 2.5 + 2.5)
    assert policy.value() == pytest.approx(7.5)
    answers = {a.value: a for a in policy.action_values({"map": 90})}
    assert answers["press"].forbidden == "press when map > 80"
    assert answers["press"].available == 0
    assert math.isnan(answers["press"].utility)
    assert answers["rest"].best
    assert answers["rest"].utility == pytest.approx(6)
    criterion = policy.criterion
    assert model.meu({"map": 90}, 3, criterion=criterion) == pytest.approx(6)
    assert model.values(2, criterion=criterion)[0] == pytest.approx(5)
    assert float(model.meu({"map": 70}, 3)) == 9
    # For ever: 2.5 / (1 - .5) a step later, half of it now.
    forever = model.policy(discount=0.5, forbid="press when map > 80")
    assert forever.value({"map": 90}) == pytest.approx(1 + 2.5)
    assert forever.table()["drug"] == ["press"]  # what three of four states do


def test_what_the_state_lacks_forbids() -> None:
    policy = ward().policy(2, forbid={"press": "map > 80"})
    assert policy.act({}) == "rest"
    assert policy.act() == "rest"


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ("rest", {70: "rest", 90: "rest"}),
        ({"rest": "map > 80"}, {70: "press", 90: "rest"}),
        (["rest when map > 80", "press when map < 80"], {70: "press", 90: "rest"}),
        (["rest", "press when map > 80"], {70: "rest", 90: "press"}),
    ],
)
def test_nothing_but_some_values(only: Any, expected: dict[int, str]) -> None:
    policy = ward().policy(2, only=only)
    assert {value: policy.act({"map": value}) for value in (70, 90)} == expected


def test_a_forbidden_action_is_as_if_it_were_not_there() -> None:
    grid = paper_grid()
    policy = grid.policy(4, forbid=["right"])
    without = grid.policy(4, only=["left", "up", "down", "noop"])
    assert policy.value({"x": 0, "y": 0}) == without.value({"x": 0, "y": 0})
    assert "right" not in policy.table()[grid.schema.decisions[0]]
    assert set(policy.act_many({"x": [0, 1], "y": [0, 1]}).tolist()) <= {
        "left", "up", "down", "noop",
    }  # fmt: skip


def test_minimum_support() -> None:
    model = ward()
    assert model.policy(2, min_support=10).act({"map": 70}) == "press"
    assert model.policy(2, min_support=30).action_values({"map": 70})[1].forbidden == (
        "fewer than 30 steps"
    )
    assert model.policy(2, min_support=30, forbid="press when map > 80").act({"map": 70}) == "press"
    none = model.policy(2, min_support=31)
    with pytest.raises(EvidenceError, match="press: fewer than 31 steps; rest: fewer than 31"):
        none.act({"map": 70})
    assert math.isnan(none.value({"map": 70}))


def test_everything_forbidden_is_an_error_that_says_what_to_do() -> None:
    model = ward()
    policy = model.policy(2, forbid=["rest", "press when map > 80"])
    assert policy.act({"map": 70}) == "press"
    message = (
        "all known actions in the state map=90 are forbidden: press: press when map > "
        "80; rest: rest; relax a constraint"
    )
    with pytest.raises(EvidenceError, match=message):
        policy.act({"map": 90})
    with pytest.raises(EvidenceError, match="map=90 are forbidden"):
        policy.act_many({"map": [70, 90]})
    assert math.isnan(policy.value({"map": 90}))
    sure = model.policy(2, forbid=["rest", "press"], otherwise="rest")
    assert sure.act({"map": 90}) == "rest"
    assert not any(a.best for a in sure.action_values({"map": 70}))
    assert math.isnan(sure.table()["value"][0])
    assert sure.table()["drug"] == [None]
    # Of the states of the node a quarter has nothing to do: it is valued as the rest.
    assert policy.value() == pytest.approx(6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"forbid": "pres"}, "forbid: 'drug' never has the value 'pres': did you mean 'press'"),
        ({"forbid": {"drug": "press"}}, "forbid: 'drug' is a decision: give values, as in"),
        ({"only": "x when map > 3"}, "only: 'drug' never has the value 'x'"),
        ({"forbid": "press when age > 80"}, "has none of the variables observed before"),
        ({"forbid": "press when map >"}, "forbid: press: 'map >' is not an expression"),
        ({"min_support": -1}, "min_support: expected 0 or more steps, found -1"),
        ({"min_support": "a"}, "min_support: expected 0 or more steps, found 'a'"),
        ({"min_support": None}, "min_support: expected 0 or more steps, found None"),
        ({"safe": "no"}, "safe: expected True or False, found 'no'"),
        ({"criterion": "meu"}, "criterion: expected an object with a method scores, found 'meu'"),
        ({"criterion": ""}, "criterion: expected an object with a method scores, found ''"),
        ({"discount": "a"}, "discount: expected a number from 0 to 1, found 'a'"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvidenceError, match=message):
        ward().policy(2, **options)


def test_several_decisions() -> None:
    model = example_model()
    with pytest.raises(EvidenceError, match=r"forbid: 'x'.*expected DECISION=x"):
        model.policy(2, forbid="x")
    policy = model.policy(2, forbid=["test=yes when age == old", "treat=drug when result == none"])
    assert policy.act({"age": "old"}) == {"test": "no"}
    assert policy.act({"age": "old", "test": "no", "result": "none"}) == {"treat": "rest"}
    free = model.policy(2).action_values({"age": "young", "test": "yes", "result": "good"})
    bound = policy.action_values({"age": "young", "test": "yes", "result": "good"})
    assert [a.available for a in bound] == [a.available for a in free]


def test_they_are_criteria() -> None:
    model = example_model()
    found = constraints(model.schema, model.template, "treat=drug", min_support=3)
    check_criterion(found)
    assert constraints(model.schema, model.template) is MEU
    assert repr(Constraints([Forbidden("test", "yes")], 2)) == (
        "Constraints(['yes'], 2, MaximumExpectedUtility())"
    )


def test_numbers_on_a_grid() -> None:
    """A rule on a number that boxes overlap: kept exactly where a decision is made."""
    rng = np.random.default_rng(0)
    numbers = rng.uniform(0, 10, 600)
    steps: Sequence[Any] = [
        [{"x": float(x), "a": k % 2, "u": float(x if k % 2 else 5.0)}]
        for k, x in enumerate(numbers)
    ]
    schema = Schema([["x"], ["a"]], ["a"], "u", kinds={"x": "continuous"})
    model, _ = learn_rspmn(Episodes.from_steps(steps, schema, [Followed.END] * len(steps)))
    policy = model.policy(1, forbid="1 when x > 8.5")
    assert model.policy(1).act_many({"x": [8.4, 8.6, 9.5]}).tolist() == [1, 1, 1]
    assert policy.act_many({"x": [8.4, 8.6, 9.5]}).tolist() == [1, 0, 0]
    assert policy.act({"x": 8.51}) == 0


def test_draws_follow_the_rules() -> None:
    """Honest intervals of a constrained policy hold its value, and forbidden actions have none."""
    world = DOMAINS["FrozenLake"]()
    model, _ = learn_rspmn(world.generate(2000, 8, 0))
    policy = model.policy(8, forbid="left when cell in (0, 4, 8)")
    assert policy.act({"cell": 4}) != "left"
    found = policy.how_sure({"cell": 4})
    left = next(each for each in found.actions if each.action.value == "left")
    assert left.notes == ("forbidden: left when cell in (0, 4, 8)",)
    assert math.isnan(left.mean)
    assert found.recommended is not None
    assert found.recommended.low <= float(policy.value({"cell": 4})) <= found.recommended.high
    honest, free = policy.honest_value(draws=50), model.policy(8).honest_value(draws=50)
    assert honest.promise == pytest.approx(float(policy.value()))
    assert honest.promise < free.promise == pytest.approx(float(model.meu(horizon=8)))
    assert honest.low <= honest.promise
    assert free == model.honest_value(8, draws=50)


def merged_sides() -> RSPMN:
    """Return a model of one state in which r earns 2, l earns 1, and z, which nothing needs."""
    rows = [(k, 0, 0, k % 2, "lr"[k // 2 % 2]) for k in range(400)]
    names = ("episode", "time", "w", "z", "a")
    log: dict[str, list[Any]] = {n: [row[k] for row in rows] for k, n in enumerate(names)}
    log["u"] = [2.0 if row[4] == "r" else 1.0 for row in rows]
    schema = Schema([["w", "z"], ["a"]], ["a"], "u")
    return learn_rspmn(Episodes.from_long(log, schema, ending="end"))[0]


def test_rules_that_tell_states_of_one_node_apart() -> None:
    """Where z is 0, r is forbidden: 1 there, 2 elsewhere, and 1.5 on average."""
    model = merged_sides()
    assert model.num_state_interfaces == 1
    policy = model.policy(1, forbid=["r when z == 0"])
    for z, worth in ((0, 1.0), (1, 2.0)):
        state = {"w": 0, "z": z}
        assert float(policy.value(state)) == pytest.approx(worth)
        found = policy.honest_value(state)
        assert found.point == pytest.approx(worth, abs=1e-6)
        assert any("rules tell states" in caveat for caveat in found.caveats)
        with pytest.raises(EvidenceError, match="rules tell states of one interface node apart"):
            policy.returns(state=state)
        with pytest.raises(EvidenceError, match="level: of a state that shares nodes"):
            policy.honest_value(state, level=0.5)
    assert float(policy.value()) == pytest.approx(1.5)
    assert policy.honest_value().point == pytest.approx(1.5, abs=0.1)
    drawn = policy.returns()  # 10,000 episodes of a deviation of 1/2
    assert drawn.episodes > 0
    assert drawn.mean == pytest.approx(1.5, abs=4 * 0.5 / 100)
    with pytest.raises(EvidenceError, match="value of information: rules tell states"):
        policy.value_of_information({"w": 0}, "z")
    # a rule that is the same in all states of a node tells none apart
    everywhere = model.policy(1, forbid=["r when w == 0"])
    assert everywhere.returns(state={"w": 0, "z": 1}).mean == pytest.approx(1.0)
    assert everywhere.returns().episodes == 0
