"""Step 3 (Alg. 5): the initial template, a uniform S_L beside every utility.

Its roots are, in this order: the interface nodes of Step 2; one for each state in which decisions
were made but nothing known followed; the frontier, all states in which no decision is known, or one
for each of them if factors may say what is done there; END; UNKNOWN; states beyond the log. All
but the first are left out where the log does not need them.

A uniform S_L over all interface nodes would be the largest part of the template, only to be
replaced by Step 4. So it is one latent, beyond the last root; `explicit` writes it out.
"""

from dataclasses import dataclass, replace

import numpy as np

from rspmn.circuit import Categorical, Latent, Leaf, Network, NetworkBuilder, Product
from rspmn.circuit.blocks import BlockBuilder
from rspmn.circuit.more_branches import with_branches
from rspmn.circuit.node_arrays import KINDS, NodeViews
from rspmn.circuit.rewrite import graft
from rspmn.data.episodes import Followed
from rspmn.data.keys import group_weights
from rspmn.data.windows import States
from rspmn.end_nodes import end_root, marked_root, unknown_root
from rspmn.infer.compiled.assign import Located, likeliest_roots
from rspmn.infer.compiled.state_index import StateIndex
from rspmn.infer.compiled.template_trees import RootTrees
from rspmn.learn.frontier import Border, edge_of, frontier_leaves, state_leaves
from rspmn.learn.one_step import OneStep
from rspmn.learn.structure.each_state import may_be_nodes
from rspmn.learn.structure.learner import Learner
from rspmn.learn.successors.unobserved_states import Beyond, beyond_the_log, with_states
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
    located: Located  # the states of the log, and those beyond it
    beyond: Beyond | None  # states that the log does not have: the last roots
    alone: bool  # whether states that nothing was learned of are roots, each of its own

    def uniform_sites(self, trees: RootTrees) -> Ints:
        """Return the positions of all uniform S_L."""
        arrays = self.template.arrays
        uniform = (arrays.kind == KINDS[Latent]) & (arrays.item == len(self.template.roots))
        return np.flatnonzero(uniform[trees.node])

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


def initial_template(two: TwoSteps, one_step: OneStep, learner: Learner) -> InitialTemplate:
    """Return the initial template.

    `one_step`: the result of Step 2. `learner`: what the decisions at the edge of the log are
    learned by.
    """
    edge, learned = edge_of(two, one_step, learner), len(one_step.interfaces)
    acted_in = learned + np.arange(len(edge.acted_in))
    alone = may_be_nodes(two.rows, two.schema, learner.config)
    frontier = np.arange(len(edge.states)) * alone  # one, or one for each state
    frontier += learned + len(acted_in)
    size = learned + len(acted_in) + len(np.unique(frontier))
    end = size if (two.windows.followed == Followed.END).any() else None
    unknown = size + (end is not None) if len(edge.at) else None
    size += (end is not None) + (unknown is not None)
    located, beyond = _located(one_step, edge, acted_in, frontier), None
    if alone:
        beyond = beyond_the_log(two, located, size, end)
    if beyond is not None:
        located = with_states(located, beyond, size + np.arange(len(beyond)))
    visits = np.zeros(size + (0 if beyond is None else len(beyond)))
    visits[:learned] = one_step.steps
    visits[acted_in] = np.bincount(located.states.of_steps, two.windows.counts)[edge.acted_in]
    arrivals = _arrivals(two, located.states)
    np.add.at(visits, frontier, arrivals[edge.states])
    empty = Network((Product(()),), (0,))
    template = InitialTemplate(
        two.schema, empty, tuple(visits.tolist()), learned, frontier, end, unknown, edge, located,
        beyond, alone,
    )  # fmt: skip
    network = _Roots(template, one_step, size).network(arrivals, learner.config.bins)
    return _with_doubtful_states(replace(template, template=network))


class _Roots:
    """Builds the roots of the initial template: states as arrays, the few others one by one."""

    def __init__(self, template: InitialTemplate, one_step: OneStep, logged: int) -> None:
        self.template, self.one_step, self.size = template, one_step, len(template.visits)
        self.logged = logged  # the number of interface nodes that are not beyond the log
        self.builder, self.single = BlockBuilder(), NetworkBuilder()

    def network(self, arrivals: Array, bins: int) -> Network:
        """Return the network; `arrivals` [num_states] at a frontier weigh its states."""
        roots = np.full(self.size, -1)
        roots[: self.template.learned] = self._learned()
        if self.template.alone:  # of finitely many values, at the edge of the log and beyond
            frontier, beyond = self.template.frontier, np.arange(self.logged, self.size)
            roots[frontier] = self._undecided(frontier, frontier)
            roots[beyond] = self._undecided(beyond, np.full(len(beyond), self.logged))
        extra = self._unsupported_branches()
        single = self._one_by_one(extra, arrivals, bins)
        if single:
            grown = self.single.build(*single.values())
            roots[list(single)] = self.builder.network(grown)[list(grown.roots)]
        network = self.builder.build(roots)[0]
        widened = {here: root for here, root in extra.items() if here >= 0}
        if not widened:
            return network
        more = self.single.build(*widened.values())
        return with_branches(network, np.array([*widened]), more)[0]

    def _learned(self) -> Ints:  # [interfaces]
        """Add the interface nodes of Step 2, the same S_L in place of every latent."""
        network, interfaces = self.one_step.network, self.one_step.interfaces
        arrays = network.arrays
        item = np.where(arrays.kind == KINDS[Latent], self.size, arrays.item)
        same = Network(NodeViews(replace(arrays, item=item)), network.roots)
        parts = self.builder.network(same)[interfaces.children]
        widths = np.diff(interfaces.starts)
        products = self.builder.products(widths, parts)
        return np.where(widths == 1, parts[interfaces.starts[:-1]], products)

    def _undecided(self, numbers: Ints, to: Ints) -> Ints:  # [numbers]
        """Add states in which no decision is known, and the interface nodes that follow them."""
        schema, states, count = self.template.schema, self.template.located.states, len(numbers)
        builder, place = self.builder, np.full(self.size, -1)
        place[self.template.located.node] = np.arange(states.count)
        parts = []
        for name in schema.information_sets[0]:
            column = states.columns[name]
            leaves = builder.leaves(Leaf(name, Categorical.certain(v)) for v in column.domain)
            parts.append(leaves[column.data[place[numbers]]])
        none = np.zeros(count)
        both = [builder.utilities(schema.utility, none, none, none), builder.latents(to)]
        below = builder.products(np.full(count, 2), np.column_stack(both).ravel())
        for decision in reversed(schema.decisions):
            one = np.ones(count, dtype=np.int64)
            below = builder.maxes(decision, one, below, [UNKNOWN], one - 1)
        children = np.column_stack([*parts, below])
        return builder.products(np.full(count, children.shape[1]), children.ravel())

    def _one_by_one(self, extra: dict[int, int], arrivals: Array, bins: int) -> dict[int, int]:
        """Add what is at the edge of the log, END and UNKNOWN; return the roots by number.

        `extra` are the decisions that lead to nothing known.
        """
        template, edge, single = self.template, self.template.edge, self.single
        schema, states = template.schema, template.located.states
        names, found = schema.information_sets[0], {}
        for number, state in enumerate(edge.acted_in.tolist(), template.learned):
            leaves = state_leaves(single, states, state, names, bins)
            found[number] = single.product([*leaves, extra[-1 - state]])
        if len(edge.states) and not self.template.alone:
            number = int(template.frontier[0])
            leaves = frontier_leaves(single, states, edge.states, arrivals, names, bins)
            found[number] = marked_root(single, schema, leaves, UNKNOWN, number)
        if template.end is not None:
            found[template.end] = end_root(single, schema, template.end)
        if template.unknown is not None:
            found[template.unknown] = unknown_root(single, schema, template.unknown)
        return found

    def _unsupported_branches(self) -> dict[int, int]:
        """Add the decisions that lead to nothing known; return them by `Border.at`."""
        edge, unknown = self.template.edge, self.template.unknown
        if edge.network is None or unknown is None:
            return {}
        nowhere = self.single.sum([self.single.latent(unknown)], [1.0])
        placed = graft(self.single, edge.network, rename=None, latent=lambda _: nowhere)
        found = (placed[root] for root in edge.network.roots)
        return {
            at: place
            for at, place in zip(edge.at.tolist(), found, strict=True)
            if place is not None
        }


def _arrivals(two: TwoSteps, states: States) -> Array:  # [num_states]
    known = states.of_successors >= 0
    counts = two.windows.counts[known].astype(np.float64)
    return group_weights(states.of_successors[known], counts, states.count)


def _located(one_step: OneStep, edge: Border, acted_in: Ints, frontier: Ints) -> Located:
    """Return the interface nodes of all states, given those of Step 2."""
    node = one_step.located.node.copy()
    node[edge.acted_in], node[edge.states] = acted_in, frontier
    return Located(one_step.located.states, node)


def _with_doubtful_states(template: InitialTemplate) -> InitialTemplate:
    """Look again at states that lack values: what they lack may also be a state of the edge."""
    edge, located = template.edge, template.located
    if not len(edge.acted_in) and not len(edge.states):
        return template
    lacking = np.zeros(len(located.node), dtype=bool)
    for column in located.states.columns.values():
        lacking |= column.missing
    again = np.flatnonzero(lacking)
    if not len(again):
        return template
    node = located.node.copy()
    node[again] = likeliest_roots(StateIndex.of(template), located.states, again)
    return replace(template, located=Located(located.states, node))
