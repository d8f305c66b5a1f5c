"""Factored MDPs of booleans that are independent given the previous state and the action."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np

from rspmn.envs.explore import Outcomes, explore
from rspmn.envs.mdp import MDP
from rspmn.schema import Schema

#: What is true, by name.
Bits = Mapping[str, bool]


def factored(
    name: str,
    variables: Sequence[str],
    decisions: Sequence[str],
    start: Sequence[str],
    chances: Callable[[Bits, str], Mapping[str, float]],
    reward: Callable[[Bits], float],
    *,
    episodes: int,
    horizon: int,
) -> MDP:
    """Return the MDP of what can be reached from `start`, the variables that are true at first.

    `chances(state, action)` gives the probability that each variable is true next, where action
    is the name of the decision that is true, or "" if none is: at most one can be. `reward` is
    that of the state that is left.
    """

    def outcomes(state: tuple[bool, ...], action: tuple[bool, ...]) -> Outcomes:
        bits = dict(zip(variables, state, strict=True))
        chosen = "".join(d for d, is_true in zip(decisions, action, strict=True) if is_true)
        true_next = chances(bits, chosen)
        return [(p, after, reward(bits)) for p, after in _drawn([true_next[v] for v in variables])]

    schema = Schema(
        [variables, *([decision] for decision in decisions)],
        decisions,
        "reward",
        dict.fromkeys([*variables, *decisions], "boolean") | {"reward": "continuous"},
    )
    noop = (False,) * len(decisions)
    return explore(
        name,
        schema,
        {tuple(variable in start for variable in variables): 1.0},
        [noop, *(tuple(row) for row in np.eye(len(decisions), dtype=bool).tolist())],
        outcomes,
        episodes=episodes,
        horizon=horizon,
    )


def _drawn(chances: Sequence[float]) -> list[tuple[float, tuple[bool, ...]]]:
    """Return every draw of independent booleans that is possible, with its probability."""
    each = [
        [(p, is_true) for p, is_true in ((1 - chance, False), (chance, True)) if p > 0]
        for chance in chances
    ]
    return [
        (float(np.prod([p for p, _ in draw])), tuple(is_true for _, is_true in draw))
        for draw in product(*each)
    ]
