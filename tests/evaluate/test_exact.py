"""The exact value of a policy, also where it falls back on `otherwise`."""

import numpy as np

from rspmn import Episodes, Schema
from rspmn.envs.mdp import MDP
from rspmn.evaluate import true_value
from rspmn.learn import learn_rspmn


def test_otherwise_may_be_the_action_zero() -> None:
    """Action 1 comes first and earns nothing; action 0 earns 1. State 1 is never logged."""
    kinds = {"s": "integer", "a": "integer", "u": "continuous"}
    schema = Schema([["s"], ["a"]], ["a"], "u", kinds)
    world = MDP(
        "two", schema, ((0,), (1,)), ((1,), (0,)), np.arange(5), np.array([0, 0, 1, 1]),
        np.ones(4), np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0]), np.zeros(2, dtype=bool),
        episodes=1, horizon=2,
    )  # fmt: skip
    table = {"episode": [0, 0], "time": [0, 1], "s": [0, 0], "a": [0, 1], "u": [1.0, 0.0]}
    model, _ = learn_rspmn(Episodes.from_long(table, schema, ending="end"))
    assert true_value(world, model.policy(2, otherwise=0), 2) == 2.0
    assert true_value(world, model.policy(2, otherwise=1), 2) == 0.0
