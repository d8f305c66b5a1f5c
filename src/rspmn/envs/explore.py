"""From rules to tables: MDPs of the states that can be reached from the start."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from rspmn.envs.mdp import MDP, Joint
from rspmn.schema import Schema

#: The possible outcomes of an action in a state: probability, next state, reward.
Outcomes = Iterable[tuple[float, Any, float]]
#: The probability of each next state and reward.
Row = dict[tuple[Joint, float], float]
#: What is true, by name.
Bits = Mapping[str, bool]


def explore(
    name: str,
    schema: Schema,
    start: Mapping[Any, float],
    actions: Sequence[Joint],
    outcomes: Callable[[Any, Any], Outcomes],
    terminal: Callable[[Any], bool] = lambda _: False,
    *,
    episodes: int,
    horizon: int,
) -> MDP:
    """Return the MDP of all states that can be reached, sorted.

    `outcomes(state, action)` is not called in terminal states.
    """
    table: dict[Joint, list[Row]] = {}
    open_states = list(start)
    while open_states:
        state = open_states.pop()
        if state in table:
            continue
        stays: Outcomes = [(1.0, state, 0.0)]
        over = terminal(state)
        table[state] = [_merged(stays if over else outcomes(state, a)) for a in actions]
        open_states += [after for row in table[state] for after, _ in row]
    states = tuple(sorted(table))
    place = {state: index for index, state in enumerate(states)}
    rows = [row for state in states for row in table[state]]
    return MDP(
        name,
        schema,
        states,
        tuple(actions),
        np.concatenate([[0], np.cumsum([len(row) for row in rows])]),
        np.array([place[after] for row in rows for after, _ in row]),
        np.array([probability for row in rows for probability in row.values()]),
        np.array([float(reward) for row in rows for _, reward in row]),
        np.array([start.get(state, 0.0) for state in states]),
        np.array([terminal(state) for state in states]),
        episodes,
        horizon,
    )


def _merged(outcomes: Outcomes) -> Row:
    """Add the probabilities of equal outcomes; leave out impossible ones."""
    row: Row = {}
    for probability, after, reward in outcomes:
        if probability > 0:
            row[after, reward] = row.get((after, reward), 0.0) + probability
    return row


# ---- factored MDPs -------------------------------------------------------------------


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
    """Return an MDP of booleans that are independent given the previous state and the action.

    Its states are those reached from the one in which the variables of `start` are true.

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
