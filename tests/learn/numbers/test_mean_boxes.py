"""Regression trees find the borders of boxes, and nothing in noise."""

import numpy as np
import pytest

from rspmn.learn.numbers.mean_boxes import LEAST, SHRINKAGE, fit_tree


def test_a_step_is_found_by_hand() -> None:
    """Forty steps at 0 and forty at 1: each box's mean is (40 · y + 5 · 0.5) / (40 + 5)."""
    x = np.repeat([[0.0], [1.0]], 40, axis=0)
    tree = fit_tree(x, x[:, 0], np.ones(80))
    low = 0.5 * SHRINKAGE / (40 + SHRINKAGE)
    assert tree(np.array([[0.2], [0.8]])) == pytest.approx([low, 1 - low])
    assert len(tree.mean) == 3


def test_the_border_of_an_end_is_found_in_the_right_variable() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (4000, 3))
    tree = fit_tree(x, (x[:, 1] > 0.6).astype(float), np.ones(4000))
    assert set(tree.feature[tree.feature >= 0]) == {1}
    asked = np.array([[0.0, 0.55, 0.0], [0.0, 0.65, 0.0]])
    assert tree(asked) == pytest.approx([0, 1], abs=0.05)


def test_noise_is_one_box() -> None:
    rng = np.random.default_rng(1)
    tree = fit_tree(rng.normal(size=(2000, 10)), rng.normal(size=2000), np.ones(2000))
    assert len(tree.mean) == 1


def test_weights_count_rows() -> None:
    """A row of weight 3 is three rows."""
    rng = np.random.default_rng(2)
    x, weights = rng.normal(size=(300, 2)), rng.integers(1, 4, 300)
    y = x[:, 0] > 0.3
    once = fit_tree(x, y.astype(float), weights.astype(float))
    again = fit_tree(np.repeat(x, weights, axis=0), np.repeat(y, weights).astype(float),
                     np.ones(weights.sum()))  # fmt: skip
    inside = np.abs(x[:, 0] - 0.3) > 0.2  # borders are quantiles, which differ a little
    assert once(x[inside]) == pytest.approx(again(x[inside]), abs=0.05)


def test_boxes_hold_enough_rows() -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(500, 1))
    tree = fit_tree(x, np.round(x[:, 0], 1), np.ones(500))
    assert np.bincount(tree.boxes(x)).max() >= LEAST
    held = np.unique(tree.boxes(x), return_counts=True)[1]
    assert held.min() >= LEAST
