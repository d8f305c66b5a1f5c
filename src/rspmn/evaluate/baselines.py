"""Baselines that a learned policy is compared with: a table of counts, and behaviour cloning."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rspmn.data.episodes import Episodes, Followed
from rspmn.data.keys import group_weights, joint_groups
from rspmn.data.windows import States, Windows, distinct_states
from rspmn.envs.mdp import MDP
from rspmn.errors import DataError
from rspmn.types import Array, Bools, Ints
from rspmn.values import Value

#: Decisions whose values differ by less than this share of them are equally good.
TIE = 1e-9


@dataclass(frozen=True, eq=False)
class Tabular:
    """The maximum-likelihood MDP of a log, solved by value iteration; states share nothing.

    It has S states, A joint decisions, and END as one more state. A decision is available in a
    state if it was taken there and what followed is known. A state in which no decision is
    available has the lowest value of all states.

    >>> from rspmn.envs.grid_universe import grid_universe
    >>> world = grid_universe()
    >>> table = Tabular.fit(world.generate(episodes=2000, horizon=8, rng=0))
    >>> table.meu(horizon=8)
    6.0
    """

    states: States
    decisions: tuple[tuple[Value | None, ...], ...]  # [A], their values
    tried: Array  # [S * A], how often each was taken; row s * A + a
    earned: Array  # [S * A], the mean utility
    chances: Any  # a scipy.sparse array, [S * A, S + 1]
    starts: Array  # [S], sum to 1

    @classmethod
    def fit(cls, log: Episodes | Windows) -> "Tabular":
        """Return the table of a log."""
        from scipy.sparse import csr_array

        windows = log if isinstance(log, Windows) else Windows.from_episodes(log)
        if windows.schema.state_variables != windows.schema.information_sets[0]:
            raise DataError("a table needs states that are observed before the first decision")
        windows, counts = _where_known(windows)
        states = distinct_states(windows)
        columns = [windows.columns[name] for name in windows.schema.decisions]
        made = joint_groups(columns, len(windows))
        decoded = [column.take(made.members()).decode() for column in columns]
        known = windows.followed != Followed.UNKNOWN
        if not known.any():
            raise DataError(f"of {len(windows)} distinct steps none has a known successor")
        row = (states.of_steps * made.size + made.codes)[known]
        counts = counts[known]
        size = states.count * made.size
        tried = group_weights(row, counts, size)
        some = np.maximum(tried, 1e-300)
        utility = windows.columns[windows.schema.utility].data[known]
        after = states.of_successors[known]
        to = np.where(after >= 0, after, states.count)
        chances = csr_array((counts / some[row], (row, to)), shape=(size, states.count + 1))
        starts = group_weights(states.of_steps, windows.starts.astype(np.float64), states.count)
        return cls(
            states,
            tuple(zip(*decoded, strict=True)),
            tried,
            group_weights(row, counts * utility, size) / some,
            chances,
            starts / starts.sum(),
        )

    def meu(self, horizon: int, discount: float = 1.0) -> float:
        """Return the optimal value of `horizon` steps from the start distribution."""
        return float(self.starts @ self.solve(horizon, discount)[0])

    def solve(self, horizon: int, discount: float = 1.0) -> tuple[Array, Ints]:
        """Return the optimal values [S] with `horizon` steps to go, and a policy [horizon, S].

        `policy[t]` is the decision taken at time t; -1 where none is available.
        """
        states, available = self.states.count, self._available
        values = np.zeros(states + 1)
        policy = np.full((horizon, states), -1)
        some = available.any(axis=1)
        for t in reversed(range(horizon)):
            worth = (self.earned + discount * (self.chances @ values)).reshape(states, -1)
            worth = np.where(available, worth, -np.inf)
            best = worth.max(axis=1)
            near = best - TIE * np.abs(np.where(some, best, 0.0))
            policy[t] = np.where(some, np.argmax(worth >= near[:, None], axis=1), -1)
            values[:-1] = np.where(some, best, best[some].min(initial=np.inf))
        return values[:-1], policy

    @cached_property
    def _available(self) -> Bools:  # [S, A]
        return (self.tried > 0).reshape(self.states.count, -1)

    def policy_for(self, mdp: MDP, horizon: int) -> Ints:  # [horizon, mdp's S]
        """Return the action taken in each state of an MDP; the first where none is available."""
        _, policy = self.solve(horizon)
        place, action = self.places_in(mdp)
        found = np.zeros((horizon, len(mdp.states)), dtype=np.int64)
        found[:, place] = np.append(action, 0)[policy]  # -1 finds the last
        return found

    def places_in(self, mdp: MDP) -> tuple[Ints, Ints]:
        """Return the index in an MDP of each state [S] and of each decision [A]."""
        numbers: dict[tuple[Value | None, ...], int] = {a: k for k, a in enumerate(mdp.actions)}
        decoded = (self.states.columns[n].decode() for n in mdp.schema.information_sets[0])
        place: dict[tuple[Value | None, ...], int] = {s: k for k, s in enumerate(mdp.states)}
        states = [place[state] for state in zip(*decoded, strict=True)]
        return np.array(states), np.array([numbers[made] for made in self.decisions])


def _where_known(windows: Windows) -> tuple[Windows, Array]:
    """Return windows without steps that led to a state of which nothing is known, and counts.

    Such a step counts as those of the same state and decisions that led to states that are known.
    """
    names = (*windows.schema.information_sets[0], *windows.schema.decisions)
    pair = joint_groups([windows.columns[name] for name in names], len(windows)).codes
    went_on, counts = windows.went_on, windows.counts.astype(np.float64)
    known = (windows.followed <= Followed.STATE) & ~went_on
    size = int(pair.max(initial=-1)) + 1
    more, some = (group_weights(pair[part], counts[part], size) for part in (went_on, known))
    counts[known] *= (1 + more / np.maximum(some, 1e-300))[pair[known]]
    return windows.take(np.flatnonzero(~went_on)), counts[~went_on]


@dataclass(frozen=True, eq=False)
class Cloned:
    """The policy of a log: in each state, each action as often as the log took it.

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
        """Return the policy of a log."""
        return cls(Tabular.fit(log))

    def policy_for(self, mdp: MDP) -> Array:  # [mdp's S, A]
        """Return the probability of each action in each state of an MDP.

        It is uniform where the log has no decision.
        """
        table = self.table
        tried = table.tried.reshape(table.states.count, -1)
        found = np.zeros((len(mdp.states), len(mdp.actions)))
        place, action = table.places_in(mdp)
        np.add.at(found, (place[:, None], action[None, :]), tried)
        seen = found.sum(axis=1, keepdims=True)
        return np.where(seen > 0, found / np.maximum(seen, 1.0), 1 / len(mdp.actions))
