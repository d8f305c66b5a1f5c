"""Logs of explicit MDPs, generated for all episodes at once, in one loop over time."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rspmn.data.cells import Cells
from rspmn.data.columns import MISSING, Column, encode
from rspmn.data.episodes import Episodes, Followed
from rspmn.errors import DataError, did_you_mean
from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints
from rspmn.values import Value

if TYPE_CHECKING:
    from rspmn.envs.mdp import MDP


#: How a log shows that an episode ended: see `MDP.generate`.
Layout = Literal["flags", "final", "padded", "terminal_row"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


def draw_log(
    mdp: "MDP",
    episodes: int,
    horizon: int,
    rng: np.random.Generator,
    layout: Layout,
    chances: Callable[[int], Array],
) -> Episodes:
    """Draw a log; `chances(t)` are the probabilities [S, A] of the actions at step t."""
    states, actions, rewards = _walk(mdp, episodes, horizon, rng, chances)
    lengths, endings = _cut(mdp.terminal[states], layout)
    kept = np.arange(horizon) < lengths[:, None]
    visited = states[:, :-1][kept]
    final = np.where(endings == Followed.STATE, states[:, -1], MISSING)
    schema = mdp.schema
    columns = {schema.utility: Column(Kind.CONTINUOUS, rewards[kept])}
    finals = {}
    for k, name in enumerate(schema.state_variables):
        values, kind = [state[k] for state in mdp.states], schema.kinds[name]
        columns[name], finals[name] = _coded(values, kind, name, [visited, final])
    for k, name in enumerate(schema.decisions):
        values, kind = [action[k] for action in mdp.actions], schema.kinds[name]
        (columns[name],) = _coded(values, kind, name, [actions[kept]])
    return Episodes(
        schema,
        {name: columns[name] for name in schema.variables},
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        endings,
        finals,
        np.arange(episodes),
    )


def _walk(
    mdp: "MDP",
    episodes: int,
    horizon: int,
    rng: np.random.Generator,
    chances: Callable[[int], Array],
) -> tuple[NDArray[np.int32], NDArray[np.int32], Array]:
    """Draw states [E, T + 1], actions [E, T] and rewards [E, T]; terminal states stay."""
    states = np.empty((horizon + 1, episodes), dtype=np.int32)
    actions = np.empty((horizon, episodes), dtype=np.int32)
    rewards = np.empty((horizon, episodes))
    ends = _raised_cumulative(mdp)
    states[0] = rng.choice(len(mdp.states), episodes, p=mdp.start)
    for t in range(horizon):
        below = np.cumsum(chances(t), axis=1)
        below /= below[:, -1:]  # now exactly 1 from the last action that is possible
        actions[t] = (below[states[t]] <= rng.random(episodes)[:, None]).sum(axis=1)
        row = states[t].astype(np.int64) * len(mdp.actions) + actions[t]
        drawn = np.searchsorted(ends, row + rng.random(episodes), side="right")
        drawn = np.clip(drawn, mdp.indptr[row], mdp.indptr[row + 1] - 1)  # sums are rounded
        states[t + 1], rewards[t] = mdp.successors[drawn], mdp.rewards[drawn]
    return states.T, actions.T, rewards.T


def _raised_cumulative(mdp: "MDP") -> Array:  # [num_transitions]
    """Return every row's distribution function, raised by the row: one sorted array for all."""
    sums = np.concatenate([[0.0], np.cumsum(mdp.probabilities)])
    rows = np.repeat(np.arange(len(mdp.indptr) - 1), np.diff(mdp.indptr))
    return np.asarray(rows + (sums[1:] - sums[mdp.indptr[rows]]))


def _cut(
    terminal: Bools,  # [E, T + 1], whether each state is terminal
    layout: Layout,
) -> tuple[Ints, NDArray[np.int8]]:
    """Return how many steps of each episode are logged, and what followed the last."""
    lengths = (~terminal[:, :-1]).sum(axis=1)
    horizon = terminal.shape[1] - 1
    ended, cut = terminal[:, -1], Followed.UNKNOWN
    if layout == "padded":
        lengths, ended = np.full_like(lengths, horizon), np.zeros_like(ended)
    elif layout == "terminal_row":
        # an episode that ends with its last step has no row left to show it
        lengths, ended = np.minimum(lengths + 1, horizon), terminal[:, -2]
    elif layout == "final":
        cut = Followed.STATE
    elif layout != "flags":
        raise DataError(f"layout {layout!r}: {did_you_mean(layout, LAYOUTS)}")
    return lengths, np.where(ended, Followed.END, cut).astype(np.int8)


def _coded(
    values: Sequence[Value], kind: Kind, name: str, parts: Sequence[NDArray[np.int32]]
) -> list[Column]:
    """Code one variable in arrays of states (or actions), given its value in each of them.

    The domain of the column is what occurs in the arrays, as if the log was read from a table.
    """
    seen = np.zeros(len(values) + 1, dtype=bool)
    for part in parts:
        seen[part] = True
    places = np.flatnonzero(seen[:-1])  # the last is where MISSING points
    column = encode(Cells.full(np.array([values[k] for k in places.tolist()])), kind, name)
    codes = column.without_values(len(values) + 1).data
    codes[places] = column.data
    return [Column(kind, codes[part], column.domain) for part in parts]
