"""The three RDDL domains against pyRDDLGym's expressions: every action, a third of the states.

`make soak` goes through all states that can be reached.
"""

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from effort import SOAK
from rspmn.envs.domains import DOMAINS
from rspmn.envs.mdp import MDP

pytest.importorskip("pyRDDLGym", reason="needs rspmn[rddl]")

NAMES = ["SkillTeaching", "Elevators", "CrossingTraffic"]


class Threshold:
    """Draws that are all the same number: a Bernoulli is true if its probability is as large."""

    def __init__(self, number: float) -> None:
        self.number = number

    def uniform(self, size: tuple[int, ...]) -> np.ndarray[Any, Any]:
        return np.full(size, self.number)


def simulator(name: str) -> Any:
    """Return pyRDDLGym's simulator of a domain, read from its files: nothing is written."""
    import pyRDDLGym

    found = importlib.util.find_spec("rddlrepository")
    assert found is not None
    assert found.origin is not None
    folder = Path(found.origin).parent / "archive" / "competitions" / "IPPC2011" / name / "MDP"
    env = pyRDDLGym.make(str(folder / "domain.rddl"), str(folder / "instance1.rddl"))
    return env.sampler


def ours(name: str) -> str:
    """Return the name that a grounded RDDL variable has here."""
    snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()
    return re.sub(r"[-_]+", "_", snake)


def marginals(mdp: MDP, row: int) -> tuple[np.ndarray[Any, Any], float]:
    """Return how likely each variable is true after a state and action, and the reward.

    They are independent: what they give together is the table.
    """
    part = slice(int(mdp.indptr[row]), int(mdp.indptr[row + 1]))
    after = np.array([mdp.states[k] for k in mdp.successors[part]], dtype=bool)
    chance = mdp.probabilities[part]
    true = chance @ after
    together = np.where(after, true, 1 - true).prod(axis=1)
    assert together == pytest.approx(chance, abs=1e-12)
    assert np.ptp(mdp.rewards[part]) == 0
    return true, float(mdp.rewards[part][0])


@pytest.mark.filterwarnings("ignore")  # pyRDDLGym's own
@pytest.mark.parametrize("name", NAMES)
def test_every_state_and_action(name: str) -> None:
    mdp, world = DOMAINS[name](), simulator(name)
    assert not world.rddl.interm_fluents  # so next variables are drawn apart from each other
    start, _ = world.reset()
    states, decisions = mdp.schema.information_sets[0], mdp.schema.decisions
    assert [ours(variable) for variable in start] == list(states)
    assert mdp.states[int(mdp.start.argmax())] == tuple(bool(v) for v in start.values())
    actions = [n for a in world.rddl.action_fluents for n in world.rddl.variable_groundings[a]]
    assert [ours(action) for action in actions] == list(decisions)
    grounded = list(start)
    checked = 0
    for s, state in list(enumerate(mdp.states))[:: 1 if SOAK else 3]:
        for a, action in enumerate(mdp.actions):
            true, reward = marginals(mdp, s * len(mdp.actions) + a)
            between = sorted({p for p in true.tolist() if 1e-12 < p < 1 - 1e-12})
            numbers = [p + e for p in between for e in (-1e-9, 1e-9)] or [0.5]
            for number in numbers:
                after, earned = _step(world, grounded, state, actions, action, number)
                expected = true > number
                assert [after[v] for v in grounded] == expected.tolist(), (state, action, number)
                assert earned == pytest.approx(reward, abs=1e-12)
                checked += 1
    assert checked >= len(mdp.states) * len(mdp.actions) / 3


def _step(
    world: Any, names: list[str], state: tuple[Any, ...], actions: list[str],
    action: tuple[Any, ...], number: float,
) -> tuple[dict[str, bool], float]:  # fmt: skip
    """Take one step from a state, all draws being one number."""
    world.reset()
    world.rng = Threshold(number)
    values = dict(zip(names, state, strict=True))
    for variable in world.rddl.state_fluents:
        shape = np.shape(world.subs[variable])
        grounded = world.rddl.variable_groundings[variable]
        world.subs[variable] = np.array([values[g] for g in grounded]).reshape(shape)
    made = dict(zip(actions, map(bool, action), strict=True))
    after, reward, _ = world.step(world.prepare_actions_for_sim(made))
    return {name: bool(value) for name, value in after.items()}, float(reward)
