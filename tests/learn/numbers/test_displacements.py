"""Displacements as polynomials of the state."""

import numpy as np
import pytest

from rspmn.learn.numbers.displacements import Logged, _degree
from rspmn.types import Array


def degree_of(moved: Array, x: Array) -> int:
    """Return the degree that is chosen for the displacements of some states."""
    rows = len(x)
    none, no = np.zeros((rows, 0), dtype=np.int64), np.zeros(rows, dtype=bool)
    action = np.arange(rows) // 2 % 2
    log = Logged(
        x, x + moved, none, none, action, 2, no, np.zeros(rows), np.zeros(rows), np.ones(rows)
    )
    return _degree(x, moved, log, np.zeros(rows, dtype=np.int64))


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_the_degree_is_that_of_the_world(degree: int) -> None:
    """Products of d features, with noise of a tenth of their deviation, are of degree d."""
    rng = np.random.default_rng(degree)
    x = rng.normal(size=(2000, 2))
    product = x[:, 0] ** (degree // 2) * x[:, 1] ** (degree - degree // 2)
    moved = np.stack([product, x[:, 0]], axis=1) + 0.1 * rng.normal(size=x.shape)
    assert degree_of(moved, x) == degree


def test_a_degree_that_the_log_does_not_support_is_not_tried() -> None:
    """Degree 2 of two features has 6 terms: 240 steps, 40 of each, are needed."""
    x = np.random.default_rng(0).normal(size=(240, 2))
    moved = x**2
    assert degree_of(moved, x) == 2
    assert degree_of(moved[:239], x[:239]) == 1
