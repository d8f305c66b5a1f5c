"""Branches of states in which decisions, or all decisions, were never tried.

Where states are many, so are their untried decisions. Then only those are kept that are best for
some number of steps to go, up to the length of an episode: others would never be chosen. That is
found out by planning with what factors predict alone, for fewer steps if a step takes long, and
for one if it would take too long.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rspmn.context_trees import Contexts
from rspmn.data.keys import group_weights
from rspmn.learn.successors.avoided import AvoidedDecisions
from rspmn.learn.successors.predict import Predicted
from rspmn.learn.successors.products import FactorProducts
from rspmn.learn.successors.transitions import SuccessorWeights, Transitions
from rspmn.learn.successors.unobserved_states import CHUNK, Beyond
from rspmn.learn.successors.untried import (
    MOST_BRANCHES,
    NO_BRANCHES,
    UntriedBranches,
    branches_of,
)
from rspmn.model import Untried
from rspmn.types import Array, Bools, Ints

#: Plans are not longer than this, nor so long that they take more multiplications, unless they are
#: shorter than this.
MOST_STEPS, MOST_WORK, LEAST_STEPS = 100, 4_000_000_000, 6
#: A decision is likely if it has this share of the probability of the most likely one.
LIKELY = 0.5


@dataclass(frozen=True, eq=False)
class Extrapolated:
    """What decisions would do that were never tried."""

    untried: UntriedBranches  # in interface nodes where others were
    #: In interface nodes where none was: states that were only arrived at, and beyond the log.
    alone: Untried | None
    never_best: int  # decisions that were left out, as they would not be chosen


def extrapolate(
    transitions: Transitions, weights: SuccessorWeights, beyond: Beyond, steps: float
) -> Extrapolated:
    """Return the branches of decisions never tried, where states beyond the log are nodes.

    Parameters
    ----------
    transitions
        What was logged, with all states: those beyond the log, too.
    weights
        Of all S_L, with factors of the next state.
    beyond
        What decisions would do in all states.
    steps
        The mean length of an episode.
    """
    factors, made = weights.factors, beyond.made
    if factors is None:
        return Extrapolated(NO_BRANCHES, None, 0)
    node, of_states = np.unique(transitions.of_states, return_inverse=True)
    shape = len(node), len(made)
    share = _shares(transitions, of_states, len(node))
    pair = (of_states[:, None] * len(made) + np.arange(len(made))).ravel()
    found = beyond.predicted.joined(pair, np.repeat(share, len(made)), len(node) * len(made))
    tried = np.zeros(shape, dtype=bool)
    states, decisions = np.nonzero(beyond.tried)
    tried[of_states[states], decisions] = True
    avoided, chances = _behaviour(transitions, beyond, of_states, share, len(node))
    avoided |= found.alien.reshape(shape)
    # Where nobody ever was and nothing was compared, what the logger is likely to have done.
    unknown = np.asarray(~tried.any(axis=1) & avoided.all(axis=1))[:, None]
    likely = (chances > 0) & (chances >= LIKELY * chances.max(axis=1, keepdims=True))
    avoided &= ~(unknown & likely)
    wanted, all_of_them = ~tried, int((~tried).sum())
    if all_of_them > MOST_BRANCHES:
        products, horizon = FactorProducts(factors, found.leaves), 1
        if products.exact is not None:
            found = replace(found, kept=products.kept[products.of_contexts])
            affordable = max(LEAST_STEPS, MOST_WORK / max(1, products.exact.work))
            horizon = int(min(MOST_STEPS, np.ceil(steps), affordable))
        plan = _Plan(products, found, node)
        some = tried.any(axis=1, keepdims=True)
        best = plan.best(np.ones_like(tried), horizon) | plan.best(~some | tried, horizon)
        allowed = tried | ~avoided
        allowed |= ~allowed.any(axis=1, keepdims=True)
        wanted &= best | plan.best(allowed, horizon)
    acted = np.asarray(tried.any(axis=1))[:, None]
    strange = _strange(transitions, of_states, len(node))[:, None]

    def branches(kept: Bools) -> Untried | None:
        at, decision = np.nonzero(wanted & kept)
        predicted = found.of(at * len(made) + decision)
        return branches_of(transitions, weights, made, node[at], decision, predicted)

    untried = UntriedBranches(branches(acted & ~avoided), branches(acted & avoided))
    return Extrapolated(
        untried, branches(~acted & ~avoided & ~strange), all_of_them - int(wanted.sum())
    )


def _shares(transitions: Transitions, of_states: Ints, nodes: int) -> Array:  # [states]
    """Return the share of each state in the steps of its interface node; of one alone it is all."""
    steps = transitions.states.of_steps[transitions.window]
    visits = group_weights(steps, transitions.counts, len(of_states))
    total = group_weights(of_states, visits, nodes)[of_states]
    alone = np.bincount(of_states, minlength=nodes)[of_states]
    return np.where(total > 0, visits / np.where(total > 0, total, 1.0), 1 / alone)


def _strange(transitions: Transitions, of_states: Ints, nodes: int) -> Bools:  # [nodes]
    """Return which interface nodes have a value with which nothing was ever done."""
    found = np.zeros(nodes, dtype=bool)
    steps = transitions.states.of_steps[transitions.window]
    for name in transitions.schema.information_sets[0]:
        codes = transitions.state_codes[name]
        found[of_states[~np.isin(codes, codes[steps])]] = True
    return found


def _behaviour(
    transitions: Transitions, beyond: Beyond, of_states: Ints, share: Array, nodes: int
) -> tuple[Bools, Array]:
    """Return which decisions the logger avoided in interface nodes, and how often it makes them.

    Both are [nodes, decisions]. States have a `share` of the nodes that they are in, `of_states`.
    """
    names, made = transitions.schema.information_sets[0], beyond.made
    behaviour = AvoidedDecisions(transitions, transitions.window, transitions.counts)
    states = np.stack([transitions.state_codes[name] for name in names], axis=1)
    sizes = np.concatenate([states.max(axis=0) + 1, made.sizes])
    avoided, chances = np.zeros((nodes, len(made)), dtype=bool), np.zeros((nodes, len(made)))
    step, some = max(1, CHUNK // (20 * len(made))), np.flatnonzero(share > 0)
    for start in range(0, len(some), step):
        here = some[start : start + step]
        codes = np.repeat(states[here], len(made), axis=0)
        codes = np.hstack([codes, np.tile(made.codes, (len(here), 1))])
        asked = Contexts((*names, *made.names), sizes, codes)
        at, shape = of_states[here], (len(here), len(made))
        np.logical_or.at(avoided, at, behaviour(asked).reshape(shape))
        np.add.at(chances, at, share[here, None] * behaviour.chances(asked).reshape(shape))
    return avoided, chances


class _Plan:
    """The best decisions by what factors predict."""

    def __init__(self, products: FactorProducts, found: Predicted, node: Ints) -> None:
        self.products, self.node, self.found = products, node, found

    def best(self, allowed: Bools, horizon: int) -> Bools:  # [states, decisions]
        """Return which decisions are the best of those allowed, for some number of steps to go."""
        chosen, worth = np.zeros_like(allowed), self.found.earned.reshape(allowed.shape)
        values = np.zeros(int(self.node.max()) + 1)
        for steps in range(horizon):
            if steps:
                worth = self._worth(values).reshape(allowed.shape)
            worth = np.where(allowed, worth, -np.inf)
            best = worth.argmax(axis=1)
            chosen[np.arange(len(best)), best] = True
            values[self.node] = worth.max(axis=1)
        return chosen

    @cached_property
    def _lost(self) -> Bools:  # [pairs]
        return self.found.lost(self.products.kept[self.products.of_contexts])

    def _worth(self, values: Array) -> Array:  # [pairs]
        """Return what decisions are worth, given what interface nodes are."""
        found, expect = self.found, self.products.exact
        assert expect is not None, "plans of several steps are made where it is affordable"
        with np.errstate(invalid="ignore"):  # of products that keep nothing
            after = expect(np.resize(values, expect.factors.interfaces))
        then = found.going * np.nan_to_num(after[self.products.of_contexts])
        then = group_weights(found.pair, then, len(found.earned))
        worst = (1 - found.ended) * values.min()  # where nothing known follows
        return np.asarray(found.earned + np.where(self._lost, worst, then))
