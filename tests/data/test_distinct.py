"""Distinct integers are those of numpy.unique, counted or sorted."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rspmn.data.distinct import (
    count_distinct,
    distinct_counts,
    distinct_integers,
    distinct_rows,
)


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
        counted, counts = distinct_counts(numbers)
        assert counted.dtype == expected.dtype
        assert np.array_equal(counted, expected)
        assert np.array_equal(counts, np.bincount(inverse, minlength=len(expected)))


def test_extremes_of_a_type() -> None:
    numbers = np.array([127, -128, 127], dtype=np.int8)
    found, places = distinct_integers(numbers)
    assert found.tolist() == [-128, 127]
    assert places.tolist() == [1, 0, 1]


@given(st.integers(0, 2**32 - 1), st.integers(0, 30), st.integers(1, 4))
def test_distinct_rows_are_those_of_numpy(seed: int, rows: int, columns: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(-2, 3, (rows, columns))
    table[: rows // 2] *= 2**40
    found, which = distinct_rows(table)
    expected, inverse = np.unique(table, axis=0, return_inverse=True)
    assert np.array_equal(found, expected)
    assert np.array_equal(which, inverse.ravel())
    assert count_distinct(table[:, 0]) == len(np.unique(table[:, 0]))


def test_rows_of_one_hash_are_not_taken_for_equal() -> None:
    """Of two columns the hash is a · c + b: (0, c) and (1, 0) have the same."""
    odd = int(np.array(0x9E3779B97F4A7C15, dtype=np.uint64).view(np.int64))
    table = np.array([[1, 0], [0, odd], [1, 0]])
    found, which = distinct_rows(table)
    assert found.tolist() == [[0, odd], [1, 0]]
    assert which.tolist() == [1, 0, 1]
