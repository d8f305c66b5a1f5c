"""Products multiplied out to a mass: the heaviest cells, and a bound of what lacks."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.sparse import csr_array

from effort import seeds
from factored_models import random_factors
from rspmn.circuit import LatentFactors
from rspmn.infer.compiled.cell_tree import BEAM, EXACT, CellTree, Limit
from rspmn.infer.compiled.joined import Joined
from rspmn.types import Array, Ints

#: Sums of at most 40 masses of at most 5 factors are rounded by less, relative to 1.
ROUNDING = 50 * 2**-52


@dataclass(frozen=True, eq=False)
class SparseTables:
    """Factors with sparse tables."""

    interfaces: int
    classes: Ints
    to: Ints
    share: Array
    tables: tuple[csr_array, ...]


def with_sparse_tables(factors: LatentFactors) -> SparseTables:
    tables = tuple(csr_array(table) for table in factors.tables)
    return SparseTables(factors.interfaces, factors.classes, factors.to, factors.share, tables)


def test_two_coins_by_hand() -> None:
    """Both show 0 with .9: masses .81, .09, .09, .01 of (0, 0), (0, 1), (1, 0), (1, 1).

    First (1) weighs .1, so nothing lighter than .05 / 2 / 2 is cut; then .0125 is what each of four
    may weigh that are cut: (1, 1), and .01 in all. Of two cells at most, .81 and one of .09 stay.
    """
    coin = np.array([[0.9, 0.1]])
    cells = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    tree = CellTree(LatentFactors(4, cells, np.arange(4), np.ones(4), (coin, coin)))
    found = tree.masses(np.array([[0, 0]]), Limit(0.05))
    assert found.on.toarray()[0] == pytest.approx([0.81, 0.09, 0.09, 0])
    assert found.cut == pytest.approx([0.01])
    found = tree.masses(np.array([[0, 0]]), Limit(most=2))
    assert sorted(found.on.toarray()[0]) == pytest.approx([0, 0, 0.09, 0.81])
    assert found.cut == pytest.approx([0.1])


@pytest.mark.parametrize("seed", seeds(30, 2000))
def test_what_lacks_is_within_the_bound(seed: int) -> None:
    """Over random factors, rows and limits: against all products, one by one."""
    rng = np.random.default_rng(seed)
    components = int(rng.integers(1, 6))
    factors = random_factors(rng, int(rng.integers(2, 12)), components)
    rows = rng.integers(0, 3, (int(rng.integers(1, 20)), components))
    exact = np.array([factors.masses(row.tolist()) for row in rows])
    cut = float(rng.choice([0.0, 1e-6, 1e-3, 0.1, 0.5]))
    for given in (factors, with_sparse_tables(factors)):
        found = CellTree(given).masses(rows, Limit(cut))
        lacks = (exact - found.on.toarray()).sum(axis=1)
        assert (found.cut <= 2 * cut * exact.sum(axis=1) + ROUNDING).all()
        assert (lacks >= -ROUNDING).all()
        assert (lacks <= found.cut + ROUNDING).all()


def test_a_product_with_next_to_no_mass_on_cells() -> None:
    """Of 20 coins that show 1 with .1 each, only two cells exist: 1e-20 and 9e-20 of the mass.

    What may be cut is a share of that, so that both are there.
    """
    cells = np.ones((2, 20), dtype=np.int64)
    cells[1, 0] = 0
    factors = LatentFactors(2, cells, np.arange(2), np.ones(2), (np.array([[0.9, 0.1]]),) * 20)
    rows = np.zeros((1, 20), dtype=np.int64)
    for limit in (EXACT, Limit(1e-6)):
        found = CellTree(factors).masses(rows, limit)
        assert found.on.toarray()[0] == pytest.approx([1e-20, 9e-20], rel=1e-12)
    assert Joined(factors, rows)(np.array([10.0, 0.0])) == pytest.approx([1.0])


@pytest.mark.parametrize("seed", seeds(30, 2000))
def test_the_heaviest_cells_are_kept(seed: int) -> None:
    """Of each product, if as many beginnings may go on as there are, else as many cells at most."""
    rng = np.random.default_rng(seed)
    components, states = int(rng.integers(1, 5)), int(rng.integers(2, 12))
    one = random_factors(rng, states, components)
    # each cell is an interface node, so that they are told apart
    cells = len(one.to)
    factors = LatentFactors(cells, one.classes, np.arange(cells), one.share, one.tables)
    rows = rng.integers(0, 3, (8, components))
    exact = np.array([factors.masses(row.tolist()) for row in rows])
    most = int(rng.integers(1, cells + 1))
    found = CellTree(factors).masses(rows, Limit(0.0, most))
    listed = found.on.toarray()
    assert ((listed > 0).sum(axis=1) <= most).all()
    lacks = (exact - listed).sum(axis=1)
    assert (lacks <= found.cut + ROUNDING).all()
    if most * BEAM >= cells:
        heaviest = -np.sort(-exact, axis=1)[:, :most]
        assert listed.sum(axis=1) == pytest.approx(heaviest.sum(axis=1), abs=ROUNDING)
        assert lacks == pytest.approx(found.cut, abs=ROUNDING)
