"""Displacements: next value minus this one, as polynomials of the state that all steps share."""

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb

import numpy as np

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
    weights: Array  # [actions, terms, numbers]

    def features(self, numbers: Array, codes: Ints) -> Array:  # [n, features]
        """Return standardised numbers, then indicators of categories."""
        return _features(numbers, codes, self.center, self.scale, self.sizes)

    def __call__(self, features: Array) -> Array:  # [n, actions, numbers]
        """Return the displacement of each number by each action."""
        found = [_predicted(features, self.degree, weights) for weights in self.weights]
        return np.stack(found, axis=1)

    def of_actions(self, features: Array, action: Ints) -> Array:  # [n, numbers]
        """Return the displacement of each number by the action of each row."""
        found = np.empty((len(features), self.weights.shape[2]))
        for a, weights in enumerate(self.weights):
            found[action == a] = _predicted(features[action == a], self.degree, weights)
        return found


def fit_displacements(log: Logged, sizes: tuple[int, ...]) -> Displacements:
    """Return the polynomials that explain the displacements of a log best.

    Those of single actions are shrunk towards that of all.
    """
    center, scale = log.numbers.mean(axis=0), log.numbers.std(axis=0) + 1e-300
    features = _features(log.numbers, log.codes, center, scale, sizes)
    moved, on = log.next_numbers - log.numbers, ~log.ended
    degree = _degree(features, moved, log, on)
    shared = _fit(features, degree, moved, log.counts, on)
    weights = [
        _fit(features, degree, moved, log.counts, (log.action == a) & on, shared)
        for a in range(log.actions)
    ]
    return Displacements(center, scale, sizes, degree, np.stack(weights))


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


def _degree(features: Array, moved: Array, log: Logged, on: Bools) -> int:
    """Return the degree of the polynomial that predicts displacements of held-out steps best.

    A higher degree has to be worth it.
    """
    width = features.shape[1]
    most = min(MOST_TERMS, len(features) // STEPS_PER_TERM)
    degrees = [d for d in range(2, MOST_DEGREE + 1) if comb(width + d, d) <= most]
    if not degrees or np.isnan(moved).all(axis=0).any():
        return 1
    best, least = 1, _held_out_error(features, moved, log, on, 1)
    for degree in degrees:
        error = _held_out_error(features, moved, log, on, degree)
        if error < WORTH * least:
            best, least = degree, error
    return best


def _held_out_error(features: Array, moved: Array, log: Logged, on: Bools, degree: int) -> float:
    """Return the squared error of displacements, each half predicted from the other."""
    half = np.arange(len(features)) % 2 == 0
    scale = np.nanvar(moved, axis=0) + 1e-300
    error = 0.0
    for a in range(log.actions):
        mine = (log.action == a) & on
        for train in (half, ~half):
            weights = _fit(features, degree, moved, log.counts, mine & train)
            test = mine & ~train
            missed = moved[test] - _predicted(features[test], degree, weights)
            error += float(np.nansum(missed**2 / scale))
    return error
