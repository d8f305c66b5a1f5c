"""What decisions would do in states in which they were never made, as factors predict it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rspmn.context_trees import Contexts
from rspmn.data.distinct import find_sorted
from rspmn.data.keys import group_weights
from rspmn.learn.successors.priors import Factors
from rspmn.learn.successors.transitions import Transitions, contexts_of
from rspmn.learn.successors.trees import learn_tied
from rspmn.types import Array, Bools, Ints

#: A branch is not extrapolated if more than this share of it leads to states of no interface node.
MOST_LOST = 0.01
#: A leaf says nothing of a value that it never had, if it was expected there at least so often.
LEAST_EXPECTED = 3.0


@dataclass(frozen=True, eq=False)
class UnseenContexts:
    """Contexts that were never seen: decisions in states. A pair is an interface node and those."""

    contexts: Contexts  # of the state and the decisions
    pair: Ints  # [contexts]
    share: Array  # [contexts], of the pair's states; they sum to 1 for each pair


@dataclass(frozen=True, eq=False)
class Predicted:
    """What would come of each pair: the contexts in which it goes on, and their leaves."""

    earned: Array  # [pairs], the mean utility
    ended: Array  # [pairs], how often the episode is over
    pair: Ints  # [contexts]
    going: Array  # [contexts], the share of the pair that goes on in it
    leaves: Ints  # [components, contexts]
    #: [pairs], whether leaves say nothing of some value of the state: they never had it, and not by
    #: chance.
    alien: Bools
    kept: Array | None = None  # [contexts], the mass on states of interface nodes, if computed

    def lost(self, kept: Array) -> Bools:  # [pairs]
        """Return which pairs lead to states of no interface node, by what contexts keep."""
        pairs = len(self.earned)
        return group_weights(self.pair, self.going * (kept <= 0), pairs) > MOST_LOST

    def joined(self, into: Ints, share: Array, pairs: int) -> "Predicted":
        """Return what comes of pairs that several of these are shares of.

        `into`: which of them each is a share of. [pairs]
        """
        alien, some = np.zeros(pairs, dtype=bool), share[self.pair] > 0
        alien[into[self.alien & (share > 0)]] = True
        return Predicted(
            group_weights(into, share * self.earned, pairs),
            group_weights(into, share * self.ended, pairs),
            into[self.pair[some]], (share[self.pair] * self.going)[some], self.leaves[:, some],
            alien, None if self.kept is None else self.kept[some],
        )  # fmt: skip

    def of(self, chosen: Ints) -> "Predicted":
        """Return what comes of some pairs only, sorted."""
        place = np.full(len(self.earned), -1)
        place[chosen] = np.arange(len(chosen))
        here = np.flatnonzero(place[self.pair] >= 0)
        return Predicted(
            self.earned[chosen], self.ended[chosen], place[self.pair[here]], self.going[here],
            self.leaves[:, here], self.alien[chosen],
            None if self.kept is None else self.kept[here],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class PredictedUtilities:
    """What contexts would earn: each utility that may be, and whether the episode is then over."""

    contexts: Contexts  # with the utility
    pair: Ints  # [contexts]
    leaf: Ints  # [contexts], of the tree of utilities
    code: Ints  # [contexts], of the utility
    share: Array  # [contexts], sums to 1 for each pair
    over: Array  # [contexts], how often the episode is over


class Predictor:
    """Predicts what decisions would earn, whether they would end, and in what contexts they go on.

    Parameters
    ----------
    transitions
        What was logged.
    factors
        Of the next state.
    """

    def __init__(self, transitions: Transitions, factors: Factors) -> None:
        schema, window, counts = transitions.schema, transitions.window, transitions.counts
        self.transitions, self.factors, self.utility = transitions, factors, schema.utility
        self.state = schema.information_sets[0]
        self.names = names = (*self.state, *schema.decisions)
        logged, context = contexts_of(transitions, names, window)
        code = transitions.table.codes[schema.utility][window].astype(np.int64) + 1
        self.sizes = int(code.max()) + 1  # of the utility's codes, as contexts have them
        self.earned = learn_tied(logged, context, [code], counts)
        self.numbers = transitions.table.columns[schema.utility].data[window]  # [transitions]
        self.means = self.earned.means(logged, context, self.numbers, counts)
        of_codes = group_weights(code, counts * self.numbers)
        self._of_codes = of_codes / np.maximum(group_weights(code, counts), 1e-300)
        # An episode that always ended with some utility ends with it elsewhere too.
        over = transitions.over
        self.ends = None
        if over.any():
            logged, context = contexts_of(transitions, (*names, schema.utility), window)
            self.ends = learn_tied(logged, context, [over.astype(np.int64)], counts, self.utility)

    def __call__(self, asked: UnseenContexts, pairs: int) -> Predicted:
        """Return what would come of pairs, given each utility that may be earned."""
        node = self.earned.trees.find(asked.contexts, 0)
        mean = group_weights(asked.pair, asked.share * self.means[node], pairs)
        alien = np.zeros(pairs, dtype=bool)
        alien[asked.pair[self._of_rewards.lacks(asked.contexts, node)]] = True
        names = self.factors.contexts.names
        if self.ends is None and self.utility not in names:
            contexts, pair, going, ended = asked.contexts, asked.pair, asked.share, np.zeros(pairs)
        else:
            found = self.utilities(asked)
            contexts, pair, going = found.contexts, found.pair, found.share * (1 - found.over)
            ended = group_weights(found.pair, found.share * found.over, pairs)
        leaves = self.factors.leaves(contexts.only(names))
        for within, leaf in zip(self._of_components, leaves, strict=True):
            alien[pair[within.lacks(contexts, leaf) & (going > 0)]] = True
        return Predicted(mean, ended, pair, going, leaves, alien)

    @cached_property
    def _of_rewards(self) -> "_Within":
        names, transitions = self.names, self.transitions
        logged, context = contexts_of(transitions, names, transitions.window)
        counts = group_weights(context, transitions.counts)
        leaf = self.earned.trees.find(logged, 0)
        return _Within(logged.only(self.state), counts, leaf, self.earned.totals)

    @cached_property
    def _of_components(self) -> "list[_Within]":
        on, names = ~self.transitions.over, self.factors.contexts.names
        logged, context = contexts_of(self.transitions, names, self.transitions.window[on])
        counts = group_weights(context, self.transitions.counts[on])
        state = logged.only([name for name in self.state if name in names])
        totals = self.factors.tied.totals
        return [_Within(state, counts, leaf, totals) for leaf in self.factors.leaves(logged)]

    def utilities(self, asked: UnseenContexts) -> PredictedUtilities:
        """Return each utility that contexts may earn."""
        node = self.earned.trees.find(asked.contexts, 0)
        found = self.earned.distribution(asked.contexts).tocoo()
        full = asked.contexts.with_variable(self.utility, self.sizes, found.row, found.col)
        over = np.zeros(len(found.row))
        if self.ends is not None:
            over = self.ends.distribution(full)[:, [1]].toarray().ravel()
        return PredictedUtilities(
            full, asked.pair[found.row], node[found.row], found.col.astype(np.int64),
            asked.share[found.row] * found.data, over,
        )  # fmt: skip

    def mean_utilities(self, leaf: Ints, code: Ints) -> Array:
        """Return the mean of utilities with some codes in leaves of the tree of utilities.

        They are such that the mean over all codes of a leaf is that of its logged steps.
        """
        used, which = np.unique(leaf, return_inverse=True)
        within = self.earned.counts[used] @ self._of_codes / self.earned.totals[used]
        return np.asarray(self._of_codes[code] + (self.means[used] - within)[which])


class _Within:
    """Which values of each variable the leaves of a tree have.

    Parameters
    ----------
    contexts
        Those that were logged, of the variables of the state.
    counts
        How often. [contexts]
    leaf
        The leaf of each. [contexts]
    totals
        The steps in each node of the tree. [nodes]
    """

    def __init__(self, contexts: Contexts, counts: Array, leaf: Ints, totals: Array) -> None:
        self.names, self.totals = contexts.names, totals
        #: Of each variable, the shares of its codes, and leaf · codes + code of those seen, sorted.
        self.seen: list[tuple[Array, Ints]] = []
        for codes, values in zip(contexts.columns, contexts.sizes.tolist(), strict=True):
            share = group_weights(codes, counts, values) / counts.sum()
            self.seen.append((share, np.unique(leaf * values + codes)))

    def lacks(self, contexts: Contexts, leaf: Ints) -> Bools:  # [contexts]
        """Return which contexts have a value that is lacking in their leaf."""
        found = np.zeros(len(leaf), dtype=bool)
        for name, (share, seen) in zip(self.names, self.seen, strict=True):
            codes = np.minimum(contexts.columns[contexts.names.index(name)], len(share) - 1)
            often = self.totals[leaf] * share[codes] >= LEAST_EXPECTED
            found |= often & (find_sorted(seen, leaf * len(share) + codes) < 0)
        return found
