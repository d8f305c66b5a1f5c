"""SysAdmin: a ring of computers, of which one a step can be rebooted.

Not one of the paper's domains. A state has a boolean for each machine, so there are many states,
but each machine depends only on itself, one neighbour and the decision.
"""

from functools import lru_cache
from itertools import product

import numpy as np

from rspmn.envs.mdp import MDP
from rspmn.schema import Schema

STAYS_UP = {True: 0.95, False: 0.70}  # a machine that runs, by whether its neighbour does
COMES_UP = 0.1  # a machine that is down, by itself
REBOOT = -0.75
NONE = "none"


@lru_cache(maxsize=4)
def sys_admin(machines: int = 8) -> MDP:
    """Return the ring: keep the machines running, at a cost for each reboot.

    A machine that runs continues to run with probability .95, or .7 if the machine before it in
    the ring is down. One that is down comes up by itself with probability .1, and surely if it is
    rebooted, which also works on a machine that runs. A step earns 1 for each machine that runs,
    less .75 for a reboot. At first all run.

    >>> sys_admin(2).optimum(1)
    2.0
    """
    names = [f"m{k}" for k in range(machines)]
    states = tuple(product((False, True), repeat=machines))
    up = np.array(states)  # [S, machines]
    stays = np.where(np.roll(up, 1, axis=1), STAYS_UP[True], STAYS_UP[False])
    chance = np.where(up, stays, COMES_UP)
    actions = (NONE, *names)
    tables = []
    for action in actions:
        true_next = chance.copy()
        if action != NONE:
            true_next[:, names.index(action)] = 1.0
        joint = np.ones((len(states), 1))
        for k in range(machines):  # states are in the order of their bits
            both = np.stack([1 - true_next[:, k], true_next[:, k]], axis=1)
            joint = (joint[:, :, None] * both[:, None, :]).reshape(len(states), -1)
        tables.append(joint)
    table = np.stack(tables, axis=1).reshape(-1, len(states))  # [S * A, S]
    row, after = np.nonzero(table)
    reward = up.sum(axis=1)[:, None] + np.where(np.array(actions) == NONE, 0.0, REBOOT)
    return MDP(
        "SysAdmin",
        Schema(
            [names, ["reboot"]],
            ["reboot"],
            "reward",
            dict.fromkeys(names, "boolean") | {"reboot": "categorical", "reward": "continuous"},
        ),
        states,
        tuple((action,) for action in actions),
        np.searchsorted(row, np.arange(len(table) + 1)),
        after,
        table[row, after],
        reward.ravel()[row],
        np.array([float(all(state)) for state in states]),
        np.zeros(len(states), dtype=bool),
        episodes=1_000,
        horizon=20,
    )
