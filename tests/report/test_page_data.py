"""The data of a page: every number is what the policy itself says."""

import json
import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from number_worlds import corridor
from rspmn import windows
from rspmn.data.episodes import Episodes
from rspmn.doctor import examine
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.envs.paper_grid import paper_grid
from rspmn.errors import EvidenceError
from rspmn.evaluate import compare, practice
from rspmn.evaluate.practice import practice_value
from rspmn.infer.policy import Policy
from rspmn.learn import learn_rspmn
from rspmn.model import RSPMN
from rspmn.report import report_data
from rspmn.report.card import variable_facts
from rspmn.report.decision_points import DecisionPoints
from rspmn.report.page_warnings import page_warnings
from rspmn.report.practice_comparison import compared_steps, worth_facts

HORIZON = 8


@pytest.fixture(scope="module")
def log() -> Episodes:
    return frozen_lake().generate(800, HORIZON, 0)


@pytest.fixture(scope="module")
def model(log: Episodes) -> RSPMN:
    return learn_rspmn(log)[0]


@pytest.fixture(scope="module")
def policy(model: RSPMN) -> Policy:
    return model.policy(HORIZON)


@pytest.fixture(scope="module")
def data(model: RSPMN, log: Episodes) -> dict[str, Any]:
    findings = examine(log.to_long(), model.schema).findings
    return report_data(model, log, HORIZON, findings=findings, title="lake")


def same(found: float | None, expected: float) -> bool:
    """Compare to seven digits; what is not known is null."""
    if found is None:
        return math.isnan(expected)
    return math.isclose(found, expected, rel_tol=1e-6, abs_tol=1e-12)


def test_actions_are_those_of_explanations(data: dict[str, Any], policy: Policy) -> None:
    for node in data["nodes"]:
        state = {"cell": int(node["state"]["cell"])}
        explained = policy.explain(state)
        assert node["decided"] == explained.decided
        point = data["points"][str(node["point"])]
        assert point["tooClose"] == explained.too_close
        by_value = {each.value: each for each in explained.actions}
        answers = {each.value: each for each in policy.action_values(state)}
        assert {action["value"] for action in point["actions"]} == {
            value for value, answer in answers.items() if answer.available
        }
        for action in point["actions"]:
            expected, answer = by_value[action["value"]], answers[action["value"]]
            if math.isfinite(answer.utility):
                assert action["utility"] == answer.utility
            assert (action["utility"] is None) == math.isnan(answer.utility)
            assert (action["best"], action["known"]) == (answer.best, answer.known)
            for name in ("now", "low", "high", "steps", "supported"):
                assert same(action[name], getattr(expected, name)), (state, action, name)
            assert same(action["probability"], expected.best)
            assert action["notes"] == list(expected.notes)
            leads = [(next_.node, next_.probability) for next_ in expected.next]
            found = dict(action["leads"][: len(leads)])
            assert found == pytest.approx(dict(leads), rel=1e-6)


def test_values_are_those_of_the_policy_and_of_practice(
    data: dict[str, Any], model: RSPMN, policy: Policy, log: Episodes
) -> None:
    honest, compared = model.honest_value(HORIZON), compare(model, log, HORIZON)
    worth = data["worth"]
    assert (worth["policy"]["point"], worth["policy"]["low"]) == (honest.point, honest.low)
    assert worth["practice"]["value"] == compared.practice.value
    assert worth["difference"]["low"] == compared.difference.low
    assert worth["promise"] == policy.value() == worth["byHorizon"][-1]["meu"]
    for row in worth["byHorizon"]:
        assert row["meu"] == pytest.approx(model.meu(None, row["steps"]), abs=1e-12)
    last = worth["byHorizon"][-1]
    assert last["practice"] == pytest.approx(worth["practice"]["value"], abs=1e-12)
    without = worth_facts(policy, None, HORIZON)
    estimate = practice(model, HORIZON)
    assert without["practice"]["low"] == estimate.low
    assert without["difference"] is None


def test_nodes_are_those_of_the_table(data: dict[str, Any], policy: Policy) -> None:
    table = policy.table()
    assert [node["id"] for node in data["nodes"]] == table["node"]
    for k, node in enumerate(data["nodes"]):
        assert node["decided"]["action"] == table["action"][k]
        assert (node["value"], node["steps"]) == (table["value"][k], table["steps"][k])


def test_later_steps_are_those_of_the_policy(data: dict[str, Any], policy: Policy) -> None:
    assert [each["left"] for each in data["later"]] == list(range(HORIZON - 1, 0, -1))
    for later in data["later"]:
        worths = iter(later["worth"])
        of_points = {p: [next(worths) for _ in f["actions"]] for p, f in data["points"].items()}
        for node in data["nodes"]:
            state, point = {"cell": int(node["state"]["cell"])}, str(node["point"])
            answers = policy.action_values(state, HORIZON - later["left"])
            expected = {each.value: each.utility for each in answers}
            made = [action["value"] for action in data["points"][point]["actions"]]
            for value, worth in zip(made, of_points[point], strict=True):
                assert same(worth, expected[value])


def test_ranges_are_those_of_the_log() -> None:
    log, schema = corridor(40, 0)
    episodes = Episodes.from_log(log, schema, terminated="over")
    model, _ = learn_rspmn(windows(log, schema, terminated="over"))
    x = next(v for v in variable_facts(model.policy(5), episodes) if v["name"] == "x")
    assert (x["low"], x["high"]) == (min(log["x"]), max(log["x"]))


def test_warnings_come_first_and_say_what_to_do(data: dict[str, Any]) -> None:
    levels = [each["level"] for each in data["warnings"]]
    assert levels == sorted(levels, key=["error", "warning", "note"].index)
    assert "warning" in levels  # a goal that 800 episodes of 8 steps hardly reach
    assert all(each["text"] and each["advice"] for each in data["warnings"])


def test_episodes_follow_the_policy(data: dict[str, Any], policy: Policy) -> None:
    episodes = data["episodes"]["policy"]
    assert sum(each["share"] for each in episodes) <= 1
    for episode in episodes:
        for t, step in enumerate(episode["steps"]):
            state = {"cell": step["values"]["cell"]}
            assert step["values"]["action"] == policy.act(state, t)
            assert policy.nodes(state)[step["node"]] == 1
    taken = {step["values"]["action"] for e in data["episodes"]["practice"] for step in e["steps"]}
    assert len(taken) == 4  # the log is uniform


def test_it_is_json_and_the_same_every_time(
    data: dict[str, Any], model: RSPMN, log: Episodes
) -> None:
    text = json.dumps(data, allow_nan=False)
    again = report_data(
        model, log, HORIZON, findings=examine(log.to_long(), model.schema).findings, title="lake"
    )
    assert json.dumps(again) == text


def test_large_models_show_their_most_visited_part(model: RSPMN) -> None:
    found = report_data(model, horizon=2, most_nodes=3)
    shown = [node["id"] for node in found["nodes"]]
    assert set(shown) == set(np.argsort(-np.array(model.visits))[:3].tolist())
    assert found["leftOut"] == model.num_state_interfaces - 3
    assert len(found["states"]["ways"]["action"]) == model.num_state_interfaces
    with pytest.raises(EvidenceError, match="most_nodes"):
        report_data(model, horizon=2, most_nodes=0)


def test_without_a_horizon_it_says_why_there_are_no_intervals(
    model: RSPMN, data: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rspmn.trust.drawn_worlds.MOST_UPDATES", 20)
    points = DecisionPoints(model.policy())
    facts = points.facts(0, points.how_sure(0, {}))
    assert facts["actions"][0]["low"] is None
    found = page_warnings(model.policy(), data["worth"], data["coverage"], points.no_intervals)
    assert any("Actions have no intervals: " in each["text"] for each in found)
    assert data["noIntervals"] == ""


def test_a_model_written_by_hand_has_a_page() -> None:
    found = report_data(paper_grid(), horizon=4)
    assert found["worth"]["policy"] is None
    assert found["worth"]["promise"] == paper_grid().meu(None, 4)
    assert found["nodes"][0]["decided"] == {"action": "down"}


def test_over_how_many_steps_practice_is_compared(
    model: RSPMN, policy: Policy, log: Episodes
) -> None:
    """The horizon; else the longest episode; else 8, 16, … until the value changes by a 1000th."""
    for_ever = model.policy(discount=0.8)
    assert compared_steps(policy, log) == HORIZON
    assert compared_steps(for_ever, log) == log.lengths.max()
    steps = [8 * 2**k for k in range(6)]
    values = [practice_value(model, n, 0.8).value for n in (4, *steps)]
    settled = [abs(b - a) <= 1e-3 * abs(b) for a, b in pairwise(values)]
    assert settled.index(True) > 0
    assert compared_steps(for_ever, None) == steps[settled.index(True)]
