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


@dataclass(frozen=True, eq=False)
class LeafTable:
    """The leaves of one variable, each with the values that it lists."""

    nodes: Ints  # [leaves], in the network
    place: dict[Value, int]  # the number of each value that a leaf lists, marks first
    listed: Relation  # the numbers of the values of each leaf
    logs: Array  # [entries of `listed`]
    others: Array  # [leaves], the log-probability of a value that it does not list
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
        places = self._places(values)
        found = np.repeat(self.others[:, None], len(values), axis=1)
        found[:, (places >= 0) & (places < len(Mark))] = -np.inf
        at, order = self._leaves_of_values
        which = np.flatnonzero(places >= 0)
        entry, first = ranges(at.starts[places[which]], at.starts[places[which] + 1])
        found[at.items[entry], np.repeat(which, np.diff(first))] = self.logs[order[entry]]
        if self.numeric:
            numbers = as_numbers(values)
            for row, distribution in self.numeric.items():
                found[row] = distribution.log_probs(numbers)
        return found

    def log_probs_of(self, leaf: Ints, values: Sequence[Value], codes: Ints) -> Array:  # [n]
        """Return the log-probability of values[codes[k]] under leaf[k]; 0 for code -1."""
        place = np.append(self._places(values), -1)[codes]
        entry = self.listed.find(leaf, place)
        unlisted = np.where((place >= 0) & (place < len(Mark)), -np.inf, self.others[leaf])
        found = np.where(entry >= 0, np.append(self.logs, 0.0)[entry], unlisted)
        if self.numeric:
            numbers = np.append(as_numbers(values), 0.0)  # code -1 finds the last
            for distribution, here in members_of(self.numeric, leaf):
                found[here] = distribution.log_probs(numbers[codes[here]])
        return np.where(codes < 0, 0.0, found)

    def _places(self, values: Sequence[Value]) -> Ints:  # [values]
        """Return the number of each value, -1 for those that no leaf lists."""
        return np.array([self.place.get(value, -1) for value in values], dtype=np.int64)

    @cached_property
    def _leaves_of_values(self) -> tuple[Relation, Ints]:
        return self.listed.transposed()


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
    place: dict[Value, int] = {mark: k for k, mark in enumerate(Mark)}
    listed, logs = listed_values(distributions, place)
    numeric = {row: leaf for row, leaf in enumerate(distributions) if leaf.atoms() is None}
    others = log_masses([leaf.unlisted() for leaf in distributions])
    return LeafTable(np.array(indices), place, listed, logs, others, numeric)


def listed_values(
    leaves: Sequence[Distribution], place: dict[Value, int]
) -> tuple[Relation, Array]:
    """Return the numbers of the values that each leaf lists, and their log-probabilities.

    Values that have no number yet are added to `place`. No leaf lists the number after the last.
    """
    atoms = [leaf.atoms() or {} for leaf in leaves]
    for of_leaf in atoms:
        for value in of_leaf:
            place.setdefault(value, len(place))
    row = np.repeat(np.arange(len(atoms)), [len(of_leaf) for of_leaf in atoms])
    item = np.array([place[value] for of_leaf in atoms for value in of_leaf], dtype=np.int64)
    mass = [mass for of_leaf in atoms for mass in of_leaf.values()]
    size = len(place) + 1
    keys = row * size + item
    order = np.argsort(keys)
    return Relation.of_keys(keys[order], len(atoms), size), log_masses(mass)[order]


def log_masses(masses: Sequence[float]) -> Array:
    """Return logarithms, -∞ of 0."""
    return np.array([math.log(mass) if mass > 0 else -math.inf for mass in masses], dtype=float)
