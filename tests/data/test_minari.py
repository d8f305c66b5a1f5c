"""Logs read from Minari data sets."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import rspmn
from rspmn import Followed
from rspmn.errors import DataError
from rspmn.learn import learn_rspmn

#: The newest that this Gymnasium has.
TAXI = max(name for name in gymnasium.registry if name.startswith("Taxi-v"))


@pytest.fixture
def minari(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return pytest.importorskip("minari")


def recorded(minari: Any, name: str, episodes: int) -> Any:
    """Record a data set of random actions, as `collect` draws them; Minari wants an author."""
    from minari.data_collector import EpisodeBuffer

    env = gymnasium.make(name)
    env.action_space.seed(7)
    buffers = []
    for episode in range(episodes):
        seen, _ = env.reset(seed=7 if episode == 0 else None)
        steps: dict[str, list[Any]] = {"actions": [], "rewards": [], "ends": [], "cuts": []}
        observations = [seen]
        while not steps["ends"] or not (steps["ends"][-1] or steps["cuts"][-1]):
            action = env.action_space.sample()
            seen, reward, terminated, truncated, _ = env.step(action)
            observations.append(seen)
            for part, value in zip(steps, (action, reward, terminated, truncated), strict=True):
                steps[part].append(value)
        parts = [list(part) for part in zip(*observations, strict=True)] if name[0] == "B" else None
        buffers.append(
            EpisodeBuffer(
                id=episode,
                observations=tuple(parts) if parts else observations,
                actions=steps["actions"],
                rewards=steps["rewards"],
                terminations=steps["ends"],
                truncations=steps["cuts"],
            )
        )
    return minari.create_dataset_from_buffers(
        dataset_id=f"test/{name.lower()}", buffer=buffers, env=env, eval_env=env, author="a",
        author_email="a@b.c", code_permalink="none", algorithm_name="random", description="random",
    )  # fmt: skip


def test_minari_is_what_collecting_gives(minari: Any) -> None:
    for name in ("FrozenLake-v1", TAXI, "Blackjack-v1"):
        log = rspmn.from_minari(recorded(minari, name, 10))
        same = rspmn.collect(gymnasium.make(name), episodes=10, seed=7)
        assert log.to_long() == same.to_long()
        assert log.schema == same.schema
        assert log.endings.tolist() == same.endings.tolist()


def test_minari_learned_from_directly(minari: Any) -> None:
    """Blackjack: to stick on 20 wins two games of three; to hit loses nearly all."""
    log = rspmn.from_minari(recorded(minari, "Blackjack-v1", 300))
    assert log.schema.information_sets[0] == ("observation_0", "observation_1", "observation_2")
    model, _ = learn_rspmn(log)
    state = {"observation_0": 20, "observation_1": 10, "observation_2": 0}
    assert model.best_decisions(state, horizon=5)[0].value == 0
    taxi, info = learn_rspmn(rspmn.from_minari(recorded(minari, TAXI, 3)))
    assert info.steps_unknown == 0  # most were truncated, and what followed is in the data
    assert taxi.meu(horizon=5) > -50


def test_odd_data_sets() -> None:
    episode = SimpleNamespace(
        observations=np.arange(3), actions=np.zeros(2, int), rewards=np.ones(2),
        terminations=np.array([False, False]), truncations=np.array([False, False]),
    )  # fmt: skip
    empty = SimpleNamespace(
        observations=np.arange(1), actions=np.zeros(0, int), rewards=np.zeros(0),
        terminations=np.zeros(0, bool), truncations=np.zeros(0, bool),
    )  # fmt: skip
    made = SimpleNamespace(
        observation_space=spaces.Discrete(9), action_space=spaces.Discrete(2),
        iterate_episodes=lambda: iter([empty, episode]),
    )  # fmt: skip
    log = rspmn.from_minari(made, observation="x", action="a", reward="u")
    assert log.endings.tolist() == [Followed.STATE]
    assert log.final_state(0) == {"x": 2}
    episode.observations = np.arange(2)
    with pytest.raises(DataError, match="episode 1: expected 3 observations and 2 actions"):
        rspmn.from_minari(made)
    made.iterate_episodes = lambda: iter([empty])
    with pytest.raises(DataError, match="there are no episodes with a step"):
        rspmn.from_minari(made)
    with pytest.raises(DataError, match="expected a Minari data set, found int"):
        rspmn.from_minari(3)
