"""Step 4 (Alg. 6): assign the log to a template, count, weigh S_L, rebuild.

One mechanism for the first estimate, which starts from the initial template with its uniform S_L,
for `refit`, which starts from a model, and for logs that are counted batch by batch.

The expectation is `assign` and `count`: the likeliest way of each step, and the steps through each
position of the template. The maximisation is the weighing of successors and `rebuild`.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from rspmn.circuit import Latent, Leaf, Max, Network, NetworkBuilder, Product, Sum, Utility
from rspmn.circuit.network import with_children
from rspmn.circuit.rewrite import graft
from rspmn.data.episodes import Followed
from rspmn.data.keys import group_weights
from rspmn.data.windows import Windows, distinct_states
from rspmn.end_nodes import Template, unknown_root, weighted_top
from rspmn.infer.compiled.assign import SEVERAL, Assigned, Located, assign, locate, locate_again
from rspmn.infer.compiled.layers import KINDS, ranges
from rspmn.infer.compiled.outcomes import outcomes_of
from rspmn.infer.compiled.ways import RootTrees
from rspmn.learn.config import LearnConfig
from rspmn.learn.flows import Flows, leaf_flows
from rspmn.learn.shares import shares_of
from rspmn.learn.structure.rows import RowTable, table_of
from rspmn.learn.successors.beyond import Beyond
from rspmn.learn.successors.extrapolate import Extrapolated, extrapolate
from rspmn.learn.successors.transitions import SuccessorWeights, Transitions
from rspmn.learn.successors.untried import untried_branches
from rspmn.model import RSPMN, Untried
from rspmn.successor_counts import SuccessorCounts
from rspmn.types import Array, Bools, Ints
from rspmn.values import UNKNOWN

#: The visits of a state beyond the log: so few that it counts only where all others are excluded.
NEVER_VISITED = 1e-6


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a model was estimated from."""

    located: Located  # the states of the log
    windows: Windows  # the log; windows that may be in several interface nodes several times
    assigned: Assigned  # these windows
    transitions: Transitions
    sites: Ints  # [sites of the transitions], their positions
    weights: SuccessorWeights
    info: object  # of the weighing
    extrapolated: Extrapolated | None = None  # where states beyond the log are interface nodes

    @property
    def shared(self) -> Bools:  # [num_windows]
        """Which of the windows are shares: where they are was found by all that is known."""
        before, states = self.located.states.count, self.assigned.located.states
        return np.asarray((states.of_steps >= before) | (states.of_successors >= before))


def estimate(
    template: Template,
    windows: Windows,
    config: LearnConfig,
    located: Located | None = None,
    table: RowTable | None = None,
    deadline: float = math.inf,
    beyond: Beyond | None = None,
) -> tuple[RSPMN, Estimate]:
    """Return the model whose parameters fit a log best, given the structure of a template.

    Parameters
    ----------
    template
        An initial template, or a model.
    windows
        The log.
    config
        What weighs successors, and how numbers are binned for it.
    located
        The interface nodes of the log's states, where they are known already.
    table
        The windows as rows, where they were binned already.
    deadline
        The `time.monotonic()` at which the time budget is used up.
    beyond
        Where each state is an interface node, states that the log does not have. The template has
        them already.
    """
    located = located or locate(template, distinct_states(windows))
    log, assigned = assign_shared(template, windows, located)
    table, windows = table if log is windows else None, log
    flows = count(template, assigned, windows)
    transitions, sites = transitions_of(template, assigned, windows, config, table, deadline)
    weights, info = config.weighing(transitions)
    untried, extrapolated = template.untried if isinstance(template, RSPMN) else None, None
    if beyond is not None:
        episodes = max(1.0, float(windows.starts.sum()))
        steps = float(windows.counts.sum()) / episodes
        extrapolated = extrapolate(transitions, weights, beyond, steps)
        untried = extrapolated.untried
    elif weights.factors is not None:
        occurred = windows.counts * assigned.share
        most = config.unavailable_from if config.availability == "observed" else math.inf
        untried = untried_branches(transitions, weights, assigned.here, occurred, most)
    alone = None if extrapolated is None else extrapolated.alone
    model = rebuild(template, assigned.trees, flows.weighed(sites, weights), untried, alone)
    return model, Estimate(
        located, windows, assigned, transitions, sites, weights, info, extrapolated
    )


def assign_shared(
    template: Template, windows: Windows, located: Located | None = None, leaves: bool = False
) -> tuple[Windows, Assigned]:
    """Assign a log to a template; steps that may be in several interface nodes are shared.

    Returns
    -------
    The windows, several times where they are shared, and where each is. What shares are estimated
    from depends on the log and on the structure of the template only, not on its parameters. So to
    estimate a model again from the same log changes nothing.
    """
    assigned = assign(template, windows, located, leaves)
    while (assigned.located.node == SEVERAL).any():
        certain = rebuild(template, assigned.trees, count(template, assigned, windows))
        located = locate_again(certain, assigned.located)
        if np.array_equal(located.node, assigned.located.node):
            found = shares_of(certain, assigned, windows)
            return found.windows, assign(
                template, found.windows, found.located, leaves, found.share
            )
        assigned = assign(template, windows, located, leaves)
    return windows, assigned


def count(template: Template, assigned: Assigned, windows: Windows) -> Flows:
    """Count the steps through every position; only those with a known successor."""
    trees, counts = assigned.trees, windows.counts * assigned.share
    known = assigned.after >= 0
    steps = np.where(known, counts, 0.0)
    found = Flows.none(trees)
    found.passed = trees.shared(
        group_weights(assigned.passed, steps[assigned.passed_by], len(trees))
    )
    _count_utilities(found, assigned, windows, steps)
    reached = known[assigned.window]
    window, site = assigned.window[reached], assigned.site[reached]
    earned, within = _utilities(windows, window)
    found.count_outcomes(site, assigned.after[window], earned, counts[window], within)
    if assigned.leaves:
        found.leaves = leaf_flows(assigned, windows, steps)
    at = (assigned.here >= 0) & ~np.append(is_frontier(template), False)[assigned.here]
    size = len(trees.template.roots)
    found.starts = group_weights(assigned.here[at], (windows.starts * assigned.share)[at], size)
    found.visits = group_weights(assigned.here[at], counts[at], size)
    found.arrived = group_weights(assigned.after[known], counts[known], size)
    return found


def _count_utilities(found: Flows, assigned: Assigned, windows: Windows, steps: Array) -> None:
    earning = assigned.trees.kind[assigned.passed] == KINDS[Utility]
    here = np.flatnonzero(earning & (steps[assigned.passed_by] > 0))
    row, position = (part[here].astype(np.int64) for part in (assigned.passed_by, assigned.passed))
    earned, within = _utilities(windows, row)
    found.count_utilities(position, earned, steps[row], within)


def _utilities(windows: Windows, row: Ints) -> tuple[Array, Array | None]:
    """Return the utility of some windows, and its variance among the steps of each."""
    column = windows.columns[windows.schema.utility]
    return column.data[row], None if column.spread is None else column.spread[row]


def transitions_of(
    template: Template,
    assigned: Assigned,
    windows: Windows,
    config: LearnConfig,
    table: RowTable | None = None,
    deadline: float = math.inf,
) -> tuple[Transitions, Ints]:
    """Return what was logged at each S_L that was reached, and their positions."""
    schema, counts = template.schema, windows.counts * assigned.share
    known = assigned.after[assigned.window] >= 0
    window = assigned.window[known]
    positions, site = np.unique(assigned.site[known], return_inverse=True)
    if table is None:
        columns = {name: windows.columns[name] for name in schema.variables}
        followed = np.where(windows.followed != Followed.UNKNOWN, counts, 0.0)
        table = table_of(columns, followed, config.bins, schema.decisions)
    boxes = np.zeros(len(template.template.roots), dtype=bool)
    boxes[assigned.here[window]] = config.clustering.disjoint
    found = Transitions(
        schema, table, assigned.located.states, assigned.located.node, boxes, template.end,
        len(positions), site, window, assigned.after[window], counts[window],
        assigned.share[window], deadline,
    )  # fmt: skip
    return found, positions


def is_frontier(template: Template) -> Bools:  # [interfaces]
    """Return which interface nodes are states in which no decision is known."""
    nodes = template.template.nodes
    found = np.zeros(len(template.template.roots), dtype=bool)
    for number, root in enumerate(template.template.roots):
        if number != template.unknown:
            decisions = [n for c in nodes[root].children if isinstance(n := nodes[c], Max)]
            found[number] = any(node.values == (UNKNOWN,) for node in decisions)
    return found


def rebuild(
    template: Template, trees: RootTrees, flows: Flows, untried: Untried | None = None,
    alone: Untried | None = None,
) -> RSPMN:  # fmt: skip
    """Return the model with the parameters that the flows give it, and with untried decisions.

    Untried decisions that are `alone` in their interface nodes become part of the template.

    Sec. 4, Step 4: the weight of an edge is the flow through it over the flow to its sum; edges
    without flow are pruned; a sum that no step reached keeps its weights. An S_L of the initial
    template that no step reached has none to keep: it leads to UNKNOWN.
    """
    roots = len(template.template.roots)
    copy = _Copy(template, trees, flows)
    placed = copy.roots(_grafted(copy.builder, alone))
    if copy.unknown == roots:  # an S_L that no step reached
        placed.append(unknown_root(copy.builder, template.schema, roots))
    old = template if isinstance(template, RSPMN) else None
    beyond = old.beyond if old else ()
    if alone is not None:
        beyond = tuple(sorted({*beyond, *alone.at}))
    visits = np.zeros(len(placed))
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
    found = copy.builder.build(*placed)
    never, aside = (old.never_taken, old.set_aside) if old else ((), ())
    counts = _counts(copy, found, len(placed))
    return RSPMN(
        template.schema, top, found, tuple(visits), untried, never, counts, aside, beyond=beyond
    )


def _grafted(builder: NetworkBuilder, alone: Untried | None) -> dict[int, int]:
    """Add the decisions of interface nodes in which none was tried; return them by node."""
    if alone is None:
        return {}
    placed = graft(builder, alone.network, rename=None)
    found = (placed[root] for root in alone.network.roots)
    return {at: root for at, root in zip(alone.at, found, strict=True) if root is not None}


def _counts(copy: "_Copy", network: Network, interfaces: int) -> SuccessorCounts:
    """Return the logged steps behind the S_L of the template that was built."""
    flows, size = copy.flows, len(copy.flows.starts)
    nodes = outcomes_of(network).nodes
    position = np.full(len(nodes), -1)  # of the S_L of each outcome; -1 if it was not copied
    position[np.searchsorted(nodes, list(copy.outcomes))] = list(copy.outcomes.values())
    logged = flows.logged
    edges, outcome = _of_each(logged.key // size, position)
    starts = np.zeros(interfaces)
    starts[: len(flows.starts)] = flows.starts
    steps = logged.steps[edges]
    found = SuccessorCounts(
        tuple(starts.tolist()), tuple(outcome.tolist()), tuple((logged.key[edges] % size).tolist()),
        tuple(steps.tolist()), tuple(logged.mean[edges].tolist()),
        tuple((logged.squares[edges] / steps).tolist()),
    )  # fmt: skip
    if flows.sharing is None:
        return found
    factors = flows.sharing.of_outcomes(*_of_each(flows.sharing.site, position), logged.key[edges])
    return replace(found, factors=factors)


def _of_each(keys: Ints, asked: Ints) -> tuple[Ints, Ints]:
    """Return the places of keys that were asked for, and which of them it is; keys are sorted."""
    found, first = ranges(*np.searchsorted(keys, [asked, asked + 1]))
    return found, np.repeat(np.arange(len(asked)), np.diff(first))


def _products_by_position(flows: Flows) -> dict[int, tuple[list[list[int]], list[float]]]:
    """Return the rows and weights of the products of factors at each position that has some."""
    spread = flows.spread
    if spread is None:
        return {}
    starts = np.flatnonzero(np.diff(spread.site, prepend=-1)).tolist()
    rows, weight = spread.rows[spread.product].tolist(), spread.weight.tolist()
    positions = spread.site[starts].tolist()
    stops = [*starts[1:], len(weight)]
    return {
        position: (rows[start:stop], weight[start:stop])
        for position, start, stop in zip(positions, starts, stops, strict=True)
    }


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
        self.products = _products_by_position(flows)
        self._leaves: dict[int, int] = {}  # by node, of those that are kept
        self._latents: dict[int, int] = {}  # by interface node
        #: By product node that has an S_L among its children, the position of the S_L.
        self.outcomes: dict[int, int] = {}

    def roots(self, decided: dict[int, int]) -> list[int]:
        """Add all roots, one tree after the other; some of them with decisions of their own."""
        return [
            self._add(root) if root not in decided else self._state(root, decided[root])
            for root in range(self.num_roots)
        ]

    def _state(self, position: int, decisions: int) -> int:
        """Add a root of leaves and decisions, but with other decisions."""
        below = range(self.first[position], self.first[position] + self.width[position])
        leaves = [c for c in below if isinstance(self.nodes[self.node[c]], Leaf)]
        return self.builder.product([*map(self._add, leaves), decisions])

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
        added = self.builder.add(with_children(node, tuple(map(self._add, below))))
        successors = [child for child in below if self.site[child] >= 0]
        if isinstance(node, Product) and successors:
            self.outcomes[added] = successors[0]
        return added

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
        if position in self.products:
            return self._spread(position, to, weights)
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

    def _spread(self, position: int, to: list[int], weights: list[float]) -> int:
        """Add an S_L of counted successors and of products of factors."""
        spread = self.flows.spread
        assert spread is not None
        rows, shares = self.products[position]
        children = [self._latent(interface) for interface in to]
        children += [self.builder.factored_latents(spread.factors, row) for row in rows]
        total = math.fsum([*weights, *shares])
        return self.builder.sum(children, [weight / total for weight in (*weights, *shares)])

    def _latent(self, interface: int) -> int:
        if interface not in self._latents:
            self._latents[interface] = self.builder.latent(interface)
        return self._latents[interface]
