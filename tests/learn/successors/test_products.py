"""S_L with products of factors: the model is that with factors multiplied out."""

import numpy as np
import pytest

from rspmn import RSPMN, Windows, learn_rspmn, refit
from rspmn.circuit import FactoredLatents
from rspmn.envs.domains import DOMAINS
from rspmn.envs.mdp import MDP
from rspmn.envs.sys_admin import sys_admin
from rspmn.evaluate import true_value
from rspmn.learn.info import RSPMNInfo
from rspmn.learn.successors import priors, products
from rspmn.learn.successors.factored import FutureInfo


def learned(
    world: MDP,
    episodes: int,
    monkeypatch: pytest.MonkeyPatch,
    *,
    spread: bool,
) -> tuple[RSPMN, RSPMNInfo]:
    """Learn with products of factors as they are, or multiplied out."""
    with monkeypatch.context() as patch:
        if spread:
            patch.setattr(products, "FEW_PRODUCTS", 0)
            patch.setattr(products, "MOST_MULTIPLIED", 0)
        return learn_rspmn(world.generate(episodes, world.horizon, 3))


@pytest.mark.parametrize(
    ("world", "episodes"),
    [
        (sys_admin(4), 60),
        (DOMAINS["Elevators"](), 20),
        pytest.param(DOMAINS["SkillTeaching"](), 30, marks=pytest.mark.soak),
    ],
)
def test_values_are_those_of_the_model_multiplied_out(
    world: MDP, episodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of products that are multiplied out 1e-12 is cut at most; values differ by no more.

    A horizon has at most 50 steps, and rewards are at most 10: values differ by up to 500, so that
    each of 50 steps changes them by 1e-12 · 500 at most.
    """
    spread, info = learned(world, episodes, monkeypatch, spread=True)
    plain, _ = learned(world, episodes, monkeypatch, spread=False)
    assert info.future.spread > 0
    assert any(isinstance(node, FactoredLatents) for node in spread.template.nodes)
    assert not any(isinstance(node, FactoredLatents) for node in plain.template.nodes)
    for untried in (False, True):
        expected = plain.values(world.horizon, offer="all" if untried else "tried")
        found = spread.values(world.horizon, offer="all" if untried else "tried")
        assert found == pytest.approx(expected, rel=0, abs=5e-8, nan_ok=True)
    states = {
        name: [state[k] for state in world.states]
        for k, name in enumerate(world.schema.information_sets[0])
    }
    one, other = (m.policy(world.horizon, offer="all") for m in (spread, plain))
    for s in range(0, len(world.states), 7):
        state = {name: values[s] for name, values in states.items()}
        assert [a.utility for a in one.action_values(state)] == pytest.approx(
            [a.utility for a in other.action_values(state)], rel=1e-6, abs=1e-6, nan_ok=True
        )


def test_a_ring_is_learned_as_well_and_small(monkeypatch: pytest.MonkeyPatch) -> None:
    world = sys_admin(6)
    model, info = learned(world, 100, monkeypatch, spread=True)
    value = true_value(world, model.policy(20, offer="all"), 20)
    assert value > 0.95 * world.optimum(20)
    assert model.template.num_edges < 20 * info.windows
    assert info.future.work < 10 * info.windows


def test_refit_on_the_same_log_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = sys_admin(4)
    model, _ = learned(world, 60, monkeypatch, spread=True)
    with monkeypatch.context() as patch:
        patch.setattr(products, "FEW_PRODUCTS", 0)
        patch.setattr(products, "MOST_MULTIPLIED", 0)
        again, _ = refit(model, world.generate(60, world.horizon, 3))
    assert again.values(20) == pytest.approx(model.values(20), rel=1e-9, nan_ok=True)
    assert np.allclose(again.visits, model.visits)


def test_tables_have_a_number_for_each_row_and_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a ring of 4 machines the table of a machine has two classes, although 16 states exist."""
    spread = learned(sys_admin(4), 60, monkeypatch, spread=True)[1].future
    assert isinstance(spread, FutureInfo)
    monkeypatch.setattr(priors, "MOST_NUMBERS", 16 * sum(spread.leaves))
    assert learned(sys_admin(4), 60, monkeypatch, spread=True)[1].future == spread
    monkeypatch.setattr(priors, "MOST_NUMBERS", 2 * sum(spread.leaves) - 1)
    few = learned(sys_admin(4), 60, monkeypatch, spread=True)[1].future
    assert isinstance(few, FutureInfo)
    assert few.spread == 0


@pytest.mark.parametrize("name", ["Taxi", "Elevators"])
def test_sparse_tables_give_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = Windows.from_episodes(DOMAINS[name]().generate(200, 10, 1, "final"))
    expected, _ = learn_rspmn(windows)
    monkeypatch.setattr(priors, "MOST_NUMBERS", 0)
    found, _ = learn_rspmn(windows)
    assert len(found.template) == len(expected.template)
    assert found.values(10) == pytest.approx(expected.values(10), abs=1e-11, nan_ok=True)
    one, other = (m.meu(horizon=10, offer="all") for m in (found, expected))
    assert one == pytest.approx(other, abs=1e-11)
