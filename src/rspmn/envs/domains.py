"""The seven domains of the paper's experiments (Sec. 6), by name."""

from collections.abc import Callable

from rspmn.envs.crossing_traffic import crossing_traffic
from rspmn.envs.elevators import elevators
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.envs.grid_universe import grid_universe
from rspmn.envs.maze import maze
from rspmn.envs.mdp import MDP
from rspmn.envs.skill_teaching import skill_teaching
from rspmn.envs.sys_admin import sys_admin
from rspmn.envs.taxi import taxi

#: With the paper's numbers of episodes and steps.
DOMAINS: dict[str, Callable[[], MDP]] = {
    "GridUniverse": grid_universe,
    "FrozenLake": frozen_lake,
    "Maze": maze,
    "Taxi": taxi,
    "SkillTeaching": skill_teaching,
    "Elevators": elevators,
    "CrossingTraffic": crossing_traffic,
}

#: All domains that logs can be generated of by name.
WORLDS: dict[str, Callable[[], MDP]] = {**DOMAINS, "SysAdmin": sys_admin}
