"""Contingency tables of all pairs of two groups of variables, in all strata, at once.

Each value of each variable is a cell. Matrix products, of all strata of about the same size at
once, count every pair of cells; sums over the cells of a variable turn counts into statistics.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.data.columns import narrowest
from rspmn.data.distinct import distinct_integers
from rspmn.data.keys import group_weights
from rspmn.learn.structure.rows import Rows
from rspmn.types import Array, Bools, Ints

#: Values of less weight than this are pooled: in a table of nearly empty cells the statistics
#: are not distributed as the tests assume.
RARE = 5.0
#: More pairs than this, of at most so many cells each on average, are counted by matrix products
#: however many rows there are.
MANY_PAIRS, FEW_CELLS = 400, 30
#: Indicator matrices have at most this size; more rows are counted in parts.
KEPT = 4_000_000
#: Strata of at most so many rows are counted together.
FEW_ROWS = 256


@dataclass(frozen=True, eq=False)
class ValueCells:
    """The values of several variables as consecutive cells."""

    names: tuple[str, ...]
    starts: Ints  # [variables], the first cell of each
    owner: Ints  # [cells], the variable of each

    @property
    def size(self) -> int:
        """The number of cells altogether."""
        return len(self.owner)

    def of(self, variable: int) -> slice:
        """Return the cells of one variable."""
        start = int(self.starts[variable])
        return slice(start, start + int(np.count_nonzero(self.owner == variable)))


def cells_of(rows: Rows, names: Sequence[str]) -> ValueCells:
    """Return the cells of some variables."""
    key = ("cells", *names)
    if key not in rows.table.memo:
        sizes = np.array([rows.table.sizes[name] for name in names], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        owner = np.repeat(np.arange(len(sizes), dtype=narrowest(len(sizes))), sizes)
        rows.table.memo[key] = ValueCells(tuple(names), starts, owner)
    found = rows.table.memo[key]
    assert isinstance(found, ValueCells)
    return found


@dataclass(frozen=True, eq=False)
class Contingency:
    """The weight of every pair of cells in every stratum."""

    left: ValueCells
    right: ValueCells
    counts: Array  # [strata, left cells, right cells]
    left_weights: Array  # [left cells], whatever is missing on the right
    right_weights: Array  # [right cells]

    def statistics(self) -> tuple[Array, Array, Array, Array]:
        """Return G, Pearson's X², degrees of freedom and weight of each pair.

        Each is [strata, left, right].
        """
        counts = pool_rare(self.counts, self.left, self.left_weights, 1)
        counts = pool_rare(counts, self.right, self.right_weights, 2)

        def by_right(cells: Array) -> Array:
            return np.asarray(np.add.reduceat(cells, self.right.starts, axis=2))

        def by_left(cells: Array) -> Array:
            return np.asarray(np.add.reduceat(cells, self.left.starts, axis=1))

        row = by_right(counts)  # [strata, left cells, right]
        column = by_left(counts)  # [strata, left, right cells]
        total = by_left(row)  # [strata, left, right]
        g = by_left(by_right(xlogx(counts)) - xlogx(row)) - by_right(xlogx(column)) + xlogx(total)
        expected = row[:, :, self.right.owner] * column[:, self.left.owner, :]
        np.square(counts, out=counts)
        share = np.divide(counts, expected, out=counts, where=expected > 0)
        # X² = N · (Σ n² / (row · column) - 1), and (N - 1)/N of it has the mean that it should
        # have by chance, however sparse the table is
        x2 = (total - 1) * (by_left(by_right(share)) - 1)
        values = by_left((row > 0).astype(np.float64)), by_right((column > 0).astype(np.float64))
        freedom = (values[0] - 1) * (values[1] - 1)
        seen = total > 0
        return (
            np.where(seen, np.maximum(2 * g, 0), 0.0),
            np.where(seen, np.maximum(x2, 0), 0.0),
            np.where(seen, np.maximum(freedom, 0), 0.0),
            total,
        )


def distinct_weights(keys: Ints, weights: Array) -> tuple[Ints, Array]:
    """Return the distinct keys and the weight of each."""
    size = int(keys.max()) + 1
    if size <= 4 * len(keys) + 1000:
        total = group_weights(keys, weights, size)
        found = np.flatnonzero(total)
        return found, total[found]
    found, inverse = np.unique(keys, return_inverse=True)
    return found, group_weights(inverse, weights)


def contingency(rows: Rows, left: Sequence[str], right: Sequence[str], strata: Ints) -> Contingency:
    """Count all pairs of cells. The strata are those that occur, in order."""
    a, b = cells_of(rows, left), cells_of(rows, right)
    pairs = len(left) * len(right)
    wide = pairs > MANY_PAIRS and a.size * b.size <= FEW_CELLS * pairs
    if len(rows) * (a.size + b.size) > KEPT and not wide:
        return _pair_by_pair(rows, a, b, strata)
    if pairs <= a.size + b.size:
        return _counted(rows, a, b, strata)
    order = np.argsort(strata, kind="stable")
    given = strata[order]
    stratum = np.cumsum(given != np.append(given[:1], given[:-1]))  # [n], from 0
    counts = np.zeros((int(stratum[-1]) + 1 if len(order) else 0, a.size, b.size))
    weights = np.zeros(a.size), np.zeros(b.size)
    step = max(1, KEPT // (a.size + b.size))
    for first in range(0, len(order), step):
        part = rows.where(order[first : first + step])
        number = stratum[first : first + step]
        starts = np.searchsorted(number, np.arange(number[0], number[-1] + 2))
        one, other = _indicators(part, a), _indicators(part, b)
        weights[1][:] += part.weights @ other
        one *= part.weights[:, None]
        weights[0][:] += one.sum(axis=0)
        counts[number[0] : number[-1] + 1] += stratum_products(one, other, starts)
    return Contingency(a, b, counts, *weights)


def occurs_again(strata: Ints) -> Bools:  # [n]
    """Return which rows are in a stratum of several."""
    number, size = np.unique(strata, return_inverse=True, return_counts=True)[1:]
    return np.asarray(size[number] > 1)


def stratum_products(one: Array, other: Array, starts: Ints) -> Array:  # [strata, a, b]
    """Return the matrix product oneᵀ · other of each stratum.

    `one`, `other`: rows in the order of their strata. [n, a], [n, b]. `starts`: the first row of
    each stratum, and the number of rows [strata + 1].

    Small strata of about the same size, to a power of two, are one product of many matrices.
    """
    sizes = np.diff(starts)
    found = np.empty((len(sizes), one.shape[1], other.shape[1]))
    for k in np.flatnonzero(sizes > FEW_ROWS).tolist():
        part = slice(starts[k], starts[k + 1])
        found[k] = one[part].T @ other[part]
    width = 1
    while width <= FEW_ROWS and len(sizes):
        several = np.flatnonzero((sizes <= width) & (2 * sizes > width))
        if len(several):
            row = starts[several][:, None] + np.arange(width)  # [several, width]
            beyond = row >= starts[several + 1][:, None]
            row = np.minimum(row, len(one) - 1)
            padded = one[row]
            padded[beyond] = 0.0
            found[several] = padded.transpose(0, 2, 1) @ other[row]
        width *= 2
    found[sizes == 0] = 0.0
    return found


def _counted(rows: Rows, a: ValueCells, b: ValueCells, strata: Ints) -> Contingency:
    """Count each pair of cells of each row: for few pairs of variables."""
    distinct, stratum = distinct_integers(strata)
    one, other = (rows.table.codes.take(rows.index, cells.names) for cells in (a, b))
    left, right = np.maximum(one, 0) + a.starts, np.maximum(other, 0) + b.starts
    weights = [np.where(codes >= 0, rows.weights[:, None], 0.0) for codes in (one, other)]
    place = (stratum[:, None] * a.size + left)[:, :, None] * b.size + right[:, None, :]
    each = weights[0][:, :, None] * (other >= 0)[:, None, :]
    shape = len(distinct), a.size, b.size
    return Contingency(
        a, b, group_weights(place.ravel(), each.ravel(), math.prod(shape)).reshape(shape),
        group_weights(left.ravel(), weights[0].ravel(), a.size),
        group_weights(right.ravel(), weights[1].ravel(), b.size),
    )  # fmt: skip


def _pair_by_pair(rows: Rows, a: ValueCells, b: ValueCells, strata: Ints) -> Contingency:
    """Count one pair of variables at a time: for many rows or values."""
    distinct, stratum = np.unique(strata, return_inverse=True)
    counts = np.zeros((len(distinct), a.size, b.size))
    codes = {name: rows.codes(name).astype(np.int64) for name in {*a.names, *b.names}}
    sums = {
        n: group_weights(c[c >= 0], rows.weights[c >= 0], rows.table.sizes[n])
        for n, c in codes.items()
    }
    for i, one in enumerate(a.names):
        for j, other in enumerate(b.names):
            sizes = rows.table.sizes[one], rows.table.sizes[other]
            both = (codes[one] >= 0) & (codes[other] >= 0)
            cell = (stratum[both] * sizes[0] + codes[one][both]) * sizes[1] + codes[other][both]
            flat = group_weights(cell, rows.weights[both], len(distinct) * sizes[0] * sizes[1])
            counts[:, a.of(i), b.of(j)] = flat.reshape(len(distinct), *sizes)
    return Contingency(
        a, b, counts, np.concatenate([sums[n] for n in a.names]),
        np.concatenate([sums[n] for n in b.names]),
    )  # fmt: skip


def _indicators(rows: Rows, cells: ValueCells) -> Array:  # [n, cells]
    """Return the indicators of rows: 1 in each variable's cell, 0 where it is missing."""
    codes = rows.table.codes.take(rows.index, cells.names)
    value = np.arange(cells.size) - cells.starts[cells.owner]
    return np.asarray(codes[:, cells.owner] == value, dtype=np.float64)


def pool_rare(counts: Array, cells: ValueCells, weights: Array, axis: int) -> Array:
    """Return a copy in which the rare values of each variable are pooled in the first of them."""
    counts = counts.copy()
    rare = np.flatnonzero((weights > 0) & (weights < RARE))
    if len(rare) < 2:
        return counts
    owner = cells.owner[rare]
    first = rare[np.searchsorted(owner, owner)]  # owners are sorted
    moved = np.flatnonzero(first != rare)
    moving = np.moveaxis(counts, axis, 0)
    np.add.at(moving, first[moved], moving[rare[moved]])
    moving[rare[moved]] = 0.0
    return counts


def xlogx(x: Array) -> Array:
    """Return x · log x, and 0 for 0."""
    return x * np.log(np.where(x > 0, x, 1.0))
