"""The counts behind soft boxes: a step is shared by the nodes it belongs to."""

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.learn.numbers.follows import STRENGTH, Follows
from rspmn.learn.numbers.grid import Grid
from rspmn.learn.numbers.successors import GridTransitions
from rspmn.successor_counts import SoftCounts
from rspmn.types import Array, Ints

#: No expected state is taken as surer than the mean of this many draws.
MOST = 1e6


def soft_counts(
    grid: Grid,
    follows: Follows,
    led: GridTransitions,
    starts: Array,
    outcome: Ints,
    end: int | None,
) -> SoftCounts:
    """Return the counts behind the template of a grid.

    Parameters
    ----------
    grid, follows, led
        The nodes, what follows them, and the weights of their successors.
    starts
        How many episodes began in each node. [nodes]
    outcome
        The outcome of each branch, -1 where it is not offered. [nodes, actions]
    end
        The interface node END, None if no episode ends.
    """
    others = () if end is None else (0.0,)  # END is an outcome too
    offered, size = outcome >= 0, int(outcome.max()) + 1
    steps, landing = np.zeros((2, size))
    np.add.at(steps, outcome[offered], follows.steps[offered])
    landing[outcome[offered]] = _landing(grid, follows, led)[offered]
    return SoftCounts(
        (*starts.tolist(), *others), (*steps.tolist(), *others), (*landing.tolist(), *others),
        STRENGTH,
    )  # fmt: skip


def _landing(grid: Grid, follows: Follows, led: GridTransitions) -> Array:  # [nodes, actions]
    """Return how many draws from the weights of each S_L have a mean as sure as its own.

    From n steps, and a shared model that is worth κ, the expected next value has the variance
    σ² / (n + κ), σ² that of residuals. The mean of m draws has s² / m, s² the variance of the
    weights. So m is (n + κ) · s² / σ², of the number where it is least. Without noise, all that is
    not sure is how well an expected value describes a node.
    """
    size, actions, dimension = follows.next_numbers.shape
    found = np.full((size, actions), MOST)
    for j in range(dimension):
        at = grid.points[:, j]
        mean, square = (
            group_weights(led.site, led.weight * of[led.to], led.sites) for of in (at, at**2)
        )
        spread = np.maximum(square - mean**2, 0).reshape(size, actions)
        noise = np.array([_mean_square(each[:, j]) for each in follows.noise])
        known = (follows.steps + STRENGTH) * spread
        found = np.where(known > 0, np.minimum(found, known / np.maximum(noise, 1e-300)), found)
    return found


def _mean_square(numbers: Array) -> float:
    known = numbers[~np.isnan(numbers)]
    return float(known @ known) / max(1, len(known))
