"""Displacements: next value minus this one, as polynomials of the state that all steps share.

Where a number moves on, or jumps back, what is expected lies between, where nothing ever is. Such
steps are of two kinds, and each kind of each action has its own polynomials.
"""

from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from rspmn.learn.numbers.mean_boxes import fit_tree
from rspmn.memory import IN_PASSING
from rspmn.types import Array, Bools, Ints

#: Ridge penalty of regressions on standardised features, in steps.
RIDGE = 1.0
#: A shared regression is worth this many steps to the regression of a single action.
POOLED = 10.0
#: The highest degree of polynomials of the state, and the most terms that one has.
MOST_DEGREE, MOST_TERMS = 4, 250
#: A term of a polynomial has at least this many steps.
STEPS_PER_TERM = 40
#: A higher degree, which extrapolates worse, leaves at most this share of the error of a lower one.
WORTH = 0.75
#: Two kinds of moves leave less than this share of the squared error of one. Any noise that is
#: highest in the middle and falls to both sides leaves a quarter or more.
JUMP = 0.125
#: Noise below this share of a number's deviation is no jump.
SMALL = 0.05
#: The numbers by whose jumps kinds are told apart, at most, and the times that they are told anew.
JUMPS, PASSES = 2, 10


@dataclass(frozen=True, eq=False)
class Logged:
    """Steps as the models see them."""

    numbers: Array  # [n, numbers], gaps filled
    next_numbers: Array  # [n, numbers], NaN at the end and where missing
    codes: Ints  # [n, categories], -1 where missing
    next_codes: Ints  # [n, categories], -1 at the end and where missing
    action: Ints  # [n]
    actions: int
    ended: Bools  # [n]
    utility: Array  # [n]
    spread: Array  # [n], the variance within each
    counts: Array  # [n]


@dataclass(frozen=True, eq=False)
class Displacements:
    """A polynomial for each action and number."""

    center: Array  # [numbers]
    scale: Array  # [numbers]
    sizes: tuple[int, ...]  # of each category, the number of codes
    degree: int
    weights: Array  # [actions, kinds, terms, numbers]
    kind: Ints  # [n], of the logged moves
    #: The degree and weights of the probability of each kind: [actions, terms, kinds].
    shares: tuple[int, Array]

    @property
    def kinds(self) -> int:
        """The number of kinds of moves."""
        return int(self.weights.shape[1])

    def by_kind(self, log: Logged) -> Logged:
        """Return the log with an action for each action and kind."""
        action = log.action * self.kinds + self.kind
        return replace(log, action=action, actions=log.actions * self.kinds)

    def features(self, numbers: Array, codes: Ints) -> Array:  # [n, features]
        """Return standardised numbers, then indicators of categories."""
        return _features(numbers, codes, self.center, self.scale, self.sizes)

    def __call__(self, features: Array) -> Array:  # [n, actions, kinds, numbers]
        """Return the displacement of each number by each action, if it is of each kind."""
        every = np.arange(len(self.weights))[:, None] + np.zeros(len(features), np.int64)
        return np.stack([self.of_actions(features, action) for action in every], axis=1)

    def chance(self, features: Array, action: int) -> Array:  # [n, kinds]
        """Return about how probable each kind of moves is."""
        degree, weights = self.shares
        return np.clip(_predicted(features, degree, weights[action]), 0, 1)

    def of_actions(self, features: Array, action: Ints) -> Array:  # [n, kinds, numbers]
        """Return the displacement of each number by the action of each row, if of each kind."""
        return _of_actions(features, action, self.degree, self.weights)


def fit_displacements(log: Logged, sizes: tuple[int, ...]) -> Displacements:
    """Return the polynomials that explain the displacements of a log best.

    Those of single actions are shrunk towards that of all.
    """
    center, scale = log.numbers.mean(axis=0), log.numbers.std(axis=0) + 1e-300
    features = _features(log.numbers, log.codes, center, scale, sizes)
    moved, kind, kinds = log.next_numbers - log.numbers, np.zeros(len(features), np.int64), 1
    found = _fitted(features, moved, log, kind, kinds, _degree(features, moved, log, kind))
    for _ in range(JUMPS):
        split = _jumps(features, moved, log, kind, *found)
        if split is None:
            break
        kind, kinds = 2 * kind + split, 2 * kinds
        found = _fitted(features, moved, log, kind, kinds, _degree(features, moved, log, kind))
    degree, shares, none = 1, np.ones((log.actions, 1, 1)), np.zeros_like(kind)
    if kinds > 1:
        is_kind = (kind[:, None] == np.arange(kinds)).astype(np.float64)
        degree = _degree(features, is_kind, log, none, worth=1.0)
        degree, shares = _fitted(features, is_kind, log, none, 1, degree)
        shares = shares[:, 0]
    return Displacements(center, scale, sizes, *found, kind, (degree, shares))


def _of_actions(features: Array, action: Ints, degree: int, weights: Array) -> Array:
    found = np.empty((len(features), weights.shape[1], weights.shape[3]))
    for a, k in np.ndindex(weights.shape[:2]):
        found[action == a, k] = _predicted(features[action == a], degree, weights[a, k])
    return found


def _fitted(
    features: Array, moved: Array, log: Logged, kind: Ints, kinds: int, degree: int
) -> tuple[int, Array]:
    """Return the degree, and polynomials of each action and kind.

    They are [actions, kinds, terms, numbers].
    """
    found = []
    for k in range(kinds):
        mine = ~log.ended & (kind == k)
        shared = _fit(features, degree, moved, log.counts, mine)
        of_actions = [
            _fit(features, degree, moved, log.counts, (log.action == a) & mine, shared)
            for a in range(log.actions)
        ]
        found.append(of_actions)
    return degree, np.stack(found, axis=1)


def _jumps(
    features: Array, moved: Array, log: Logged, kind: Ints, degree: int, weights: Array
) -> Ints | None:  # [n]
    """Return which of two kinds the moves of a number are, 0 or 1; None if no number jumps.

    That steps go to either side of what is expected is a jump if, with lines for each side, next to
    nothing is left of what the state does not explain.
    """
    left = moved - _of_actions(features, log.action, degree, weights)[np.arange(len(kind)), kind]
    for j, deviation in enumerate(np.std(log.numbers, axis=0).tolist()):
        known, target = ~log.ended & ~np.isnan(moved[:, j]), moved[:, [j]]
        counts, missed = (np.where(known, x, 0.0) for x in (log.counts, left[:, j]))
        for a in range(log.actions):
            mine = known & (log.action == a)
            if mine.any():
                missed[mine] -= fit_tree(features[mine], missed[mine], counts[mine])(features[mine])
        one = float(counts @ missed**2)
        if one <= float(counts.sum()) * (SMALL * deviation) ** 2:
            continue
        up = (missed > 0).astype(np.int64)
        for _ in range(PASSES):
            lines = _fitted(features, target, log, up, 2, 1)
            errors = np.abs(target - _of_actions(features, log.action, *lines)[..., 0])
            before, up = up, errors.argmin(axis=1)  # 0 where it is not known
            if (before == up)[known].all():
                break
        if float(counts[known] @ errors[known].min(axis=1) ** 2) < JUMP * one:
            return up
    return None


def _features(
    numbers: Array, codes: Ints, center: Array, scale: Array, sizes: tuple[int, ...]
) -> Array:  # [n, features]
    found = [(numbers - center) / scale]
    for k, size in enumerate(sizes):
        found.append((codes[:, k, None] == np.arange(size)).astype(np.float64))
    return np.hstack(found)


def _expanded(features: Array, degree: int) -> Array:
    """Return the products of at most so many features, that of none first."""
    of = range(features.shape[1])
    terms = [c for k in range(degree + 1) for c in combinations_with_replacement(of, k)]
    return np.stack([features[:, list(c)].prod(axis=1) for c in terms], axis=1)


def _predicted(features: Array, degree: int, weights: Array) -> Array:  # [n, numbers]
    parts = _parts(np.arange(len(features)), len(weights))
    return np.concatenate([_expanded(features[part], degree) @ weights for part in parts])


def _parts(rows: Ints, terms: int) -> list[Ints]:
    """Divide rows so that the polynomials of a part fit into memory."""
    size = max(1, IN_PASSING // terms)
    return [rows[first : first + size] for first in range(0, max(1, len(rows)), size)]


def _fit(
    features: Array, degree: int, target: Array, counts: Array, rows: Bools,
    prior: Array | None = None,
) -> Array:  # [terms, numbers]  # fmt: skip
    """Return the weights of ridge regressions, each on the rows where its target is known."""
    width, size = comb(features.shape[1] + degree, degree), target.shape[1]
    penalty = np.full(width, RIDGE if prior is None else POOLED)
    if prior is None:
        prior, penalty[0] = np.zeros((width, size)), 1e-9
    found = prior.copy()
    known = ~np.isnan(target) & rows[:, None]
    alike: dict[bytes, list[int]] = {}  # targets that are known in the same rows
    for j in range(size):
        alike.setdefault(known[:, j].tobytes(), []).append(j)
    for mine in alike.values():
        left, right = np.diag(penalty), penalty[:, None] * prior[:, mine]
        for part in _parts(np.flatnonzero(known[:, mine[0]]), width):
            wide = _expanded(features[part], degree)
            weighted = wide * counts[part, None]
            left += weighted.T @ wide
            right += weighted.T @ target[part][:, mine]
        found[:, mine] = np.linalg.solve(left, right)
    return found


def _degree(features: Array, moved: Array, log: Logged, kind: Ints, worth: float = WORTH) -> int:
    """Return the degree of the polynomial that predicts displacements of held-out steps best.

    A higher degree has to be worth it.
    """
    width = features.shape[1]
    most = min(MOST_TERMS, len(features) // STEPS_PER_TERM)
    degrees = [d for d in range(2, MOST_DEGREE + 1) if comb(width + d, d) <= most]
    if not degrees or np.isnan(moved).all(axis=0).any():
        return 1
    best, least = 1, _held_out_error(features, moved, log, kind, 1)
    for degree in degrees:
        error = _held_out_error(features, moved, log, kind, degree)
        if error < worth * least:
            best, least = degree, error
    return best


def _held_out_error(features: Array, moved: Array, log: Logged, kind: Ints, degree: int) -> float:
    """Return the squared error of displacements, each half of the steps predicted by the other."""
    one = half_of(log.counts)
    scale = np.nanvar(moved, axis=0) + 1e-300
    error = 0.0
    for a, k in np.ndindex(log.actions, int(kind.max()) + 1):
        mine = (log.action == a) & (kind == k) & ~log.ended
        for train, test in ((one, log.counts - one), (log.counts - one, one)):
            weights = _fit(features, degree, moved, train, mine & (train > 0))
            on_test = mine & (test > 0)
            missed = moved[on_test] - _predicted(features[on_test], degree, weights)
            error += float(np.nansum(test[on_test, None] * missed**2 / scale))
    return error


def half_of(counts: Array) -> Array:  # [n]
    """Return how many of the steps of each row are in the first half: of single steps, any."""
    whole = np.floor(counts)
    first = np.random.default_rng(0).binomial(whole.astype(np.int64), 0.5)
    return np.asarray(np.where(whole > 0, first * (counts / np.maximum(whole, 1)), counts))
