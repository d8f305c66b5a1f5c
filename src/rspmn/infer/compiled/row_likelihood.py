"""Likelihood of many rows of a single-shot model at once, smoothed so that none is impossible."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from rspmn.circuit import Categorical, Leaf, Max, Network, Node, Product, Sum, fold_up
from rspmn.data.columns import Column, encode
from rspmn.data.tables import as_table
from rspmn.spmn import SPMN
from rspmn.types import Array, Ints
from rspmn.values import Value


def log_likelihood_of_rows(model: SPMN, source: object) -> Array:
    """Return the log-likelihood of each row of a table, given its decisions.

    Smoothing, so that no row is impossible for a learned model: its background, in which variables
    have nothing to do with each other and values that were never seen have a little probability,
    is mixed in with the weight of one row, P = (n · P_model + P_background)/(n + 1). Of a value
    that was never seen in any row the model itself knows as little as of a missing one; such a
    value counts with its probability in the background.
    """
    names = [n for n in model.schema.variables if n != model.schema.utility]
    table = as_table(source)
    columns = {}
    for name in names:
        cells = table.cells(name)
        column = encode(cells.present, cells.missing, model.schema.kinds.get(name), name)
        columns[name] = Distinct.of(column)
    if model.background is None:
        return column_log_likelihoods(model.network, columns, table.rows)
    apart: dict[str, Array] = {}  # of each variable, in the background
    new = np.zeros(table.rows)  # of values that were never seen
    for leaf in model.background.nodes:
        if isinstance(leaf, Leaf):
            seen = columns[leaf.variable]
            smoothed = seen.each(lambda value, leaf=leaf: _smoothed(leaf, value, model.rows))  # type: ignore[misc]
            is_new = seen.each(lambda value, leaf=leaf: float(_is_new(leaf, value))) > 0  # type: ignore[misc]
            apart[leaf.variable] = smoothed
            new += np.where(is_new, smoothed, 0.0)
            columns[leaf.variable] = replace(seen, codes=np.where(is_new, -1, seen.codes))
    own = column_log_likelihoods(model.network, columns, table.rows) + new
    share = 1 / (model.rows + 1)
    background = np.sum(list(apart.values()), axis=0)
    return np.asarray(np.logaddexp(own + np.log1p(-share), background + math.log(share)))


@dataclass(frozen=True, eq=False)
class Distinct:
    """A column as its distinct values."""

    values: list[Value]
    codes: Ints  # [n], -1 where missing

    @classmethod
    def of(cls, column: Column) -> "Distinct":
        """Return the distinct values of a column, numbered."""
        keys, _ = column.keys()
        found, first, codes = np.unique(keys, return_index=True, return_inverse=True)
        values = [value for value in column.take(first).decode() if value is not None]
        return cls(values, codes - int(len(found) > len(values)))

    def each(self, number: Callable[[Value], float]) -> Array:  # [n]
        """Return a number for the value in each row, 0 where it is missing."""
        return np.array([*map(number, self.values), 0.0])[self.codes]


def column_log_likelihoods(
    network: Network, columns: Mapping[str, Distinct], rows: int
) -> Array:  # [rows]
    """Do as `log_likelihood` does for many rows at once, each node once."""
    network.root  # noqa: B018  (refuses networks with several)
    return np.asarray(root_log_likelihoods(network, columns, rows)[0])


def root_log_likelihoods(
    network: Network, columns: Mapping[str, Distinct], rows: int
) -> Array:  # [roots, rows]
    """Return the log-likelihood of many rows under each root; what lies ahead is likelihood 1."""

    def combine(node: Node, below: list[Array]) -> Array:
        match node:
            case Leaf():
                return columns[node.variable].each(node.distribution.log_prob)
            case Product():
                return np.asarray(np.sum(below, axis=0)) if below else np.zeros(rows)
            case Sum():
                logs = np.log(np.maximum(node.weights, 1e-320))[:, None] + np.array(below)
                return np.asarray(np.logaddexp.reduce(logs[np.array(node.weights) > 0], axis=0))
            case Max():
                made = columns[node.decision]
                chosen = np.asarray(np.max(below, axis=0))
                offered = dict(zip(node.values, below, strict=True))
                for code, value in enumerate(made.values):
                    here = made.codes == code
                    chosen[here] = offered[value][here] if value in offered else -math.inf
                return chosen
            case _:
                return np.zeros(rows)

    found = fold_up(network, combine)
    return np.array([found[root] for root in network.roots])


def _is_new(leaf: Leaf, value: Value) -> bool:
    """Say whether a value was never seen in any row."""
    return leaf.distribution.log_prob(value) == -math.inf


def _smoothed(leaf: Leaf, value: Value, rows: float) -> float:
    """Return the log-probability of a value, thinking values possible that were never seen.

    Of a category each value, and a new one, counts as seen once more than it was. Of a number, a
    Cauchy density of the same centre and spread has the weight of one row.
    """
    distribution = leaf.distribution
    seen = math.exp(distribution.log_prob(value)) * rows
    if isinstance(distribution, Categorical):
        return math.log((seen + 1) / (rows + len(distribution.values) + 1))
    spread = math.sqrt(distribution.variance())
    away = (float(value) - distribution.mean()) / spread  # type: ignore[arg-type]
    return math.log((seen + 1 / (math.pi * spread * (1 + away * away))) / (rows + 1))
