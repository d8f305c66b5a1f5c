"""Leaves: the distribution of one variable, estimated from weighted rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rspmn.circuit import (
    Categorical,
    Distribution,
    IntegerHistogram,
    Leaf,
    PiecewiseLinear,
    Utility,
)
from rspmn.circuit.distributions import Values
from rspmn.data.columns import Column
from rspmn.data.keys import group_weights
from rspmn.errors import DataError, did_you_mean
from rspmn.learn.structure.rows import Rows, RowTable
from rspmn.schema import Kind
from rspmn.types import Array
from rspmn.values import UNKNOWN

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
    return Leaf(name, family.fit(values, weights, table.spans.get(name)))


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
