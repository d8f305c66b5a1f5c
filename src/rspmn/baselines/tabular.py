"""The world as counted: a table of every state and decision, solved by value iteration.

Maximum likelihood, state by state: nothing is shared. Only decisions that were tried and whose
successor is known are offered. A state in which none is, is worth as little as any other.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rspmn.data.episodes import Episodes, Followed
from rspmn.data.keys import joint_groups
from rspmn.data.states import States, distinct_states
from rspmn.data.windows import Windows
from rspmn.envs.mdp import MDP
from rspmn.errors import DataError
from rspmn.learn.structure.rows import weigh
from rspmn.types import Array, Bools, Ints
from rspmn.values import Value

#: Decisions whose values differ by less than this share of them are equally good.
TIE = 1e-9


@dataclass(frozen=True, eq=False)
class Tabular:
    """A table of counts: S states, A joint decisions; END is one state more.

    >>> from rspmn.envs.grid_universe import grid_universe
    >>> world = grid_universe()
    >>> table = Tabular.fit(world.generate(episodes=2000, horizon=8, rng=0))
    >>> table.meu(horizon=8)
    6.0
    """

    states: States
    decisions: tuple[tuple[Value | None, ...], ...]  # [A], their values
    tried: Array  # [S * A], how often; row s * A + a
    earned: Array  # [S * A], the mean
    chances: Any  # a scipy.sparse array, [S * A, S + 1]
    starts: Array  # [S], sum to 1

    @classmethod
    def fit(cls, log: Episodes | Windows) -> "Tabular":
        """Count a log."""
        from scipy.sparse import csr_array

        windows = log if isinstance(log, Windows) else Windows.from_episodes(log)
        if windows.schema.state_variables != windows.schema.information_sets[0]:
            raise DataError("a table needs states that are seen whole before the first decision")
        states = distinct_states(windows)
        columns = [windows.columns[name] for name in windows.schema.decisions]
        made = joint_groups(columns, len(windows))
        decoded = [column.take(made.members()).decode() for column in columns]
        known = windows.followed != Followed.UNKNOWN
        if not known.any():
            raise DataError(f"of {len(windows)} distinct steps none has a known successor")
        row = (states.of_steps * made.size + made.codes)[known]
        counts = windows.counts[known].astype(np.float64)
        size = states.count * made.size
        tried = weigh(row, counts, size)
        some = np.maximum(tried, 1e-300)
        utility = windows.columns[windows.schema.utility].data[known]
        after = states.of_successors[known]
        to = np.where(after >= 0, after, states.count)
        chances = csr_array((counts / some[row], (row, to)), shape=(size, states.count + 1))
        starts = weigh(states.of_steps, windows.starts.astype(np.float64), states.count)
        return cls(
            states,
            tuple(zip(*decoded, strict=True)),
            tried,
            weigh(row, counts * utility, size) / some,
            chances,
            starts / starts.sum(),
        )

    def meu(self, horizon: int, discount: float = 1.0) -> float:
        """Return the best value of so many steps from the start."""
        return float(self.starts @ self.solve(horizon, discount)[0])

    def solve(self, horizon: int, discount: float = 1.0) -> tuple[Array, Ints]:
        """Return the best value [S] with `horizon` steps to go, and a policy [horizon, S].

        `policy[t]` is the decision at t steps from the start, -1 where none is known.
        """
        states, offered = self.states.count, self._offered
        values = np.zeros(states + 1)
        policy = np.full((horizon, states), -1)
        some = offered.any(axis=1)
        for t in reversed(range(horizon)):
            worth = (self.earned + discount * (self.chances @ values)).reshape(states, -1)
            worth = np.where(offered, worth, -np.inf)
            best = worth.max(axis=1)
            near = best - TIE * np.abs(np.where(some, best, 0.0))
            policy[t] = np.where(some, np.argmax(worth >= near[:, None], axis=1), -1)
            values[:-1] = np.where(some, best, best[some].min(initial=np.inf))
        return values[:-1], policy

    @cached_property
    def _offered(self) -> Bools:  # [S, A]
        return (self.tried > 0).reshape(self.states.count, -1)

    def policy_for(self, mdp: MDP, horizon: int) -> Ints:  # [horizon, mdp's S]
        """Return the action taken in each state of a world; the first where none is known."""
        _, policy = self.solve(horizon)
        place, action = self.places_in(mdp)
        found = np.zeros((horizon, len(mdp.states)), dtype=np.int64)
        found[:, place] = np.append(action, 0)[policy]  # -1 finds the last
        return found

    def places_in(self, mdp: MDP) -> tuple[Ints, Ints]:
        """Return the number that each state and each decision has in a world; [S] and [A]."""
        numbers: dict[tuple[Value | None, ...], int] = {a: k for k, a in enumerate(mdp.actions)}
        decoded = (self.states.columns[n].decode() for n in mdp.schema.information_sets[0])
        place: dict[tuple[Value | None, ...], int] = {s: k for k, s in enumerate(mdp.states)}
        states = [place[state] for state in zip(*decoded, strict=True)]
        return np.array(states), np.array([numbers[made] for made in self.decisions])
