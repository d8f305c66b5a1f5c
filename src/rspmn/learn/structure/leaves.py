"""Leaves: the distribution of one variable, estimated from weighted rows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.circuit import (
    Categorical,
    Distribution,
    IntegerHistogram,
    Leaf,
    NetworkBuilder,
    PiecewiseLinear,
    StudentT,
    Utility,
)
from rspmn.circuit.distributions import Values, as_numbers
from rspmn.data.columns import Column
from rspmn.data.keys import group_weights
from rspmn.errors import DataError, did_you_mean
from rspmn.learn.structure.rows import Rows, RowTable
from rspmn.schema import Kind
from rspmn.types import Array, Ints
from rspmn.values import UNKNOWN

#: Means of fewer values of a decision are not shrunk towards each other: it would not improve them.
MANY = 4

#: Families of leaves that were asked for, by the name of a variable or by kind.
Families = Mapping[str, type[Distribution]]


def fit_utility(rows: Rows, name: str) -> Utility:
    """Return the weighted mean, count and variance of the utility: exact, never of bins."""
    column = rows.table.columns[name]
    values, total = column.data[rows.index], rows.total
    within = 0.0 if column.spread is None else float(rows.weights @ column.spread[rows.index])
    if len(values) and not within and (values == values[0]).all():
        return Utility(name, float(values[0]), total)
    mean = float(rows.weights @ values / total)
    variance = float(rows.weights @ (values - mean) ** 2 + within) / total
    return Utility(name, mean, total, variance)


def shrunk_utilities(rows: Rows, codes: NDArray[Any], name: str) -> dict[int, Utility]:
    """Return the utility of each value of a decision, by its code, its mean shrunk.

    If the rows have a prior, means are shrunk towards it. Otherwise they are shrunk towards each
    other, if there are MANY values of which none is known much better than chance explains: the
    best of many means is otherwise too high. Where a mean would move by less than one in a hundred
    of its distance, none is moved.
    """
    prior = rows.table.prior
    values, group = np.unique(codes, return_inverse=True)
    if prior is None:
        raw = {c: fit_utility(rows.where(group == k), name) for k, c in enumerate(values.tolist())}
        return _shrunk_together(raw)
    u, w = rows.column(name).data, rows.weights
    count = np.bincount(group, w)
    mean = np.bincount(group, w * u) / count
    variance = np.bincount(group, w * (u - mean[group]) ** 2) / count
    before = np.bincount(group, w * prior.means[rows.index]) / count
    return {
        code: _shrunk(Utility(name, *own), known, prior.strength, prior.variance)
        for code, own, known in zip(
            values.tolist(),
            zip(mean.tolist(), count.tolist(), variance.tolist(), strict=True),
            before.tolist(),
            strict=True,
        )
    }


def _shrunk_together(raw: dict[int, Utility]) -> dict[int, Utility]:
    """Shrink means towards their weighted mean by as much as empirical Bayes finds right."""
    counts, means, variances = (
        np.array([getattr(utility, field) for utility in raw.values()])
        for field in ("count", "mean", "variance")
    )
    if len(raw) < MANY:
        return raw
    total = counts.sum()
    noise = float(counts @ variances / total)
    middle = float(counts @ means / total)
    between = float(counts @ (means - middle) ** 2)
    # with the number of values less 3, as James and Stein have it
    varied = (between - noise * (len(raw) - 1)) / (total - (counts @ counts) / total)
    varied *= (len(raw) - 1) / (len(raw) - 3) if varied > 0 else 1.0
    strength = min(noise / varied, total) if varied * total > noise else float(total)
    if not (strength / (counts + strength) > 0.01).any():
        return raw
    return {code: _shrunk(utility, middle, strength, noise) for code, utility in raw.items()}


def _shrunk(utility: Utility, mean: float, strength: float, variance: float) -> Utility:
    """Return a utility with `strength` more rows of a mean and a variance, and their count."""
    share = utility.count / (utility.count + strength)
    return Utility(
        utility.variable,
        share * utility.mean + (1 - share) * mean,
        utility.count,
        share * utility.variance + (1 - share) * variance,
    )


def fit_leaf(rows: Rows, name: str, families: Families) -> Leaf:
    """Return the distribution of a variable, estimated from the rows in which it is not missing.

    A variable that is missing in all rows has the distribution of the whole table, each value
    counted once. If the rows were chosen because it is missing, all its values are UNKNOWN.
    """
    column, table = rows.column(name), rows.table
    family = asked_family(families, name, column.kind)
    if column.missing.all():
        if name in table.absent:
            return Leaf(name, Categorical.certain(UNKNOWN))
        return Leaf(name, _fit_unseen(table.columns[name], family))
    values, weights = weighted_values(column, rows.weights)
    family = family or _default_family(column.kind, name in table.ordered)
    return Leaf(name, family.fit(values, weights, _finite(table.spans.get(name), values)))


def _finite(span: tuple[float, float] | None, values: Values) -> tuple[float, float] | None:
    """Return an interval whose open ends are at the outermost of some values."""
    if span is None or all(map(math.isinf, span)):
        return None
    numbers = as_numbers(values)
    low, high = span
    return max(low, float(numbers[0])) if math.isinf(low) else low, (
        min(high, float(numbers[-1])) if math.isinf(high) else high
    )


def fit_tail(rows: Rows, name: str, families: Families) -> tuple[Leaf, float] | None:
    """Return a distribution beyond all numbers of some rows, and its weight: that of one row.

    It is as wide as the numbers of the whole table, and reaches to infinity where their interval
    has an open end. There is none where it has no such end, and for a family that was asked for.
    """
    column, span = rows.column(name), rows.table.spans.get(name, (0.0, 0.0))
    known = ~column.missing
    if not any(map(math.isinf, span)) or not known.any():
        return None
    if asked_family(families, name, column.kind):
        return None
    everywhere = rows.table.columns[name].numbers()
    wide = float(np.nanstd(everywhere)) or max(1.0, float(np.nanmax(np.abs(everywhere))))
    weights, numbers = rows.weights[known], column.numbers()[known]
    total = float(weights.sum())
    centre = float(weights @ numbers / total)
    return Leaf(name, StudentT(centre, wide / math.sqrt(2), *span)), 1 / (total + 1)


def asked_family(families: Families, name: str, kind: Kind) -> type[Distribution] | None:
    """Return the family that was asked for, by name or else by kind; None if neither was."""
    return families.get(name) or families.get(kind)


def check_families(families: Families, table: RowTable) -> None:
    """Refuse families for variables that do not exist, or whose kind they cannot describe."""
    for key, family in families.items():
        if key not in table.columns and key not in list(Kind):
            raise DataError(
                f"LearnConfig: leaves: no variable or kind {key!r}: "
                f"{did_you_mean(key, table.columns)}"
            )
        kind = table.columns[key].kind if key in table.columns else Kind(key)
        if kind not in family.kinds:
            raise DataError(
                f"LearnConfig: leaves: {key!r} is {kind}, but {family.__name__} describes "
                f"variables that are {' or '.join(sorted(family.kinds))}"
            )


def on_number_lines(rows: Rows, names: Sequence[str], families: Families) -> Rows:
    """Return the rows with integers that have a family of their own ordered as numbers.

    They are then split into intervals, to which the family can be restricted, not into sets.
    """
    columns = rows.table.columns
    integers = (name for name in names if columns[name].kind is Kind.INTEGER)
    asked = frozenset(name for name in integers if asked_family(families, name, Kind.INTEGER))
    return replace(rows, table=replace(rows.table, ordered=rows.table.ordered | asked))


def _default_family(kind: Kind, ordered: bool) -> type[Distribution]:
    if kind is Kind.CONTINUOUS:
        return PiecewiseLinear
    return IntegerHistogram if ordered else Categorical


def _fit_unseen(column: Column, family: type[Distribution] | None) -> Distribution:
    """Return the distribution of all values of a column, each row counted once."""
    if column.kind is not Kind.CONTINUOUS:
        values = column.domain or (0,)
        return (family or Categorical).fit(values, np.ones(len(values)))
    if column.missing.all():
        return Categorical.certain(0.0)
    return (family or PiecewiseLinear).fit(*weighted_values(column, np.ones(len(column))))


def weighted_values(column: Column, weights: Array) -> tuple[Values, Array]:
    """Return the distinct values of a column, sorted, and the weight of each.

    Continuous values are an array, others are as the domain has them. Missing values are left out.
    """
    present = ~column.missing
    found, group = np.unique(column.data[present], return_inverse=True)
    weight = group_weights(group, weights[present])
    if column.kind is Kind.CONTINUOUS:
        return found, weight
    return [column.domain[code] for code in found.tolist()], weight


#: Integers are less than this.
LARGEST = 2**62
#: A leaf of numbers is fitted to the values of codes that have at least this share of the most
#: frequent one.
RELEVANT = 0.02


class SmoothedLeaves:
    """The leaves of one variable of a table."""

    def __init__(self, rows: Rows, name: str, families: Families) -> None:
        self.name = name
        #: The distribution in all rows.
        self.whole: Distribution = fit_leaf(rows, name, families).distribution
        column, codes = rows.column(name), rows.codes(name)
        present = np.flatnonzero(~column.missing)
        found, first, group = np.unique(
            column.data[present], return_index=True, return_inverse=True
        )
        self._values: Values = found  # sorted
        if column.kind is not Kind.CONTINUOUS:
            self._values = [column.domain[code] for code in found.tolist()]
        self._weights = group_weights(group, rows.weights[present], len(found))
        self._codes = codes[present][first].astype(np.int64)  # [values]
        self._by_code = group_weights(self._codes, self._weights, rows.table.sizes[name])
        self.total = float(self._weights.sum())
        self._tail = self._tail_of(column.kind) if self.total else None

    def _tail_of(self, kind: Kind) -> Distribution | None:
        """Return numbers beyond those that were seen; None if the leaf itself has some."""
        if self.whole.atoms() is not None or not self._is_bounded:
            return None
        if kind is Kind.INTEGER:
            return integers_around(self._values)
        return StudentT.fit(self._values, self._weights)

    @property
    def _is_bounded(self) -> bool:
        return bool(np.isfinite(as_numbers(self.whole.support())).any())

    def add(self, builder: NetworkBuilder, counts: Array, pseudo_rows: float) -> int:
        """Add the leaf of so many rows of each code, smoothed by so many rows of the table."""
        if not self.total:
            return builder.leaf(self.name, self.whole)
        weights = self._weights * (counts / np.maximum(self._by_code, 1e-300))[self._codes]
        if self.whole.atoms() is not None:
            return self._add_categories(builder, weights, pseudo_rows)
        # codes that hardly occur are left to the pseudo-rows, at least one
        main = np.flatnonzero((counts >= RELEVANT * counts.max())[self._codes] & (weights > 0))
        parts = [self.whole]
        shares = [max(pseudo_rows, 1.0)]
        if len(main):
            parts.append(type(self.whole).fit(self._some_values(main), weights[main]))
            shares.append(float(counts.sum()))
        if self._tail is not None:
            parts.append(self._tail)
            shares.append(sum(shares) * 2 / self.total)
        leaves = [builder.leaf(self.name, part) for part in parts]
        return builder.sum(leaves, (np.array(shares) / sum(shares)).tolist())

    def _add_categories(self, builder: NetworkBuilder, weights: Array, pseudo_rows: float) -> int:
        weights = weights + self._weights * (pseudo_rows / self.total)
        leaf = self.whole.reestimated(self.whole.statistics(self._values, weights))
        once = float((self._weights == 1).sum())
        return builder.leaf(self.name, leaf.opened(min(0.5, (once + 1 / self.total) / self.total)))

    def _some_values(self, chosen: Ints) -> Values:
        if isinstance(self._values, np.ndarray):
            return np.asarray(self._values[chosen])
        return [self._values[k] for k in chosen.tolist()]

    def add_whole(self, builder: NetworkBuilder) -> int:
        """Add the leaf of all rows."""
        return self.add(builder, self._by_code, 1.0)


def integers_around(values: Values) -> IntegerHistogram:
    """Return integers below and above some sorted ones, in bins that double in width.

    Each bin has a quarter of the mass of the one before, so the mean exists.

    >>> tail = integers_around([0, 9])  # 10 to 19, 20 to 39, ... and -10 to -1, -30 to -11, ...
    >>> tail.log_prob(5), round(float(np.exp(tail.log_prob(12))), 4)
    (-inf, 0.0375)
    """
    numbers = as_numbers(values)
    low, high = int(numbers[0]), int(numbers[-1]) + 1
    reach = [(high - low) * (2**k - 1) for k in range(63)]
    below = [low - each for each in reach if low - each >= -LARGEST]
    above = [high + each for each in reach if high + each <= LARGEST]
    masses = [*(4.0**-k for k in range(len(below) - 1))][::-1]
    masses += [0.0, *(4.0**-k for k in range(len(above) - 1))]
    total = sum(masses)
    return IntegerHistogram((*below[::-1], *above), tuple(mass / total for mass in masses))
