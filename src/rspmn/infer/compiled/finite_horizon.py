"""Values over a horizon: Bellman updates until what is left of them is a line.

Let T be the update and V_h the values with h steps to go. With time an update adds the same again
and again: V_{b+k} = V_b + k·g with some g for each interface node, the gain per step. Where values
settle, g is 0; where all nodes reach each other, it is one number. So updates stop when

    e_k = T(V_b + k·g) - (V_b + (k + 1)·g)

is small for all k up to the K steps that are left. T is monotone and moves no value by more than
its argument (it takes means and maxima), so V_{b+K} is off by at most the sum of all |e_k|. That is
bounded in two ways:

- *g is one number c.* Means and maxima pass a constant on, so e_k = e_0 for all k.
- *T is convex*, a maximum of linear forms. Then so is e_k as a function of k. Between 0 and K it is
  no more than on the line from e_0 to e_K, which one update finds; and no less than on the line
  through e_{-j} and e_0. With g = (V_b - V_{b-j}) / j, e_{-j} is what T adds to V_{b-j}, less g.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rspmn.infer.compiled.bellman import Bellman, Choices
from rspmn.infer.constraints import Constraints
from rspmn.infer.criterion import MEU, Criterion
from rspmn.types import Array

#: Updates stop when values to the end of the horizon are known to this, relative to the largest.
TOLERANCE = 1e-11
#: After so many steps it is first looked whether updates may stop; then after half as many again.
FIRST_LOOK = 128


@dataclass(frozen=True, eq=False)
class StepValues:
    """Numbers of interface nodes, by steps to go: rows, and a line or a parabola after the last."""

    rows: Mapping[int, Array]  # by steps to go, [interfaces] each
    last: int  # the most steps to go of the rows
    slope: Array | float = 0.0  # what the first step after the last row adds; [interfaces]
    bend: Array | float = 0.0  # what each further step adds to the slope; [interfaces]
    bound: float = 0.0  # how far numbers after the last row may be off

    def __getitem__(self, steps: int) -> Array:  # [interfaces]
        beyond = steps - self.last
        if beyond <= 0:
            return self.rows[steps]
        bent = beyond * (beyond - 1) / 2 * self.bend
        return np.asarray(self.rows[self.last] + beyond * self.slope + bent)


def values_over(
    bellman: Bellman,
    horizon: int,
    discount: float = 1.0,
    criterion: Criterion = MEU,
    keep: bool = True,
) -> StepValues:
    """Return what the interface nodes are worth with 0, 1, …, `horizon` steps to go.

    Without `keep` only those with `horizon` steps to go are returned.
    """
    update = Update(bellman, discount, criterion)
    rows = {0: np.zeros(bellman.interfaces)}
    before, look = FIRST_LOOK // 2, FIRST_LOOK
    for steps in range(1, horizon + 1):
        rows[steps] = bellman.update(rows[steps - 1], discount, steps == 1, criterion)
        if not keep and steps - 2 not in (before, before + 1):
            rows.pop(steps - 2, None)
        if steps == look and steps < horizon:
            found = _line(update, rows, before, steps - 1, horizon)
            if found is not None:
                return found
            before, look = steps - 1, look + look // 2
    return StepValues(rows, horizon)


def settled_over(
    bellman: Bellman,
    values: StepValues,
    horizon: int,
    discount: float,
    choose: Callable[[int, Array], Choices],
    all_known: bool,
) -> tuple[StepValues, StepValues]:
    """Return how late values are earned, and which share of them is supported to the end.

    `bellman`, `discount`: the template as matrices, and the discount. `values`: what interface
    nodes are worth. `horizon`: the most steps to go. `choose`: returns the best branches, given how
    many steps follow and the delays after this one. `all_known`: whether everything is supported.
    """
    delays, supports = {0: np.zeros(bellman.interfaces)}, {0: np.ones(bellman.interfaces)}
    steps = 0
    for steps in range(1, min(values.last, horizon) + 1):
        found = choose(steps - 1, delays[steps - 1])
        _, delays[steps] = bellman.settle(found)
        if not all_known:
            last = steps == 1
            supports[steps] = bellman.supports(found, supports[steps - 1], discount, last)[0]
    if steps == horizon or (all_known and not np.any(values.slope)):
        return StepValues(delays, steps), StepValues(supports, max(supports))
    found = choose(steps, delays[steps])  # and so on
    slope = bellman.settle(found)[1] - delays[steps] if np.any(values.slope) else 0.0
    for further in range(steps + 1, 1 if all_known else horizon + 1):
        supports[further] = bellman.supports(found, supports[further - 1], discount, False)[0]
        if np.abs(supports[further] - supports[further - 1]).max() <= TOLERANCE:
            break
    late = StepValues(delays, steps, slope, values.slope)
    return late, StepValues(supports, max(supports))


@dataclass(frozen=True)
class Update:
    """The Bellman update of a step that is not the last, and what is known of it as a function."""

    bellman: Bellman
    discount: float
    criterion: Criterion

    def __call__(self, values: Array) -> Array:  # [interfaces]
        """Return the values after an update."""
        return self.bellman.update(values, self.discount, False, self.criterion)

    @property
    def takes_means_and_maxima(self) -> bool:
        """Whether it moves no value by more than its argument.

        A criterion of its own may do anything. Where it is not known everywhere what follows, and
        decisions are made in turn, how much is known depends on what is chosen later.
        """
        rule = self.criterion
        if isinstance(rule, Constraints):
            rule = rule.criterion
        return rule is MEU and (not self.bellman.has_edge or len(self.bellman.levels) < 2)

    @property
    def passes_constants_on(self) -> bool:
        """Whether adding a number to all values adds it to all after the update."""
        forms = [self.bellman.roots, *(level.forms for level in self.bellman.levels)]
        return not any(form.rest.any() for form in forms)

    def of_finite(self, values: Array) -> Array:  # [interfaces]
        """Return the values after an update, 0 where it is not known what follows."""
        found = self(values)
        if self.bellman.unknown is not None:
            found[self.bellman.unknown] = 0.0
        return found

    def choices(self, values: Array) -> Choices:
        """Return the best choices, by exact comparison."""
        return self.bellman.choose(values, None, self.discount, False, self.criterion, tie=0.0)

    def is_convex(self, values: Array) -> bool:
        """Tell whether it is a maximum of means: no node is worth as little as the worst."""
        choices = self.bellman.choose(values, None, self.discount, False, self.criterion)
        return bool((self.bellman.copied(choices) == np.arange(len(values))).all())


def _line(
    update: Update, rows: dict[int, Array], before: int, base: int, horizon: int
) -> StepValues | None:
    """Return the rows up to `base` and how they go on; None if that is not near enough."""
    left, known = horizon - base, np.isfinite(rows[base])
    if any(not np.array_equal(known, np.isfinite(rows[h])) for h in (before, base + 1)):
        return None
    values = rows[base][known]
    change = rows[base + 1][known] - values
    if not change.any():
        return StepValues(rows, base)
    if not update.takes_means_and_maxima:
        return None
    size = float(np.abs(values).max())
    if update.discount < 1:
        bound = float(np.abs(change).max()) / (1 - update.discount)
        return StepValues(rows, base, bound=bound) if bound <= TOLERANCE * size else None
    gain = np.zeros(len(known))
    if update.passes_constants_on and change.min() * change.max() > 0:
        gain[known] = (change.min() + change.max()) / 2
    bound = left * float(np.abs(change - gain[known]).max())
    if bound > TOLERANCE * max(size, float(np.abs(values + left * gain[known]).max())):
        if not update.is_convex(rows[base]):
            return None
        gain[known] = (values - rows[before][known]) / (base - before)
        bound = _bound_of_gains(update, rows, before, base, left, gain)
    reached = max(size, float(np.abs(values + left * gain[known]).max()))
    return StepValues(rows, base, gain, bound=bound) if bound <= TOLERANCE * reached else None


def _bound_of_gains(
    update: Update, rows: dict[int, Array], before: int, base: int, left: int, gain: Array
) -> float:
    """Return how far values are off after `left` steps of some gains, if updates are convex."""
    known = np.isfinite(rows[base])
    first, earlier = (rows[h + 1][known] - rows[h][known] - gain[known] for h in (base, before))
    reached = rows[base] + left * gain
    last = update(reached)[known] - reached[known] - gain[known]
    lowest = first + left * (first - earlier) / (base - before)
    return left * float(np.abs([first, np.maximum(first, last), np.minimum(first, lowest)]).max())
