"""Decisions that were never tried in a state, and what factors predict would follow them.

A branch of the template needs a logged step. But contexts share their parameters: what a decision
did elsewhere predicts what it would do here, unless trees set this state apart. Such branches are
extrapolated. They are kept beside the template, not in it, and queries use them only if asked to.

A decision is not extrapolated but unavailable where, by its frequency, it should have been tried
often.
"""

import math
from collections.abc import Callable

import numpy as np

from rspmn.availability import label
from rspmn.circuit import NetworkBuilder
from rspmn.data.keys import group_weights
from rspmn.infer.compiled.layers import ranges
from rspmn.learn.structure.contingency import distinct_weights
from rspmn.learn.successors.predict import Asked, Predicted, Predictor
from rspmn.learn.successors.priors import Factors, mixed_priors, too_much
from rspmn.learn.successors.products import Products, products_of
from rspmn.learn.successors.transitions import (
    Contexts,
    SuccessorWeights,
    Transitions,
    contexts_of,
)
from rspmn.model import Untried
from rspmn.types import Array, Bools, Ints
from rspmn.values import Value

#: With more branches than this, none is extrapolated.
MOST_BRANCHES = 20_000
#: So if the products of their factors are not multiplied out.
MOST_SPREAD = 200_000


def untried_branches(
    transitions: Transitions, weights: SuccessorWeights, at: Ints, counts: Array,
    unavailable_from: float,
) -> Untried | None:  # fmt: skip
    """Return the branches of decisions never tried, if there are any.

    Parameters
    ----------
    transitions
        What was logged.
    weights
        Of all S_L, with factors of the next state. If those are not multiplied out, nor are those
        of untried decisions.
    at
        The interface node of each window's step; below 0 if none. [num_windows]
    counts
        How often each window occurred. [num_windows]
    unavailable_from
        A decision never tried is unavailable where at least this many tries were expected.
    """
    schema = transitions.schema
    if any(schema.information_sets[1:]):
        return None  # what is seen after a decision would have to be extrapolated, too
    here = np.flatnonzero((at >= 0) & transitions.boxes[np.maximum(at, 0)])
    if not len(here) or transitions.too_late_for():
        return None
    made, decision = contexts_of(transitions, schema.decisions, here)
    key, tries = distinct_weights(at[here] * len(made) + decision, counts[here])
    share = group_weights(key % len(made), tries, len(made)) / tries.sum()
    expected = group_weights(key // len(made), tries, transitions.interfaces)[:, None] * share
    untried = (expected > 0) & (expected < unavailable_from)
    untried.ravel()[key] = False
    untried &= ~_forbidden(transitions, made, here, at[here])
    node, decision = np.nonzero(untried)
    factors, spread = weights.factors, weights.spread is not None
    if factors is None or not 0 < len(node) <= (MOST_SPREAD if spread else MOST_BRANCHES):
        return None
    asked = _ask(transitions, made, node, decision, here, at[here], counts[here])
    predicted = Predictor(transitions, factors)(asked, len(node))
    return branches_of(transitions, weights, made, node, decision, predicted)


def branches_of(
    transitions: Transitions, weights: SuccessorWeights, made: Contexts, node: Ints, decision: Ints,
    predicted: Predicted,
) -> Untried | None:  # fmt: skip
    """Return the branches of pairs of an interface node and decisions, if any can be predicted.

    Parameters
    ----------
    transitions, weights
        What was logged, and the weights of all S_L.
    made
        All decisions that were made anywhere.
    node, decision
        Of each pair, the interface node, sorted, and which of the decisions. [pairs]
    predicted
        What would come of each pair.
    """
    factors = weights.factors
    assert factors is not None, "without factors nothing is predicted"
    if not len(node):
        return None
    after = _products if weights.spread is not None else _edges
    then = after(transitions, factors, predicted)
    if then is None:
        return None
    return _branches(transitions, made.codes[decision], node, predicted.earned, then)


def _forbidden(
    transitions: Transitions, made: Contexts, here: Ints, at: Ints
) -> Bools:  # [interfaces, made]
    """Return the decisions that a law forbids in all states of an interface node."""
    found = np.zeros((transitions.interfaces, len(made)), dtype=bool)
    columns = transitions.table.columns
    for law in transitions.schema.laws:
        holds = law.holds({name: columns[name].for_expressions() for name in law.variables})
        possible = np.zeros(transitions.interfaces, dtype=bool)
        possible[at[holds[here]]] = True
        code = made.codes[:, made.names.index(law.decision)] - 1
        named = [label(value) == law.value for value in columns[law.decision].domain]
        found |= np.outer(~possible, np.array(named)[code])
    return found


def _ask(
    transitions: Transitions,
    made: Contexts,
    node: Ints,
    decision: Ints,
    here: Ints,
    at: Ints,
    counts: Array,
) -> Asked:
    """Put each pair's decisions to the states of its interface node."""
    names = transitions.schema.information_sets[0]
    states, state = contexts_of(transitions, names, here)
    key, seen = distinct_weights(at * len(states) + state, counts)
    starts = np.searchsorted(key // len(states), np.arange(transitions.interfaces + 1))
    place, first = ranges(starts[node], starts[node + 1])
    pair = np.repeat(np.arange(len(node)), np.diff(first))
    codes = np.hstack([states.codes[key[place] % len(states)], made.codes[decision[pair]]])
    sizes = np.concatenate([states.sizes, made.sizes])
    share = seen[place] / group_weights(pair, seen[place])[pair]
    return Asked(Contexts((*names, *made.names), sizes, codes), pair, share)


#: Adds what would follow a pair to a builder; None if nothing known does.
Then = Callable[[NetworkBuilder, int], int | None]


def _edges(transitions: Transitions, factors: Factors, found: Predicted) -> Then | None:
    """Return sums over the latents that would follow; None if it takes too long."""
    from scipy.sparse import csr_array

    pairs, contexts = len(found.earned), len(found.pair)
    place = found.pair, np.arange(contexts)
    mixtures = csr_array((found.going, place), shape=(pairs, contexts))
    products, priors = products_of(factors, found.leaves), None
    if products is not None:
        priors = products.priors(mixtures)
    elif not too_much(factors, contexts):
        priors = mixed_priors(factors, found.leaves, mixtures, transitions.deadline)
    if priors is None or transitions.too_late_for(priors.weights.nnz):
        return None
    lost = found.lost(priors.kept)
    on = np.where(lost | (found.ended >= 1), 0.0, 1 - found.ended)
    weights = csr_array(priors.weights * on[:, None])
    if transitions.end is not None:
        place = np.arange(pairs), np.full(pairs, transitions.end)
        end = csr_array((np.where(lost, 0.0, found.ended), place), shape=weights.shape)
        weights = csr_array(weights + end)
    weights.eliminate_zeros()

    def then(builder: NetworkBuilder, pair: int) -> int | None:
        edges = slice(int(weights.indptr[pair]), int(weights.indptr[pair + 1]))
        if edges.start == edges.stop:
            return None
        to, weight = weights.indices[edges].tolist(), weights.data[edges]
        return builder.sum(list(map(builder.latent, to)), (weight / weight.sum()).tolist())

    return then


def _products(transitions: Transitions, factors: Factors, found: Predicted) -> Then | None:
    """Return sums over products of factors that are not multiplied out, and END."""
    products = Products(factors, found.leaves)
    kept = products.kept[products.of_contexts]
    ended = np.where(found.lost(kept), 0.0, found.ended).tolist()
    usable = (kept > 0) & (found.going > 0) & ~found.lost(kept)[found.pair]
    size = len(products.rows)
    use, going = distinct_weights(
        found.pair[usable] * size + products.of_contexts[usable], found.going[usable]
    )
    starts = np.searchsorted(use // size, np.arange(len(ended) + 1)).tolist()
    rows, shares = products.rows[use % size].tolist(), going.tolist()

    def then(builder: NetworkBuilder, pair: int) -> int | None:
        part = slice(starts[pair], starts[pair + 1])
        children = [builder.factored_latents(factors.latents, row) for row in rows[part]]
        weights = shares[part]
        if ended[pair] > 0:
            assert transitions.end is not None
            children = [*children, builder.latent(transitions.end)]
            weights = [*weights, ended[pair]]
        total = math.fsum(weights)
        return builder.sum(children, [w / total for w in weights]) if children else None

    return then


def _branches(
    transitions: Transitions, codes: Ints, node: Ints, earned: Array, then: Then
) -> Untried | None:
    """Put the branches of each interface node together, decision by decision."""
    schema = transitions.schema
    builder = NetworkBuilder()
    domains = [transitions.table.columns[name].domain for name in schema.decisions]
    grown: dict[int, dict[tuple[Value, ...], int]] = {}
    for pair, here in enumerate(node.tolist()):
        follows = then(builder, pair)
        if follows is None:  # nothing known
            continue
        branch = builder.product([builder.utility(schema.utility, float(earned[pair])), follows])
        made = tuple(d[c - 1] for d, c in zip(domains, codes[pair].tolist(), strict=True))
        grown.setdefault(here, {})[made] = branch
    if not grown:
        return None
    roots = [_max(builder, schema.decisions, branches) for branches in grown.values()]
    return Untried(builder.build(*roots), tuple(grown))


def _max(
    builder: NetworkBuilder, decisions: tuple[str, ...], branches: dict[tuple[Value, ...], int]
) -> int:
    """Add the max nodes of some decisions, one below the other."""
    if not decisions:
        return branches[()]
    parts: dict[Value, dict[tuple[Value, ...], int]] = {}
    for made, branch in branches.items():
        parts.setdefault(made[0], {})[made[1:]] = branch
    return builder.max(
        decisions[0],
        {value: _max(builder, decisions[1:], part) for value, part in parts.items()},
    )
