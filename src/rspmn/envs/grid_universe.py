"""GridUniverse: the smallest of the paper's domains."""

from rspmn.envs.explore import Outcomes, explore
from rspmn.envs.mdp import MDP
from rspmn.schema import Schema

ROWS, COLUMNS = 3, 4
START, GOAL, LAVA, WALL = 0, 11, 7, 5
MOVES = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}  # row, column


def grid_universe() -> MDP:
    """Return the 3×4 grid: walk from the first cell to the last, round the lava.

    Cells are counted row by row:

        0  1  2  3
        4  #  6  lava
        8  9 10  goal

    A move into the wall or off the grid stays where it is. Entering a cell earns -1, the goal
    instead 10 and the lava -10; both end the episode.

    >>> grid_universe().optimum(8)  # 4 moves at -1, then the goal: 10
    6.0
    """
    schema = Schema(
        [["cell"], ["action"]],
        ["action"],
        "reward",
        {"cell": "integer", "action": "categorical", "reward": "continuous"},
    )
    return explore(
        "GridUniverse",
        schema,
        {(START,): 1.0},
        [(move,) for move in MOVES],
        _outcomes,
        lambda state: state[0] in (GOAL, LAVA),
        episodes=100_000,
        horizon=8,
    )


def _outcomes(state: tuple[int], action: tuple[str]) -> Outcomes:
    row, column = divmod(state[0], COLUMNS)
    row, column = row + MOVES[action[0]][0], column + MOVES[action[0]][1]
    cell = row * COLUMNS + column
    if not (0 <= row < ROWS and 0 <= column < COLUMNS) or cell == WALL:
        cell = state[0]
    return [(1.0, (cell,), {GOAL: 10.0, LAVA: -10.0}.get(cell, -1.0))]
