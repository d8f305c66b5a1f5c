"""CrossingTraffic: the first MDP instance of IPPC 2011."""

from functools import lru_cache

from rspmn.envs.explore import Bits, factored
from rspmn.envs.mdp import MDP

SIZE = 3
CELLS = [(x, y) for x in range(1, SIZE + 1) for y in range(1, SIZE + 1)]
GOAL = (3, 3)
ARRIVES = 0.3  # a car, at the east end of the road
MOVES = {
    "move_north": (0, 1), "move_south": (0, -1), "move_east": (1, 0), "move_west": (-1, 0),
}  # fmt: skip


@lru_cache(maxsize=1)
def crossing_traffic() -> MDP:
    """Return the robot that crosses a road: from x3 y1 in the south to x3 y3 in the north.

    Cars drive west along y2, one cell a step; at its east end a car comes with .3. A robot that
    shares its cell with a car is gone with the next step, for good. A step costs 1, but nothing
    once the robot is at the goal, where it stays.

    >>> round(crossing_traffic().optimum(15), 6)
    -4.428556
    """
    return factored(
        "CrossingTraffic",
        [f"{fluent}_x{x}_y{y}" for fluent in ("robot_at", "obstacle_at") for x, y in CELLS],
        list(MOVES),
        ["robot_at_x3_y1", "obstacle_at_x1_y2", "obstacle_at_x3_y2"],
        _chances,
        lambda state: 0.0 if state[_robot(*GOAL)] else -1.0,
        episodes=100_000,
        horizon=15,
    )


def _robot(x: int, y: int) -> str:
    return f"robot_at_x{x}_y{y}"


def _obstacle(x: int, y: int) -> str:
    return f"obstacle_at_x{x}_y{y}"


def _chances(state: Bits, action: str) -> dict[str, float]:
    after = dict.fromkeys(state, 0.0)
    for x in range(1, SIZE):
        after[_obstacle(x, 2)] = state[_obstacle(x + 1, 2)]  # the other rows are free
    after[_obstacle(SIZE, 2)] = ARRIVES
    here = next((cell for cell in CELLS if state[_robot(*cell)]), None)
    if here == GOAL:
        after[_robot(*GOAL)] = 1.0
    elif here is not None and not state[_obstacle(*here)]:
        dx, dy = MOVES.get(action, (0, 0))
        there = here[0] + dx, here[1] + dy
        after[_robot(*(there if there in CELLS else here))] = 1.0
    return after
