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

from rspmn.learn.rows import Rows

__all__ = ["Dependence", "GTest", "IndependenceTest"]

Array = NDArray[np.float64]

#: Values of less weight than this are tested as one: a table of cells that are nearly all
#: empty says nothing, but would look as if it did.
RARE = 5.0
#: How many numbers to hold at once when counting.
CHUNK = 4_000_000


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
    """Count all tables of one stratum with one matrix product, and add the strata up."""
    a, b = Blocks.of(rows, left), Blocks.of(rows, right)
    shape = (len(left), len(right))
    g, x2, freedom = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    if not len(left) or not len(right):
        return PairStatistics(g, x2, freedom)
    order = np.argsort(strata, kind="stable")
    for chosen in np.split(order, np.flatnonzero(np.diff(strata[order])) + 1):
        tables = joint_counts(a, b, rows.weights, chosen)  # [cells of a, cells of b]
        one = _statistics(tables, a, b)
        g, x2, freedom = g + one.g, x2 + one.x2, freedom + one.freedom
    return PairStatistics(g, x2, freedom)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Several variables side by side: a column of cells for each value of each."""

    cells: NDArray[np.int64]  # [n, variables]; the cell of each row, -1 where missing
    starts: NDArray[np.int64]  # [variables]; the first cell of each variable
    size: int  # cells altogether

    @classmethod
    def of(cls, rows: Rows, names: Sequence[str]) -> "Blocks":
        """Give every value a cell, and all rare values of a variable one together."""
        columns, starts, size = [], [], 0
        for name in names:
            codes = _pooled(rows.codes(name), rows.weights, rows.table.sizes[name])
            starts.append(size)
            columns.append(np.where(codes >= 0, codes + size, -1))
            size += int(codes.max(initial=0)) + 1
        cells = np.array(columns, dtype=np.int64).reshape(len(names), len(rows)).T
        return cls(cells, np.array(starts, dtype=np.int64), size)


def _pooled(codes: NDArray[np.int32], weights: Array, size: int) -> NDArray[np.int64]:
    """Return numbers for the values that occur, rare ones together; missing stays -1."""
    here = codes >= 0
    total = np.bincount(codes[here], weights=weights[here], minlength=size)
    rare = (total > 0) & (total < RARE)
    number = np.cumsum(total >= RARE) - 1
    if rare.any():
        number[rare] = number[-1] + 1
    return np.where(here, number[np.where(here, codes, 0)], -1)


def joint_counts(a: Blocks, b: Blocks, weights: Array, chosen: NDArray[np.int64]) -> Array:
    """Return the weight of every pair of cells, over some of the rows."""
    counts = np.zeros((a.size, b.size))
    step = max(1, CHUNK // max(1, a.size + b.size))
    for start in range(0, len(chosen), step):
        part = chosen[start : start + step]
        counts += (_indicators(a, part) * weights[part, None]).T @ _indicators(b, part)
    return counts


def _indicators(blocks: Blocks, part: NDArray[np.int64]) -> Array:  # [len(part), cells]
    cells = blocks.cells[part]
    hot = np.zeros((len(part), blocks.size + 1))
    np.put_along_axis(hot, np.where(cells >= 0, cells, blocks.size), 1.0, axis=1)
    return hot[:, :-1]


def _statistics(tables: Array, a: Blocks, b: Blocks) -> PairStatistics:
    """Return G, X² and degrees of freedom of the table of each pair of blocks."""

    def by_right(cells: Array) -> Array:  # [.., cells of b] -> [.., right]
        return np.asarray(np.add.reduceat(cells, b.starts, axis=1))

    def by_left(cells: Array) -> Array:  # [cells of a, ..] -> [left, ..]
        return np.asarray(np.add.reduceat(cells, a.starts, axis=0))

    rows_sum = by_right(tables)  # [cells of a, right]
    cols_sum = by_left(tables)  # [left, cells of b]
    total = by_left(rows_sum)  # [left, right]
    g = 2 * (
        by_left(by_right(_xlogx(tables)))
        - by_left(_xlogx(rows_sum))
        - by_right(_xlogx(cols_sum))
        + _xlogx(total)
    )
    # X² = N · (Σ n² / (row · column) - 1), and (N - 1)/N of it has the mean that it should have by
    # chance, however sparse the table is
    repeat_b = np.repeat(np.arange(len(b.starts)), np.diff(np.append(b.starts, b.size)))
    repeat_a = np.repeat(np.arange(len(a.starts)), np.diff(np.append(a.starts, a.size)))
    expected = rows_sum[:, repeat_b] * cols_sum[repeat_a, :]
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


def _xlogx(x: Array) -> Array:
    return x * np.log(np.where(x > 0, x, 1.0))
