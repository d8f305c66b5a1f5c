"""Worlds of logs of practice: simulators in array code, each with a decent logger.

A world of numbers has its variables, a horizon, and functions from arrays of states to arrays: how
episodes begin, what a decent controller does, and what follows. `log_of` makes a log of the
controller and a share of random actions; `earned` values a way of acting by simulation. Finite
worlds, whose values are exact, are in `worlds.finite`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rspmn.infer.policy import Policy
from rspmn.schema import Kind, Schema
from rspmn.types import Array, Bools, Ints

#: Columns of a world's variables, and of what is not observed.
States = dict[str, Any]
#: Codes of the values of each decision.
Made = dict[str, Ints]
#: Returns what is done in states at a time step.
Act = Callable[[States, int, np.random.Generator], Made]


@dataclass(frozen=True)
class World:
    """A world of numbers; states and actions are columns by name."""

    name: str
    episodes: int  # of its log
    horizon: int
    state: tuple[str, ...]  # what is observed; NaN is missing
    decisions: dict[str, tuple[Any, ...]]  # the values of each
    begin: Callable[[int, np.random.Generator], States]
    usual: Act  # what a decent controller does
    #: Rewards, next states, and whether episodes end, from states and codes of decisions.
    step: Callable[[States, Made, np.random.Generator], tuple[Array, States, Bools]]
    best: float  # the highest return known of any policy
    kinds: dict[str, Kind] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        """The schema of its logs."""
        order = [list(self.state), *([name] for name in self.decisions)]
        return Schema(order, list(self.decisions), "reward", self.kinds)

    def logger(self, share: float) -> Act:
        """Return the controller that makes each decision at random with some probability."""

        def act(state: States, t: int, rng: np.random.Generator) -> Made:
            return {
                name: np.where(
                    rng.random(len(codes)) < share,
                    rng.integers(len(self.decisions[name]), size=len(codes)), codes,
                )
                for name, codes in self.usual(state, t, rng).items()
            }  # fmt: skip

        return act

    def follow(self, policy: Policy) -> Act:
        """Return what a policy does."""

        def act(state: States, t: int, _: np.random.Generator) -> Made:
            made = policy.act_many(self.observed(state), t)
            made = made if isinstance(made, dict) else {next(iter(self.decisions)): made}
            return {
                name: np.array([values.index(x) for x in np.asarray(made[name]).tolist()])
                for name, values in self.decisions.items()
            }

        return act

    def observed(self, state: States) -> dict[str, list[Any]]:
        """Return what is observed of states, None where it is missing."""
        found = {name: state[name].tolist() for name in self.state}
        return {name: [None if x != x else x for x in column] for name, column in found.items()}


def log_of(world: World, episodes: int, seed: int, share: float = 0.0) -> dict[str, list[Any]]:
    """Return a log of the world's controller, who acts at random with some probability."""
    names = ["episode", "time", *world.state, *world.decisions, "reward", "over"]
    columns: dict[str, list[Any]] = {name: [] for name in names}

    def keep(t: int, here: Ints, state: States, made: Made, gain: Array, over: Bools) -> None:
        row = {"episode": here.tolist(), "time": [t] * len(here), **world.observed(state)}
        row |= {n: [v[code] for code in made[n].tolist()] for n, v in world.decisions.items()}
        row |= {"reward": gain.tolist(), "over": over.tolist()}
        for name in names:
            columns[name] += row[name]

    _simulated(world, world.logger(share), episodes, np.random.default_rng(seed), keep)
    return columns


def earned(world: World, act: Act, episodes: int = 4_000, seed: int = 10**6) -> tuple[float, float]:
    """Return the mean return of a way of acting, and its standard error."""
    returns = _simulated(world, act, episodes, np.random.default_rng(seed), None)
    return float(returns.mean()), float(returns.std() / math.sqrt(episodes))


def _simulated(
    world: World, act: Act, episodes: int, rng: np.random.Generator,
    keep: Callable[..., None] | None,
) -> Array:  # fmt: skip
    """Return the returns of episodes."""
    state, here, returns = world.begin(episodes, rng), np.arange(episodes), np.zeros(episodes)
    for t in range(world.horizon):
        made = act(state, t, rng)
        gain, after, over = world.step(state, made, rng)
        returns[here] += gain
        if keep is not None:
            keep(t, here, state, made, gain, over)
        here, state = here[~over], {name: x[~over] for name, x in after.items()}
        if not len(here):
            break
    return returns
