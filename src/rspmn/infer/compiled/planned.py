"""The best choices of a model, for every number of steps to go."""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from rspmn.circuit import Max
from rspmn.errors import EvidenceError
from rspmn.infer.bellman import Future, check_discount, check_steps
from rspmn.infer.branches import logged_steps
from rspmn.infer.compiled.bellman import Bellman, Choices
from rspmn.infer.compiled.finite_horizon import StepValues, settled_over, values_over
from rspmn.infer.compiled.infinite_horizon import limit, supports_of_limit
from rspmn.infer.compiled.layers import ranges
from rspmn.infer.compiled.ties import delays_of_limit
from rspmn.infer.criterion import Criterion
from rspmn.model import RSPMN
from rspmn.schema import Schema
from rspmn.types import Array, Ints
from rspmn.values import Mark, Value

#: Of so many different steps to go the choices are kept, and fewer of a template with more
#: branches than this in all.
KEPT, MOST_BRANCHES = 64, 10_000_000


@dataclass
class At:
    """What is best with some number of steps to go."""

    choices: Choices
    with_delays: bool
    best: list[list[int]]  # of each level, the best branch of each max node or -1
    #: Of branches as `Offers` numbers them; the last, for none, is 0. [branches + 1]
    worth: Array
    delay: Array
    known: Array
    supported: Array
    steps: Array | None = None  # [nodes], the logged steps behind each, once they are asked for

    def rows(self, branch: Ints) -> Array:  # [max nodes, values] to [max nodes, 1 + 5 · values]
        """Return 1, and numbers of each value of a decision, all values of one kind adjacent.

        They are: whether it is offered, how much is known of it, its worth and its delay, weighed
        by that, and how much is supported. Sums of rows, weighed by how probable max nodes are, are
        what averages are made of.
        """
        size, values = branch.shape
        found = np.ones((size, 1 + 5 * values))
        found[:, 1 : 1 + values] = branch >= 0
        found[:, 1 + values :] = self._weighed[:, branch].swapaxes(0, 1).reshape(size, 4 * values)
        return found

    @cached_property
    def _weighed(self) -> Array:  # [4, branches + 1]
        worth = np.where(self.known > 0, self.worth, 0.0)
        return np.stack([self.known, self.known * worth, self.known * self.delay, self.supported])


@dataclass
class _First:
    """The first of the best branches with some number of steps to go."""

    choices: Choices
    with_delays: bool  # else ties are not broken
    tied: list[Ints]  # of each level, the number of best branches of each max node
    #: Of interface nodes that were asked for, the best decisions and what they are worth.
    made: dict[int, tuple[dict[str, Value], float]] = field(default_factory=dict)


def _numbers(bellman: Bellman, found: Choices) -> list[list[int]]:
    triples = zip(bellman.levels, found.best, found.chosen, strict=True)
    return [
        np.where(best[chosen], chosen - level.starts, -1).tolist()
        for level, best, chosen in triples
    ]


class Plan:
    """What is best at each max node of a model's template, over a horizon or for ever.

    `horizon`: the steps of an episode, or None: for ever. `discount`: per step. `criterion`: the
    rule at max nodes.
    """

    def __init__(
        self, model: RSPMN, horizon: int | None, discount: float, criterion: Criterion
    ) -> None:
        check_discount(discount)
        self.model, self.discount, self.criterion = model, discount, criterion
        self.horizon = None if horizon is None else check_steps(horizon, least=1)
        self.bound = 0.0  # how far values may be off; plans of draws have none
        self._kept: dict[int, At] = {}
        self._firsts: dict[int, _First] = {}
        self.together = _made_together(model.schema)
        self.offers = model.offers
        self.most_kept = min(KEPT, 1 + MOST_BRANCHES // (1 + int(self.offers.starts[-1])))
        self._values = self._plan()

    def _plan(self) -> StepValues:
        """Return what interface nodes are worth, by how many steps follow this one."""
        model, discount, criterion = self.model, self.discount, self.criterion
        if self.horizon is not None:
            found = values_over(model.bellman, self.horizon - 1, discount, criterion)
            self.bound = found.bound
            return found
        values, self.bound = limit(model, discount, criterion)
        if discount == 1:  # refuses values that no policy earns
            self._settled = self._settled_limit(values)
        return StepValues({0: values}, 0)

    @cached_property
    def _settled(self) -> tuple[StepValues, StepValues]:
        """How late values are earned, and which share of them is supported.

        Computed where actions tie, or where it is asked for.
        """
        if self.horizon is None:
            return self._settled_limit(self._values[0])
        bellman, most = self.model.bellman, self.horizon - 1
        all_known = bellman.all_known(self.criterion)
        return settled_over(bellman, self._values, most, self.discount, self._choose, all_known)

    def _settled_limit(self, values: Array) -> tuple[StepValues, StepValues]:
        model, discount, criterion = self.model, self.discount, self.criterion
        delays = delays_of_limit(model, values, self.bound, discount, criterion)
        supports = supports_of_limit(
            model, values, delays, discount, criterion, within=2 * self.bound
        )
        return StepValues({0: delays}, 0), StepValues({0: supports}, 0)

    def _choose(self, after: int, delays: Array | None = None) -> Choices:
        last = self.horizon is not None and after == 0
        return self.model.bellman.choose(
            self._values[after], delays, self.discount, last, self.criterion, within=2 * self.bound
        )

    def after(self, t: int) -> int:
        """Return how many steps follow the one at time t; 0 for ever."""
        if self.horizon is None:
            return 0
        if not isinstance(t, int | np.integer) or not 0 <= t < self.horizon:
            raise EvidenceError(f"t: expected 0 to {self.horizon - 1}, found {t!r}")
        return self.horizon - 1 - t

    def at(self, after: int, delays: bool = False) -> "At":
        """Return the best branches with so many steps after this one.

        Delays, and supported shares, are computed where actions tie, or where they are asked for.
        """
        after = self.settled_from(after)
        kept = self._kept.get(after)
        if kept is None or (delays and not kept.with_delays):
            if len(self._kept) >= self.most_kept:
                self._kept.clear()
            first = self._first_of(after)
            found, late = first.choices, first.with_delays
            if not late and (delays or found.has_ties):
                found, late = self._choose(after, self._settled[0][after]), True
            kept = self._kept[after] = self._at(after, found, late)
        return kept

    def settled_from(self, after: int) -> int:
        """Return the least number of steps after which all is as it is after so many."""
        values = self._values
        if after <= values.last or np.any(values.slope):
            return after
        if self.model.bellman.all_known(self.criterion):
            return values.last
        return min(after, max(values.last, self._settled[1].last))

    def _at(self, after: int, found: Choices, delays: bool) -> "At":
        bellman, last = self.model.bellman, self.horizon is not None and after == 0
        ones = tuple(np.ones(len(worth)) for worth in found.worth)
        known, supported = ones, ones
        if found.shares is not None:
            known = tuple(k for k in found.known if k is not None)
            if delays:
                following = self._settled[1][after]
                supported = bellman.supports(found, following, self.discount, last)[1]
        numbers = (found.worth, found.delay, known, supported)
        worth, delay, share, support = map(self.in_order, numbers)
        return At(found, delays, _numbers(bellman, found), worth, delay, share, support)

    def in_order(self, of_levels: tuple[Array, ...]) -> Array:  # [branches + 1, ...]
        """Return numbers of branches, [branches, ...] for each level, in the order of `Offers`."""
        more = of_levels[0].shape[1:] if of_levels else ()
        found = np.zeros((int(self.offers.starts[-1]) + 1, *more))
        for level, numbers in zip(self.model.bellman.levels, of_levels, strict=True):
            number, starts = self.offers.number[level.nodes], self.offers.starts
            found[ranges(starts[number], starts[number + 1])[0]] = numbers
        return found

    def future(self, after: int) -> Future:
        """Return what the interface nodes are worth with so many steps to go."""
        if self.horizon is not None and after == 0:
            return Future.nothing(self.model)
        delays, supports = self._settled
        return Future.of_arrays(self._values[after], delays[after], supports[after], self.bound)

    def decisions(self, node: int, after: int) -> tuple[dict[str, Value], float]:
        """Return the best decisions at an interface node, and what they are worth.

        They are those up to what is observed between two decisions.
        """
        known = self._first_of(after).made
        if node not in known:
            known[node] = self._decisions(node, after)
        return known[node]

    def _first_of(self, after: int) -> _First:
        """Return the first of the best branches: enough where none tie, and found at once."""
        after = self.settled_from(after)
        first = self._firsts.get(after)  # other threads may empty the table at any time
        if first is None:
            if len(self._firsts) >= self.most_kept:
                self._firsts.clear()
            late = "_settled" in self.__dict__  # then ties are broken at once
            found = self._choose(after, self._settled[0][after] if late else None)
            parts = zip(found.best, found.worth, self.model.bellman.levels, strict=True)
            tied = [
                np.add.reduceat(best & (worth > -np.inf), level.starts, dtype=np.int64)
                for best, worth, level in parts
            ]
            first = self._firsts[after] = _First(found, late, tied)
        return first

    def _decisions(self, node: int, after: int) -> tuple[dict[str, Value], float]:
        at = self.first(node)
        if at is None:
            return {}, math.nan
        value = self.value(at, after)
        made: dict[str, Value] = {}
        while at is not None:
            decided = self.model.template.nodes[at]
            assert isinstance(decided, Max)
            best = self._branch_taken(at, after)
            if best is None or isinstance(decided.values[best], Mark):
                break
            made[decided.decision] = decided.values[best]
            ends = decided.decision not in self.together[:-1]
            branch = self.offers.starts[self.offers.number[at]] + best
            at = None if ends else self._node(self.offers.next[branch])
        return made, value

    def first(self, node: int) -> int | None:
        """Return the max node of an interface node's first decision; None if it is not alone."""
        return self._node(self.offers.first[node])

    def _node(self, number: int) -> int | None:
        """Return a max node, given its number; None for -1."""
        return None if number < 0 else int(self.offers.maxes[number])

    # ---- single max nodes ----------------------------------------------------------

    @cached_property
    def _place(self) -> Ints:  # [nodes, 2]
        """Of each max node, its level and its number there."""
        found = np.full((len(self.model.template), 2), -1)
        for number, level in enumerate(self.model.bellman.levels):
            found[level.nodes, 0] = number
            found[level.nodes, 1] = np.arange(len(level.nodes))
        return found

    def value(self, at: int, after: int) -> float:
        """Return what a max node is worth."""
        level, k = self._place[at].tolist()
        slots = self.model.bellman.levels[level].slots
        return float(self._first_of(after).choices.values[slots.start + k])

    def _branch_taken(self, at: int, after: int) -> int | None:
        """Return what `best_branch` does; delays are computed only if branches tie here."""
        (level, k), found = self._place[at].tolist(), self._first_of(after)
        if found.tied[level][k] > 1:
            return self.best_branch(at, after)
        chosen = found.choices.chosen[level][k]
        first = self.model.bellman.levels[level].starts[k]
        return int(chosen - first) if found.choices.best[level][chosen] else None

    def best(self, at: int, after: int) -> tuple[float, float, float]:
        """Return what a max node is worth, how much is known of it, and how much is supported."""
        found = self.at(after, delays=not self.model.bellman.all_known(self.criterion))
        branch = self.best_branch(at, after)
        if branch is None:
            return -math.inf, 0.0, 0.0
        place = int(self.offers.starts[self.offers.number[at]]) + branch
        level, k = self._place[at].tolist()
        slot = self.model.bellman.levels[level].slots.start + k
        known = 1.0 if found.choices.shares is None else float(found.choices.shares[slot])
        return float(found.choices.values[slot]), known, float(found.supported[place])

    def best_branch(self, at: int, after: int) -> int | None:
        """Return the best branch of a max node, None if none may be taken."""
        level, k = self._place[at].tolist()
        branch = self.at(after).best[level][k]
        return branch if branch >= 0 else None

    def steps_of_branches(self, branches: Ints, after: int) -> Array:  # as `branches`
        """Return the logged steps that support some branches, as `Offers` numbers them.

        They are infinite where no utility is below, and none support branch -1, which is none.
        """
        return np.where(branches >= 0, self._steps(after)[self.offers.child[branches]], 0.0)

    def steps(self, index: int, after: int) -> float:
        """Return the logged steps that support a node's worth, as `Evaluation.steps` counts."""
        steps = float(self._steps(after)[index])
        return 0.0 if math.isinf(steps) else steps

    def _steps(self, after: int) -> Array:  # [nodes]
        found, arrays = self.at(after), self.model.template.arrays
        if found.steps is None:
            found.steps = logged_steps(arrays, self.model.bellman.taken(found.choices, arrays))
        return found.steps


def _made_together(schema: Schema) -> list[str]:
    """Return the decisions that are made before anything is observed after the first."""
    found = []
    for decision, seen in zip(schema.decisions, schema.information_sets[1:], strict=True):
        found.append(decision)
        if seen:
            break
    return found
