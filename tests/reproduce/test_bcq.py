"""Batch-constrained Q-learning, where d3rlpy is installed (`make bcq`)."""

import sys

import numpy as np
import pytest

from reproductions.paper_tables import bcq
from rspmn.envs.grid_universe import grid_universe
from rspmn.errors import DataError, MissingExtraError


def test_it_learns_a_grid() -> None:
    """The shortest way is found from 1,000 random walks."""
    pytest.importorskip("d3rlpy", reason="needs d3rlpy: make bcq")
    world = grid_universe()
    log = world.generate(1000, 8, 0, "final")
    found = bcq.learn_bcq(log, world, steps=5000)
    policy = np.eye(len(world.actions))[found.policy]
    assert world.evaluate(policy, 8) == pytest.approx(6.0)
    with pytest.raises(DataError, match="1 or more steps"):
        bcq.learn_bcq(log, world, steps=0)


@pytest.mark.parametrize("name", ["FrozenLake-v1", "Taxi-v3", "Blackjack-v1"])
def test_d3rlpy_itself_refuses_states_that_are_no_numbers(name: str) -> None:
    """`learn_bcq` gives it states as vectors of numbers, so that they can be compared at all."""
    d3rlpy = pytest.importorskip("d3rlpy", reason="needs d3rlpy: make bcq")
    gymnasium = pytest.importorskip("gymnasium")
    learner = d3rlpy.algos.DiscreteBCQConfig().create(device="cpu")
    with pytest.raises(AssertionError, match="Unsupported observation space"):
        learner.build_with_env(gymnasium.make(name))


def test_without_it_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "d3rlpy", None)
    world = grid_universe()
    with pytest.raises(MissingExtraError, match="pip install d3rlpy"):
        bcq.learn_bcq(world.generate(2, 2, 0), world)
