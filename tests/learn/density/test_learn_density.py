"""The default of `learn_spn`: smoothed densities of mixed tables."""

import math

import numpy as np
import pytest
from scipy import stats

from rspmn.circuit import Leaf, Product, Sum, validity_violations
from rspmn.errors import DataError
from rspmn.infer import log_likelihood, log_likelihoods
from rspmn.learn import LatentTrees, learn_spn
from rspmn.learn.config import Progress
from rspmn.learn.density.learn_density import dependent_groups
from rspmn.learn.structure.independence import components, pair_statistics
from rspmn.learn.structure.rows import read_columns

Table = dict[str, np.ndarray]


def mixed_table(rows: int, seed: int) -> Table:
    """Return columns of all kinds that depend on one hidden cluster; some values are missing."""
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, 3, rows)
    word = np.array(["red", "green", "blue", "black"], object)
    found: Table = {
        "flag": rng.random(rows) < np.array([0.1, 0.5, 0.9])[cluster],
        "word": word[(cluster + (rng.random(rows) < 0.3)) % 4],
        "count": rng.poisson(np.array([3, 200, 400])[cluster]),
        "size": rng.normal(size=rows) + 4.0 * cluster,
        "grade": rng.integers(0, 3, rows) + cluster,
    }
    found["word"][rng.random(rows) < 0.1] = None
    return found


def test_independent_columns_make_one_product_of_leaves() -> None:
    rng = np.random.default_rng(0)
    table = {f"x{k}": rng.integers(0, 3, 2000) for k in range(6)}
    network, info = learn_spn(table)
    assert isinstance(network.nodes[network.root], Product)
    assert (len(network), info.sums) == (7, 0)


def test_variables_that_depend_a_little_on_many_are_one_group() -> None:
    """Two hidden bits, and 20 noisy copies of each: few pairs are significant, together all are."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, (300, 2, 1))
    bits = (rng.random((300, 2, 20)) < 0.35 + 0.3 * hidden).reshape(300, 40)
    rows = read_columns(bits, None, 10)
    names = list(rows.table.columns)
    found = pair_statistics(rows, names, names, np.zeros(len(rows), dtype=np.int64))
    single = components(names, (found.p_values() < 0.01 / 40) & ~np.eye(40, dtype=bool))
    groups = dependent_groups(found, 0.01)
    assert len(single) > 20
    assert max(map(len, groups)) >= 20


def test_the_joint_distribution_is_that_of_the_data() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 3, 6000)
    y = np.where(rng.random(6000) < 0.7, (x + 1) % 3, rng.integers(0, 3, 6000))
    network, _ = learn_spn({"x": x, "y": y})
    assert validity_violations(network) == []
    for i in range(3):
        for j in range(3):
            share = float(np.mean((x == i) & (y == j)))
            found = math.exp(log_likelihood(network, {"x": i, "y": j}))
            assert found == pytest.approx(share, abs=0.015)  # 5 standard errors of .9 of the rows


@pytest.mark.parametrize("trees", [1, 2])
def test_sums_are_counted(trees: int) -> None:
    """A tree of three columns: one sum of its root, and for each state one of each other column.

    And one of several trees.
    """
    hidden, rng = np.repeat([0, 1], 300), np.random.default_rng(3)
    columns = {f"x{k}": np.where(rng.random(600) < 0.9, hidden, 1 - hidden) for k in range(3)}
    network, info = learn_spn(columns, config=LatentTrees(trees=trees, states=4))
    several = [n for n in network.nodes if isinstance(n, Sum) and len(n.children) > 1]
    assert info.sums == len(several) == trees * (1 + 4 * 2) + (trees > 1)


def test_no_row_is_impossible() -> None:
    """Categories, numbers and integers that were never seen, far away or missing."""
    network, _ = learn_spn(mixed_table(600, 0))
    odd = {
        "flag": [True, False, None, True],
        "word": ["violet", "red", None, "a"],
        "count": [100_000, -5, None, 10**15],
        "size": [1e12, -60.0, None, 3.0],
        "grade": [99, 2, None, -1],
    }
    found = log_likelihoods(network, odd)
    assert np.isfinite(found).all()
    assert found[2] == pytest.approx(0, abs=1e-9)  # nothing is known
    usual = log_likelihoods(network, mixed_table(300, 1))
    assert np.isfinite(usual).all()
    assert found[0] < usual.min() < found[2]


def test_held_out_rows_are_nearly_as_likely_as_they_are() -> None:
    """Three clusters: a flag and two numbers, independent in each."""
    rng = np.random.default_rng(2)
    cluster, noise = rng.integers(0, 3, 5000), rng.normal(size=(2, 5000))
    chance = np.array([0.1, 0.5, 0.9])
    table = {
        "x": noise[0] + 3 * cluster,
        "y": noise[1] - 3 * cluster,
        "flag": rng.random(5000) < chance[cluster],
    }
    parts = []
    for k in range(3):
        here = np.where(table["flag"], chance[k], 1 - chance[k]) / 3
        parts.append(here * stats.norm.pdf(table["x"] - 3 * k) * stats.norm.pdf(table["y"] + 3 * k))
    true = np.log(sum(parts))
    network, _ = learn_spn({name: column[:4000] for name, column in table.items()})
    found = log_likelihoods(network, {name: column[4000:] for name, column in table.items()})
    assert found.mean() > true[4000:].mean() - 0.1  # were all independent, 1.1 nats would be lost


def test_continuous_columns() -> None:
    """Two clouds: the model must beat one normal distribution of both columns."""
    rng = np.random.default_rng(2)
    cloud = rng.integers(0, 2, 4000)
    points = rng.normal(size=(4000, 2)) * 0.3 + np.where(cloud[:, None] == 1, [0, 4], [5, -3])
    train, test = points[:3000], points[3000:]
    network, _ = learn_spn({"x": train[:, 0], "y": train[:, 1]})
    found = log_likelihoods(network, {"x": test[:, 0], "y": test[:, 1]})
    normal = stats.multivariate_normal(train.mean(axis=0), np.cov(train.T)).logpdf(test)
    assert found.mean() > normal.mean() + 0.5


def test_a_density_sums_to_one() -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(0, 2, 400)
    n = np.where(rng.random(400) < 0.8, x, 1 - x) * 2 + rng.integers(0, 2, 400)
    network, _ = learn_spn({"x": x, "n": n})
    cells = {"x": np.repeat([0, 1, 7], 5), "n": np.tile([0, 1, 2, 3, 9], 3)}  # 7, 9: all others
    assert np.exp(log_likelihoods(network, cells)).sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("rows", [1, 2, 5, 12])
def test_few_rows(rows: int) -> None:
    values = np.arange(rows) % 2
    network, _ = learn_spn({"x": values, "y": values.astype(float), "z": [None] * rows})
    assert np.isfinite(log_likelihoods(network, {"x": [0, 1, 2], "y": [0.0, 1.0, 0.5]})).all()


def test_the_same_seed_gives_the_same_network() -> None:
    table = mixed_table(300, 5)
    assert learn_spn(table, rng=3)[0] == learn_spn(table, rng=3)[0]


def test_settings() -> None:
    table = mixed_table(300, 6)
    reported: list[Progress] = []
    network, info = learn_spn(
        table, ["size", "count"], LatentTrees(trees=3, max_seconds=0), 0, reported.append
    )
    assert {node.variable for node in network.nodes if isinstance(node, Leaf)} == {"size", "count"}
    assert info.stopped_by == "seconds"
    assert reported[-1].rows_done == pytest.approx(info.rows)
    for wrong in ({"trees": 0}, {"states": 0}, {"held_out": 1.0}, {"pseudo_rows": ()}):
        with pytest.raises(DataError, match=f"LatentTrees: {next(iter(wrong))}: expected"):
            LatentTrees(**wrong)
