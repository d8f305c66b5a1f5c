"""What policies of single decisions are worth by rows held out: a doubly robust estimate.

Where contexts are numbers, which of them are alike was learned, and what was learned from a row
fits it better than others. So rows are asked what a model of other rows would do with them, and
expects of it. Where the logged decision is the same, the utility tells by how much that is off.
Rows are compared in strata of how often the logger did the same there: where it hardly ever did, a
few lucky rows count for no more than they are, and where it never did, for nothing.

Whoever looks at the context knows more of it than any model. So contexts in which the logger did
something else may be others than those in which it did the same, and the policy may earn less there
than is expected: by a standard deviation of utilities, as far as decisions depend on contexts. Half
of that is taken off, half is an error.

Rare rewards are skewed: few rows without any have hardly a variance, although the reward may just
have been missed. The more such rewards are worth on average, the more they vary: by the third
central moment over the variance, as in every natural exponential family. A score interval counts
with the error that is expected at its ends: for rewards that are 0 or 1 it is near Wilson's, for
symmetric ones the usual. Its other end is too near where hardly one such reward is expected, so
each end is the farther one of the two intervals.
"""

import math
from typing import NamedTuple

import numpy as np

from rspmn.errors import EvidenceError
from rspmn.infer.branches import Branches
from rspmn.infer.compiled.planned import Plan
from rspmn.successor_counts import HeldOutRows
from rspmn.trust.utilities import POOLED
from rspmn.types import Array, Ints

#: Strata end where the logger takes the policy's decision with these probabilities.
STRATA = 0.02, 0.05, 0.1, 0.2, 0.4, 0.7


class HeldOutValue(NamedTuple):
    """What a policy is worth."""

    point: float
    error: float  # its standard error
    growth: float  # by how much the squared error is higher if the value is, by 1

    def interval(self, errors: float) -> tuple[float, float]:
        """Return the values from which the point is at most so many errors away, its or theirs."""
        shift, usual = errors**2 * self.growth / 2, errors * self.error
        width = math.hypot(shift, usual)
        return self.point + min(shift - width, -usual), self.point + max(shift + width, usual)


def value_of(rows: HeldOutRows, planned: Plan) -> HeldOutValue:
    """Return what the policy is worth that does what is best by the criterion of a plan.

    The criterion may look at what actions are worth, and at their steps.
    """
    shape = len(rows.made), rows.actions
    worth, steps, offered = (
        np.array(of).reshape(shape) for of in (rows.worth, rows.steps, rows.offered)
    )
    made, earned, weight = (np.array(of) for of in (rows.made, rows.utility, rows.weight))
    best = _best(worth, steps, offered == 1, planned)
    each = np.arange(len(made))
    taken, share = worth[each, best], steps[each, best] / np.maximum(steps.sum(axis=1), 1e-300)
    stratum, size, total = np.digitize(share, STRATA), len(STRATA) + 1, float(weight.sum())
    usual = float(weight @ earned) / total
    whole = float(weight @ (earned - usual) ** 2) / total

    def sums(of_rows: Array) -> Array:  # [strata]
        return np.bincount(stratum, of_rows, size).astype(np.float64)

    mass, same = sums(weight), weight * (made == best)
    expected = sums(weight * taken) / np.maximum(mass, 1e-300)
    off, known = earned - taken, sums(same)
    # As if one more row had been logged, which earned what rows do on average.
    mean = (sums(same * off) + usual - expected) / (known + 1)
    squares = sums(same * (off - mean[stratum]) ** 2) + POOLED * whole
    variance = squares / (known + POOLED) / (known + 1)
    found = expected + mean  # [strata]
    point = float(mass @ found) / total
    of_contexts = float(weight**2 @ (taken + mean[stratum] - point) ** 2) / total**2
    half = (1 - float(same.sum()) / total) * _dependence(made, steps, weight) * math.sqrt(whole) / 2
    of_strata = (mass / total) ** 2 * variance
    squared = float(of_strata.sum()) + of_contexts + half**2
    # The third cumulant of a mean is the third central moment over the squared number of rows.
    skewed = float(weight @ (earned - usual) ** 3) / total / whole if whole > 0 else 0.0
    third = skewed * float(of_strata @ (mass / total / (known + 1)))
    return HeldOutValue(point - half, math.sqrt(squared), third / squared if squared > 0 else 0.0)


def _dependence(made: Ints, steps: Array, weight: Array) -> float:
    """Return which share of the entropy of decisions the contexts explain."""
    usual = np.bincount(made, weight, steps.shape[1]) / weight.sum()
    chances = (steps + usual) / (steps + usual).sum(axis=1, keepdims=True)
    each = np.arange(len(made))
    entropy = -float(weight @ np.log(usual[made]))
    loss = -float(weight @ np.log(np.maximum(chances[each, made], 1e-300)))
    return max(0.0, 1 - loss / entropy) if entropy > 0 else 0.0


def _best(worth: Array, steps: Array, offered: Array, planned: Plan) -> Ints:  # [rows]
    """Return the best action of each row."""
    row, action = np.nonzero(offered)
    starts = np.searchsorted(row, np.arange(len(worth)))
    branches = Branches(planned.offers.context, starts, len(row), _no_edges, steps[offered])
    scores = np.full(worth.shape, np.nan)
    scores[row, action] = planned.criterion.scores(worth[offered], branches)
    return np.asarray(np.where(np.isnan(scores), -np.inf, scores).argmax(axis=1))


def _no_edges() -> tuple[Ints, Ints]:
    raise EvidenceError(
        "criterion: an honest value of single decisions needs one that looks at worth and steps"
    )
