"""Algorithm 6, maximisation: a model of the flows through a template.

Sec. 4, Step 4: the weight of an edge is the flow through it over the flow to its sum; edges
without flow are pruned; a sum that no step reached keeps its weights. An S_L of the initial
template that no step reached has none to keep: it leads to UNKNOWN.
"""

import numpy as np

from rspmn.circuit import Latent, Leaf, NetworkBuilder, Sum, Utility
from rspmn.circuit.network import with_children
from rspmn.end_nodes import Template, unknown_root, weighted_top
from rspmn.infer.compiled.ways import RootTrees
from rspmn.learn.flows import Flows
from rspmn.model import RSPMN, Untried


def rebuild(
    template: Template, trees: RootTrees, flows: Flows, untried: Untried | None = None
) -> RSPMN:
    """Return the model with the parameters that the flows give it, and with untried decisions."""
    roots = len(template.template.roots)
    copy = _Copy(template, trees, flows)
    placed = copy.roots()
    if copy.unknown == roots:  # an S_L that no step reached
        placed.append(unknown_root(copy.builder, template.schema, roots))
    visits = np.zeros(len(placed))
    visits[:roots] = flows.visits
    never = (flows.visits == 0) & (np.arange(roots) != template.end)
    visits[:roots][never] = flows.arrived[never]  # a frontier is only arrived at
    if flows.starts.sum() > 0:
        top = weighted_top((flows.starts / flows.starts.sum()).tolist())
    elif isinstance(template, RSPMN):
        top = template.top
    else:  # all episodes start with a step that was left out
        top = weighted_top((flows.visits / flows.visits.sum()).tolist())
    return RSPMN(template.schema, top, copy.builder.build(*placed), tuple(visits), untried)


class _Copy:
    """A copy of the trees, children before parents, with new parameters."""

    def __init__(self, template: Template, trees: RootTrees, flows: Flows) -> None:
        self.nodes, self.sites, self.flows = template.template.nodes, trees.sites, flows
        self.builder = NetworkBuilder()
        self.num_roots = len(template.template.roots)
        #: The interface node UNKNOWN; one more than there are roots if an S_L turns out to need it.
        self.unknown = template.unknown
        # lists: positions are read one by one
        self.node, self.site = trees.node.tolist(), trees.site.tolist()
        self.first, self.width = trees.first.tolist(), trees.width.tolist()
        self.steps, self.passed = flows.steps.tolist(), flows.passed.tolist()
        self.led_starts = np.searchsorted(flows.led_from, np.arange(len(trees) + 1)).tolist()
        self.led_to, self.led = flows.led_to.tolist(), flows.led.tolist()
        self._leaves: dict[int, int] = {}  # by node, of those that are kept
        self._latents: dict[int, int] = {}  # by interface node

    def roots(self) -> list[int]:
        """Add all roots, one tree after the other."""
        return [self._add(root) for root in range(self.num_roots)]

    def _add(self, position: int) -> int:
        if self.site[position] >= 0:
            return self._site(position)
        index = self.node[position]
        node = self.nodes[index]
        if isinstance(node, Leaf):
            if position in self.flows.leaves:
                fitted = node.distribution.reestimated(self.flows.leaves[position])
                return self.builder.leaf(node.variable, fitted)
            if index not in self._leaves:
                self._leaves[index] = self.builder.add(node)
            return self._leaves[index]
        if isinstance(node, Utility):
            return self.builder.add(self._utility(node, position))
        below = range(self.first[position], self.first[position] + self.width[position])
        if isinstance(node, Sum):
            kept = [(child, flow) for child in below if (flow := self.passed[child]) > 0]
            if kept:
                total = sum(flow for _, flow in kept)
                children = [self._add(child) for child, _ in kept]
                return self.builder.sum(children, [flow / total for _, flow in kept])
        return self.builder.add(with_children(node, tuple(map(self._add, below))))

    def _utility(self, node: Utility, position: int) -> Utility:
        steps = self.steps[position]
        if not steps > 0:
            return node
        mean, squares = self.flows.mean[position], self.flows.squares[position]
        return Utility(node.variable, float(mean), steps, float(squares) / steps)

    def _site(self, position: int) -> int:
        """Add an S_L: the successors that were counted or, if there are none, the old ones."""
        part = slice(self.led_starts[position], self.led_starts[position + 1])
        to, weights = self.led_to[part], self.led[part]
        if not to:
            site = self.site[position]
            old = slice(int(self.sites.starts[site]), int(self.sites.starts[site + 1]))
            to, weights = self.sites.interfaces[old].tolist(), self.sites.weights[old].tolist()
            if to == [self.num_roots]:  # uniform over all roots: nothing was ever counted here
                self.unknown = self.num_roots if self.unknown is None else self.unknown
                to = [self.unknown]
        node = self.nodes[self.node[position]]
        if isinstance(node, Latent) and to == [node.interface]:
            return self.builder.add(node)
        total = sum(weights)
        children = [self._latent(interface) for interface in to]
        return self.builder.sum(children, [weight / total for weight in weights])

    def _latent(self, interface: int) -> int:
        if interface not in self._latents:
            self._latents[interface] = self.builder.latent(interface)
        return self._latents[interface]
