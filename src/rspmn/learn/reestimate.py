"""New parameters for an old structure: what flowed where, and a model made of it.

Every place in every root's tree has parameters of its own here, also where equal parts were stored
once. Sec. 4, Step 4: the weight of an edge is the flow through it over the flow to its sum; edges
without flow are pruned; a sum that nothing reached keeps its weights.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rspmn.circuit import Latent, NetworkBuilder, Sum, Utility
from rspmn.circuit.network import with_children
from rspmn.infer.subtrees import Instances, Subtrees
from rspmn.learn.rows import weigh
from rspmn.model import RSPMN, weighted_top

__all__ = ["Flows", "rebuilt", "spread"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(eq=False)
class Flows:
    """What flowed through a template, added up over a log."""

    edges: Array  # [edges of all trees]
    steps: Array  # [positions], steps whose successor is known
    earned: Array  # [positions], the utility in these steps, added up
    squares: Array  # [positions], and its square
    led: dict[int, dict[int, float]]  # by position of a site, how often each interface followed
    starts: Array  # [interfaces]
    visits: Array  # [interfaces]

    @classmethod
    def none(cls, trees: Subtrees) -> "Flows":
        """Return no flow at all."""
        positions, interfaces = len(trees.nodes), len(trees.template.roots)
        return cls(
            np.zeros(len(trees.edge)), np.zeros(positions), np.zeros(positions),
            np.zeros(positions), {}, np.zeros(interfaces), np.zeros(interfaces),
        )  # fmt: skip


def spread(instances: Instances, instance: Ints, logs: Array, amount: Array) -> tuple[Array, Array]:
    """Share out amounts at sites over the places and edges above and beside them.

    `instance` says which instance is the site of each amount, `logs` how likely it is to get
    there. With what each site passes up set to the amount over the likelihood of the way there,
    the flow that comes down to it is the amount. Returned are positions' and edges' flows.
    """
    sites = np.full(len(instances.node), -np.inf)
    with np.errstate(divide="ignore"):
        sites[instance] = np.log(amount) - logs
    whole = weigh(instances.pair[instance], amount, len(instances.tops))
    at, through = instances.down(instances.up(sites), whole)
    trees = instances.trees
    return (
        weigh(instances.position, at, len(trees.nodes)),
        weigh(instances.edge, through, len(trees.edge)),
    )


def rebuilt(model: RSPMN, trees: Subtrees, flows: Flows) -> RSPMN:
    """Return the model with the parameters that the flows give it."""
    builder = NetworkBuilder()
    roots = [_root(builder, trees, flows, number) for number in range(model.num_interfaces)]
    top = model.top
    if flows.starts.sum() > 0:
        top = weighted_top((flows.starts / flows.starts.sum()).tolist())
    template, visits = builder.build(*roots), tuple(flows.visits.tolist())
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
