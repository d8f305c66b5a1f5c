"""All leaves of a variable as one table: log-probabilities of many values at once."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rspmn.circuit import Distribution, Leaf, Network
from rspmn.circuit.distributions import as_numbers
from rspmn.data.columns import Column
from rspmn.data.keys import column_keys
from rspmn.data.tables import Table
from rspmn.infer.compiled.relations import Relation, ranges
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


class ListedValues:
    """The values that leaves of one variable list, by code, and how probable they are.

    A value that no leaf lists has the code after the last.
    """

    def __init__(self, leaves: Sequence[Distribution]) -> None:
        unlisted = [leaf.unlisted() for leaf in leaves]
        atoms = [leaf.atoms() or {} for leaf in leaves]
        self.codes: dict[Value, int] = {}
        if any(unlisted):  # of values that are not listed; marks are none of these
            self.codes.update({mark: k for k, mark in enumerate(Mark)})
        for of_leaf in atoms:
            for value in of_leaf:
                self.codes.setdefault(value, len(self.codes))
        row = np.repeat(np.arange(len(atoms)), [len(of_leaf) for of_leaf in atoms])
        item = np.array([self.codes[v] for of_leaf in atoms for v in of_leaf], dtype=np.int64)
        keys = row * (len(self.codes) + 1) + item
        order = np.argsort(keys)
        self.listed = Relation.of_keys(keys[order], len(atoms), len(self.codes) + 1)
        masses = [mass for of_leaf in atoms for mass in of_leaf.values()]
        self.logs = log_masses(masses)[order]  # [entries of `listed`]
        self._logs_or_none = np.append(self.logs, 0.0)  # for what is not listed
        self.others = log_masses(unlisted)  # [leaves], of a value that it does not list
        self._is_mark = np.array([*(isinstance(v, Mark) for v in self.codes), False])  # [codes + 1]

    def coded(self, values: Sequence[Value]) -> Ints:  # [values]
        """Return the codes of values."""
        found = [self.codes.get(value, len(self.codes)) for value in values]
        return np.array(found, dtype=np.int64)

    def log_probs(self, leaf: Ints, code: int | Ints) -> Array:  # [n]
        """Return the log-probability of a value under each of some leaves that list values."""
        entry = self.listed.find(leaf, code)
        unlisted = np.where(self._is_mark[code], -np.inf, self.others[leaf])
        return np.where(entry >= 0, self._logs_or_none[entry], unlisted)

    def of_each_leaf(self, code: Ints) -> Array:  # [leaves, n]
        """Return the log-probability of values under all leaves."""
        found = np.repeat(self.others[:, None], len(code), axis=1)
        found[:, self._is_mark[code]] = -np.inf
        at, order = self.leaves_of_codes
        entry, first = ranges(at.starts[code], at.starts[code + 1])
        column = np.repeat(np.arange(len(code)), np.diff(first))
        found[at.items[entry], column] = self.logs[order[entry]]
        return found

    @cached_property
    def leaves_of_codes(self) -> tuple[Relation, Ints]:
        """The leaves that list each value, and the entries of `listed` that they are."""
        return self.listed.transposed()


@dataclass(frozen=True, eq=False)
class LeafTable:
    """The leaves of one variable, each with the values that it lists."""

    nodes: Ints  # [leaves], in the network
    values: ListedValues
    numeric: dict[int, Distribution]  # leaves that list none

    def log_probs_of_rows(self, column: Distinct, part: slice) -> Array:  # [leaves, part]
        """Return the log-probability of some rows under each leaf; 0 where missing."""
        seen, place = np.unique(column.codes[part], return_inverse=True)
        known = self.log_probs([column.values[code] for code in seen.tolist() if code >= 0])
        if seen[0] < 0:
            known = np.hstack([np.zeros((len(known), 1)), known])
        return known[:, place]

    def log_probs(self, values: Sequence[Value]) -> Array:  # [leaves, values]
        """Return the log-probability of each value under each leaf."""
        found = self.values.of_each_leaf(self.values.coded(values))
        if self.numeric:
            numbers = as_numbers(values)
            for row, distribution in self.numeric.items():
                found[row] = distribution.log_probs(numbers)
        return found

    def log_probs_of(self, leaf: Ints, values: Sequence[Value], codes: Ints) -> Array:  # [n]
        """Return the log-probability of values[codes[k]] under leaf[k]; 0 for code -1."""
        coded = np.append(self.values.coded(values), len(self.values.codes))
        found = self.values.log_probs(leaf, coded[codes])
        if self.numeric:
            numbers = np.append(as_numbers(values), 0.0)  # code -1 finds the last
            for distribution, here in members_of(self.numeric, leaf):
                found[here] = distribution.log_probs(numbers[codes[here]])
        return np.where(codes < 0, 0.0, found)


def members_of(some: Mapping[int, Distribution], leaf: Ints) -> Iterator[tuple[Distribution, Ints]]:
    """Return, for those of some leaves that occur, where they do."""
    order = np.argsort(leaf, kind="stable")
    distinct, counts = np.unique(leaf, return_counts=True)
    ends = np.cumsum(counts).tolist()
    for row, start, end in zip(distinct.tolist(), [0, *ends], ends, strict=False):
        if row in some:
            yield some[row], order[start:end]


def leaf_tables(network: Network) -> dict[str, LeafTable]:
    """Return the leaves of a network by variable."""
    leaves: dict[str, list[int]] = {}
    arrays = network.arrays
    for index in arrays.of_kind(Leaf).tolist():
        leaf = arrays.objects[arrays.item[index]]
        assert isinstance(leaf, Leaf)
        leaves.setdefault(leaf.variable, []).append(index)
    return {name: _table(network, indices) for name, indices in leaves.items()}


def _table(network: Network, indices: list[int]) -> LeafTable:
    distributions = [network.nodes[index].distribution for index in indices]  # type: ignore[union-attr]
    numeric = {row: leaf for row, leaf in enumerate(distributions) if leaf.atoms() is None}
    return LeafTable(np.array(indices), ListedValues(distributions), numeric)


def log_masses(masses: Sequence[float]) -> Array:
    """Return logarithms, -∞ of 0."""
    return np.array([math.log(mass) if mass > 0 else -math.inf for mass in masses], dtype=float)
