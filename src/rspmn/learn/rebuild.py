"""Step 4, maximisation: the template again, with the parameters that flows give it.

Sec. 4: the weight of an edge is the flow through it over the flow to its sum; edges without flow
are pruned; a sum that no step reached keeps its weights. An S_L of the initial template that no
step reached has none to keep: it leads to UNKNOWN.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from rspmn.behaviour import UNKNOWN_BEHAVIOUR
from rspmn.circuit import (
    FactoredLatents,
    Latent,
    Leaf,
    Network,
    NetworkBuilder,
    Product,
    Sum,
    Utility,
)
from rspmn.circuit.blocks import BlockBuilder
from rspmn.circuit.node_arrays import KINDS, NodeViews, ranges
from rspmn.end_nodes import Template, unknown_root, weighted_top
from rspmn.infer.compiled.outcomes import outcomes_of
from rspmn.infer.compiled.template_trees import RootTrees
from rspmn.learn.flows import Flows, known_ranges
from rspmn.learn.successors.links import Links
from rspmn.learn.successors.untried import NO_BRANCHES, UntriedBranches
from rspmn.model import RSPMN, Untried
from rspmn.successor_counts import SuccessorCounts
from rspmn.types import Array, Bools, Ints

#: The visits of a state beyond the log: so few that it counts only where all others are excluded.
NEVER_VISITED = 1e-6


def rebuild(
    template: Template, trees: RootTrees, flows: Flows,
    untried: UntriedBranches = NO_BRANCHES, alone: Untried | None = None,
    beyond: Sequence[int] = (),
) -> RSPMN:  # fmt: skip
    """Return the model with the parameters that the flows give it, and with untried decisions.

    Untried decisions that are `alone` in their interface nodes become part of the template.
    `beyond`: interface nodes that the log does not have.
    """
    roots = len(template.template.roots)
    copy = _Copy(template, trees, flows, alone)
    interfaces = len(copy.network.roots)
    network = _of_interfaces(copy.network, interfaces)
    by_chance, avoided = (
        part and replace(part, network=_of_interfaces(part.network, interfaces)) for part in untried
    )
    old = template if isinstance(template, RSPMN) else None
    added = () if alone is None else alone.at
    beyond = tuple(sorted({*(old.beyond if old else ()), *beyond, *added}))
    visits = np.zeros(interfaces)
    visits[:roots] = flows.visits
    never = (flows.visits == 0) & (np.arange(roots) != template.end)
    visits[:roots][never] = flows.arrived[never]  # a frontier is only arrived at
    visits[list(beyond)] = np.maximum(visits[list(beyond)], NEVER_VISITED)
    if flows.starts.sum() > 0:
        top = weighted_top((flows.starts / flows.starts.sum()).tolist())
    elif isinstance(template, RSPMN):
        top = template.top
    else:  # all episodes start with a step that was left out
        top = weighted_top((flows.visits / flows.visits.sum()).tolist())
    taken, aside = (old.never_taken, old.set_aside) if old else ((), ())
    behaviour, last_end = (old.behaviour, old.last_end) if old else (UNKNOWN_BEHAVIOUR, 0)
    counts = _counts(flows, copy.outcome_positions(), interfaces)
    return RSPMN(
        template.schema, top, network, tuple(visits), by_chance, taken, counts, aside,
        beyond=beyond, avoided=avoided, behaviour=behaviour, last_end=last_end,
    )  # fmt: skip


def _of_interfaces(network: Network, interfaces: int) -> Network:
    """Return a network whose factors know of all interface nodes: UNKNOWN may be a new one."""
    arrays = network.arrays
    factors = {node.factors for node in arrays.objects if isinstance(node, FactoredLatents)}
    if all(one.interfaces == interfaces for one in factors):
        return network
    wider = {one: replace(one, interfaces=interfaces) for one in factors}
    objects = tuple(
        node if isinstance(node, Leaf) else FactoredLatents(wider[node.factors], node.rows)
        for node in arrays.objects
    )
    return Network(NodeViews(replace(arrays, objects=objects)), network.roots)


def _counts(flows: Flows, position: Ints, interfaces: int) -> SuccessorCounts:
    """Return the logged steps behind S_L, given the positions of those of all outcomes."""
    size, logged = len(flows.starts), flows.logged
    edges, outcome = _of_each(logged.key // size, position)
    starts = np.zeros(interfaces)
    starts[: len(flows.starts)] = flows.starts
    steps = logged.steps[edges]
    going, ending = known_ranges(flows.rewards)
    found = SuccessorCounts(
        tuple(starts.tolist()), tuple(outcome.tolist()), tuple((logged.key[edges] % size).tolist()),
        tuple(steps.tolist()), tuple(logged.mean[edges].tolist()),
        tuple((logged.squares[edges] / steps).tolist()), going, ending,
    )  # fmt: skip
    if flows.sharing is None:
        return found
    factors = flows.sharing.of_outcomes(*_of_each(flows.sharing.site, position), logged.key[edges])
    utilities = None
    if flows.outcomes is not None:
        sites, added = flows.outcomes
        site, outcome = _of_each(sites, position)
        utilities = added.utilities(outcome, site)
    return replace(found, factors=factors, utilities=utilities)


def _of_each(keys: Ints, asked: Ints) -> tuple[Ints, Ints]:
    """Return the places of keys that were asked for, and which of them it is; keys are sorted."""
    found, first = ranges(*np.searchsorted(keys, [asked, asked + 1]))
    return found, np.repeat(np.arange(len(asked)), np.diff(first))


class _Copy:
    """A copy of the trees with new parameters, as arrays over their positions."""

    def __init__(
        self, template: Template, trees: RootTrees, flows: Flows, alone: Untried | None
    ) -> None:
        self.template, self.trees, self.flows, self.alone = template, trees, flows, alone
        self.arrays, self.roots = template.template.arrays, len(template.template.roots)
        self.decided = np.zeros(0, dtype=np.int64) if alone is None else np.array(alone.at)
        self.kept = self._kept()  # [positions]
        self.sites = np.flatnonzero(self.kept & (trees.site >= 0))  # the positions of S_L
        self.here = np.flatnonzero(self.kept)  # positions
        self.number = np.cumsum(self.kept) - 1  # [positions], of each among those
        links = self._links()
        self.needs_unknown = bool((links.to == self.roots).any())  # an S_L that no step reached
        #: Positions at which S_L is a single latent, and stays what it is.
        self.linked = self._single(links)
        self.links = links.where(~self.linked[links.owner])
        self.rank, self.first_rank = self._ranks()  # [positions] each
        self.network, self.place = self._built()

    def outcome_positions(self) -> Ints:  # [outcomes]
        """Return the position of the S_L of each outcome of the network, -1 if it was not copied.

        Of equal outcomes it is that of the last.
        """
        above = self.trees.parent[self.sites]
        product = (above >= 0) & (self.trees.kind[above] == KINDS[Product])
        outcome, first = np.unique(above[product], return_index=True)
        order = np.argsort(self.rank[outcome])
        nodes = outcomes_of(self.network).nodes
        found = np.full(len(nodes), -1)
        place = np.searchsorted(nodes, self.place[self.number[outcome[order]]])
        found[place] = self.sites[product][first[order]]
        return found

    # ---- what is kept ----------------------------------------------------------------

    def _kept(self) -> Bools:  # [positions]
        """Return which positions are copied: none below an edge that is pruned."""
        trees = self.trees
        inner = np.flatnonzero(trees.parent >= 0)
        above = trees.parent[inner]
        summed, flow = trees.kind[above] == KINDS[Sum], self.flows.passed[inner] > 0
        reached = np.bincount(above[summed & flow], minlength=len(trees)) > 0
        kept = np.ones(len(trees), dtype=bool)
        kept[inner] = ~(summed & reached[above] & ~flow)
        own = inner[np.isin(above, self.decided)]  # other decisions take the place of theirs
        kept[own] &= trees.kind[own] == KINDS[Leaf]
        for start, stop in self._levels:
            kept[start:stop] &= kept[trees.parent[start:stop]]
        return kept

    @cached_property
    def _levels(self) -> list[tuple[int, int]]:
        """Where the levels below the roots start and stop, the highest first."""
        return list(pairwise(self.trees.levels[1:].tolist()))

    # ---- S_L ---------------------------------------------------------------------------

    def _links(self) -> Links:
        """Return the successors that were counted or, where there are none, the old ones."""
        flows, sites = self.flows, self.sites
        counted, at = _of_each(flows.led_from, sites)
        parts = [Links(sites[at], flows.led_to[counted], flows.led[counted])]
        if flows.spread is not None:
            used, at = _of_each(flows.spread.site, sites)
            product = -1 - flows.spread.product[used]
            parts.append(Links(sites[at], product, flows.spread.weight[used]))
        left = np.setdiff1d(sites, np.concatenate([part.owner for part in parts]))
        return Links.joined(*parts, *([self._old_links(left)] if len(left) else []))

    def _old_links(self, positions: Ints) -> Links:
        """Return the links that S_L have in the template; a uniform one leads to UNKNOWN."""
        used, site = np.unique(self.trees.site[positions], return_inverse=True)
        starts, interfaces, weights = self.trees.sites.only(used).edges(multiplied_out=True)
        edges, first = ranges(starts[site], starts[site + 1])
        to = interfaces[edges].copy()
        to[to == self.roots] = self.unknown
        return Links(np.repeat(positions, np.diff(first)), to, weights[edges])

    @property
    def unknown(self) -> int:
        """The interface node UNKNOWN; one more than there are roots if it is new."""
        return self.roots if self.template.unknown is None else self.template.unknown

    def _single(self, links: Links) -> Bools:  # [positions]
        """Return where a latent of the template leads to where it did, and nowhere else."""
        node = self.trees.node[links.owner]
        same = (self.arrays.kind[node] == KINDS[Latent]) & (self.arrays.item[node] == links.to)
        count = np.bincount(links.owner, minlength=len(self.trees))
        found = np.zeros(len(self.trees), dtype=bool)
        found[links.owner[same & (count[links.owner] == 1)]] = True
        return found

    # ---- the order of nodes: each after what is below it ---------------------------------

    def _ranks(self) -> tuple[Ints, Ints]:  # [positions] each
        """Return the place of each position in a walk up the trees, and of the first below it."""
        parent = self.trees.parent
        size = self.kept + np.bincount(self.links.owner, minlength=len(self.trees))
        for start, stop in reversed(self._levels):
            below = np.bincount(parent[start:stop], size[start:stop], len(size))
            size = size + below.astype(np.int64)
        first = np.concatenate([[0], np.cumsum(size)[:-1]])
        for start, stop in self._levels:
            above, part = parent[start:stop], first[start:stop] - first[start]
            eldest = np.append(True, above[1:] != above[:-1])
            before = part[np.flatnonzero(eldest)[np.cumsum(eldest) - 1]]
            first[start:stop] = first[above] + part - before
        return first + size - 1, first

    # ---- nodes -------------------------------------------------------------------------

    def _built(self) -> tuple[Network, Ints]:
        """Return the network, and the place in it of each position that is kept."""
        builder, links = BlockBuilder(), self.links
        kind, item = self._kinds_and_items(builder)
        builder.add(kind, item, *self._edges(builder))
        spread = self.flows.spread
        links.add_latents(builder, *((spread.factors, spread.rows) if spread else (None, None)))
        start = self.first_rank[links.owner]
        same = np.append(True, np.diff(links.owner) != 0)[: len(links.owner)]
        nth = np.arange(len(same)) - np.flatnonzero(same)[np.cumsum(same) - 1]
        roots, order = np.arange(self.roots), [self.rank[self.here], start + nth]
        if self.alone is not None:
            order.append(np.arange(-len(builder.network(self.alone.network)), 0))
        if self.needs_unknown:
            one = NetworkBuilder()
            unknown = one.build(unknown_root(one, self.template.schema, self.roots))
            added = builder.network(unknown)
            order.append(int(self.rank.max()) + 1 + np.arange(len(added)))
            roots = np.append(roots, added[unknown.root])
        return builder.build(roots, np.concatenate(order))

    def _kinds_and_items(self, builder: BlockBuilder) -> tuple[Ints, Ints]:
        """Return what is at the positions: utilities and leaves as they were seen."""
        flows, here = self.flows, self.here
        kind, item = self.trees.kind[here], builder.items(self.arrays)[self.trees.node[here]]
        sites = self.number[self.sites[~self.linked[self.sites]]]
        kind[sites], item[sites] = KINDS[Sum], 0
        earns = np.flatnonzero((kind == KINDS[Utility]) & (flows.steps[here] > 0))
        at = here[earns]
        item[earns] = builder.utility_items(
            self.template.schema.utility, flows.mean[at], flows.steps[at],
            flows.squares[at] / flows.steps[at],
        )  # fmt: skip
        fitted = [at for at in flows.leaves if self.kept[at]]
        item[self.number[fitted]] = builder.object_items(map(self._fitted, fitted))
        return kind, item

    def _fitted(self, position: int) -> Leaf:
        leaf = self.arrays.objects[self.arrays.item[self.trees.node[position]]]
        assert isinstance(leaf, Leaf)
        fitted = leaf.distribution.reestimated(self.flows.leaves[position])
        return Leaf(leaf.variable, fitted)

    def _edges(self, builder: BlockBuilder) -> tuple[Ints, Ints, Array, Ints]:
        """Return how many children the positions have, and children, weights, choices of all."""
        trees, links, size = self.trees, self.links, len(self.here)
        inner = self.here[self.roots :]
        codes = np.append(builder.value_codes(self.arrays.values), -1)
        parent = [self.number[trees.parent[inner]], self.number[links.owner]]
        child = [self.number[inner], size + np.arange(len(links.to))]
        weight = [self._weights(inner), links.shares()]
        if self.alone is not None:
            parent.append(self.decided)
            child.append(size + len(links.to) + np.array(self.alone.network.roots))
            weight.append(np.ones(len(self.decided)))
        above = np.concatenate(parent)
        choice = np.full(len(above), -1)
        choice[: len(inner)] = codes[self.arrays.choice[trees.edge[inner]]]
        order = np.argsort(above, kind="stable")
        widths = np.bincount(above, minlength=size)
        children, weights = np.concatenate(child)[order], np.concatenate(weight)[order]
        return widths, children, weights, choice[order]

    def _weights(self, inner: Ints) -> Array:  # [inner]
        """Return the weights of edges above positions: by flow, unless a sum has none."""
        trees, flow = self.trees, self.flows.passed[inner]
        total = np.bincount(trees.parent[inner], flow, len(trees))[trees.parent[inner]]
        mixed = (trees.kind[trees.parent[inner]] == KINDS[Sum]) & (total > 0)
        return np.where(
            mixed, flow / np.where(mixed, total, 1.0), self.arrays.weights[trees.edge[inner]]
        )
