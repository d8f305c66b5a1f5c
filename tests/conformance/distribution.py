"""Conformance of leaf families: `check_distribution`."""

import json
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.circuit import Distribution, Leaf, NetworkBuilder
from rspmn.circuit.distributions import Values, registered
from rspmn.circuit.json import network_from_json, network_to_json
from rspmn.schema import Kind
from rspmn.types import Array
from rspmn.values import END, Mark, Value

#: Values drawn to compare frequencies and moments with what the distribution says.
DRAWS = 4000
#: Values drawn one at a time.
FEW_DRAWS = 400
#: Standard errors that a mean or frequency may be off; a right one is once in 1.7 million.
STANDARD_ERRORS = 5
#: Points at which a density is evaluated to integrate it.
POINTS = 100_001


def check_distribution(distribution: Distribution, rng: np.random.Generator | int = 0) -> None:
    """Check that a distribution keeps the rules of `rspmn.circuit.Distribution`.

    Call it with several members of a family: narrow and wide ones, and such as `fit` returns.

    Parameters
    ----------
    distribution
        A member of the family.
    rng
        A generator or seed, for the values that are drawn from it.

    Raises
    ------
    AssertionError
        With the rule that is broken.

    Examples
    --------
    >>> from rspmn.circuit import Categorical
    >>> check_distribution(Categorical(("wet", "dry"), (0.25, 0.75)))
    """
    rng = np.random.default_rng(rng)
    _check_class(type(distribution))
    _check_value(distribution)
    _check_json(distribution)
    drawn = distribution.samples(rng, DRAWS)
    one_by_one = np.empty(FEW_DRAWS, dtype=object)
    one_by_one[:] = [distribution.sample(rng) for _ in one_by_one]
    for values in (drawn, one_by_one):
        _check_probabilities(distribution, values)
        _check_draws(distribution, values)
    _check_sizes(distribution, rng)
    _check_estimation(distribution, drawn)
    if distribution.atoms() is None:
        _check_density(distribution, drawn)
        _check_moments(distribution, drawn)
        _check_moments(distribution, one_by_one)
        _check_within(type(distribution), drawn)


def _check_class(family: type[Distribution]) -> None:
    name = family.__name__
    assert issubclass(family, Distribution), f"{name}: derive it from Distribution"
    assert family.family, f"{name}.family: expected the name of the family in model files"
    assert registered(family.family) is family, f"{name}: decorate it with `register`"
    assert family.kinds, f"{name}.kinds: expected the kinds of variables that it describes"
    odd = family.kinds - set(Kind)
    assert not odd, f"{name}.kinds: expected kinds among {[*map(str, Kind)]}, found {sorted(odd)}"


def _check_value(distribution: Distribution) -> None:
    """Equal leaves are stored once, so members are compared and hashed."""
    statistics = distribution.statistics([distribution.mode()], np.ones(1))
    again = distribution.reestimated(statistics)
    assert again == distribution.reestimated(statistics), "equal members must compare equal"
    assert hash(again) == hash(distribution.reestimated(statistics)), "equal members, equal hashes"
    text = distribution.describe()
    assert isinstance(text, str), "describe: expected a text"
    assert text, "describe: expected a text that is not empty"


def _check_json(distribution: Distribution) -> None:
    builder = NetworkBuilder()
    network = builder.build(builder.add(Leaf("x", distribution)))
    text = network_to_json(network)
    found = network_from_json(json.loads(text), "check_distribution").nodes[0]
    assert isinstance(found, Leaf)
    assert found == network.nodes[0], f"from_json(to_json) differs: {found} and {distribution}"
    assert network_to_json(builder.build(builder.add(found))) == text, "to_json must be stable"


def _check_probabilities(distribution: Distribution, drawn: Values) -> None:
    logs = distribution.log_probs(drawn)
    assert logs.shape == (len(drawn),), f"log_probs: one number a value, found {logs.shape}"
    assert logs.dtype == np.float64, f"log_probs: expected float64, found {logs.dtype}"
    assert (logs > -np.inf).all(), "values that were drawn must have a probability above 0"
    assert not np.isnan(logs).any(), "log_probs must not be NaN"
    for value in drawn[:20]:
        one, many = distribution.log_prob(value), distribution.log_probs([value])[0]
        assert math.isclose(one, many, rel_tol=1e-12, abs_tol=1e-12), "log_prob: as log_probs"
    best = distribution.log_prob(distribution.mode())
    assert best >= logs.max() - 1e-9, "mode: expected a value of highest probability"
    text, end = distribution.log_probs(["never a value", END])
    unlisted = distribution.unlisted()
    assert math.isclose(math.exp(text), unlisted, rel_tol=1e-9), (
        f"text has the probability of values that are not listed, {unlisted}"
    )
    if END not in distribution.support():
        assert end == -np.inf, "END is outside the support: -inf"
    assert len(distribution.log_probs([])) == 0, "log_probs of no values: an empty array"


def _check_sizes(distribution: Distribution, rng: np.random.Generator) -> None:
    one, other = (distribution.samples(np.random.default_rng(7), 5) for _ in range(2))
    assert np.array_equal(one, other), "samples: the same generator must give the same draws"
    assert len(distribution.samples(rng, 0)) == 0, "samples of size 0: an empty array"


def _check_draws(distribution: Distribution, drawn: Values) -> None:
    atoms, support = distribution.atoms(), distribution.support()
    if atoms is None:
        low, high = support
        assert min(drawn) >= low, "samples: below the support"
        assert max(drawn) <= high, "samples: above the support"
        return
    assert tuple(atoms) == support, "support: expected the values that atoms lists"
    total = math.fsum([*atoms.values(), distribution.unlisted()])
    assert math.isclose(total, 1, rel_tol=1e-9), "atoms and what is unlisted must sum to 1"
    for value, p in atoms.items():
        assert math.isclose(math.exp(distribution.log_prob(value)), p, rel_tol=1e-9, abs_tol=1e-12)
        p /= 1 - distribution.unlisted()  # only listed values are drawn
        share = sum(bool(found == value) for found in drawn) / len(drawn)
        off = STANDARD_ERRORS * math.sqrt(p * (1 - p) / len(drawn)) + 1e-12
        assert abs(share - p) <= off, f"samples: {value!r} drawn in {share:.3f}, expected {p:.3f}"


def _check_density(distribution: Distribution, drawn: NDArray[Any]) -> None:
    """Compare the mass of the span, by its density or probabilities, with the draws in it."""
    from scipy.integrate import trapezoid  # that of numpy is as new as its version 2

    low, high = (float(end) for end in distribution.span())  # type: ignore[arg-type]
    assert math.isfinite(low), "span: expected finite ends"
    assert math.isfinite(high), "span: expected finite ends"
    assert low <= high, "span: expected the lower end first"
    if Kind.CONTINUOUS in type(distribution).kinds:
        points = np.linspace(low, high, POINTS)
        total = float(trapezoid(np.exp(distribution.log_probs(points)), points))
    else:
        integers = np.arange(math.floor(low), math.ceil(high) + 1)
        total = float(np.exp(distribution.log_probs(integers)).sum())
    share = float(((drawn >= low) & (drawn <= high)).mean())
    off = STANDARD_ERRORS * math.sqrt(share * (1 - share) / len(drawn)) + 1e-3
    assert abs(total - share) <= off, (
        f"log_probs: the values from {low:g} to {high:g} have probability {total:.4f}, "
        f"but {share:.4f} of the draws are there"
    )
    knots, densities = distribution.pieces() or ((), ())
    for x, density in [*zip(knots, densities, strict=True), *_between(knots, densities)]:
        found = math.exp(distribution.log_prob(x))
        assert math.isclose(found, density, rel_tol=1e-6), f"pieces: {density} at {x}, not {found}"
    beyond = [end + shift for end, shift in zip(distribution.support(), (-1, 1), strict=True)]  # type: ignore[operator]
    finite = [number for number in beyond if math.isfinite(number)]
    assert (distribution.log_probs(finite) == -np.inf).all(), "outside the support: -inf"


def _between(knots: Sequence[float], densities: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Return the middle of each piece and the density there."""
    for (a, fa), (b, fb) in pairwise(zip(knots, densities, strict=True)):
        yield (a + b) / 2, (fa + fb) / 2


def _check_moments(distribution: Distribution, drawn: Values) -> None:
    numbers = np.asarray(drawn, dtype=np.float64)
    mean, variance = distribution.mean(), distribution.variance()
    assert variance >= 0, f"variance: expected 0 or more, found {variance}"
    off = STANDARD_ERRORS * math.sqrt(variance / len(numbers)) + 1e-9 * (1 + abs(mean))
    assert abs(numbers.mean() - mean) <= off, f"mean: {mean:g}, but of draws {numbers.mean():g}"
    deviations = (numbers - mean) ** 2
    off = STANDARD_ERRORS * float(deviations.std()) / math.sqrt(len(numbers)) + 1e-9 * (1 + mean**2)
    assert abs(deviations.mean() - variance) <= off, (
        f"variance: {variance:g}, but of draws {deviations.mean():g}"
    )


def _check_estimation(distribution: Distribution, drawn: Values) -> None:
    values, weights = _weighted(drawn)
    if not len(values):  # END and UNKNOWN do not occur in data
        return
    fitted = type(distribution).fit(values, weights)
    assert (fitted.log_probs(values) > -np.inf).all(), "fit: what was seen must be possible"
    half = len(values) // 2
    parts = [slice(0, half), slice(half, None)] if half else [slice(None)]
    added: dict[object, float] = {}
    for part in parts:
        for key, amount in distribution.statistics(values[part], weights[part]).items():
            added[key] = added.get(key, 0.0) + amount
    whole = distribution.statistics(values, weights)
    assert added.keys() == whole.keys(), "statistics of parts must have the keys of the whole"
    for key, amount in whole.items():
        assert math.isclose(added[key], amount, rel_tol=1e-9, abs_tol=1e-9), (
            f"statistics of disjoint data must add up: {key!r} is {added[key]}, expected {amount}"
        )
    assert json.loads(json.dumps(list(map(list, whole.items())))) == list(map(list, whole.items()))
    again = distribution.reestimated(whole)
    assert (again.log_probs(values) > -np.inf).all(), "reestimated: what was seen must be possible"


def _check_within(family: type[Distribution], drawn: Values) -> None:
    """Rows that were split on a variable have disjoint intervals of it."""
    values, weights = _weighted(drawn)
    numbers = np.asarray(values, dtype=np.float64)
    margin = 1.0 + float(np.ptp(numbers))
    within = float(numbers[0] - margin), float(numbers[-1] + margin)
    found = family.fit(values, weights, within)
    low, high = found.support()
    assert low >= math.floor(within[0]), "fit: the support must not reach below the interval"  # type: ignore[operator]
    assert high <= math.ceil(within[1]), "fit: the support must not reach above the interval"  # type: ignore[operator]
    one = family.fit(values[:1], weights[:1], within)
    assert one.log_prob(values[0]) > -math.inf, "fit: one value, within an interval"


def _weighted(drawn: Values) -> tuple[Values, Array]:
    """Return the distinct values but END and UNKNOWN, sorted, and how often each was drawn."""
    counts: dict[Value, float] = {}
    for value in drawn.tolist() if isinstance(drawn, np.ndarray) else drawn:
        if not isinstance(value, Mark):
            counts[value] = counts.get(value, 0.0) + 1.0
    values = sorted(counts, key=lambda value: (str(type(value)), value))
    return values, np.array([counts[value] for value in values])
