"""Smoothed leaves: pseudo-rows of the whole table, and probability beyond what was seen."""

import math

import numpy as np
import pytest
from scipy.integrate import trapezoid

from rspmn.circuit import NetworkBuilder
from rspmn.infer import log_likelihood, log_likelihoods
from rspmn.learn.structure.leaves import SmoothedLeaves
from rspmn.learn.structure.rows import read_columns


def test_a_category_leaf_is_shrunk_towards_the_table() -> None:
    rows = read_columns({"x": ["a"] * 6 + ["b"] * 3 + ["c"]}, None, 10)
    leaves = SmoothedLeaves(rows, "x", {})
    builder = NetworkBuilder()
    network = builder.build(leaves.add(builder, np.array([8.0, 0.0, 0.0]), 2.0))
    # c was seen once: (1 + 1/10)/10 is for what was never seen; of the rest a has (8 + 2·.6)/10
    other = 1.1 / 10
    assert math.exp(log_likelihood(network, {"x": "zzz"})) == pytest.approx(other)
    assert math.exp(log_likelihood(network, {"x": "a"})) == pytest.approx(0.92 * (1 - other))
    assert math.exp(log_likelihood(network, {"x": "c"})) == pytest.approx(0.02 * (1 - other))
    assert log_likelihood(network, {}) == pytest.approx(0)


@pytest.mark.parametrize("numbers", [np.linspace(-1, 3, 50), np.arange(0, 300, 3)])
def test_numbers_beyond_all_that_were_seen(numbers: np.ndarray) -> None:
    leaves = SmoothedLeaves(read_columns({"x": numbers}, None, 10), "x", {})
    builder = NetworkBuilder()
    network = builder.build(leaves.add_whole(builder))
    beyond = np.array([-1000, -50, 500, 10**9])
    logs = log_likelihoods(network, {"x": beyond})
    assert np.isfinite(logs).all()
    assert (logs < log_likelihood(network, {"x": numbers[5].item()}) - 2).all()
    if numbers.dtype.kind == "i":
        inside = log_likelihoods(network, {"x": np.arange(-3000, 3300)})
        assert np.exp(inside).sum() == pytest.approx(
            1, abs=3e-4
        )  # 2/102 beyond, 1/100 of that far away


def test_a_leaf_of_some_bins_of_numbers() -> None:
    """Of ten bins, the rows of two: their mass is there, but for a pseudo-row and the tail."""
    numbers = np.linspace(0, 10, 401)
    leaves = SmoothedLeaves(read_columns({"x": numbers}, None, 10), "x", {})
    builder = NetworkBuilder()
    counts = np.array([0.0, 0, 20, 40, 0, 0, 0, 0, 0, 0])
    network = builder.build(leaves.add(builder, counts, 0.1))
    points = np.linspace(-60, 70, 26_001)
    density = np.exp(log_likelihoods(network, {"x": points}))
    assert trapezoid(density, points) == pytest.approx(1, abs=1e-3)
    here = (points > 2) & (points < 4)
    assert trapezoid(density[here], points[here]) == pytest.approx(60.2 / 61, abs=0.01)
    assert np.interp([2.5, 3.5], points, density) == pytest.approx([1 / 3, 2 / 3], abs=0.07)


def test_a_variable_that_is_always_missing() -> None:
    rows = read_columns({"x": [None, None], "y": [1, 2]}, None, 10)
    builder = NetworkBuilder()
    network = builder.build(SmoothedLeaves(rows, "x", {}).add_whole(builder))
    assert log_likelihood(network, {}) == 0
