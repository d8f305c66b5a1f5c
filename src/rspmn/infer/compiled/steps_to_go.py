"""What is best with some number of steps to go."""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rspmn.infer.branches import logged_steps
from rspmn.infer.compiled.bellman import Bellman, Choices
from rspmn.types import Array, Ints
from rspmn.values import Value

if TYPE_CHECKING:
    from rspmn.infer.compiled.planned import Plan


class At:
    """What is best with some number of steps to go; numbers of branches are found when asked for.

    Branches are numbered as by `Offers`; the last number, for none, has 0. [branches + 1]
    """

    def __init__(self, plan: "Plan", after: int, choices: Choices, with_delays: bool) -> None:
        self._plan, self._after, self.choices = plan, after, choices
        self.with_delays = with_delays  # else ties are not broken
        #: Of interface nodes that were asked for, the best decisions and what they are worth.
        self.made: dict[int, tuple[dict[str, Value], float]] = {}

    @cached_property
    def tied(self) -> Ints:  # [maxes]
        """The number of best branches of each max node, if one is known."""
        levels, maxes = self._bellman.levels, self._plan.offers
        found = np.zeros(len(maxes.maxes), dtype=np.int64)
        for best, worth, at in zip(self.choices.best, self.choices.worth, levels, strict=True):
            known = best & (worth > -np.inf)
            found[maxes.number[at.nodes]] = np.add.reduceat(known, at.starts, dtype=np.int64)
        return found

    @cached_property
    def best(self) -> Ints:  # [maxes]
        """The best branch of each max node, of several the one that is taken; -1 for none."""
        offers, found = self._plan.offers, np.full(len(self._plan.offers.maxes), -1)
        levels = zip(self._bellman.levels, self._plan.places, strict=True)
        chosen = zip(self.choices.best, self.choices.chosen, strict=True)
        for (level, places), (best, taken) in zip(levels, chosen, strict=True):
            found[offers.number[level.nodes]] = np.where(best[taken], places[taken], -1)
        return found

    @cached_property
    def worth(self) -> Array:
        """What branches are worth."""
        return self._plan.in_order(self.choices.worth)

    @cached_property
    def delay(self) -> Array:
        """How late that is earned."""
        return self._plan.in_order(self.choices.delay)

    @cached_property
    def known(self) -> Array:
        """How much is known of what follows."""
        known = [np.ones(len(w)) if k is None else k for k, w in self._known_and_worth]
        return self._plan.in_order(known)

    @cached_property
    def supported(self) -> Array:
        """The share that is supported to the end; all of it without delays."""
        if self.choices.shares is None or not self.with_delays:
            return self._plan.in_order([np.ones(len(w)) for _, w in self._known_and_worth])
        return self._plan.in_order(self._plan.supports(self.choices, self._after))

    @cached_property
    def steps(self) -> Array:  # [nodes]
        """The logged steps behind each node of the template."""
        arrays = self._plan.model.template.arrays
        return logged_steps(arrays, self._bellman.taken(self.choices, arrays))

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

    @property
    def _bellman(self) -> Bellman:
        return self._plan.model.bellman

    @property
    def _known_and_worth(self) -> Iterator[tuple[Array | None, Array]]:
        return zip(self.choices.known, self.choices.worth, strict=True)
