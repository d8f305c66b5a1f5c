"""The families of the library keep the rules; members of broken families do not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from conformance import check_distribution
from gaussian import Gaussian
from rspmn.circuit import (
    Categorical,
    Distribution,
    IntegerHistogram,
    PiecewiseLinear,
    StudentT,
    register,
)
from rspmn.circuit.distributions import Values
from rspmn.errors import CircuitError
from rspmn.types import Array
from rspmn.values import END, Value

RNG = np.random.default_rng(0)
NUMBERS = np.unique(RNG.gamma(2.0, 1.5, 500))
INTEGERS = np.unique(RNG.poisson(40, 500)).tolist()

MEMBERS: list[Distribution] = [
    Categorical(("wet", "dry", "snow"), (0.25, 0.75, 0.0)),
    Categorical((1, 2, 5), (0.2, 0.3, 0.5)),
    Categorical((False, True), (0.5, 0.5)),
    Categorical.certain(END),
    Categorical.certain(1.5),
    Categorical((1, 2, 5), (0.2, 0.3, 0.4), 0.1),
    IntegerHistogram((-2, 0, 1, 5, 60), (0.1, 0.5, 0.3, 0.1)),
    IntegerHistogram.fit(INTEGERS, np.ones(len(INTEGERS))),
    PiecewiseLinear((0.0, 1.0), (0.0, 2.0)),
    PiecewiseLinear.fit(NUMBERS, np.ones(len(NUMBERS))),
    PiecewiseLinear.fit([3.25], np.ones(1)),
    StudentT(1.0, 2.0),
    StudentT(0.0, 1.0, low=-0.5, high=3.0),
    StudentT.fit(NUMBERS, np.ones(len(NUMBERS))),
    Gaussian(20.0, 3.0),
    Gaussian(0.0, 1.0, low=-0.5),
    Gaussian.fit(NUMBERS, np.ones(len(NUMBERS)), within=(0.0, 4.0)),
]


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: str(member)[:40])
def test_members_keep_the_rules(member: Distribution) -> None:
    check_distribution(member)


def broken(name: str, method: Callable[..., Any]) -> Distribution:
    """Return a Gaussian of a family of its own, one method of which is another."""
    family: Any = type(f"Broken_{name}", (Gaussian,), {name: method, "family": f"broken {name}"})
    made: Distribution = dataclass(frozen=True)(register(family))(20.0, 3.0)
    return made


def shifted(self: Gaussian, values: Values) -> Array:
    return Gaussian.log_probs(self, values) + 0.1


def wrong_mean(self: Gaussian) -> float:
    return self.centre + 1


def wrong_variance(self: Gaussian) -> float:
    return 2 * self.deviation**2


def wrong_samples(self: Gaussian, rng: np.random.Generator, size: int) -> NDArray[Any]:
    return self.centre + 2 * self.deviation * rng.standard_normal(size)


def forgetful(self: Gaussian) -> dict[str, object]:
    return {"centre": self.centre, "deviation": 1.0}


def averages(self: Gaussian, values: Values, weights: Array) -> dict[Value, float]:
    total = Gaussian.statistics(self, values, weights)
    return {key: amount / total["sum of x^0"] for key, amount in total.items()}


def unlimited(
    values: Values, weights: Array, within: tuple[float, float] | None = None
) -> Gaussian:
    return Gaussian.fit(values, weights)


BROKEN: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "have probability 1.1": ("log_probs", shifted),
    "mean: 21, but of draws": ("mean", wrong_mean),
    "variance: 18, but of draws": ("variance", wrong_variance),
    "mode: expected a value of highest": ("mode", wrong_mean),
    "of the draws are there": ("samples", wrong_samples),
    "from_json": ("to_json", forgetful),
    "statistics of disjoint data must add up": ("statistics", averages),
    "must not reach below the interval": ("fit", staticmethod(unlimited)),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_broken_families_are_found(rule: str) -> None:
    with pytest.raises(AssertionError, match=rule):
        check_distribution(broken(*BROKEN[rule]))


def test_families_are_registered_once_under_a_name() -> None:
    with pytest.raises(CircuitError, match="'gaussian' already belongs to gaussian.Gaussian"):
        register(type("Another", (Gaussian,), {}))
    with pytest.raises(CircuitError, match="Nameless: expected a name in `family`"):
        register(type("Nameless", (Gaussian,), {"family": ""}))
