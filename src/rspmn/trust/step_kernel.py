"""What a plan is worth by logged steps alone: a doubly robust estimate over neighbouring steps.

A model of numbers errs where its curves do, and its own intervals cannot see that. Here nothing is
assumed of moves: what follows a state and an action is what followed logged steps like it, those
that share leaves of a forest with it. So jumps stay jumps. Backwards, that gives what the plan is
worth at each logged successor; forwards, how often the plan gets to each logged step. Steps that
no forest has seen correct the first by the second (a doubly robust estimate), and the corrections
say how much it varies.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rspmn.data.tables import as_table
from rspmn.infer.compiled.beliefs import Routes
from rspmn.infer.compiled.mixture import decide_all
from rspmn.infer.compiled.node_membership import categories, knots, values_of_categories
from rspmn.infer.compiled.planned import Plan
from rspmn.model import RSPMN
from rspmn.successor_counts import StepSample
from rspmn.types import Array, Bools, Ints
from rspmn.values import Value

#: Steps are divided into so many parts; each part is predicted by forests of the others.
PARTS = 3
#: The trees of a forest, and the steps in a leaf, at least.
TREES, LEAF = 10, 5
#: No more products of points, trees and times than this, or of points, trees and actions: of longer
#: plans fewer steps are used.
MOST_WORK = 6_000_000
#: So many steps are followed at most; with a discount, until what is left is this share.
MOST_STEPS, NEGLIGIBLE = 300, 1e-3
#: Within leaves values are linear in the state, shrunk as by so many steps.
RIDGE = 20.0
#: The weight of steps that the plan never gets to, beside 1 on average, where that is fitted.
NEVER = 0.05
#: Masses below this are not followed.
LEAST = 1e-12


@dataclass(frozen=True)
class KernelValue:
    """What a plan is worth by logged steps."""

    point: float
    error: float  # its standard error
    #: How far the states of the plan are, on average, from the logged steps that stand for them: in
    #: standard deviations of the number where that is most.
    far: float


class StepKernel:
    """Values a plan by the logged steps of a model of soft boxes.

    Parameters
    ----------
    model
        A model of soft boxes.
    sample
        Logged steps of it.
    planned
        The plan.
    """

    def __init__(self, model: RSPMN, sample: StepSample, planned: Plan) -> None:
        self.model, self.planned, self.discount = model, planned, planned.discount
        self.steps = self._number_of_steps()
        self.names = list(knots(model))
        self.values = {n: np.array(v, dtype=object) for n, v in values_of_categories(model).items()}
        self.log = _Log.of(sample, planned, [len(v) for v in self.values.values()], self.steps)

    def _number_of_steps(self) -> int:
        if self.planned.horizon is not None:
            return min(self.planned.horizon, MOST_STEPS)
        if self.discount == 1:
            return MOST_STEPS
        return min(MOST_STEPS, math.ceil(math.log(NEGLIGIBLE) / math.log(self.discount)))

    def value(self, nodes: Array | None, known: Mapping[str, Value]) -> KernelValue:
        """Return what the plan is worth.

        `nodes`: the probability of each interface node at first, None if episodes begin. `known`:
        what is known of the first state.
        """
        points, weight = self._began if nodes is None else self._points(nodes, known)
        decided = self._decided(points)
        values = [part.values(points, weight, decided) for part in self._parts]
        direct = np.stack([found.direct for found in values]).mean(axis=0)  # [points]
        correction = float(np.mean([found.correction for found in values]))
        mean = float(weight @ direct)
        # Where forests err much, so may the correction: half of it is taken, half is an error.
        of_starts = 0.0 if nodes is not None else float(weight**2 @ (direct - mean) ** 2)
        errors = np.concatenate([found.errors for found in values]) / PARTS
        error = math.sqrt(float(errors @ errors) + of_starts + (correction / 2) ** 2)
        far = float(np.mean([found.far for found in values], axis=0).max())
        return KernelValue(mean + correction / 2, error, far)

    # ---- points, and the plan there ----------------------------------------------------

    @property
    def _began(self) -> tuple[Array, Array]:
        return self.log.begins, self.log.begin_weight

    def _points(self, nodes: Array, known: Mapping[str, Value]) -> tuple[Array, Array]:
        """Return the points of some interface nodes, and their probabilities."""
        of_numbers, of_categories = knots(self.model), categories(self.model)
        here = np.flatnonzero((nodes > 0) & ~np.isnan(of_numbers[self.names[0]]))  # without END
        columns = [of_numbers[name][here] for name in self.names]
        for name, values in self.values.items():
            code = {value: k for k, value in enumerate(values.tolist())}
            columns.append(np.array([code[v] for v in of_categories[name][here].tolist()], float))
        points = np.stack(columns, axis=1)
        for k, name in enumerate(self.names):
            if isinstance(number := known.get(name), int | float):
                points[:, k] = number
        return points, nodes[here] / nodes[here].sum()

    def _decided(self, points: Array) -> Ints:  # [times, points]
        """Return the joint decisions at some points as actions of the log, -1 for no such one."""
        routes, horizon, at = self._routes(points), self.planned.horizon, self.planned
        found = np.empty((self.steps, len(points)), dtype=np.int64)
        known: dict[int, Ints] = {}
        for t in range(self.steps):
            after = 0 if horizon is None else horizon - 1 - t
            settled = at.settled_from(after)
            if settled not in known:
                codes = decide_all(at, routes, after)[0]
                known[settled] = self.log.action_of(codes.T)[routes.state]
            found[t] = known[settled]
        return found

    def _routes(self, points: Array) -> Routes:
        index = self.model.state_index
        columns: dict[str, Any] = dict.fromkeys(
            index.names, np.full(len(points), None, dtype=object)
        )
        columns |= {name: points[:, k] for k, name in enumerate(self.names)}
        for k, (name, values) in enumerate(self.values.items(), start=len(self.names)):
            columns[name] = values[points[:, k].astype(np.int64)]
        return index.routes(as_table(columns))

    @cached_property
    def _parts(self) -> "list[_Part]":
        log, part = self.log, np.random.default_rng(0).permutation(len(self.log.action)) % PARTS
        decided = self._decided(log.after), self._decided(log.begins)
        return [
            _Part(
                log, np.flatnonzero(part != k), np.flatnonzero(part == k), *decided, self.discount
            )
            for k in range(PARTS)
        ]


# ---- the log ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Log:
    """Logged steps as arrays."""

    here: Array  # [steps, columns]
    after: Array  # [steps, columns]
    action: Ints  # [steps]
    keys: Ints  # [actions], joint decisions, sorted
    sizes: tuple[int, ...]  # the values of each decision
    ended: Bools  # [steps]
    utility: Array  # [steps]
    weight: Array  # [steps]
    begins: Array  # [points, columns]
    begin_weight: Array  # [points], sums to 1
    categories: tuple[int, ...]  # the values of each, the last columns

    @classmethod
    def of(cls, sample: StepSample, planned: Plan, categories: list[int], times: int) -> "_Log":
        """Return so many steps of a sample as can be followed for some times."""
        columns, total = sample.columns, len(sample.utility)
        sizes = tuple(len(planned.offers.values(name)) for name in planned.together)
        made = np.array(sample.made, dtype=np.int64).reshape(total, -1)
        keys = np.unique(np.ravel_multi_index(tuple(made.T), sizes))
        most = MOST_WORK // (TREES * max(times, len(keys)))
        kept = np.sort(np.random.default_rng(0).permutation(total)[: max(most, 3 * PARTS)])
        joint = np.ravel_multi_index(tuple(made[kept].T), sizes)
        weight = np.array(sample.begin_weight)
        return cls(
            np.array(sample.here).reshape(total, columns)[kept],
            np.array(sample.after).reshape(total, columns)[kept],
            np.searchsorted(keys, joint), keys, sizes, np.array(sample.ended)[kept] == 1,
            np.array(sample.utility)[kept], np.array(sample.weight)[kept],
            np.array(sample.begins).reshape(-1, columns), weight / weight.sum(), tuple(categories),
        )  # fmt: skip

    def action_of(self, codes: Ints) -> Ints:  # [n, decisions] -> [n]
        """Return the actions of some decisions; -1 for those that were not logged."""
        joint = np.ravel_multi_index(tuple(np.maximum(codes, 0).T), self.sizes)
        at = np.minimum(np.searchsorted(self.keys, joint), len(self.keys) - 1)
        return np.where((codes >= 0).all(axis=1) & (self.keys[at] == joint), at, -1)

    def features(self, points: Array) -> Array:  # [n, features]
        """Return numbers over their deviations, then indicators of categories."""
        return np.hstack([points[:, : self.numbers] / self._scale, self._indicators(points)])

    @property
    def numbers(self) -> int:
        """How many columns are numbers."""
        return int(self.here.shape[1]) - len(self.categories)

    @cached_property
    def _scale(self) -> Array:  # [numbers]
        deviation = self.here[:, : self.numbers].std(axis=0)
        return np.where(deviation > 0, deviation, 1.0)

    def _indicators(self, points: Array) -> Array:  # [n, values of categories]
        codes = points[:, self.numbers :]
        found = [codes[:, [k]] == np.arange(size) for k, size in enumerate(self.categories)]
        return np.hstack([np.zeros((len(points), 0)), *found]).astype(np.float64)

    @cached_property
    def outcomes(self) -> Array:  # [steps, outcomes]
        """What follows each step: utility, end, moves of numbers, indicators of categories."""
        moved = np.where(
            self.ended[:, None], 0.0, self.features(self.after) - self.features(self.here)
        )
        return np.hstack([self.utility[:, None], self.ended[:, None], moved])


# ---- one part of the log, valued by the others -----------------------------------------


class _Forests:
    """A forest for each action, of which every tree divides states into leaves."""

    def __init__(self, log: _Log, rows: Ints, targets: Array, seed: int) -> None:
        from sklearn.ensemble import ExtraTreesRegressor

        of_log, self.size = log.features(log.here), 0
        self.forests: list[tuple[Any, Ints]] = []
        for action in range(len(log.keys)):
            mine = rows[log.action[rows] == action]
            forest, first = None, np.full(TREES, self.size)
            if len(mine):
                least = max(1, min(LEAF, len(mine) // 2))
                forest = ExtraTreesRegressor(
                    TREES, min_samples_leaf=least, max_features=1.0, random_state=seed
                ).fit(of_log[mine], targets[mine])
                sizes = [tree.tree_.node_count for tree in forest.estimators_]
                first = self.size + np.cumsum([0, *sizes])[:-1]
            self.size = int(first[-1]) + (1 if forest is None else sizes[-1])
            self.forests.append((forest, first))

    def leaves(self, features: Array, actions: Ints | None = None) -> Ints:
        """Return the leaves of points by their action [n, trees]; by each, [actions, n, trees]."""
        if actions is None:
            return np.stack([self._applied(k, features) for k in range(len(self.forests))])
        found = np.zeros((len(features), TREES), dtype=np.int64)
        for action in np.unique(actions).tolist():
            mine = actions == action
            found[mine] = self._applied(action, features[mine])
        return found

    def _applied(self, action: int, features: Array) -> Ints:
        forest, first = self.forests[action]
        if forest is None:
            return np.tile(first, (len(features), 1))
        return np.asarray(forest.apply(features).astype(np.int64) + first)


@dataclass(frozen=True, eq=False)
class _PartValue:
    """What one part finds."""

    direct: Array  # [points], by the forests
    correction: float  # of their mean, by the steps that the forests have not seen
    errors: Array  # [steps of the part], what each adds to the correction, less its share
    far: Array  # [features]


@dataclass(frozen=True, eq=False)
class _Flow:
    """How often a plan gets where."""

    shares: Array  # [times, leaves], how often it decides in each
    visits: Array  # [steps], over all times
    far: Array  # [features], how far its states are from the steps that stand for them


class _Part:
    """Values by the steps of all parts but one, corrected by the steps of this one.

    `rows` and `others`: the steps of the other parts and of this one. `after` and `begins`: the
    actions that the plan takes at each time after each logged step, and where episodes begin.
    """

    def __init__(
        self, log: _Log, rows: Ints, others: Ints, after: Ints, begins: Ints, discount: float
    ) -> None:
        self.log, self.rows, self.others, self.discount = log, rows, others, discount
        self.decided, self.mine = after, log.action[rows]
        self.at, self.at_after = log.features(log.here), log.features(log.after)
        targets = _scaled(log.outcomes, rows)
        self._grow(targets, seed=0)
        self._backward(None)
        # New forests tell states apart by what the plan is worth at logged successors, too.
        later = [self._worth(t, np.arange(len(self.at))) for t in sorted({0, len(after) // 2})]
        self._grow(np.hstack([targets, _scaled(np.stack(later, axis=1), rows)]), seed=1)
        flow = self._forward(log.features(log.begins), log.begin_weight, begins)
        self._backward(flow.visits)

    def values(self, points: Array, weight: Array, decided: Ints) -> _PartValue:
        """Return what the plan is worth from some points."""
        log, features, known = self.log, self.log.features(points), decided[0] >= 0
        leaf = self.forests.leaves(features, decided[0])
        direct = np.where(known, self._at(0, leaf, features, decided[0]), 0.0)
        flow, test = self._forward(features, weight, decided), self.others
        own, errors = self.own[test], np.zeros(len(test))
        gaps, correction = self.gap[test], 0.0
        for t, shares in enumerate(flow.shares):
            often = log.weight[test] * (shares * self.inverse)[own].sum(axis=1)
            total, reached = float(often.sum()), float(shares.sum())
            if total <= LEAST or reached <= LEAST:
                continue
            often *= self.discount**t * reached / total
            missed = self._worth(t, test) - self._of_leaves(t, own, gaps, log.action[test])
            part = often * missed
            correction += float(part.sum())
            errors += part - often * part.sum() / often.sum()
        return _PartValue(direct, correction, errors, flow.far)

    # ---- forests -------------------------------------------------------------------------

    def _grow(self, targets: Array, seed: int) -> None:
        log, rows = self.log, self.rows
        self.forests = _Forests(log, rows, targets, seed)
        self.own = self.forests.leaves(self.at, log.action)  # [steps, trees]
        self.after_leaves = self.forests.leaves(self.at_after)  # [actions, steps, trees]
        self.inverse = 1 / np.maximum(self._sums(log.weight[rows]), LEAST)  # [leaves]
        means = [self._means(column) for column in self.at[rows].T]
        self.centre = np.stack(means, axis=1)  # [leaves, features]
        self.gap = self._gap(self.at, self.own)  # [steps, features]
        self.after_gap = np.stack([self._gap(self.at_after, each) for each in self.after_leaves])

    def _gap(self, features: Array, leaf: Ints) -> Array:  # [n, features]
        """Return how far points are from the mean of their leaves."""
        return np.asarray(features - self.centre[leaf].mean(axis=1))

    def _sums(self, of_rows: Array) -> Array:  # [leaves]
        own = self.own[self.rows].ravel()
        return np.bincount(own, np.repeat(of_rows, TREES), self.forests.size).astype(np.float64)

    def _means(self, of_rows: Array) -> Array:  # [leaves]
        return np.asarray(self._sums(self.log.weight[self.rows] * of_rows) * self.inverse)

    # ---- backwards: what the plan is worth -------------------------------------------------

    def _backward(self, visits: Array | None) -> None:
        """Value the plan; linear within leaves if it is known how often it gets to each step."""
        times, steps = self.decided.shape
        every = np.arange(steps)
        self.after = np.zeros((times + 1, steps))  # at logged successors
        self.leaf_values = np.zeros((times, self.forests.size))
        self.slopes = np.zeros((times, len(self.log.keys), self.at.shape[1]))
        solved = [] if visits is None else self._solved(visits)
        for t in reversed(range(times)):
            worth = self._worth(t, self.rows)
            self.leaf_values[t] = self._means(worth)
            left = worth - self.leaf_values[t][self.own[self.rows]].mean(axis=1)
            for action, (mine, weighted, inverse) in enumerate(solved):
                self.slopes[t, action] = inverse @ (weighted.T @ left[mine])
            action = self.decided[t]
            leaf, gap = self.after_leaves[action, every], self.after_gap[action, every]
            self.after[t] = np.where(action >= 0, self._of_leaves(t, leaf, gap, action), 0.0)

    def _solved(self, visits: Array) -> list[tuple[Bools, Array, Array]]:
        """Return of each action the steps, their weighted gaps, and the inverse of their squares.

        Gaps are weighted by how often the plan gets to the steps.
        """
        weight = self.log.weight[self.rows] * (visits / max(float(visits.mean()), LEAST) + NEVER)
        found = []
        for action in range(len(self.log.keys)):
            mine = self.mine == action
            gap = self.gap[self.rows[mine]]
            weighted = gap * weight[mine, None]
            scale = NEVER + float((gap**2).mean(axis=0).max()) if mine.any() else 1.0
            square = weighted.T @ gap + RIDGE * scale * np.eye(gap.shape[1])
            found.append((mine, weighted, np.linalg.inv(square)))
        return found

    def _worth(self, t: int, rows: Ints) -> Array:  # as `rows`
        """Return what logged steps earn at time t, and the plan after them."""
        goes_on = ~self.log.ended[rows]
        return np.asarray(
            self.log.utility[rows] + self.discount * np.where(goes_on, self.after[t + 1][rows], 0.0)
        )

    def _at(self, t: int, leaf: Ints, features: Array, action: Ints) -> Array:  # [n]
        return self._of_leaves(t, leaf, self._gap(features, leaf), action)

    def _of_leaves(self, t: int, leaf: Ints, gap: Array, action: Ints) -> Array:  # [n]
        """Return what actions are worth at points."""
        near = (gap * self.slopes[t][action]).sum(axis=1)
        return np.asarray(self.leaf_values[t][leaf].mean(axis=1) + near)

    # ---- forwards: where the plan gets to ----------------------------------------------------

    def _forward(self, features: Array, weight: Array, decided: Ints) -> _Flow:
        """Follow the plan from some points, by what followed logged steps."""
        log, rows = self.log, self.rows
        shares = np.zeros((len(decided), self.forests.size))
        visits, far, total = np.zeros(len(rows)), np.zeros(self.at.shape[1]), 0.0
        on = ~log.ended[rows]
        action = decided[0]
        leaf = self.forests.leaves(features, np.maximum(action, 0))
        gap = self._gap(features, leaf)
        mass = np.where(action >= 0, weight, 0.0)
        for t in range(len(decided)):
            of_leaves = np.repeat(mass / TREES, TREES)
            shares[t] = np.bincount(leaf.ravel(), of_leaves, self.forests.size)
            far, total = far + mass @ gap, total + float(mass.sum())
            often = log.weight[rows] * (shares[t] * self.inverse)[self.own[rows]].sum(axis=1)
            visits += often
            if t + 1 == len(decided):
                break
            action = self.decided[t + 1]
            here = rows[on & (often > LEAST) & (action[rows] >= 0)]
            mass = often[np.searchsorted(rows, here)]
            leaf, gap = self.after_leaves[action[here], here], self.after_gap[action[here], here]
        return _Flow(shares, visits, np.abs(far) / max(total, LEAST))


def _scaled(numbers: Array, rows: Ints) -> Array:
    """Return columns over the deviation that they have in some rows, the first more than others.

    Of several outcomes the utility counts as much as all others together.
    """
    deviation = numbers[rows].std(axis=0)
    found = (numbers - numbers[rows].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    found[:, 0] *= math.sqrt(numbers.shape[1])
    return np.asarray(found)
