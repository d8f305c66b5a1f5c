"""Spaces of Gymnasium as columns, and logs collected from environments."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import rspmn
from rspmn import Followed, Kind
from rspmn.data.gymnasium import FlatSpace
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.errors import DataError
from rspmn.learn import learn_rspmn


class Counting(gymnasium.Env[Any, Any]):
    """Counts to three, five times over; every part of what it shows says how far it is."""

    def __init__(self, observation_space: spaces.Space[Any], action_space: Any, make: Any) -> None:
        self.observation_space, self.action_space, self.make = observation_space, action_space, make
        self.t, self.episode = 0, -1

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t, self.episode = 0, self.episode + 1
        return self.make(0), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action in self.action_space
        self.t += 1
        over = self.t == 3
        return self.make(self.t), 0.5 * self.t, over and self.episode % 2 == 0, over, {}


KINDS: dict[str, tuple[Any, Any, dict[str, list[Any]]]] = {
    "Discrete from 5": (
        spaces.Discrete(4, start=5),
        lambda t: np.int64(5 + t),
        {"seen": [5, 6, 7, 8]},
    ),
    "MultiDiscrete": (
        spaces.MultiDiscrete([4, 9], start=[0, 2]),
        lambda t: np.array([t, 2 + 2 * t]),
        {"seen_0": [0, 1, 2, 3], "seen_1": [2, 4, 6, 8]},
    ),
    "MultiBinary": (
        spaces.MultiBinary(2),
        lambda t: np.array([t % 2, t // 2], dtype=np.int8),
        {"seen_0": [False, True, False, True], "seen_1": [False, False, True, True]},
    ),
    "Box": (
        spaces.Box(0, 9, (2, 1)),
        lambda t: np.array([[t / 4], [2.0]], dtype=np.float32),
        {"seen_0_0": [0.0, 0.25, 0.5, 0.75], "seen_1_0": [2.0] * 4},
    ),
    "Text": (spaces.Text(3, charset="abcd"), lambda t: "abcd"[t], {"seen": list("abcd")}),
    "Dict of Tuple": (
        spaces.Dict(
            pair=spaces.Tuple([spaces.Discrete(4), spaces.Box(0, 9)]), on=spaces.Discrete(2)
        ),
        lambda t: {"pair": (np.int64(t), np.array([t / 2], np.float32)), "on": np.int64(t % 2)},
        {"seen_on": [0, 1, 0, 1], "seen_pair_0": [0, 1, 2, 3], "seen_pair_1_0": [0, 0.5, 1, 1.5]},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_spaces_as_columns(kind: str) -> None:
    space, make, expected = KINDS[kind]
    env = Counting(space, spaces.MultiDiscrete([2, 3], start=[0, 7]), make)
    log = rspmn.collect(env, episodes=3, observation="seen")
    assert set(log.schema.information_sets[0]) == set(expected)
    assert log.schema.decisions == ("action_0", "action_1")
    for episode in range(3):
        for name, values in expected.items():
            assert [step[name] for step in log.steps(episode)] == values[:3]
        assert [step["reward"] for step in log.steps(episode)] == [0.5, 1.0, 1.5]
        assert {step["action_1"] for step in log.steps(episode)} <= {7, 8, 9}
    # the second was truncated: what followed is known; the others terminated
    assert log.endings.tolist() == [Followed.END, Followed.STATE, Followed.END]
    assert log.final_state(1) == {name: values[3] for name, values in expected.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_space_there_and_back(kind: str) -> None:
    space, make, _ = KINDS[kind]
    flat = FlatSpace(space, "seen")
    for t in range(4):
        assert flat.values(flat.compose(flat.values(make(t)))) == flat.values(make(t))
        assert flat.compose(flat.values(make(t))) in space


def test_kinds_of_columns() -> None:
    assert FlatSpace(spaces.Discrete(500), "x").kinds == {"x": Kind.CATEGORICAL}
    assert FlatSpace(spaces.MultiBinary([1, 1]), "x").kinds == {"x_0_0": Kind.BOOLEAN}
    assert FlatSpace(spaces.Box(0, 1, ()), "x").kinds == {"x": Kind.CONTINUOUS}


def test_the_same_seed_the_same_log(tmp_path: Path) -> None:
    env = gymnasium.make("FrozenLake-v1")
    one, two, other = (rspmn.collect(env, episodes=50, seed=s).to_long() for s in (1, 1, 2))
    assert one == two
    assert one != other


def test_a_log_learned_from_and_acted_by(tmp_path: Path) -> None:
    """FrozenLake, 4x4, slippery: 100 steps, of which the optimum reaches the goal in 0.7442."""
    env = gymnasium.make("FrozenLake-v1")
    log = rspmn.collect(env, episodes=4000, seed=3)
    log.to_parquet(tmp_path / "log.parquet")
    windows = rspmn.windows(tmp_path / "log.parquet", log.schema, terminated="terminated")
    model, _ = learn_rspmn(windows)
    optimum = frozen_lake().optimum(100)
    assert model.meu(horizon=100) == pytest.approx(optimum, abs=0.05)
    played = rspmn.collect(env, model.policy(horizon=100), episodes=100, seed=5)
    won = np.add.reduceat(played.columns["reward"].data, played.offsets[:-1]).mean()
    # 100 games: three standard errors of the optimum's win rate
    assert won > optimum - 3 * np.sqrt(optimum * (1 - optimum) / 100)


def test_functions_and_cuts() -> None:
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    log = rspmn.collect(env, lambda seen: 0 if seen == 0 else 1, episodes=2, max_steps=4)
    assert log.lengths.tolist() == [4, 4]
    assert log.endings.tolist() == [Followed.STATE] * 2
    assert log.final_state(0) == {"observation": 0}


def test_what_cannot_be_collected() -> None:
    env = gymnasium.make("FrozenLake-v1")
    with pytest.raises(DataError, match="expected 1 episode or more, found 0"):
        rspmn.collect(env, episodes=0)
    with pytest.raises(DataError, match="expected max_steps of 1 or more, found 0"):
        rspmn.collect(env, max_steps=0)
    with pytest.raises(DataError, match="expected a policy, a function or None, found int"):
        rspmn.collect(env, 3)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="columns of the same name"):
        rspmn.collect(env, episodes=1, observation="action")
    with pytest.raises(DataError, match="cannot make columns of Sequence"):
        FlatSpace(spaces.Sequence(spaces.Discrete(2)), "x")
    with pytest.raises(DataError, match="21168 columns are too many"):
        FlatSpace(spaces.Box(0, 255, (84, 84, 3), np.uint8), "x")
    log = rspmn.collect(env, episodes=1)
    with pytest.raises(DataError, match=r"log.csv: expected a name ending in .parquet"):
        log.to_parquet("log.csv")


def test_rewards_must_be_numbers() -> None:
    class Odd(Counting):
        earned: Any = None

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            seen, _, terminated, truncated, info = super().step(action)
            return seen, self.earned, terminated, truncated, info

    for earned, fine in ((np.array([1.0]), True), (float("nan"), False), (None, False)):
        env = Odd(spaces.Discrete(4), spaces.Discrete(2), np.int64)
        env.earned = earned
        if fine:
            assert rspmn.collect(env, episodes=1).columns["reward"].data.tolist() == [1.0] * 3
        else:
            with pytest.raises(DataError, match="collect: step 0 earned"):
                rspmn.collect(env, episodes=1)
    with pytest.raises(DataError, match="cannot make columns of OneOf"):
        FlatSpace(spaces.OneOf([spaces.Discrete(2)]), "x")


def test_observations_that_are_changed_in_place() -> None:
    class Counter(gymnasium.Env[Any, Any]):
        observation_space = spaces.Box(0, 9, (1,), np.int64)
        action_space = spaces.Discrete(2)

        def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
            self.at = np.zeros(1, np.int64)
            return self.at, {}

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            self.at += 1
            return self.at, 1.0, bool(self.at[0] == 3), False, {}

    log = rspmn.collect(Counter(), episodes=2)
    name = log.schema.state_variables[0]
    assert [[step[name] for step in log[k]] for k in range(2)] == [[0, 1, 2]] * 2
