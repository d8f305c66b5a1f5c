"""Elevators: the first MDP instance of IPPC 2011."""

from functools import lru_cache

from rspmn.envs.explore import Bits, factored
from rspmn.envs.mdp import MDP

FLOORS = ["f0", "f1", "f2"]
BOTTOM, TOP = "f0", "f2"
ARRIVES = {"f0": 0.0, "f1": 0.14635538, "f2": 0.0}  # a person, per step and direction
RIGHT_WAY, WRONG_WAY = -0.75, -3.0  # per step and person in the elevator

GOING_UP, GOING_DOWN = "person_in_elevator_going_up_e0", "person_in_elevator_going_down_e0"
DIR_UP, CLOSED = "elevator_dir_up_e0", "elevator_closed_e0"
MOVE, CLOSE = "move_current_dir_e0", "close_door_e0"
OPEN_UP, OPEN_DOWN = "open_door_going_up_e0", "open_door_going_down_e0"


@lru_cache(maxsize=1)
def elevators() -> MDP:
    """Return the elevator of three floors: bring who comes to the middle one up or down.

    The elevator moves a floor in its direction if its door is closed; the direction is changed
    by opening the door for those who go that way. They enter at an open door where they wait,
    and leave as soon as they are at the top or the bottom. A step costs 1 for each direction in
    which someone waits at a floor, 0.75 for those in the elevator who go its way and 3 for those
    who go the other.

    >>> round(elevators().optimum(10), 6)
    -7.330074
    """
    return factored(
        "Elevators",
        [
            *(f"person_waiting_up_{floor}" for floor in FLOORS),
            *(f"person_waiting_down_{floor}" for floor in FLOORS),
            GOING_UP,
            GOING_DOWN,
            DIR_UP,
            CLOSED,
            *(_at(floor) for floor in FLOORS),
        ],
        [MOVE, OPEN_UP, OPEN_DOWN, CLOSE],
        [DIR_UP, CLOSED, _at(BOTTOM)],
        _chances,
        _reward,
        episodes=200_000,
        horizon=10,
    )


def _at(floor: str) -> str:
    return f"elevator_at_floor_e0_{floor}"


def _chances(state: Bits, action: str) -> dict[str, float]:
    here = next(floor for floor in FLOORS if state[_at(floor)])
    moved = _next_floor(here, state[DIR_UP]) if action == MOVE and state[CLOSED] else here
    after: dict[str, float] = {_at(floor): floor == moved for floor in FLOORS}
    after[DIR_UP] = action == OPEN_UP or (state[DIR_UP] and action != OPEN_DOWN)
    after[CLOSED] = action == CLOSE or (state[CLOSED] and action not in (OPEN_UP, OPEN_DOWN))
    ways = ("up", GOING_UP, TOP, state[DIR_UP]), ("down", GOING_DOWN, BOTTOM, not state[DIR_UP])
    for way, inside, last, is_direction in ways:
        entering = is_direction and not state[CLOSED]  # those who wait here and go that way
        after[inside] = here != last if state[inside] else entering and state[_waiting(way, here)]
        for floor in FLOORS:
            stays = state[_waiting(way, floor)] and not (entering and floor == here)
            after[_waiting(way, floor)] = 1.0 if stays else ARRIVES[floor]
    return after


def _waiting(way: str, floor: str) -> str:
    return f"person_waiting_{way}_{floor}"


def _next_floor(here: str, up: bool) -> str:
    place = FLOORS.index(here) + (1 if up else -1)
    return FLOORS[min(max(place, 0), len(FLOORS) - 1)]


def _reward(state: Bits) -> float:
    waiting = sum(state[_waiting(way, floor)] for way in ("up", "down") for floor in FLOORS)
    inside = [state[DIR_UP]] * state[GOING_UP] + [not state[DIR_UP]] * state[GOING_DOWN]
    return sum(RIGHT_WAY if right else WRONG_WAY for right in inside) - waiting
