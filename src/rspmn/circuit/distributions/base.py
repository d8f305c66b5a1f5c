"""What a family of leaf distributions must provide, and the registry of families.

A new family is one class that derives from `Distribution`, decorated with `register`. Nothing else
in the library names a family: learning, inference, sampling, pictures and model files call these
methods.
"""

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from rspmn.circuit.fields import Fields
from rspmn.errors import CircuitError, did_you_mean
from rspmn.schema import Kind
from rspmn.types import Array, Ints
from rspmn.values import Mark, Value, as_value, show

#: Several values of one variable. Continuous columns give float64 arrays, others Python values.
Values = Sequence[Value] | NDArray[Any]

#: How far probabilities may be from summing to 1, which allows for ten written digits.
SIMPLEX_TOLERANCE = 1e-9
#: The most pieces of a fitted histogram or piecewise density.
MOST_PIECES = 32


class Distribution(ABC):
    """The distribution of one variable: an immutable value that can be compared and hashed.

    A value outside the support has probability 0. Missing values never reach a distribution;
    inference gives them likelihood 1. `log_probs` and `samples`, on arrays, are what a family
    defines; `log_prob` and `sample`, on one value, are derived from them and may be overridden.
    """

    __slots__ = ()

    #: The name of the family in model files.
    family: ClassVar[str] = ""
    #: The kinds of variables that it can describe.
    kinds: ClassVar[frozenset[Kind]] = frozenset()

    # ---- probabilities -------------------------------------------------------------

    @abstractmethod
    def log_probs(self, values: Values) -> Array:
        """Return the log-probability, or log-density, of each value; -inf outside the support.

        Values of any type may be asked about. `as_numbers` turns them into numbers, and those that
        are none (text, END) into NaN.
        """

    def log_prob(self, value: Value) -> float:
        """Return the log-probability, or log-density, of one value."""
        return float(self.log_probs((value,))[0])

    @classmethod
    def stacked(cls, leaves: Sequence[Any]) -> Callable[[Array], Array]:
        """Return the log-probabilities of several members as one function, from and to [leaves, n].

        Row k of the numbers is asked of member k. Families whose parameters fit into arrays answer
        for all members at once.
        """

        def log_probs(numbers: Array) -> Array:
            return np.array(
                [leaf.log_probs(row) for leaf, row in zip(leaves, numbers, strict=True)]
            )

        return log_probs

    @abstractmethod
    def mode(self) -> Value:
        """Return a value of highest probability or density."""

    @abstractmethod
    def mean(self) -> float:
        """Return the mean. A distribution over text has none and raises `CircuitError`."""

    @abstractmethod
    def variance(self) -> float:
        """Return the variance."""

    @abstractmethod
    def support(self) -> tuple[Value, ...]:
        """Return the values it lists or, if it lists none, its lowest and highest number.

        The ends of the range may be infinite.
        """

    def atoms(self) -> dict[Value, float] | None:
        """Return the probability of each value if values are listed; None for a range of numbers.

        Distributions with atoms are looked up in tables, many at a time.
        """
        return None

    def unlisted(self) -> float:
        """Return the probability of a value that `atoms` does not list, whichever it is."""
        return 0.0

    def opened(self, other: float) -> "Distribution":
        """Return the same distribution, a value that `atoms` does not list having probability.

        A family that lists no values, or can give none to others, stays as it is.
        """
        del other
        return self

    def pieces(self) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """Return knots and the density at each, if it is linear between them and 0 beyond.

        Densities that are linear in pieces are evaluated many leaves at a time.
        """
        return None

    def span(self) -> tuple[Value, ...]:
        """Return the support, an infinite end replaced by 4 standard deviations from the mean."""
        support = self.support()
        if self.atoms() is not None or np.isfinite(as_numbers(support)).all():
            return support
        mean, reach = self.mean(), 4 * math.sqrt(self.variance())
        low, high = as_numbers(support).tolist()
        return max(low, mean - reach), min(high, mean + reach)

    # ---- draws ---------------------------------------------------------------------

    @abstractmethod
    def samples(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        """Draw `size` values independently."""

    def sample(self, rng: np.random.Generator) -> Value:
        """Draw one value."""
        return as_value(self.samples(rng, 1)[0], type(self).__name__, CircuitError)

    # ---- estimation ----------------------------------------------------------------

    @classmethod
    @abstractmethod
    def fit(
        cls, values: Values, weights: Array, within: tuple[float, float] | None = None
    ) -> "Distribution":
        """Return the distribution of weighted values.

        Parameters
        ----------
        values
            At least one value; distinct and sorted.
        weights
            How often each value occurred, above 0.
        within
            Set where rows were split on this variable: the interval that belongs to them, for
            integers without its upper end. Except for the values themselves, the support must not
            reach beyond it, or one state would belong to several interface nodes. It should fill
            it, so that no value between two intervals is left out.
        """

    @abstractmethod
    def statistics(self, values: Values, weights: Array) -> dict[Value, float]:
        """Return sufficient statistics of weighted values, for `reestimated`.

        Statistics of disjoint data add up key by key. Arguments are as for `fit`.
        """

    @abstractmethod
    def reestimated(self, statistics: Mapping[Value, float]) -> "Distribution":
        """Return the distribution with new parameters; what was chosen as structure is kept."""

    # ---- for people and files ------------------------------------------------------

    def describe(self) -> str:
        """Return a short text for pictures, of a few lines at most."""
        return f"≈ {show(self.mean())}"

    @abstractmethod
    def to_json(self) -> dict[str, object]:
        """Return the parameters as JSON has them; `id`, `kind`, `variable` are reserved keys."""

    @classmethod
    @abstractmethod
    def from_json(cls, fields: Fields) -> "Distribution":
        """Return the distribution with the parameters that `to_json` wrote."""


# ---- the registry --------------------------------------------------------------------

_FAMILIES: dict[str, type[Distribution]] = {}

D = TypeVar("D", bound=Distribution)


def register(family: type[D]) -> type[D]:
    """Register a family, so that model files that contain it can be read; a class decorator."""
    if not family.family:
        raise CircuitError(f"{family.__name__}: expected a name in `family`, found none")
    known = _FAMILIES.get(family.family)
    if known is not None and _path(known) != _path(family):
        raise CircuitError(
            f"{_path(family)}: the family name {family.family!r} already belongs to {_path(known)}"
        )
    _FAMILIES[family.family] = family
    return family


def _path(family: type[Distribution]) -> str:
    return f"{family.__module__}.{family.__qualname__}"


def registered(name: str) -> type[Distribution]:
    """Return the family that is registered under a name."""
    if name not in _FAMILIES:
        raise CircuitError(
            f"unknown distribution {name!r}: {did_you_mean(name, _FAMILIES)}; if it is a family of "
            "your own, import the module that registers it first"
        )
    return _FAMILIES[name]


# ---- what families share -------------------------------------------------------------


def check_simplex(where: str, masses: tuple[float, ...]) -> None:
    """Refuse what is not a probability vector."""
    for mass in masses:
        if not 0 <= mass <= 1 + SIMPLEX_TOLERANCE:
            raise CircuitError(f"{where}: expected probabilities from 0 to 1, found {mass}")
    total = math.fsum(masses)
    if abs(total - 1) > SIMPLEX_TOLERANCE:
        raise CircuitError(f"{where}: expected probabilities that sum to 1, found {total:.12g}")


def as_numbers(values: Values) -> NDArray[Any]:
    """Return values as an array of numbers, NaN for those that are none.

    >>> as_numbers((1, 2.5, "high")).tolist()
    [1.0, 2.5, nan]
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return values
    return np.array([_number(value) for value in values])


def _number(value: Value) -> float:
    if isinstance(value, str | Mark):
        return math.nan
    return float(value) if isinstance(value, int) and abs(value) >= 2**63 else value


def draw_indices(masses: Sequence[float] | Array, rng: np.random.Generator, size: int) -> Ints:
    """Draw indices in proportion to their masses, never one of mass 0."""
    heights = np.cumsum(masses)
    return np.asarray(np.searchsorted(heights, rng.random(size) * heights[-1], side="right"))


def draw_index(masses: Sequence[float], rng: np.random.Generator) -> int:
    """Draw one index in proportion to its mass, without making arrays."""
    heights = list(accumulate(masses))
    return bisect_right(heights, rng.random() * heights[-1])


def piece_weights(
    borders: Sequence[float], numbers: NDArray[Any], weights: Array
) -> dict[Value, float]:
    """Return the weight of each piece that has any; numbers outside count at the nearest end."""
    last = len(borders) - 2
    piece = np.searchsorted(np.array(borders), numbers, side="right") - 1
    found = np.bincount(np.clip(piece, 0, last), weights=weights, minlength=last + 1)
    return {k: weight for k, weight in enumerate(found.tolist()) if weight > 0}


def weights_of_pieces(statistics: Mapping[Value, float], pieces: int) -> Array:  # [pieces]
    """Return the weights of all pieces as an array."""
    return np.array([statistics.get(k, 0.0) for k in range(pieces)])
