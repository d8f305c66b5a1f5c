"""The choice between structures of contexts, by how well they predict utilities held out.

Contexts of numbers can be split into intervals, which is exact where the right decision changes at
borders, or be divided into soft classes, which is right where many variables say a little each.
Each is learned from part of the contexts and predicts the utilities of the others, given the
decisions that were made. All rows of a context are on one side: copies of it are no evidence about
others.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rspmn.circuit import Network
from rspmn.data.keys import column_keys, group_weights, join
from rspmn.infer.compiled.decisions import CompiledDecision
from rspmn.learn.config import LearnConfig
from rspmn.learn.structure.classes import MOST_ROWS, is_number
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.rows import Rows
from rspmn.schema import Schema
from rspmn.types import Array, Ints

#: Contexts are divided into this many parts, each of which is held out once.
FOLDS = 3
#: The choice is made on a sample of rows, of at most this many numbers and categories.
MOST_CELLS = 60_000
#: A class has this many rows at least, on average.
LEAST_ROWS = 16
#: Classes are doubled for as long as the errors fall by at least this share.
LEAST_GAIN = 0.01
#: A share of the variance that is not worth explaining.
LITTLE = 0.02
#: A difference of more standard errors is clear, one of less is none.
CLEARLY, BARELY = 2.0, 0.25

Learn = Callable[[Rows, Schema, LearnConfig, np.random.Generator], tuple[Learner, int]]


def best_classes(
    learn: Learn, rows: Rows, schema: Schema, config: LearnConfig, rng: np.random.Generator,
    deadline: float = math.inf,
) -> int:  # fmt: skip
    """Return the number of classes that predicts utilities best; 0 for intervals.

    Classes are chosen only if they are better than intervals, which can be read, and if that is
    known by the `time.monotonic()` of the deadline. Laws about later decisions divide contexts
    exactly, which classes do not.
    """
    names = schema.known_before(schema.decisions[-1]) if schema.decisions else ()
    names = tuple(name for name in names if name not in schema.decisions)
    restricted = any(law.decision != schema.decisions[0] for law in schema.laws)
    if restricted or not any(is_number(rows, name) for name in names):
        return 0
    seed = int(rng.integers(2**32))
    sample = _sampled(rows, max(1, MOST_CELLS // len(names)), rng)
    trial = _Trial(learn, sample, schema, config, names, seed, deadline)
    errors: dict[int, Array] = {}
    count, falling = 2, not trial.intervals_suffice()
    most = min(len(sample), MOST_ROWS)
    while falling and count * LEAST_ROWS <= most and trial.seconds_left() > 0:
        errors[count] = trial.errors(count)
        falling = _falling([float(found.sum()) for found in errors.values()])
        count *= 2
    best = min(errors, key=lambda count: float(errors[count].sum()), default=0)
    return best if best and trial.beats_intervals(best) and trial.seconds_left() > 0 else 0


def _falling(errors: Sequence[float]) -> bool:
    """Tell whether one of the last two errors is clearly lower than all before them."""
    return min(errors[-2:]) < (1 - LEAST_GAIN) * min(errors[:-2], default=np.inf)


def _sampled(rows: Rows, most: int, rng: np.random.Generator) -> Rows:
    if len(rows) <= most:
        return rows
    return rows.where(np.sort(rng.choice(len(rows), most, replace=False)))


@dataclass(eq=False)
class _Trial:
    """Learns from part of the contexts, and predicts the others."""

    learn: Learn
    rows: Rows
    schema: Schema
    config: LearnConfig
    names: tuple[str, ...]
    seed: int
    deadline: float

    def __post_init__(self) -> None:
        columns = [self.rows.column(name) for name in self.names]
        contexts = join([column_keys(column) for column in columns]).codes
        self.context = np.unique(contexts, return_inverse=True)[1]  # [n]
        drawn = np.random.default_rng(self.seed).permutation(int(self.context.max()) + 1)
        self.fold_of_context: Ints = drawn % FOLDS
        self.fold = self.fold_of_context[self.context]  # [n]
        self.known: dict[tuple[int, int], Array] = {}  # errors, by classes and fold

    def seconds_left(self) -> float:
        """Return the time that is left for trials."""
        return max(0.0, self.deadline - time.monotonic())

    def intervals_suffice(self) -> bool:
        """Tell whether intervals leave hardly any of the variance to be explained."""
        left = float(self.errors_of_fold(0, 0).sum())
        held = self.rows.where(self.fold == 0)
        earned = held.column(self.schema.utility).data
        middle = held.weights @ earned / max(held.total, 1e-300)
        return left <= LITTLE * float(held.weights @ (earned - middle) ** 2)

    def errors(self, count: int) -> Array:  # [contexts]
        """Return the squared errors of classes, added up for each context when it is held out.

        If there are many rows, one fold says enough.
        """
        folds = 1 if len(self.rows) > MOST_ROWS else FOLDS
        return sum((self.errors_of_fold(count, fold) for fold in range(folds)), np.zeros(1))

    def beats_intervals(self, count: int) -> bool:
        """Tell whether classes predict better than intervals.

        Where the first folds say so clearly, the others are not tried.
        """
        gains = np.zeros(len(self.fold_of_context))
        for fold in range(FOLDS):
            gains += self.errors_of_fold(0, fold) - self.errors_of_fold(count, fold)
            gain = gains[self.fold_of_context <= fold]
            error = float(gain.std() * np.sqrt(len(gain)))
            if abs(gain.sum()) > CLEARLY * error:
                break
        return bool(gain.sum() > BARELY * error)

    def errors_of_fold(self, count: int, fold: int) -> Array:  # [contexts]
        """Return the squared errors of the contexts that are held out together; others have 0."""
        if (count, fold) not in self.known:
            self.known[count, fold] = self._errors_of_fold(count, fold)
        return self.known[count, fold]

    def _errors_of_fold(self, count: int, fold: int) -> Array:
        held = self.fold == fold
        if not held.any() or held.all():
            return np.zeros(len(self.fold_of_context))
        train, test = self.rows.where(~held), self.rows.where(held)
        left = None if self.config.max_seconds is None else self.seconds_left()
        config = replace(self.config, classes=count, max_seconds=left)
        rng = np.random.default_rng(self.seed)
        learner, root = self.learn(train, self.schema, config, rng)
        expected = self._predicted(learner.builder.build(root), train, test)
        squared = (test.column(self.schema.utility).data - expected) ** 2
        return group_weights(self.context[held], test.weights * squared, len(self.fold_of_context))

    def _predicted(self, network: Network, train: Rows, test: Rows) -> Array:  # [n]
        """Return the expected utility of each row, given its context and decisions."""
        decision = self.schema.decisions[-1]
        compiled = CompiledDecision(network, decision)
        names = self.schema.known_before(decision)
        found = compiled(compiled.contexts({name: test.column(name) for name in names}, len(test)))
        place = {value: k for k, value in enumerate(compiled.values)}
        made = np.array([place.get(v, -1) for v in test.column(decision).decode()])  # type: ignore[arg-type]
        of_rows = found.utility[np.arange(len(test)), made]
        middle = train.weights @ train.column(self.schema.utility).data / train.total
        return np.asarray(np.where((made < 0) | np.isnan(of_rows), middle, of_rows))
