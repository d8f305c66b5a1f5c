"""Decisions that were never tried in a state, and what factors predict would follow them.

A branch of the template needs a logged step. But contexts share their parameters: what a decision
did elsewhere predicts what it would do here, unless trees set this state apart. Such branches are
extrapolated. They are kept beside the template, not in it, and queries use them only if asked to.

A decision is not extrapolated but unavailable where, by its frequency, it should have been tried
often.
"""

from dataclasses import dataclass

import numpy as np

from rspmn.availability import label
from rspmn.circuit import NetworkBuilder
from rspmn.data.keys import group_weights
from rspmn.infer.compiled.layers import ranges
from rspmn.learn.structure.contingency import distinct_weights
from rspmn.learn.successors.priors import Factors, mixed_priors, too_much
from rspmn.learn.successors.transitions import Contexts, Transitions, contexts_of
from rspmn.learn.successors.trees import Sparse, Tied
from rspmn.model import Untried
from rspmn.types import Array, Bools, Ints
from rspmn.values import Value

#: A branch is not extrapolated if more than this share of it leads to states of no interface node.
MOST_LOST = 0.01
#: With more branches than this, none is extrapolated.
MOST_BRANCHES = 20_000


def untried_branches(
    transitions: Transitions, factors: Factors, at: Ints, counts: Array, unavailable_from: float
) -> Untried | None:
    """Return the branches of decisions never tried, if there are any.

    Parameters
    ----------
    transitions
        What was logged.
    factors
        Of the next state.
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
    if not 0 < len(node) <= MOST_BRANCHES:
        return None
    asked = _ask(transitions, made, node, decision, here, at[here], counts[here])
    if too_much(factors, len(asked.contexts)):
        return None
    predicted = _predict(transitions, factors, asked, len(node))
    if predicted is None or transitions.too_late_for(predicted[1].nnz):
        return None
    return _branches(transitions, made.codes[decision], node, *predicted)


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


@dataclass(frozen=True, eq=False)
class _Asked:
    """Contexts that were never seen: a decision in each state of an interface node."""

    contexts: Contexts  # of the state and the decisions
    pair: Ints  # [contexts], which node and decisions
    share: Array  # [contexts], of the pair's states; they sum to 1 for each pair


def _ask(
    transitions: Transitions,
    made: Contexts,
    node: Ints,
    decision: Ints,
    here: Ints,
    at: Ints,
    counts: Array,
) -> _Asked:
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
    return _Asked(Contexts((*names, *made.names), sizes, codes), pair, share)


def _predict(
    transitions: Transitions, factors: Factors, asked: _Asked, pairs: int
) -> tuple[Array, Sparse] | None:  # [pairs], [pairs, interfaces]
    """Return the mean utility of each pair, and the weights of what would follow.

    A pair that leads to states of no interface node has no weights. None if it takes too long.
    """
    from scipy.sparse import csr_array

    utility, window = transitions.schema.utility, transitions.window
    logged, context = contexts_of(transitions, asked.contexts.names, window)
    code = transitions.table.codes[utility][window].astype(np.int64) + 1  # as contexts have it
    tied = Tied.learn(logged, context, [code], transitions.counts)
    means = tied.means(
        logged, context, transitions.table.columns[utility].data[window], transitions.counts
    )
    node = tied.trees.find(asked.contexts, 0)
    mean = group_weights(asked.pair, asked.share * means[node], pairs)
    # Given each utility that may be earned: whether the episode ends and, if not, what follows. An
    # episode that always ended with this utility ends here too.
    utilities = tied.distribution(asked.contexts).tocoo()
    full = asked.contexts.with_variable(utility, int(code.max()) + 1, utilities.row, utilities.col)
    share, pair = asked.share[utilities.row] * utilities.data, asked.pair[utilities.row]
    over = transitions.over
    logged, context = contexts_of(transitions, full.names, window)
    ends = Tied.learn(logged, context, [over.astype(np.int64)], transitions.counts, utility)
    over_then = ends.distribution(full)[:, [1]].toarray().ravel() if over.any() else 0.0 * share
    ended = group_weights(pair, share * over_then, pairs)
    going = share * (1 - over_then)
    shape = (pairs, len(full))
    mixtures = csr_array((going, (pair, np.arange(len(full)))), shape=shape)
    leaves = factors.leaves(full.only(factors.contexts.names))
    priors = mixed_priors(factors, leaves, mixtures, transitions.deadline)
    if priors is None:
        return None
    lost = group_weights(pair, going * (priors.kept <= 0), pairs) > MOST_LOST
    on = np.where(lost | (ended >= 1), 0.0, 1 - ended)
    weights = csr_array(priors.weights * on[:, None])
    if transitions.end is not None:
        place = np.arange(pairs), np.full(pairs, transitions.end)
        end = csr_array((np.where(lost, 0.0, ended), place), shape=weights.shape)
        weights = csr_array(weights + end)
    weights.eliminate_zeros()
    return mean, weights


def _branches(
    transitions: Transitions, codes: Ints, node: Ints, earned: Array, weights: Sparse
) -> Untried | None:
    """Put the branches of each interface node together, decision by decision."""
    schema = transitions.schema
    builder = NetworkBuilder()
    domains = [transitions.table.columns[name].domain for name in schema.decisions]
    latents: dict[int, int] = {}
    grown: dict[int, dict[tuple[Value, ...], int]] = {}
    for pair, here in enumerate(node.tolist()):
        edges = slice(int(weights.indptr[pair]), int(weights.indptr[pair + 1]))
        if edges.start == edges.stop:  # nothing known follows
            continue
        to, weight = weights.indices[edges].tolist(), weights.data[edges]
        children = [latents.setdefault(i, builder.latent(i)) for i in to]
        then = builder.sum(children, (weight / weight.sum()).tolist())
        branch = builder.product([builder.utility(schema.utility, float(earned[pair])), then])
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
