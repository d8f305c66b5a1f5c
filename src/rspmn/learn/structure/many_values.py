"""Groups of the values of a variable that has many: each value is compared with few groups.

Comparing thousands of values with each other would take millions of tests. Two values that never
lead to the same state need none; so each is compared only with groups that share a successor with
it, and only in the cells where either was observed.
"""

from dataclasses import dataclass

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.learn.structure.contingency import xlogx
from rspmn.learn.structure.independence import pooled_codes
from rspmn.learn.structure.rows import Rows
from rspmn.learn.structure.targets import Targets, law_differs
from rspmn.learn.structure.value_groups import Compared, OutcomeTable
from rspmn.types import Array, Bools, Ints

#: With more values than this, of the variable and of something that follows it, this is the way.
MANY = 100


def has_many_values(rows: Rows, name: str, values: Ints, targets: Targets) -> bool:
    """Say whether a variable has many values, and so has one of its targets."""
    after = (n for target in targets.compared for n in target.names if n != name)
    return len(values) > MANY and any(rows.table.sizes[n] > MANY for n in after)


@dataclass(frozen=True, eq=False)
class _Cells:
    """What was seen after each value: the cells with a weight, value by value."""

    starts: Ints  # [values + 1]
    cell: Ints  # [entries], sorted for each value
    weight: Array  # [entries]
    block: Ints  # [cells], the (stratum, variable) of each
    owner: Ints  # [cells], the variable of each


def group_many_values(rows: Rows, name: str, targets: Targets, alpha: float) -> Ints:  # [values]
    """Put each value, heaviest first, to the group it resembles most, or into a new one."""
    codes = rows.codes(name)
    here = np.flatnonzero(codes >= 0)
    values, number = np.unique(codes[here], return_inverse=True)
    cells = _cells(rows, name, targets, here, number, len(values))
    size = np.bincount(cells.owner[np.unique(cells.cell)])
    shared = cells.owner == int(size.argmax())  # [cells], those of the variable with most of them
    weight = group_weights(number, rows.weights[here], len(values))
    laws = targets.laws.tables(rows, name)
    groups = _Groups(cells, shared, alpha, targets.enough, laws)
    for value in np.argsort(-weight, kind="stable").tolist():
        groups.add(value)
    first = np.full(len(groups.cells), len(values))  # numbered by their first value
    np.minimum.at(first, groups.of_value, np.arange(len(values)))
    return np.unique(first[groups.of_value], return_inverse=True)[1].astype(np.int64)


class _Groups:
    """The groups so far."""

    def __init__(
        self, cells: _Cells, shared: Bools, alpha: float, enough: float, laws: list[Array]
    ) -> None:
        self.laws = laws  # [values, 2] each
        self.lawful: list[list[Array]] = []  # of each group, as `laws`
        self.data, self.shared = cells, shared
        self.of_value = np.zeros(len(cells.starts) - 1, dtype=np.int64)
        self.cells: list[tuple[Ints, Array]] = []  # of each group
        self.in_blocks: list[Array] = []  # of each group, [2, blocks]
        none = np.zeros((0, len(cells.block)))
        self.table = OutcomeTable(none, cells.block, cells.owner, alpha, enough)
        self._own = np.zeros(len(cells.block))  # [cells], of the value that is compared
        #: The groups that have each cell of a successor, in blocks where they were observed enough.
        self.leading: dict[int, dict[int, None]] = {}

    def add(self, value: int) -> None:
        """Put a value to a group."""
        part = slice(int(self.data.starts[value]), int(self.data.starts[value + 1]))
        cell, weight = self.data.cell[part], self.data.weight[part]
        successors, is_often = self._successors(cell, weight)
        law = [table[value] for table in self.laws]
        near = self._near(successors) if is_often.all() else []
        near = [g for g in near if not _differ(law, self.lawful[g])]
        found = self._most_alike(cell, weight, near) if near else -1
        if found < 0:
            found = len(self.cells)
            self.cells.append((cell, weight))
            self.in_blocks.append(self._in_blocks(cell, weight))
            self.lawful.append(law)
        else:
            both, inverse = np.unique(
                np.concatenate([self.cells[found][0], cell]), return_inverse=True
            )
            total = group_weights(
                inverse, np.concatenate([self.cells[found][1], weight]), len(both)
            )
            self.cells[found] = (both, total)
            self.in_blocks[found] = self._in_blocks(both, total)
            self.lawful[found] = [a + b for a, b in zip(self.lawful[found], law, strict=True)]
        self.of_value[value] = found
        for c in successors[is_often].tolist():
            self.leading.setdefault(c, {})[found] = None

    def _successors(self, cell: Ints, weight: Array) -> tuple[Ints, Bools]:
        """Return the cells of successors, and in which a value was observed often enough.

        Two that were observed after the same decisions are compared only if both were observed
        often after each: see `OutcomeTable.observed_enough`. So a value that was seen rarely after
        some decision is compared with no group that shares a successor after it. And what a group
        was seen rarely after when it was first seen there stays rare, as nothing is added to it.
        """
        here = self.shared[cell]
        block = np.unique(self.data.block[cell[here]], return_inverse=True)[1]
        often = group_weights(block, weight[here]) >= self.table.enough
        return cell[here], often[block]

    def _near(self, successors: Ints) -> list[int]:
        """Return the groups that share a successor after each of the decisions."""
        by_block: dict[int, set[int]] = {}
        for c, block in zip(successors.tolist(), self.data.block[successors].tolist(), strict=True):
            by_block.setdefault(block, set()).update(self.leading.get(c, ()))
        return sorted(set.intersection(*by_block.values())) if by_block else []

    def _most_alike(self, cell: Ints, weight: Array, near: list[int]) -> int:
        """Return the group that resembles a value most, -1 if none does."""
        in_blocks = self._in_blocks(cell, weight)
        others = np.array([self.in_blocks[g] for g in near])  # [near, 2, blocks]
        fine = np.flatnonzero(self.table.often_enough(in_blocks[0], others[:, 0]))
        if not len(fine):
            return -1
        near, others = [near[k] for k in fine.tolist()], others[fine]
        p_values = self.table.p_values_of(self._compared(cell, weight, in_blocks, near, others))
        best = int(p_values.argmax())
        return near[best] if p_values[best] >= self.table.alpha else -1

    def _in_blocks(self, cell: Ints, weight: Array) -> Array:  # [2, blocks]
        """Return the weight in each block, and the number of cells that have any."""
        block, size = self.table.block[cell], self.table.blocks
        return np.array([np.bincount(block, weight, size), np.bincount(block, minlength=size)])

    def _compared(
        self, cell: Ints, weight: Array, in_blocks: Array, near: list[int], others: Array
    ) -> Compared:
        """Compare a value with groups; only cells that both have need to be looked at."""
        group = np.repeat(np.arange(len(near)), [len(self.cells[g][0]) for g in near])
        cells = np.concatenate([self.cells[g][0] for g in near])
        self._own[cell] = weight
        v = self._own[cells]
        self._own[cell] = 0.0
        both = np.flatnonzero(v)
        v, g = v[both], np.concatenate([self.cells[g][1] for g in near])[both]
        group, block = group[both], self.table.block[cells[both]]
        (one, number), (other, numbers) = in_blocks, others.transpose(1, 0, 2)

        def summed(of_cells: Array) -> Array:  # [near, blocks]
            found = np.bincount(group * len(one) + block, of_cells, other.size)
            return found.reshape(other.shape)

        crossed = (v * other[group, block] - g * one[block]) ** 2 / (v + g)
        alone = (one - summed(v)) * other**2 + (other - summed(g)) * one**2
        logs = summed(xlogx(v) + xlogx(g) - xlogx(v + g))
        common = summed(np.ones(len(v)))
        return Compared(one, other, logs, summed(crossed) + alone, number + numbers - common)


def _differ(one: list[Array], other: list[Array]) -> bool:
    """Return whether any law does not say the same of a value and a group."""
    return any(law_differs(a, b) for a, b in zip(one, other, strict=True))


def _cells(
    rows: Rows, name: str, targets: Targets, here: Ints, number: Ints, values: int
) -> _Cells:
    """Count what follows each value."""
    keys, weights, blocks, owners = [], [], [], []
    cells = block = owner = 0
    for target in targets.compared:
        stratum = np.unique(target.strata[here], return_inverse=True)[1]
        strata = int(stratum.max(initial=-1)) + 1
        for other in target.names:
            if other == name:
                continue
            code = pooled_codes(rows, other)[here]
            known = code >= 0
            size = int(code.max(initial=0)) + 1
            keys.append((number[known], cells + stratum[known] * size + code[known]))
            weights.append(rows.weights[here][known])
            blocks.append(block + np.repeat(np.arange(strata), size))
            owners.append(np.full(strata * size, owner))
            cells, block, owner = cells + strata * size, block + strata, owner + 1
    value = np.concatenate([v for v, _ in keys])
    key, inverse = np.unique(
        value * cells + np.concatenate([c for _, c in keys]), return_inverse=True
    )
    total = group_weights(inverse, np.concatenate(weights), len(key))
    starts = np.searchsorted(key // cells, np.arange(values + 1))
    return _Cells(starts, key % cells, total, np.concatenate(blocks), np.concatenate(owners))
