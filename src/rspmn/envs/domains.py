"""The seven domains of the paper's experiments (Sec. 5), by name."""

from collections.abc import Callable

from rspmn.envs.crossing_traffic import crossing_traffic
from rspmn.envs.elevators import elevators
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.envs.grid_universe import grid_universe
from rspmn.envs.maze import maze
from rspmn.envs.mdp import MDP
from rspmn.envs.skill_teaching import skill_teaching
from rspmn.envs.taxi import taxi

__all__ = ["DOMAINS"]

#: Each as the paper logs it.
DOMAINS: dict[str, Callable[[], MDP]] = {
    "GridUniverse": grid_universe,
    "FrozenLake": frozen_lake,
    "Maze": maze,
    "Taxi": taxi,
    "SkillTeaching": skill_teaching,
    "Elevators": elevators,
    "CrossingTraffic": crossing_traffic,
}
