"""What follows a node of a grid: the next category, and the variance of utilities."""

import numpy as np
import pytest

from rspmn.learn.numbers.axes import NumberLine
from rspmn.learn.numbers.displacements import Logged, fit_displacements
from rspmn.learn.numbers.follows import expected_next, next_categories
from rspmn.learn.numbers.grid import Grid, Membership
from rspmn.learn.numbers.successors import DRAWS, _draws, _landing


def test_the_next_category_by_hand() -> None:
    """From 1 two steps lead to 0 and six to 1; others end or lack a code, and do not count."""
    grid = Grid((2,), (NumberLine(np.array([0.0, 1.0])),), np.array([[0, 0], [1, 0]]), np.ones(2))
    went = [(1, 0, False)] * 2 + [(1, 1, False)] * 6 + [(1, -1, True)] * 4 + [(1, -1, False)] * 3
    here, after, ended = map(np.array, zip(*went, *[(-1, 0, False)] * 5, strict=True))
    rows, zero = len(here), np.zeros(len(here))
    at = np.flatnonzero((grid.nodes == [1, 0]).all(axis=1))
    membership = Membership(np.arange(rows), np.repeat(at, rows), np.ones(rows), rows, grid.size)
    none = np.zeros((rows, 1))
    log = Logged(none, none, here[:, None], after[:, None], zero.astype(np.int64), 1, ended, zero,
                 zero, np.ones(rows))  # fmt: skip
    found = next_categories(grid, membership, log, 0)[:, 0]
    from_one = grid.nodes[:, 0] == 1  # nodes without steps have what is known of the category
    assert found[from_one] == pytest.approx(np.array([[0.25, 0.75]] * 2), abs=1e-9)
    assert found[~from_one] == pytest.approx(np.array([[1.0, 0.0]] * 2))  # it stays


def test_the_variance_of_utilities_by_hand() -> None:
    """Utilities of 1 and 3, each a mean with a variance of .5 around it: 1.5 in all."""
    grid = Grid((), (NumberLine(np.array([0.0, 1.0])),), np.array([[0]]), np.ones(1))
    rows = 8
    zero, first = np.zeros((rows, 1)), np.zeros(rows, dtype=np.int64)
    log = Logged(
        zero, zero, np.zeros((rows, 0), dtype=np.int64), np.zeros((rows, 0), dtype=np.int64), first,
        1, np.zeros(rows, dtype=bool), np.array([1.0, 3.0] * 4), np.full(rows, 0.5), np.ones(rows),
    )  # fmt: skip
    membership = Membership(np.arange(rows), first, np.ones(rows), rows, grid.size)
    found = expected_next(grid, membership, log, fit_displacements(log, grid.sizes))
    assert found.variance == pytest.approx(np.full((2, 1), 1.5))
    assert found.mean == pytest.approx(np.full((2, 1), 2.0))
    assert (found.end == 0).all()


def test_noise_is_drawn_at_the_middles_of_its_quantiles() -> None:
    """Noise of -1 and 1, as often as each other, stays so: its mean is 0."""
    grid = Grid((), (NumberLine(np.array([0.0, 0.1])),), np.array([[0]]), np.ones(1))
    noise = np.array([[1.0], [-1.0], [np.nan]] * 50)
    drawn = _draws(grid, noise)
    assert drawn.tolist() == [[-1.0]] * (DRAWS // 2) + [[1.0]] * (DRAWS // 2)
    assert _draws(grid, 1e-9 * noise).tolist() == [[0.0]]


@pytest.mark.parametrize(("numbers", "corners"), [(4, 16), (5, 6)])
def test_up_to_sixteen_corners_are_interpolated(numbers: int, corners: int) -> None:
    """In the middle of a cell all of 2^4 have the same weight; of 2^5 there are 5 + 1."""
    line = NumberLine(np.array([0.0, 1.0]))
    grid = Grid((), (line,) * numbers, np.zeros((1, numbers), dtype=np.int64), np.ones(1))
    knots, weight = _landing(grid, np.full((1, numbers), 0.5), certain=True)
    assert knots.shape == (1, corners, numbers)
    assert weight.sum() == pytest.approx(1.0)
    if corners == 16:
        assert weight == pytest.approx(np.full((1, 16), 1 / 16))
