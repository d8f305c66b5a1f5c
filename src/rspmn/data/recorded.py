"""Logs of environments: recorded by Minari, or collected here step by step."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rspmn.data.cells import split_missing
from rspmn.data.columns import Column, encode
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.spaces import FlatSpace
from rspmn.errors import DataError
from rspmn.schema import Kind, Schema
from rspmn.types import Array
from rspmn.values import Value


class Decides(Protocol):
    """A policy that decides by the state and the time step, as `model.policy` gives one."""

    def act(self, state: Mapping[str, Value], t: int) -> Any:
        """Return the decision, or several by name."""


@dataclass(frozen=True, eq=False)
class _Recorded:
    """One episode as it was recorded."""

    seen: dict[str, NDArray[Any]]  # [T + 1]
    done: dict[str, NDArray[Any]]  # [T]
    rewards: Array  # [T]
    terminated: bool


def from_minari(
    dataset: Any,
    *,
    observation: str = "observation",
    action: str = "action",
    reward: str = "reward",
) -> Episodes:
    """Read a Minari data set.

    It has one more observation than actions: the state after the last step. Where an episode
    terminated it says nothing, as nothing follows; where it was truncated, the log goes on there.

    Parameters
    ----------
    dataset
        A Minari data set, or what looks like one: `observation_space`, `action_space` and
        `iterate_episodes()`.
    observation, action, reward
        What the columns are called, or what their names begin with: see `FlatSpace`. Actions of
        several parts are decisions one after the other.

    >>> import minari                                                    # doctest: +SKIP
    >>> log = from_minari(minari.load_dataset("frozen-lake/random-v0"))  # doctest: +SKIP
    """
    for name in ("observation_space", "action_space", "iterate_episodes"):
        if not hasattr(dataset, name):
            raise DataError(
                f"expected a Minari data set, found {type(dataset).__name__}, which has no {name}"
            )
    seen = FlatSpace(dataset.observation_space, observation)
    done = FlatSpace(dataset.action_space, action)
    found = []
    for number, episode in enumerate(dataset.iterate_episodes()):
        rewards = np.asarray(episode.rewards, dtype=np.float64)
        one = _Recorded(
            seen.columns(episode.observations),
            done.columns(episode.actions),
            rewards,
            bool(len(rewards) and np.asarray(episode.terminations)[-1]),
        )
        _check_lengths(one, number)
        if len(rewards):
            found.append(one)
    return _episodes(found, seen, done, reward)


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
    """Let a policy act in a Gymnasium environment and keep the log.

    Parameters
    ----------
    env
        The environment.
    policy
        A policy of a model; or a function from an observation to an action; or None, to act at
        random.
    episodes
        How many.
    seed
        Of the environment and of random actions: the same seed, the same log.
    max_steps
        Cut episodes after so many steps; if not given, only the environment does.
    observation, action, reward
        As in `from_minari`.
    progress
        Show a bar.

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
        now, _info = env.reset(seed=start)
        start = None
        observations: list[Any] = [now]
        actions: list[Any] = []
        rewards: list[float] = []
        terminated = truncated = False
        while not (terminated or truncated or len(rewards) == max_steps):
            chosen = choose(now, len(rewards))
            now, earned, terminated, truncated, _info = env.step(chosen)
            observations.append(now)
            actions.append(chosen)
            rewards.append(_reward(earned, len(rewards)))
        found.append(
            _Recorded(
                seen.columns(seen.stacked(observations)),
                done.columns(done.stacked(actions)),
                np.array(rewards),
                bool(terminated),
            )
        )
    return _episodes(found, seen, done, reward)


def _chooser(
    env: Any, policy: Decides | Callable[[Any], Any] | None, seen: FlatSpace, done: FlatSpace
) -> Callable[[Any, int], Any]:
    """Return what decides, as a function of an observation and the time step."""
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
    """Return what a step earned, which must be a number."""
    found = np.asarray(earned)
    if found.size != 1 or found.dtype.kind not in "biuf" or not np.isfinite(found).all():
        raise DataError(f"collect: step {t} earned {earned!r}: expected a finite number")
    return float(found.reshape(()))


def _named(made: Any, done: FlatSpace) -> Mapping[str, Value]:
    """Return decisions by name; a policy of a single one gives its value."""
    return made if isinstance(made, Mapping) else {done.names[0]: made}


def _check_lengths(one: _Recorded, number: int) -> None:
    steps = len(one.rewards)
    seen, done = (len(next(iter(part.values()))) for part in (one.seen, one.done))
    if (seen, done) != (steps + 1, steps):
        raise DataError(
            f"episode {number}: expected {steps + 1} observations and {steps} actions for {steps} "
            f"rewards, found {seen} and {done}"
        )


def _episodes(found: list[_Recorded], seen: FlatSpace, done: FlatSpace, reward: str) -> Episodes:
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
