"""Densities that are linear between knots."""

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rspmn.circuit.distributions.base import (
    MOST_PIECES,
    Distribution,
    Values,
    as_numbers,
    check_simplex,
    draw_index,
    draw_indices,
    piece_weights,
    register,
    weights_of_pieces,
)
from rspmn.circuit.fields import Fields
from rspmn.errors import CircuitError
from rspmn.schema import Kind
from rspmn.types import Array
from rspmn.values import Mark, Value

#: Half the width of the peak that is fitted to a single number, relative to its size.
NARROW = 1e-9


@register
@dataclass(frozen=True, slots=True)
class PiecewiseLinear(Distribution):
    """A density that is linear between knots and 0 outside them.

    It follows any shape a histogram can (many modes, skew, bounded support), converges faster than
    one, and its mass, mean and inverse are closed forms.

    >>> ramp = PiecewiseLinear((0.0, 1.0), (0.0, 2.0))   # density 2x
    >>> round(ramp.mean(), 12), round(ramp.cdf(0.5), 12)
    (0.666666666667, 0.25)
    """

    family: ClassVar[str] = "piecewise_linear"
    kinds: ClassVar[frozenset[Kind]] = frozenset([Kind.CONTINUOUS])

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
            raise CircuitError(f"{where}: expected increasing knots, found {self.knots}")
        if not all(math.isfinite(d) and d >= 0 for d in self.densities):
            raise CircuitError(f"{where}: expected densities of at least 0, found {self.densities}")
        check_simplex(where, self.masses())

    @classmethod
    def scaled(cls, knots: tuple[float, ...], heights: tuple[float, ...]) -> "PiecewiseLinear":
        """Return the density with any non-negative heights, scaled to an area of 1.

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

    def log_probs(self, values: Values) -> Array:
        """Return the log-density at each number."""
        numbers = as_numbers(values)
        densities = np.interp(numbers, self.knots, self.densities, left=0.0, right=0.0)
        with np.errstate(divide="ignore"):
            return np.log(np.where(np.isnan(numbers), 0.0, densities))

    def log_prob(self, value: Value) -> float:
        """Return the log-density at one number, without making arrays."""
        if isinstance(value, str | Mark) or not self.knots[0] <= value <= self.knots[-1]:
            return -math.inf
        k = min(bisect_right(self.knots, value), len(self.knots) - 1)
        (a, b), (fa, fb) = self.knots[k - 1 : k + 1], self.densities[k - 1 : k + 1]
        density = fa + (fb - fa) * (value - a) / (b - a)
        return math.log(density) if density > 0 else -math.inf

    @classmethod
    def stacked(cls, leaves: "Sequence[PiecewiseLinear]") -> Callable[[Array], Array]:
        """Return the log-densities of several members as one function."""
        most = max(len(leaf.knots) for leaf in leaves)
        knots = np.array([(*x.knots, *(math.inf,) * (most - len(x.knots))) for x in leaves])
        heights = np.array([(*x.densities, *(0.0,) * (most - len(x.knots))) for x in leaves])
        last = np.array([len(leaf.knots) - 1 for leaf in leaves])[:, None]
        row = np.arange(len(leaves))[:, None]

        def log_probs(numbers: Array) -> Array:
            above = (numbers[:, :, None] >= knots[:, None, :]).sum(
                axis=2
            )  # knots up to each number
            inside = (above > 0) & (numbers <= knots[row, last])
            k = np.clip(above, 1, last)
            a, b, fa, fb = knots[row, k - 1], knots[row, k], heights[row, k - 1], heights[row, k]
            density = fa + (fb - fa) * (np.where(inside, numbers, a) - a) / (b - a)
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(np.where(inside, density, 0.0)))

        return log_probs

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

    def support(self) -> tuple[Value, ...]:
        """Return the first and the last knot."""
        return self.knots[0], self.knots[-1]

    def pieces(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return knots and densities."""
        return self.knots, self.densities

    def samples(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        """Draw numbers: a piece by its mass, then the inverse of its quadratic CDF."""
        knots, densities = np.array(self.knots), np.array(self.densities)
        masses = np.diff(knots) * (densities[:-1] + densities[1:]) / 2
        k = draw_indices(masses, rng, size)
        share = _inverse(densities[k], densities[k + 1], rng.random(size))
        return np.asarray(knots[k] + np.diff(knots)[k] * share)

    def sample(self, rng: np.random.Generator) -> Value:
        """Draw one number."""
        k = draw_index(self.masses(), rng)
        (a, b), (fa, fb) = self.knots[k : k + 2], self.densities[k : k + 2]
        return a + (b - a) * float(_inverse(fa, fb, rng.random()))

    @classmethod
    def fit(
        cls, values: Values, weights: Array, within: tuple[float, float] | None = None
    ) -> "PiecewiseLinear":
        """Return a density through the heights of a histogram of equal weights at its edges.

        It fills the interval `within`.
        """
        numbers = np.asarray(values, dtype=np.float64)
        if len(numbers) == 1:
            return cls._at(float(numbers[0]), within)
        pieces = int(min(MOST_PIECES, max(1, np.sqrt(len(numbers)))))
        below = np.cumsum(weights) / weights.sum()
        inner = np.searchsorted(below, np.arange(1, pieces) / pieces)
        edges = numbers[np.unique(np.concatenate([[0], inner, [len(numbers) - 1]]))].copy()
        # mass between edges, a number on an edge counted half on each side of it
        middle = below - weights / weights.sum() / 2
        at = np.interp(edges, numbers, middle)
        at[0], at[-1] = 0.0, 1.0
        if within is not None:
            edges[0], edges[-1] = min(edges[0], within[0]), max(edges[-1], within[1])
        return cls.scaled(tuple(edges.tolist()), _knot_heights(np.diff(at) / np.diff(edges)))

    @classmethod
    def _at(cls, number: float, within: tuple[float, float] | None) -> "PiecewiseLinear":
        """Return the density of a single number: uniform in its interval, or a narrow peak."""
        if within is not None and within[0] < within[1]:
            knots = tuple(sorted({within[0], min(max(number, within[0]), within[1]), within[1]}))
            return cls.scaled(knots, (1.0,) * len(knots))
        # A probability of 1 would be compared with densities elsewhere; a narrow peak exceeds them.
        width = NARROW * max(1.0, abs(number))
        return cls.scaled((number - width, number, number + width), (0.0, 1.0, 0.0))

    def statistics(self, values: Values, weights: Array) -> dict[Value, float]:
        """Return the weight of each piece."""
        return piece_weights(self.knots, as_numbers(values), weights)

    def reestimated(self, statistics: Mapping[Value, float]) -> "PiecewiseLinear":
        """Return other densities at the same knots."""
        weights = weights_of_pieces(statistics, len(self.knots) - 1)
        return PiecewiseLinear.scaled(self.knots, _knot_heights(weights / np.diff(self.knots)))

    def to_json(self) -> dict[str, object]:
        """Return knots and densities."""
        return {"knots": self.knots, "densities": self.densities}

    @classmethod
    def from_json(cls, fields: Fields) -> "PiecewiseLinear":
        """Read knots and densities."""
        return cls(fields.numbers("knots"), fields.numbers("densities"))


def _inverse(fa: Any, fb: Any, u: Any) -> Any:
    """Return which share of a piece lies below its quantile u, given the densities at its ends."""
    highest = np.maximum(fa, fb)
    fa, fb = fa / highest, fb / highest  # so that their squares neither underflow nor overflow
    # s solves fa·s + (fb - fa)·s²/2 = u·(fa + fb)/2, written without cancellation.
    return u * (fa + fb) / (fa + np.sqrt(fa * fa + u * (fb * fb - fa * fa)))


def _areas(knots: tuple[float, ...], heights: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(
        (b - a) * (fa + fb) / 2
        for (a, b), (fa, fb) in zip(pairwise(knots), pairwise(heights), strict=True)
    )


def _knot_heights(heights: Array) -> tuple[float, ...]:
    """Return heights at the knots, given those of the pieces: the mean of the two beside each."""
    inner = (heights[:-1] + heights[1:]) / 2
    return tuple(np.concatenate([heights[:1], inner, heights[-1:]]).tolist())
