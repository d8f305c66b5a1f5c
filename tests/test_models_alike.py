"""Both kinds of models answer the same questions under the same names."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rspmn
from rspmn import RSPMN, SPMN, Policy, Schema
from rspmn.envs.paper_grid import paper_grid
from rspmn.errors import EvidenceError

ALIKE = (
    "policy", "act", "action_values", "best_decisions", "meu", "log_likelihood", "mpe", "sample",
    "save", "load",
)  # fmt: skip
#: The order of parameters that both kinds share.
ORDER = ["state", "horizon", "discount", "otherwise", "rng", "policy", "offer", "criterion"]


@pytest.fixture(scope="module")
def umbrella() -> SPMN:
    table = {
        "weather": ["wet", "wet", "dry", "dry"] * 50,
        "umbrella": [True, False, True, False] * 50,
        "mood": [0.0, -5.0, 1.0, 2.0] * 50,
    }
    schema = Schema([["weather"], ["umbrella"]], ["umbrella"], "mood")
    return rspmn.learn_spmn(table, schema)[0]


@pytest.mark.parametrize("kind", [RSPMN, SPMN])
@pytest.mark.parametrize("name", ALIKE)
def test_parameters_have_one_order(kind: type, name: str) -> None:
    found = [n for n in inspect.signature(getattr(kind, name)).parameters if n in ORDER]
    if (kind, name) == (SPMN, "sample"):  # rows may be drawn given a state, which comes last
        assert found.pop() == "state"
    assert found == sorted(found, key=ORDER.index)


def same(one: Any, other: Any) -> None:
    assert [(a.value, a.utility, a.best) for a in one] == [
        (a.value, pytest.approx(a.utility), a.best) for a in other
    ]


@pytest.mark.parametrize("weather", ["wet", "dry"])
def test_answers_of_a_single_shot_model(umbrella: SPMN, weather: str) -> None:
    state = {"weather": weather}
    policy = umbrella.policy()
    assert isinstance(policy, Policy)
    assert umbrella.act(state) == policy.act(state) == (weather == "wet")
    assert umbrella.act((weather,)) == umbrella.act(state)
    same(umbrella.action_values(state), policy.action_values(state))
    assert umbrella.best_decisions(state)[0].value == umbrella.act(state)
    assert float(umbrella.meu(state)) == pytest.approx(float(policy.value(state)))
    with pytest.raises(EvidenceError, match="no decision is known in the state weather=ha"):
        umbrella.act({"weather": "hail"})
    drawn = umbrella.sample(20, 0, policy, state)
    assert set(drawn["weather"]) == {weather}
    assert set(drawn["umbrella"]) == {weather == "wet"}
    completed = umbrella.mpe(state)
    assert completed is not None
    assert completed["weather"] == weather


def test_answers_of_a_recurrent_model() -> None:
    model, state = paper_grid(), {"x": 0, "y": 0}
    policy = model.policy(horizon=4)
    assert model.act(state, 4) == policy.act(state) == "down"
    assert model.act((0, 0), horizon=4) == "down"
    same(model.action_values(state, 4), policy.action_values(state))
    assert model.best_decisions(state, 4)[0].value == "down"
    assert float(model.meu(state, 4)) == float(policy.value(state))
    assert len(model.sample(3, 4, 0, policy)) == 3


def test_one_function_loads_either_kind(umbrella: SPMN, tmp_path: Path) -> None:
    for model in (umbrella, paper_grid()):
        path = tmp_path / f"{type(model).__name__}.json"
        model.save(path)
        assert rspmn.load(path) == model == type(model).load(path)
    rng = np.random.default_rng(0)
    assert len(umbrella.sample(5, rng)["mood"]) == 5
