"""The axes of a grid: lines of one number, circles of two.

Two numbers are on a circle if they are the cosine and sine of an angle: a joint, a heading, the
hour of the day, the season. A grid over both would have most of its nodes where no state can be.

A circle has four sides with borders at the diagonals. On each side one of the numbers, that along
it, tells where on the side a state is. The other, across it, is the larger in size, and tells that
the state is on this side. So a place on a circle is a product of leaves, one for each number.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from rspmn.circuit import Leaf, Network, Node, Product, Sum
from rspmn.errors import DataError
from rspmn.model import RSPMN
from rspmn.types import Array, Bools, Ints

#: Numbers are on a circle if they are no farther from it than this share of its radius. Even the
#: finest grids do not tell states apart by so little.
NEAR = 0.01
#: The number of sides of a circle.
SIDES = 4


@dataclass(frozen=True, eq=False)
class NumberLine:
    """A number, between its knots."""

    knots: Array  # increasing
    numbers: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if len(self.knots) < 2:
            raise DataError(f"NumberLine: expected two or more knots, found {self.knots}")

    @property
    def size(self) -> int:
        """The number of knots."""
        return len(self.knots)

    @property
    def intervals(self) -> int:
        """The number of intervals between knots."""
        return len(self.knots) - 1

    @property
    def points(self) -> Array:  # [size, 1]
        """The number at each knot."""
        return self.knots[:, None]

    @property
    def spacing(self) -> float:
        """The usual distance between knots."""
        return float(np.median(np.diff(self.knots)))

    def place(self, numbers: Array) -> tuple[Ints, Array]:  # [n, 1] to [n], [n]
        """Return the interval of each number, and how far it lies in it, from 0 to 1.

        Numbers beyond the last knot are at it. Of NaN the interval is -1, and the share NaN.
        """
        return _between(self.knots, numbers[:, 0])

    def beyond(self, numbers: Array) -> Bools:  # [n, 1] to [n]
        """Say which numbers are beyond the last knots."""
        return np.asarray((numbers[:, 0] < self.knots[0]) | (numbers[:, 0] > self.knots[-1]))


@dataclass(frozen=True, eq=False)
class Circle:
    """Two numbers on a circle around 0.

    Knots have the same distance from each other; they and the intervals after them are counted
    counterclockwise from where the second number is minus the first. The sides are, in this order,
    where the first number is largest, the second, and where each is least.
    """

    radius: float
    size: int  # the number of knots, and of intervals between them
    numbers: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.size < SIDES or self.size % SIDES:
            raise DataError(f"Circle: expected knots in multiples of {SIDES}, found {self.size}")

    @property
    def intervals(self) -> int:
        """The number of intervals between knots."""
        return self.size

    @cached_property
    def side(self) -> Array:  # [size / 4 + 1]
        """The number along a side at the knots of it: the same values on all, increasing."""
        each = self.size // SIDES
        return np.asarray(self.radius * np.sin(np.pi / 4 * np.arange(-each, each + 1, 2) / each))

    @cached_property
    def points(self) -> Array:  # [size, 2]
        """The numbers at each knot."""
        along = self.side[:-1]
        across = np.sqrt(self.radius**2 - along**2)
        first = np.stack([across, along], axis=1)
        turns = ([[1, 0], [0, 1]], [[0, 1], [-1, 0]], [[-1, 0], [0, -1]], [[0, -1], [1, 0]])
        return np.concatenate([first @ np.array(turn) for turn in turns])

    @property
    def spacing(self) -> float:
        """The distance between knots."""
        return 2 * np.pi * self.radius / self.size

    def place(self, numbers: Array) -> tuple[Ints, Array]:  # [n, 2] to [n], [n]
        """Return the interval of each pair, and how far along the side it lies in it, from 0 to 1.

        Pairs that are not on the circle are moved to it, away from 0 or towards it. Where one of
        the two is NaN the interval is -1, and the share NaN.
        """
        turned = np.arctan2(numbers[:, 1], numbers[:, 0]) + np.pi / 4
        side = np.floor(turned / (np.pi / 2))
        interval, share = _between(
            self.side, self.radius * np.sin(turned - np.pi / 4 - side * np.pi / 2)
        )
        first = np.nan_to_num(side).astype(np.int64) % SIDES * (self.size // SIDES)
        return np.where(interval < 0, -1, first + interval), share

    def beyond(self, numbers: Array) -> Bools:  # [n, 2] to [n]
        """Say which pairs are not on the circle."""
        return np.asarray(np.abs(np.hypot(*numbers.T) - self.radius) > NEAR * self.radius)


Axis = NumberLine | Circle


def _between(knots: Array, numbers: Array) -> tuple[Ints, Array]:  # [n], [n]
    x = np.clip(numbers, knots[0], knots[-1])
    k = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    share = (x - knots[k]) / (knots[k + 1] - knots[k])
    return np.where(np.isnan(x), -1, k), share


def radius_of(one: Array, other: Array) -> float | None:
    """Return the radius of the circle around 0 that two numbers [n] are always on.

    None if they are on none, or if a side of it was never seen.

    >>> angle = np.linspace(0, 7, 100)
    >>> round(radius_of(np.cos(angle), np.sin(angle).round(2)), 3)
    1.0
    >>> radius_of(100 + np.cos(angle), np.sin(angle)) is None
    True
    """
    known = ~np.isnan(one) & ~np.isnan(other)
    numbers = np.stack([one[known], other[known]], axis=1)
    if not len(numbers):
        return None
    circle = Circle(float(np.median(np.hypot(*numbers.T))), SIDES)
    if circle.radius == 0 or circle.beyond(numbers).any():
        return None
    return circle.radius if len(np.unique(circle.place(numbers)[0])) == SIDES else None


def quantile_knots(numbers: Array, others: Array, counts: Array, most: int) -> Array:
    """Return at most so many knots: the ends of all numbers, and others as the first are spread.

    They are where the mean of the share of numbers below and of the way from the least to the most
    is an even share: at quantiles alone, long tails would have no knots.

    >>> quantile_knots(np.arange(5.0), np.array([6.0]), np.ones(5), 3)
    array([0., 2., 6.])
    """
    known = numbers[~np.isnan(numbers)]
    order = np.argsort(known)
    below = np.cumsum(counts[~np.isnan(numbers)][order])
    along = (known[order] - known.min()) / max(float(np.ptp(known)), 1e-300)
    rank = below / below[-1] + along
    at = np.searchsorted(rank, rank[-1] * np.arange(1, most - 1) / (most - 1))
    ends = [np.nanmin(numbers), np.nanmax(numbers)]
    if not np.isnan(others).all():
        ends = [min(ends[0], np.nanmin(others)), max(ends[1], np.nanmax(others))]
    return np.unique([*ends, *known[order][at]])


def grid_of(model: RSPMN) -> tuple[dict[tuple[str, ...], Axis], list[str]] | None:
    """Return the axes of a model of soft boxes by the names of their numbers, and the categories.

    None if the interface nodes of the model are no soft boxes. A knot is where a ramp is highest.
    """
    template = model.template
    parts: dict[tuple[str, ...], dict[int, list[Leaf]]] = {}  # of each axis, its leaves by node
    categories: dict[str, None] = {}
    for number, root in enumerate(template.roots):
        if number in (model.end, model.unknown):
            continue
        for child in template.nodes[root].children:
            for index, leaves in _ramps(template, child):
                names = tuple(leaf.variable for leaf in leaves)
                names = names[::-1] if names[::-1] in parts else names
                parts.setdefault(names, {})[index] = leaves
            node = template.nodes[child]
            if isinstance(node, Leaf) and len(node.distribution.atoms() or ()) == 1:
                categories[node.variable] = None
    if not parts:
        return None
    return {names: _axis([*of.values()]) for names, of in parts.items()}, [*categories]


def _axis(ramps: list[list[Leaf]]) -> Axis:
    """Return the axis of some ramps; what is across a side of a circle is highest at its radius."""
    if len(ramps[0]) == 1:
        return NumberLine(np.unique([_peak(leaf) for (leaf,) in ramps]))
    return Circle(abs(_peak(ramps[0][0])), len(ramps) // 2)


def _ramps(network: Network, index: int) -> list[tuple[int, list[Leaf]]]:
    """Return the ramps of a sum over cells, or of a single one; nothing if there is anything else.

    A ramp is the number of its node, and its leaf, on a circle after the one across its side.
    """
    node = network.nodes[index]
    cells = node.children if isinstance(node, Sum) else (index,)
    found = [ramp for cell in cells for ramp in _ramps_of_cell(network, cell)]
    return [] if any(not leaves for _, leaves in found) else found


def _ramps_of_cell(network: Network, index: int) -> Iterator[tuple[int, list[Leaf]]]:
    node = network.nodes[index]
    leaves = _ramp(network, node)
    if isinstance(node, Product) and not leaves:
        for child in node.children:
            yield child, _ramp(network, network.nodes[child])
    else:
        yield index, leaves


def _ramp(network: Network, node: Node) -> list[Leaf]:
    """Return the leaves of a ramp; none if the node is something else."""
    below = [network.nodes[k] for k in node.children] if isinstance(node, Product) else [node]
    leaves = [leaf for leaf in below if isinstance(leaf, Leaf)]
    across = [leaf for leaf in leaves[:-1] if not _is_ramp(leaf)]
    is_ramp = len(leaves) == len(below) == len(across) + 1 <= 2 and _is_ramp(leaves[-1])
    return leaves if is_ramp else []


def _is_ramp(leaf: Leaf) -> bool:
    """Say whether a leaf is a density that falls to 0 at one end of its support, not at both."""
    density = leaf.distribution
    if density.atoms() is not None:
        return False
    low, high = np.isneginf(density.log_probs(density.support()))
    return bool(low != high)


def _peak(leaf: Leaf) -> float:
    peak = leaf.distribution.mode()
    assert isinstance(peak, float), "a ramp is a density of numbers"
    return peak
