"""Behaviour: the policy that made a log, as a tree of each decision.

A tree divides contexts, the state and earlier decisions, as far as decisions are likelier for it.
Contexts in one leaf have the same shares of decisions. `rspmn.learn.behaviour` learns the trees.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rspmn.context_trees import BRANCHES, LEAF, UP_TO, Contexts, Tied, Trees
from rspmn.data.columns import Column
from rspmn.data.distinct import distinct_rows
from rspmn.errors import CircuitError
from rspmn.schema import Kind, Schema
from rspmn.types import Array, Ints
from rspmn.values import MOST_STEPS, Mark, Value, is_missing


@dataclass(frozen=True)
class Given:
    """A variable that a tree looks at; its values have codes from 1, and 0 is missing."""

    name: str
    values: tuple[Value, ...] = ()  # of names and booleans, in the order of their codes
    borders: tuple[float, ...] = ()  # of numbers: one more is below than those with the next code

    @property
    def size(self) -> int:
        """The number of codes, with one for values that are new."""
        return len(self.values or self.borders) + 2

    def codes(self, column: Column) -> Ints:  # [n]
        """Return the codes of a column."""
        if self.values:
            place = {value: code for code, value in enumerate(self.values, start=1)}
            codes = [place.get(value, self.size - 1) for value in column.domain]
            found: Ints = np.array([*codes, 0], dtype=np.int64)[column.data]  # -1 finds the last
            return found
        numbers = column.numbers()
        return np.where(np.isnan(numbers), 0, np.searchsorted(self.borders, numbers) + 1)


@dataclass(frozen=True)
class DecisionTree:
    """The shares of one decision's values in every context.

    Nodes are numbered from 0, the root, each after its parent. A node is divided by a variable, -1
    if it is a leaf: by all of its codes (`value` -1), by whether it is the code `value`, or by
    whether it is at most the code -2 - `value`.
    """

    decision: str
    values: tuple[Value, ...]
    given: tuple[Given, ...]
    variable: tuple[int, ...]  # [nodes]
    value: tuple[int, ...]  # [nodes]
    parent: tuple[int, ...]  # [nodes]
    branch: tuple[int, ...]  # [nodes], the code, or whether its parent's condition holds
    node: tuple[int, ...]  # [cells], sorted
    made: tuple[int, ...]  # [cells], which of the decision's values
    steps: tuple[float, ...]  # [cells], how often it was made there

    def __post_init__(self) -> None:
        if not self._is_sound():
            raise CircuitError(
                f"behaviour: the tree of {self.decision!r}: expected nodes after their parents, "
                "each with steps, and conditions on the variables given"
            )

    def _is_sound(self) -> bool:
        nodes, cells = len(self.variable), len(self.node)
        of_nodes, of_cells = (self.value, self.parent, self.branch), (self.made, self.steps)
        if not nodes or any(len(each) != nodes for each in of_nodes):
            return False
        if any(len(each) != cells for each in of_cells) or {*self.node} != {*range(nodes)}:
            return False
        variable, value, parent, branch = map(np.array, (self.variable, *of_nodes))
        if variable.min() < LEAF or variable.max() >= len(self.given):
            return False
        size = np.array([*(each.size for each in self.given), 1])[variable]  # -1 finds the last
        return bool(
            (parent[1:] < np.arange(1, nodes)).all() and parent[0] == 0 <= parent.min()
            and (value < size).all() and (value >= UP_TO - size).all()
            and branch.min() >= 0 and branch.max() < BRANCHES
            and all(0 <= made < len(self.values) for made in self.made)
            and all(0 < steps <= MOST_STEPS for steps in self.steps)
        )  # fmt: skip

    @cached_property
    def _tied(self) -> Tied:
        cells = np.array(self.node), np.array(self.made), np.array(self.steps)
        nodes = (self.variable, self.value, self.parent, self.branch)
        variable, value, parent, branch = (np.array(each) for each in nodes)
        trees = Trees(variable, value, parent, branch, cells, np.arange(len(self.node)))
        return Tied.of(trees, len(self.values))

    @property
    def counts(self) -> Array:  # [nodes, values]
        """How often each value was chosen in the contexts of each node."""
        return np.asarray(self._tied.counts.todense())

    def find(self, columns: Mapping[str, Column], rows: int) -> Ints:  # [rows]
        """Return the lowest node that each context reaches: a leaf, unless a value is new."""
        codes = np.zeros((rows, max(1, len(self.given))), dtype=np.int64)
        for k, given in enumerate(self.given):
            codes[:, k] = given.codes(columns[given.name])
        distinct, which = distinct_rows(codes)
        sizes = np.array([each.size for each in self.given] or [1])
        names = tuple(each.name for each in self.given) or ("",)
        return self._tied.trees.find(Contexts(names, sizes, distinct), 0)[which]


@dataclass(frozen=True)
class Behaviour:
    """The policy that made a log: a tree of each decision, given the state and earlier ones."""

    trees: tuple[DecisionTree, ...] = ()

    def shares(self, decision: str, known: Mapping[str, object]) -> dict[Value, float]:
        """Return how often each value of a decision was chosen in contexts like one.

        Nothing if something is missing that the tree of the decision looks at.
        """
        tree = next((tree for tree in self.trees if tree.decision == decision), None)
        columns = {n: _column(value) for n, value in known.items() if not is_unknown(value)}
        if tree is None or not {given.name for given in tree.given} <= columns.keys():
            return {}
        counts = tree.counts[tree.find(columns, 1)[0]]
        return dict(zip(tree.values, (counts / counts.sum()).tolist(), strict=True))

    def check_fit(self, schema: Schema) -> None:
        """Refuse trees of what is no decision of a schema, or is not known before it."""
        for tree in self.trees:
            known = schema.known_before(tree.decision) if tree.decision in schema.decisions else ()
            for name in (given.name for given in tree.given if given.name not in known):
                raise CircuitError(
                    f"behaviour: {tree.decision!r} depends on {name!r}, which is not known before"
                )


def is_unknown(value: object) -> bool:
    """Return whether a value is missing, or a mark that stands for none."""
    return isinstance(value, Mark) or is_missing(value)


#: No trees.
UNKNOWN_BEHAVIOUR = Behaviour()


def _column(value: object) -> Column:
    """Return a column of one value."""
    if isinstance(value, str | bool):
        return Column(Kind.CATEGORICAL, np.zeros(1, dtype=np.int8), (value,))
    return Column(Kind.CONTINUOUS, np.array([value], dtype=np.float64))
