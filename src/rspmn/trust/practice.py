"""What current practice is worth, in a model and in the log: where they differ, a model is wrong.

What the log's episodes earned is known without bias. A model that gives practice another value
misses something: what decisions depend on may be no variable of the state, or states that it takes
for alike are not, or episodes end at a time limit, which no state tells. Its values of other
policies may then be as wrong.
"""

import math
from collections.abc import Iterator
from itertools import count, islice
from typing import NamedTuple

import numpy as np

from rspmn.circuit import Network
from rspmn.infer.compiled.outcomes import outcomes_of
from rspmn.model import RSPMN
from rspmn.trust.dirichlet import draw_dirichlet
from rspmn.trust.drawn_worlds import OwnWorld, Worlds, is_settled, limit_of
from rspmn.trust.rules import Mixed
from rspmn.types import Array, Ints
from rspmn.values import short

#: Practice is valued in so many draws, for so many steps at most.
DRAWS, MOST_STEPS = 40, 1_000
#: At most this many floats are held by the draws that are made together.
MOST_FLOATS = 10_000_000
#: A horizon holds logged episodes if practice has this share of their steps in it.
WHOLE = 0.8
#: Numbers of steps that differ by less than this share are the same.
ROUNDING = 1e-6
#: The model is doubted if practice differs by more deviations, and by more than this share of what
#: it earns or loses in an episode.
DEVIATIONS, LEAST = 3.0, 0.05


def practice_of(model: RSPMN, horizon: int | None, discount: float) -> float:
    """Return what practice is worth: in the model or, where it is higher, in the log.

    Practice may depend on more than the state, on the time for example: then it is worth more than
    in the model, which knows its frequencies alone.
    """
    found, logged = value_in_model(model, horizon, discount), logged_of(model)
    if discount < 1 or not math.isfinite(logged.steps):
        return found
    if horizon is not None:  # whether it holds all of a logged episode
        last = next(islice(_lasting(model), horizon - 1, None))
        if last < WHOLE * logged.steps:
            return found
    return max(found, logged.earned)


class LogMean(NamedTuple):
    """What an episode of the log has on average."""

    steps: float
    earned: float


def logged_of(model: RSPMN) -> LogMean:
    """Return what the log of a model has; infinite steps if that is not known."""
    soft, counts = model.soft_counts, model.counts
    if counts is not None:
        times = _paths(model.template)[outcomes_of(model.template).nodes]  # equal parts are one
        steps, earned = np.array(counts.steps) * times[list(counts.outcome)], np.array(counts.mean)
        total, starts = steps.sum(), sum(counts.starts)
    else:
        assert soft is not None, "counted models have one of them"
        if soft.sample is None:
            return LogMean(math.inf, -math.inf)
        steps, earned = np.array(soft.sample.weight), np.array(soft.sample.utility)
        total, starts = sum(soft.steps), sum(soft.starts)
    if not (starts and total):
        return LogMean(math.inf, -math.inf)
    return LogMean(float(total / starts), float(steps @ earned / steps.sum() * total / starts))


def _paths(template: Network) -> Array:  # [nodes]
    """Return the number of paths from the roots to each node."""
    from scipy.sparse import csr_array

    arrays, size = template.arrays, len(template)
    edges = np.ones(len(arrays.children)), (arrays.children, arrays.parents)
    down = csr_array(edges, shape=(size, size))
    level = np.bincount(template.roots, minlength=size).astype(np.float64)
    found = np.zeros(size)
    while level.any():
        found += level
        level = down @ level
    return found


def value_in_model(model: RSPMN, horizon: int | None, discount: float) -> float:
    """Return what practice is worth in a model."""
    world, rule = OwnWorld(model), practised(model)
    values = np.zeros((1, model.num_interfaces))

    def update(before: Array, last: bool = False) -> Array:
        return world.update(before, discount, last, rule)

    if horizon is None:
        values = limit_of(update, values, "practice")
    for after in range(horizon or 0):
        before, values = values, update(values, last=after == 0)
        if after and is_settled(before, values, (horizon or 0) - 1 - after):
            break
    return float(values[0] @ np.array(model.starts))


def practised(model: RSPMN) -> Mixed:
    """Return practice as a rule: max nodes as sums, by logged frequencies."""
    levels = model.bellman.levels
    return Mixed([often_taken(level.branches.steps, level.starts) for level in levels])


def often_taken(steps: Array, starts: Ints) -> Array:  # [branches]
    """Return how often branches were taken; all as often at a max node where none was."""
    total = np.add.reduceat(steps, starts)
    counts = np.diff(np.append(starts, len(steps)))
    return np.where(np.repeat(total > 0, counts), steps, 1.0)


def doubt_of_practice(model: RSPMN) -> tuple[str, ...]:
    """Return why values of a model may be wrong: it misses what the log's episodes earned.

    Practice is valued for as many steps as an episode of the log has on average; but if all of the
    longest episodes ended, for no more than they had: by then, all is earned.
    """
    logged, rule = logged_of(model), practised(model)
    as_long, limit = _steps_of(model, logged.steps), model.last_end or math.inf
    steps = min(as_long, limit)
    if steps > MOST_STEPS:
        return ()
    source, rng, found = model.source, np.random.default_rng(0), []
    most, left = max(1, MOST_FLOATS // source.floats), source.affordable(DRAWS)
    firsts = [level.starts for level in model.bellman.levels]
    while left:
        draws = min(most, left)
        left -= draws
        drawn, starts = source.draw_worlds(draws, rng)
        chances = zip(rule.probabilities, firsts, strict=True)
        chosen = Mixed([draw_dirichlet(often, first, draws, rng) for often, first in chances])
        worth, whole = np.zeros((2, draws)), int(steps)
        values = np.zeros((draws, model.num_interfaces))
        for after in range(math.ceil(steps)):
            values = drawn.update(values, 1.0, after == 0, chosen)
            worth = np.stack([worth[1], (values * starts).sum(axis=1)])
        part = steps - whole or 1.0
        found.append(worth[0] + part * (worth[1] - worth[0]))
    earned = np.concatenate(found)
    mean, apart = float(earned.mean()), abs(logged.earned - float(earned.mean()))
    if apart <= max(DEVIATIONS * float(earned.std()), LEAST * abs(logged.earned)):
        return ()
    ends = (
        f", or the longest episodes, of {limit} steps, did not end but were cut by a time limit: "
        "log them as truncated"
    ) * (limit < as_long)
    return (
        f"the mean logged return is {short(logged.earned)}, but in the model current practice is "
        f"worth {short(mean)}: decisions may depend on what the log does not have, or episodes "
        f"were cut at different lengths{ends}; values may be wrong",
    )


def _steps_of(model: RSPMN, mean: float) -> float:
    """Return for how many steps practice has so many on average; infinity if for none."""
    if not 0 < mean <= MOST_STEPS:
        return math.inf
    before = 0.0
    for steps, last in enumerate(_lasting(model), start=1):
        if last >= mean - ROUNDING * mean:
            return steps - 1 + min(1.0, (mean - before) / (last - before))
        if last - before < ROUNDING * last or steps == MOST_STEPS:
            return math.inf  # episodes of the model are shorter
        before = last
    return math.inf


def _lasting(model: RSPMN) -> Iterator[float]:
    """Yield how many steps an episode of practice has, on average, of at most 1, 2, … steps."""
    own, rule, first = OwnWorld(model), practised(model), np.array(model.starts)
    taken = own.bellman.levels[0].branches.steps > 0  # none after the end of an episode
    alive = Worlds(own, taken[None, :].astype(np.float64), own.expect)
    values = np.zeros((1, model.num_interfaces))
    for after in count():
        values = alive.update(values, 1.0, after == 0, rule)
        yield float(values[0] @ first)
