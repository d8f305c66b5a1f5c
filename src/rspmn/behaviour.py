"""Behaviour: the policy that made a log, as a tree of each decision.

A tree divides contexts, the state and earlier decisions, as far as decisions are likelier for it.
Contexts in one leaf have the same shares of decisions. `rspmn.learn.behaviour` learns the trees.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

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

    def check_fit(self, kind: Kind | None) -> None:
        """Refuse codes that are not those of a variable's kind, if that is known."""
        is_number = bool(self.borders) if kind is None else kind in (Kind.INTEGER, Kind.CONTINUOUS)
        distinct = len({*self.values}) == len(self.values)
        rises = all(one < other for one, other in pairwise(self.borders))
        if not distinct or not rises or bool(self.values if is_number else self.borders):
            raise CircuitError(
                f"behaviour: {self.name!r}: expected "
                + ("borders that rise" if is_number else "distinct values, and no borders")
            )

    @property
    def size(self) -> int:
        """The number of codes, with one for values that are new."""
        return len(self.values or self.borders) + 2

    def column(self, value: object) -> Column:
        """Return one value as a column."""
        if self.values:
            return Column(Kind.CATEGORICAL, np.zeros(1, dtype=np.int8), (value,))  # type: ignore[arg-type]
        return Column(Kind.CONTINUOUS, np.array([value], dtype=np.float64))

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
            and len({*self.values}) == len(self.values)
            and all(0 < steps <= MOST_STEPS for steps in self.steps)
        )  # fmt: skip

    @cached_property
    def _tied(self) -> Tied:
        cells = np.array(self.node), np.array(self.made), np.array(self.steps)
        nodes = (self.variable, self.value, self.parent, self.branch)
        variable, value, parent, branch = (np.array(each) for each in nodes)
        trees = Trees(variable, value, parent, branch, cells, np.arange(len(self.node)))
        return Tied.of(trees, len(self.values))

    def counts(self, nodes: Ints) -> Array:  # [n, values]
        """Return how often each value was chosen in the contexts of some nodes."""
        return np.asarray(self._tied.counts[nodes].todense())

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
        if tree is None or any(is_unknown(known.get(given.name)) for given in tree.given):
            return {}
        columns = {given.name: given.column(known[given.name]) for given in tree.given}
        counts = tree.counts(tree.find(columns, 1))[0]
        return dict(zip(tree.values, (counts / counts.sum()).tolist(), strict=True))

    def check_fit(self, schema: Schema) -> None:
        """Refuse trees of what is no decision of a schema, or is not known before it."""
        if len({tree.decision for tree in self.trees} & {*schema.decisions}) < len(self.trees):
            raise CircuitError("behaviour: expected one tree for each decision of the schema")
        for tree in self.trees:
            known = schema.known_before(tree.decision)
            for given in tree.given:
                if given.name not in known:
                    raise CircuitError(
                        f"behaviour: {tree.decision!r} depends on {given.name!r}, which is not "
                        "known before"
                    )
                given.check_fit(schema.kinds.get(given.name))


def is_unknown(value: object) -> bool:
    """Return whether a value is missing, or a mark that stands for none."""
    return isinstance(value, Mark) or is_missing(value)


#: No trees.
UNKNOWN_BEHAVIOUR = Behaviour()
