"""LearnSPN: joint distributions of mixed kinds. The default is tested in tests/learn/density."""

import math

import numpy as np
import pytest
from scipy import stats

from rspmn.circuit import Product, validity_violations
from rspmn.infer import log_likelihood
from rspmn.learn import LearnConfig, learn_spn


def test_independent_columns_make_one_product() -> None:
    rng = np.random.default_rng(0)
    table = {f"x{k}": rng.integers(0, 3, 2000) for k in range(6)}
    network, info = learn_spn(table, config=LearnConfig())
    assert isinstance(network.nodes[network.root], Product)
    assert (len(network), info.sums) == (7, 0)


def test_the_joint_distribution_is_that_of_the_data() -> None:
    """x and y by a table of their own, z apart: exact where it was split."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 3, 6000)
    y = np.where(rng.random(6000) < 0.7, (x + 1) % 3, rng.integers(0, 3, 6000))
    z = rng.choice(["a", "b"], 6000)
    network, _ = learn_spn({"x": x, "y": y, "z": z}, config=LearnConfig())
    assert validity_violations(network) == []
    for i in range(3):
        for j in range(3):
            share = float(np.mean((x == i) & (y == j)))
            found = math.exp(log_likelihood(network, {"x": i, "y": j}))
            assert found == pytest.approx(share, abs=1e-9)
    total = sum(
        math.exp(log_likelihood(network, {"x": i, "y": j, "z": k}))
        for i in range(3) for j in range(3) for k in "ab"
    )  # fmt: skip
    assert total == pytest.approx(1)


@pytest.mark.parametrize("config", [LearnConfig(), LearnConfig.paper()])
def test_continuous_columns(config: LearnConfig) -> None:
    """Two clouds: the model must beat one normal distribution of both columns."""
    rng = np.random.default_rng(2)
    cloud = rng.integers(0, 2, 4000)
    points = rng.normal(size=(4000, 2)) * 0.3 + np.where(cloud[:, None] == 1, [0, 4], [5, -3])
    train, test = points[:3000], points[3000:]
    network, _ = learn_spn({"x": train[:, 0], "y": train[:, 1]}, config=config)
    found = [log_likelihood(network, {"x": x, "y": y}) for x, y in test]
    inside = [p for p in found if p > -math.inf]
    assert len(inside) > 0.98 * len(found)  # a density ends where the data did
    normal = stats.multivariate_normal(train.mean(axis=0), np.cov(train.T)).logpdf(test)
    assert np.mean(inside) > normal.mean() + 0.5


def test_integers_of_many_values() -> None:
    rng = np.random.default_rng(3)
    n = rng.poisson(1000, 5000)
    network, _ = learn_spn({"n": n}, config=LearnConfig())
    values = range(n.min(), n.max() + 1)
    masses = [math.exp(log_likelihood(network, {"n": int(v)})) for v in values]
    assert sum(masses) == pytest.approx(1)
    assert sum(v * p for v, p in zip(values, masses, strict=True)) == pytest.approx(
        n.mean(), rel=0.002
    )
