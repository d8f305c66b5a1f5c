"""What the page answers in a state is what the policy answers, whatever the model."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from number_worlds import corridor
from random_models import random_rspmn, random_setting, step_domains
from reproductions.single_shot import oil_wildcatter
from rspmn import Schema, windows
from rspmn.errors import EvidenceError
from rspmn.expressions import Expression
from rspmn.expressions.formula import formula_of
from rspmn.infer import best_among
from rspmn.infer.policy import Policy
from rspmn.learn import learn_rspmn, learn_spmn
from rspmn.model import RSPMN
from rspmn.report import report_data, write_report
from rspmn.spmn import SPMN
from rspmn.values import Value
from soft_models import soft_model, soft_states

pytestmark = pytest.mark.browser

State = dict[str, Value]
#: Cases that Python is tested with as well, in tests/test_formula.py.
TABLE = json.loads((Path(__file__).parents[1] / "formulas.json").read_text(encoding="utf-8"))


def check(page: Any, policy: Policy, states: list[State | None], t: int = 0) -> int:
    """Compare all answers at time t; return how many states had one."""
    left = policy.horizon - t if t and policy.horizon else None
    asked = "([states, left]) => states.map(state => rspmn.answer(state, left))"
    found = page.evaluate(asked, [states, left])
    answered = 0
    for state, answer in zip(states, found, strict=True):
        expected = policy.action_values(state, t)
        known = {a.value: a for a in expected if a.available}
        offered = {a["value"]: a for a in answer["actions"] if a["available"] > 0}
        assert offered.keys() == known.keys(), state
        for value, action in offered.items():
            assert_close(action["utility"], known[value].utility, (state, value))
            assert_close(action["available"], known[value].available, (state, value))
            assert_close(action["known"], known[value].known, (state, value))
            assert action["best"] == known[value].best, (state, value)
        best = best_among(expected)
        taken = [a["value"] for a in answer["actions"] if a["taken"]]
        assert taken == [each.value for each in best[:1]], state
        answered += bool(best) and not math.isnan(best[0].utility)
    return answered


def assert_close(found: float | None, expected: float, where: object) -> None:
    if math.isnan(expected):
        assert found is None, where
    else:
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12), where


def page_of(
    opened: Any, folder: Path, model: RSPMN | SPMN, horizon: int | None, view: str = "ask"
) -> Any:
    path = folder / "page.html"
    write_report(path, report_data(model, horizon=horizon))
    return opened(path, view)


def test_states_of_a_lake(opened: Any, lake: Path, model: RSPMN) -> None:
    states: list[State | None] = [None, {}]
    states += [{"cell": cell} for cell in range(16)]
    page = opened(lake, "ask")
    for t in (0, 1, 12, 19):
        assert check(page, model.policy(20), states, t) >= 11
    differing = next(
        ({"cell": cell}, t)
        for cell in (14, 13, 9, 10)
        for t in range(19, 0, -1)
        if model.policy(20).act({"cell": cell}, t) != model.policy(20).act({"cell": cell})
    )
    state, t = differing
    page.select_option("#ask-cell", str(state["cell"]))
    page.select_option("#left", str(20 - t))
    assert page.inner_text("h3") == f"action: {model.policy(20).act(state, t)}"
    assert f"step {t + 1} of 20" in page.inner_text("main")


def test_formulas_of_laws(opened: Any, lake: Path) -> None:
    """The table that Python is tested with."""
    page, asked = opened(lake), []
    for row in TABLE:
        formula = formula_of(Expression.parse(row["expression"]), row["columns"])
        asked += [[formula, state, expected] for state, expected in row["cases"]]
    found = page.evaluate("all => all.map(([f, s]) => rspmn.formulaValue(f, s))", asked)
    assert found == [expected for *_, expected in asked]


def test_laws_are_kept(opened: Any, tmp_path: Path) -> None:
    log, schema = corridor(60, 0, machine=True)
    lawful = Schema(schema.order, schema.decisions, schema.utility, schema.kinds, schema.log,
                    {"right": "x < 0.7 or machine == reverse"})  # fmt: skip
    learned, _ = learn_rspmn(windows(log, schema, terminated="over"))
    model = replace(learned, schema=lawful)
    page = page_of(opened, tmp_path, model, 12)
    rng = np.random.default_rng(0)
    states: list[State | None] = [None, {"machine": "forward"}, {"x": 0.8}]
    states += [
        {"x": float(x), "machine": machine}
        for x in rng.uniform(0, 1, 12)
        for machine in ("forward", "reverse")
    ]
    for t in (0, 7):
        assert check(page, model.policy(12), states, t) >= 15


def test_numbers_between_interface_nodes(opened: Any, tmp_path: Path) -> None:
    log, schema = corridor(60, 0, machine=True)
    model, _ = learn_rspmn(windows(log, schema, terminated="over"))
    page = page_of(opened, tmp_path, model, 12)
    rng = np.random.default_rng(0)
    states: list[State | None] = [None, {"machine": "reverse"}, {"x": 5.0}]
    states += [{"x": float(x), "machine": "forward"} for x in rng.uniform(0, 1, 20)]
    for t in (0, 6, 11):
        assert check(page, model.policy(12), states, t) >= 15
    page.fill("#ask-x", "0.97")
    page.select_option("#ask-machine", "forward")
    assert page.inner_text("h3") == "a: right"


def test_values_that_differ_in_case_and_booleans(opened: Any, tmp_path: Path) -> None:
    """The page asks for the value that was chosen, and shows the state that it begins with."""
    rows = [(segment, new, a) for segment in ("Loyal", "loyal") for new in (False, True)
            for a in "lr"] * 30  # fmt: skip
    log: dict[str, Any] = {"episode": [*range(240)], "time": [0] * 240}
    log |= dict(zip(("segment", "new", "a"), map(list, zip(*rows, strict=True)), strict=True))
    log["u"] = [float((a == "l") == (segment == "Loyal") != new) for segment, new, a in rows]
    schema = Schema([["segment", "new"], ["a"]], ["a"], "u")
    model, _ = learn_rspmn(windows(log, schema, ending="end"))
    page = page_of(opened, tmp_path, model, 1)
    assert page.input_value("#ask-segment") in ("Loyal", "loyal")
    assert page.input_value("#ask-new") in ("false", "true")
    for segment in ("Loyal", "loyal"):
        for new in (False, True):
            page.select_option("#ask-segment", segment)
            page.select_option("#ask-new", str(new).lower())
            made = model.policy(1).act({"segment": segment, "new": new})
            assert page.inner_text("h3") == f"a: {made}"


@pytest.mark.parametrize("seed", [0, 2])
def test_soft_borders_and_ties(opened: Any, tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = soft_model(rng, 4, 2, cells=2, actions=3, whole=True, marks=True)
    drawn = soft_states(rng, model, 40, missing=0.1)
    states: list[State | None] = [{n: v for n, v in s.items() if v is not None} for s in drawn]
    page = page_of(opened, tmp_path, model, 3)
    assert check(page, model.policy(3), states) > 5


def test_a_decision_after_an_observation(opened: Any, tmp_path: Path) -> None:
    problem = oil_wildcatter()
    model, _ = learn_spmn(problem.sample(2000, 0), problem.schema)
    page = page_of(opened, tmp_path, model, None)
    policy = model.policy()
    made = policy.planned.offers.values("test")
    seen = sorted(set(problem.sample(2000, 0)["result"]), key=str)
    states: list[State | None] = [None, {}]
    states += [{"test": test} for test in made]
    states += [{"test": test, "result": result} for test in made for result in seen]
    assert check(page, policy, states) >= 4
    assert page.locator("nav a").all_inner_texts() == ["Overview", "States", "Policy", "Ask"]


@pytest.mark.parametrize("seed", range(4))
def test_random_models(opened: Any, tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    setting = random_setting(rng, decisions=1 + seed % 3)
    model = random_rspmn(rng, setting, roots=3, told_apart=bool(seed % 2), end=seed > 2)
    policy = model.policy(3)
    page = page_of(opened, tmp_path, model, 3)
    if page.evaluate("rspmn.report.states === null"):
        return  # something is earned beside a decision
    domains = step_domains(model, setting.domains)
    states: list[State | None] = []
    for _ in range(30):
        decision = str(rng.choice(setting.schema.decisions))
        before = setting.schema.known_before(decision)
        state: State = {}
        for name in before:
            if name in setting.schema.decisions or rng.random() < 0.7:
                values = [v for v in domains[name] if isinstance(v, str | int | float)]
                state[name] = values[int(rng.integers(len(values)))]
        try:
            policy.action_values(state)
        except EvidenceError:
            continue
        states.append(state)
    for t in range(3):
        check(page, policy, states, t)
