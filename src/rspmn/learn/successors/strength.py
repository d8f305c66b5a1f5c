"""How many steps a shared prediction is worth: what predicts steps best that are left out."""

from typing import NamedTuple

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.learn.structure.contingency import distinct_weights
from rspmn.types import Array, Ints

#: The strengths κ that are tried.
STRENGTHS = (0.0, *(float(f"{k}e{e}") for e in range(-2, 7) for k in (1, 3)))
#: What nothing predicts is as likely as if this part of a step had been seen with every value.
FLOOR = 1e-3
#: A κ whose log-likelihood is lower than the best by more than this is ruled out: half of the 95 %
#: point of chi-squared with one degree of freedom.
RULED_OUT = 1.92


class Strength(NamedTuple):
    """The number of steps that a prediction is worth."""

    best: float
    least: float  # the least that the log does not rule out
    gained: float  # log-likelihood of each step given all others, over that of counts alone


def best_strength(
    group: Ints, value: Ints, values: int, weights: Array, share: Array, prior: Array
) -> Strength:
    """Return the strength under which steps are best predicted by all others.

    Parameters
    ----------
    group
        The group of each step: steps predict others of their group. [steps]
    value, values
        What followed each step, and how many values there are. [steps]
    weights
        How often each step occurred. [steps]
    share
        How much of a step each is: 1, unless it lacks values. [steps]
    prior
        The probability that the shared prediction, from which the step is left out, gives what
        followed. [steps]
    """
    key = group * values + value
    keys, total = distinct_weights(key, weights)
    others = np.maximum(total[np.searchsorted(keys, key)] - share, 0.0)  # but for rounding
    visits = np.maximum(group_weights(group, weights)[group] - share, 0.0)
    likelihoods = [
        float(weights @ np.log((others + k * prior + FLOOR / values) / (visits + k + FLOOR)))
        for k in STRENGTHS
    ]
    best = int(np.argmax(likelihoods))
    gained = (likelihoods[best] - likelihoods[0]) / float(weights.sum())
    least = int(np.argmax(np.array(likelihoods) >= likelihoods[best] - RULED_OUT))
    return Strength(STRENGTHS[best], STRENGTHS[least], gained)
