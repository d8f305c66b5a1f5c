"""The table of counts and behaviour cloning, against exact learning and the optimum."""

import numpy as np
import pytest

from rspmn import Episodes, Schema, Windows
from rspmn.envs.domains import DOMAINS
from rspmn.envs.logs import LAYOUTS
from rspmn.errors import DataError
from rspmn.evaluate import Cloned, Tabular
from rspmn.learn import LearnConfig, learn_rspmn


def test_two_states_by_hand() -> None:
    """In 0: stay earns 0; go earns 1 and leads to 1 in three of four. In 1: stay earns 2.

    One step to go: V(0) = 1, V(1) = 2. Two: go in 0 is worth 1 + 3/4 · 2 + 1/4 · 1 = 2.75.
    """
    rows = [(0, "stay", 0.0, 0), (0, "go", 1.0, 1), (0, "go", 1.0, 1), (0, "go", 1.0, 1)]
    rows += [(0, "go", 1.0, 0), (1, "stay", 2.0, 1)]
    table: dict[str, list[object]] = {n: [] for n in ("episode", "time", "s", "d", "u", "over")}
    for number, (state, made, earned, after) in enumerate(rows):
        for time, cells in enumerate(((state, made, earned), (after, None, None))):
            for name, cell in zip(table, (number, time, *cells, False), strict=True):
                table[name].append(cell)
    log = Episodes.from_long(table, Schema([["s"], ["d"]], ["d"], "u"), terminated="over")
    found = Tabular.fit(log)
    values, policy = found.solve(2)
    assert values == pytest.approx([2.75, 4.0])
    assert [found.decisions[a] for a in policy[0]] == [("go",), ("stay",)]
    assert found.meu(2) == pytest.approx(5 / 6 * 2.75 + 1 / 6 * 4.0)


@pytest.mark.parametrize("name", ["GridUniverse", "FrozenLake", "Taxi", "Elevators"])
def test_it_is_learning_without_structure(name: str) -> None:
    mdp = DOMAINS[name]()
    windows = Windows.from_episodes(mdp.generate(500, mdp.horizon, 0, "final"))
    model, _ = learn_rspmn(windows, LearnConfig.exact())
    assert Tabular.fit(windows).meu(mdp.horizon) == pytest.approx(
        float(model.meu(horizon=mdp.horizon)), rel=1e-9
    )


def test_in_the_world_itself() -> None:
    mdp = DOMAINS["Maze"]()
    for layout in LAYOUTS:
        table = Tabular.fit(mdp.generate(2000, mdp.horizon, 0, layout))
        policy = table.policy_for(mdp, mdp.horizon)
        assert policy.shape == (8, len(mdp.states))
        assert mdp.evaluate(policy, 8) == pytest.approx(mdp.optimum(8))


def test_states_without_decisions_are_the_worst() -> None:
    """After one episode of one step the next state is known, but nothing of it."""
    mdp = DOMAINS["FrozenLake"]()
    table = Tabular.fit(mdp.generate(3, 2, 0, "final"))
    values, policy = table.solve(5)
    assert np.isfinite(values).all()
    assert (policy >= -1).all()
    assert (policy == -1).any()


def test_what_a_table_cannot_hold() -> None:
    schema = Schema([["s"], ["d"], ["seen"]], ["d"], "u")
    table = {"episode": [0], "time": [0], "s": [1], "d": [0], "seen": [0], "u": [1.0]}
    log = Episodes.from_long(table, schema, ending="end")
    with pytest.raises(DataError, match="observed before the first decision"):
        Tabular.fit(log)


def test_a_log_without_successors() -> None:
    table = {"episode": [0, 1], "time": [0, 0], "s": [1, 2], "d": [0, 1], "u": [1.0, 2.0]}
    log = Episodes.from_long(table, Schema([["s"], ["d"]], ["d"], "u"), ending="cut")
    with pytest.raises(DataError, match="known successor"):
        Tabular.fit(log)


def test_a_clone_does_what_the_log_does() -> None:
    """Taxi's logger is better than random, and differs by state."""
    taxi = DOMAINS["Taxi"]()
    cloned = Cloned.fit(taxi.generate(20_000, 50, 0, "final")).policy_for(taxi)
    assert cloned.sum(axis=1) == pytest.approx(np.ones(len(taxi.states)))
    assert taxi.behaviour is not None
    seen = ~taxi.terminal
    assert np.abs(cloned - taxi.behaviour)[seen].mean() < 0.01
    # five standard errors of an episode's return, of some hundred, in 20,000
    assert taxi.evaluate(cloned, 50) == pytest.approx(taxi.evaluate(None, 50), abs=4)


def test_states_without_decisions_are_cloned_uniformly() -> None:
    grid = DOMAINS["GridUniverse"]()
    cloned = Cloned.fit(grid.generate(1, 1, 0, "final")).policy_for(grid)
    assert cloned[-1] == pytest.approx(np.full(4, 0.25))
