"""The three RDDL domains against pyRDDLGym's expressions: every action, a third of the states.

`make soak` goes through all states that can be reached.
"""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rddl import Instance, TooLargeError, drawn, snake

from effort import SOAK
from rspmn.envs.domains import DOMAINS
from rspmn.envs.mdp import ARRAYS, MDP

if importlib.util.find_spec("pyRDDLGym") is None:
    pytest.skip("needs rspmn[rddl]", allow_module_level=True)

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
    assert [snake(variable) for variable in start] == list(states)
    assert mdp.states[int(mdp.start.argmax())] == tuple(bool(v) for v in start.values())
    actions = [n for a in world.rddl.action_fluents for n in world.rddl.variable_groundings[a]]
    assert [snake(action) for action in actions] == list(decisions)
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


@pytest.mark.parametrize("name", NAMES)
def test_enumerated_from_the_grounded_expressions(name: str) -> None:
    """Two ways to the same table: by hand as rules, and from the files."""
    ours, theirs = DOMAINS[name](), Instance.read(name, 1).mdp()
    assert theirs.schema == ours.schema
    assert theirs.states == ours.states
    assert theirs.actions == ours.actions
    for array in ARRAYS:
        assert np.array_equal(getattr(theirs, array), getattr(ours, array)), array


def test_the_largest_action_is_what_the_instance_allows() -> None:
    two = Instance.read("Elevators", 2)
    assert two.actions.sum(axis=1).max() == 2
    assert len(two.actions) == 1 + 8 + 28  # of eight decisions none, one or two are true


def test_rewards_depend_on_actions() -> None:
    ring = Instance.read("SysAdmin", 1)
    earned = ring.rewards(ring.start, ring.actions)
    assert earned.tolist() == [10.0, *[9.25] * 10]  # ten run; a reboot costs 0.75


@pytest.mark.parametrize("what", ["states", "transitions"])
def test_too_large_for_a_table(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"rddl.MOST_{what.upper()}", 100)  # of 144 states
    with pytest.raises(TooLargeError, match=f"Elevators 1: more than 100 {what}"):
        Instance.read("Elevators", 1).mdp()


def test_draws_have_the_probability_of_their_booleans() -> None:
    rng = np.random.default_rng(0)
    chances = rng.choice([0.0, 0.25, 0.5, 1.0], size=(20, 4))
    row, code, probability = drawn(chances)
    assert np.all(np.diff(row * 16 + code) > 0)
    bits = (code[:, None] >> np.arange(4)[::-1]) & 1
    each = np.where(bits == 1, chances[row], 1 - chances[row]).prod(axis=1)
    assert probability == pytest.approx(each, abs=1e-15)
    assert np.bincount(row, probability) == pytest.approx(np.ones(20))
