"""Leaves side by side: one value under one leaf each, as by the table of all under all."""

import numpy as np

from rspmn.circuit import (
    Categorical,
    IntegerHistogram,
    Leaf,
    NetworkBuilder,
    PiecewiseLinear,
)
from rspmn.infer.compiled.leaf_cells import Pieces
from rspmn.infer.compiled.leaf_tables import leaf_tables
from rspmn.values import END, Value


def test_one_each_as_all_under_all() -> None:
    builder = NetworkBuilder()
    leaves = [
        builder.add(Leaf("x", distribution))
        for distribution in (
            Categorical((1, 2), (0.25, 0.75)),
            IntegerHistogram((0, 2, 5), (0.5, 0.5)),
            PiecewiseLinear((0.0, 4.0), (0.0, 0.5)),
        )
    ]
    table = leaf_tables(builder.build(*leaves))["x"]
    values: list[Value] = [1, 2, 3, 9, "word"]
    rng = np.random.default_rng(0)
    leaf, codes = rng.integers(3, size=200), rng.integers(-1, len(values), size=200)
    found = table.log_probs_of(leaf, values, codes)
    known = codes >= 0
    assert np.array_equal(found[known], table.log_probs(values)[leaf[known], codes[known]])
    assert (found[~known] == 0).all()  # of what is not known, every leaf is certain
    assert np.isneginf(found[known]).any()
    assert np.isfinite(found[known]).any()


def test_values_that_are_not_listed_as_by_each_leaf() -> None:
    builder = NetworkBuilder()
    distributions = (
        Categorical((1, 2), (0.25, 0.5), 0.25),
        Categorical((2, 3), (0.5, 0.5)),
        Categorical.certain(END),
    )
    leaves = [builder.leaf("x", each) for each in distributions]
    values: list[Value] = [1, 3, 9, "word", END]
    found = leaf_tables(builder.build(*leaves))["x"].log_probs(values)
    assert found.tolist() == [[each.log_prob(v) for v in values] for each in distributions]


def test_leaves_that_are_possible_everywhere_between_their_ends() -> None:
    """A density of 0 at an inner knot is impossible there; at an end it is not between them."""
    heights = [
        (1.0, 1.0, 1.0, 1.0),
        (0.0, 1.0, 1.0, 0.0),
        (1.0, 0.0, 1.0, 1.0),
        (1.0, 1.0, 0.0, 1.0),
    ]
    leaves = [PiecewiseLinear.scaled((0.0, 1.0, 2.0, 3.0), each) for each in heights]
    pieces = Pieces([*leaves, PiecewiseLinear((0.0, 4.0), (0.0, 0.5)), Categorical.certain(1)])
    assert pieces.is_solid.tolist() == [True, True, False, False, True, False]
