"""What outcomes earn, by where they lead.

Steps that go on and steps that end an episode are two kinds: a reward that is paid at the end says
nothing of what other steps earn. No step earns less, or more, than some logged step of its kind.

The utility of an outcome may depend on its successor: the goal is paid when it is reached. Each
successor has a mean of its own, drawn towards that of the outcome as far as successors do not
matter: with σ² the variance of rewards of one outcome and successor, and τ² that of means of
successors of one outcome, the outcome's mean is worth σ² / τ² steps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.successor_counts import SharedUtilities
from rspmn.types import Array, Ints, significant

#: Rewards vary if their variance is more than this share of their range, squared.
ROUNDING = 1e-30
#: The pooled variance of utilities is worth so many steps.
POOLED = 3.0
#: The most steps that the mean of an outcome is worth: successors do not matter.
MOST = 1e9
#: Parameters of beta draws are no less than this.
LEAST = 1e-9
#: Returns means of beta variables, given their two parameters.
Draw = Callable[[Array, Array], Array]
#: Returns chi-squared variables, given their degrees of freedom.
Freedom = Callable[[Array], Array]
#: Whether outcomes matter is doubted by so many standard errors.
SURE = 2.0
#: After so many steps an end of a range that still grows is infinite.
FOR_EVER = 10_000


def range_of_returns(ranges: Array, steps: int | None, discount: float) -> tuple[float, float]:
    """Return the least and the most that so many steps earn.

    Parameters
    ----------
    ranges
        The least and the most that a step earns which goes on, and that one earns which ends the
        episode; NaN if there is none. [2, 2]
    steps
        How many; None is for ever, where ends of the range may be infinite.
    discount
        Per step.

    Examples
    --------
    A step costs 1, and an episode ends with a reward of 10 or with nothing:

    >>> range_of_returns(np.array([[-1.0, -1.0], [0.0, 10.0]]), 3, 1.0)
    (-3.0, 10.0)
    """
    going, ending = ranges
    found = before = _around(going, ending)
    for _ in range(FOR_EVER if steps is None else steps - 1):
        before = found
        found = _around(going + discount * before, ending)
        if (found == before).all():
            break
    if steps is None and len(
        moves := np.flatnonzero(np.abs(found - before) > 1e-9 * np.abs(found))
    ):
        found[moves] = np.sign(found - before)[moves] * np.inf
    return float(found[0]), float(found[1])


def _around(one: Array, other: Array) -> Array:  # [2]
    return np.array([np.fmin(one[0], other[0]), np.fmax(one[1], other[1])])


class Means(NamedTuple):
    """What steps earn on average: of edges, and of outcomes in steps of each kind."""

    edges: Array  # [..., edges]
    parts: Array  # [..., 2 · outcomes], those that go on and those that end


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
    ends: Ints  # [edges], 1 where the episode is over, else 0: the kind
    ranges: Array  # [2, 2], the least and the most that a step of each kind earned
    otherwise: Array  # [outcomes], the mean of those of which nothing was logged
    shared: Added  # what branches predict together

    @property
    def size(self) -> int:
        """The number of outcomes."""
        return len(self.otherwise)

    @cached_property
    def of_kinds(self) -> Array:  # [2, kinds]
        """The mean of each kind, and the variance of rewards of one outcome and successor."""
        total = np.maximum(group_weights(self.ends, self.steps, 2), 1e-300)
        weighed = (
            group_weights(self.ends, self.steps * of, 2) for of in (self.mean, self.variance)
        )
        return np.stack([of / total for of in weighed])

    @cached_property
    def part(self) -> Ints:  # [edges]
        """The outcome and kind of each edge, as a number."""
        return self.outcome * 2 + self.ends

    @cached_property
    def worth(self) -> float:
        """The steps that the mean of an outcome, in steps of a kind, is worth to its successors."""
        inner = self.steps @ self.variance / max(float((self.steps - 1).clip(0).sum()), 1.0)
        return steps_worth(self.part, self.steps, self.mean, float(inner))

    @cached_property
    def inner_of_kinds(self) -> Array:  # [2]
        """The variance of rewards of one outcome, in each kind."""
        total, _, squares = (of.reshape(-1, 2) for of in self._of_parts)
        return np.asarray(squares.sum(axis=0) / np.maximum((total - 1).clip(0).sum(axis=0), 1.0))

    @cached_property
    def kinds_worth(self) -> Array:  # [2]
        """The least steps that the mean of a kind is worth to outcomes, as far as is sure."""
        found = np.zeros(2)
        for kind in (0, 1):
            total, mean, _ = (of[kind::2] for of in self._of_parts)
            steps, mean = total[total > 0], mean[total > 0]
            inner = float(self.inner_of_kinds[kind])
            found[kind] = steps_worth(np.zeros(len(steps), np.int64), steps, mean, inner, SURE)
        return found

    def of_edges(
        self, means: Means, edge: Ints, outcome: Ints, ends: Ints, added: Array | None = None
    ) -> Array:  # [..., edges asked for]
        """Return what edges earn, given means, expected or drawn.

        `edge` says which each is, -1 if nothing was logged of it, and `ends` its kind; `added` are
        drawn means of what is shared, [..., outcomes]. Where utilities are shared, all successors
        of an outcome earn the same: a successor that was never logged would else earn what the
        others did.
        """
        found = np.where(edge >= 0, means.edges[..., edge], means.parts[..., 2 * outcome + ends])
        extra = self.shared.steps
        if not extra.any():
            return np.asarray(found)
        total = group_weights(self.outcome, self.steps, self.size)
        added = self.shared.mean if added is None else added
        whole = np.where(total > 0, self._means(self.outcome, means.edges), self.otherwise)
        whole = whole + (added - whole) * extra / np.maximum(extra + total, 1e-300)
        return np.where((extra > 0)[outcome], whole[..., outcome], found)

    @cached_property
    def expected(self) -> Means:
        """What edges earn on average."""
        return self._hierarchy(lambda won, lost: won / (won + lost), lambda freedom: freedom)

    def draw(self, draws: int, rng: np.random.Generator) -> Means:
        """Return what edges earn, drawn.

        The mean of a kind, of an outcome in steps of the kind, and of an edge are beta draws in the
        range of the kind, each about the one before as far as edges, or outcomes, do not matter.
        Where all rewards of a kind are equal, given outcome and successor, nothing is left to draw.
        """
        found = self._hierarchy(rng.beta, lambda of: rng.chisquare(of, (draws, len(of))))
        return Means(*(np.broadcast_to(means, (draws, means.shape[-1])) for means in found))

    def _hierarchy(self, mean_of: Draw, freedom_of: Freedom) -> Means:
        kind, inner = np.tile([0, 1], self.size), self.inner_of_kinds
        total, own, squares = self._of_parts
        worth = self.kinds_worth[kind]
        sure = group_weights(kind, worth * total / np.maximum(worth + total, 1e-300), 2)
        sure = np.maximum(sure, 1.0)  # so many steps is the mean of a kind as sure as
        usual = self.of_kinds[0]
        level = _Level(self.ranges, np.arange(2), sure, usual, inner * sure, inner)
        usual = level.means(usual, 0.0, mean_of, freedom_of)
        level = _Level(self.ranges, kind, total, own, squares, inner)
        parts = level.means(usual[..., kind], worth, mean_of, freedom_of)
        unseen = np.repeat(group_weights(self.outcome, self.steps, self.size) == 0, 2)
        parts = np.where(unseen, np.repeat(self.otherwise, 2), parts)
        squares, pooled = self.steps * self.variance, self.of_kinds[1]
        level = _Level(self.ranges, self.ends, self.steps, self.mean, squares, pooled)
        worth = np.where(self.ends == 1, MOST, self.worth)  # an end is the only one of its outcome
        return Means(level.means(parts[..., self.part], worth, mean_of, freedom_of), parts)

    @cached_property
    def _of_parts(self) -> tuple[Array, Array, Array]:
        """Steps, mean and squared deviations, added up, of each outcome and kind."""
        mean, size = self._means(self.part, self.mean), 2 * self.size
        squares = self.steps * (self.variance + (self.mean - mean[self.part]) ** 2)
        total, squares = (group_weights(self.part, of, size) for of in (self.steps, squares))
        return total, mean, squares

    def _means(self, group: Ints, of_edges: Array) -> Array:  # [..., groups]
        """Return means of edges by outcome, or by outcome and kind; 0 where there are none."""
        from scipy.sparse import csr_array

        size = self.size if group is self.outcome else 2 * self.size
        share = self.steps / group_weights(group, self.steps, size)[group]
        matrix = csr_array((share, (group, np.arange(len(group)))), shape=(size, len(group)))
        return np.asarray((matrix @ of_edges.T).T)


@dataclass(frozen=True, eq=False)
class _Level:
    """Means of rewards that are members of groups, and what was logged of each."""

    ranges: Array  # [2, 2], of kinds
    ends: Ints  # [members], the kind
    steps: Array  # [members]
    mean: Array  # [members], of the logged steps
    squares: Array  # [members], squared deviations of rewards from it, added up
    pooled: Array  # [2], the variance of rewards about their mean, in each kind

    def means(
        self,
        above: Array,
        strength: Array | float,
        mean_of: Draw,
        freedom_of: Freedom,
    ) -> Array:  # [..., members]
        """Return means, drawn towards those of groups, [..., members], that are worth some steps.

        The variance of rewards is an inverse chi-squared draw about the member's own and, with the
        weight of three steps, that of its kind. A reward is worth as many Bernoulli trials as have
        a mean of this variance, one or more; groups are worth one trial or more.
        """
        least, most = self.ranges[self.ends].T
        freedom, spread = POOLED + self.steps, POOLED * self.pooled[self.ends] + self.squares
        varies = (most > least) & (spread > ROUNDING * (most - least) ** 2)
        found = np.where(self.steps > 0, self.mean, above)
        if not varies.any():
            return found
        least, width = least[varies], (most - least)[varies]
        steps, freedom, spread = self.steps[varies], freedom[varies], spread[varies]
        own = np.clip((self.mean[varies] - least) / width, 0.0, 1.0)  # means may be rounded
        usual = np.clip((above[..., varies] - least) / width, 0.0, 1.0)
        both = (POOLED * usual + steps * own) / freedom
        precision = freedom_of(freedom) * width**2 / spread
        each = np.maximum(1.0, both * (1 - both) * precision)
        strength = np.broadcast_to(strength, self.steps.shape)[varies]
        prior = np.maximum(strength * each, 1.0)
        won, lost = (
            np.maximum(steps * each * mine + prior * theirs, LEAST)
            for mine, theirs in ((own, usual), (1 - own, 1 - usual))
        )
        found = np.array(np.broadcast_to(found, (*won.shape[:-1], len(varies))))
        found[..., varies] = least + width * mean_of(won, lost)
        return found


def steps_worth(group: Ints, steps: Array, mean: Array, inner: float, sure: float = 0.0) -> float:
    """Return how many steps the mean of a group is worth to its members: analysis of variance.

    `inner` is the variance of single rewards in a member. Means of members are taken to vary by so
    many standard errors more than they seem to as `sure` says.
    """
    total = group_weights(group, steps)
    usual = group_weights(group, steps * mean) / np.maximum(total, 1e-300)
    several = float(len(group) - (total > 0).sum())
    between = float(steps @ (mean - usual[group]) ** 2) - several * inner
    between += sure * inner * np.sqrt(2 * several)
    scale = float(total.sum() - (group_weights(group, steps**2) / np.maximum(total, 1e-300)).sum())
    if inner == 0 or scale <= 0:
        return 0.0
    return min(MOST, inner * scale / between) if between > 0 else MOST
