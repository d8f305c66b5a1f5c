"""Step 4: the final template (Alg. 5): every S_L with its weights, zero edges gone."""

from itertools import pairwise

import numpy as np

from rspmn.circuit import Network, NetworkBuilder
from rspmn.circuit.rewrite import graft, with_branches
from rspmn.end_nodes import end_root, marked_root, unknown_root, weighted_top
from rspmn.learn.frontier import Edge, frontier_state, state_leaves
from rspmn.learn.initial_template import place_roots
from rspmn.learn.numbering import Numbering
from rspmn.learn.one_step import Interface
from rspmn.learn.routing import Routes
from rspmn.learn.successors.transitions import Successors
from rspmn.learn.two_step_rows import TwoSteps
from rspmn.model import RSPMN
from rspmn.types import Array, Ints
from rspmn.values import UNKNOWN


def final_model(
    two: TwoSteps,
    one_step: Network,
    interfaces: list[Interface],
    routes: Routes,
    edge: Edge,
    numbers: Numbering,
    successors: Successors,
    bins: int,
) -> RSPMN:
    """Put the model together: each S_L with its weights, the top with the starts."""
    builder = NetworkBuilder()
    sums = _add_successors(builder, successors)
    roots = place_roots(builder, one_step, interfaces, sums.__getitem__)
    schema, states = two.schema, routes.states
    names = schema.information_sets[0]
    extra = _extra_branches(builder, edge, numbers)
    for state in edge.acted_in.tolist():
        leaves = state_leaves(builder, routes, state, names, bins)
        roots.append(builder.product([*leaves, extra[-1 - state]]))
    for here in range(numbers.learned):
        if here in extra:
            roots[here] = with_branches(builder, roots[here], extra[here])
    arrivals = _arrivals(two, states.of_successors, states.count)
    if numbers.frontier is not None:
        leaves = frontier_state(builder, routes, edge, arrivals, schema, bins)
        roots.append(marked_root(builder, schema, leaves, UNKNOWN, numbers.frontier))
    if numbers.end is not None:
        roots.append(end_root(builder, schema, numbers.end))
    if numbers.unknown is not None:
        roots.append(unknown_root(builder, schema, numbers.unknown))
    windows = two.windows
    at = numbers.of_states[states.of_steps]
    acted = (at >= 0) & (at != numbers.frontier)  # others lack what their states are divided by
    starts = np.bincount(at[acted], windows.starts[acted], numbers.total)
    visits = np.bincount(at[acted], windows.counts[acted], numbers.total)
    if not starts.any():  # all episodes start with a step that was left out
        starts = visits
    if numbers.frontier is not None:
        visits[numbers.frontier] = arrivals[edge.states].sum()
    top = weighted_top((starts / starts.sum()).tolist())
    return RSPMN(schema, top, builder.build(*roots), tuple(visits.tolist()))


def _add_successors(builder: NetworkBuilder, found: Successors) -> list[int]:
    """Add every S_L."""
    starts, weights = found.starts.tolist(), found.weights.tolist()
    latents = {i: builder.latent(i) for i in np.unique(found.interfaces).tolist()}
    children = [latents[i] for i in found.interfaces.tolist()]
    return [builder.sum(children[a:b], weights[a:b]) for a, b in pairwise(starts)]


def _extra_branches(builder: NetworkBuilder, edge: Edge, numbers: Numbering) -> dict[int, int]:
    """Add the decisions that lead to nothing known; return them by `Edge.at`."""
    if edge.network is None or numbers.unknown is None:
        return {}
    nowhere = builder.sum([builder.latent(numbers.unknown)], [1.0])
    placed = graft(builder, edge.network, rename=None, latent=lambda _: nowhere)
    found = (placed[root] for root in edge.network.roots)
    return {
        at: place for at, place in zip(edge.at.tolist(), found, strict=True) if place is not None
    }


def _arrivals(two: TwoSteps, of_successors: Ints, states: int) -> Array:
    """Return how often each state was arrived at."""
    known = of_successors >= 0
    counts = two.windows.counts[known].astype(np.float64)
    return np.bincount(of_successors[known], counts, states).astype(np.float64)
