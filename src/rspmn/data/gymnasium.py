"""Gymnasium: its spaces as named columns, and logs collected from its environments.

A `Discrete` space is a category, as it has no order; a `MultiDiscrete` is one for each of its
parts; a `MultiBinary` is booleans; a `Box` is numbers; a `Tuple` or `Dict` is the columns of what
is in it. Values are those that the environment gives: a `Discrete(3, start=5)` gives 5, 6 and 7.
Spaces are recognized by their attributes, so Gymnasium itself is not needed to read a log.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rspmn.data.cells import split_missing
from rspmn.data.columns import Column, encode
from rspmn.data.episodes import Episodes, Followed
from rspmn.errors import DataError
from rspmn.schema import Kind, Schema
from rspmn.types import Array
from rspmn.values import Value

#: A space with more columns than this is refused: it is a picture, not a state.
MOST_COLUMNS = 1000


@dataclass(frozen=True)
class _Cell:
    """One column: its place in an observation, and its kind."""

    name: str
    kind: Kind
    path: tuple[Any, ...]  # keys of Dicts and places in Tuples, down to an array
    place: tuple[int, ...]  # in that array, after the axis of time


class FlatSpace:
    """The columns of a space.

    Parameters
    ----------
    space
        A space of Gymnasium, or an object with the same attributes.
    name
        The name of the column, or the prefix of the names of several.

    Examples
    --------
    >>> from gymnasium.spaces import Dict, Discrete, MultiBinary
    >>> flat = FlatSpace(Dict(agent=Discrete(4, start=1), lights=MultiBinary(2)), "seen")
    >>> flat.names
    ('seen_agent', 'seen_lights_0', 'seen_lights_1')
    >>> flat.values({"agent": 2, "lights": np.array([0, 1])})
    {'seen_agent': 2, 'seen_lights_0': False, 'seen_lights_1': True}
    """

    def __init__(self, space: Any, name: str) -> None:
        self.space = space
        self._cells = _cells(space, name, ())
        if len(self._cells) > MOST_COLUMNS:
            raise DataError(
                f"{name}: {len(self._cells)} columns are too many to learn from: describe the "
                "state by fewer variables"
            )
        if not self._cells:
            raise DataError(f"{name}: the space {space} has nothing in it")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(cell.name for cell in self._cells)

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kinds of the columns."""
        return {cell.name: cell.kind for cell in self._cells}

    def columns(self, series: Any) -> dict[str, NDArray[Any]]:
        """Return the columns of many observations: arrays, or Tuples and Dicts of them."""
        found = {}
        for cell in self._cells:
            part = series
            for key in cell.path:
                part = part[key]
            found[cell.name] = np.moveaxis(np.asarray(part), 0, -1)[cell.place]
        return found

    def values(self, one: Any) -> dict[str, Value]:
        """Return the value of each variable in one observation."""
        found = {name: column[0] for name, column in self.columns(self.stacked([one])).items()}
        return {name: _plain(value, self.kinds[name]) for name, value in found.items()}

    def stacked(self, many: Sequence[Any]) -> Any:
        """Return a list of observations as arrays, or Tuples and Dicts of them."""
        return _stacked(self.space, many)

    def compose(self, values: Mapping[str, Any]) -> Any:
        """Return the element of the space that has these values."""
        return _composed(self.space, {c.path + c.place: values[c.name] for c in self._cells}, ())


def _cells(space: Any, name: str, path: tuple[Any, ...]) -> tuple[_Cell, ...]:
    inner = getattr(space, "spaces", None)
    if isinstance(inner, Mapping):
        parts = [_cells(part, f"{name}_{key}", (*path, key)) for key, part in inner.items()]
        return tuple(cell for part in parts for cell in part)
    if isinstance(inner, tuple) and type(space).__name__ != "OneOf":  # which is one of them
        parts = [_cells(part, f"{name}_{k}", (*path, k)) for k, part in enumerate(inner)]
        return tuple(cell for part in parts for cell in part)
    kind = _kind(space)
    if kind is None:
        raise DataError(
            f"{name}: cannot make columns of {type(space).__name__}: expected Discrete, "
            "MultiDiscrete, MultiBinary, Box, Text, Tuple or Dict"
        )
    shape = getattr(space, "shape", None) or ()
    places = list(np.ndindex(*shape))
    return tuple(_Cell("_".join([name, *map(str, k)]), kind, path, k) for k in places)


def _kind(space: Any) -> Kind | None:
    """Return the kind of the numbers of a space; None if the space is not supported."""
    if hasattr(space, "low") and hasattr(space, "high"):
        return Kind.CONTINUOUS
    if hasattr(space, "nvec") or (hasattr(space, "n") and hasattr(space, "start")):
        return Kind.CATEGORICAL
    if hasattr(space, "n"):
        return Kind.BOOLEAN
    return Kind.CATEGORICAL if hasattr(space, "character_set") else None


def _stacked(space: Any, many: Sequence[Any]) -> Any:
    inner = getattr(space, "spaces", None)
    if isinstance(inner, Mapping):
        return {key: _stacked(part, [one[key] for one in many]) for key, part in inner.items()}
    if isinstance(inner, tuple):
        return tuple(_stacked(part, [one[k] for one in many]) for k, part in enumerate(inner))
    return np.array(many)


def _composed(space: Any, values: Mapping[tuple[Any, ...], Any], path: tuple[Any, ...]) -> Any:
    inner = getattr(space, "spaces", None)
    if isinstance(inner, Mapping):
        return {key: _composed(part, values, (*path, key)) for key, part in inner.items()}
    if isinstance(inner, tuple):
        return tuple(_composed(part, values, (*path, k)) for k, part in enumerate(inner))
    shape = getattr(space, "shape", None) or ()
    if shape == ():
        return values[path]
    made = np.empty(shape, dtype=space.dtype)
    for place in np.ndindex(*shape):
        made[place] = values[path + place]
    return made


def _plain(value: Any, kind: Kind) -> Value:
    plain: Value = value.item() if isinstance(value, np.generic) else value
    return bool(plain) if kind is Kind.BOOLEAN else plain


# ---- logs ----------------------------------------------------------------------------


class Decides(Protocol):
    """A policy that decides by the state and the time step, as `model.policy` gives one."""

    def act(self, state: Mapping[str, Value], t: int) -> Any:
        """Return the decision, or several by name."""


@dataclass(frozen=True, eq=False)
class Recording:
    """One episode as it was recorded."""

    seen: dict[str, NDArray[Any]]  # [T + 1]
    done: dict[str, NDArray[Any]]  # [T]
    rewards: Array  # [T]
    terminated: bool


def collect(
    env: Any,
    policy: Decides | Callable[[Any], Any] | None = None,
    episodes: int = 100,
    seed: int = 0,
    *,
    max_steps: int | None = None,
    observation: str = "observation",
    action: str = "action",
    reward: str = "reward",
    progress: bool = False,
) -> Episodes:
    """Run a policy in a Gymnasium environment and return the log.

    Parameters
    ----------
    env
        The environment.
    policy
        A policy of a model, a function from an observation to an action, or None for random
        actions.
    episodes
        The number of episodes.
    seed
        The seed of the environment and of random actions: the same seed gives the same log.
    max_steps
        Truncate episodes after this number of steps; by default, only the environment does.
    observation, action, reward
        As in `from_minari`.
    progress
        Show a progress bar.

    Examples
    --------
    >>> import gymnasium
    >>> env = gymnasium.make("FrozenLake-v1")
    >>> log = collect(env, episodes=200, seed=1)
    >>> log.schema.variables
    ('observation', 'action', 'reward')
    """
    from tqdm import tqdm

    if episodes < 1:
        raise DataError(f"collect: expected 1 episode or more, found {episodes}")
    if max_steps is not None and max_steps < 1:
        raise DataError(f"collect: expected max_steps of 1 or more, found {max_steps}")
    if not hasattr(env, "observation_space") or not hasattr(env, "action_space"):
        raise DataError(
            f"collect: expected a Gymnasium environment, found {type(env).__name__}: "
            "gymnasium.make(name) makes one"
        )
    seen = FlatSpace(env.observation_space, observation)
    done = FlatSpace(env.action_space, action)
    choose = _chooser(env, policy, seen, done)
    env.action_space.seed(seed)
    start: int | None = seed
    found = []
    for _ in tqdm(range(episodes), desc="collecting", unit=" episodes", disable=not progress):
        observations, actions, rewards, terminated = _run(env, choose, start, max_steps)
        states = seen.columns(seen.stacked(observations))
        made = done.columns(done.stacked(actions))
        found.append(Recording(states, made, np.array(rewards), terminated))
        start = None
    return episodes_of(found, seen, done, reward)


def _run(
    env: Any, choose: Callable[[Any, int], Any], seed: int | None, max_steps: int | None
) -> tuple[list[Any], list[Any], list[float], bool]:
    """Run an episode; return observations, actions, rewards, and whether it terminated."""
    now, _ = env.reset(seed=seed)
    observations, actions, rewards = [deepcopy(now)], list[Any](), list[float]()
    terminated = truncated = False
    while not (terminated or truncated or len(rewards) == max_steps):
        actions.append(deepcopy(choose(now, len(rewards))))
        now, earned, terminated, truncated, _ = env.step(actions[-1])
        observations.append(deepcopy(now))  # some environments change them in place
        rewards.append(_reward(earned, len(rewards)))
    return observations, actions, rewards, bool(terminated)


def _chooser(
    env: Any, policy: Decides | Callable[[Any], Any] | None, seen: FlatSpace, done: FlatSpace
) -> Callable[[Any, int], Any]:
    """Return the policy as a function of an observation and the time step."""
    if policy is None:
        return lambda _, __: env.action_space.sample()
    act = getattr(policy, "act", None)
    if act is not None:
        return lambda now, t: done.compose(_named(act(seen.values(now), t=t), done))
    if callable(policy):
        function = policy
        return lambda now, _: function(now)
    raise DataError(
        f"collect: expected a policy, a function or None, found {type(policy).__name__}"
    )


def _reward(earned: Any, t: int) -> float:
    """Return the reward of a step, which must be a number."""
    found = np.asarray(earned)
    if found.size != 1 or found.dtype.kind not in "biuf" or not np.isfinite(found).all():
        raise DataError(f"collect: step {t} earned {earned!r}: expected a finite number")
    return float(found.reshape(()))


def _named(made: Any, done: FlatSpace) -> Mapping[str, Value]:
    """Return decisions by name; a policy of a single one gives its value."""
    return made if isinstance(made, Mapping) else {done.names[0]: made}


def episodes_of(found: list[Recording], seen: FlatSpace, done: FlatSpace, reward: str) -> Episodes:
    """Return recorded episodes as a log, given the spaces of observations and of actions."""
    if not found:
        raise DataError("there are no episodes with a step")
    names = (*seen.names, *done.names, reward)
    if len(set(names)) < len(names):
        raise DataError(f"columns of the same name, {names}: pass other names")
    kinds = seen.kinds | done.kinds | {reward: Kind.CONTINUOUS}
    order = [list(seen.names), *([name] for name in done.names)]
    schema = Schema(order, done.names, reward, kinds)
    lengths = np.array([len(one.rewards) for one in found])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    last = offsets[1:] + np.arange(len(found))  # in columns of one more than the steps
    endings = np.array(
        [Followed.END if one.terminated else Followed.STATE for one in found], dtype=np.int8
    )
    is_step = np.ones(offsets[-1] + len(found), dtype=bool)
    is_step[last] = False
    final = np.where(endings == Followed.STATE, last, -1)
    columns, finals = {}, {}
    for name in seen.names:
        column = _column([one.seen[name] for one in found], kinds[name], name)
        columns[name] = column.take(np.flatnonzero(is_step))
        finals[name] = column.take(final)
    for name in done.names:
        columns[name] = _column([one.done[name] for one in found], kinds[name], name)
    columns[reward] = _column([one.rewards for one in found], Kind.CONTINUOUS, reward)
    return Episodes(
        schema, columns, offsets.astype(np.int64), endings, finals, np.arange(len(found))
    )


def _column(parts: Iterable[NDArray[Any]], kind: Kind, name: str) -> Column:
    return encode(split_missing(np.concatenate(list(parts))), kind, name)
