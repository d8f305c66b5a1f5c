"""Behaviour cloning: to do what the log does, as often as it does it."""

from dataclasses import dataclass

import numpy as np

from rspmn.baselines.tabular import Tabular
from rspmn.data.episodes import Episodes
from rspmn.data.windows import Windows
from rspmn.envs.mdp import MDP
from rspmn.types import Array


@dataclass(frozen=True, eq=False)
class Cloned:
    """The policy of a log, state by state.

    >>> from rspmn.envs.grid_universe import grid_universe
    >>> world = grid_universe()
    >>> cloned = Cloned.fit(world.generate(episodes=20_000, horizon=8, rng=0, layout="final"))
    >>> random = world.evaluate(None, 8)
    >>> abs(world.evaluate(cloned.policy_for(world), 8) - random) < 0.2
    True
    """

    table: Tabular

    @classmethod
    def fit(cls, log: Episodes | Windows) -> "Cloned":
        """Count a log."""
        return cls(Tabular.fit(log))

    def policy_for(self, mdp: MDP) -> Array:  # [mdp's S, A]
        """Return how often each action is taken in each state of a world.

        Where the log never decided, all alike.
        """
        table = self.table
        tried = table.tried.reshape(table.states.count, -1)
        found = np.zeros((len(mdp.states), len(mdp.actions)))
        place, action = table.places_in(mdp)
        np.add.at(found, (place[:, None], action[None, :]), tried)
        seen = found.sum(axis=1, keepdims=True)
        return np.where(seen > 0, found / np.maximum(seen, 1.0), 1 / len(mdp.actions))
