"""Which branches of a template offer the values of its decisions."""

from functools import cached_property

import numpy as np

from rspmn.circuit import (
    FactoredLatents,
    Latent,
    Max,
    Network,
    Node,
    Product,
    Utility,
    fold_up,
    walk_down,
)
from rspmn.infer.branches import Context, Edge
from rspmn.types import Ints
from rspmn.values import Mark, Value


class Offers:
    """Which branch of which max node offers each value of a decision.

    Max nodes are numbered as they are in the template, and all of their branches.
    """

    def __init__(self, template: Network) -> None:
        self.template = template
        self.maxes = [i for i, node in enumerate(template.nodes) if isinstance(node, Max)]
        self.number = {index: k for k, index in enumerate(self.maxes)}
        sizes = [len(template.nodes[index].children) for index in self.maxes]
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)  # [maxes + 1]
        self.context = Context(template)
        self._values: dict[str, list[Value]] = {}
        self._branches: dict[str, Ints] = {}

    @cached_property
    def first(self) -> Ints:  # [interfaces]
        """The number of the first max node of each interface node, -1 if it is not alone."""
        return np.array([self._first(root) for root in self.template.roots], dtype=np.int64)

    @cached_property
    def next(self) -> Ints:  # [branches]
        """The number of the first max node below each branch, -1 if it has none or not alone."""
        children = [child for i in self.maxes for child in self.template.nodes[i].children]
        return np.array([self._first(child) for child in children], dtype=np.int64)

    def _first(self, index: int) -> int:
        found = self.first_decision(index)
        return -1 if found is None else self.number[found]

    def values(self, decision: str) -> list[Value]:
        """Return all values of a decision that are offered anywhere."""
        if decision not in self._values:
            self._values[decision] = self.context.values(decision)
        return self._values[decision]

    def branches(self, decision: str) -> Ints:  # [maxes, values]
        """Return the branch of each max node for each value of a decision, -1 for none."""
        if decision not in self._branches:
            code = {value: k for k, value in enumerate(self.values(decision))}
            found = np.full((len(self.maxes), len(code)), -1)
            for k, index in enumerate(self.maxes):
                node = self._max(index)
                if node.decision == decision:
                    for place, value in enumerate(node.values):
                        if not isinstance(value, Mark):
                            found[k, code[value]] = self.starts[k] + place
            self._branches[decision] = found
        return self._branches[decision]

    def edge(self, branch: int) -> Edge:
        """Return a branch as a max node of the template and which of its children."""
        k = int(np.searchsorted(self.starts, branch, side="right")) - 1
        return self.maxes[k], branch - int(self.starts[k])

    def first_decision(self, index: int) -> int | None:
        """Return the max node below a node if there is nothing but factors beside it, else None.

        What is earned beside a decision would be missing in the worth of its branches.
        """
        node = self.template.nodes[index]
        if isinstance(node, Max):
            return index
        if not isinstance(node, Product):
            return None
        others = [child for child in node.children if not self._is_factor[child]]
        return self.first_decision(others[0]) if len(others) == 1 else None

    @cached_property
    def whole(self) -> frozenset[int]:
        """The max nodes, by number, with nothing but factors beside all ways to them.

        What is earned after a decision is then all that is earned.
        """

        def send(_: int, node: Node, arrived: list[bool]) -> list[tuple[int, bool]]:
            whole = all(arrived)
            if isinstance(node, Product):
                others = [child for child in node.children if not self._is_factor[child]]
                return [(child, whole and len(others) == 1) for child in others]
            return [(child, whole) for child in node.children]

        found = walk_down(self.template, dict.fromkeys(self.template.roots, True), send)
        return frozenset(self.number[i] for i in self.maxes if all(found.get(i, [False])))

    @cached_property
    def _is_factor(self) -> list[bool]:  # [nodes]
        """Whether nothing is below each node but random variables."""

        def combine(node: Node, below: list[bool]) -> bool:
            return not isinstance(node, Max | Utility | Latent | FactoredLatents) and all(below)

        return fold_up(self.template, combine)

    def _max(self, index: int) -> Max:
        node = self.template.nodes[index]
        assert isinstance(node, Max)
        return node
