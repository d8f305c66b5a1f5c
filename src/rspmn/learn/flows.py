"""Flows: how many steps of a log went through each position of a template.

Flows of parts of a log add up to those of the whole, so the log need not be in memory at once.
"""

import json
from dataclasses import astuple, dataclass, field, fields, replace
from typing import Any

import numpy as np

from rspmn.circuit import Leaf, Max, Utility
from rspmn.circuit.node_arrays import KINDS
from rspmn.data.keys import group_weights
from rspmn.data.windows import Windows
from rspmn.infer.compiled.assign import Assigned
from rspmn.infer.compiled.template_trees import RootTrees
from rspmn.learn.structure.leaves import weighted_values
from rspmn.learn.successors.outcomes import SharedOutcomes
from rspmn.learn.successors.transitions import Sharing, Spread, SuccessorWeights
from rspmn.types import Array, Bools, Ints
from rspmn.values import Value


@dataclass(frozen=True, eq=False)
class Moments:
    """Utilities of groups of steps. `a + b` are those of both logs together."""

    key: Ints  # [groups], sorted
    steps: Array  # [groups]
    mean: Array  # [groups]
    squares: Array  # [groups], squared deviations from the mean, added up

    @classmethod
    def of(cls, key: Ints, earned: Array, steps: Array, within: Array | None = None) -> "Moments":
        """Return the moments of all steps of one key; of equal numbers the mean is exact.

        `within` is the variance among the steps that are counted together.
        """
        keys, group = np.unique(key, return_inverse=True)
        low, high = np.full(len(keys), np.inf), np.full(len(keys), -np.inf)
        np.minimum.at(low, group, earned)
        np.maximum.at(high, group, earned)
        total = group_weights(group, steps, len(keys))
        mean = group_weights(group, steps * earned, len(keys)) / np.where(total > 0, total, 1.0)
        mean = np.where(low == high, low, mean)
        deviations = (earned - mean[group]) ** 2
        if within is not None:
            deviations += within
        return cls(keys, total, mean, group_weights(group, steps * deviations, len(keys)))

    def __add__(self, other: "Moments") -> "Moments":
        key = np.unique(np.concatenate([self.key, other.key]))
        (one, mean, squares), (two, other_mean, other_squares) = self._at(key), other._at(key)
        total = one + two
        share, away = two / np.where(total > 0, total, 1.0), other_mean - mean
        squares = squares + other_squares + share * one * away**2
        return Moments(key, total, mean + share * away, squares)

    def _at(self, key: Ints) -> Array:  # [3, groups]
        """Return steps, means and squares of more groups: 0 in those that are new."""
        found = np.zeros((3, len(key)))
        found[:, np.searchsorted(key, self.key)] = self.steps, self.mean, self.squares
        return found


@dataclass(eq=False)
class Flows:
    """How many steps went where. `a + b` are the flows of both logs together."""

    passed: Array  # [positions], all steps
    steps: Array  # [positions], of utilities: steps with a known successor
    mean: Array  # [positions], of utilities, over these steps
    squares: Array  # [positions], of utilities: squared deviations from the mean, added up
    led_from: Ints  # [edges of all S_L], position
    led_to: Ints  # [edges], interface node
    led: Array  # [edges], their weight, of any scale: steps, unless `weighed` replaced them
    logged: Moments  # the logged steps by position of an S_L and interface node
    #: The least and the most that a step earned, of those that went on and of those that ended.
    rewards: Array  # [2, 2]; ∞ and -∞ if there is none
    starts: Array  # [interfaces]
    visits: Array  # [interfaces]
    arrived: Array  # [interfaces]
    #: By position of a leaf, the statistics of what was seen there (`Distribution.statistics`).
    leaves: dict[int, dict[Value, float]] = field(default_factory=dict)
    #: The factors behind `led`, by position instead of by site.
    sharing: Sharing | None = None
    #: What factors add to `led`, by position instead of by site.
    spread: Spread | None = None
    #: The outcomes that branches share, and the positions of their S_L.
    outcomes: tuple[Ints, SharedOutcomes] | None = None

    @classmethod
    def none(cls, trees: RootTrees) -> "Flows":
        """Return no flow at all."""
        edges, none = np.empty(0, dtype=np.int64), np.zeros(len(trees))
        each = np.zeros(len(trees.template.roots))
        nothing = np.empty(0)
        logged, rewards = Moments(edges, nothing, nothing, nothing), ranges_of(nothing, nothing > 0)
        return cls(none, none, none, none, edges, edges, nothing, logged, rewards, each, each, each)

    def count_utilities(
        self, position: Ints, earned: Array, steps: Array, within: Array | None = None
    ) -> None:
        """Set count, mean and deviations of utilities; of equal numbers the mean is exact.

        `within` is the variance among the steps that are counted together.
        """
        found = Moments.of(position, earned, steps, within)
        self.steps, self.mean, self.squares = np.zeros((3, len(self.passed)))
        self.steps[found.key], self.mean[found.key] = found.steps, found.mean
        self.squares[found.key] = found.squares

    def count_successors(self, position: Ints, interface: Ints, steps: Array) -> None:
        """Set how often each interface node followed at each position."""
        size = len(self.starts)
        keys, edge = np.unique(position * size + interface, return_inverse=True)
        self.led_from, self.led_to = keys // size, keys % size
        self.led = group_weights(edge, steps, len(keys))

    def count_outcomes(
        self, position: Ints, interface: Ints, earned: Array, steps: Array, within: Array | None
    ) -> None:
        """Set how often each interface node followed, and what was earned when it did."""
        self.count_successors(position, interface, steps)
        key = position * len(self.starts) + interface
        self.logged = Moments.of(key, earned, steps, within)

    def weighed(self, sites: Ints, weights: SuccessorWeights) -> "Flows":
        """Return the flows with weights of S_L instead of counts; `sites` are their positions."""
        sharing, spread = weights.sharing, weights.spread
        if spread is not None:
            spread = replace(spread, site=sites[spread.site])
        if sharing is not None:
            sharing = replace(
                sharing, site=sites[sharing.site],
                edge=sites[weights.site] * len(self.starts) + weights.interfaces,
            )  # fmt: skip
        return replace(
            self, led_from=sites[weights.site], led_to=weights.interfaces, led=weights.weights,
            sharing=sharing, spread=spread,
        )  # fmt: skip

    def with_outcomes(self, trees: RootTrees, sites: Ints, added: SharedOutcomes) -> "Flows":
        """Return the flows with the outcomes that branches share; `sites` are positions of S_L."""
        earns = np.flatnonzero(trees.kind == KINDS[Utility])
        beside = np.full(len(trees) + 1, -1)
        beside[trees.parent[earns]] = earns
        utility = beside[trees.parent[sites]]
        known = (utility >= 0) & (added.steps > 0)
        at, steps = utility[known], added.steps[known]
        mean, passed = self.mean.copy(), self.passed.copy()
        total = self.steps[at] + steps
        mean[at] += (added.utility[known] - mean[at]) * steps / total
        at = sites[known]
        while len(at):  # up to the decision
            np.add.at(passed, at, steps)
            above = trees.parent[at]
            below = trees.kind[above] != KINDS[Max]
            at, steps = above[below], steps[below]
        return replace(self, mean=mean, passed=passed, outcomes=(sites, added))

    def __add__(self, other: "Flows") -> "Flows":
        plain = {
            name: getattr(self, name) + getattr(other, name)
            for name in ("passed", "steps", "starts", "visits", "arrived")
        }
        place = np.arange(len(self.steps))
        earned = Moments(place, self.steps, self.mean, self.squares) + Moments(
            place, other.steps, other.mean, other.squares
        )
        least, most = np.stack([self.rewards, other.rewards], axis=2).transpose(1, 0, 2)
        rewards = np.stack([least.min(axis=1), most.max(axis=1)], axis=1)
        found = Flows(
            mean=earned.mean, squares=earned.squares, led_from=self.led_from, led_to=self.led_to,
            led=self.led, logged=self.logged + other.logged, rewards=rewards,
            leaves=_added(self.leaves, other.leaves), **plain,
        )  # fmt: skip
        found.count_successors(
            np.concatenate([self.led_from, other.led_from]),
            np.concatenate([self.led_to, other.led_to]),
            np.concatenate([self.led, other.led]),
        )
        return found

    def to_json(self) -> str:
        """Return the flows as text, exactly."""
        plain = {
            part.name: getattr(self, part.name).tolist()
            for part in fields(self)
            if part.name not in ("leaves", "logged", "sharing", "spread", "outcomes")
        }
        plain["logged"] = [part.tolist() for part in astuple(self.logged)]
        plain["leaves"] = [[at, list(of.items())] for at, of in self.leaves.items()]
        return json.dumps(plain)

    @classmethod
    def from_json(cls, text: str) -> "Flows":
        """Read what `to_json` wrote."""
        plain = json.loads(text)
        leaves = {at: dict(of) for at, of in plain.pop("leaves")}
        key, *numbers = plain.pop("logged")
        logged = Moments(np.array(key, dtype=np.int64), *(np.array(n, float) for n in numbers))
        arrays: dict[str, Any] = {
            name: np.array(values, dtype=np.int64 if name in ("led_from", "led_to") else float)
            for name, values in plain.items()
        }
        return cls(**arrays, logged=logged, leaves=leaves)


def ranges_of(earned: Array, ended: Bools) -> Array:  # [2, 2]
    """Return the least and the most that steps earned which went on, and which ended an episode.

    >>> ranges_of(np.array([0.0, -1.0, 5.0]), np.array([False, False, True])).tolist()
    [[-1.0, 0.0], [5.0, 5.0]]
    """
    kinds = earned[~ended], earned[ended]
    return np.array([[of.min(initial=np.inf), of.max(initial=-np.inf)] for of in kinds])


def known_ranges(rewards: Array) -> list[tuple[float, ...]]:
    """Return ranges as the counts of a model have them: empty where there is none."""
    return [tuple(ends) if ends[0] <= ends[1] else () for ends in rewards.tolist()]


def _added(
    one: dict[int, dict[Value, float]], other: dict[int, dict[Value, float]]
) -> dict[int, dict[Value, float]]:
    found = {at: dict(of) for at, of in one.items()}
    for at, of in other.items():
        here = found.setdefault(at, {})
        for key, flow in of.items():
            here[key] = here.get(key, 0.0) + flow
    return found


def leaf_flows(assigned: Assigned, windows: Windows, steps: Array) -> dict[int, dict[Value, float]]:
    """Return the statistics of what each leaf saw, each window counted as so many steps."""
    trees = assigned.trees
    variable = trees.variable[trees.node[assigned.passed]]
    found: dict[int, dict[Value, float]] = {}
    for number, name in enumerate(trees.leaves):
        column = windows.columns[name]
        counted = (steps > 0) & ~column.missing  # [num_windows]
        here = np.flatnonzero((variable == number) & counted[assigned.passed_by])
        here = here[np.argsort(assigned.passed[here], kind="stable")]
        row, position = assigned.passed_by[here], assigned.passed[here]
        starts = np.flatnonzero(np.diff(position, prepend=-1))
        stops = np.append(starts[1:], len(here))[: len(starts)]
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            leaf = trees.template.nodes[int(trees.node[position[start]])]
            assert isinstance(leaf, Leaf)
            part = row[start:stop]
            values, weights = weighted_values(column.take(part), steps[part])
            found[int(position[start])] = leaf.distribution.statistics(values, weights)
    return found
