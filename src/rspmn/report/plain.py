"""Values as JSON has them."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rspmn.values import Mark


def plain(value: Any) -> Any:
    """Return a value as JSON has it: no NaN, no marks, no arrays.

    >>> plain({"x": float("nan"), "y": (1, np.float64(2.5))})
    {'x': None, 'y': [1, 2.5]}
    """
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, Mark):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def rounded(number: float) -> float | None:
    """Return a number to seven significant digits; None if it is not finite.

    >>> rounded(1 / 3), rounded(2.0), rounded(float("inf"))
    (0.3333333, 2.0, None)
    """
    return float(f"{number:.7g}") if math.isfinite(number) else None
