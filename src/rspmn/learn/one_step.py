"""Step 2: the one-step network and its root interface nodes (Algs. 3 and 4).

Our one-step network is learned without the successor's variables, so nothing has to be removed: a
latent is in their place. Every way through the sums above the first decision gives one interface
node. A sum inside a factor is not a choice of behaviour and is not expanded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from rspmn.circuit import Latent, Max, Network, Node, Product, Sum, fold_up, walk_down
from rspmn.data.keys import group_weights
from rspmn.data.windows import distinct_states
from rspmn.infer.compiled.assign import NOWHERE, Located, likeliest_roots
from rspmn.infer.compiled.state_index import StateIndex
from rspmn.infer.compiled.state_part import state_part
from rspmn.learn.two_step import Grown, TwoSteps
from rspmn.types import Array, Ints

#: The children of one root interface node, as indices in the one-step network.
Interface = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Interfaces:
    """The children of all root interface nodes, as indices in the one-step network."""

    starts: Ints  # [interfaces + 1]; node i has the children starts[i]:starts[i + 1]
    children: Ints

    @classmethod
    def of(cls, each: Sequence[Interface]) -> "Interfaces":
        """Return the children of some interface nodes."""
        children = np.array([child for one in each for child in one], dtype=np.int64)
        return cls(np.cumsum([0, *map(len, each)]), children)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, interface: int) -> Interface:
        return tuple(self.children[self.starts[interface] : self.starts[interface + 1]].tolist())


@dataclass(frozen=True, eq=False)
class OneStep:
    """The one-step network, its interface nodes, and the steps of the log in each."""

    network: Network
    sites: Sequence[Ints]  # the windows behind each latent
    interfaces: Interfaces
    learned_in: Ints  # [num_windows], the interface node that each was learned in, -1 if none
    steps: Array  # [interfaces], that each was learned from
    located: Located  # the states of the log


def one_step_of(two: TwoSteps, grown: Grown, disjoint: bool) -> OneStep:
    """Return the interface nodes of a network of Step 1, and the states in each.

    If rows were divided by values, so that clusters are `disjoint`, a state that was learned from
    is excluded by all interface nodes but its own. Other states are in the likeliest; in none if
    each state is an interface node.
    """
    network = grown.network
    if grown.states is not None:
        interfaces, learned_in = _states(network), grown.states
    else:
        ways = interface_nodes(network)
        interfaces = Interfaces.of(ways)
        learned_in = _learned_in(network, ways, grown.sites, len(two.windows))
    states, counts = distinct_states(two.windows), two.windows.counts.astype(np.float64)
    known = learned_in >= 0
    steps = group_weights(learned_in[known], counts[known], len(interfaces))
    node = np.full(states.count, NOWHERE)
    if disjoint:
        node[states.of_steps[known]] = learned_in[known]
    others = np.flatnonzero(node == NOWHERE)
    if len(others) and grown.states is None:
        index = StateIndex(two.windows.schema, state_part(network, ways), steps)
        node[others] = likeliest_roots(index, states, others)
    located = Located(states, node)
    return OneStep(network, grown.sites, interfaces, learned_in, steps, located)


def _states(network: Network) -> Interfaces:
    """Return the interface nodes of a sum over states: products of leaves and decisions."""
    arrays = network.arrays
    states = arrays.children[arrays.starts[network.root] : arrays.starts[network.root + 1]]
    edges, first = arrays.edges_of(states)
    return Interfaces(np.append(first, len(edges)), arrays.children[edges])


def interface_nodes(network: Network) -> list[Interface]:
    """Return the children of each root interface node, in the order of the network.

    The appendix's IrChildren keeps the ways through one sum only where a product has several;
    here they are combined.
    """
    decides = _above(network, Max) if any(isinstance(n, Max) for n in network.nodes) else None
    led = _above(network, Latent) if decides is None else decides
    return _ways(network, network.root, led)


def _above(network: Network, kind: type[Max] | type[Latent]) -> list[bool]:
    """Say which nodes have one of a kind below them or are one."""
    return fold_up(network, lambda node, below: isinstance(node, kind) or any(below))


def _ways(network: Network, index: int, led: list[bool]) -> list[Interface]:
    """Return IrChildren of a node (Alg. 4)."""
    node = network.nodes[index]
    match node:
        case Sum() if led[index]:
            return [way for child in node.children for way in _ways(network, child, led)]
        case Product() if led[index] and not _is_outcome(network, node):
            choices = [
                _ways(network, child, led) if led[child] else [(child,)] for child in node.children
            ]
            return [tuple(c for part in way for c in part) for way in product(*choices)]
        case _:
            return [(index,)]


def _is_outcome(network: Network, node: Node) -> bool:
    """Say whether a product holds a latent itself: it is below all decisions."""
    return any(isinstance(network.nodes[child], Latent) for child in node.children)


def _learned_in(
    network: Network, interfaces: list[Interface], sites: Sequence[Ints], windows: int
) -> Ints:
    """Return the interface node that each window was learned in, -1 if none."""
    starts = {child: number for number, children in enumerate(interfaces) for child in children}
    reached = walk_down(
        network, starts, lambda _, node, arrived: [(c, arrived[0]) for c in node.children]
    )
    of_site = np.full(len(sites), -1)
    for index, arrived in reached.items():
        node = network.nodes[index]
        if isinstance(node, Latent):
            of_site[node.interface] = arrived[0]
    learned = np.full(windows, -1)
    learned[np.concatenate(sites)] = np.repeat(of_site, [len(site) for site in sites])
    return learned
