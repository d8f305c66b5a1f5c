"""Draws from products of factors have the weights of the product, however they are made."""

import numpy as np
import pytest

from effort import seeds
from factored_models import random_factors
from rspmn.circuit import LatentFactors
from rspmn.infer.compiled import product_samples
from rspmn.infer.compiled.product_samples import ProductSampler
from rspmn.types import Array

DRAWS = 4000


def shares(factors: LatentFactors, rows: list[list[int]], seed: int) -> Array:
    """Return how often each interface node is drawn from each product."""
    products = np.tile(np.arange(len(rows)), DRAWS)
    drawn = ProductSampler(factors, np.array(rows)).draw(products, np.random.default_rng(seed))
    assert drawn.min() >= 0
    counts = np.zeros((len(rows), factors.interfaces))
    np.add.at(counts, (products, drawn), 1)
    return counts / DRAWS


def assert_near(found: Array, expected: Array) -> None:
    """Five deviations of a share, and a bit where it is 0: 1 in 2 million if all is right."""
    assert (np.abs(found - expected) <= 5 * np.sqrt(expected * (1 - expected) / DRAWS)).all()


@pytest.mark.parametrize("rounds", [0, 1, 64])
@pytest.mark.parametrize("seed", seeds(6, 200))
def test_shares_are_weights(seed: int, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product_samples, "MOST_ROUNDS", rounds)
    rng = np.random.default_rng(seed)
    components = int(rng.integers(1, 5))
    factors = random_factors(rng, int(rng.integers(2, 9)), components, more=1)
    rows = rng.integers(0, 3, (3, components)).tolist()
    expected = np.array([factors.weights(row) for row in rows])
    assert_near(shares(factors, rows, seed), expected)


def test_cells_of_several_nodes_and_rows_that_lack_mass() -> None:
    """A cell that two nodes share 1 : 3, one that a node has half of, and rows that sum to .9.

    Masses: .6 · .25 and .6 · .75 of the first cell, .3 · .5 of the second; .75 in all.
    """
    table = np.array([[0.6, 0.3]])
    cells, share = np.array([[0], [0], [1]]), np.array([0.25, 0.75, 0.5])
    factors = LatentFactors(3, cells, np.arange(3), share, (table,))
    assert factors.weights([0]) == pytest.approx([0.2, 0.6, 0.2])
    assert_near(shares(factors, [[0]], 1), np.array([[0.2, 0.6, 0.2]]))


def test_a_cell_that_is_hardly_ever_drawn() -> None:
    """Of 20 coins that show 0 with .99, only the cell of twenty 1 exists: 1e-40 of the mass."""
    cell, table = np.ones((1, 20), dtype=np.int64), np.array([[0.99, 0.01]])
    factors = LatentFactors(1, cell, np.zeros(1, dtype=np.int64), np.ones(1), (table,) * 20)
    assert shares(factors, [[0] * 20], 2).tolist() == [[1.0]]
