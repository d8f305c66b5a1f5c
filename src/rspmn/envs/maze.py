"""Maze: a 3×3 maze with the rewards of gym-maze."""

from rspmn.envs.explore import Outcomes, explore
from rspmn.envs.mdp import MDP
from rspmn.schema import Schema

MOVES = {"N": (0, -1), "S": (0, 1), "E": (1, 0), "W": (-1, 0)}  # x, y; y grows downwards
GOAL = (2, 2)
#: The pairs of cells (x, y) with no wall between them.
PASSAGES = [
    {(0, 0), (1, 0)}, {(1, 0), (2, 0)}, {(2, 0), (2, 1)}, {(2, 1), (2, 2)},
    {(0, 0), (0, 1)}, {(0, 1), (0, 2)}, {(0, 2), (1, 2)}, {(1, 2), (1, 1)},
]  # fmt: skip


def maze() -> MDP:
    """Return the maze: from (0, 0) to (2, 2) in 4 moves, with one long dead end.

        +---+---+---+
        | S         |
        +   +---+   +
        |   |   |   |
        +   +   +   +
        |       | G |
        +---+---+---+

    A move against a wall stays where it is. A move costs 0.1 / 9; the one that reaches the goal
    earns 1 instead and ends the episode.

    gym-maze's sample of this size is stored as an array that is not available. Known of it are
    the shortest path, 4 moves, and the value of moving at random for 8 steps, -.038488. Of all
    3×3 mazes ten fit, each with a single path between any two cells; this is one of them.

    >>> round(maze().optimum(8), 6)  # 3 moves at -0.1 / 9, then 1
    0.966667
    """
    schema = Schema(
        [["x", "y"], ["action"]],
        ["action"],
        "reward",
        {"x": "integer", "y": "integer", "action": "categorical", "reward": "continuous"},
    )
    return explore(
        "Maze",
        schema,
        {(0, 0): 1.0},
        [(move,) for move in MOVES],
        _outcomes,
        lambda state: state == GOAL,
        episodes=100_000,
        horizon=8,
    )


def _outcomes(state: tuple[int, int], action: tuple[str]) -> Outcomes:
    dx, dy = MOVES[action[0]]
    after = state[0] + dx, state[1] + dy
    if {state, after} not in PASSAGES:
        after = state
    return [(1.0, after, 1.0 if after == GOAL else -0.1 / 9)]
