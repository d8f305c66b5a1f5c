"""What decisions would do in states in which they were never made, as factors predict it."""

from dataclasses import dataclass

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.learn.successors.priors import Factors
from rspmn.learn.successors.transitions import Contexts, Transitions, contexts_of
from rspmn.learn.successors.trees import Tied
from rspmn.types import Array, Bools, Ints

#: A branch is not extrapolated if more than this share of it leads to states of no interface node.
MOST_LOST = 0.01


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
    kept: Array | None = None  # [contexts], the mass on states of interface nodes, if computed

    def lost(self, kept: Array) -> Bools:  # [pairs]
        """Return which pairs lead to states of no interface node, by what contexts keep."""
        pairs = len(self.earned)
        return group_weights(self.pair, self.going * (kept <= 0), pairs) > MOST_LOST

    def of(self, chosen: Ints) -> "Predicted":
        """Return what comes of some pairs only, sorted."""
        place = np.full(len(self.earned), -1)
        place[chosen] = np.arange(len(chosen))
        here = np.flatnonzero(place[self.pair] >= 0)
        return Predicted(
            self.earned[chosen], self.ended[chosen], place[self.pair[here]], self.going[here],
            self.leaves[:, here], None if self.kept is None else self.kept[here],
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
        self.factors, self.utility = factors, schema.utility
        names = (*schema.information_sets[0], *schema.decisions)
        logged, context = contexts_of(transitions, names, window)
        code = transitions.table.codes[schema.utility][window].astype(np.int64) + 1
        self.sizes = int(code.max()) + 1  # of the utility's codes, as contexts have them
        self.earned = Tied.learn(logged, context, [code], counts)
        self.numbers = transitions.table.columns[schema.utility].data[window]  # [transitions]
        self.means = self.earned.means(logged, context, self.numbers, counts)
        of_codes = group_weights(code, counts * self.numbers)
        self._of_codes = of_codes / np.maximum(group_weights(code, counts), 1e-300)
        # An episode that always ended with some utility ends with it elsewhere too.
        over = transitions.over
        self.ends = None
        if over.any():
            logged, context = contexts_of(transitions, (*names, schema.utility), window)
            self.ends = Tied.learn(logged, context, [over.astype(np.int64)], counts, self.utility)

    def __call__(self, asked: UnseenContexts, pairs: int) -> Predicted:
        """Return what would come of pairs, given each utility that may be earned."""
        node = self.earned.trees.find(asked.contexts, 0)
        mean = group_weights(asked.pair, asked.share * self.means[node], pairs)
        if self.ends is None and self.utility not in self.factors.contexts.names:
            leaves = self.factors.leaves(asked.contexts.only(self.factors.contexts.names))
            return Predicted(mean, np.zeros(pairs), asked.pair, asked.share, leaves)
        found = self.utilities(asked)
        ended = group_weights(found.pair, found.share * found.over, pairs)
        leaves = self.factors.leaves(found.contexts.only(self.factors.contexts.names))
        return Predicted(mean, ended, found.pair, found.share * (1 - found.over), leaves)

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
