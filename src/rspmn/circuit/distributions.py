"""Distributions of one variable, as leaves hold them.

Every one knows its log-probability (or log-density), mode, mean, variance, and how to draw.
A value that it does not hold has probability 0: it was never seen. A missing value
is not asked about here; inference gives it likelihood 1.

`Categorical` serves categorical and boolean variables, single atoms of any kind, and END.
`IntegerHistogram` serves integers, `PiecewiseLinear` continuous variables.
"""

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from rspmn.errors import CircuitError
from rspmn.values import Mark, Value, as_value, show

#: How far probabilities may be from summing to 1: what is left when a person writes
#: them out with ten digits.
SIMPLEX_TOLERANCE = 1e-9


def check_simplex(where: str, masses: tuple[float, ...]) -> None:
    """Refuse what is not a probability vector."""
    for mass in masses:
        if not 0 <= mass <= 1 + SIMPLEX_TOLERANCE:
            raise CircuitError(f"{where}: expected probabilities from 0 to 1, found {mass}")
    total = math.fsum(masses)
    if abs(total - 1) > SIMPLEX_TOLERANCE:
        raise CircuitError(f"{where}: expected probabilities that sum to 1, found {total:.12g}")


def _draw(masses: tuple[float, ...], rng: np.random.Generator) -> int:
    """Draw an index in proportion to its mass, never one of mass 0."""
    heights = np.cumsum(masses)
    return int(np.searchsorted(heights, rng.random() * heights[-1], side="right"))


@dataclass(frozen=True, slots=True)
class Categorical:
    """A probability for each of some values.

    >>> Categorical(("left", "right"), (0.25, 0.75)).mode()
    'right'
    """

    values: tuple[Value, ...]  # [n], distinct
    probabilities: tuple[float, ...]  # [n], sums to 1
    # True == 1 == 1.0 in Python; for equality and interning they are not the same leaf.
    types: tuple[type, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        plain = tuple(as_value(value, "Categorical", CircuitError) for value in self.values)
        object.__setattr__(self, "values", plain)
        where = f"Categorical({', '.join(map(show, self.values[:4]))})"
        if not self.values:
            raise CircuitError(f"{where}: expected at least one value, found none")
        if len(self.values) != len(self.probabilities):
            raise CircuitError(
                f"{where}: {len(self.values)} values but {len(self.probabilities)} probabilities"
            )
        if len(set(self.values)) != len(self.values):
            twice = next(v for i, v in enumerate(self.values) if v in self.values[:i])
            raise CircuitError(f"{where}: value {show(twice)} stands twice")
        object.__setattr__(self, "probabilities", tuple(map(float, self.probabilities)))
        object.__setattr__(self, "types", tuple(map(type, self.values)))
        check_simplex(where, self.probabilities)

    @classmethod
    def certain(cls, value: Value) -> "Categorical":
        """All mass on one value."""
        return cls((value,), (1.0,))

    def log_prob(self, value: Value) -> float:
        """Return log P(value)."""
        if value not in self.values:
            return -math.inf
        probability = self.probabilities[self.values.index(value)]
        return math.log(probability) if probability > 0 else -math.inf

    def mode(self) -> Value:
        """Return the likeliest value, the first of several."""
        return self.values[self.probabilities.index(max(self.probabilities))]

    def sample(self, rng: np.random.Generator) -> Value:
        """Draw a value."""
        return self.values[_draw(self.probabilities, rng)]

    def mean(self) -> float:
        """Return the mean, of numbers and booleans."""
        return math.fsum(p * v for p, v in zip(self.probabilities, self._numbers(), strict=True))

    def variance(self) -> float:
        """Return the variance, of numbers and booleans."""
        mean = self.mean()
        return math.fsum(
            p * (v - mean) ** 2 for p, v in zip(self.probabilities, self._numbers(), strict=True)
        )

    def _numbers(self) -> list[float]:
        for value in self.values:
            if isinstance(value, str | Mark):
                raise CircuitError(f"a distribution over {value!r} and its like has no mean")
        return [float(value) for value in self.values]  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class IntegerHistogram:
    """Integers in bins; within a bin all alike.

    Bin k holds the integers edges[k] ≤ x < edges[k+1]. Bins of width 1 are an exact
    distribution, wide ones carry a long tail.

    >>> IntegerHistogram((0, 1, 5), (0.6, 0.4)).mean()  # .6 · 0 + .4 · (1+2+3+4)/4
    1.0
    """

    edges: tuple[int, ...]  # [n+1], strictly increasing
    masses: tuple[float, ...]  # [n], sums to 1

    def __post_init__(self) -> None:
        where = f"IntegerHistogram(edges {self.edges[:4]})"
        if len(self.edges) != len(self.masses) + 1 or not self.masses:
            raise CircuitError(
                f"{where}: expected one more edge than masses, "
                f"found {len(self.edges)} edges and {len(self.masses)} masses"
            )
        for edge in self.edges:
            if type(edge) is not int or abs(edge) >= 2**63:
                raise CircuitError(f"{where}: expected 64-bit integer edges, found {edge!r}")
        if any(a >= b for a, b in pairwise(self.edges)):
            raise CircuitError(f"{where}: expected edges that increase, found {self.edges}")
        object.__setattr__(self, "masses", tuple(map(float, self.masses)))
        check_simplex(where, self.masses)

    def log_prob(self, value: Value) -> float:
        """Return log P(value)."""
        if isinstance(value, str | Mark) or value != int(value):
            return -math.inf
        k = int(np.searchsorted(self.edges, value, side="right")) - 1
        if not 0 <= k < len(self.masses) or self.masses[k] == 0:
            return -math.inf
        return math.log(self.masses[k] / (self.edges[k + 1] - self.edges[k]))

    def mode(self) -> Value:
        """Return the likeliest integer, the lowest of several."""
        heights = [m / (b - a) for m, (a, b) in zip(self.masses, pairwise(self.edges), strict=True)]
        return self.edges[heights.index(max(heights))]

    def sample(self, rng: np.random.Generator) -> Value:
        """Draw an integer."""
        k = _draw(self.masses, rng)
        return int(rng.integers(self.edges[k], self.edges[k + 1]))

    def mean(self) -> float:
        """Return the mean."""
        return math.fsum(
            m * (a + b - 1) / 2 for m, (a, b) in zip(self.masses, pairwise(self.edges), strict=True)
        )

    def variance(self) -> float:
        """Return the variance: between the bins, and (w² - 1)/12 within each of width w."""
        mean = self.mean()
        return math.fsum(
            m * (((a + b - 1) / 2 - mean) ** 2 + ((b - a) ** 2 - 1) / 12)
            for m, (a, b) in zip(self.masses, pairwise(self.edges), strict=True)
        )


@dataclass(frozen=True, slots=True)
class PiecewiseLinear:
    """A density that is linear between knots and 0 outside them.

    It follows any shape a histogram can (many modes, skew, bounded support), converges
    faster than one, and its mass, mean and inverse are closed forms.

    >>> ramp = PiecewiseLinear((0.0, 1.0), (0.0, 2.0))   # density 2x
    >>> round(ramp.mean(), 12), round(ramp.cdf(0.5), 12)
    (0.666666666667, 0.25)
    """

    knots: tuple[float, ...]  # [n], strictly increasing
    densities: tuple[float, ...]  # [n], the trapezoids' areas sum to 1

    def __post_init__(self) -> None:
        where = f"PiecewiseLinear({len(self.knots)} knots)"
        if len(self.knots) != len(self.densities) or len(self.knots) < 2:
            raise CircuitError(
                f"{where}: expected two or more knots and as many densities, "
                f"found {len(self.densities)} densities"
            )
        object.__setattr__(self, "knots", tuple(map(float, self.knots)))
        object.__setattr__(self, "densities", tuple(map(float, self.densities)))
        if not all(map(math.isfinite, self.knots)):
            raise CircuitError(f"{where}: expected finite knots, found {self.knots}")
        if any(a >= b for a, b in pairwise(self.knots)):
            raise CircuitError(f"{where}: expected knots that increase, found {self.knots}")
        if not all(math.isfinite(d) and d >= 0 for d in self.densities):
            raise CircuitError(f"{where}: expected densities of at least 0, found {self.densities}")
        check_simplex(where, self.masses())

    @classmethod
    def scaled(cls, knots: tuple[float, ...], heights: tuple[float, ...]) -> "PiecewiseLinear":
        """Make a density of any non-negative heights by scaling their area to 1.

        >>> PiecewiseLinear.scaled((0.0, 1.0, 2.0), (0.0, 5.0, 0.0)).densities
        (0.0, 1.0, 0.0)
        """
        area = math.fsum(_areas(knots, heights))
        if not area > 0:
            raise CircuitError(f"PiecewiseLinear: expected an area above 0, found {area}")
        return cls(knots, tuple(h / area for h in heights))

    def masses(self) -> tuple[float, ...]:
        """Return the probability of each piece."""
        return _areas(self.knots, self.densities)

    def log_prob(self, value: Value) -> float:
        """Return the log-density at a number."""
        if isinstance(value, str | Mark):
            return -math.inf
        if not self.knots[0] <= value <= self.knots[-1]:
            return -math.inf
        density = float(np.interp(value, self.knots, self.densities))
        return math.log(density) if density > 0 else -math.inf

    def cdf(self, value: float) -> float:
        """Return P(X ≤ value)."""
        total = 0.0
        for (a, b), (fa, fb) in zip(pairwise(self.knots), pairwise(self.densities), strict=True):
            reached = min(max(value, a), b)
            f_reached = fa + (fb - fa) * (reached - a) / (b - a)
            total += (reached - a) * (fa + f_reached) / 2
        return total

    def mode(self) -> Value:
        """Return the knot of highest density, the lowest of several."""
        return self.knots[self.densities.index(max(self.densities))]

    def sample(self, rng: np.random.Generator) -> Value:
        """Draw a number: a piece by its mass, then the inverse of its quadratic CDF."""
        k = _draw(self.masses(), rng)
        (a, b), heights = self.knots[k : k + 2], self.densities[k : k + 2]
        fa, fb = (
            height / max(heights) for height in heights
        )  # whose squares neither vanish nor overflow
        u = rng.random()
        # s solves fa·s + (fb - fa)·s²/2 = u·(fa + fb)/2, written without cancellation.
        s = u * (fa + fb) / (fa + math.sqrt(fa * fa + u * (fb * fb - fa * fa)))
        return a + (b - a) * s

    def mean(self) -> float:
        """Return the mean: ∫ x f over [a, b] is (b - a)·(fa·(2a + b) + fb·(a + 2b))/6."""
        return math.fsum(
            (b - a) * (fa * (2 * a + b) + fb * (a + 2 * b)) / 6
            for (a, b), (fa, fb) in zip(pairwise(self.knots), pairwise(self.densities), strict=True)
        )

    def variance(self) -> float:
        """Return the variance: ∫ x² f about the mean, piece by piece."""
        mean = self.mean()
        about = [x - mean for x in self.knots]
        return math.fsum(
            (b - a)
            * (fa * (3 * a * a + 2 * a * b + b * b) + fb * (a * a + 2 * a * b + 3 * b * b))
            / 12
            for (a, b), (fa, fb) in zip(pairwise(about), pairwise(self.densities), strict=True)
        )


Distribution = Categorical | IntegerHistogram | PiecewiseLinear


def _areas(knots: tuple[float, ...], heights: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(
        (b - a) * (fa + fb) / 2
        for (a, b), (fa, fb) in zip(pairwise(knots), pairwise(heights), strict=True)
    )
