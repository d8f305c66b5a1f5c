"""Minari data sets as logs."""

from typing import Any

import numpy as np

from rspmn.data.episodes import Episodes
from rspmn.data.gymnasium import FlatSpace, Recording, episodes_of
from rspmn.errors import DataError


def from_minari(
    dataset: Any,
    *,
    observation: str = "observation",
    action: str = "action",
    reward: str = "reward",
) -> Episodes:
    """Read a Minari data set.

    It has one more observation than actions: the state after the last step. It is the successor of
    the last step of an episode that was truncated, and is not used if the episode terminated.

    Parameters
    ----------
    dataset
        A Minari data set, or an object with `observation_space`, `action_space` and
        `iterate_episodes()`.
    observation, action, reward
        The names of the columns, or the prefixes of their names: see `FlatSpace`. Actions of
        several parts are decisions one after the other.

    Examples
    --------
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
        one = Recording(
            seen.columns(episode.observations),
            done.columns(episode.actions),
            rewards,
            bool(len(rewards) and np.asarray(episode.terminations)[-1]),
        )
        _check_lengths(one, number)
        if len(rewards):
            found.append(one)
    return episodes_of(found, seen, done, reward)


def _check_lengths(one: Recording, number: int) -> None:
    steps = len(one.rewards)
    seen, done = (len(next(iter(part.values()))) for part in (one.seen, one.done))
    if (seen, done) != (steps + 1, steps):
        raise DataError(
            f"episode {number}: expected {steps + 1} observations and {steps} actions for {steps} "
            f"rewards, found {seen} and {done}"
        )
