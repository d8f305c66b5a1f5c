"""Tests of independence: which variables tell about which others.

A decision is not a random variable of the model. Whether X matters for what comes after a
decision is therefore tested *given* the decision: statistics and degrees of freedom are added
up over its values. A test says which pairs depend, and how strongly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rspmn.learn.rows import Rows, weigh

__all__ = ["Dependence", "GTest", "IndependenceTest", "PairStatistics", "pair_statistics", "xlogx"]

Array = NDArray[np.float64]

#: Values of less weight than this are tested as one: a table of cells that are nearly all
#: empty says nothing, but would look as if it did.
RARE = 5.0
#: How many numbers to hold at once when counting.
CHUNK = 2_000_000
#: Up to so many pairs are counted one by one.
FEW_PAIRS = 400


@dataclass(frozen=True, eq=False)
class Dependence:
    """Which of some variables depend on which of some others, and how strongly."""

    dependent: NDArray[np.bool_]  # [left, right]
    strength: Array  # [left, right]; comparable within one table, 0 when independent


class IndependenceTest(Protocol):
    """Tests all pairs of two groups of variables."""

    def __call__(
        self,
        rows: Rows,
        left: Sequence[str],
        right: Sequence[str],
        strata: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> Dependence:
        """Test every variable on the left with every one on the right, given the strata."""
        ...


@dataclass(frozen=True)
class GTest:
    """The G-test on weighted contingency tables, corrected for the number of tests.

    `alpha` is the chance of finding any dependence in one call where there is none. With 1
    everything that varies depends on everything else that does.

    On sparse tables G is too large by chance and Pearson's X² is not, so both must be
    significant; with enough data they agree.
    """

    alpha: float = 0.01

    def __call__(
        self,
        rows: Rows,
        left: Sequence[str],
        right: Sequence[str],
        strata: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> Dependence:
        """Test all pairs at once."""
        del rng
        if self.alpha >= 1:
            everything = np.outer(_varies(rows, left), _varies(rows, right))
            return Dependence(everything, everything.astype(np.float64))
        statistics = pair_statistics(rows, left, right, strata)
        level = self.alpha / max(1, len(left) * len(right))
        dependent = statistics.p_values() < level
        excess = np.maximum(statistics.g - statistics.freedom, 0.0)
        return Dependence(dependent, np.where(dependent, excess, 0.0))


def _varies(rows: Rows, names: Sequence[str]) -> NDArray[np.bool_]:
    """Say which variables have several values, also where all of them fall into one bin."""
    columns = (rows.table.columns[name] for name in names)
    data = (column.data[rows.index][~column.missing[rows.index]] for column in columns)
    return np.array([len(values) > 0 and bool((values != values[0]).any()) for values in data])


@dataclass(frozen=True, eq=False)
class PairStatistics:
    """G, Pearson's X² and degrees of freedom of all pairs, added up over strata."""

    g: Array  # [left, right]
    x2: Array  # [left, right]
    freedom: Array  # [left, right]

    def p_values(self) -> Array:  # [left, right]
        """Return the larger of the two tests' p-values; 1 where nothing varies."""
        from scipy.special import chdtrc

        with np.errstate(invalid="ignore"):
            p = np.maximum(chdtrc(self.freedom, self.g), chdtrc(self.freedom, self.x2))
        return np.where(self.freedom > 0, p, 1.0)


def pair_statistics(
    rows: Rows, left: Sequence[str], right: Sequence[str], strata: NDArray[np.int64]
) -> PairStatistics:
    """Return the statistics of all pairs, in the way that is faster for so many of them."""
    if len(left) * len(right) <= FEW_PAIRS:
        return _pair_by_pair(rows, left, right, strata)
    return _all_at_once(rows, left, right, strata)


def _pair_by_pair(
    rows: Rows, left: Sequence[str], right: Sequence[str], strata: NDArray[np.int64]
) -> PairStatistics:
    """Count the tables of all strata of one pair at a time: best for many rows."""
    a, b = Blocks.of(rows, left), Blocks.of(rows, right)
    stratum = np.unique(strata, return_inverse=True)[1]
    count = int(stratum.max(initial=-1)) + 1
    shape = (len(left), len(right))
    found = PairStatistics(np.zeros(shape), np.zeros(shape), np.zeros(shape))
    for j in range(len(right)):
        codes_b = b.values(j)
        for i in range(len(left)):
            codes_a = a.values(i)
            both = (codes_a >= 0) & (codes_b >= 0)
            cells = (stratum * a.sizes[i] + codes_a) * b.sizes[j] + codes_b
            if not both.all():
                cells, weights = cells[both], rows.weights[both]
            else:
                weights = rows.weights
            tables = weigh(cells, weights, count * a.sizes[i] * b.sizes[j])
            one = _statistics(tables.reshape(count, a.sizes[i], b.sizes[j]))
            found.g[i, j], found.x2[i, j], found.freedom[i, j] = one
    return found


def _statistics(tables: Array) -> tuple[float, float, float]:
    """Return G, X² and degrees of freedom of one pair's tables [strata, a, b], added up."""
    row, column = tables.sum(axis=2), tables.sum(axis=1)
    total = row.sum(axis=1)
    g = 2 * (xlogx(tables).sum() - xlogx(row).sum() - xlogx(column).sum() + xlogx(total).sum())
    expected = row[:, :, None] * column[:, None, :]
    share = np.divide(tables**2, expected, out=np.zeros_like(tables), where=expected > 0)
    # X² = N · (Σ n² / (row · column) - 1), and (N - 1)/N of it has the mean that it should have by
    # chance, however sparse the table is
    x2 = np.where(total > 0, (total - 1) * (share.sum(axis=(1, 2)) - 1), 0.0)
    freedom = ((row > 0).sum(axis=1) - 1.0) * ((column > 0).sum(axis=1) - 1.0)
    return (
        max(float(g), 0.0),
        max(float(np.maximum(x2, 0.0).sum()), 0.0),
        float(np.where(total > 0, freedom, 0.0).sum()),
    )


def _all_at_once(
    rows: Rows, left: Sequence[str], right: Sequence[str], strata: NDArray[np.int64]
) -> PairStatistics:
    """Count all tables of one stratum with one matrix product: best for many pairs."""
    a, b = Blocks.of(rows, left), Blocks.of(rows, right)
    shape = (len(left), len(right))
    g, x2, freedom = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    order = np.argsort(strata, kind="stable")
    for chosen in np.split(order, np.flatnonzero(np.diff(strata[order])) + 1):
        one = _block_statistics(joint_counts(a, b, rows.weights, chosen), a, b)
        g, x2, freedom = g + one.g, x2 + one.x2, freedom + one.freedom
    return PairStatistics(g, x2, freedom)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Several variables side by side: a cell for each value of each, rare values in one cell."""

    codes: list[NDArray[np.int32]]  # of each variable, those of all rows of the table
    index: NDArray[np.int64]  # [n], the rows meant
    numbers: list[NDArray[np.int64]]  # of each variable, the value's number by its code
    sizes: list[int]  # how many numbers each variable has

    @classmethod
    def of(cls, rows: Rows, names: Sequence[str]) -> "Blocks":
        """Give the values of each variable that occur their numbers."""
        codes = [rows.table.codes[name] for name in names]
        numbers = [
            _numbers(column[rows.index], rows.weights, rows.table.sizes[name])
            for name, column in zip(names, codes, strict=True)
        ]
        return cls(codes, rows.index, numbers, [int(n.max(initial=0)) + 1 for n in numbers])

    @property
    def starts(self) -> NDArray[np.int64]:  # [variables]
        """The first cell of each variable."""
        return np.cumsum([0, *self.sizes[:-1]])

    @property
    def size(self) -> int:
        """The number of cells altogether."""
        return sum(self.sizes)

    def values(self, k: int, part: NDArray[np.int64] | slice = slice(None)) -> NDArray[np.int64]:
        """Return the numbers of variable k in some of the rows, -1 where it is missing."""
        return self.numbers[k][self.codes[k][self.index[part]]]

    def indicators(self, part: NDArray[np.int64]) -> Array:  # [len(part), cells]
        """Return a 1 in the cell of each variable of some of the rows."""
        hot = np.zeros((len(part), self.size + 1))
        for k, start in enumerate(self.starts):
            number = self.values(k, part)
            hot[np.arange(len(part)), np.where(number >= 0, number + start, self.size)] = 1.0
        return hot[:, :-1]


def _numbers(codes: NDArray[np.int32], weights: Array, size: int) -> NDArray[np.int64]:
    """Return a number for each code, rare ones the same; the last, of code -1, is -1."""
    here = codes >= 0
    total = weigh(codes[here], weights[here], size)
    rare = (total > 0) & (total < RARE)
    number = np.cumsum(total >= RARE) - 1
    if rare.any():
        number[rare] = number[-1] + 1
    return np.append(np.maximum(number, 0), -1)


def joint_counts(a: Blocks, b: Blocks, weights: Array, chosen: NDArray[np.int64]) -> Array:
    """Return the weight of every pair of cells, over some of the rows."""
    counts = np.zeros((a.size, b.size))
    step = max(1, CHUNK // max(1, a.size + b.size))
    for start in range(0, len(chosen), step):
        part = chosen[start : start + step]
        counts += (a.indicators(part) * weights[part, None]).T @ b.indicators(part)
    return counts


def _block_statistics(tables: Array, a: Blocks, b: Blocks) -> PairStatistics:
    """Return G, X² and degrees of freedom of the table of each pair of blocks."""

    def by_right(cells: Array) -> Array:  # [.., cells of b] -> [.., right]
        return np.asarray(np.add.reduceat(cells, b.starts, axis=1))

    def by_left(cells: Array) -> Array:  # [cells of a, ..] -> [left, ..]
        return np.asarray(np.add.reduceat(cells, a.starts, axis=0))

    rows_sum = by_right(tables)  # [cells of a, right]
    cols_sum = by_left(tables)  # [left, cells of b]
    total = by_left(rows_sum)  # [left, right]
    g = 2 * (
        by_left(by_right(xlogx(tables)))
        - by_left(xlogx(rows_sum))
        - by_right(xlogx(cols_sum))
        + xlogx(total)
    )
    of_a = np.repeat(np.arange(len(a.sizes)), a.sizes)
    of_b = np.repeat(np.arange(len(b.sizes)), b.sizes)
    expected = rows_sum[:, of_b] * cols_sum[of_a, :]
    share = np.divide(tables**2, expected, out=np.zeros_like(tables), where=expected > 0)
    x2 = (total - 1) * (by_left(by_right(share)) - 1)
    values_a = by_left((rows_sum > 0).astype(np.float64))  # [left, right], those that occur
    values_b = by_right((cols_sum > 0).astype(np.float64))
    freedom = (values_a - 1) * (values_b - 1)
    seen = total > 0
    return PairStatistics(
        np.where(seen, np.maximum(g, 0), 0),
        np.where(seen, np.maximum(x2, 0), 0),
        np.where(seen, np.maximum(freedom, 0), 0),
    )


def xlogx(x: Array) -> Array:
    """Return x · log x, and 0 for 0."""
    return x * np.log(np.where(x > 0, x, 1.0))
