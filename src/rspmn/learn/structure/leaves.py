"""Leaves: the distribution of one variable, estimated from weighted rows."""

import math

import numpy as np

from rspmn.circuit import (
    Categorical,
    Distribution,
    IntegerHistogram,
    Leaf,
    PiecewiseLinear,
    Utility,
)
from rspmn.data.columns import Column
from rspmn.learn.structure.rows import Rows, weigh
from rspmn.schema import Kind
from rspmn.types import Array, Ints
from rspmn.values import UNKNOWN, Value

#: Half the width of the peak at a single number, relative to its size.
NARROW = 1e-9
#: At most so many pieces of a density or of a histogram of integers.
MOST_PIECES = 32


def fit_utility(rows: Rows, name: str) -> Utility:
    """Return the weighted mean, count and variance of the utility, without binning."""
    column = rows.table.columns[name]
    values, total = column.data[rows.index], rows.total
    within = 0.0 if column.spread is None else float(rows.weights @ column.spread[rows.index])
    if len(values) and not within and (values == values[0]).all():
        return Utility(name, float(values[0]), total)
    mean = float(rows.weights @ values / total)
    variance = float(rows.weights @ (values - mean) ** 2 + within) / total
    return Utility(name, mean, total, variance)


def fit_leaf(rows: Rows, name: str) -> Leaf:
    """Return the distribution of a variable; missing values are ignored.

    A variable that is missing in all rows is uniform over its values in the whole table.
    """
    column = rows.column(name)
    present = ~column.missing
    weights = rows.weights[present]
    data = column.data[present]
    if not len(data) and name in rows.table.absent:
        return Leaf(name, Categorical.certain(UNKNOWN))  # a state with a value is not here
    if not len(data):
        return Leaf(name, _unknown(rows.table.columns[name]))
    if column.kind is Kind.CONTINUOUS:
        return Leaf(name, _density(data, weights, rows.table.spans.get(name)))
    values = [column.domain[code] for code in np.unique(data)]
    weight = weigh(np.unique(data, return_inverse=True)[1], weights)
    if name in rows.table.ordered:
        span = rows.table.spans.get(name)
        return Leaf(name, _integers(np.array(values, dtype=np.int64), weight, span))
    return Leaf(name, _categorical(tuple(values), weight))


def _categorical(values: tuple[Value, ...], weight: Array) -> Categorical:
    return Categorical(values, tuple((weight / weight.sum()).tolist()))


def _unknown(column: Column) -> Distribution:
    if column.kind is Kind.CONTINUOUS:
        numbers = column.data[~column.missing]
        if not len(numbers):
            return Categorical.certain(0.0)
        return _density(numbers, np.ones(len(numbers)))
    values: tuple[Value, ...] = column.domain or (0,)
    return _categorical(values, np.ones(len(values)))


def _density(data: Array, weights: Array, span: tuple[float, float] | None = None) -> Distribution:
    """Return a density through the heights of a histogram of equal weights at its edges.

    It reaches as far as the span does, if there is one.
    """
    numbers, inverse = np.unique(data, return_inverse=True)
    weight = weigh(inverse, weights)
    if span is not None and span[0] < span[1] and len(numbers) == 1:
        places = tuple(sorted({span[0], min(max(float(numbers[0]), span[0]), span[1]), span[1]}))
        return PiecewiseLinear.scaled(places, (1.0,) * len(places))
    if len(numbers) == 1:
        # A probability of 1 would be compared with densities elsewhere; a narrow peak outdoes them.
        here, width = float(numbers[0]), NARROW * max(1.0, abs(float(numbers[0])))
        return PiecewiseLinear.scaled((here - width, here, here + width), (0.0, 1.0, 0.0))
    pieces = int(min(MOST_PIECES, max(1, np.sqrt(len(numbers)))))
    below = np.cumsum(weight) / weight.sum()
    inner = np.searchsorted(below, np.arange(1, pieces) / pieces)
    edges = numbers[np.unique(np.concatenate([[0], inner, [len(numbers) - 1]]))].copy()
    # mass between edges, a number on an edge counted half on each side of it
    middle = below - weight / weight.sum() / 2
    at = np.interp(edges, numbers, middle)
    at[0], at[-1] = 0.0, 1.0
    if span is not None:
        edges[0], edges[-1] = min(edges[0], span[0]), max(edges[-1], span[1])
    heights = np.diff(at) / np.diff(edges)
    knots = np.concatenate([[heights[0]], (heights[:-1] + heights[1:]) / 2, [heights[-1]]])
    return PiecewiseLinear.scaled(tuple(edges.tolist()), tuple(knots.tolist()))


def _integers(
    values: Ints, weight: Array, span: tuple[float, float] | None = None
) -> IntegerHistogram:
    """Return a histogram over integers, bins of about equal weight, as far as the span reaches."""
    below = np.cumsum(weight) / weight.sum()
    cuts = np.unique(np.searchsorted(below, np.arange(1, MOST_PIECES) / MOST_PIECES)) + 1
    cuts = cuts[cuts < len(values)]
    masses = np.add.reduceat(weight, np.concatenate([[0], cuts])) / weight.sum()
    edges = [int(values[0]), *(int(values[c]) for c in cuts), int(values[-1]) + 1]
    if span is not None:
        edges[0] = min(edges[0], math.ceil(span[0]))
        edges[-1] = max(edges[-1], math.ceil(span[1]))
    return IntegerHistogram(tuple(edges), tuple(masses.tolist()))
