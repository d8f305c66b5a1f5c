"""All leaves of a variable as one table: log-probabilities of many values at once."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.circuit import Distribution, Leaf, Network
from rspmn.circuit.distributions import as_numbers
from rspmn.data.columns import Column
from rspmn.data.keys import column_keys
from rspmn.data.tables import Table
from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints
from rspmn.values import Mark, Value


@dataclass(frozen=True, eq=False)
class Distinct:
    """A column as its distinct values and the code of each row."""

    values: list[Value]
    codes: Ints  # [n], -1 where missing

    @classmethod
    def of(cls, column: Column) -> "Distinct":
        """Return the distinct values of a column, coded in their order."""
        keys = column_keys(column).codes
        found, first, codes = np.unique(keys, return_index=True, return_inverse=True)
        values = [value for value in column.take(first).decode() if value is not None]
        return cls(values, codes - int(len(found) > len(values)))

    def each(self, of_values: Array | Bools) -> Array:  # [n]
        """Return the number of each row's value, 0 where it is missing."""
        return np.append(of_values, 0.0)[self.codes]

    def recoded(self, codes: Mapping[Value, int], part: slice) -> Ints:
        """Return other codes of some rows: -1 where missing, -2 for values without a code."""
        table = np.array([*(codes.get(value, -2) for value in self.values), -1])
        return np.asarray(table[self.codes[part]])


def distinct_columns(
    table: Table, names: Iterable[str], kinds: Mapping[str, Kind] | None = None
) -> dict[str, Distinct]:
    """Return some columns of a table as their distinct values."""
    found = {}
    for name in names:
        found[name] = Distinct.of(table.coded(name, (kinds or {}).get(name)))
    return found


@dataclass(frozen=True, eq=False)
class LeafTable:
    """The leaves of one variable."""

    nodes: Ints  # [leaves], in the network
    place: dict[Value, int]  # the column of each value of a categorical leaf
    table: Array  # [leaves, values + 1]; the last column is for all other values
    numeric: list[tuple[int, Distribution]]  # numeric leaves and their rows

    def log_probs_of_rows(self, column: Distinct, part: slice) -> Array:  # [leaves, part]
        """Return the log-probability of some rows under each leaf; 0 where missing."""
        seen, place = np.unique(column.codes[part], return_inverse=True)
        known = self.log_probs([column.values[code] for code in seen.tolist() if code >= 0])
        if seen[0] < 0:
            known = np.hstack([np.zeros((len(known), 1)), known])
        return known[:, place]

    def log_probs(self, values: Sequence[Value]) -> Array:  # [leaves, values]
        """Return the log-probability of each value under each leaf."""
        other = self.table.shape[1] - 1
        places = [self.place.get(value, other) for value in values]
        found = np.ascontiguousarray(self.table[:, places])
        if self.numeric:
            numbers = as_numbers(values)
            for row, distribution in self.numeric:
                found[row] = distribution.log_probs(numbers)
        return found

    def log_probs_of(self, leaf: Ints, values: Sequence[Value], codes: Ints) -> Array:  # [n]
        """Return the log-probability of values[codes[k]] under leaf[k]; 0 for code -1."""
        other = self.table.shape[1] - 1
        places = np.array([*(self.place.get(value, other) for value in values), other])
        found = self.table[leaf, places[codes]]
        if self.numeric:
            numbers = np.append(as_numbers(values), 0.0)  # code -1 finds the last
            order = np.argsort(leaf, kind="stable")
            starts = np.searchsorted(leaf[order], [row for row, _ in self.numeric], side="left")
            stops = np.searchsorted(leaf[order], [row for row, _ in self.numeric], side="right")
            for (_, distribution), start, stop in zip(self.numeric, starts, stops, strict=True):
                here = order[start:stop]
                if len(here):
                    found[here] = distribution.log_probs(numbers[codes[here]])
        return np.where(codes < 0, 0.0, found)


def leaf_tables(network: Network) -> dict[str, LeafTable]:
    """Return the leaves of a network by variable."""
    leaves: dict[str, list[int]] = {}
    for index, node in enumerate(network.nodes):
        if isinstance(node, Leaf):
            leaves.setdefault(node.variable, []).append(index)
    return {name: _table(network, indices) for name, indices in leaves.items()}


def _table(network: Network, indices: list[int]) -> LeafTable:
    place: dict[Value, int] = {mark: k for k, mark in enumerate(Mark)}
    others = np.full(len(indices), -np.inf)
    rows, columns, logs = [], [], []
    numeric: list[tuple[int, Distribution]] = []
    for row, index in enumerate(indices):
        distribution = network.nodes[index].distribution  # type: ignore[union-attr]
        atoms = distribution.atoms()
        if atoms is None:
            numeric.append((row, distribution))
            continue
        others[row] = math.log(distribution.unlisted()) if distribution.unlisted() else -math.inf
        for value, probability in atoms.items():
            rows.append(row)
            columns.append(place.setdefault(value, len(place)))
            logs.append(math.log(probability) if probability > 0 else -math.inf)
    table = np.full((len(indices), len(place) + 1), -np.inf)
    table[:, len(Mark) :] = others[:, None]
    table[rows, columns] = logs
    return LeafTable(np.array(indices), place, table, numeric)
