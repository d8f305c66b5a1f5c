"""A leaf family of integers: the Poisson distribution, restricted to the interval of its rows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from conformance import check_distribution
from rspmn.circuit import Distribution, Leaf, register
from rspmn.circuit.distributions import Values, as_numbers
from rspmn.circuit.fields import Fields
from rspmn.data.episodes import Episodes, Followed
from rspmn.learn import LearnConfig, learn_rspmn, refit
from rspmn.schema import Kind, Schema
from rspmn.types import Array
from rspmn.values import Value


@register
@dataclass(frozen=True)
class Poisson(Distribution):
    """Counts with a rate, from `low` to `high`."""

    family: ClassVar[str] = "poisson"
    kinds: ClassVar[frozenset[Kind]] = frozenset([Kind.INTEGER])

    rate: float
    low: int = 0
    high: int = 1000

    def _integers(self) -> tuple[NDArray[Any], Array]:
        integers = np.arange(self.low, self.high + 1)
        masses = stats.poisson.pmf(integers, self.rate)
        return integers, masses / masses.sum()

    def log_probs(self, values: Values) -> Array:
        x = as_numbers(values)
        _, masses = self._integers()
        inside = (x >= self.low) & (x <= self.high) & (x == np.floor(x))
        with np.errstate(divide="ignore"):
            found = np.log(masses[np.where(inside, x, self.low).astype(int) - self.low])
        return np.where(inside, found, -np.inf)

    def mode(self) -> Value:
        integers, masses = self._integers()
        return int(integers[masses.argmax()])

    def mean(self) -> float:
        integers, masses = self._integers()
        return float(integers @ masses)

    def variance(self) -> float:
        integers, masses = self._integers()
        return float((integers - self.mean()) ** 2 @ masses)

    def support(self) -> tuple[Value, ...]:
        return self.low, self.high

    def samples(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        integers, masses = self._integers()
        return rng.choice(integers, size, p=masses)

    @classmethod
    def fit(
        cls, values: Values, weights: Array, within: tuple[float, float] | None = None
    ) -> "Poisson":
        numbers = as_numbers(values)
        low, high = 0, 1000
        if within is not None:
            low = min(math.ceil(within[0]), int(numbers[0]))
            high = max(math.ceil(within[1]) - 1, int(numbers[-1]))
        return cls(max(float(weights @ numbers / weights.sum()), 0.01), low, high)

    def statistics(self, values: Values, weights: Array) -> dict[Value, float]:
        return {"n": float(weights.sum()), "sum": float(weights @ as_numbers(values))}

    def reestimated(self, statistics: Mapping[Value, float]) -> "Poisson":
        return Poisson(max(statistics["sum"] / statistics["n"], 0.01), self.low, self.high)

    def to_json(self) -> dict[str, object]:
        return {"rate": self.rate, "low": self.low, "high": self.high}

    @classmethod
    def from_json(cls, fields: Fields) -> "Poisson":
        return cls(fields.number("rate"), fields.integer("low"), fields.integer("high"))


@pytest.mark.parametrize("member", [Poisson(3.0), Poisson(0.2), Poisson(9.0, 5, 8)])
def test_rules(member: Poisson) -> None:
    check_distribution(member)


def test_integers_of_few_values_are_split_into_intervals() -> None:
    """A queue of at most nine; serving pays if there are four or more in it."""
    rng = np.random.default_rng(0)
    schema = Schema([["queue"], ["serve"]], ["serve"], "gain", {"queue": "integer"})
    queue = np.minimum(rng.poisson(4, (600, 4)), 9)
    serve = rng.random((600, 4)) < 0.5
    gain = np.where(serve, np.where(queue >= 4, 2.0, -2.0), 0.0)
    steps = [
        [
            {"queue": int(q), "serve": bool(s), "gain": float(g)}
            for q, s, g in zip(*episode, strict=True)
        ]
        for episode in zip(queue, serve, gain, strict=True)
    ]
    log = Episodes.from_steps(steps, schema, [Followed.END] * 600)
    config = LearnConfig(leaves={"queue": Poisson})
    model, _ = learn_rspmn(log, config)
    found = sorted(
        (node.distribution.low, node.distribution.high)
        for node in model.template.nodes
        if isinstance(node, Leaf) and isinstance(node.distribution, Poisson)
    )
    assert found == [(0, 3), (4, 9)]
    assert [model.act({"queue": k}, horizon=1) for k in range(10)] == [k >= 4 for k in range(10)]
    _, info = refit(model, log, config)
    assert info.fits
    assert info.doubtful == 0
