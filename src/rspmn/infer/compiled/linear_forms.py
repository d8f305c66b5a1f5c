"""Branches of max nodes as linear forms in what is worth something below them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rspmn.infer.branches import Branches
from rspmn.types import Array, Bools, Ints


@dataclass(frozen=True, eq=False)
class Forms:
    """Linear forms: rows · unknowns + earned."""

    matrix: Any  # [rows, unknowns]
    rest: Array  # [rows], 1 - the weight of all unknowns: 0, but where nothing is below
    earned: Array  # [rows]

    def __call__(self, numbers: Array, shares: Array | None) -> tuple[Array, Array | None]:
        """Return the average of what is known, without what is earned, and the share of it.

        `shares` says how much is known of each unknown; None if that is all. A row of which nothing
        is known is 0.
        """
        if shares is None:
            return np.asarray(self.matrix @ numbers), None
        found = np.asarray(self.matrix @ (shares * np.where(shares > 0, numbers, 0.0)))
        known = np.ones(len(found))
        partly = self.matrix @ (shares < 1) > 0
        known[partly] = np.maximum(self.matrix @ shares + self.rest, 0.0)[partly]
        np.divide(found, known, out=found, where=partly & (known > 0))
        return found, known

    @cached_property
    def copied(self) -> Ints | None:  # [rows]
        """The one unknown that each row is, with a weight of 1; None if some row is another."""
        from scipy.sparse import csr_array

        matrix = csr_array(self.matrix)
        one = (np.diff(matrix.indptr) == 1).all() and (matrix.data == 1).all()
        return matrix.indices if one else None

    def sums(self, numbers: Array) -> Array:  # [rows]
        """Return shares that are added up: those of the unknowns, and of what has none below."""
        return np.asarray(np.clip(self.matrix @ numbers + self.rest, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Level:
    """Max nodes of which none is below another: branches are linear, then the best is taken."""

    nodes: Ints  # [max nodes], in the template
    slots: slice  # their places among all unknowns
    forms: Forms  # a row for each branch
    starts: Ints  # [max nodes], the first branch of each
    untried: Bools  # [branches], which are UNKNOWN: no decision was ever tried there
    branches: Branches

    def worth(self, values: Array, shares: Array | None) -> tuple[Array, Array | None]:
        """Return what every branch is worth, and how much of it is known; [branches] each."""
        worth, known = self.forms(values, shares)
        worth += self.forms.earned
        if known is not None:
            known[self.untried] = 0.0
            worth[known == 0] = -np.inf
        return worth, known

    def shares(self, known: Array, best: Bools) -> Array:  # [max nodes]
        """Return how much is known of the best branch of each node, of several the most."""
        return np.asarray(np.maximum.reduceat(np.where(best, known, 0.0), self.starts))

    def at_nodes(self, numbers: Array, chosen: Ints, taken: Array | None) -> Array:  # [max nodes]
        """Return the numbers of the branches that are taken, averaged where there are several."""
        if taken is None:
            return np.asarray(numbers[chosen])
        used = np.where(taken > 0, taken * np.where(taken > 0, numbers, 0.0), 0.0)
        return np.asarray(np.add.reduceat(used, self.starts))

    def rows(self, chosen: Ints, taken: Array | None) -> Any:  # sparse [max nodes, branches]
        """Return the branches that are taken as a matrix, from branches to max nodes."""
        from scipy.sparse import csr_array

        shape = len(self.nodes), len(self.untried)
        if taken is None:
            ones = np.ones(len(chosen)), (np.arange(len(chosen)), chosen)
            return csr_array(ones, shape=shape)
        return csr_array((taken, (self.branches.node, np.arange(len(taken)))), shape=shape)
