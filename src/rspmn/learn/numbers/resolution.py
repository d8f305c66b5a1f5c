"""How fine a grid is: the coarsest whose decisions lose nothing on the finest.

Finer grids follow the log more closely, in its noise too, and are harder to read. So grids are
solved from coarse to fine, as far as the log supports, until values no longer change. The decisions
of each are then valued on the finest, and the coarsest that loses next to nothing there is chosen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rspmn.learn.numbers.displacements import Displacements
from rspmn.learn.numbers.follows import Follows
from rspmn.learn.numbers.grid import Grid, Membership
from rspmn.learn.numbers.successors import GridTransitions
from rspmn.types import Array, Ints

#: The discounts of the values that are compared.
DISCOUNTS = 0.5, 0.8, 0.99
#: Finer grids are not tried if values change by less than this share of their deviation.
CHANGE = 0.03
#: What decisions of a coarser grid may lose on the finest, and how far its values may be from
#: those of the finest, as shares of the deviation of values.
LOSS, ERROR = 0.05, 0.1
#: Values are iterated until they change by less than this share of the largest.
PRECISION = 1e-3


@dataclass(frozen=True, eq=False)
class Solved:
    """A grid, what follows its nodes, and what actions are worth there."""

    grid: Grid
    follows: Follows
    led: GridTransitions
    membership: Membership  # of the logged steps
    displacements: Displacements

    @cached_property
    def action_values(self) -> list[Array]:  # [nodes, actions] for each discount
        """What actions are worth, the best done after them."""
        return [self._iterated(discount, None) for discount in DISCOUNTS]

    def values(self) -> Array:  # [discounts, nodes]
        """Return what nodes are worth."""
        return np.stack([worth.max(axis=1) for worth in self.action_values])

    def values_of(self, choices: Sequence[Ints]) -> Array:  # [discounts, nodes]
        """Return what nodes are worth if at each discount these actions are taken."""
        found = [self._iterated(d, c) for d, c in zip(DISCOUNTS, choices, strict=True)]
        at = np.arange(self.grid.size)
        return np.stack([w[at, c] for w, c in zip(found, choices, strict=True)])

    def choices_on(self, other: Grid) -> list[Ints]:  # [nodes of the other] for each discount
        """Return the best action at each node of another grid of the same variables."""
        codes = other.nodes[:, : len(other.sizes)]
        membership = self.grid.locate(codes, other.points)
        return [membership.at_rows(worth).argmax(axis=1) for worth in self.action_values]

    def _iterated(self, discount: float, choices: Ints | None) -> Array:  # [nodes, actions]
        matrix, mean = self.led.matrix(self.grid.size), self.follows.mean
        on = (1 - self.follows.end).ravel()
        at, values = np.arange(len(mean)), np.zeros(len(mean))
        for _ in range(1000):
            worth = mean + discount * (on * (matrix @ values)).reshape(mean.shape)
            found = worth.max(axis=1) if choices is None else worth[at, choices]
            change = float(np.abs(found - values).max())
            values = found
            if change <= PRECISION * float(np.abs(values).max()):
                break
        return np.asarray(worth)


def change_between(coarse: Solved, fine: Solved) -> float:
    """Return how far values at the nodes of the finer grid differ, over their deviation."""
    codes = fine.grid.nodes[:, : len(fine.grid.sizes)]
    before = coarse.grid.locate(codes, fine.grid.points).at_rows(coarse.values().T).T
    return _in_deviations(np.abs(fine.values() - before), fine)


def loss_of(coarse: Solved, finest: Solved) -> float:
    """Return what the decisions of a coarser grid lose on the finest, over the deviation."""
    lost = finest.values() - finest.values_of(coarse.choices_on(finest.grid))
    return _in_deviations(lost, finest)


def _in_deviations(difference: Array, solved: Solved) -> float:
    """Return the mean over logged states in standard deviations of values; the largest one."""
    share = solved.grid.visits / solved.grid.visits.sum()
    values = solved.values()
    deviation = np.sqrt(((values - (values @ share)[:, None]) ** 2) @ share)
    return float((difference @ share / (deviation + 1e-300)).max())


def coarsest(solved: Sequence[Solved]) -> tuple[Solved, list[float]]:
    """Return the coarsest of some grids that is as good as the finest, and what each loses."""
    finest = solved[-1]
    losses = [loss_of(one, finest) for one in solved]
    for one, lost in zip(solved, losses, strict=True):
        if lost <= LOSS and change_between(one, finest) <= ERROR:
            return one, losses
    return finest, losses
