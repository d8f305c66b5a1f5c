"""Small worlds that lead learning astray, with exact answers by value iteration."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from effort import seeds
from rspmn import Schema
from rspmn.envs.explore import Outcomes, explore
from rspmn.envs.grid_universe import grid_universe
from rspmn.envs.mdp import MDP
from rspmn.evaluate import true_value
from rspmn.learn import LearnConfig, learn_rspmn
from rspmn.learn.irrelevant import Reason

SEEDS = seeds(2, 10)


def schema_of(state: list[str], **kinds: str) -> Schema:
    return Schema([state, ["a"]], ["a"], "u", {**kinds, "a": "categorical", "u": "continuous"})


def cue() -> MDP:
    """A cue is shown in the state, and pays three steps later: the action must match it."""

    def outcomes(state: tuple[str, int], action: tuple[str]) -> Outcomes:
        cue, place = state
        if place < 3:
            return [(1.0, (cue, place + 1), 0.0)]
        return [(1.0, ("over", 4), float(action[0] == cue))]

    start = {("left", 0): 0.5, ("right", 0): 0.5}
    schema = schema_of(["cue", "place"], cue="categorical", place="integer")
    return explore(
        "cue", schema, start, [("left",), ("right",)], outcomes, lambda s: s[1] == 4,
        episodes=2000, horizon=4,
    )  # fmt: skip


def xor() -> MDP:
    """Two bits, drawn anew in each step; an action pays where it is their exclusive or."""

    def outcomes(state: tuple[int, int], action: tuple[str]) -> Outcomes:
        pays = float((action[0] == "yes") == (state[0] != state[1]))
        return [(0.25, after, pays) for after in product((0, 1), (0, 1))]

    start = dict.fromkeys(product((0, 1), (0, 1)), 0.25)
    schema = schema_of(["x", "y"], x="integer", y="integer")
    return explore(
        "xor", schema, start, [("no",), ("yes",)], outcomes, episodes=2000, horizon=5
    )  # fmt: skip


def beside_noise(size: int, policy: bool = False) -> MDP:
    """GridUniverse with a variable of pure noise; the logger may go by it."""
    grid = grid_universe()
    number = {state: index for index, state in enumerate(grid.states)}

    def outcomes(state: tuple[int, int], action: tuple[str]) -> Outcomes:
        row = number[state[0],] * len(grid.actions) + grid.actions.index(action)
        for k in range(int(grid.indptr[row]), int(grid.indptr[row + 1])):
            (cell,) = grid.states[grid.successors[k]]
            for noise in range(size):
                yield float(grid.probabilities[k]) / size, (cell, noise), float(grid.rewards[k])

    schema = schema_of(["cell", "noise"], cell="integer", noise="integer")
    start = {(0, noise): 1 / size for noise in range(size)}
    made = explore(
        "beside noise", schema, start, grid.actions, outcomes, lambda s: s[0] in (7, 11),
        episodes=20_000, horizon=8,
    )  # fmt: skip
    if not policy:
        return made
    likes = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.7, 0.1]])  # by the noise's last bit
    return replace(made, behaviour=likes[[int(str(state[1])) % 2 for state in made.states]])


def by_the_cell() -> MDP:
    """GridUniverse, logged by somebody who goes right in even cells and down in odd ones."""
    grid = grid_universe()
    likes = np.array([[0.1, 0.7, 0.1, 0.1], [0.1, 0.1, 0.7, 0.1]])
    return replace(grid, behaviour=likes[[int(str(state[0])) % 2 for state in grid.states]])


def unavailable() -> MDP:
    """Jumping pays 5 at 0; at 1, where it would pay 100, nobody ever did. Walking pays 1."""

    def outcomes(state: tuple[int], action: tuple[str]) -> Outcomes:
        pays = {0: 5.0, 1: 100.0}[state[0]] if action[0] == "jump" else 1.0
        return [(0.5, (0,), pays), (0.5, (1,), pays)]

    made = explore(
        "unavailable", schema_of(["x"], x="integer"), {(0,): 1.0}, [("jump",), ("walk",)],
        outcomes, episodes=500, horizon=6,
    )  # fmt: skip
    return replace(made, behaviour=np.array([[0.5, 0.5], [0.0, 1.0]]))


def last_throw() -> MDP:
    """Waiting costs nothing and may end all; stopping throws for 10 with .3, else for -2."""

    def outcomes(state: tuple[str], action: tuple[str]) -> Outcomes:
        if action[0] == "stop":
            return [(0.3, ("over",), 10.0), (0.7, ("over",), -2.0)]
        return [(0.8, ("on",), 0.0), (0.1, ("better",), 0.0), (0.1, ("over",), 0.0)]

    def all_outcomes(state: tuple[str], action: tuple[str]) -> Outcomes:
        if state[0] == "better":
            return [(1.0, ("over",), 6.0 if action[0] == "stop" else 0.0)]
        return outcomes(state, action)

    return explore(
        "last throw", schema_of(["s"], s="categorical"), {("on",): 1.0}, [("stop",), ("wait",)],
        all_outcomes, lambda s: s[0] == "over", episodes=20_000, horizon=8,
    )  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cue_that_pays_three_steps_later(seed: int) -> None:
    world = cue()
    model, _ = learn_rspmn(world.generate(world.episodes, world.horizon, seed))
    assert model.meu(horizon=4) == pytest.approx(1.0)
    assert true_value(world, model.policy(4), 4) == world.optimum(4) == 1.0


@pytest.mark.parametrize("seed", SEEDS)
def test_two_bits_that_matter_only_together(seed: int) -> None:
    world = xor()
    model, info = learn_rspmn(world.generate(world.episodes, world.horizon, seed, "final"))
    assert model.meu(horizon=5) == pytest.approx(5.0)
    assert true_value(world, model.policy(5), 5) == world.optimum(5) == 5.0
    assert info.interfaces <= 4


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", [2, 50])
def test_noise_beside_the_cell(size: int, seed: int) -> None:
    world = beside_noise(size)
    model, info = learn_rspmn(world.generate(world.episodes, world.horizon, seed))
    assert model.meu(horizon=8) == pytest.approx(6.0)
    assert true_value(world, model.policy(8), 8) == pytest.approx(6.0)
    assert info.interfaces <= 11


@pytest.mark.parametrize("seed", SEEDS)
def test_a_logger_that_goes_by_noise(seed: int) -> None:
    world = beside_noise(2, policy=True)
    model, info = learn_rspmn(world.generate(world.episodes, world.horizon, seed))
    assert info.interfaces <= 11
    assert true_value(world, model.policy(8), 8) == pytest.approx(6.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_logger_that_goes_by_the_cell(seed: int) -> None:
    world = by_the_cell()
    model, info = learn_rspmn(world.generate(world.episodes, world.horizon, seed))
    assert info.interfaces <= 11
    assert model.meu(horizon=8) == true_value(world, model.policy(8), 8) == 6.0


@pytest.mark.parametrize("law", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_unavailable_is_not_offered(seed: int, law: bool) -> None:
    """Value iteration where only walking is possible at 1: v = (max(5, 1) or 1) + mean of v.

    It is declared, or taken from what was observed.
    """
    world = unavailable()
    log = world.generate(world.episodes, world.horizon, seed, "final")
    if law:
        schema = Schema(world.schema.order, ["a"], "u", world.schema.kinds, None, {"jump": "x < 1"})
        log = replace(log, schema=schema)
    model, info = learn_rspmn(log)
    assert info.interfaces == 2
    values = np.zeros(2)
    for _ in range(6):
        values = np.array([5.0, 1.0]) + values.mean()
    assert model.meu(horizon=6) == pytest.approx(values[0], abs=0.5)  # 1,800 coins are not even
    answers = {a.value: a for a in model.policy(6).action_values({"x": 1})}
    assert not answers["jump"].supported
    assert answers["walk"].supported
    assert model.policy(6).act({"x": 1}) == "walk"


def test_what_was_never_done_may_be_a_habit() -> None:
    """Whoever knows that one can jump at 1 says that x is to be ignored: it pays 5 there, too."""
    world = unavailable()
    log = world.generate(world.episodes, world.horizon, 0, "final")
    model, info = learn_rspmn(log, LearnConfig(ignore=["x"]))
    assert (info.interfaces, info.aside) == (1, {"x": Reason.DECLARED})
    assert model.meu({"x": 1}, horizon=6) == pytest.approx(30.0)
    assert model.policy(6).act({"x": 1}) == "jump"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stochastic_terminal_reward(seed: int) -> None:
    """Stopping is worth .3 · 10 - .7 · 2 = 1.6; better wait for a state where it is worth 6."""
    world = last_throw()
    model, _ = learn_rspmn(world.generate(world.episodes, world.horizon, seed))
    value = 0.0
    for _ in range(8):  # wait: .8 to be here again, .1 for 6
        value = max(1.6, 0.8 * value + (0.6 if value else 0.0))
    assert world.optimum(8) == pytest.approx(value)
    # a throw varies by 5.5, so the mean of some 10,000 is known to .055; three of these
    assert model.meu(horizon=8) == pytest.approx(world.optimum(8), abs=0.17)
    assert true_value(world, model.policy(8), 8) == pytest.approx(world.optimum(8), abs=0.02)
    stops = [a for a in model.policy(1).action_values({"s": "on"}) if a.value == "stop"]
    assert stops[0].utility == pytest.approx(1.6, abs=0.17)
