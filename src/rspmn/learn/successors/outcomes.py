"""What decisions earn, and whether they end an episode, as all states predict it together.

Where rewards vary, a branch that was logged twice and succeeded twice seems certain to succeed, and
a maximum over many such branches promises too much. So the outcome of a branch is shared, too:
trees of the state and the decisions predict the utility, and whether the episode ends given the
utility (`rspmn.learn.successors.predict`). The prediction is a Dirichlet prior, worth κ_u steps,
which is chosen as the strength of the factors is: by predicting each step when it is left out.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rspmn.context_trees import Contexts
from rspmn.data.keys import group_weights
from rspmn.infer.compiled.layers import ranges
from rspmn.learn.successors.predict import Predictor, UnseenContexts
from rspmn.learn.successors.priors import Factors
from rspmn.learn.successors.strength import Strength, best_strength
from rspmn.learn.successors.transitions import Transitions, contexts_of
from rspmn.successor_counts import SharedUtilities
from rspmn.types import Array, Ints


@dataclass(frozen=True, eq=False)
class SharedOutcomes:
    """What is added to the logged steps of each S_L: predicted outcomes, in steps."""

    strength: Strength
    steps: Array  # [sites], κ_u, divided among the S_L of a branch; 0 if nothing is added
    ended: Array  # [sites], those after which the episode is over
    utility: Array  # [sites], their mean utility
    variance: Array  # [sites], of their utilities
    leaf: Ints  # [sites], the leaf of the tree of utilities that predicts most of them
    leaf_steps: Array  # [nodes of the tree], the logged steps behind each
    site: Ints  # [contexts], sorted
    going: Array  # [contexts], steps that go on
    leaves: Ints  # [components, contexts], of the factors of the next state

    def utilities(self, outcome: Ints, site: Ints) -> SharedUtilities:
        """Return what is predicted of outcomes, each with an S_L, for the counts of a model."""
        order = np.argsort(outcome)
        order = order[self.steps[site[order]] > 0]
        of = site[order]
        leaves, leaf = np.unique(self.leaf[of], return_inverse=True)
        share = self.steps[of] / self.strength.best
        return SharedUtilities(
            self.strength.best, self.strength.least, tuple(outcome[order].tolist()),
            tuple(share.tolist()), tuple(self.utility[of].tolist()),
            tuple(self.variance[of].tolist()), tuple(leaf.tolist()),
            tuple(self.leaf_steps[leaves].tolist()),
        )  # fmt: skip


def share_outcomes(transitions: Transitions, factors: Factors) -> SharedOutcomes | None:
    """Return what is added to the logged steps of each S_L; None if nothing is.

    Nothing is where utilities are the same whenever a decision is made in a state; where something
    is observed between the decision and the next state; and where the next state has only one
    component, so that states have nothing in common.
    """
    schema = transitions.schema
    if len(factors.components) < 2 or any(schema.information_sets[1:]):
        return None
    node = transitions.of_states[transitions.states.of_steps[transitions.window]]
    if (node < 0).any() or not transitions.boxes[node].all() or transitions.too_late_for():
        return None
    branches = _Branches(transitions, factors, node)
    if not branches.vary:
        return None
    strength = branches.strength()
    return branches.predicted(strength) if strength.best else None


class _Branches:
    """The transitions by branch: what was decided in an interface node."""

    def __init__(self, transitions: Transitions, factors: Factors, node: Ints) -> None:
        schema = transitions.schema
        names = (*schema.information_sets[0], *schema.decisions)
        self.transitions, self.factors = transitions, factors
        self.contexts, self.context = contexts_of(transitions, names, transitions.window)
        decided = self.contexts.key(schema.decisions)[self.context]
        key = node * (int(decided.max()) + 1) + decided
        self.branch = np.unique(key, return_inverse=True)[1].astype(np.int64)  # [transitions]
        self.count = int(self.branch.max()) + 1
        self.code = transitions.table.codes[schema.utility][transitions.window].astype(np.int64) + 1
        self.codes = int(self.code.max()) + 1

    @cached_property
    def predictor(self) -> Predictor:
        """What predicts utilities."""
        return Predictor(self.transitions, self.factors)

    @property
    def vary(self) -> bool:
        """Whether the utility varies in any context."""
        pairs = np.unique(self.context * self.codes + self.code)
        return len(pairs) > len(self.contexts)

    def strength(self) -> Strength:
        """Return how many steps the prediction is worth to a branch."""
        transitions, earned = self.transitions, self.predictor.earned
        node = earned.trees.find(self.contexts, 0)[self.context]
        seen = np.asarray(earned.counts[node, self.code]).ravel() - transitions.share
        prior = np.maximum(seen, 0) / np.maximum(earned.totals[node] - transitions.share, 1)
        return best_strength(
            self.branch, self.code, self.codes, transitions.counts, transitions.share, prior
        )

    def predicted(self, strength: Strength) -> SharedOutcomes:
        """Return the prediction for all S_L, worth some steps to each branch."""
        sites = self.transitions.sites
        found = self.predictor.utilities(self._asked())
        node = found.leaf
        site = self._site_of(found.pair, found.code)
        steps = strength.best * found.share
        total = group_weights(site, steps, sites)
        means = self.predictor.mean_utilities(node, found.code)
        utility = group_weights(site, steps * means, sites) / np.maximum(total, 1e-300)
        order = np.lexsort((steps, site))
        last = order[np.append(site[order][1:] != site[order][:-1], True)]
        leaf = np.zeros(sites, dtype=np.int64)
        leaf[site[last]] = node[last]
        spread = group_weights(site, steps * (means - utility[site]) ** 2, sites)
        variance = spread / np.maximum(total, 1e-300)
        going = steps * (1 - found.over)
        kept = np.flatnonzero(going > 0)
        kept = kept[np.argsort(site[kept], kind="stable")]
        leaves = self.factors.leaves(found.contexts.only(self.factors.contexts.names))
        return SharedOutcomes(
            strength, total, group_weights(site, steps * found.over, sites), utility, variance,
            leaf, self.predictor.earned.totals, site[kept], going[kept], leaves[:, kept],
        )  # fmt: skip

    def _asked(self) -> UnseenContexts:
        """Return the contexts of each branch, by how often they were seen in it."""
        counts = self.transitions.counts
        size = len(self.contexts)
        key, which = np.unique(self.branch * size + self.context, return_inverse=True)
        seen = group_weights(which, counts, len(key))
        branch = key // size
        rows = self.contexts.codes[key % size]
        contexts = Contexts(self.contexts.names, self.contexts.sizes, rows)
        return UnseenContexts(contexts, branch, seen / group_weights(branch, seen)[branch])

    def _site_of(self, branch: Ints, code: Ints) -> Ints:
        """Return the S_L of a branch that each of some utilities belongs to.

        It is the one whose logged steps have the nearest mean.
        """
        transitions = self.transitions
        pairs = np.unique(self.branch * transitions.sites + transitions.site)
        owner, site = np.divmod(pairs, transitions.sites)
        first = np.searchsorted(owner, np.arange(self.count + 1))
        found = site[first[branch]]
        several = np.flatnonzero(np.diff(first)[branch] > 1)
        if not len(several):
            return found
        mean = group_weights(transitions.site, transitions.counts * self.predictor.numbers)
        mean /= np.maximum(group_weights(transitions.site, transitions.counts), 1e-300)
        of_codes = self.predictor.mean_utilities(
            np.zeros(self.codes, np.int64), np.arange(self.codes)
        )
        keys, which = np.unique(branch[several] * self.codes + code[several], return_inverse=True)
        owner, asked = np.divmod(keys, self.codes)
        place, starts = ranges(first[owner], first[owner + 1])  # all S_L of each branch
        key = np.repeat(np.arange(len(keys)), np.diff(starts))
        away = np.abs(mean[site[place]] - of_codes[asked[key]])
        nearest = np.lexsort((away, key))[starts[:-1]]
        found[several] = site[place[nearest]][which]
        return found
