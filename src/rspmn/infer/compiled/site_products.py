"""Factored latents of sites: weights of single interface nodes, without multiplying out all.

A log asks for the nodes that its steps led to: one each where states are observed. For these a
product takes as many multiplications as there are components.
"""

import numpy as np

from rspmn.circuit import LatentFactors, Network
from rspmn.data.distinct import find_sorted
from rspmn.data.keys import group_weights
from rspmn.infer.compiled.expectation import expectation_of_nodes
from rspmn.infer.compiled.factor_rows import rows_by_factors
from rspmn.infer.compiled.relations import ranges
from rspmn.types import Array, Ints


class SiteProducts:
    """The factored latents of all sites.

    Parameters
    ----------
    template
        That the nodes are of.
    site, node, weight
        Of each use of a factored latent, the site, the node and the weight.
    sites
        The number of sites.
    """

    def __init__(
        self, template: Network, site: Ints, node: Ints, weight: Array, sites: int
    ) -> None:
        order = np.argsort(site, kind="stable")
        #: The uses of site s are starts[s]:starts[s + 1].
        self.starts = np.searchsorted(site[order], np.arange(sites + 1))
        self.weight = weight[order]  # [uses]
        groups = rows_by_factors(template, node)
        self.parts = [_Part(factors, rows) for factors, _, rows in groups]
        self.part, self.place = np.zeros((2, len(order)), dtype=np.int64)  # [uses]
        for number, (_, nodes, _) in enumerate(groups):
            place = find_sorted(nodes, node[order])
            here = np.flatnonzero(place >= 0)
            self.part[here], self.place[here] = number, place[here]

    def totals(self) -> Array:  # [sites]
        """Return the weight of all factored latents of each site."""
        site = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return group_weights(site, self.weight, len(self.starts) - 1)

    def weights(self, use: Ints, to: Ints) -> Array:
        """Return the weights of interface nodes in uses, one of each."""
        found = np.zeros(len(use))
        for number, part in enumerate(self.parts):
            here = np.flatnonzero(self.part[use] == number)
            found[here] = self.weight[use[here]] * part.shares(self.place[use[here]], to[here])
        return found


class _Part:
    """Products of the same factors."""

    def __init__(self, factors: LatentFactors, rows: Ints) -> None:
        self.factors, self.rows = factors, rows  # [products, components]
        expect = expectation_of_nodes(factors, self.rows)
        self.kept = expect.kept[expect.of_rows]  # [products]
        self.order = np.argsort(factors.to, kind="stable")
        self.starts = np.searchsorted(
            factors.to[self.order], np.arange(factors.interfaces + 1)
        )  # [interfaces + 1], the cells of each

    def shares(self, product: Ints, to: Ints) -> Array:
        """Return what products give interface nodes, one of each."""
        cell, first = ranges(self.starts[to], self.starts[to + 1])
        pair, cell = np.repeat(np.arange(len(to)), np.diff(first)), self.order[cell]
        mass = self.factors.share[cell].copy()
        tables = zip(self.factors.tables, self.rows.T, self.factors.classes.T, strict=True)
        for table, row, classes in tables:
            mass *= table[row[product[pair]], classes[cell]]
        return group_weights(pair, mass, len(to)) / self.kept[product]
