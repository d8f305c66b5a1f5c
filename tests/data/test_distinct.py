"""Distinct integers are those of numpy.unique, counted or sorted."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rspmn.data.distinct import distinct_integers


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.float64, np.bool_])
@pytest.mark.parametrize("span", [3, 100, 10**9])
def test_as_numpy_does(dtype: type, span: int) -> None:
    rng = np.random.default_rng(0)
    for size in (0, 1, 1000):
        numbers: NDArray[Any] = rng.integers(-span, span + 1, size).astype(dtype)
        found, places = distinct_integers(numbers)
        expected, inverse = np.unique(numbers, return_inverse=True)
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected)
        assert np.array_equal(places, inverse)


def test_extremes_of_a_type() -> None:
    numbers = np.array([127, -128, 127], dtype=np.int8)
    found, places = distinct_integers(numbers)
    assert found.tolist() == [-128, 127]
    assert places.tolist() == [1, 0, 1]
