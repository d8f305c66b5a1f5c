"""Groups of a variable's values that the same outcomes follow.

Each value has a row of counts: how often each outcome was observed after it, given the decisions.
Values whose rows no test distinguishes are one group.
"""

from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from rspmn.data.distinct import distinct_integers
from rspmn.learn.structure.contingency import xlogx
from rspmn.learn.structure.rows import Rows
from rspmn.learn.structure.targets import Targets, law_differs, outcome_counts
from rspmn.types import Array, Bools, Ints

#: Up to so many values are first compared all with each other at once.
FEW = 32
#: A table of cells and blocks with more entries is sparse.
DENSE = 10_000_000


def outcome_table(rows: Rows, name: str, targets: Targets, alpha: float) -> "OutcomeTable":
    """Count what follows each value of a variable, the variable itself left out."""
    tables, blocks, owners = [], [], []
    shift = 0
    for target in targets.compared:
        _, counts, block = outcome_counts(rows, name, target)
        owner = block % len(target.names)
        keep = np.array([n != name for n in target.names])[owner]
        tables.append(counts[:, keep])
        blocks.append(block[keep] + shift)
        owners.append(owner[keep] + shift)
        shift += int(block.max(initial=-1)) + 1
    return OutcomeTable(
        np.hstack(tables),
        np.concatenate(blocks),
        np.concatenate(owners),
        alpha,
        targets.enough,
        targets.laws.tables(rows, name),
    )


@dataclass(eq=False)
class OutcomeTable:
    """How often each outcome followed each value of a variable."""

    counts: Array  # [values, cells]
    block: Ints  # [cells]; the (stratum, variable) of each cell
    owner: Ints  # [cells]; the variable of each cell
    alpha: float  # the level of the tests
    enough: float = 0.0  # a value observed less often with a decision is not called the same
    laws: list[Array] = field(default_factory=list)  # [values, 2], see `Laws.tables`

    def __post_init__(self) -> None:
        # number blocks and owners without gaps
        self.block = distinct_integers(self.block)[1]
        self.owner = distinct_integers(self.owner)[1]
        self.blocks = int(self.block.max(initial=-1)) + 1
        self.owners = int(self.owner.max(initial=-1)) + 1
        self.owned = np.zeros((self.blocks, self.owners))  # [blocks, owners], 1 where it belongs
        self.owned[self.block, self.owner] = 1.0

    @cached_property
    def member(self) -> Any:  # [cells, blocks]
        """Which block each cell is in; sparse if these are many."""
        if len(self.block) * self.blocks > DENSE:
            from scipy.sparse import csr_array

            cells = np.arange(len(self.block))
            ones = np.ones(len(self.block)), (cells, self.block)
            return csr_array(ones, shape=(len(self.block), self.blocks))
        found = np.zeros((len(self.block), self.blocks))
        found[np.arange(len(self.block)), self.block] = 1.0
        return found

    def group_values(self) -> Ints:  # [values]
        """Add each value, the heaviest first, to the most similar group, or to a new one."""
        if self._all_distinct():
            return np.arange(len(self.counts))
        order = np.argsort(-self.counts.sum(axis=1), kind="stable")
        group = np.zeros(len(order), dtype=np.int64)
        sums = np.zeros_like(self.counts)  # of the groups so far
        lawful = [np.zeros_like(table) for table in self.laws]
        count = 0
        for value in order:
            p_values = self.p_values(self.counts[value], sums[:count])
            p_values[~self.observed_enough(self.counts[value], sums[:count])] = 0.0
            for table, of_groups in zip(self.laws, lawful, strict=True):
                p_values[law_differs(table[value], of_groups[:count])] = 0.0
            found = int(np.argmax(p_values)) if count and p_values.max() > 0 else count
            count = max(count, found + 1)
            sums[found] += self.counts[value]
            for table, of_groups in zip(self.laws, lawful, strict=True):
                of_groups[found] += table[value]
            group[value] = found
        # numbered by their first value, so that the numbers do not depend on weights
        first = np.full(count, len(group))
        np.minimum.at(first, group, np.arange(len(group)))
        return np.unique(first[group], return_inverse=True)[1].astype(np.int64)

    def group_intervals(self) -> Ints:  # [values]
        """Merge the two most similar neighbours on the number line until all are distinguished."""
        members = [[value] for value in range(len(self.counts))]
        while len(members) > 1:
            p_values = [self._neighbour_p_value(one, other) for one, other in pairwise(members)]
            best = int(np.argmax(p_values))
            if not p_values[best] > 0:
                break
            members[best : best + 2] = [members[best] + members[best + 1]]
        group = np.zeros(len(self.counts), dtype=np.int64)
        for number, several in enumerate(members):
            group[several] = number
        return group

    def observed_enough(self, counts: Array, groups: Array) -> Bools:  # [groups]
        """Return which groups were observed often wherever they or the value were at all.

        A decision that only one of them was seen with was not compared, however often: whoever
        acts by what matters takes other decisions in other states.
        """
        return self.often_enough(self._by_block(counts), self._by_block(groups))

    def often_enough(self, own: Array, others: Array) -> Bools:  # [groups]
        """Return what `observed_enough` does, given the counts of blocks."""
        often = (own >= self.enough) & (others >= self.enough)
        neither = (own == 0) & (others == 0)
        return np.asarray((often | neither).all(axis=1))

    def _by_block(self, rows: Array) -> Array:  # [.., cells] -> [.., blocks]
        """Add up the cells of each block."""
        return np.asarray(rows @ self.member)

    def _all_distinct(self) -> bool:
        """Return whether every two values are distinguished."""
        if len(self.counts) > FEW:
            return False
        one, other = _pairs(len(self.counts))
        known = self.observed_enough(self.counts[one], self.counts[other])
        if not known.any():
            return True
        p = self._same_outcomes(self.counts[one[known]], self.counts[other[known]])
        return not bool((p >= self.alpha).any())

    def _neighbour_p_value(self, one: list[int], other: list[int]) -> float:
        """Return the p-value of two neighbours; above 1 if one of them was observed too rarely."""
        if any(law_differs(t[one].sum(axis=0), t[other].sum(axis=0)) for t in self.laws):
            return 0.0
        rows = self.counts[one].sum(axis=0), self.counts[other].sum(axis=0, keepdims=True)
        if not self.observed_enough(*rows)[0]:
            return 2.0 - 1e-9 * float(rows[0].sum() + rows[1].sum())
        return self._pair_p_value(one, other)

    def _pair_p_value(self, one: list[int], other: list[int]) -> float:
        own, others = self.counts[one].sum(axis=0), self.counts[other].sum(axis=0, keepdims=True)
        return float(self.p_values(own, others)[0])

    def p_values(self, counts: Array, groups: Array) -> Array:  # [groups]
        """Return the p-values of equal outcomes with each of some groups; 0 if distinguished.

        It is the smallest p-value of all variables times their number.
        """
        if self.alpha >= 1:
            return np.zeros(len(groups))
        p = self._same_outcomes(counts, groups)
        return np.where(p < self.alpha, 0.0, p)

    def _same_outcomes(self, counts: Array, groups: Array) -> Array:  # [groups]
        """Test rows of counts against others, for each variable over its strata.

        `counts` is one row for all, or one for each.
        """
        v, g, s = counts, groups, counts + groups  # [groups, cells]
        total_v, total_g = self._by_block(v), self._by_block(g)  # [groups, blocks]
        crossed = (v * total_g[..., self.block] - g * total_v[..., self.block]) ** 2
        return self.p_values_of(
            Compared(
                total_v,
                total_g,
                self._by_block(xlogx(v) + xlogx(g) - xlogx(s)),
                self._by_block(crossed / np.where(s > 0, s, 1.0)),
                self._by_block((s > 0).astype(np.float64)),
            )
        )

    def p_values_of(self, two: "Compared") -> Array:  # [groups]
        """Return the p-values of equal outcomes, given what rows of counts have in each block."""
        from scipy.special import chdtrc

        total = two.one + two.other
        both = (two.one > 0) & (two.other > 0)
        stat_g = 2 * (two.logs - xlogx(two.one) - xlogx(two.other) + xlogx(total))
        # X² of two rows: Σ (v·G - g·V)²/(V·G·(v + g))
        x2 = two.crossed / np.where(both, two.one * two.other, 1.0)
        x2 *= 1 - 1 / np.maximum(total, 1.0)  # as in the tests of independence
        freedom = np.where(both, two.cells - 1, 0.0) @ self.owned  # [groups, owners]
        stats = [np.where(both, np.maximum(stat, 0.0), 0.0) @ self.owned for stat in (stat_g, x2)]
        tested = freedom > 0
        level = np.where(tested, freedom, 1.0)
        p = np.where(tested, np.maximum(*(chdtrc(level, stat) for stat in stats)), 1.0)
        smallest = p.min(axis=1, initial=1.0)
        return np.asarray(np.minimum(1.0, smallest * np.maximum(tested.sum(axis=1), 1)))


@dataclass(frozen=True, eq=False)
class Compared:
    """What two rows of counts, v and g with totals V and G, have in each block of cells."""

    one: Array  # [blocks] or [groups, blocks], V
    other: Array  # [groups, blocks], G
    logs: Array  # [groups, blocks], Σ v·log v + g·log g - (v + g)·log(v + g)
    crossed: Array  # [groups, blocks], Σ (v·G - g·V)²/(v + g)
    cells: Array  # [groups, blocks], in which either has any


@cache
def _pairs(count: int) -> tuple[Ints, Ints]:
    """Return all pairs of so many numbers; few, so that they are kept."""
    return np.triu_indices(count, 1)
