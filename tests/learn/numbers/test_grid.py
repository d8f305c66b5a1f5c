"""Grids: interpolation by hand, and the same from the circuit."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import share_of_examples
from number_worlds import windows_of
from rspmn.errors import DataError
from rspmn.infer.compiled.state_index import StateIndex
from rspmn.learn import LearnConfig
from rspmn.learn.numbers.axes import Axis, NumberLine, grid_of, quantile_knots
from rspmn.learn.numbers.grid import Grid, fit_grid
from rspmn.learn.numbers.learn_on_grid import estimate_on_grid
from rspmn.learn.numbers.template import TAIL
from rspmn.types import Array, Ints
from rspmn.values import Value


def lines(*knots: Array | list[float]) -> tuple[Axis, ...]:
    return tuple(NumberLine(np.array(line)) for line in knots)


def codes(rows: int) -> Ints:
    return np.zeros((rows, 0), dtype=np.int64)


def test_interpolation_by_hand() -> None:
    """Knots 0, 1, 3. 0.25 is a quarter of the way from knot 0 to 1; 2 is halfway from 1 to 3."""
    x = np.array([[0.25], [2.0], [3.0]])
    grid, membership, _ = fit_grid(codes(3), (), x, lines([0.0, 1.0, 3.0]), np.ones(3))
    expected = [[0.75, 0.25, 0], [0, 0.5, 0.5], [0, 0, 1]]
    assert pytest.approx(np.array(expected)) == membership.matrix.toarray().T
    assert grid.points[:, 0].tolist() == [0, 1, 3]


def test_the_mean_is_kept() -> None:
    """Interpolation weights times knots give the state itself."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    axes = lines(*(quantile_knots(x[:, j], x[:, j], np.ones(200), 4) for j in range(3)))
    grid, membership, _ = fit_grid(codes(200), (), x, axes, np.ones(200))
    assert membership.at_rows(grid.points) == pytest.approx(x)
    assert membership.matrix.sum(axis=0) == pytest.approx(np.ones(200))


def test_a_missing_number_is_shared_by_the_cells_that_agree() -> None:
    """Of the steps with y in its lower cell, three of four have x in its lower cell.

    So a step with that y and without x is in x's lower cell with probability 3/4, halfway between
    its knots 0 and 1: knot 0 gets 3/8, knot 1 gets 3/8 + 1/8, knot 2 gets 1/8.
    """
    x = np.array([[0.5, 0.0], [0.5, 0.0], [0.5, 0.0], [1.5, 0.0], [1.5, 2.0], [np.nan, 0.0]])
    axes = lines([0.0, 1.0, 2.0], [0.0, 1.0, 2.0])
    grid, membership, filled = fit_grid(codes(6), (), x, axes, np.ones(6))
    of_x = dict.fromkeys(range(3), 0.0)
    for node, weight in enumerate(membership.matrix[:, [5]].toarray()[:, 0]):
        of_x[int(grid.nodes[node, 0])] += weight
    # every cell has a little weight of its own, UNSEEN / 4
    assert [of_x[k] for k in range(3)] == pytest.approx([3 / 8, 4 / 8, 1 / 8], abs=0.03)
    assert filled[5, 0] == pytest.approx(0.75, abs=0.06)


def test_a_line_of_one_knot_is_refused() -> None:
    with pytest.raises(DataError, match="NumberLine: expected two or more knots"):
        lines([0.0])


def test_categories_have_nodes_of_their_own() -> None:
    x = np.array([[0.0], [1.0], [0.5]])
    kinds = np.array([[0], [0], [1]])
    grid, membership, _ = fit_grid(kinds, (3,), x, lines([0.0, 1.0]), np.ones(3))
    assert grid.size == 4  # category 2 was never seen
    assert grid.nodes.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert membership.matrix[:, [2]].toarray()[:, 0] == pytest.approx([0, 0, 0.5, 0.5])


def test_every_cell_is_there_once() -> None:
    """Categories (0, 1) and (1, 0) in two intervals: 4 cells; 1 step in all is never seen."""
    of_steps = np.array([[0, 1], [0, 1], [1, 0]])
    numbers = np.array([[0.5], [1.5], [0.5]])
    grid, _, _ = fit_grid(of_steps, (2, 2), numbers, lines([0.0, 1.0, 2.0]), np.array([3.0, 4, 5]))
    assert grid.cells.tolist() == [[0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1]]
    assert grid.weights.tolist() == [3.25, 4.25, 5.25, 0.25]


def test_a_log_without_a_complete_step() -> None:
    x = np.array([[0.5, np.nan], [np.nan, 0.5], [1.5, np.nan]])
    axes = lines([0.0, 1.0, 2.0], [0.0, 1.0])
    _, membership, filled = fit_grid(codes(3), (), x, axes, np.ones(3))
    assert membership.matrix.sum(axis=0) == pytest.approx(np.ones(3))
    assert not np.isnan(filled).any()


@given(st.integers(0, 10**6))
@share_of_examples(0.2)
def test_the_circuit_finds_nodes_by_interpolation(seed: int) -> None:
    """The posterior of the interface nodes given a state is the multilinear interpolation.

    Ramps with a tail are lower by the share TAIL: weights differ by at most that for each number.
    """
    rng = np.random.default_rng(seed)
    windows = windows_of(rng, steps=40, numbers=2)
    x = np.stack([windows.columns[name].numbers() for name in ("x0", "x1")], axis=1)
    knots = [quantile_knots(x[:, j], x[:, j], np.ones(len(x)), 4) for j in range(2)]
    axes: dict[tuple[str, ...], Axis] = {(f"x{j}",): axis for j, axis in enumerate(lines(*knots))}
    model = estimate_on_grid(windows, LearnConfig(), axes, [])
    found_in_model = grid_of(model)
    assert found_in_model is not None
    read, categories = found_in_model
    assert categories == []
    assert [axis.points[:, 0] for axis in read.values()] == [pytest.approx(k) for k in knots]
    grid = Grid((), tuple(axes.values()), *all_cells(tuple(axes.values())))
    index = StateIndex.of(model)
    for state in x[:10]:
        found = posterior(index, {"x0": float(state[0]), "x1": float(state[1])}, grid.size)
        expected = grid.locate(codes(1), state[None]).matrix.toarray()[:, 0]
        assert found == pytest.approx(expected, abs=2 * TAIL)


def posterior(index: StateIndex, state: Mapping[str, Value], nodes: int) -> Array:
    belief = index.belief(state)
    found = np.zeros(nodes)
    found[belief.nodes] = belief.weights / belief.weights.sum()
    return found


def all_cells(axes: tuple[Axis, ...]) -> tuple[Ints, Array]:
    counts = [axis.intervals for axis in axes]
    cells = np.stack([part.ravel() for part in np.indices(counts)], axis=1)
    return cells, np.ones(len(cells))


@pytest.mark.parametrize("value", [-1.5, 9.0])
def test_numbers_beyond_the_log_are_at_the_last_knot(value: float) -> None:
    rng = np.random.default_rng(0)
    windows = windows_of(rng, steps=60, numbers=1)
    (line,) = lines([-1.0, 0.0, 8.0])
    model = estimate_on_grid(windows, LearnConfig(), {("x0",): line}, [])
    found = posterior(StateIndex.of(model), {"x0": value}, 3)
    assert found == pytest.approx([1, 0, 0] if value < 0 else [0, 0, 1])
