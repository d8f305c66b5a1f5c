"""Clustering of rows: how a sum node divides them.

The default looks at behaviour: it splits on the variable whose value tells most about what
follows, and keeps values with the same future together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rspmn.learn.structure.independence import pair_statistics
from rspmn.learn.structure.many_value_groups import group_many, has_many
from rspmn.learn.structure.rows import Rows, rebinned, weigh
from rspmn.learn.structure.targets import Outlook, decision_counts, value_counts
from rspmn.learn.structure.value_groups import Futures
from rspmn.types import Array, Ints


class RowClustering(Protocol):
    """Divides rows by some of their variables."""

    @property
    def disjoint(self) -> bool:
        """Whether no two clusters share a value of the variable that divides them."""
        ...

    def __call__(
        self, rows: Rows, on: Sequence[str], follows: Outlook, rng: np.random.Generator
    ) -> list[Rows]:
        """Return the clusters; one alone if there is nothing to divide by."""
        ...


@dataclass(frozen=True)
class BehaviouralSplit:
    """Split on the variable that tells most about what follows, values alike staying together.

    `alpha` is the level of the tests that tell two values' futures apart; with 1 all values are
    kept apart. Values of a category are called alike only if each was seen `enough` times with
    each decision: that two rare ones were not told apart says nothing. Ten is what it takes to
    tell a coin from a certainty.
    """

    alpha: float = 0.01
    enough: float = 10.0

    @property
    def disjoint(self) -> bool:
        """Each value stays in one cluster."""
        return True

    def __call__(
        self, rows: Rows, on: Sequence[str], follows: Outlook, rng: np.random.Generator
    ) -> list[Rows]:
        """Split on the best variable that has more than one value."""
        del rng
        varying = [name for name in on if len(np.unique(_present(rows.codes(name)))) > 1]
        if not varying:
            return [rows]
        best = varying[int(np.argmax(self._worth(rows, varying, follows)))]
        values, groups = self._group_values(rows, best, follows)
        if groups.max(initial=0) == 0:
            weight = weigh(np.searchsorted(values, _present(rows.codes(best))), _known(rows, best))
            if best in rows.table.ordered and weight.min() < self.enough:
                return [rows]  # a number line is not cut finer than it is known
            # Alone it tells nothing; it is here because it does together with others.
            groups = np.arange(len(values))
        return _divide(rows, best, values, groups)

    def _worth(self, rows: Rows, names: Sequence[str], follows: Outlook) -> Array:
        """Return how much each variable tells about what follows, beyond chance."""
        worth = np.zeros(len(names))
        for seen in follows.seen:
            others = seen.names
            statistics = pair_statistics(rows, names, others, seen.strata)
            excess = statistics.g - statistics.freedom
            same = np.array([[a == b for b in others] for a in names])
            worth += np.where(same, 0.0, excess).sum(axis=1)
        return worth

    def _group_values(self, rows: Rows, name: str, follows: Outlook) -> tuple[Ints, Ints]:
        """Return the values of a variable and the group of each."""
        values = np.unique(_present(rows.codes(name))).astype(np.int64)
        if self.alpha >= 1:
            return values, np.arange(len(values))
        ordered = name in rows.table.ordered
        if not ordered and has_many(rows, name, values, follows):
            return values, group_many(rows, name, follows, self.alpha, self.enough)
        tables, blocks, owners = [], [], []
        shift = 0
        for seen in follows.seen:
            _, counts, block = value_counts(rows, name, seen)
            owner = block % len(seen.names)
            keep = np.array([n != name for n in seen.names])[owner]
            tables.append(counts[:, keep])
            blocks.append(block[keep] + shift)
            owners.append(owner[keep] + shift)
            shift += int(block.max(initial=-1)) + 1
        choices = [
            counts
            for choice in follows.choices
            if follows.may_lack(rows, (name,), choice)
            for counts in decision_counts(rows, name, choice)
        ]
        futures = Futures(
            np.hstack(tables),
            np.concatenate(blocks),
            np.concatenate(owners),
            choices,
            self.alpha,
            follows.unavailable_from,
            self.enough,
        )
        return values, futures.merge_neighbours() if ordered else futures.merge_alike()


def _divide(rows: Rows, name: str, values: Ints, groups: Ints) -> list[Rows]:
    """Divide rows by the group of a variable's value.

    Rows that lack the variable are left out: to spread them over all groups by the groups' weights
    would ignore what was decided and earned in them, and draw the groups towards each other.
    """
    codes = rows.codes(name)
    present = np.flatnonzero(codes >= 0)
    group = groups[np.searchsorted(values, codes[present])]
    order = np.argsort(group, kind="stable")
    parts = np.split(present[order], np.flatnonzero(np.diff(group[order])) + 1)
    found = [rows.at(part) for part in parts]
    if name in rows.table.ordered:
        found = _spanned(rows, name, found)
    return [rebinned(part) for part in found]


def _spanned(rows: Rows, name: str, parts: list[Rows]) -> list[Rows]:
    """Leave no gap between intervals of a number line: they meet midway between their numbers."""
    ends = [(float(n.min()), float(n.max())) for n in (part.numbers(name) for part in parts)]
    low, high = rows.table.spans.get(name, (ends[0][0], ends[-1][1]))
    borders = [low, *((one[1] + other[0]) / 2 for one, other in pairwise(ends)), high]
    return [part.spanning(name, span) for part, span in zip(parts, pairwise(borders), strict=True)]


def _known(rows: Rows, name: str) -> Array:
    """Return the weights of the rows that have a variable."""
    return rows.weights[rows.codes(name) >= 0]


def _present(codes: NDArray[np.int32]) -> NDArray[np.int32]:
    return codes[codes >= 0]
