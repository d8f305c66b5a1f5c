"""Types of arrays, by what they hold."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

#: Numbers: probabilities, utilities, weights.
Array = NDArray[np.float64]
#: Indices, codes and counts.
Ints = NDArray[np.int64]
#: Masks.
Bools = NDArray[np.bool_]
#: Values as they are.
Objects = NDArray[np.object_]


def significant(numbers: Array) -> Array:
    """Return numbers rounded to about twelve digits, of whatever size they are.

    >>> significant(np.array([0.1 + 0.2, 0.3e-20, 0.0])) == significant(np.array([0.3, 0.3e-20, 0]))
    array([ True,  True,  True])
    """
    part, power = np.frexp(numbers)
    return np.asarray(np.ldexp(np.rint(np.ldexp(part, 40)), power - 40))


def objects(values: Sequence[object]) -> Objects:
    """Return values as an array of objects; numpy would make strings of [1, "a"]."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
