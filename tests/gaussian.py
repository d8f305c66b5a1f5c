"""A leaf family that the library does not know: the normal distribution, truncated if need be."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from rspmn.circuit import Distribution, register
from rspmn.circuit.distributions import Values, as_numbers
from rspmn.circuit.fields import Fields
from rspmn.errors import CircuitError
from rspmn.schema import Kind
from rspmn.types import Array
from rspmn.values import Value


@register
@dataclass(frozen=True)
class Gaussian(Distribution):
    """The normal distribution of a centre and a deviation, between two bounds."""

    family: ClassVar[str] = "gaussian"
    kinds: ClassVar[frozenset[Kind]] = frozenset([Kind.CONTINUOUS])

    centre: float
    deviation: float
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not self.deviation > 0 or not self.low < self.high:
            raise CircuitError(f"Gaussian: expected a deviation above 0 and low < high: {self}")

    @cached_property
    def _scipy(self) -> Any:
        ends = ((end - self.centre) / self.deviation for end in (self.low, self.high))
        return stats.truncnorm(*ends, self.centre, self.deviation)

    def log_probs(self, values: Values) -> Array:
        logs = self._scipy.logpdf(as_numbers(values))
        return np.where(np.isnan(logs), -np.inf, logs)

    def mode(self) -> Value:
        return min(max(self.centre, self.low), self.high)

    def mean(self) -> float:
        return float(self._scipy.mean())

    def variance(self) -> float:
        return float(self._scipy.var())

    def support(self) -> tuple[Value, ...]:
        return self.low, self.high

    def samples(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        return np.asarray(self._scipy.rvs(size, random_state=rng))

    @classmethod
    def fit(
        cls, values: Values, weights: Array, within: tuple[float, float] | None = None
    ) -> "Gaussian":
        numbers = as_numbers(values)
        sums = weights.sum(), weights @ numbers, weights @ numbers**2
        low, high = within or (-math.inf, math.inf)
        return cls(*_moments(*sums), low, high)

    def statistics(self, values: Values, weights: Array) -> dict[Value, float]:
        numbers = as_numbers(values)
        sums = weights.sum(), weights @ numbers, weights @ numbers**2
        return {f"sum of x^{power}": float(total) for power, total in enumerate(sums)}

    def reestimated(self, statistics: Mapping[Value, float]) -> "Gaussian":
        sums = (statistics[f"sum of x^{power}"] for power in range(3))
        return Gaussian(*_moments(*sums), self.low, self.high)

    def to_json(self) -> dict[str, object]:
        plain: dict[str, object] = {"centre": self.centre, "deviation": self.deviation}
        ends = {"low": self.low, "high": self.high}
        return plain | {name: end for name, end in ends.items() if math.isfinite(end)}

    @classmethod
    def from_json(cls, fields: Fields) -> "Gaussian":
        ends = fields.number("low", -math.inf), fields.number("high", math.inf)
        return cls(fields.number("centre"), fields.number("deviation"), *ends)


def _moments(total: float, first: float, second: float) -> tuple[float, float]:
    """Return mean and deviation; a single value gets a narrow peak."""
    mean = float(first / total)
    narrow = 1e-6 * max(1.0, abs(mean))
    return mean, max(math.sqrt(max(0.0, second / total - mean * mean)), narrow)
