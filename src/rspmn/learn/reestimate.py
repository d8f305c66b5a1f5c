"""New parameters for an old structure: a model made of what flowed where.

Sec. 4, Step 4: the weight of an edge is the flow through it over the flow to its sum; edges
without flow are pruned; a sum that nothing reached keeps its weights.
"""

import numpy as np

from rspmn.circuit import (
    Latent,
    Leaf,
    NetworkBuilder,
    Sum,
    Utility,
)
from rspmn.circuit.network import with_children
from rspmn.end_nodes import weighted_top
from rspmn.infer.compiled.subtrees import Subtrees
from rspmn.learn.flows import Flows
from rspmn.model import RSPMN


def rebuilt(model: RSPMN, trees: Subtrees, flows: Flows) -> RSPMN:
    """Return the model with the parameters that the flows give it."""
    builder = NetworkBuilder()
    roots = [_root(builder, trees, flows, number) for number in range(model.num_interfaces)]
    top = model.top
    if flows.starts.sum() > 0:
        top = weighted_top((flows.starts / flows.starts.sum()).tolist())
    visited = flows.visits.copy()
    frontier = (visited == 0) & (np.arange(model.num_interfaces) != model.end)
    visited[frontier] = flows.arrived[frontier]
    template, visits = builder.build(*roots), tuple(visited.tolist())
    return RSPMN(model.schema, top, template, visits, model.untried)


def _root(builder: NetworkBuilder, trees: Subtrees, flows: Flows, number: int) -> int:
    start, stop = trees.node_starts[number : number + 2]
    first, last = trees.edge_starts[number : number + 2]
    below: list[list[tuple[int, float]]] = [[] for _ in range(stop - start)]
    for edge in range(first, last):
        below[trees.parent[edge]].append((int(trees.child[edge]), float(flows.edges[edge])))
    placed: list[int] = []
    for position in range(start, stop):
        children = [(placed[child], flow) for child, flow in below[position - start]]
        placed.append(_node(builder, trees, flows, position, children))
    return placed[-1]


def _node(
    builder: NetworkBuilder,
    trees: Subtrees,
    flows: Flows,
    position: int,
    children: list[tuple[int, float]],
) -> int:
    index = int(trees.nodes[position])
    node = trees.template.nodes[index]
    if trees.site_of[index] >= 0:
        return _site(builder, trees, flows, position)
    if isinstance(node, Utility):
        return builder.add(_utility(node, flows, position))
    if isinstance(node, Sum):
        return _sum(builder, node, children)
    if isinstance(node, Leaf) and position in flows.leaves:
        return builder.leaf(node.variable, node.distribution.reestimated(flows.leaves[position]))
    return builder.add(with_children(node, tuple(child for child, _ in children)))


def _utility(node: Utility, flows: Flows, position: int) -> Utility:
    steps = float(flows.steps[position])
    if not steps > 0:
        return node
    mean = float(flows.earned[position]) / steps
    variance = max(0.0, float(flows.squares[position]) / steps - mean * mean)
    return Utility(node.variable, mean, steps, variance)


def _sum(builder: NetworkBuilder, node: Sum, children: list[tuple[int, float]]) -> int:
    total = sum(flow for _, flow in children)
    if not total > 0:
        return builder.sum([child for child, _ in children], node.weights)
    kept = [(child, flow / total) for child, flow in children if flow > 0]
    return builder.sum([child for child, _ in kept], [weight for _, weight in kept])


def _site(builder: NetworkBuilder, trees: Subtrees, flows: Flows, position: int) -> int:
    node = trees.template.nodes[int(trees.nodes[position])]
    sites, site = trees.sites, int(trees.site_of[trees.nodes[position]])
    part = slice(int(sites.starts[site]), int(sites.starts[site + 1]))
    led = {i: flow for i, flow in flows.led.get(position, {}).items() if flow > 0}
    if not led:
        pairs = zip(sites.interfaces[part].tolist(), sites.weights[part].tolist(), strict=True)
        led = dict(pairs)
    if isinstance(node, Latent) and list(led) == [node.interface]:
        return builder.add(node)
    total = sum(led.values())
    order = sorted(led)
    return builder.sum([builder.latent(i) for i in order], [led[i] / total for i in order])
