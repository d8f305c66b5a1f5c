"""Taxi: gymnasium's rules."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from rspmn.envs.explore import Outcomes, explore
from rspmn.envs.mdp import MDP
from rspmn.schema import Schema

SIZE = 5
STANDS = [(0, 0), (0, 4), (4, 0), (4, 3)]  # row, column of R, G, Y and B
IN_TAXI = 4  # where the passenger is when at none of the stands
MOVES = {"south": (1, 0), "north": (-1, 0), "east": (0, 1), "west": (0, -1)}
ACTIONS = [*MOVES, "pickup", "dropoff"]
#: Cells (row, column) with a wall on their east side.
WALLS = [(0, 1), (1, 1), (3, 0), (4, 0), (3, 2), (4, 2)]

State = tuple[int, int, int, int]  # row, column, passenger, destination


@lru_cache(maxsize=2)
def taxi(one_variable: bool = False) -> MDP:
    """Return the taxi: fetch the passenger at one stand, bring them to another.

        R     |        G
              |

          |      |
        Y |      | B

    The passenger is at stand 0 to 3 (R, G, Y, B) or, 4, in the taxi. An action costs 1; to pick
    up where no one waits, or to drop off no one or away from the stands, costs 10; to drop off
    at the destination earns 20 and ends the episode. Any cell and any two different stands are
    as likely to be the first. The log's actions are the best one with .3, else drawn uniformly.

    With `one_variable` the state is one number below 500, as gymnasium counts them.

    >>> round(taxi().optimum(50), 3)
    7.93
    """
    starts = [
        (row, column, passenger, destination)
        for row in range(SIZE)
        for column in range(SIZE)
        for passenger in range(len(STANDS))
        for destination in range(len(STANDS))
        if passenger != destination
    ]
    names = ["row", "col", "passenger", "destination"]
    made = explore(
        "Taxi",
        _schema(names),
        dict.fromkeys(starts, 1 / len(starts)),
        [(action,) for action in ACTIONS],
        _outcomes,
        lambda state: state[2] == state[3],
        episodes=20_000,
        horizon=50,
    )
    best = made.value_iteration(100)[1][0]  # far more than any ride takes
    made = replace(made, behaviour=0.3 * np.eye(len(ACTIONS))[best] + 0.7 / len(ACTIONS))
    if one_variable:
        numbers = np.ravel_multi_index(np.array(made.states).T, (SIZE, SIZE, 5, 4)).tolist()
        made = replace(made, schema=_schema(["state"]), states=tuple((n,) for n in numbers))
    return made


def _schema(names: list[str]) -> Schema:
    kinds = {"action": "categorical", "reward": "continuous"} | dict.fromkeys(names, "integer")
    return Schema([names, ["action"]], ["action"], "reward", kinds)


def _outcomes(state: State, action: tuple[str]) -> Outcomes:
    row, column, passenger, destination = state
    stand = STANDS.index((row, column)) if (row, column) in STANDS else None
    reward = -1.0
    if action[0] in MOVES:
        row, column = _moved(row, column, *MOVES[action[0]])
    elif action[0] == "pickup" and passenger == stand:
        passenger = IN_TAXI
    elif action[0] == "dropoff" and passenger == IN_TAXI and stand is not None:
        passenger, reward = stand, 20.0 if stand == destination else -1.0
    else:
        reward = -10.0
    return [(1.0, (row, column, passenger, destination), reward)]


def _moved(row: int, column: int, down: int, right: int) -> tuple[int, int]:
    if right and (row, min(column, column + right)) in WALLS:
        return row, column
    return min(max(row + down, 0), SIZE - 1), min(max(column + right, 0), SIZE - 1)
