"""A target, the log that it is evaluated on, and a model: what all estimators need of them."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from rspmn.data.episodes import Followed
from rspmn.errors import EvidenceError
from rspmn.evaluate.behaviour import estimated_behaviour
from rspmn.evaluate.importance import Moves, Weighable
from rspmn.evaluate.logged import LoggedSteps
from rspmn.evaluate.model_value import ModelValue, Rules, with_end
from rspmn.evaluate.paths import Paths
from rspmn.evaluate.target_policies import AskedStates, Target
from rspmn.model import RSPMN
from rspmn.trust.rules import Mixed, Rule
from rspmn.types import Array, Bools, Ints


class TargetOnLog:
    """What a target does in the states of a log, and what a model says of it."""

    def __init__(
        self,
        model: RSPMN,
        steps: LoggedSteps,
        target: Target,
        horizon: int,
        discount: float,
        given: Array | None,
    ) -> None:
        self.model, self.steps, self.target = model, steps, target
        self.horizon, self.discount, self.given = horizon, discount, given
        practice = estimated_behaviour(steps)
        self.behaviour = practice[steps.state, steps.made] if given is None else given
        asked, times = AskedStates(steps.situations, practice), 1 if target.stationary else horizon
        answers = [target.probabilities(asked, t) for t in range(times)]
        self.silent: Bools = np.asarray(np.isnan(answers[0]).any(axis=1))  # [S]
        self.probabilities = [_filled(answer, practice) for answer in answers]
        #: In the model with what it extrapolates, and without.
        self.paths = Paths(model.offering("all"), steps.situations)
        self.value = self._value(self.paths)
        self._logged_paths = Paths(model, steps.situations)
        self.observed = self._value(self._logged_paths)

    def _value(self, paths: Paths) -> ModelValue:
        taken = [paths.taken_by(each) for each in self.probabilities]
        last = paths.taken_by(self.probabilities[-1], last=True)
        return ModelValue(paths.model, taken, self.horizon, self.discount, last)

    def drawn_rules(self, rng: np.random.Generator) -> Rules:
        """Return rules in which decisions of which nothing is known are others, drawn."""

        def rules(draws: int) -> Iterator[Rule]:
            paths, chances = self._logged_paths, self.probabilities
            stand_ins = paths.stand_ins(draws, rng)
            yield self._mixed(paths.taken_by(chances[-1], True, stand_ins))
            rule: Rule | None = None
            for t in range(self.horizon - 2, -1, -1):
                if rule is None or len(chances) > 1:
                    rule = self._mixed(paths.taken_by(self.of_time(t), False, stand_ins))
                yield rule

        return rules

    def _mixed(self, taken: list[Array]) -> Mixed:
        return Mixed(with_end(self.model, taken))

    def of_time(self, t: int) -> Array:  # [S, J]
        """Return what the target does at a time."""
        return self.probabilities[t if len(self.probabilities) > 1 else 0]

    # ---- the log, as estimators need it --------------------------------------------

    @cached_property
    def weighable(self) -> Weighable:
        """The steps within the horizon, by time."""
        steps, order = self.steps, self.order
        ratio, q, v = np.zeros((3, len(order)))
        reward = steps.reward[order].copy()
        first = np.searchsorted(steps.time[order], np.arange(self.horizon + 1))
        for t in range(self.horizon):
            at = slice(int(first[t]), int(first[t + 1]))
            rows = order[at]
            worth, state = self.worth(t), steps.state[rows]
            ratio[at] = self.of_time(t)[state, steps.made[rows]] / self.behaviour[rows]
            q[at], v[at] = worth[state, steps.made[rows]], self._mean(t, worth)[state]
            reward[at] += self._tails(t, rows)
        return Weighable(steps.episodes, self.horizon, self.discount, steps.episode[order], first,
                         ratio, reward, q, v)  # fmt: skip

    @cached_property
    def order(self) -> Ints:
        """The steps within the horizon, sorted by time."""
        order = np.argsort(self.steps.time, kind="stable")
        return order[self.steps.time[order] < self.horizon]

    def worth(self, t: int) -> Array:  # [S, J]
        """Return what decisions are worth in the model at time t, in logged states.

        One of which nothing is known is worth as much as the others of its interface node.
        """
        found = self.paths.by_branch(self.value.worths.branches[t])[self.paths.last]
        of_nodes = self.value.worths.nodes[t]
        found = np.where(np.isnan(found), of_nodes[:, None], found)  # [interfaces, J]
        return self.steps.situations.places.at_states(found, of_nodes.min())

    def _nodes(self, t: int) -> Array:  # [S]
        """Return what the interface nodes of states are worth; the least if they have none."""
        worth = self.value.worths.nodes[t]
        return self.steps.situations.places.at_states(worth, worth.min())

    def _mean(self, t: int, worth: Array) -> Array:  # [S]
        """Return what states are worth at time t: the mean over the target's decisions."""
        chances = self.of_time(t)
        rest = np.maximum(0.0, 1 - chances.sum(axis=1))
        return np.asarray((chances * worth).sum(axis=1) + rest * self._nodes(t))

    @cached_property
    def cut(self) -> Bools:  # [episodes]
        """Which episodes were cut before the horizon."""
        short = np.diff(self.steps.offsets) < self.horizon
        return np.asarray(short & (self.steps.endings != Followed.END))

    def _tails(self, t: int, rows: Ints) -> Array:  # [rows]
        """Return what follows steps in the model, discounted, where the log was cut after them."""
        found, steps = np.zeros(len(rows)), self.steps
        last = np.flatnonzero(self.cut[steps.episode[rows]] & (rows + 1 == steps.offsets[
            steps.episode[rows] + 1]))  # fmt: skip
        if not len(last):
            return found
        state, made = steps.state[rows[last]], steps.made[rows[last]]
        levels, worth = self.value.model.bellman.levels, self.discount * self.value.worths.nodes
        earned = self.paths.by_branch([level.forms.earned for level in levels])
        later = (self.paths.by_branch(self.value.worths.branches[t]) - earned)[self.paths.last]
        later = np.where(np.isnan(later), worth[t + 1][:, None], later)  # [interfaces, J]
        later = steps.situations.places.at_states(later, worth[t + 1].min())[state, made]
        final = steps.final[steps.episode[rows[last]]]
        seen = self.discount * self._mean(t + 1, self.worth(t + 1))[final]
        found[last] = np.where(final >= 0, seen, later)
        return found

    @cached_property
    def moves(self) -> Moves:
        """All steps with a known successor, between interface nodes."""
        from scipy.sparse import block_diag, csr_array

        steps, shares = self.steps, self.steps.situations.places.shares
        groups = int(shares.shape[1])
        # Of states, and of what is over: [S + 1, groups + 1].
        shares = csr_array(block_diag([shares, [[1.0]]], format="csr"))
        rows = np.flatnonzero(steps.after != -2)
        state, made, behaviour = steps.state[rows], steps.made[rows], self.behaviour[rows]
        same = self.of_time(0)[state, made] / behaviour

        def ratios(t: int) -> Array:
            return same if self.target.stationary else self.of_time(t)[state, made] / behaviour

        return Moves(
            groups, shares[steps.state[steps.offsets[:-1]]], steps.episode[rows], shares[state],
            shares[steps.after[rows]], steps.reward[rows], ratios,
        )  # fmt: skip

    @cached_property
    def coverage(self) -> float:
        """The share of the target's decisions that the log has taken in such states."""
        steps, places = self.steps, self.steps.situations.places
        taken = places.in_groups(steps.counts) > 0  # [groups, J]
        logged = np.asarray(places.shares @ taken.astype(np.float64))  # [S, J]
        covered = 0.0
        for t, rows in self.weighable.times():
            share = (self.of_time(t) * logged).sum(axis=1)
            covered += float(share[steps.state[self.order[rows]]].sum())
        return min(1.0, covered / max(1, len(self.order)))


def _filled(found: Array, practice: Array) -> Array:  # [S, J]
    """Return probabilities, those of the log where the target says nothing."""
    silent = np.isnan(found).any(axis=1, keepdims=True)
    found = np.where(silent, practice, found)
    if (found < 0).any() or (found.sum(axis=1) > 1 + 1e-6).any():
        raise EvidenceError("policy: expected probabilities from 0 that sum to 1 at most")
    return found
