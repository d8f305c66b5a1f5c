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
from rspmn.types import Array
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
