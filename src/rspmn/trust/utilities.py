"""What outcomes earn, by where they lead.

The utility of an outcome may depend on its successor: the goal is paid when it is reached. Each
successor has a mean of its own, drawn towards that of the outcome as far as successors do not
matter: with σ² the variance of rewards of one outcome and successor, and τ² that of means of
successors of one outcome, the outcome's mean is worth σ² / τ² steps.
"""

from dataclasses import dataclass

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.successor_counts import SharedUtilities
from rspmn.types import Array, Ints, significant

#: The pooled variance of utilities is worth so many steps.
POOLED = 3.0
#: The most steps that the mean of an outcome is worth: successors do not matter.
MOST = 1e9


@dataclass(frozen=True, eq=False)
class Added:
    """What shared predictions add to the logged utilities of outcomes."""

    steps: Array  # [outcomes], that a prediction is worth; 0 where there is none
    least: float  # the share of these that the log does not rule out
    mean: Array  # [outcomes]
    common: Array  # [outcomes], the standard error that outcomes of one leaf have in common
    own: Array  # [outcomes], the standard deviation of means about that of the leaf
    leaf: Ints  # [outcomes]
    kind: Ints  # [outcomes], of one leaf and one mean: how probable they are is one number
    kinds: Array  # [kinds], the steps behind each

    @classmethod
    def of(cls, shared: SharedUtilities | None, outcomes: int) -> "Added":
        """Return the predictions of a model's counts."""
        steps, mean, common, own = np.zeros((4, outcomes))
        leaf = np.zeros(outcomes, dtype=np.int64)
        kind = np.zeros(outcomes, dtype=np.int64)
        if shared is None or not shared.strength:
            return cls(steps, 0.0, mean, common, own, leaf, kind, np.ones(1))
        given = np.flatnonzero(np.array(shared.share) > 0)  # others are worth no step
        at, share = np.array(shared.outcome, dtype=np.int64)[given], np.array(shared.share)[given]
        steps[at] = shared.strength * share
        mean[at], leaf[at] = np.array(shared.mean)[given], np.array(shared.leaf)[given]
        variance = np.array(shared.variance)[given]
        common[at] = np.sqrt(variance / np.array(shared.leaf_steps)[leaf[at]])
        # A prior worth κ steps: means have the variance of single utilities, divided by κ.
        own[at] = np.sqrt(variance / max(shared.least_strength, 1.0))
        keys = np.stack([leaf[at], np.unique(significant(mean[at]), return_inverse=True)[1]])
        _, first, kind[at] = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        kinds, of_leaf = group_weights(kind[at], share), group_weights(leaf[at], share)
        home = leaf[at][first]
        kinds = kinds / of_leaf[home] * np.array(shared.leaf_steps)[home]
        least = min(1.0, shared.least_strength / shared.strength)
        return cls(steps, least, mean, common, own, leaf, kind, kinds)

    def draw_odds(self, draws: int, rng: np.random.Generator) -> Array:  # [draws, outcomes]
        """Return by how much more probable outcomes are than predicted.

        A leaf is a Dirichlet draw by its steps; gamma variables are, once they are scaled in each
        branch.
        """
        drawn = rng.standard_gamma(self.kinds, (draws, len(self.kinds))) / self.kinds
        return np.asarray(drawn[:, self.kind])

    def draw(self, draws: int, rng: np.random.Generator) -> Array:  # [draws, outcomes]
        """Return the means, drawn."""
        if not self.own.any():
            return np.broadcast_to(self.mean, (draws, len(self.mean)))
        common = rng.standard_normal((draws, int(self.leaf.max()) + 1))[:, self.leaf]
        own = rng.standard_normal((draws, len(self.mean)))
        return np.asarray(self.mean + self.common * common + self.own * own)


@dataclass(frozen=True, eq=False)
class Utilities:
    """Logged utilities by outcome and successor."""

    outcome: Ints  # [edges]
    steps: Array  # [edges], above 0
    mean: Array  # [edges]
    variance: Array  # [edges]
    otherwise: Array  # [outcomes], the mean of those of which nothing was logged
    shared: Added  # what branches predict together

    @property
    def size(self) -> int:
        """The number of outcomes."""
        return len(self.otherwise)

    @property
    def pooled(self) -> float:
        """The variance of rewards of one outcome and successor, over all of them."""
        return float(self.steps @ self.variance) / max(float(self.steps.sum()), 1.0)

    @property
    def worth(self) -> float:
        """The steps that the mean of an outcome is worth, as estimated by analysis of variance."""
        size = len(self.otherwise)
        total = group_weights(self.outcome, self.steps, size)
        away = self.mean - self.means(self.mean)[self.outcome]
        several = float(len(self.outcome) - (total > 0).sum())
        inner = float(self.steps @ self.variance) / max(float((self.steps - 1).clip(0).sum()), 1.0)
        between = float(self.steps @ away**2) - several * inner
        scale = float(
            total.sum()
            - (group_weights(self.outcome, self.steps**2, size) / np.maximum(total, 1e-300)).sum()
        )
        if inner == 0 or scale <= 0:
            return 0.0
        return min(MOST, inner * scale / between) if between > 0 else MOST

    def means(self, of_edges: Array) -> Array:  # [..., outcomes]
        """Return the mean of each outcome, given that of its successors: [..., edges]."""
        from scipy.sparse import csr_array

        size = len(self.otherwise)
        total = group_weights(self.outcome, self.steps, size)
        share = self.steps / total[self.outcome]
        place = self.outcome, np.arange(len(self.outcome))
        matrix = csr_array((share, place), shape=(size, len(self.outcome)))
        return np.where(total > 0, np.asarray(matrix @ of_edges.T).T, self.otherwise)

    def of_edges(
        self, drawn: Array, edge: Ints, outcome: Ints, added: Array | None = None
    ) -> Array:  # [..., edges asked for]
        """Return what edges earn, given drawn means [..., edges].

        `edge` says which each is, -1 if nothing was logged of it; `added` are drawn means of what
        is shared, [..., outcomes]. Where utilities are shared, all successors of an outcome earn
        the same: a successor that was never logged would else earn what the others did.
        """
        worth, logged = self.worth, edge >= 0
        steps = np.where(logged, self.steps[edge], 0.0)
        own = steps / np.maximum(steps + worth, 1e-300)
        means = self.means(drawn)
        found = own * np.where(logged, drawn[..., edge], 0.0) + (1 - own) * means[..., outcome]
        extra = self.shared.steps
        if not extra.any():
            return np.asarray(found)
        total = group_weights(self.outcome, self.steps, self.size)
        added = self.shared.mean if added is None else added
        means = means + (added - means) * extra / np.maximum(extra + total, 1e-300)
        return np.where((extra > 0)[outcome], means[..., outcome], found)

    def draw(self, draws: int, rng: np.random.Generator) -> Array:
        """Return the mean of each edge, drawn: [draws, edges].

        Mean and variance of single rewards are unknown. The variance is an inverse chi-squared draw
        about the edge's own and, with the weight of three steps, that of all edges; the mean is
        normal given the variance. Where all rewards are equal nothing is left to draw.
        """
        steps = self.steps
        spread = POOLED * self.pooled + steps * self.variance
        found = np.broadcast_to(self.mean, (draws, len(self.mean))).copy()
        unsure = np.flatnonzero(spread > 0)
        chi = rng.chisquare(POOLED + steps[unsure], size=(draws, len(unsure)))
        error = np.sqrt(spread[unsure] / chi / steps[unsure])
        found[:, unsure] += error * rng.standard_normal((draws, len(unsure)))
        return found
