"""Which branches of a template offer the values of its decisions."""

from functools import cached_property

import numpy as np

from rspmn.circuit import FactoredLatents, Latent, Max, Network, Product, Sum, Utility
from rspmn.circuit.node_arrays import KINDS
from rspmn.infer.branches import Context
from rspmn.types import Bools, Ints
from rspmn.values import Mark, Value


class Offers:
    """Which branch of which max node offers each value of a decision.

    Max nodes are numbered as they are in the template, and all of their branches.
    """

    def __init__(self, template: Network) -> None:
        self.template, self.arrays = template, template.arrays
        self.maxes = self.arrays.of_kind(Max)  # [maxes], nodes
        self.number = np.full(len(template), -1)  # [nodes], of max nodes
        self.number[self.maxes] = np.arange(len(self.maxes))
        self.edges, starts = self.arrays.edges_of(self.maxes)  # [branches]
        self.starts = np.append(starts, len(self.edges))  # [maxes + 1]
        self.context = Context(template)
        self._values: dict[str, list[Value]] = {}
        self._branches: dict[str, Ints] = {}

    @cached_property
    def first(self) -> Ints:  # [interfaces]
        """The number of the first max node of each interface node, -1 if it is not alone."""
        return np.asarray(self._first_of_nodes[list(self.template.roots)])

    @cached_property
    def next(self) -> Ints:  # [branches]
        """The number of the first max node below each branch, -1 if it has none or not alone."""
        return np.asarray(self._first_of_nodes[self.child])

    @cached_property
    def child(self) -> Ints:  # [branches]
        """The node of the template below each branch."""
        return np.asarray(self.arrays.children[self.edges])

    def values(self, decision: str) -> list[Value]:
        """Return all values of a decision that are offered anywhere."""
        if decision not in self._values:
            self._values[decision] = self.context.values(decision)
        return self._values[decision]

    def branches(self, decision: str) -> Ints:  # [maxes, values]
        """Return the branch of each max node for each value of a decision, -1 for none."""
        if decision not in self._branches:
            code = {value: k for k, value in enumerate(self.values(decision))}
            values = self.arrays.values
            codes = np.array([-1 if isinstance(v, Mark) else code.get(v, -1) for v in values])
            value = codes[self.arrays.choice[self.edges]]
            owner = self.number[self.arrays.parents[self.edges]]
            made = np.array([name == decision for name in self.arrays.decisions])
            here = np.flatnonzero(made[self.arrays.item[self.maxes]][owner] & (value >= 0))
            found = np.full((len(self.maxes), len(code)), -1)
            found[owner[here], value[here]] = here
            self._branches[decision] = found
        return self._branches[decision]

    def named(self, branch: int) -> tuple[str, Value]:
        """Return the decision of a branch and its value."""
        edge = self.edges[branch]
        decision = self.arrays.item[self.arrays.parents[edge]]
        return self.arrays.decisions[decision], self.arrays.values[self.arrays.choice[edge]]

    @cached_property
    def _first_of_nodes(self) -> Ints:  # [nodes]
        """The max node below each node if there is nothing but factors beside it, else -1.

        What is earned beside a decision would be missing in the worth of its branches.
        """
        arrays, found = self.arrays, self.number.copy()
        only = self._others == 1
        for level in arrays.levels:
            edges, _ = arrays.edges_of(level[only[level]])
            edges = edges[~self._is_factor[arrays.children[edges]]]
            found[arrays.parents[edges]] = found[arrays.children[edges]]
        return found

    @cached_property
    def whole(self) -> Bools:  # [maxes]
        """Which max nodes have nothing but factors beside all ways to them.

        What is earned after a decision is then all that is earned.
        """
        beside = self.arrays.children[self._others[self.arrays.parents] > 1]
        return np.asarray(~self.arrays.below(beside)[self.maxes])

    @cached_property
    def _others(self) -> Ints:  # [nodes]
        """How many children of each product are no factors; 0 of other nodes."""
        arrays = self.arrays
        counted = (arrays.kind == KINDS[Product])[arrays.parents]
        counted &= ~self._is_factor[arrays.children]
        return np.bincount(arrays.parents[counted], minlength=len(arrays))

    @cached_property
    def _is_factor(self) -> Bools:  # [nodes]
        """Whether nothing is below each node but random variables."""
        arrays = self.arrays
        others = [KINDS[kind] for kind in (Max, Utility, Latent, FactoredLatents)]
        found: Bools = ~np.isin(arrays.kind, others)
        return arrays.fold_up(found, dict.fromkeys((Sum, Product), np.logical_and))
