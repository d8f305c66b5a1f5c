"""Types of arrays, by what they hold."""

import numpy as np
from numpy.typing import NDArray

#: Numbers: probabilities, utilities, weights.
Array = NDArray[np.float64]
#: Indices, codes and counts.
Ints = NDArray[np.int64]
#: Masks.
Bools = NDArray[np.bool_]
