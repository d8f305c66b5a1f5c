"""The size of a grid, known before it is made."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rspmn.data.columns import Column
from rspmn.data.keys import joint_key
from rspmn.learn.numbers.steps import Steps, Variable
from rspmn.learn.numbers.successors import most_landings
from rspmn.memory import IN_PASSING, LIMIT
from rspmn.schema import Kind
from rspmn.types import Bools, Ints

#: Numbers of knots that are tried, one after the other.
KNOTS = 3, 4, 5, 6, 8, 14, 24, 32
#: About the bytes of a branch, and of an edge to a successor, as nodes and in arrays.
OF_BRANCH, OF_EDGE = 3000, 300
#: About so many arrays hold the features of steps.
COPIES = 6
#: The share of the limit that a model may use; the other half is the log's and what is in passing.
SHARE = 0.5


@dataclass(frozen=True, eq=False)
class GridSize:
    """The size of grids of some steps.

    Parameters
    ----------
    steps
        The logged steps.
    names
        The variables of the grid.
    """

    steps: Steps
    names: Sequence[str]

    def fits(self, points: int) -> bool:
        """Return whether a grid with so many knots in all fits into memory.

        `points`: the product of the numbers of knots of all axes.
        """
        nodes = points * self._joint
        branches = nodes * len(self.steps.actions)
        landings = most_landings(self.numbers) * self._followers
        edges = branches * min(landings, nodes)
        features = (self.numbers + self._codes) * (COPIES * len(self.steps) + 2 * branches)
        kept = OF_BRANCH * branches + OF_EDGE * edges + 8 * features
        return kept <= SHARE * LIMIT and landings <= IN_PASSING

    @property
    def numbers(self) -> int:
        """How many variables are numbers."""
        return len(self.names) - len(self._categories)

    @cached_property
    def _categories(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.steps.only(self.names) if v.column.kind is not Kind.CONTINUOUS)

    @cached_property
    def _codes(self) -> int:
        """The number of indicators of categories."""
        return sum(len(v.column.domain) for v in self._categories)

    @cached_property
    def _joint(self) -> int:
        """The number of joint values of the categories: those of the steps that lack none."""
        if not self._categories:
            return 1
        codes = np.stack([v.column.data.astype(np.int64) for v in self._categories], axis=1)
        whole = (codes >= 0).all(axis=1)
        return len(np.unique(codes[whole] if whole.any() else codes, axis=0))

    @cached_property
    def _followers(self) -> float:
        """The mean number of joint values of the categories that follow one and an action."""
        found = 1.0
        for v in self._categories:
            here, after = v.column, v.after
            known = ~here.missing & ~after.missing
            one = [(self.steps.action[known], len(self.steps.actions)), _coded(here, known)]
            pairs = _distinct([*one, _coded(after, known)])
            found *= pairs / max(1, _distinct(one))
        return max(1.0, found)


def _coded(column: Column, rows: Bools) -> tuple[Ints, int]:
    return column.data[rows].astype(np.int64), len(column.domain)


def _distinct(columns: Sequence[tuple[Ints, int]]) -> int:
    return len(np.unique(joint_key(columns)))
