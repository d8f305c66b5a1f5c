"""The domains as Gymnasium environments: conventions, seeds, and the values of the tables."""

from itertools import count
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rspmn.envs.domains import DOMAINS
from rspmn.envs.mdp_env import STEPS, MDPEnv, make_env
from rspmn.errors import EvidenceError

NAMES = [*DOMAINS, "SysAdmin"]


def test_the_limits_are_the_papers() -> None:
    assert {name: make_env(name).mdp.horizon for name in NAMES} == STEPS


@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_finds_nothing_to_say(name: str) -> None:
    """Warnings are errors here."""
    check_env(gymnasium.make(f"rspmn/{name}-v0").unwrapped)
    check_env(gymnasium.make(f"rspmn.envs.mdp_env:rspmn/{name}-v0", render_mode="ansi").unwrapped)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_draws_the_same(name: str) -> None:
    def walk(seed: int) -> list[Any]:
        env = gymnasium.make(f"rspmn/{name}-v0")
        env.action_space.seed(3)
        observation, _ = env.reset(seed=seed)
        found: list[Any] = [np.asarray(observation).tolist()]
        while True:
            observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            found.append((np.asarray(observation).tolist(), reward, terminated, truncated))
            if terminated or truncated:
                return found

    assert walk(7) == walk(7)
    assert len({str(walk(seed)) for seed in range(30)}) > 1 or name in ("GridUniverse", "Maze")


@pytest.mark.parametrize("name", ["GridUniverse", "FrozenLake", "Taxi", "Elevators"])
def test_the_best_policy_earns_its_value(name: str) -> None:
    """Within five standard errors of the exact optimum."""
    env = make_env(name)
    mdp, horizon = env.mdp, STEPS[name]
    _, policy = mdp.value_iteration(horizon)
    place = {state: number for number, state in enumerate(mdp.states)}
    returns = []
    observation, _ = env.reset(seed=0)
    for _ in range(400):
        observation, _ = env.reset()
        total = 0.0
        for t in range(horizon):
            at = place[tuple(env.state(observation).values())]
            observation, reward, terminated, truncated, _ = env.step(policy[t, at])
            assert not truncated
            total += reward
            if terminated:
                break
        returns.append(total)
    error = np.std(returns) / len(returns) ** 0.5
    assert np.mean(returns) == pytest.approx(mdp.optimum(horizon), abs=5 * error + 1e-9)


def test_truncation_after_the_papers_steps() -> None:
    env = gymnasium.make("rspmn/Elevators-v0")
    env.reset(seed=0)
    for t in count(1):
        _, _, terminated, truncated, _ = env.step(0)
        assert not terminated
        assert truncated == (t == 10)
        if truncated:
            break


def test_codes_and_values() -> None:
    env = make_env("Elevators")
    observation, _ = env.reset(seed=0)
    state = env.state(observation)
    assert state["elevator_closed_e0"] is True
    made = env.decisions(1)
    assert env.action(made) == 1
    assert made["move_current_dir_e0"] is True
    lake = make_env("FrozenLake")
    assert lake.action("down") == 1
    assert lake.decisions(1) == {"action": "down"}


def test_it_can_be_shown() -> None:
    env = MDPEnv(DOMAINS["Maze"](), render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "x=0, y=0\n"
    env.step(env.action("E"))
    assert "earned" in env.render()
    assert make_env("Maze").render() is None


def test_refusals() -> None:
    env = make_env("FrozenLake")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(EvidenceError, match="expected a Discrete"):
        env.step(9)
    with pytest.raises(EvidenceError, match="is not an action: did you mean 'down'"):
        env.action("dwn")
    with pytest.raises(EvidenceError, match="render_mode"):
        make_env("Maze", render_mode="human")
