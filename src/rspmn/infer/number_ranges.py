"""The ranges of numbers that interface nodes hold, and how they are written."""

import math
from collections.abc import Iterable

from rspmn.circuit import Distribution
from rspmn.values import Mark

#: Where a density is below this share of its highest, it is a tail beyond what was logged.
TAIL = 1e-3

Range = tuple[float, float]


def number_range(distribution: Distribution) -> Range:
    """Return the range of the numbers of a distribution, without its tails."""
    pieces = distribution.pieces()
    if pieces is None:
        low, high = distribution.span()
        assert not isinstance(low, str | Mark)
        assert not isinstance(high, str | Mark)
        return float(low), float(high)
    knots, densities = pieces
    least = TAIL * max(densities)
    inside = [k for k, density in enumerate(densities) if density >= least]
    # Density may fall to 0 at a knot that is not a tail's: the piece to it was logged.
    first = inside[0] - (inside[0] > 0 and densities[inside[0] - 1] == 0)
    last = inside[-1] + (inside[-1] + 1 < len(knots) and densities[inside[-1] + 1] == 0)
    return knots[first], knots[last]


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Return ranges in order, those that touch as one.

    >>> joined([(2.0, 3.0), (0.0, 1.0), (1.0, 1.5)])
    [(0.0, 1.5), (2.0, 3.0)]
    """
    found: list[Range] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found


def range_text(low: float, high: float) -> str:
    """Return a range as text, with two digits of its width; integers without a point.

    >>> range_text(2.3912, 2.5749), range_text(69.65, 1347.2), range_text(1.00012, 1.00034)
    ('2.39 to 2.57', '70 to 1347', '1.00012 to 1.00034')
    >>> range_text(0.0, 8.0)
    '0 to 8'
    """
    if float(low).is_integer() and float(high).is_integer():
        return f"{low:.0f} to {high:.0f}"
    width = high - low
    digits = max(0, 1 - math.floor(math.log10(width))) if width > 0 else 6
    return f"{low:.{digits}f} to {high:.{digits}f}"
