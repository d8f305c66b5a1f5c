"""What is done at max nodes in several worlds at once: the best, what a plan says, or a mixture.

A rule settles the max nodes of a level, given what their branches are worth in each draw.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from rspmn.infer.compiled.bellman import Choices
from rspmn.infer.compiled.linear_forms import Level
from rspmn.infer.criterion import MEU, Criterion, scored
from rspmn.types import Array, Ints

#: The branch that is taken at each max node, for each level of decisions: [max nodes], or
#: [draws, max nodes] where each draw has its own.
Choice = Sequence[Ints]


class Rule(Protocol):
    """Says what is done at max nodes."""

    def settle(self, number: int, level: Level, worth: Array) -> Array:  # [draws, max nodes]
        """Return what the max nodes of a level are worth.

        Parameters
        ----------
        number
            The number of the level; innermost decisions have 0.
        level
            The max nodes.
        worth
            What each branch is worth, -∞ where it is not known what follows. [draws, branches]
        """
        ...


class Best:
    """The best branch in each draw, the first of several; `taken` keeps which.

    Parameters
    ----------
    criterion
        What is best.
    """

    def __init__(self, criterion: Criterion = MEU) -> None:
        self.criterion = criterion
        self.taken: list[Ints] = []  # of each level, [draws, max nodes]

    def settle(self, number: int, level: Level, worth: Array) -> Array:  # noqa: ARG002
        """Return what the branch of highest score of each max node is worth."""
        if self.criterion is not MEU:
            scores = np.stack([scored(self.criterion, row, level.branches) for row in worth])
            worth = np.where(np.isnan(scores), -np.inf, worth)
            scores = np.where(np.isnan(scores), -np.inf, scores)
        else:
            scores = worth
        counts = np.diff(np.append(level.starts, worth.shape[1]))
        best = np.repeat(np.maximum.reduceat(scores, level.starts, axis=1), counts, axis=1)
        places = np.where(scores >= best, np.arange(worth.shape[1]), worth.shape[1])
        taken = np.asarray(np.minimum.reduceat(places, level.starts, axis=1))
        self.taken.append(taken)
        return np.take_along_axis(worth, taken, axis=1)


class Fixed:
    """The branches of a plan."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice

    @property
    def taken_last(self) -> Ints:
        """The branches of last decisions that are taken."""
        return self.choice[0]

    def settle(self, number: int, level: Level, worth: Array) -> Array:
        """Return what the plan's branches are worth."""
        choice = self.choice[number]
        if choice.ndim == 1:
            return worth[:, choice]
        rows = np.broadcast_to(choice, (len(worth), len(level.nodes)))
        return np.take_along_axis(worth, rows, axis=1)


class Mixed:
    """Branches by their probabilities, as a policy that chooses at random takes them.

    Branches of which it is not known what follows are left out, and the others make up for them.
    Where nothing is left the node is worth -∞.
    """

    def __init__(self, probabilities: Sequence[Array]) -> None:
        self.probabilities = probabilities  # of each level, [branches]

    @property
    def taken_last(self) -> Ints:
        """The branches of last decisions that are taken."""
        return np.flatnonzero(self.probabilities[0])

    def settle(self, number: int, level: Level, worth: Array) -> Array:
        """Return the mean worth of each max node."""
        known = np.isfinite(worth)
        shares = np.where(known, self.probabilities[number], 0.0)
        total = np.add.reduceat(shares, level.starts, axis=1)
        found = np.add.reduceat(shares * np.where(known, worth, 0.0), level.starts, axis=1)
        return np.where(total > 0, found / np.maximum(total, 1e-300), -np.inf)


def rule_of(choices: Choices) -> Fixed | Mixed:
    """Return the rule of a plan's choices; where states of a node do differently, a mixture."""
    if all(taken is None for taken in choices.taken):
        return Fixed(choices.chosen)
    probabilities = []
    for worth, chosen, taken in zip(choices.worth, choices.chosen, choices.taken, strict=True):
        always = np.zeros(len(worth))
        always[chosen] = 1.0
        probabilities.append(always if taken is None else taken)
    return Mixed(probabilities)


class Recorded:
    """Does as another rule does, and keeps what branches are worth."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.worth: list[Array] = []  # of each level, [draws, branches]

    def settle(self, number: int, level: Level, worth: Array) -> Array:
        """Return what the max nodes of a level are worth by the other rule."""
        self.worth.append(worth)
        return self.rule.settle(number, level, worth)
