"""The rule at max nodes: which branch of a decision is best.

A `Criterion` scores the branches of many max nodes at once. Of each node the branch of highest
score is taken, and what the node passes up is that branch's worth, its expected utility. Plain and
compiled queries use the same object, so a constrained or cautious maximum is one class with one
method:

>>> class Only:
...     '''Nothing but some actions.'''
...     def __init__(self, *actions):
...         self.actions = actions
...     def scores(self, worth, branches):
...         return np.where(np.isin(branches.values, self.actions), worth, np.nan)
>>> from rspmn.envs.paper_grid import paper_grid
>>> paper_grid().meu({"x": 0, "y": 0}, horizon=4, criterion=Only("right", "down", "noop"))
16.0
>>> paper_grid().meu({"x": 0, "y": 0}, horizon=4, criterion=Only("right", "noop"))
-4.0

Scores that differ by rounding only are ties. Of tied branches the likeliest is taken, given what is
known of later variables; of those the one that earns soonest (`Evaluation.delay`); of those the
one that comes first among all values of the decision (`Context.values`).
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from rspmn.errors import EvidenceError
from rspmn.infer.branches import Branches
from rspmn.types import Array, Bools, Ints

#: Scores that differ by no more than this, relative to the largest of the node, are a tie. A value
#: of h steps is a sum of about h · k rounded terms, k the successors of a step, so its relative
#: rounding error is at most h · k · 2⁻⁵³: less than this for h · k up to 4 million.
TIE = 1e-9

#: A branch of which less is known than this share of what is known of another does not compete
#: with that one: it must not win because only its good part is known.
LEAST_KNOWN = 0.95


class Criterion(Protocol):
    """Scores the branches of max nodes.

    A criterion must score the branches of one node independently of other nodes, must give the
    same scores when it is asked again, and must not change `worth`. tests/conformance has a check.
    """

    def scores(self, worth: Array, branches: Branches) -> Array:  # [branches]
        """Return a number for each branch; the highest of a node wins, NaN is never taken.

        Parameters
        ----------
        worth
            The expected utility of each branch, the best decisions made after it. NaN where the
            evidence rules the branch out, -∞ where it is not known what follows it, or much less
            than of another branch. [branches]
        branches
            What the branches are.
        """
        ...


class MaximumExpectedUtility:
    """The default: what is worth most is best."""

    def scores(self, worth: Array, branches: Branches) -> Array:  # noqa: ARG002
        """Return the expected utilities themselves."""
        return worth

    def __repr__(self) -> str:
        return "MaximumExpectedUtility()"


MEU = MaximumExpectedUtility()


def criterion_or_meu(given: Criterion | None) -> Criterion:
    """Return a criterion that is given, checked; without one, the maximum expected utility."""
    if given is None:
        return MEU
    if isinstance(given, type) or not callable(getattr(given, "scores", None)):
        raise EvidenceError(f"criterion: expected an object with a method scores, found {given!r}")
    return given


class Side(NamedTuple):
    """Some of the states of max nodes, in which the same branches are allowed.

    A criterion whose rules depend on the state has a method `sides`, from `Branches` to all sides
    of their nodes, or to none if no rule is about them. Each side takes its own best branch.
    """

    share: Array  # [nodes], the probability of these states in each node
    allowed: Bools  # [branches]


# ---- the rule: for one node, and for many ------------------------------------------------


def scored(criterion: Criterion, worth: Array, branches: Branches) -> Array:  # [branches]
    """Return the scores of branches; END and UNKNOWN are not the criterion's to refuse."""
    if not len(worth):
        return worth
    scores = criterion.scores(worth, branches)
    if scores is worth:
        return worth
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != worth.shape:
        raise EvidenceError(
            f"{criterion!r}: expected a score for each of {len(worth)} branches, "
            f"found an array of shape {scores.shape}"
        )
    return np.where(branches.marked, worth, scores)


def tied_branches(
    worth: Sequence[float], scores: Sequence[float], within: float = 0.0
) -> list[int]:
    """Return the best branches of one node, by number: none if none may be taken.

    A branch of which it is not known what follows, with a worth of -∞, is best only where there
    is no other. Numbers that are no further apart than `within` are ties, too.
    """
    allowed = [k for k, w in enumerate(worth) if w == w and scores[k] == scores[k]]  # not NaN
    for numbers in (scores, worth) if scores is not worth else (worth,):
        if len(allowed) < 2:
            break
        allowed = [k for k in allowed if worth[k] > -math.inf] or allowed
        found = [numbers[k] for k in allowed]
        size = max([abs(number) for number in found if math.isfinite(number)], default=0.0)
        least = max(found) - max(TIE * size, within)
        allowed = [k for k in allowed if numbers[k] >= least]
    return allowed


def soonest(
    tied: Sequence[int], delays: Sequence[float], places: Sequence[int] | None = None
) -> int:
    """Return which of tied branches earns soonest, of those that do the one of the least place.

    Without places it is the first.
    """
    least = min(delays[k] for k in tied)
    size = max(abs(delays[k]) for k in tied)
    found = [k for k in tied if delays[k] <= least + TIE * size]
    return found[0] if places is None else min(found, key=lambda k: places[k])


def competing(worth: Sequence[float], known: Sequence[float]) -> list[float]:
    """Return what branches of one node are worth, -∞ for those of which too little is known.

    >>> competing([1.0, 9.0, 2.0], [1.0, 0.5, 0.99])
    [1.0, -inf, 2.0]
    """
    least = LEAST_KNOWN * max(known, default=0.0)
    pairs = zip(worth, known, strict=True)
    return [w if k >= least or w != w else -math.inf for w, k in pairs]


def competing_of_each(worth: Array, known: Array, branches: Branches) -> Array:  # [branches]
    """Return what `competing` does, for many max nodes."""
    most = np.maximum.reduceat(known, branches.starts)
    return np.where(known >= (LEAST_KNOWN * most)[branches.node], worth, -np.inf)


def best_worths(criterion: Criterion, worth: Array, branches: Branches) -> Array:  # [nodes]
    """Return what each of many max nodes passes up: -∞ where nothing may be taken."""
    scores = scored(criterion, worth, branches)
    if scores is worth:
        return np.asarray(np.maximum.reduceat(worth, branches.starts))
    return best_branches(worth, scores, branches)[1]


def best_branches(
    worth: Array, scores: Array, branches: Branches, tie: float = TIE, within: float = 0.0
) -> tuple[Bools, Array]:  # [branches], [nodes]
    """Return which branches of many max nodes are best, and what the nodes pass up.

    The rule is that of `tied_branches`. No worth may be NaN.
    """
    if scores is worth:
        return _highest(worth, branches, tie, within)
    allowed, closed = ~np.isnan(scores), np.isneginf(worth)
    known = np.logical_or.reduceat(allowed & ~closed, branches.starts)
    allowed &= ~(closed & known[branches.node])
    for numbers in (scores, worth):
        among, best = _highest(np.where(allowed, numbers, -np.inf), branches, tie, within)
        allowed &= among
    return allowed, best


class Decided(NamedTuple):
    """What is best at many max nodes."""

    best: Bools  # [branches]; of a node with several sides, on the most probable
    values: Array  # [nodes], what they pass up
    sides: Sequence[tuple[Array, Bools]]  # the share [nodes] and the best branches of each side

    def taken(self, delays: Array, branches: Branches) -> tuple[Ints, Array | None]:
        """Return the branch that is chosen [nodes], and how often each is taken [branches].

        How often is None where no node has sides: then the chosen branch always is.
        """
        chosen = soonest_of_each(self.best, delays, branches, lambda: branches.places)
        if not self.sides:
            return chosen, None
        taken = np.zeros(len(self.best))
        for share, best in self.sides:
            mine = soonest_of_each(best, delays, branches, lambda: branches.places)
            np.add.at(taken, mine, np.where(best[mine], share, 0.0))
        total = np.add.reduceat(taken, branches.starts)[branches.node]
        return chosen, np.divide(taken, total, out=taken, where=total > 0)


def decided(
    criterion: Criterion, worth: Array, branches: Branches, tie: float = TIE, within: float = 0.0
) -> Decided:
    """Return what a criterion finds best at many max nodes. No worth may be NaN.

    A side on which nothing may be taken is valued as the rest of its node.
    """
    scores, divide = scored(criterion, worth, branches), getattr(criterion, "sides", None)
    sides: Sequence[Side] = () if divide is None else divide(branches)
    if not sides:
        best, values = best_branches(worth, scores, branches, tie, within)
        return Decided(best, values, ())
    total, known, most = np.zeros((3, len(branches.starts)))
    best = np.zeros(len(worth), dtype=bool)
    found = []
    for side in sides:
        mine, values = best_branches(
            worth, np.where(side.allowed, scores, np.nan), branches, tie, within
        )
        share = np.where(np.isfinite(values), side.share, 0.0)
        total += share * np.where(share > 0, values, 0.0)
        known += share
        best = np.where((side.share > most)[branches.node], mine, best)
        most = np.maximum(most, side.share)
        found.append((share, mine))
    no_sides = most == 0  # END, UNKNOWN: not the criterion's to divide
    free, values = best_branches(worth, scores, branches, tie, within)
    best = np.where(no_sides[branches.node], free, best)
    found.append((no_sides.astype(np.float64), free))
    mixed = np.divide(total, known, out=np.full(len(total), -np.inf), where=known > 0)
    return Decided(best, np.where(no_sides, values, mixed), found)


def _highest(
    numbers: Array, branches: Branches, tie: float, within: float
) -> tuple[Bools, Array]:  # [branches], [nodes]
    sizes = np.abs(numbers)
    sizes[sizes == np.inf] = 0.0
    apart = tie * np.maximum.reduceat(sizes, branches.starts)
    if within:
        apart = np.maximum(apart, within)
    best = np.maximum.reduceat(numbers, branches.starts)
    return np.asarray(numbers >= (best - apart)[branches.node]), best


def has_ties(tied: Bools, branches: Branches) -> bool:
    """Tell whether some node has several best branches."""
    if np.count_nonzero(tied) > len(branches.starts):  # one node has two of them
        return True
    return bool(np.add.reduceat(tied, branches.starts, dtype=np.int64).max(initial=0) > 1)


def soonest_of_each(
    tied: Bools, delays: Array, branches: Branches, places: Callable[[], Ints] | None = None
) -> Ints:  # [nodes]
    """Return, of many max nodes, which tied branch earns soonest: see `soonest`.

    Where no branch is tied, as none may be taken, it is the first. Places are asked for only where
    branches tie.
    """
    starts = branches.starts
    if has_ties(tied, branches):
        least = np.minimum.reduceat(np.where(tied, delays, np.inf), starts)
        size = np.maximum.reduceat(np.where(tied, np.abs(delays), 0.0), starts)
        tied = tied & (delays <= (least + TIE * size)[branches.node])
        if places is not None and has_ties(tied, branches):
            place = np.where(tied, places(), len(tied))
            tied = tied & (place == np.minimum.reduceat(place, starts)[branches.node])
    numbers = np.where(tied, np.arange(len(tied)), len(tied))
    found = np.minimum.reduceat(numbers, starts)
    return np.where(found < len(tied), found, starts)
