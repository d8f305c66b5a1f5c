"""Values in several worlds at once: the Bellman update with an axis of draws.

Worlds differ in where the branches of the last decision lead and what they earn. All else, such as
what is observed between two decisions, is the model's.
"""

import math
from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np

from rspmn.errors import ConvergenceError
from rspmn.infer.compiled.bellman import Bellman
from rspmn.infer.compiled.linear_forms import Forms, Level
from rspmn.model import RSPMN
from rspmn.trust.rules import Rule
from rspmn.types import Array, Bools

#: Values of many steps are no longer updated where the steps that are left change them by no more
#: than this, relative to the largest.
NEGLIGIBLE = 1e-9
#: Without a horizon, values are updated until they are within this share of their limit; so often
#: at most.
SETTLED, MOST_UPDATES = 1e-5, 12_000


def is_settled(before: Array, values: Array, left: int) -> bool:
    """Tell whether as many further updates as are left change next to nothing.

    None of them changes values by more than the last one did, as long as choices stay the same.
    """
    change = float(np.abs(values - before).max())
    return left * change <= NEGLIGIBLE * float(np.abs(values).max())


def limit_of(update: Callable[[Array], Array], values: Array, what: str) -> Array:
    """Return values after so many updates that further ones change next to nothing.

    `what` they are of, for the message if they do not converge.
    """
    change = math.inf
    for _ in range(MOST_UPDATES):
        before, changed = values, change
        values = update(before)
        change = float(np.abs(values - before).max())
        # If it goes on to shrink like this, so much is left: change · rate / (1 - rate).
        shrinks = change < changed < math.inf
        left = change * change / (changed - change) if shrinks else math.inf
        if change == 0 or left <= SETTLED * float(np.abs(values).max()):
            return values
    raise ConvergenceError(
        f"{what}: the values of draws do not converge without a horizon: make the policy with a "
        "horizon, or a discount below 1"
    )


class TemplateBranches(Protocol):
    """The branches of a template."""

    bellman: Bellman
    closed: Bools  # [branches], which lead to nothing known


class Source(Protocol):
    """Draws all weights of a model."""

    @property
    def caveats(self) -> tuple[str, ...]:
        """What no draw knows of."""
        ...

    @property
    def floats(self) -> int:
        """About how many floats a draw holds."""
        ...

    def affordable(self, draws: int) -> int:
        """Return so many draws or, where each takes long, fewer."""
        ...

    def bounds(self, steps: int | None, discount: float) -> tuple[float, float]:
        """Return what no plan earns less than, and no more than."""
        ...

    def draw_worlds(self, draws: int, rng: np.random.Generator) -> "tuple[Worlds, Array]":
        """Return draws as worlds, and the start distribution in each: [draws, interfaces]."""
        ...


class Worlds:
    """Models that share a template.

    Parameters
    ----------
    evidence
        The template, and which of its branches lead to nothing known.
    earned
        What the branches of the last decision earn. [draws or 1, branches]
    expect
        Returns what interface nodes are worth on average after each branch: from
        [draws, interfaces] to [draws, branches].
    """

    def __init__(
        self, evidence: TemplateBranches, earned: Array, expect: Callable[[Array], Array]
    ) -> None:
        self.bellman, self.closed = evidence.bellman, evidence.closed
        self.earned, self.expect = earned, expect

    def update(self, after: Array, discount: float, last: bool, rule: Rule) -> Array:
        """Return what interface nodes are worth, given a step later: [draws, interfaces]."""
        bellman = self.bellman
        values = np.zeros((len(after), bellman.size))
        if not last:
            values[:, : bellman.interfaces] = discount * after
            if bellman.unknown is not None:
                values[:, bellman.unknown] = 0.0
        for number, level in enumerate(bellman.levels):
            worth = self._worth(level, values, last, innermost=number == 0)
            values[:, level.slots] = rule.settle(number, level, worth)
        return self._settled(_averaged(bellman.roots, values))

    def values(self, rules: Iterable[Rule], discount: float, draws: int) -> Array:
        """Return what interface nodes are worth with a rule for each step, the last step first."""
        found = np.zeros((draws, self.bellman.interfaces))
        for after, rule in enumerate(rules):
            found = self.update(found, discount, after == 0, rule)
        return found

    def _worth(self, level: Level, values: Array, last: bool, innermost: bool) -> Array:
        if not innermost:
            worth = _averaged(level.forms, values)
        elif last:
            worth = np.repeat(self.earned, len(values) // len(self.earned), axis=0)
        else:
            worth = self.expect(values[:, : self.bellman.interfaces]) + self.earned
        worth[:, self.closed if innermost and not last else level.untried] = -np.inf
        return worth

    def _settled(self, found: Array) -> Array:
        """Give frontier nodes the lowest value of all others, but not the node UNKNOWN."""
        lost = np.isneginf(found)
        if not lost.any():
            return found
        worst = np.where(lost, np.inf, found).min(axis=1, keepdims=True)
        return np.where(lost & np.isfinite(worst), worst, np.where(lost, 0.0, found))


class OwnWorld(Worlds):
    """The model itself as the only world."""

    def __init__(self, model: RSPMN) -> None:
        bellman = model.bellman
        forms, shares = bellman.levels[0].forms, np.ones(bellman.size)
        if bellman.unknown is not None:
            shares[bellman.unknown] = 0.0
        known = forms(np.zeros(bellman.size), shares)[1]
        self.bellman = bellman
        self.closed = bellman.levels[0].untried | (known == 0)
        self.earned = forms.earned[None, :]
        self.expect = self._expected
        self._shares = shares

    def _expected(self, after: Array) -> Array:
        values = np.zeros(self.bellman.size)
        values[: self.bellman.interfaces] = after[0]
        self.bellman.spread(values)
        return self.bellman.levels[0].forms(values, self._shares)[0][None, :]


def _averaged(forms: Forms, values: Array) -> Array:  # [draws, rows]
    """Return the average of what is known, values above -∞; -∞ where nothing is."""
    if forms.copied is not None:
        return np.asarray(values[:, forms.copied] + forms.earned)
    lost = np.isneginf(values)
    found = np.asarray(forms.matrix @ np.where(lost, 0.0, values).T).T
    if lost.any():
        partly = np.asarray(forms.matrix @ lost.T.astype(np.float64)).T > 0
        known = np.asarray(forms.matrix @ (~lost).T.astype(np.float64)).T + forms.rest
        np.divide(found, known, out=found, where=partly & (known > 1e-12))
        found[partly & (known <= 1e-12)] = -np.inf
    return np.asarray(found + forms.earned)
