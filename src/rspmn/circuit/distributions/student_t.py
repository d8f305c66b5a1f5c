"""Student's t distribution with four degrees of freedom, between two bounds."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rspmn.circuit.distributions.base import Distribution, Values, as_numbers, register
from rspmn.circuit.fields import Fields
from rspmn.errors import CircuitError
from rspmn.schema import Kind
from rspmn.types import Array
from rspmn.values import Mark, Value

#: The largest centre and scale, so that their squares are finite.
FURTHEST = 1e150
#: The least scale that is fitted, relative to the size of the centre.
NARROW = 1e-9


@register
@dataclass(frozen=True, slots=True)
class StudentT(Distribution):
    """Student's t with four degrees of freedom: a bell with tails that exclude no number.

    A number far out lowers the density by a power of its distance only, so that one odd value of a
    row does not outweigh all its other values. With four degrees of freedom the distribution,
    its inverse and its first two moments are closed forms in s = t/√(4 + t²), also between bounds.
    For integers, the density at an integer stands for its probability.

    >>> round(StudentT(0.0, 1.0).log_prob(2.0), 6)  # log(3/8 · 2^(-5/2))
    -2.713697
    >>> StudentT(1.0, 2.0).variance()
    8.0
    """

    family: ClassVar[str] = "student_t"
    kinds: ClassVar[frozenset[Kind]] = frozenset([Kind.CONTINUOUS, Kind.INTEGER])

    centre: float
    scale: float
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        for name in ("centre", "scale", "low", "high"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if not (abs(self.centre) <= FURTHEST and 1 / FURTHEST <= self.scale <= FURTHEST):
            raise CircuitError(f"StudentT: expected a finite centre and a scale above 0: {self}")
        if not (self.low < self.high and self._mass() > 0):
            raise CircuitError(f"StudentT: expected bounds with probability between them: {self}")

    # ---- probabilities -------------------------------------------------------------

    def _ends(self) -> tuple[float, float]:
        """Return the bounds in scales from the centre."""
        return (self.low - self.centre) / self.scale, (self.high - self.centre) / self.scale

    def _mass(self) -> float:
        """Return the probability between the bounds, of the distribution without them."""
        low, high = self._ends()
        if low > 0:  # differences of probabilities near 1 would cancel
            return _below(-low) - _below(-high)
        return _below(high) - _below(low)

    def log_probs(self, values: Values) -> Array:
        """Return the log-density at each number."""
        numbers = as_numbers(values).astype(np.float64)
        inside = (numbers >= self.low) & (numbers <= self.high)
        t = (np.where(inside, numbers, self.centre) - self.centre) / self.scale
        logs = math.log(0.375 / self.scale / self._mass()) - 5 * np.log(np.hypot(1.0, t / 2))
        return np.asarray(np.where(inside, logs, -np.inf))

    def log_prob(self, value: Value) -> float:
        """Return the log-density at one number, without making arrays."""
        if isinstance(value, str | Mark) or not self.low <= value <= self.high:
            return -math.inf
        t = (value - self.centre) / self.scale
        return math.log(0.375 / self.scale / self._mass()) - 5 * math.log(math.hypot(1.0, t / 2))

    @classmethod
    def stacked(cls, leaves: "Sequence[StudentT]") -> Callable[[Array], Array]:
        """Return the log-densities of several members as one function."""
        centre, scale, low, high, height = (
            np.array(column)[:, None]
            for column in zip(
                *((x.centre, x.scale, x.low, x.high, 0.375 / x.scale / x._mass()) for x in leaves),
                strict=True,
            )
        )
        log_height = np.log(height)
        bounded = bool(np.isfinite(low).any() or np.isfinite(high).any())

        def log_probs(numbers: Array) -> Array:
            t = (numbers - centre) / (2 * scale)
            logs = log_height - 2.5 * np.log1p(t * t)
            if bounded:
                logs[(numbers < low) | (numbers > high)] = -np.inf
            return np.asarray(logs)

        return log_probs

    def mode(self) -> Value:
        """Return the centre, or the bound that is nearest to it."""
        return min(max(self.centre, self.low), self.high)

    def mean(self) -> float:
        """Return the mean: ∫ t f(t) dt is -(1 + t²/4)^(-3/2)/2."""
        low, high = (-0.5 * (1 / math.hypot(1.0, t / 2)) ** 3 for t in self._ends())
        return self.centre + self.scale * (high - low) / self._mass()

    def variance(self) -> float:
        """Return the variance: ∫ t² f(t) dt is s³."""
        low, high = (_sine(t) ** 3 for t in self._ends())
        second = self.scale**2 * (high - low) / self._mass()
        return max(0.0, second - (self.mean() - self.centre) ** 2)

    def support(self) -> tuple[Value, ...]:
        """Return the bounds."""
        return self.low, self.high

    # ---- draws ---------------------------------------------------------------------

    def samples(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        """Draw by the inverse: P(T ≤ t) = 1/2 + (3s - s³)/4, so s = 2 sin(asin(2p - 1)/3)."""
        low, high = map(_below, self._ends())
        p = low + (high - low) * rng.random(size)
        s = 2 * np.sin(np.arcsin(np.clip(2 * p - 1, -1, 1)) / 3)
        t = 2 * s / np.sqrt(np.maximum(1 - s * s, 1e-30))
        return np.asarray(np.clip(self.centre + self.scale * t, self.low, self.high))

    # ---- estimation ----------------------------------------------------------------

    @classmethod
    def fit(
        cls, values: Values, weights: Array, within: tuple[float, float] | None = None
    ) -> "StudentT":
        """Return the distribution with the mean and variance of the values, cut to `within`."""
        numbers = as_numbers(values).astype(np.float64)
        centre = float(weights @ numbers / weights.sum())
        variance = float(weights @ (numbers - centre) ** 2 / weights.sum())
        low, high = within or (-math.inf, math.inf)
        return cls(*_location(centre, variance), min(low, numbers[0]), max(high, numbers[-1]))

    def statistics(self, values: Values, weights: Array) -> dict[Value, float]:
        """Return the weight, and the first two moments about the centre."""
        away = as_numbers(values).astype(np.float64) - self.centre
        sums = weights.sum(), weights @ away, weights @ away**2
        return {f"moment {power}": float(total) for power, total in enumerate(sums)}

    def reestimated(self, statistics: Mapping[Value, float]) -> "StudentT":
        """Return another centre and scale between the same bounds."""
        total, first, second = (statistics[f"moment {power}"] for power in range(3))
        shift = first / total
        variance = second / total - shift**2
        return StudentT(*_location(self.centre + shift, variance), self.low, self.high)

    # ---- for people and files ------------------------------------------------------

    def describe(self) -> str:
        """Return centre and scale."""
        return f"≈ {self.centre:.4g} ± {self.scale:.2g}"

    def to_json(self) -> dict[str, object]:
        """Return centre, scale, and the bounds that are finite."""
        ends = {"low": self.low, "high": self.high}
        finite: dict[str, object] = {name: end for name, end in ends.items() if math.isfinite(end)}
        return {"centre": self.centre, "scale": self.scale, **finite}

    @classmethod
    def from_json(cls, fields: Fields) -> "StudentT":
        """Read centre, scale and bounds."""
        ends = fields.number("low", -math.inf), fields.number("high", math.inf)
        return cls(fields.number("centre"), fields.number("scale"), *ends)


def _sine(t: float) -> float:
    """Return s = t/√(4 + t²)."""
    return math.copysign(1.0, t) if math.isinf(t) else t / math.hypot(2.0, t)


def _below(t: float) -> float:
    """Return P(T ≤ t), accurate in both tails: with e = 1 - |s|, the tail is e²(3 - e)/4."""
    if math.isinf(t):
        return float(t > 0)
    root = math.hypot(2.0, t)
    e = 4 / root / (root + abs(t))
    tail = e * e * (3 - e) / 4
    return 1 - tail if t > 0 else tail


def _location(mean: float, variance: float) -> tuple[float, float]:
    """Return centre and scale of a mean and a variance, which is twice the squared scale."""
    return mean, max(math.sqrt(max(0.0, variance) / 2), NARROW * max(1.0, abs(mean)))
