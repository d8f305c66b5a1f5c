"""What follows a node of a grid: the next category, and the variance of utilities."""

import numpy as np
import pytest

from rspmn.learn.numbers.axes import NumberLine
from rspmn.learn.numbers.displacements import Logged, fit_displacements
from rspmn.learn.numbers.follows import (
    STRENGTH,
    Follows,
    expected_next,
    next_categories,
    shrunk_sums,
)
from rspmn.learn.numbers.grid import Grid, Membership
from rspmn.learn.numbers.successors import (
    DRAWS,
    MOST,
    GridTransitions,
    _draws,
    _landing,
    soft_counts,
)


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


def test_utilities_of_steps_that_end_and_that_go_on_by_hand() -> None:
    """Two of eight steps end and earn 8, the others earn 0: at the end 8, on the way 0."""
    grid = Grid((), (NumberLine(np.array([0.0, 1.0])),), np.array([[0]]), np.ones(1))
    zero, first = np.zeros((2, 1)), np.zeros(2, dtype=np.int64)
    none = np.zeros((2, 0), dtype=np.int64)
    log = Logged(
        zero, zero, none, none, first, 1, np.array([False, True]), np.array([0.0, 8.0]),
        np.zeros(2), np.array([6.0, 2.0]),
    )  # fmt: skip
    membership = Membership(np.arange(2), first, np.ones(2), 2, grid.size)
    found = expected_next(grid, membership, log, fit_displacements(log, grid.sizes))
    assert found.end == pytest.approx(np.full((2, 1), 0.25))
    assert found.mean == pytest.approx(np.full((2, 1), 2.0))


def test_what_nodes_have_of_their_own_is_shrunk_by_hand() -> None:
    """Means of 1 and -1, of n steps each: their variance beyond noise is 1 - v / n.

    Of 10 steps each and v = 6 that is .4, and κ = 6 / .4 = 15: they keep 10 / 25. Of 100 steps
    each and v = 1 κ would be 1 / .99, and is 10: they keep 100 / 110. With v = n all is noise.
    """
    signs = np.array([1.0, -1.0, 0.0])  # the last node has no steps
    for n, v, kept in ((10.0, 6.0, 0.4), (100.0, 1.0, 10 / 11), (10.0, 10.0, 0.0)):
        found = shrunk_sums(np.array([n, n, 0.0]), n * signs, v)
        assert found == pytest.approx(kept * signs)
    assert shrunk_sums(np.zeros(3), np.zeros(3), 1.0).tolist() == [0.0] * 3


def test_what_one_action_does_in_a_place_is_not_what_another_does() -> None:
    """At 0, 1 and 2: action 0 moves on by 1 from 1 only, which no line says; action 1 stays."""
    line = NumberLine(np.array([0.0, 1.0, 2.0]))
    grid = Grid((), (line,), np.array([[0], [1]]), np.ones(2))
    at, action = np.repeat([0, 1, 2], 200), np.tile([0, 1], 300)
    rows, none = len(at), np.zeros((600, 0), dtype=np.int64)
    here = at[:, None].astype(np.float64)
    after = here + ((at == 1) & (action == 0))[:, None]
    log = Logged(here, after, none, none, action, 2, np.zeros(rows, dtype=bool), np.zeros(rows),
                 np.zeros(rows), np.ones(rows))  # fmt: skip
    membership = Membership(np.arange(rows), at, np.ones(rows), rows, grid.size)
    found = expected_next(grid, membership, log, fit_displacements(log, grid.sizes))
    # 100 steps of its own weigh against the STRENGTH of 10 of what is shared, 1 in 11
    assert found.next_numbers[:, 0, 0, 0] == pytest.approx([0, 2, 2], abs=0.1)
    assert found.next_numbers[:, 1, 0, 0] == pytest.approx([0, 1, 2], abs=0.01)


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


def test_how_many_draws_are_as_sure_as_a_mean() -> None:
    """From 0 a step leads to 0 or 1, with a variance of 1/4; residuals of ±.1 have one of .01.

    The mean of 4 steps, and of a shared model worth κ, is as sure as that of (4 + κ) · 25 draws.
    From 1 it leads to 1 for certain: no draw says more, so there are as many as there may be.
    """
    grid = Grid((), (NumberLine(np.array([0.0, 1.0])),), np.array([[0]]), np.ones(1))
    one, noise = np.ones((2, 1)), [[np.array([[0.1], [-0.1], [np.nan]])]]
    follows = Follows(4 * one, 0 * one, 0 * one, 0 * one, np.ones((2, 1, 1)),
                      np.array([[[[0.5]]], [[[1.0]]]]), noise, np.zeros((2, 2)))  # fmt: skip
    led = GridTransitions(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([0.5, 0.5, 1.0]), 2)
    found = soft_counts(grid, follows, led, np.zeros(2), np.array([[0], [1]]), None)
    assert found.landing == pytest.approx(((4 + STRENGTH) * 25, MOST))
