"""Random MDPs: each action leads to a few states, with random probabilities and rewards."""

import numpy as np

from rspmn.envs.mdp import MDP
from rspmn.schema import Schema


def random_mdp(
    seed: int, states: int = 20, actions: int = 3, branches: int = 4, horizon: int = 20
) -> MDP:
    """Return a random MDP; episodes start in one of the first three states.

    >>> random_mdp(0)
    MDP(random MDP, 20 states, 3 actions)
    """
    rng = np.random.default_rng([seed, 77])
    rows = states * actions
    successors = np.sort(rng.permuted(np.tile(np.arange(states), (rows, 1)), axis=1)[:, :branches])
    first = np.arange(states) < 3
    kinds = {"s": "integer", "a": "integer", "u": "continuous"}
    return MDP(
        "random MDP", Schema([["s"], ["a"]], ["a"], "u", kinds),
        tuple((s,) for s in range(states)), tuple((a,) for a in range(actions)),
        np.arange(rows + 1) * branches, successors.ravel(),
        rng.dirichlet(np.ones(branches), rows).ravel(), rng.random(rows * branches),
        first / first.sum(), np.zeros(states, dtype=bool), 1_000, horizon,
    )  # fmt: skip
