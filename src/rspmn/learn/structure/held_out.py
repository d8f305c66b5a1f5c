"""The choice between structures of contexts, by how well they predict rows held out.

Contexts of numbers can be split into intervals, which is exact where the right decision changes at
borders, or be divided into soft classes, which is right where many variables say a little each.
Each is learned from part of the contexts and predicts the others: their utilities, given the
decisions that were made, and the decisions. All rows of a context are on one side: copies of it are
no evidence about others. What the chosen structure predicts is kept, to value policies by.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rspmn.availability import label
from rspmn.data.keys import column_keys, group_weights, join
from rspmn.infer.compiled.decisions import CompiledDecision
from rspmn.learn.config import LearnConfig
from rspmn.learn.structure.classes import MOST_ROWS, is_number
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.rows import Rows
from rspmn.schema import Schema
from rspmn.successor_counts import HeldOutRows
from rspmn.types import Array, Bools, Ints

#: Contexts are divided into this many parts, each of which is held out once.
FOLDS = 3
#: The choice is made on a sample of rows, of at most this many numbers and categories.
MOST_CELLS = 60_000
#: A class has this many rows at least, on average.
LEAST_ROWS = 16
#: Contexts of categories are divided into classes only if there are so many.
MANY_CONTEXTS = 30
#: Classes are doubled for as long as errors fall by these shares: of utilities, or of decisions.
LEAST_GAINS = 0.01, 0.05
#: A share of the variance that is not worth explaining.
LITTLE = 0.02
#: A difference of more standard errors is clear, one of less is none.
CLEARLY, BARELY = 2.0, 0.25

Learn = Callable[[Rows, Schema, LearnConfig, np.random.Generator], tuple[Learner, int]]


class Trials:
    """Learns structures of contexts from part of the rows, and asks them about the others.

    `learn`: learns a network from rows. `deadline`: the `time.monotonic()` at which to stop.
    """

    def __init__(
        self, learn: Learn, rows: Rows, schema: Schema, config: LearnConfig,
        rng: np.random.Generator, deadline: float = math.inf,
    ) -> None:  # fmt: skip
        names = schema.known_before(schema.decisions[-1]) if schema.decisions else ()
        self.names = tuple(name for name in names if name not in schema.decisions)
        self.learn, self.schema, self.config, self.deadline = learn, schema, config, deadline
        self.has_numbers = any(is_number(rows, name) for name in self.names)
        #: Whether contexts are too many to be told apart, so that some can be held out.
        self.are_needed = self.has_numbers
        if not self.names or not (self.has_numbers or len(schema.decisions) == 1):
            return
        seed = int(rng.integers(2**32)) if self.has_numbers else 0
        most = max(1, MOST_CELLS // len(self.names))
        self.seed, self.rows = seed, _sampled(rows, most, np.random.default_rng(seed))
        columns = [self.rows.column(name) for name in self.names]
        contexts = join([column_keys(column) for column in columns]).codes
        self.context = np.unique(contexts, return_inverse=True)[1]  # [n]
        self.are_needed |= int(self.context.max()) + 1 >= MANY_CONTEXTS
        drawn = np.random.default_rng(self.seed).permutation(int(self.context.max()) + 1)
        self.fold_of_context: Ints = drawn % FOLDS
        self.fold = self.fold_of_context[self.context]  # [n]
        self.found: dict[tuple[int, int], _Expected] = {}  # by classes and fold

    def best_classes(self) -> int:
        """Return the number of classes that predicts best; 0 for intervals.

        Classes are chosen only if they predict utilities better than intervals, which can be read,
        or decisions clearly better and utilities not clearly worse, and if that is known in time.
        Laws about later decisions divide contexts exactly, which classes do not.
        """
        restricted = any(law.decision != self.schema.decisions[0] for law in self.schema.laws)
        if restricted or not self.are_needed:
            return 0
        errors: dict[int, Array] = {}  # [2, contexts]
        count, falling = 2, not self.intervals_suffice()
        most = min(len(self.rows), MOST_ROWS)
        while falling and count * LEAST_ROWS <= most and self.seconds_left() > 0:
            errors[count] = self.errors(count)
            totals = np.stack([found.sum(axis=1) for found in errors.values()])
            falling = any(map(_falling, totals.T.tolist(), LEAST_GAINS))
            count *= 2
        if not errors:
            return 0
        best = {list(errors)[k] for k in totals.argmin(axis=0).tolist()}
        best = {count for count in best if self.beats_intervals(count)}
        return max(best, default=0) if self.seconds_left() > 0 else 0

    def seconds_left(self) -> float:
        """Return the time that is left for trials."""
        return max(0.0, self.deadline - time.monotonic())

    def intervals_suffice(self) -> bool:
        """Tell whether intervals leave hardly any of the variance to be explained."""
        left = float(self.errors_of_fold(0, 0)[0].sum())
        held = self.rows.where(self.fold == 0)
        earned = held.column(self.schema.utility).data
        middle = held.weights @ earned / max(held.total, 1e-300)
        return left <= LITTLE * float(held.weights @ (earned - middle) ** 2)

    def errors(self, count: int) -> Array:  # [2, contexts]
        """Return the errors of classes, added up for each context when it is held out.

        If there are many rows, one fold says enough.
        """
        folds = 1 if len(self.rows) > MOST_ROWS else FOLDS
        return sum((self.errors_of_fold(count, fold) for fold in range(folds)), np.zeros(1))

    def beats_intervals(self, count: int) -> bool:
        """Tell whether classes predict better than intervals: utilities or, clearly, decisions.

        Where the first folds say so clearly of utilities, the others are not tried.
        """
        gains = np.zeros((2, len(self.fold_of_context)))
        for fold in range(FOLDS):
            gains += self.errors_of_fold(0, fold) - self.errors_of_fold(count, fold)
            gain = gains[:, self.fold_of_context <= fold]
            error = gain.std(axis=1) * np.sqrt(gain.shape[1])
            earned, made = (gain.sum(axis=1) / np.maximum(error, 1e-300)).tolist()
            if abs(earned) > CLEARLY:
                break
        better = self.has_numbers and earned > BARELY  # values of categories are split as they are
        return bool(better or (made > CLEARLY and earned > -CLEARLY))

    def errors_of_fold(self, count: int, fold: int) -> Array:  # [2, contexts]
        """Return the errors of contexts that are held out together; others have 0.

        They are the squared errors of utilities, and the log losses of decisions.
        """
        held = self.fold == fold
        if not held.any() or held.all():
            return np.zeros((2, len(self.fold_of_context)))
        test, found = self.rows.where(held), self.expected(count, fold)
        made = np.arange(len(test)), found.made
        squared = (test.column(self.schema.utility).data - found.worth[made]) ** 2
        losses = -np.log(found.chances[made])
        groups, size = self.context[held], len(self.fold_of_context)
        return np.stack([group_weights(groups, test.weights * e, size) for e in (squared, losses)])

    def expected(self, count: int, fold: int) -> "_Expected":
        """Return what is expected of the rows of a fold by a structure of the others."""
        if (count, fold) not in self.found:
            self.found[count, fold] = self._expected(count, fold)
        return self.found[count, fold]

    def _expected(self, count: int, fold: int) -> "_Expected":
        held, decision = self.fold == fold, self.schema.decisions[-1]
        train, test = self.rows.where(~held), self.rows.where(held)
        left = None if self.config.max_seconds is None else self.seconds_left()
        config = replace(self.config, classes=count, max_seconds=left)
        learner, root = self.learn(train, self.schema, config, np.random.default_rng(self.seed))
        compiled = CompiledDecision(learner.builder.build(root), decision)
        names = self.schema.known_before(decision)
        columns = {name: test.column(name) for name in names}
        found = compiled(compiled.contexts(columns, len(test)))
        column = train.column(decision)
        place = {value: k for k, value in enumerate(compiled.values)}
        at = [place.get(value, -1) for value in column.domain]
        middle = train.weights @ train.column(self.schema.utility).data / train.total
        pad = ((0, 0), (0, 1))
        worth = np.pad(found.utility, pad, constant_values=middle)[:, at]
        steps = np.pad(found.near, pad)[:, at] * (self.rows.total / train.total)
        usual = group_weights(column.data.astype(np.int64), train.weights, len(at)) + 1
        chances = steps + usual / usual.sum()
        return _Expected(
            test.column(decision).data.astype(np.int64),
            np.where(np.isnan(worth), middle, worth), steps,
            chances / chances.sum(axis=1, keepdims=True),
        )  # fmt: skip

    def held_out(self, count: int) -> HeldOutRows | None:
        """Return what is expected of all rows, each by a structure of others.

        None where contexts are few, or categories that were asked to be split, or several decisions
        are made in one, and if the time is over.
        """
        split = self.config.classes is not None and not (count or self.has_numbers)
        several = len(self.schema.decisions) > 1
        if split or several or not self.are_needed or self.seconds_left() == 0:
            return None
        folds = [fold for fold in range(FOLDS) if (self.fold == fold).any()]
        if len(folds) < 2:
            return None
        order = np.concatenate([np.flatnonzero(self.fold == fold) for fold in folds])
        rows, found = self.rows.where(order), [self.expected(count, fold) for fold in folds]
        made = np.concatenate([each.made for each in found])
        worth, steps = (
            np.concatenate([getattr(each, name) for each in found]) for name in ("worth", "steps")
        )
        return HeldOutRows(
            worth.shape[1], tuple(made.tolist()),
            tuple(rows.numbers(self.schema.utility).tolist()), tuple(rows.weights.tolist()),
            tuple(worth.ravel().tolist()), tuple(steps.ravel().tolist()),
            tuple(self._offered(rows, steps).ravel().astype(int).tolist()),
        )  # fmt: skip

    def _offered(self, rows: Rows, steps: Array) -> Bools:  # [n, actions]
        """Return which actions may be taken: those of logged steps that no law forbids."""
        offered = steps > 0
        values = [label(v) for v in rows.column(self.schema.decisions[0]).domain]
        for law in self.schema.laws:
            columns = {name: rows.column(name).for_expressions() for name in law.variables}
            named = np.array([value == law.value for value in values], dtype=bool)
            offered[np.ix_(~law.holds(columns), named)] = False
        return np.asarray(offered)


@dataclass(frozen=True, eq=False)
class _Expected:
    """What is expected of rows that are held out; decisions are codes of their column."""

    made: Ints  # [n], the decision
    worth: Array  # [n, decisions]
    steps: Array  # [n, decisions], logged in like contexts, if no row was held out
    chances: Array  # [n, decisions], the probability of each


def _falling(errors: Sequence[float], least: float) -> bool:
    """Tell whether one of the last two errors is clearly lower than all before them."""
    return min(errors[-2:]) < (1 - least) * min(errors[:-2], default=np.inf)


def _sampled(rows: Rows, most: int, rng: np.random.Generator) -> Rows:
    if len(rows) <= most:
        return rows
    return rows.where(np.sort(rng.choice(len(rows), most, replace=False)))
