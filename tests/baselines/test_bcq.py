"""Batch-constrained Q-learning, where d3rlpy is installed (`make bcq`)."""

import sys

import numpy as np
import pytest

from rspmn.baselines import bcq
from rspmn.envs.grid_universe import grid_universe
from rspmn.errors import DataError, MissingExtraError


def test_it_learns_a_grid() -> None:
    """The shortest way is found from 1,000 random walks."""
    pytest.importorskip("d3rlpy", reason="needs rspmn[bcq]: make bcq")
    world = grid_universe()
    log = world.generate(1000, 8, 0, "final")
    found = bcq.learn_bcq(log, world, steps=5000)
    policy = np.eye(len(world.actions))[found.policy]
    assert world.evaluate(policy, 8) == pytest.approx(6.0)
    with pytest.raises(DataError, match="1 or more steps"):
        bcq.learn_bcq(log, world, steps=0)


def test_without_it_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "d3rlpy", None)
    world = grid_universe()
    with pytest.raises(MissingExtraError, match=r"rspmn\[bcq\]"):
        bcq.learn_bcq(world.generate(2, 2, 0), world)
