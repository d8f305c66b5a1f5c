"""Finite worlds, whose values are exact: domains, random MDPs, a cliff and rings of machines."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from rspmn.envs.domains import DOMAINS, WORLDS
from rspmn.envs.explore import Outcomes, explore
from rspmn.envs.mdp import MDP
from rspmn.envs.random_mdp import random_mdp
from rspmn.schema import Schema
from rspmn.types import Array

ROWS, COLUMNS = 4, 12
MOVES = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}
FALL = -100.0


@cache
def cliff_walking() -> MDP:
    """Return CliffWalking: along the last row, but for its ends, is a cliff.

    A move costs 1; one over the edge costs 100, and leads back to the start.

    >>> cliff_walking().optimum(100)
    -13.0
    """
    kinds = {"row": "integer", "column": "integer", "move": "categorical", "reward": "continuous"}
    return explore(
        "CliffWalking", Schema([["row", "column"], ["move"]], ["move"], "reward", kinds),
        {(ROWS - 1, 0): 1.0}, [(move,) for move in MOVES], _walked,
        lambda state: state == (ROWS - 1, COLUMNS - 1), episodes=300, horizon=100,
    )  # fmt: skip


def _walked(state: tuple[int, int], action: tuple[str]) -> Outcomes:
    row = min(max(state[0] + MOVES[action[0]][0], 0), ROWS - 1)
    column = min(max(state[1] + MOVES[action[0]][1], 0), COLUMNS - 1)
    if row == ROWS - 1 and 0 < column < COLUMNS - 1:
        return [(1.0, (ROWS - 1, 0), FALL)]
    return [(1.0, (row, column), -1.0)]


class Finite(NamedTuple):
    """A finite world, and the episodes of its log."""

    world: Callable[[int], MDP]  # of a seed
    episodes: int = 1_000
    careful: bool = False  # whether what costs most is never done at random

    def logger(self, world: MDP, share: float) -> Array:  # [steps, states, actions]
        """Return who acts optimally, but for a share of random actions."""
        actions = len(world.actions)
        best = np.eye(actions)[world.value_iteration(steps_of(world))[1]]
        least = np.minimum.reduceat(world.rewards, world.indptr[:-1]).reshape(-1, actions)
        some = np.ones_like(least) if not self.careful else (least > world.rewards.min()) * 1.0
        return np.asarray((1 - share) * best + share * some / some.sum(axis=1, keepdims=True))


def steps_of(world: MDP) -> int:
    """Return the horizon of a world; a longer one for those of few steps."""
    return world.horizon if world.horizon >= 10 else 20


CASES: dict[str, Finite] = {
    **{name: Finite(lambda _, build=build: build()) for name, build in DOMAINS.items()},  # type: ignore[misc]
    "random MDP": Finite(lambda seed: random_mdp(1_000 + seed)),
    "random MDP, 50 episodes": Finite(lambda seed: random_mdp(1_000 + seed), 50),
    "CrossingTraffic, 200 episodes": Finite(lambda _: DOMAINS["CrossingTraffic"](), 200),
    "CliffWalking": Finite(lambda _: cliff_walking(), 300),
    "careful cliff": Finite(lambda _: cliff_walking(), 300, careful=True),
    "ring of machines": Finite(lambda _: WORLDS["SysAdmin"](), 100),
}
