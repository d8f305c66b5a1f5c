"""Behaviour cloning, and the SPMN of whole sequences."""

import numpy as np
import pytest

from rspmn.baselines import Cloned, learn_sequence_spmn
from rspmn.envs.domains import DOMAINS
from rspmn.errors import DataError
from rspmn.learn import LearnConfig


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


def test_sequences_by_enumeration() -> None:
    """All that can be done in two steps of the grid, every way equally often: -2 at best."""
    grid = DOMAINS["GridUniverse"]()
    model, info = learn_sequence_spmn(grid.generate(500, 2, 0, "padded"))
    assert float(model.meu()) == pytest.approx(grid.optimum(2))
    assert info.stopped_by == ""
    assert model.schema.decisions == ("action@0", "action@1")


def test_budgets_and_lengths() -> None:
    lake = DOMAINS["FrozenLake"]()
    model, info = learn_sequence_spmn(
        lake.generate(500, 6, 0, "padded"), LearnConfig(max_nodes=300)
    )
    assert info.stopped_by == "nodes"
    assert len(model.network) < 3000
    with pytest.raises(DataError, match="episodes of one length"):
        learn_sequence_spmn(lake.generate(500, 6, 0, "flags"))
