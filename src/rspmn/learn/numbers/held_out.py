"""Where a grid does not predict steps that it was not fitted to, one step ahead.

A grid of the same knots is fitted to half of the steps. What it says of the other half is compared
with what was logged, action by action: the mean reward, and of each number the shares of next
values below knots, those nearest to quantiles of what is predicted; of categories the share of each
value.
"""

from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from rspmn.learn.numbers.displacements import Logged
from rspmn.learn.numbers.resolution import Solved
from rspmn.learn.numbers.successors import DRAWS
from rspmn.types import Array

#: The shares below which predicted and logged values are compared.
SHARES = 0.1, 0.5, 0.9
#: The level of all comparisons together: so often something is found where nothing is amiss.
LEVEL = 0.01
#: Actions of fewer steps in either half are not compared.
FEW = 50.0
#: Noise has so many draws, which cannot tell smaller shares.
FINEST = 1 / (2 * DRAWS)


class Miss(NamedTuple):
    """What is predicted of an action, and what was logged on held-out steps."""

    what: str
    action: str
    predicted: float
    logged: float
    error: float  # the standard error of their difference
    slack: float  # by so much they may differ without noise

    def __str__(self) -> str:
        return f"{self.what} after {self.action}: {self.predicted:.4g} predicted, {self.logged:.4g}"


def misses(
    solved: Solved, fitted: Logged, test: Logged, actions: Sequence[str],
    numbers: Sequence[str], categories: Sequence[tuple[str, Sequence[str]]],
) -> tuple[Miss, ...]:  # fmt: skip
    """Return what is mispredicted beyond noise, the clearest first.

    Parameters
    ----------
    solved
        A grid and what follows its nodes.
    fitted, test
        The steps it was fitted to, and others.
    actions, numbers, categories
        Their names, and the values of each category.
    """
    found = list(_compared(solved, fitted, test, actions, numbers, categories))
    far = NormalDist().inv_cdf(1 - LEVEL / (2 * max(1, len(found))))
    ratios = {
        m: abs(m.predicted - m.logged) / (far * m.error + m.slack + 1e-9 * abs(m.logged) + 1e-300)
        for m in found
    }
    return tuple(m for m in sorted(ratios, key=lambda m: -ratios[m]) if ratios[m] > 1)


def _compared(
    solved: Solved, fitted: Logged, test: Logged, actions: Sequence[str],
    numbers: Sequence[str], categories: Sequence[tuple[str, Sequence[str]]],
) -> Iterator[Miss]:  # fmt: skip
    grid, led = solved.grid, solved.led
    here = grid.locate(test.codes, test.numbers)
    on = ~test.ended & ~np.isnan(test.next_numbers).any(axis=1) & (test.next_codes >= 0).all(axis=1)
    after = grid.locate(test.next_codes[on], test.next_numbers[on]) if on.any() else None
    for a, name in enumerate(actions):
        counts = np.where(test.action == a, test.counts, 0.0)
        steps, other = float(counts.sum()), float(fitted.counts[fitted.action == a].sum())
        if min(steps, other) < FEW:
            continue
        predicted = here.at_rows(solved.follows.mean[:, a])
        missed = test.utility - predicted
        variance = float(counts @ ((missed - counts @ missed / steps) ** 2 + test.spread)) / steps
        noise = 1 / steps + 1 / other
        said, earned = (float(counts @ x) / steps for x in (predicted, test.utility))
        yield Miss("reward", name, said, earned, float(np.sqrt(variance * noise)), 0.0)
        counts = np.where(on, counts, 0.0)
        if after is None or counts.sum() < FEW:
            continue
        mass = here.sums(np.ones(len(counts)), counts) / counts.sum()
        mine = led.site % len(actions) == a
        share = led.weight[mine] * mass[led.site[mine] // len(actions)]
        expected = np.bincount(led.to[mine], share, grid.size)
        logged = after.sums(np.ones(int(on.sum())), counts[on]) / counts.sum()
        for j, number in enumerate(numbers):
            at, which = np.unique(grid.points[:, j], return_inverse=True)
            below = [np.cumsum(np.bincount(which, x, len(at))) for x in (expected, logged)]
            for k in sorted({int(np.abs(below[0] - q).argmin()) for q in SHARES} - {len(at) - 1}):
                yield _miss(
                    f"share of next {number} to {at[k]:.4g}", name, below[0][k], below[1][k], noise
                )
        for j, (category, values) in enumerate(categories):
            shares = [np.bincount(grid.nodes[:, j], x, len(values)) for x in (expected, logged)]
            for value, one, two in zip(values, *shares, strict=True):
                yield _miss(f"share of next {category} {value}", name, one, two, noise)


def _miss(what: str, action: str, predicted: Array, logged: Array, noise: float) -> Miss:
    """Return the comparison of two shares; their variance is p (1 - p) of each step."""
    one, two = float(predicted), float(logged)
    mean = min(max((one + two) / 2, 0.0), 1.0)
    return Miss(what, action, one, two, float(np.sqrt(mean * (1 - mean) * noise)), FINEST)
