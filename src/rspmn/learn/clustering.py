"""Clustering of rows: how a sum node divides them.

The default looks at behaviour: it splits on the variable whose value tells most about what
follows, and keeps values with the same future together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rspmn.learn.independence import pair_statistics
from rspmn.learn.outlook import Outlook, decision_counts, lacks_choice, value_counts
from rspmn.learn.rows import Rows

__all__ = ["BehaviouralSplit", "RowClustering"]

Array = NDArray[np.float64]


class RowClustering(Protocol):
    """Divides rows by some of their variables."""

    def __call__(
        self, rows: Rows, on: Sequence[str], follows: Outlook, rng: np.random.Generator
    ) -> list[Rows]:
        """Return the clusters; one alone if there is nothing to divide by."""
        ...


@dataclass(frozen=True)
class BehaviouralSplit:
    """Split on the variable that tells most about what follows, values alike staying together.

    `alpha` is the level of the tests that tell two values' futures apart; with 1 all values are
    kept apart. `least` is the expected count from which a choice never seen is unavailable.
    """

    alpha: float = 0.01
    least: float = 10.0

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

    def _group_values(
        self, rows: Rows, name: str, follows: Outlook
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the values of a variable and the group of each."""
        tables, blocks, owners = [], [], []
        shift = 0
        values = np.unique(_present(rows.codes(name))).astype(np.int64)
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
            for _, counts in decision_counts(rows, name, choice)
        ]
        futures = Futures(
            np.hstack(tables), np.concatenate(blocks), np.concatenate(owners), choices, self
        )
        if name in rows.table.ordered:
            return values, futures.merge_neighbours()
        return values, futures.merge_alike()


@dataclass(eq=False)
class Futures:
    """The futures of a variable's values, to be told apart."""

    counts: Array  # [values, cells]
    block: NDArray[np.int64]  # [cells]; the (stratum, variable) of each cell
    owner: NDArray[np.int64]  # [cells]; the variable of each cell
    choices: list[Array]  # [values, choices] each
    rule: BehaviouralSplit

    def merge_alike(self) -> NDArray[np.int64]:  # [values]
        """Put each value, heaviest first, to the group it resembles most, or into a new one."""
        order = np.argsort(-self.counts.sum(axis=1), kind="stable")
        group = np.zeros(len(order), dtype=np.int64)
        members: list[list[int]] = []
        for value in order:
            likeness = [self._likeness([value], group_members) for group_members in members]
            if likeness and max(likeness) > 0:
                found = int(np.argmax(likeness))
                members[found].append(int(value))
            else:
                found = len(members)
                members.append([int(value)])
            group[value] = found
        # numbered by their first value, so that the order of weights does not matter
        return np.unique([min(members[g]) for g in group], return_inverse=True)[1].astype(np.int64)

    def merge_neighbours(self) -> NDArray[np.int64]:  # [values]
        """Join the two neighbours on the number line that are most alike, until none are."""
        members = [[value] for value in range(len(self.counts))]
        while len(members) > 1:
            likeness = [self._likeness(members[i], members[i + 1]) for i in range(len(members) - 1)]
            best = int(np.argmax(likeness))
            if not likeness[best] > 0:
                break
            members[best : best + 2] = [members[best] + members[best + 1]]
        group = np.zeros(len(self.counts), dtype=np.int64)
        for number, several in enumerate(members):
            group[several] = number
        return group

    def _likeness(self, one: list[int], other: list[int]) -> float:
        """Return the p-value of having the same future; 0 if they are told apart."""
        if self.rule.alpha >= 1 or self._choices_differ(one, other):
            return 0.0
        pair = np.array([self.counts[one].sum(axis=0), self.counts[other].sum(axis=0)])
        p = _same_future(pair, self.block, self.owner)
        return p if p >= self.rule.alpha else 0.0

    def _choices_differ(self, one: list[int], other: list[int]) -> bool:
        return any(
            bool(
                lacks_choice(
                    np.array([c[one].sum(axis=0), c[other].sum(axis=0)]), self.rule.least
                ).any()
            )
            for c in self.choices
        )


def _same_future(pair: Array, block: NDArray[np.int64], owner: NDArray[np.int64]) -> float:
    """Test two rows of counts for one distribution, for each variable over its strata.

    Return the smallest p-value times the number of variables.
    """
    from scipy.special import chdtrc

    if pair.shape[1] == 0:
        return 1.0
    blocks = int(block.max()) + 1
    cells = pair.sum(axis=0)
    totals = np.array([np.bincount(block, weights=row, minlength=blocks) for row in pair])
    both = np.asarray((totals > 0).all(axis=0))
    used = both[block] & (cells > 0)
    if not used.any():
        return 1.0
    share = totals[:, block] / np.where(both[block], totals.sum(axis=0)[block], 1.0)
    expected = np.where(used, share * cells, 1.0)
    ratio = np.where(used & (pair > 0), pair / expected, 1.0)
    g_cells = 2 * (pair * np.log(ratio)).sum(axis=0)
    less = 1 - 1 / np.maximum(totals.sum(axis=0), 1.0)  # as in the tests of independence
    x2_cells = np.where(used, (pair - expected) ** 2 / expected, 0.0).sum(axis=0) * less[block]
    size = int(owner.max()) + 1
    g = np.bincount(owner[used], weights=g_cells[used], minlength=size)
    x2 = np.bincount(owner[used], weights=x2_cells[used], minlength=size)
    filled = np.bincount(block[used], minlength=blocks)
    owner_of_block = np.zeros(blocks, dtype=np.int64)
    owner_of_block[block] = owner
    freedom = np.bincount(owner_of_block, weights=np.maximum(filled - 1, 0), minlength=size)
    tested = freedom > 0
    if not tested.any():
        return 1.0
    p = np.maximum(chdtrc(freedom[tested], g[tested]), chdtrc(freedom[tested], x2[tested]))
    return min(1.0, float(p.min()) * int(tested.sum()))


def _divide(
    rows: Rows, name: str, values: NDArray[np.int64], groups: NDArray[np.int64]
) -> list[Rows]:
    """Divide rows by the group of a variable's value; those without one go to all, in shares."""
    codes = rows.codes(name)
    present = codes >= 0
    group = np.full(len(rows), -1)
    group[present] = groups[np.searchsorted(values, codes[present])]
    weight = np.bincount(
        group[present], weights=rows.weights[present], minlength=int(groups.max()) + 1
    )
    share = weight / weight.sum()
    return [
        rows.weighted(np.where(present, (group == k) * 1.0, share[k])) for k in range(len(share))
    ]


def _present(codes: NDArray[np.int32]) -> NDArray[np.int32]:
    return codes[codes >= 0]
