"""Values without a horizon by updates alone, for models whose chains are too large to solve.

A chain of factored latents leads from nearly every interface node to every other, and equations of
many nodes fill up when they are solved. Updates need neither. They stop by what one of them adds:

- *With a discount γ*, if an update adds at least a and at most b to all values, the limit is
  between V + a·γ/(1 - γ) and V + b·γ/(1 - γ), V being the updated values (MacQueen). The middle is
  taken. Where nodes reach each other, b - a falls much faster than a and b do.
- *Without discount* episodes must end. Let τ be the expected number of steps to the end, also found
  by updates. Once a further update adds no more than 1/2 to any τ, values are off by at most 2·τ
  times what an update adds to them, as long as choices stay the same.
"""

import numpy as np

from rspmn.errors import ConvergenceError
from rspmn.infer.compiled.bellman import Bellman, Choices
from rspmn.infer.compiled.finite_horizon import TOLERANCE, Update
from rspmn.types import Array

#: Updates are tried first from so many interface nodes on; where latents are factored, from fewer.
LARGE, LARGE_FACTORED = 5_000, 500
#: So many updates are tried where equations could be solved instead, and so many where not.
TRIED, MOST_UPDATES = 200, 100_000
#: Shares and delays are updated until they change by no more than this, relative to the largest.
SETTLED = 1e-7


def is_large(bellman: Bellman) -> bool:
    """Tell whether updates are tried before equations are solved."""
    return bellman.interfaces > (LARGE_FACTORED if bellman.factored else LARGE)


def discounted_limit(update: Update) -> tuple[Array, float]:
    """Return values in the limit and how far they may be off; infinitely if equations are better.

    The values are those of the last update then.
    """
    bellman = update.bellman
    states, values = np.arange(bellman.interfaces) != bellman.unknown, np.zeros(bellman.interfaces)
    if not update.takes_means_and_maxima:
        return values, np.inf
    for _ in range(MOST_UPDATES if bellman.factored else TRIED):
        before, values = values, update.of_finite(values)
        shift, bound = _macqueen((values - before)[states], update)
        if bound <= TOLERANCE * np.abs(values + shift).max():
            return values + shift * states, bound
    return values, np.inf


def _macqueen(change: Array, update: Update) -> tuple[float, float]:
    """Return the middle of what further updates add, and how far it may be off."""
    further = update.discount / (1 - update.discount)
    low, high = float(change.min()), float(change.max())
    if low <= 0 <= high or not update.passes_constants_on:
        return 0.0, further * max(abs(low), abs(high))
    return further * (low + high) / 2, further * (high - low) / 2


def limit_with_end(update: Update, end: int | None) -> tuple[Array, float] | None:
    """Return values without discount and how far they may be off; None if equations are better.

    Raised is a `ConvergenceError` if all values grow, or all fall, for ever.
    """
    bellman = update.bellman
    if not update.takes_means_and_maxima:
        return None
    states, values = np.arange(bellman.interfaces) != bellman.unknown, np.zeros(bellman.interfaces)
    look = 0
    for count in range(MOST_UPDATES if bellman.factored and end is not None else TRIED):
        before, values = values, update.of_finite(values)
        change = (values - before)[states]
        if not change.any():
            return values, 0.0
        if update.passes_constants_on:
            _refuse_growth(change)
        near = np.abs(change).max() <= 0.01 * TOLERANCE * np.abs(values).max()
        if end is not None and near and count >= look:
            rounding = 8 * float(np.spacing(np.abs(values).max()))
            most = _longest(bellman, update.choices(values), end, 1000 + 4 * count)
            bound = 2 * most * (float(np.abs(change).max()) + rounding)
            if bound <= 1e3 * TOLERANCE * np.abs(values).max():
                return values, bound
            look = 2 * count
    return None


def _refuse_growth(change: Array) -> None:
    """Refuse values that all grow, or all fall, by nearly the same amount in a step."""
    gain = (change.min() + change.max()) / 2
    if change.min() * change.max() > 0 and np.ptp(change) <= 1e-6 * abs(gain):
        raise ConvergenceError(
            f"values change by {gain:.6g} per step: without a horizon the values have no "
            "limit; give a horizon or a discount below 1"
        )


def _longest(bellman: Bellman, choices: Choices, end: int, updates: int) -> float:
    """Return the longest expected time to END; infinite if so many updates do not find it."""
    times = np.zeros(bellman.interfaces)
    for _ in range(updates):
        before, times = times, 1.0 + bellman.follow(choices, times)
        times[end] = 0.0
        if bellman.unknown is not None:
            times[bellman.unknown] = 0.0
        if (times - before).max() <= 0.5:
            return float(times.max())
    return np.inf


def supports_by_updates(
    bellman: Bellman, choices: Choices, discount: float
) -> Array:  # [interfaces]
    """Return the share that is supported for ever, given choices."""
    found = np.ones(bellman.interfaces)
    for _ in range(MOST_UPDATES):
        before, found = found, bellman.supports(choices, found, discount, last=False)[0]
        if (before - found).max() <= SETTLED * (1 - discount if discount < 1 else 1e-3):
            break
    return found


def keeps_promises(bellman: Bellman, choices: Choices, values: Array, least: float) -> bool:
    """Tell whether what is still promised after ever more steps falls below a number."""
    promised = values
    for _ in range(MOST_UPDATES):
        if np.abs(promised).max() <= least:
            return True
        before, promised = promised, bellman.follow(choices, promised)
        if np.abs(promised - before).max() <= 1e-6 * least:
            return False
    return False
