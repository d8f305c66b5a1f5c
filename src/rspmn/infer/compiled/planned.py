"""The best choices of a model, for every number of steps to go."""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from rspmn.errors import EvidenceError
from rspmn.infer.bellman import Future, check_discount, check_steps
from rspmn.infer.compiled.bellman import Choices
from rspmn.infer.compiled.finite_horizon import StepValues, settled_over, values_over
from rspmn.infer.compiled.infinite_horizon import limit, supports_of_limit
from rspmn.infer.compiled.layers import ranges
from rspmn.infer.compiled.steps_to_go import At
from rspmn.infer.compiled.ties import delays_of_limit
from rspmn.infer.criterion import Criterion
from rspmn.model import RSPMN
from rspmn.schema import Schema
from rspmn.types import Array, Ints
from rspmn.values import Mark, Value

#: Of so many different steps to go the choices are kept, and fewer of a template with more
#: branches than this in all.
KEPT, MOST_BRANCHES = 64, 10_000_000


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
        self._kept: dict[int, At] = {}  # other threads may empty it at any time
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
        return settled_over(
            bellman, self._values, most, self.discount,
            lambda after, delays: self._keep(after, delays).choices, all_known,
        )  # fmt: skip

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

    def at(self, after: int, delays: bool = False) -> At:
        """Return the best branches with so many steps after this one.

        Delays, and supported shares, are computed where actions tie, or where they are asked for.
        """
        after = self.settled_from(after)
        found = self._first_at(after)
        if not found.with_delays and (delays or (found.tied > 1).any()):
            late = self._settled[0][after]
            found = self._kept.get(after, found)  # as it was kept with delays on the way
            if not found.with_delays:
                found = self._keep(after, late)
        return found

    def _first_at(self, after: int) -> At:
        """Return the first of the best branches: enough where none tie, and found at once."""
        after = self.settled_from(after)
        found = self._kept.get(after)
        if found is None:
            late = "_settled" in self.__dict__  # then ties are broken at once
            found = self._keep(after, self._settled[0][after] if late else None)
        return found

    def _keep(self, after: int, delays: Array | None) -> At:
        if len(self._kept) >= self.most_kept and after not in self._kept:
            self._kept.clear()
        found = At(self, after, self._choose(after, delays), delays is not None)
        self._kept[after] = found
        return found

    def settled_from(self, after: int) -> int:
        """Return the least number of steps after which all is as it is after so many."""
        values = self._values
        if after <= values.last or np.any(values.slope):
            return after
        if self.model.bellman.all_known(self.criterion):
            return values.last
        return min(after, max(values.last, self._settled[1].last))

    def divides(self, afters: Iterable[int]) -> bool:
        """Tell whether rules tell states of one max node apart in some steps."""
        if not hasattr(self.criterion, "sides"):  # nothing has to be planned to know
            return False
        return any(self.at(after).choices.are_divided for after in afters)

    def supports(self, choices: Choices, after: int) -> tuple[Array, ...]:
        """Return the share of each branch that is supported to the end, of each level."""
        last = self.horizon is not None and after == 0
        following = self._settled[1][after]
        return self.model.bellman.supports(choices, following, self.discount, last)[1]

    def in_order(self, of_levels: Sequence[Array]) -> Array:  # [branches + 1, ...]
        """Return numbers of branches, [branches, ...] for each level, in the order of `Offers`."""
        more = of_levels[0].shape[1:] if of_levels else ()
        found = np.zeros((int(self.offers.starts[-1]) + 1, *more))
        for places, numbers in zip(self.places, of_levels, strict=True):
            found[places] = numbers
        return found

    @cached_property
    def places(self) -> list[Ints]:
        """Of each level, the numbers of its branches by `Offers`."""
        starts, numbers = self.offers.starts, self.offers.number
        levels = self.model.bellman.levels
        return [ranges(starts[n], starts[n + 1])[0] for n in (numbers[at.nodes] for at in levels)]

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
        known = self._first_at(after).made
        found = known.get(node)
        if found is None:
            found = known[node] = self._decisions(node, after)
        return found

    def _decisions(self, node: int, after: int) -> tuple[dict[str, Value], float]:
        number = int(self.offers.first[node])
        if number < 0:
            return {}, math.nan
        value = float(self._first_at(after).choices.values[self.slots[number]])
        made: dict[str, Value] = {}
        while number >= 0:
            branch = self._best(number, after)
            decision, chosen = self.offers.named(branch)
            if branch < 0 or isinstance(chosen, Mark):
                break
            made[decision] = chosen
            number = int(self.offers.next[branch]) if decision in self.together[:-1] else -1
        return made, value

    def first(self, node: int) -> int | None:
        """Return the max node of an interface node's first decision; None if it is not alone."""
        number = self.offers.first[node]
        return None if number < 0 else int(self.offers.maxes[number])

    # ---- max nodes -----------------------------------------------------------------

    @cached_property
    def slots(self) -> Ints:  # [maxes]
        """The place of each max node among all unknowns."""
        found = np.full(len(self.offers.maxes), -1)
        for level in self.model.bellman.levels:
            found[self.offers.number[level.nodes]] = np.arange(level.slots.start, level.slots.stop)
        return found

    def best(self, numbers: Ints, after: int) -> Array:  # [3, n]
        """Return what max nodes are worth, how much is known of it, and how much is supported.

        They are NaN for number -1, of no max node.
        """
        at = self.at(after, delays=not self.model.bellman.all_known(self.criterion))
        found, here = np.full((3, len(numbers)), np.nan), numbers >= 0
        branch, slot = at.best[numbers[here]], self.slots[numbers[here]]
        known = 1.0 if at.choices.shares is None else at.choices.shares[slot]
        found[0, here] = np.where(branch < 0, -np.inf, at.choices.values[slot])
        found[1, here] = np.where(branch < 0, 0.0, known)
        found[2, here] = at.supported[branch]
        return found

    def best_branch(self, at: int, after: int) -> int | None:
        """Return the best branch of a max node, None if none may be taken."""
        number = int(self.offers.number[at])
        branch = self._best(number, after)
        return None if branch < 0 else branch - int(self.offers.starts[number])

    def _best(self, number: int, after: int) -> int:
        """Return the best branch of a max node, as `Offers` numbers it; -1 if none may be taken.

        Delays are computed only if branches tie here.
        """
        found = self._first_at(after)
        if not found.with_delays and found.tied[number] > 1:
            found = self.at(after)
        return int(found.best[number])

    def steps_of_branches(self, branches: Ints, after: int) -> Array:  # as `branches`
        """Return the logged steps that support some branches, as `Offers` numbers them.

        They are infinite where no utility is below, and none support branch -1, which is none.
        """
        return np.where(branches >= 0, self.at(after).steps[self.offers.child[branches]], 0.0)

    def steps(self, numbers: Ints, after: int) -> Array:  # as `numbers`
        """Return the logged steps that support what max nodes are worth; 0 for number -1.

        They are counted as by `Evaluation.steps`.
        """
        found, here = np.zeros(len(numbers)), numbers >= 0
        found[here] = self.at(after).steps[self.offers.maxes[numbers[here]]]
        return np.where(np.isinf(found), 0.0, found)


def _made_together(schema: Schema) -> list[str]:
    """Return the decisions that are made before anything is observed after the first."""
    found = []
    for decision, seen in zip(schema.decisions, schema.information_sets[1:], strict=True):
        found.append(decision)
        if seen:
            break
    return found
