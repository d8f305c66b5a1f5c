"""Integers in bins."""

import math
from bisect import bisect_right
from collections.abc import Mapping
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


@register
@dataclass(frozen=True, slots=True)
class IntegerHistogram(Distribution):
    """Integers in bins, uniform within each bin.

    Bin k contains the integers edges[k] ≤ x < edges[k+1]. Bins of width 1 are an exact
    distribution, wide ones describe a long tail.

    >>> IntegerHistogram((0, 1, 5), (0.6, 0.4)).mean()  # .6 · 0 + .4 · (1+2+3+4)/4
    1.0
    """

    family: ClassVar[str] = "integer_histogram"
    kinds: ClassVar[frozenset[Kind]] = frozenset([Kind.INTEGER])

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
            raise CircuitError(f"{where}: expected increasing edges, found {self.edges}")
        object.__setattr__(self, "masses", tuple(map(float, self.masses)))
        check_simplex(where, self.masses)

    def log_probs(self, values: Values) -> Array:
        """Return the log-probability of each value; numbers that are not whole have none."""
        numbers = as_numbers(values)
        edges = np.array(self.edges)
        bin_of = np.searchsorted(edges, numbers, side="right") - 1
        inside = (bin_of >= 0) & (bin_of < len(self.masses)) & (numbers == np.floor(numbers))
        widths = np.diff(edges).astype(np.uint64)  # exact up to 2^64, where signed ones wrap
        heights = np.append(np.array(self.masses) / widths, 0.0)
        with np.errstate(divide="ignore"):
            return np.log(np.where(inside, heights[np.where(inside, bin_of, -1)], 0.0))

    def log_prob(self, value: Value) -> float:
        """Return the log-probability of one value, without making arrays."""
        if isinstance(value, str | Mark) or value != int(value):
            return -math.inf
        k = bisect_right(self.edges, value) - 1
        if not 0 <= k < len(self.masses) or self.masses[k] == 0:
            return -math.inf
        return math.log(self.masses[k] / (self.edges[k + 1] - self.edges[k]))

    def mode(self) -> Value:
        """Return the integer of highest probability, the lowest of several."""
        heights = [m / (b - a) for m, (a, b) in zip(self.masses, pairwise(self.edges), strict=True)]
        return self.edges[heights.index(max(heights))]

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

    def support(self) -> tuple[Value, ...]:
        """Return the lowest and the highest integer."""
        return self.edges[0], self.edges[-1] - 1

    def samples(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        """Draw integers: a bin by its mass, then any integer in it."""
        edges, bin_of = np.array(self.edges), draw_indices(self.masses, rng, size)
        return rng.integers(edges[bin_of], edges[bin_of + 1])

    def sample(self, rng: np.random.Generator) -> Value:
        """Draw one integer."""
        k = draw_index(self.masses, rng)
        return int(rng.integers(self.edges[k], self.edges[k + 1]))

    @classmethod
    def fit(
        cls, values: Values, weights: Array, within: tuple[float, float] | None = None
    ) -> "IntegerHistogram":
        """Return a histogram with bins of about equal weight; it fills the interval `within`."""
        below = np.cumsum(weights) / weights.sum()
        cuts = np.unique(np.searchsorted(below, np.arange(1, MOST_PIECES) / MOST_PIECES)) + 1
        cuts = cuts[cuts < len(weights)]
        masses = np.add.reduceat(weights, np.concatenate([[0], cuts])) / weights.sum()
        numbers = as_numbers(values)
        edges = [int(numbers[0]), *map(int, numbers[cuts]), int(numbers[-1]) + 1]
        if within is not None:
            edges[0] = min(edges[0], math.ceil(within[0]))
            edges[-1] = max(edges[-1], math.ceil(within[1]))
        return cls(tuple(edges), tuple(masses.tolist()))

    def statistics(self, values: Values, weights: Array) -> dict[Value, float]:
        """Return the weight of each bin."""
        return piece_weights(self.edges, as_numbers(values), weights)

    def reestimated(self, statistics: Mapping[Value, float]) -> "IntegerHistogram":
        """Return other masses in the same bins."""
        weights = weights_of_pieces(statistics, len(self.masses))
        return IntegerHistogram(self.edges, tuple((weights / weights.sum()).tolist()))

    def to_json(self) -> dict[str, object]:
        """Return edges and masses."""
        return {"edges": self.edges, "masses": self.masses}

    @classmethod
    def from_json(cls, fields: Fields) -> "IntegerHistogram":
        """Read edges and masses."""
        return cls(fields.integers("edges"), fields.numbers("masses"))
