"""Decisions that were never tried in a state, and what factors predict would follow them.

A branch of the template needs a logged step. But contexts share their parameters: what a decision
did elsewhere predicts what it would do here, unless trees set this state apart. Such branches are
extrapolated. They are kept beside the template, not in it. Those that chance left out are offered
by default, those that the logger avoided only if asked for (`rspmn.learn.successors.avoided`).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rspmn.availability import label
from rspmn.circuit import LatentFactors
from rspmn.circuit.blocks import BlockBuilder
from rspmn.context_trees import Contexts
from rspmn.data.keys import group_weights
from rspmn.infer.compiled.layers import ranges
from rspmn.learn.structure.contingency import distinct_weights
from rspmn.learn.structure.decision_blocks import add_decisions
from rspmn.learn.successors.avoided import AvoidedDecisions
from rspmn.learn.successors.links import Links
from rspmn.learn.successors.predict import Predicted, Predictor, UnseenContexts
from rspmn.learn.successors.products import FactorProducts
from rspmn.learn.successors.transitions import SuccessorWeights, Transitions, contexts_of
from rspmn.model import RSPMN, Untried
from rspmn.types import Array, Bools, Ints

#: With more branches than this, none is extrapolated.
MOST_BRANCHES = 20_000
#: So if the products of their factors are not multiplied out.
MOST_SPREAD = 200_000


class UntriedBranches(NamedTuple):
    """The branches of decisions that were never tried, if there are any."""

    by_chance: Untried | None = None
    avoided: Untried | None = None

    @classmethod
    def of(cls, model: RSPMN) -> "UntriedBranches":
        """Return those that a model has."""
        return cls(model.untried, model.avoided)


#: No branches.
NO_BRANCHES = UntriedBranches()


def untried_branches(
    transitions: Transitions, weights: SuccessorWeights, at: Ints, counts: Array
) -> UntriedBranches:
    """Return the branches of decisions never tried.

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
    """
    schema = transitions.schema
    if any(schema.information_sets[1:]):
        return NO_BRANCHES  # what is seen after a decision would have to be extrapolated, too
    here = np.flatnonzero((at >= 0) & transitions.boxes[np.maximum(at, 0)])
    if not len(here) or transitions.too_late_for():
        return NO_BRANCHES
    made, decision = contexts_of(transitions, schema.decisions, here)
    untried = np.zeros((transitions.interfaces, len(made)), dtype=bool)
    untried[at[here]] = True
    untried[at[here], decision] = False
    untried &= ~_forbidden(transitions, made, here, at[here])
    node, decision = np.nonzero(untried)
    factors, spread = weights.factors, weights.spread is not None
    if factors is None or not 0 < len(node) <= (MOST_SPREAD if spread else MOST_BRANCHES):
        return NO_BRANCHES
    asked = _ask(transitions, made, node, decision, here, at[here], counts[here])
    predicted = Predictor(transitions, factors)(asked, len(node))
    avoided = predicted.alien.copy()
    is_avoided = AvoidedDecisions(transitions, here, counts[here])(asked.contexts)
    avoided[asked.pair[is_avoided]] = True

    def branches(kept: Bools) -> Untried | None:
        of = np.flatnonzero(kept)
        return branches_of(transitions, weights, made, node[of], decision[of], predicted.of(of))

    return UntriedBranches(branches(~avoided), branches(avoided))


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
    products = FactorProducts(factors, predicted.leaves)
    known = predicted.kept is not None or products.exact is not None
    spread = weights.spread is not None and known
    then = (_products if spread else _edges)(transitions, products, predicted)
    if then is None or not len(then.links):
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
) -> UnseenContexts:
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
    return UnseenContexts(Contexts((*names, *made.names), sizes, codes), pair, share)


@dataclass(frozen=True, eq=False)
class _Then:
    """What would follow pairs, those of which nothing is known left out."""

    links: Links  # by pair
    factors: LatentFactors | None = None  # of products that are not multiplied out
    rows: Ints | None = None  # [products, components]


def _edges(transitions: Transitions, products: FactorProducts, found: Predicted) -> _Then | None:
    """Return the latents that would follow; None if it takes too long."""
    from scipy.sparse import csr_array

    pairs, contexts = len(found.earned), len(found.pair)
    place = found.pair, np.arange(contexts)
    mixtures = csr_array((found.going, place), shape=(pairs, contexts))
    if transitions.too_late_for(lambda: products.edges(pairs)):
        return None
    priors = products.priors(mixtures)
    lost = found.lost(priors.kept)
    on = np.where(lost | (found.ended >= 1), 0.0, 1 - found.ended)
    weights = csr_array(priors.weights * on[:, None])
    if transitions.end is not None:
        place = np.arange(pairs), np.full(pairs, transitions.end)
        end = csr_array((np.where(lost, 0.0, found.ended), place), shape=weights.shape)
        weights = csr_array(weights + end)
    weights.eliminate_zeros()

    pair = np.repeat(np.arange(pairs), np.diff(weights.indptr))
    return _Then(Links(pair, weights.indices.astype(np.int64), weights.data))


def _products(transitions: Transitions, products: FactorProducts, found: Predicted) -> _Then:
    """Return products of factors that are not multiplied out, and END."""
    kept = products.kept[products.of_contexts] if found.kept is None else found.kept
    lost = found.lost(kept)
    usable = (kept > 0) & (found.going > 0) & ~lost[found.pair]
    size = len(products.rows)
    pairs, going = np.empty(0, dtype=np.int64), np.empty(0)
    if usable.any():
        pairs, going = distinct_weights(
            found.pair[usable] * size + products.of_contexts[usable], found.going[usable]
        )
    links = Links(pairs // size, -1 - pairs % size, going)
    over = np.flatnonzero(np.where(lost, 0.0, found.ended) > 0)
    if len(over):
        assert transitions.end is not None
        end = Links(over, np.full(len(over), transitions.end), found.ended[over])
        links = Links.joined(links, end)
    return _Then(links, products.factors.latents, products.rows)


def _branches(
    transitions: Transitions, codes: Ints, node: Ints, earned: Array, then: _Then
) -> Untried:
    """Put the branches of each interface node together."""
    schema, links, builder = transitions.schema, then.links, BlockBuilder()
    pair, widths = np.unique(links.owner, return_counts=True)
    latents = links.add_latents(builder, then.factors, then.rows)
    follows = builder.sums(widths, latents, links.shares())
    none = np.zeros(len(pair))
    earns = builder.utilities(schema.utility, earned[pair], none, none)
    both = np.column_stack([earns, follows]).ravel()
    branches = builder.products(np.full(len(pair), 2), both)
    keys = np.column_stack([node[pair], codes[pair] - 1])
    sort = np.lexsort(keys.T[::-1])
    domains = [transitions.table.columns[name].domain for name in schema.decisions]
    roots, above = add_decisions(builder, schema.decisions, domains, keys[sort], branches[sort])
    order = [4 * links.owner, *(4 * pair + k for k in (1, 2, 3)), 4 * len(node) + above]
    network, _ = builder.build(roots, np.concatenate(order))
    return Untried(network, tuple(np.unique(node[pair]).tolist()))
