"""Draws of interface nodes from products of factors that are not multiplied out.

The class of each component is drawn on its own, from its row of the table. That is a draw from the
product if interface nodes have such a cell, and is drawn again if not: rejection sampling, which
takes as many draws on average as 1 / (the mass of the product on cells). Where that is small,
products are multiplied out.
"""

from functools import cached_property

import numpy as np

from rspmn.circuit import LatentFactors
from rspmn.data.distinct import find_sorted
from rspmn.infer.compiled.groups import Groups
from rspmn.types import Array, Ints

#: A draw is repeated so often, as long as at least so many of those that were left were accepted.
MOST_ROUNDS, ACCEPTED = 64, 0.1


class ProductSampler:
    """Draws interface nodes from products of factors.

    `factors`: the tables, and the cells of interface nodes. `rows`: of each product, the row of
    each component's table [products, components].
    """

    def __init__(self, factors: LatentFactors, rows: Ints) -> None:
        self.factors, self.rows = factors, rows
        begun = np.zeros(len(factors.to), dtype=np.int64)
        #: Of each component, the keys of longer beginnings: beginning · classes + class, sorted.
        self._keys: list[Ints] = []
        for table, classes in zip(factors.tables, factors.classes.T, strict=True):
            keys, begun = np.unique(begun * table.shape[1] + classes, return_inverse=True)
            self._keys.append(keys)
            begun = begun.ravel()
        self._order = np.argsort(begun, kind="stable")  # cells, by their whole beginning
        self._starts = np.searchsorted(begun[self._order], np.arange(int(begun.max()) + 2))

    @cached_property
    def _classes(self) -> list[Groups]:
        """The rows of each component's table; the last member of a row is no class."""
        return [_with_rest(table) for table in self.factors.tables]

    @cached_property
    def _cells(self) -> tuple[Groups, Array]:
        """The cells that have all classes in common, and how probable it is to accept them."""
        share = self.factors.share[self._order]
        total = np.add.reduceat(share, self._starts[:-1])
        return Groups(share, self._starts), total / max(float(total.max()), 1e-300)

    def draw(self, product: Ints, rng: np.random.Generator) -> Ints:  # as `product`
        """Draw an interface node from each of some products."""
        found, left = np.full(len(product), -1), np.arange(len(product))
        for _ in range(MOST_ROUNDS):
            before = len(left)
            found[left] = self._try(product[left], rng)
            left = left[found[left] < 0]
            if before - len(left) < ACCEPTED * before or not len(left):
                break
        for one in np.unique(product[left]).tolist():
            here = left[product[left] == one]
            weights = self.factors.weights(self.rows[one].tolist())
            found[here] = rng.choice(len(weights), len(here), p=weights)
        return found

    def _try(self, product: Ints, rng: np.random.Generator) -> Ints:  # as `product`
        """Draw once from each product; return -1 where interface nodes have no such cell."""
        found, left = np.full(len(product), -1), np.arange(len(product))
        begun = np.zeros(len(product), dtype=np.int64)
        members = zip(self._classes, self._keys, self.factors.tables, strict=True)
        for component, (groups, keys, table) in enumerate(members):
            row, size = self.rows[product[left], component], table.shape[1]
            drawn = groups.draw(row, rng) - row * (size + 1)
            longer = np.where(drawn < size, find_sorted(keys, begun * size + drawn), -1)
            left, begun = left[longer >= 0], longer[longer >= 0]
        cells, accepted = self._cells
        kept = rng.random(len(left)) < accepted[begun]
        found[left[kept]] = self.factors.to[self._order[cells.draw(begun[kept], rng)]]
        return found


def _with_rest(table: Array) -> Groups:
    """Return the rows of a table as groups, each with what it lacks to 1 as its last member."""
    rows, classes = table.shape
    rest = np.maximum(1 - table.sum(axis=1), 0.0)
    return Groups(np.column_stack([table, rest]).ravel(), np.arange(rows + 1) * (classes + 1))
