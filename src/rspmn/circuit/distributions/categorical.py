"""A probability for each of a list of values."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rspmn.circuit.distributions.base import (
    Distribution,
    Values,
    check_simplex,
    draw_index,
    draw_indices,
    register,
)
from rspmn.circuit.fields import Fields, plain_values
from rspmn.errors import CircuitError
from rspmn.schema import Kind
from rspmn.types import Array, objects
from rspmn.values import Mark, Value, as_value, show


@register
@dataclass(frozen=True, slots=True)
class Categorical(Distribution):
    """A probability for each of a list of values.

    >>> Categorical(("left", "right"), (0.25, 0.75)).mode()
    'right'
    """

    family: ClassVar[str] = "categorical"
    kinds: ClassVar[frozenset[Kind]] = frozenset(Kind)

    values: tuple[Value, ...]  # [n], distinct
    probabilities: tuple[float, ...]  # [n], sums to 1
    # In Python True == 1 == 1.0. Leaves that differ in the types of their values are not equal.
    types: tuple[type, ...] = field(init=False, repr=False)
    #: The probability of a value that is not listed, whichever it is; END and UNKNOWN have none.
    other: float = field(default=0.0, repr=False)

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
            again = next(v for i, v in enumerate(self.values) if v in self.values[:i])
            raise CircuitError(f"{where}: duplicate value {show(again)}")
        object.__setattr__(self, "probabilities", tuple(map(float, self.probabilities)))
        object.__setattr__(self, "types", tuple(map(type, self.values)))
        object.__setattr__(self, "other", float(self.other))
        check_simplex(where, (*self.probabilities, self.other))
        if self.other >= 1:
            raise CircuitError(f"{where}: expected a listed value of probability above 0")

    @classmethod
    def certain(cls, value: Value) -> "Categorical":
        """Return the distribution with all mass on one value."""
        return cls((value,), (1.0,))

    def log_probs(self, values: Values) -> Array:
        """Return the log-probability of each value."""
        logs = {value: _log(p) for value, p in zip(self.values, self.probabilities, strict=True)}
        logs |= {mark: logs.get(mark, -math.inf) for mark in Mark}
        other = _log(self.other)
        return np.array([logs.get(value, other) for value in values], dtype=np.float64)

    def log_prob(self, value: Value) -> float:
        """Return the log-probability of one value, without making a table."""
        if value not in self.values:
            return -math.inf if isinstance(value, Mark) else _log(self.other)
        return _log(self.probabilities[self.values.index(value)])

    def mode(self) -> Value:
        """Return the value of highest probability, the first of several."""
        return self.values[self.probabilities.index(max(self.probabilities))]

    def mean(self) -> float:
        """Return the mean of numbers and booleans, over those that are listed."""
        listed = zip(self.probabilities, self._numbers(), strict=True)
        return math.fsum(p * v for p, v in listed) / (1 - self.other)

    def variance(self) -> float:
        """Return the variance of numbers and booleans, over those that are listed."""
        mean = self.mean()
        listed = zip(self.probabilities, self._numbers(), strict=True)
        return math.fsum(p * (v - mean) ** 2 for p, v in listed) / (1 - self.other)

    def _numbers(self) -> list[float]:
        for value in self.values:
            if isinstance(value, str | Mark):
                raise CircuitError(f"a distribution over text, such as {value!r}, has no mean")
        return [float(value) for value in self.values]  # type: ignore[arg-type]

    def support(self) -> tuple[Value, ...]:
        """Return the values."""
        return self.values

    def atoms(self) -> dict[Value, float]:
        """Return the probability of each value."""
        return dict(zip(self.values, self.probabilities, strict=True))

    def unlisted(self) -> float:
        """Return the probability of a value that is not listed."""
        return self.other

    def opened(self, other: float) -> "Categorical":
        """Return the same distribution with some probability for a value that is not listed."""
        share = (1 - other) / (1 - self.other)
        return Categorical(self.values, tuple(p * share for p in self.probabilities), other)

    def samples(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        """Draw listed values, as an array of objects."""
        return objects(self.values)[draw_indices(self.probabilities, rng, size)]

    def sample(self, rng: np.random.Generator) -> Value:
        """Draw one value."""
        return self.values[draw_index(self.probabilities, rng)]

    @classmethod
    def fit(
        cls, values: Values, weights: Array, within: tuple[float, float] | None = None
    ) -> "Categorical":
        """Return the relative frequencies. Values that did not occur are outside the support."""
        del within
        return cls(tuple(values), tuple((weights / weights.sum()).tolist()))

    def statistics(self, values: Values, weights: Array) -> dict[Value, float]:
        """Return how often each value occurred."""
        return dict(zip(values, weights.tolist(), strict=True))

    def reestimated(self, statistics: Mapping[Value, float]) -> "Categorical":
        """Return the relative frequencies; the values may be others than before."""
        values = tuple(sorted(statistics))  # type: ignore[type-var]
        total = math.fsum(statistics.values()) / (1 - self.other)
        return Categorical(values, tuple(statistics[v] / total for v in values), self.other)

    def describe(self) -> str:
        """Return the values with their probabilities, or how many there are."""
        if len(self.values) == 1:
            return f"= {show(self.values[0])}"
        if len(self.values) > 3:
            return f"{len(self.values)} values"
        pairs = zip(self.values, self.probabilities, strict=True)
        return "\n".join(f"{show(value)}: {p:.2g}" for value, p in pairs)

    def to_json(self) -> dict[str, object]:
        """Return values and probabilities."""
        plain: dict[str, object] = {"values": plain_values(self.values)}
        plain["probabilities"] = self.probabilities
        return {**plain, "other": self.other} if self.other else plain

    @classmethod
    def from_json(cls, fields: Fields) -> "Categorical":
        """Read values and probabilities."""
        masses = fields.numbers("probabilities")
        return cls(fields.values("values"), masses, fields.number("other", 0.0))


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0 else -math.inf
