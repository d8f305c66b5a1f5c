"""Step 3 (Alg. 5): the initial template, a uniform S_L beside every utility.

Its roots are, in this order: the interface nodes of Step 2; one for each state in which decisions
were made but nothing known followed; the frontier, all states in which no decision is known, or one
for each of them if states are interface nodes; END; UNKNOWN. All but the first are left out where
the log does not need them.

A uniform S_L over all interface nodes would be the largest part of the template, only to be
replaced by Step 4. So it is one latent, beyond the last root; `explicit` writes it out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rspmn.circuit import Categorical, Latent, Network, NetworkBuilder
from rspmn.circuit.network import with_children
from rspmn.circuit.rewrite import graft, with_branches
from rspmn.data.episodes import Followed
from rspmn.data.keys import group_weights
from rspmn.data.windows import States
from rspmn.end_nodes import end_root, marked_root, unknown_root
from rspmn.infer.compiled.assign import Located, likeliest_roots
from rspmn.infer.compiled.state_index import StateIndex
from rspmn.infer.compiled.ways import RootTrees
from rspmn.learn.frontier import Border, edge_of, frontier_leaves, state_leaves
from rspmn.learn.one_step import Interface, OneStep
from rspmn.learn.structure.learner import Learner
from rspmn.learn.two_step import TwoSteps
from rspmn.schema import Schema
from rspmn.types import Array, Ints
from rspmn.values import UNKNOWN


@dataclass(frozen=True, eq=False)
class InitialTemplate:
    """What Step 4 starts from."""

    schema: Schema
    template: Network  # a latent beyond the last root is an S_L that is uniform over all roots
    visits: tuple[float, ...]  # [interfaces], steps that were learned from; arrivals at a frontier
    learned: int  # the number of interface nodes of Step 2
    frontier: Ints  # [edge.states], the interface node of each state of the frontier
    end: int | None
    unknown: int | None
    edge: Border  # of the log
    located: Located  # the states of the log

    def uniform_sites(self, trees: RootTrees) -> Ints:
        """Return the positions of all uniform S_L."""
        nodes = np.array([
            isinstance(n, Latent) and n.interface == len(self.template.roots)
            for n in self.template.nodes
        ])  # fmt: skip
        return np.flatnonzero(nodes[trees.node])

    def explicit(self) -> Network:
        """Return the template with S_L as sums over all roots."""
        builder = NetworkBuilder()
        size = len(self.template.roots)
        anywhere = builder.sum([builder.latent(i) for i in range(size)], [1 / size] * size)
        placed = graft(
            builder, self.template, rename=None,
            latent=lambda i: anywhere if i == size else builder.latent(i),
        )  # fmt: skip
        return builder.build(
            *(place for r in self.template.roots if (place := placed[r]) is not None)
        )


def initial_template(
    two: TwoSteps, one_step: OneStep, learner: Learner, each: bool = False
) -> InitialTemplate:
    """Return the initial template.

    Parameters
    ----------
    two
        The log.
    one_step
        The result of Step 2.
    learner
        What the decisions at the edge of the log are learned by.
    each
        Whether each state of the frontier is an interface node of its own.
    """
    edge, interfaces = edge_of(two, one_step, learner), one_step.interfaces
    schema, states, bins = two.schema, one_step.located.states, learner.config.bins
    names = schema.information_sets[0]
    count = len(interfaces) + len(edge.acted_in)
    groups = np.arange(len(edge.states)) * each  # of the frontier: one, or one for each state
    frontier = count + groups
    count += len(np.unique(groups))
    numbers: list[int | None] = []
    ended = bool((two.windows.followed == Followed.END).any())
    for needed in (ended, len(edge.at) > 0):
        numbers.append(count if needed else None)
        count += needed
    end, unknown = numbers
    builder = NetworkBuilder()
    roots = _learned_roots(builder, one_step.network, interfaces, builder.latent(count))
    extra = _unsupported_branches(builder, edge, unknown)
    for here in range(len(interfaces)):
        if here in extra:
            roots[here] = with_branches(builder, roots[here], extra[here])
    for state in edge.acted_in.tolist():
        leaves = state_leaves(builder, states, state, names, bins)
        roots.append(builder.product([*leaves, extra[-1 - state]]))
    acted = np.bincount(states.of_steps, two.windows.counts, states.count)
    visits = [*one_step.steps.tolist(), *acted[edge.acted_in].tolist()]
    arrivals = _arrivals(two, states)
    for number in np.unique(frontier).tolist():
        here = edge.states[frontier == number]
        leaves = frontier_leaves(builder, states, here, arrivals, names, bins)
        roots.append(marked_root(builder, schema, leaves, UNKNOWN, number))
        visits.append(float(arrivals[here].sum()))
    if end is not None:
        roots.append(end_root(builder, schema, end))
    if unknown is not None:
        roots.append(unknown_root(builder, schema, unknown))
    visits += [0.0] * (count - len(visits))
    template = InitialTemplate(
        schema, builder.build(*roots), tuple(visits), len(interfaces), frontier, end, unknown,
        edge, one_step.located,
    )  # fmt: skip
    return replace(template, located=_locate_in(template))


def with_states(template: InitialTemplate, codes: Mapping[str, Ints]) -> InitialTemplate:
    """Return the template with more states in which no decision is known, each an interface node.

    Parameters
    ----------
    template
        In which each state is an interface node.
    codes
        Of each variable, the codes of its values in the new states, from 0. Each value is that of
        some state of the log.
    """
    located, size = template.located, len(template.template.roots)
    count = len(next(iter(codes.values())))
    builder = NetworkBuilder()
    anywhere = builder.latent(size + count)
    placed = graft(
        builder, template.template, rename=None,
        latent=lambda i: anywhere if i == size else builder.latent(i),
    )  # fmt: skip
    roots = [root for r in template.template.roots if (root := placed[r]) is not None]
    columns, leaves = {}, []
    for name, new in codes.items():
        column = located.states.columns[name]
        columns[name] = replace(column, data=np.append(column.data, new.astype(column.data.dtype)))
        certain = [Categorical.certain(value) for value in column.domain]
        added = [builder.leaf(name, value) for value in certain]
        leaves.append([added[code] for code in new.tolist()])
    # All lead to the first of them, which is as good: what follows them is not known.
    undecided = builder[marked_root(builder, template.schema, [], UNKNOWN, size)].children
    roots += [builder.product([*state, *undecided]) for state in zip(*leaves, strict=True)]
    states = replace(located.states, columns=columns, count=located.states.count + count)
    return replace(
        template, template=builder.build(*roots), visits=(*template.visits, *[0.0] * count),
        located=Located(states, np.append(located.node, size + np.arange(count))),
    )  # fmt: skip


def _learned_roots(
    builder: NetworkBuilder, one_step: Network, interfaces: Sequence[Interface], anywhere: int
) -> list[int]:
    """Add the interface nodes of Step 2, the same S_L in place of every latent."""
    placed: dict[int, int] = {}

    def copy(index: int) -> int:
        if index not in placed:
            node = one_step.nodes[index]
            if isinstance(node, Latent):
                return anywhere
            placed[index] = builder.add(with_children(node, tuple(map(copy, node.children))))
        return placed[index]

    roots = []
    for children in interfaces:
        parts = [copy(child) for child in children]
        roots.append(parts[0] if len(parts) == 1 else builder.product(parts))
    return roots


def _unsupported_branches(
    builder: NetworkBuilder, edge: Border, unknown: int | None
) -> dict[int, int]:
    """Add the decisions that lead to nothing known; return them by `Border.at`."""
    if edge.network is None or unknown is None:
        return {}
    nowhere = builder.sum([builder.latent(unknown)], [1.0])
    placed = graft(builder, edge.network, rename=None, latent=lambda _: nowhere)
    found = (placed[root] for root in edge.network.roots)
    return {
        at: place for at, place in zip(edge.at.tolist(), found, strict=True) if place is not None
    }


def _arrivals(two: TwoSteps, states: States) -> Array:  # [num_states]
    known = states.of_successors >= 0
    counts = two.windows.counts[known].astype(np.float64)
    return group_weights(states.of_successors[known], counts, states.count)


def _locate_in(template: InitialTemplate) -> Located:
    """Return the interface nodes of all states in the initial template, given those of Step 2.

    States that lack values are looked at again: what they lack may also be a state of the edge.
    """
    edge, located = template.edge, template.located
    node = located.node.copy()
    if not len(edge.acted_in) and not len(edge.states):
        return located
    node[edge.acted_in] = template.learned + np.arange(len(edge.acted_in))
    node[edge.states] = template.frontier
    lacking = np.zeros(len(node), dtype=bool)
    for column in located.states.columns.values():
        lacking |= column.missing
    again = np.flatnonzero(lacking)
    if len(again):
        node[again] = likeliest_roots(StateIndex.of(template), located.states, again)
    return Located(located.states, node)
