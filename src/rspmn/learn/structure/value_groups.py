"""Futures: what follows the values of a variable, and which of them have the same.

A value's future is a row of counts: how often each thing was seen after it, given the decisions.
Rows that no test tells apart belong to one group.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rspmn.learn.structure.contingency import xlogx
from rspmn.types import Array, Bools, Ints

#: So many values are first compared all with each other at once.
FEW = 32


@dataclass(eq=False)
class Futures:
    """The futures of a variable's values, to be told apart."""

    counts: Array  # [values, cells]
    block: Ints  # [cells]; the (stratum, variable) of each cell
    owner: Ints  # [cells]; the variable of each cell
    choices: list[Array]  # [values, choices] each
    alpha: float
    unavailable_from: float = 10.0
    enough: float = 0.0

    def __post_init__(self) -> None:
        # number blocks and owners without gaps
        self.block = np.unique(self.block, return_inverse=True)[1]
        self.owner = np.unique(self.owner, return_inverse=True)[1]
        self.blocks = int(self.block.max(initial=-1)) + 1
        self.owners = int(self.owner.max(initial=-1)) + 1
        self.owned = np.zeros((self.blocks, self.owners))  # [blocks, owners], 1 where it belongs
        self.owned[self.block, self.owner] = 1.0
        self.member = np.zeros((len(self.block), self.blocks))  # [cells, blocks]
        self.member[np.arange(len(self.block)), self.block] = 1.0

    def merge_alike(self) -> Ints:  # [values]
        """Put each value, heaviest first, to the group it resembles most, or into a new one."""
        if self._none_alike():
            return np.arange(len(self.counts))
        order = np.argsort(-self.counts.sum(axis=1), kind="stable")
        group = np.zeros(len(order), dtype=np.int64)
        sums = np.zeros_like(self.counts)  # of the groups so far
        chosen = [np.zeros_like(table) for table in self.choices]
        count = 0
        for value in order:
            own = [table[value] for table in self.choices]
            likeness = self.likeness(
                self.counts[value], own, sums[:count], [table[:count] for table in chosen]
            )
            likeness[~self.seen_enough(self.counts[value], sums[:count])] = 0.0
            found = int(np.argmax(likeness)) if count and likeness.max() > 0 else count
            count = max(count, found + 1)
            sums[found] += self.counts[value]
            for table, row in zip(chosen, own, strict=True):
                table[found] += row
            group[value] = found
        # numbered by their first value, so that the order of weights does not matter
        first = np.full(count, len(group))
        np.minimum.at(first, group, np.arange(len(group)))
        return np.unique(first[group], return_inverse=True)[1].astype(np.int64)

    def merge_neighbours(self) -> Ints:  # [values]
        """Join the two neighbours on the number line that are most alike, until none are."""
        members = [[value] for value in range(len(self.counts))]
        while len(members) > 1:
            likeness = [self._neighbours(one, other) for one, other in pairwise(members)]
            best = int(np.argmax(likeness))
            if not likeness[best] > 0:
                break
            members[best : best + 2] = [members[best] + members[best + 1]]
        group = np.zeros(len(self.counts), dtype=np.int64)
        for number, several in enumerate(members):
            group[several] = number
        return group

    def seen_enough(self, counts: Array, groups: Array) -> Bools:  # [groups]
        """Say which groups are, as the one, seen often wherever one of them is seen at all."""
        own, others = self._by_block(counts), self._by_block(groups)
        often = (own >= self.enough) & (others >= self.enough)
        return np.asarray((often | ((own == 0) & (others == 0))).all(axis=1))

    def _by_block(self, rows: Array) -> Array:  # [.., cells] -> [.., blocks]
        """Add up the cells of each block."""
        return np.asarray(rows @ self.member)

    def _none_alike(self) -> bool:
        """Say whether all values are told apart from each other, each by itself."""
        if len(self.counts) > FEW:
            return False
        one, other = np.triu_indices(len(self.counts), 1)
        known = self.seen_enough(self.counts[one], self.counts[other])
        if not known.any():
            return True
        p = self._same_future(self.counts[one[known]], self.counts[other[known]])
        return not bool((p >= self.alpha).any())

    def _neighbours(self, one: list[int], other: list[int]) -> float:
        """Return how alike two neighbours are: above all others if one is hardly known."""
        rows = self.counts[one].sum(axis=0), self.counts[other].sum(axis=0, keepdims=True)
        if not self.seen_enough(*rows)[0]:
            return 2.0 - 1e-9 * float(rows[0].sum() + rows[1].sum())
        return self._pair_likeness(one, other)

    def _pair_likeness(self, one: list[int], other: list[int]) -> float:
        return float(
            self.likeness(
                self.counts[one].sum(axis=0),
                [table[one].sum(axis=0) for table in self.choices],
                self.counts[other].sum(axis=0, keepdims=True),
                [table[other].sum(axis=0, keepdims=True) for table in self.choices],
            )[0]
        )

    def likeness(
        self, counts: Array, choices: list[Array], groups: Array, group_choices: list[Array]
    ) -> Array:  # [groups]
        """Return the p-values of having the same future as each of some groups; 0 if told apart.

        The smallest p-value of all variables times their number; a group with other choices is
        told apart.
        """
        if self.alpha >= 1:
            return np.zeros(len(groups))
        p = self._same_future(counts, groups)
        p[p < self.alpha] = 0.0
        for own, others in zip(choices, group_choices, strict=True):
            p[_choices_differ(own, others, self.unavailable_from)] = 0.0
        return p

    def _same_future(self, counts: Array, groups: Array) -> Array:  # [groups]
        """Test rows of counts against others, for each variable over its strata.

        `counts` is one row for all, or one for each.
        """
        from scipy.special import chdtrc

        v, g, s = counts, groups, counts + groups  # [groups, cells]
        total_v, total_g = self._by_block(v), self._by_block(g)  # [groups, blocks]
        total = total_v + total_g
        both = (total_v > 0) & (total_g > 0)
        logs = self._by_block(xlogx(v) + xlogx(g) - xlogx(s))
        stat_g = 2 * (logs - xlogx(total_v) - xlogx(total_g) + xlogx(total))
        # X² of two rows: Σ (v·G - g·V)²/(V·G·(v + g))
        crossed = (v * total_g[..., self.block] - g * total_v[..., self.block]) ** 2
        x2 = self._by_block(crossed / np.where(s > 0, s, 1.0))
        x2 /= np.where(both, total_v * total_g, 1.0)
        x2 *= 1 - 1 / np.maximum(total, 1.0)  # as in the tests of independence
        cells = self._by_block((s > 0).astype(np.float64))
        freedom = np.where(both, cells - 1, 0.0) @ self.owned  # [groups, owners]
        stats = [np.where(both, np.maximum(stat, 0.0), 0.0) @ self.owned for stat in (stat_g, x2)]
        tested = freedom > 0
        level = np.where(tested, freedom, 1.0)
        p = np.where(tested, np.maximum(*(chdtrc(level, stat) for stat in stats)), 1.0)
        smallest = p.min(axis=1, initial=1.0)
        return np.asarray(np.minimum(1.0, smallest * np.maximum(tested.sum(axis=1), 1)))


def _choices_differ(own: Array, others: Array, least: float) -> Bools:  # [groups]
    """Say which groups have a choice that the one lacks for no chance, or lack one that it has."""
    a, b = own.sum(), others.sum(axis=1, keepdims=True)
    expected_own = a * (own + others) / np.maximum(a + b, 1e-300)
    expected_other = b * (own + others) / np.maximum(a + b, 1e-300)
    lacks = ((own == 0) & (expected_own >= least)) | ((others == 0) & (expected_other >= least))
    return np.asarray(lacks.any(axis=1))
