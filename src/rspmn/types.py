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


def objects(values: Sequence[object]) -> Objects:
    """Return values as an array of objects; numpy would make strings of [1, "a"]."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
