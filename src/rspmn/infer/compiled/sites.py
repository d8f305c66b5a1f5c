"""The nodes of a template that lead to the next step only: S_L as weights over interface nodes."""

from functools import cached_property

import numpy as np

from rspmn.circuit import FactoredLatents, Latent, Network, Product, Sum
from rspmn.circuit.node_arrays import KINDS
from rspmn.infer.compiled.relations import Relation, ranges
from rspmn.infer.compiled.site_products import SiteProducts
from rspmn.types import Array, Bools, Ints


class Sites:
    """The nodes that lead to the next step only, as weights over interface nodes.

    The weights are found when they are first asked for: factored latents are multiplied out then.
    """

    def __init__(self, nodes: Ints, template: Network) -> None:
        self.nodes = nodes  # [sites], in the template
        self._template = template

    def only(self, sites: Ints) -> "Sites":
        """Return some of the sites."""
        return Sites(self.nodes[sites], self._template)

    @property
    def starts(self) -> Ints:  # [sites + 1]
        """The first edge of each site."""
        return self._edges[0]

    @property
    def interfaces(self) -> Ints:  # [edges], sorted within a site
        """The interface node of each edge."""
        return self._edges[1]

    @property
    def weights(self) -> Array:  # [edges]
        """The weight of each edge."""
        return self._edges[2]

    @cached_property
    def _edges(self) -> tuple[Ints, Ints, Array]:
        return self.edges(multiplied_out=True)

    def edges(self, multiplied_out: bool) -> tuple[Ints, Ints, Array]:
        """Return the first edge of each site, interface nodes, and weights.

        If they are not multiplied out, all factored latents of a site are one edge, whose interface
        node is one more than the last.
        """
        template, arrays, nodes = self._template, self._template.arrays, self.nodes
        means = np.full(len(template), len(template.roots))
        latents = arrays.of_kind(Latent)
        means[latents] = arrays.item[latents]
        site, node, weight = self.latents(Latent)
        parts = [(site, means[node], weight)]
        site, node, weight = self.latents(FactoredLatents)
        if multiplied_out:
            parts += _multiplied_out(template, site, node, weight)
        else:
            parts.append((site, means[node], weight))
        site, to, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
        size = int(to.max(initial=0)) + 1
        keys, which = np.unique((site * size + to)[weight > 0], return_inverse=True)
        starts = np.searchsorted(keys // size, np.arange(len(nodes) + 1))
        weights = np.bincount(which, weight[weight > 0], len(keys)).astype(np.float64)
        return starts, keys % size, weights

    def latents(self, kind: type[Latent] | type[FactoredLatents]) -> tuple[Ints, Ints, Array]:
        """Return sites, the nodes of a kind that they lead to, and the weights of these."""
        arrays = self._template.arrays
        site, node, weight = np.arange(len(self.nodes)), self.nodes, np.ones(len(self.nodes))
        parts = [(site[:0], node[:0], weight[:0])]
        while len(node):  # down to the latents: one or two levels
            wanted = arrays.kind[node] == KINDS[kind]
            parts.append((site[wanted], node[wanted], weight[wanted]))
            edges, first = ranges(arrays.starts[node], arrays.starts[node + 1])
            counts, node = np.diff(first), arrays.children[edges]
            site = np.repeat(site, counts)
            weight = np.repeat(weight, counts) * arrays.weights[edges]
        site, node, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
        return site, node, weight

    @cached_property
    def products(self) -> SiteProducts | None:
        """The factored latents; None if there are none."""
        site, node, weight = self.latents(FactoredLatents)
        if not len(node):
            return None
        return SiteProducts(self._template, site, node, weight, len(self.nodes))

    @cached_property
    def counted(self) -> tuple[Relation, Array]:
        """The interface nodes after each site but for factored latents, and their weights."""
        if self.products is None:
            return self.relation, self.weights
        starts, interfaces, weights = self.edges(multiplied_out=False)
        kept, size = interfaces < len(self._template.roots), len(self._template.roots)
        before = np.concatenate([[0], np.cumsum(kept)])
        return Relation(before[starts], interfaces[kept], size), weights[kept]

    @cached_property
    def relation(self) -> Relation:
        """The interface nodes after each site; its entries are the edges."""
        return Relation(self.starts, self.interfaces, len(self._template.roots))

    @cached_property
    def log_totals(self) -> Array:  # [sites]
        """What each site passes up if all interface nodes after it pass up 1."""
        relation, weights = self.counted
        site = np.repeat(np.arange(len(self.nodes)), relation.counts)
        total = np.bincount(site, weights, len(self.nodes))
        return np.log(total if self.products is None else total + self.products.totals())


def sites_of(template: Network) -> Sites:
    """Return the highest nodes with nothing but latents below them."""
    arrays = template.arrays
    only: Bools = np.isin(arrays.kind, [KINDS[Latent], KINDS[FactoredLatents]])
    only = arrays.fold_up(only, dict.fromkeys((Sum, Product), np.logical_and))
    below = arrays.children[~only[arrays.parents]]
    nodes = np.unique(below[only[below]])
    return Sites(nodes, template)


def _multiplied_out(
    template: Network, site: Ints, node: Ints, weight: Array
) -> list[tuple[Ints, Ints, Array]]:
    """Return factored latents as sites, interface nodes and weights."""
    found = []
    for at, index, share in zip(site.tolist(), node.tolist(), weight.tolist(), strict=True):
        factored = template.nodes[index]
        assert isinstance(factored, FactoredLatents)
        of_nodes = share * factored.factors.weights(factored.rows)
        to = np.flatnonzero(of_nodes)
        found.append((np.full(len(to), at), to, of_nodes[to]))
    return found
