"""Clustering of rows: how a sum node divides them.

The default splits on the variable on which the targets depend most, and keeps values together
that the same outcomes follow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rspmn.data.keys import group_weights
from rspmn.learn.structure.independence import pair_statistics
from rspmn.learn.structure.many_values import group_many_values, has_many_values
from rspmn.learn.structure.rows import Rows, rebinned
from rspmn.learn.structure.targets import Targets
from rspmn.learn.structure.value_groups import outcome_table
from rspmn.types import Array, Ints

#: Worths that differ by less than this share are the same: they are sums in different orders.
SAME = 1e-10


class RowClustering(Protocol):
    """Divides rows by some of their variables; tests/conformance has a check."""

    @property
    def disjoint(self) -> bool:
        """Whether no two clusters share a value of the variable that divides them."""
        ...

    def __call__(
        self, rows: Rows, on: Sequence[str], targets: Targets, rng: np.random.Generator
    ) -> list[Rows]:
        """Return the clusters; one alone if there is nothing to divide by."""
        ...


@dataclass(frozen=True)
class BehaviouralSplit:
    """Split on the variable on which the targets depend most; similar values stay together.

    Parameters
    ----------
    alpha
        The level of the tests that distinguish the outcomes of two values. With 1 every value is
        a cluster of its own.

    Two categories are merged only if each was observed often with each decision
    (`LearnConfig.enough`): that a test does not distinguish two rare ones says nothing.
    """

    alpha: float = 0.01

    @property
    def disjoint(self) -> bool:
        """Each value stays in one cluster."""
        return True

    def __call__(
        self, rows: Rows, on: Sequence[str], targets: Targets, rng: np.random.Generator
    ) -> list[Rows]:
        """Split on the best variable that has more than one value."""
        del rng
        present = {name: _present(rows.codes(name)) for name in on}
        varying = [n for n, codes in present.items() if len(codes) and codes.min() < codes.max()]
        if not varying:
            return [rows]
        worth = self._worth(rows, varying, targets)
        # the first of several that are worth the same, up to rounding
        best = varying[int(np.argmax(worth >= worth.max() - SAME * np.abs(worth).max()))]
        values, groups = self._group_values(rows, best, targets)
        if groups.max(initial=0) == 0:
            weight = group_weights(
                np.searchsorted(values, _present(rows.codes(best))), _known(rows, best)
            )
            if best in rows.table.ordered and weight.min() < targets.enough:
                return [rows]  # too few observations for a finer interval
            # Relevant only together with other variables: every value is split off.
            groups = np.arange(len(values))
        return _divide(rows, best, values, groups)

    def _worth(self, rows: Rows, names: Sequence[str], targets: Targets) -> Array:
        """Return how much the targets depend on each variable, beyond chance."""
        worth = np.zeros(len(names))
        for target in targets.compared:
            others = target.names
            statistics = pair_statistics(rows, names, others, target.strata)
            excess = statistics.g - statistics.freedom
            same = np.array([[a == b for b in others] for a in names])
            worth += np.where(same, 0.0, excess).sum(axis=1)
        return worth

    def _group_values(self, rows: Rows, name: str, targets: Targets) -> tuple[Ints, Ints]:
        """Return the values of a variable and the group of each."""
        values = np.unique(_present(rows.codes(name))).astype(np.int64)
        if self.alpha >= 1:
            return values, np.arange(len(values))
        ordered = name in rows.table.ordered
        if len(values) == 2 and not ordered:  # if they were alike they would be split off
            return values, np.arange(2)
        if not ordered and has_many_values(rows, name, values, targets):
            return values, group_many_values(rows, name, targets, self.alpha)
        table = outcome_table(rows, name, targets, self.alpha)
        return values, table.group_intervals() if ordered else table.group_values()


def _divide(rows: Rows, name: str, values: Ints, groups: Ints) -> list[Rows]:
    """Divide rows by the group of a variable's value.

    Rows in which it is missing are left out: sharing them out by the groups' weights would ignore
    their decisions and utilities, and make the groups more similar than they are.
    """
    codes = rows.codes(name)
    present = np.flatnonzero(codes >= 0)
    group = groups[np.searchsorted(values, codes[present])]
    order = np.argsort(group, kind="stable")
    parts = np.split(present[order], np.flatnonzero(np.diff(group[order])) + 1)
    found = [rows.where(part) for part in parts]
    if name in rows.table.ordered:
        found = _spanned(rows, name, found)
    return [rebinned(part) for part in found]


def _spanned(rows: Rows, name: str, parts: list[Rows]) -> list[Rows]:
    """Give neighbouring intervals a common border, midway between their numbers."""
    ends = [(float(n.min()), float(n.max())) for n in (part.numbers(name) for part in parts)]
    low, high = rows.table.spans.get(name, (ends[0][0], ends[-1][1]))
    borders = [low, *((one[1] + other[0]) / 2 for one, other in pairwise(ends)), high]
    return [part.with_span(name, span) for part, span in zip(parts, pairwise(borders), strict=True)]


def _known(rows: Rows, name: str) -> Array:
    """Return the weights of the rows in which a variable is not missing."""
    return rows.weights[rows.codes(name) >= 0]


def _present(codes: NDArray[np.int32]) -> NDArray[np.int32]:
    return codes[codes >= 0]
