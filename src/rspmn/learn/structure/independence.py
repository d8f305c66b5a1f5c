"""Tests of independence of all pairs of two groups of variables.

A decision is not a random variable of the model. Whether X matters for what comes after a
decision is therefore tested *given* the decision: statistics and degrees of freedom are summed
over its values.
"""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.learn.structure.contingency import KEPT, RARE, contingency, distinct_weights, xlogx
from rspmn.learn.structure.grouped_statistics import grouped_statistics
from rspmn.learn.structure.rows import Rows
from rspmn.types import Array, Bools, Ints

#: Up to so many pairs are counted one by one if there are many rows.
FEW_PAIRS = 400
#: A dense table of all pairs of cells is used up to this size.
SMALL = 200_000
#: The largest dense table of all pairs of cells in memory.
LARGEST = 4_000_000


V = TypeVar("V")


@dataclass(frozen=True, eq=False)
class Dependence:
    """Which of some variables depend on which of some others, and how strongly."""

    dependent: Bools  # [left, right]
    strength: Array  # [left, right]; comparable within one table, 0 when independent


class IndependenceTest(Protocol):
    """Tests all pairs of two groups of variables; `check_independence_test` checks one."""

    def __call__(
        self,
        rows: Rows,
        left: Sequence[str],
        right: Sequence[str],
        strata: Ints,
        rng: np.random.Generator,
    ) -> Dependence:
        """Test every variable on the left with every one on the right, given the strata."""
        ...


@dataclass(frozen=True)
class GTest:
    """The G-test on weighted contingency tables, corrected for the number of tests.

    `alpha` is the probability of finding any dependence in one call where there is none. With 1,
    all variables with several values depend on each other.

    On sparse tables G is too large by chance and Pearson's X² is not, so both must be
    significant. With enough data they agree.
    """

    alpha: float = 0.01

    def __call__(
        self,
        rows: Rows,
        left: Sequence[str],
        right: Sequence[str],
        strata: Ints,
        rng: np.random.Generator,
    ) -> Dependence:
        """Test all pairs at once."""
        del rng
        if self.alpha >= 1:
            one, other = (np.array([*map(rows.varies, side)], dtype=bool) for side in (left, right))
            everything = one[:, None] & other[None, :]
            return Dependence(everything, everything.astype(np.float64))
        statistics = pair_statistics(rows, left, right, strata)
        level = self.alpha / max(1, len(left) * len(right))
        dependent = statistics.significant(level)
        excess = np.maximum(statistics.g - statistics.freedom, 0.0)
        return Dependence(dependent, np.where(dependent, excess, 0.0))


@dataclass(frozen=True, eq=False)
class PairStatistics:
    """G, Pearson's X² and degrees of freedom of all pairs, summed over strata."""

    g: Array  # [left, right]
    x2: Array  # [left, right]
    freedom: Array  # [left, right]
    weight: Array  # [left, right], of the rows that have both
    #: P-values that were computed ahead, 1 where a statistic is below its mean. [left, right]
    ahead: Array | None = None

    def at(self, where: Any) -> "PairStatistics":
        """Return some of the statistics."""
        ahead = None if self.ahead is None else self.ahead[where]
        return PairStatistics(
            self.g[where], self.x2[where], self.freedom[where], self.weight[where], ahead
        )

    def screened(self) -> "PairStatistics":
        """Return the same statistics with p-values computed ahead."""
        tested = (self.freedom > 0) & (self._statistic > self.freedom)
        return replace(self, ahead=self._p_values(tested))

    def low_p_values(self) -> Array:  # [left, right]
        """Return the p-values that may be low, as `screened` does; 1 in place of others."""
        found = self.screened().ahead if self.ahead is None else self.ahead
        assert found is not None
        return found

    def p_values(self) -> Array:  # [left, right]
        """Return the larger of the two tests' p-values; 1 where nothing varies.

        With more degrees of freedom than rows G cannot be large, so X² alone decides.
        """
        return self._p_values(self.freedom > 0)

    def significant(self, level: float) -> Bools:  # [left, right]
        """Return where the p-value is below a level.

        A statistic below its mean, the degrees of freedom, has a p-value above .3, which needs not
        be computed.
        """
        if level > 0.3:
            return np.asarray(self.p_values() < level)
        return np.asarray(self.low_p_values() < level)

    @cached_property
    def _statistic(self) -> Array:  # [left, right]
        """The statistic whose p-value counts: the smaller one has the larger p-value."""
        return np.where(self.freedom > self.weight, self.x2, np.minimum(self.g, self.x2))

    def _p_values(self, tested: Bools) -> Array:
        from scipy.special import chdtrc

        found = np.ones(tested.shape)
        found[tested] = chdtrc(self.freedom[tested], self._statistic[tested])
        return found


def pair_statistics(
    rows: Rows, left: Sequence[str], right: Sequence[str], strata: Ints
) -> PairStatistics:
    """Return the statistics of all pairs, counted densely or pair by pair, whichever is faster.

    They are cached with the rows for as long as the strata exist, since clustering needs them
    again. Those of more variables serve too.
    """
    key = tuple(left), tuple(right)
    kept = rows.memo.get(("pairs", id(strata)))
    if kept is None or kept.strata() is not strata:  # an id may be used again
        kept = rows.memo["pairs", id(strata)] = _Kept(weakref.ref(strata), {})
    if key not in kept.statistics:
        kept.statistics[key] = kept.part(*key) or _statistics_of(rows, left, right, strata)
    return kept.statistics[key]


def keep_statistics(
    rows: Rows,
    left: tuple[str, ...],
    right: tuple[str, ...],
    strata: Ints,
    statistics: "PairStatistics",
) -> None:
    """Cache statistics of all pairs with the rows."""
    rows.memo["pairs", id(strata)] = _Kept(weakref.ref(strata), {(left, right): statistics})


@dataclass(frozen=True, eq=False)
class _Kept:
    """Statistics given the same strata."""

    strata: "weakref.ref[Ints]"
    statistics: dict[tuple[tuple[str, ...], tuple[str, ...]], PairStatistics]

    def part(self, left: tuple[str, ...], right: tuple[str, ...]) -> PairStatistics | None:
        """Return the statistics of some variables, if those of more are cached."""
        for (ones, others), found in self.statistics.items():
            if set(left) <= set(ones) and set(right) <= set(others):
                some = found.at([ones.index(n) for n in left])
                if right == others:
                    return some
                return some.at((slice(None), [others.index(n) for n in right]))
        return None


def components(names: Sequence[V], dependent: Bools) -> list[tuple[V, ...]]:
    """Return the groups of variables that depend on each other, directly or by way of others.

    >>> components("abc", np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]], dtype=bool))
    [('a', 'c'), ('b',)]
    """
    linked = dependent | dependent.T
    free = np.ones(len(names), dtype=bool)
    found = []
    while free.any():
        group = np.zeros(len(names), dtype=bool)
        new = np.arange(len(names)) == int(free.argmax())
        while new.any():
            group |= new
            new = linked[new].any(axis=0) & ~group
        free &= ~group
        found.append(tuple(names[k] for k in np.flatnonzero(group).tolist()))
    return found


def _statistics_of(
    rows: Rows, left: Sequence[str], right: Sequence[str], strata: Ints
) -> PairStatistics:
    a, b = (sum(rows.table.sizes[name] for name in side) for side in (left, right))
    strata_here = len(np.unique(strata))
    largest = max((rows.table.sizes[name] for name in left), default=0)
    few = len(left) * len(right) <= FEW_PAIRS
    small = len(rows) * (a + b) <= KEPT and strata_here * a * b <= SMALL
    if (few and not small) or strata_here * largest * b > LARGEST:
        return _pair_by_pair(rows, left, right, strata)
    parts = [
        _all_at_once(rows, part, right, strata)
        for part in _parts(rows, left, max(1, LARGEST // max(1, strata_here * b)))
    ]
    return PairStatistics(
        np.concatenate([part.g for part in parts]),
        np.concatenate([part.x2 for part in parts]),
        np.concatenate([part.freedom for part in parts]),
        np.concatenate([part.weight for part in parts]),
    )


def _parts(rows: Rows, names: Sequence[str], most: int) -> list[list[str]]:
    """Divide variables into groups of at most so many cells."""
    parts: list[list[str]] = [[]]
    cells = 0
    for name in names:
        size = rows.table.sizes[name]
        if parts[-1] and cells + size > most:
            parts.append([])
            cells = 0
        parts[-1].append(name)
        cells += size
    return parts


def _all_at_once(
    rows: Rows, left: Sequence[str], right: Sequence[str], strata: Ints
) -> PairStatistics:
    """Count all tables of a stratum with one matrix product: best for few rows or many pairs."""
    if not left or not right:
        empty = np.zeros((len(left), len(right)))
        return PairStatistics(empty, empty, empty, empty)
    one, other = rows.codes_of(left), rows.codes_of(right)
    group = np.zeros(len(rows), dtype=np.int64)
    found = grouped_statistics(one, other, strata, rows.weights, group, 1)
    if found is not None:
        return PairStatistics(found.g[0], found.x2[0], found.freedom[0], found.weight[0])
    by_stratum = contingency(rows, left, right, strata).statistics()
    return PairStatistics(*(statistic.sum(axis=0) for statistic in by_stratum))


def _pair_by_pair(
    rows: Rows, left: Sequence[str], right: Sequence[str], strata: Ints
) -> PairStatistics:
    """Count the tables of all strata of one pair at a time: best for many rows or values."""
    stratum = np.unique(strata, return_inverse=True)[1]
    shape = (len(left), len(right))
    found = PairStatistics(*np.zeros((4, *shape)))
    numbers = {name: pooled_codes(rows, name) for name in {*left, *right}}
    for j, other in enumerate(right):
        for i, one in enumerate(left):
            a, b = numbers[one], numbers[other]
            both = (a >= 0) & (b >= 0)
            triple = (stratum[both], a[both], b[both], rows.weights[both])
            g, x2, freedom, weight = stratum_statistics(*triple)
            found.g[i, j], found.x2[i, j] = g.sum(), x2.sum()
            found.freedom[i, j], found.weight[i, j] = freedom.sum(), weight.sum()
    return found


def stratum_statistics(
    stratum: Ints, a: Ints, b: Ints, weights: Array
) -> tuple[Array, Array, Array, Array]:  # [strata] each
    """Return G, X², degrees of freedom and weight of one pair in each stratum.

    Only cells that are not empty are visited.
    """
    if not len(a):
        none = np.zeros(1)
        return none, none, none, none
    sizes = int(a.max()) + 1, int(b.max()) + 1
    row_key, column_key = stratum * sizes[0] + a, stratum * sizes[1] + b
    cell, cell_weight = distinct_weights(row_key * sizes[1] + b, weights)
    row, row_weight = distinct_weights(row_key, weights)
    column, column_weight = distinct_weights(column_key, weights)
    total = group_weights(stratum, weights)
    size = len(total)
    of_cell, of_row, of_column = cell // (sizes[0] * sizes[1]), row // sizes[0], column // sizes[1]
    g = 2 * (
        group_weights(of_cell, xlogx(cell_weight), size)
        - group_weights(of_row, xlogx(row_weight), size)
        - group_weights(of_column, xlogx(column_weight), size)
        + xlogx(total)
    )
    at_row = np.searchsorted(row, cell // sizes[1])
    at_column = np.searchsorted(column, of_cell * sizes[1] + cell % sizes[1])
    share = cell_weight**2 / (row_weight[at_row] * column_weight[at_column])
    x2 = np.where(total > 0, (total - 1) * (group_weights(of_cell, share, size) - 1), 0.0)
    rows_seen = np.bincount(of_row, minlength=size)
    columns_seen = np.bincount(of_column, minlength=size)
    freedom = np.where(total > 0, (rows_seen - 1.0) * (columns_seen - 1.0), 0.0)
    return np.maximum(g, 0.0), np.maximum(x2, 0.0), freedom, total


def pooled_codes(rows: Rows, name: str) -> Ints:  # [n]
    """Return a code for each row's value, the same for all rare ones, -1 where it is missing."""
    codes = rows.codes(name)
    here = codes >= 0
    total = group_weights(codes[here], rows.weights[here], rows.table.sizes[name])
    rare = (total > 0) & (total < RARE)
    number = np.cumsum(total >= RARE)
    if rare.any():
        number[rare] = number[-1] + 1
    return np.append(number, -1)[codes]
