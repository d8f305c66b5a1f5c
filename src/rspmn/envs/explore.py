"""From rules to tables: an MDP of the states that can be reached from the start."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rspmn.envs.mdp import MDP, Joint
from rspmn.schema import Schema

#: The possible outcomes of an action in a state: probability, next state, reward.
Outcomes = Iterable[tuple[float, Any, float]]
#: The probability of each next state and reward.
Row = dict[tuple[Joint, float], float]


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
