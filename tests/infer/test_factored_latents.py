"""Factored latents: every query answers as if they were multiplied out."""

import math
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import rspmn
from effort import seeds
from factored_models import multiplied_out, random_factored, random_factors
from rspmn.circuit import FactoredLatents, LatentFactors, NetworkBuilder
from rspmn.errors import CircuitError, ModelFileError
from rspmn.infer.bellman import future_values
from rspmn.infer.compiled import contraction
from rspmn.infer.compiled.contraction import Contraction
from rspmn.infer.compiled.expectation import expectation
from rspmn.infer.compiled.joined import Joined
from rspmn.infer.mpe import episode_mpe
from rspmn.model import Evidence


def test_two_coins_by_hand() -> None:
    """Of two coins, one fair and one that shows 1 with 3/4: (0, 0), (0, 1), (1, 1) are known.

    Their masses are 1/2 · 1/4, 1/2 · 3/4, 1/2 · 3/4: 7/8 in all, so weights are 1/7, 3/7, 3/7.
    """
    tables = (np.array([[0.5, 0.5]]), np.array([[0.25, 0.75]]))
    known = np.array([[0, 0], [0, 1], [1, 1]])
    factors = LatentFactors(3, known, np.arange(3), np.ones(3), tables)
    assert factors.weights([0, 0]) == pytest.approx([1 / 7, 3 / 7, 3 / 7], abs=1e-15)
    worth = np.array([7.0, 14.0, -7.0])  # 1 + 6 - 3
    found = Contraction(factors, np.array([[0, 0]]))
    assert found(worth) == pytest.approx([4.0], abs=1e-14)
    assert found.kept == pytest.approx([7 / 8], abs=1e-15)


@pytest.mark.parametrize("seed", seeds(12, 1000))
@pytest.mark.parametrize("way", [Contraction, Joined])
def test_expectations_are_enumeration(
    way: type[Contraction | Joined], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over random factors, contexts, orders and blocks: sums of products, one by one.

    An expectation is a sum of at most `cells` products of `components` + 1 numbers, so that both
    forms are within (cells + components) · 2⁻⁵² of the truth, relative to the largest value.
    """
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(contraction, "CHUNK", int(rng.choice([1, 10, 200_000])))
    states, components = int(rng.integers(2, 12)), int(rng.integers(1, 5))
    factors = random_factors(rng, states, components, more=int(rng.integers(0, 2)))
    rows = rng.integers(0, 3, (int(rng.integers(1, 20)), components))
    values = rng.normal(size=factors.interfaces) * 10
    found = way(factors, rows)
    expected = [factors.weights(row.tolist()) @ values for row in rows]
    bound = 8 * (len(factors.to) + components) * 2**-52 * np.abs(values).max()
    least = min(found.kept.min(), 1.0)
    assert found(values) == pytest.approx(expected, rel=0, abs=bound / least)
    assert found.work > 0
    matrix = found.matrix(np.ones(len(rows), dtype=bool)).toarray()
    assert matrix @ values == pytest.approx(expected, rel=0, abs=bound / least)
    twice = [np.stack([table, table]) for table in factors.tables]
    drawn = found.with_tables(twice)(np.stack([values, -values]))
    assert drawn == pytest.approx(np.stack([expected, np.negative(expected)]), abs=bound / least)


def test_the_way_that_takes_less_is_taken() -> None:
    """Eight coins: all 256 states from fair ones, one or two from nearly certain ones."""
    cells = np.stack(np.unravel_index(np.arange(256), (2,) * 8), axis=1)
    rows = np.random.default_rng(0).integers(0, 2, (200, 8))
    for fair, way in ((0.5, Contraction), (1.0, Joined)):
        tables = (np.array([[fair, 1 - fair], [1 - fair, fair]]),) * 8
        factors = LatentFactors(256, cells, np.arange(256), np.ones(256), tables)
        found = expectation(factors, rows)
        assert type(found) is way
        distinct = np.unique(rows, axis=0)
        assert (4 * len(distinct) * (256 if fair < 1 else 1) < Contraction(factors, rows).work) == (
            way is Joined
        )
        assert Joined(factors, rows).work == len(distinct) * (256 if fair < 1 else 1)


def test_what_does_not_fit_is_not_multiplied_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: a log of nine categories kept 10⁸ masses, as a contraction would have taken longer."""
    cells = np.stack(np.unravel_index(np.arange(256), (2,) * 8), axis=1)
    rows = np.random.default_rng(0).integers(0, 2, (200, 8))
    factors = LatentFactors(256, cells, np.arange(256), np.ones(256), (np.eye(2),) * 8)
    values = np.random.default_rng(1).normal(size=256)
    kept = expectation(factors, rows)
    monkeypatch.setattr("rspmn.infer.compiled.expectation.KEPT", 100)
    found = expectation(factors, rows)
    assert (type(kept), type(found)) == (Joined, Contraction)
    assert found(values) == pytest.approx(kept(values), abs=1e-12)


def test_a_contraction_holds_no_table_of_products_and_classes() -> None:
    """Fault: each stage kept the classes of its products: here 20,000 × 400 floats, 64 MB."""
    rng = np.random.default_rng(0)
    tables = tuple(rng.dirichlet(np.ones(400), 200) for _ in range(2))
    cells = np.column_stack([np.arange(400), rng.permutation(400)])
    factors = LatentFactors(400, cells, np.arange(400), np.ones(400), tables)
    rows = np.stack(np.divmod(rng.permutation(40_000)[:20_000], 200), axis=1)
    tracemalloc.start()
    try:
        found = Contraction(factors, rows)
        worth = found(rng.normal(size=400))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert np.isfinite(worth).all()
    assert peak < 20e6


@pytest.mark.parametrize("seed", seeds(4, 200))
def test_every_query_is_that_of_the_model_multiplied_out(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    model = random_factored(rng, int(rng.integers(3, 9)), int(rng.integers(1, 4)))
    plain = multiplied_out(model)
    assert not any(isinstance(node, FactoredLatents) for node in plain.template.nodes)
    assert len(model.template) > 0
    for horizon in (1, 2, 7):
        expected = plain.values(horizon)
        assert model.values(horizon) == pytest.approx(expected, rel=1e-12, abs=1e-12)
        by_node = [found.utility for found in future_values(model, horizon, 1.0).roots]
        assert by_node == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert model.values(discount=0.9) == pytest.approx(plain.values(discount=0.9), rel=1e-9)
    one, other = model.policy(5), plain.policy(5)
    for x in range(len(model.template.roots) - 1):
        assert [a.utility for a in one.action_values({"x": x}, 1)] == pytest.approx(
            [a.utility for a in other.action_values({"x": x}, 1)],
            rel=1e-12,
            abs=1e-12,
            nan_ok=True,
        )
        assert float(model.meu({"x": x}, 4)) == pytest.approx(float(plain.meu({"x": x}, 4)))
    episodes = model.sample(20, 4, rng=seed)
    assert model.log_likelihood(episodes) == pytest.approx(plain.log_likelihood(episodes))
    steps: list[Evidence] = [{"x": 0}, {}, {"a": "stay"}]
    assert episode_mpe(model, steps) == episode_mpe(plain, steps)
    model.save(tmp_path / "model.json")
    again = rspmn.load(tmp_path / "model.json")
    assert again == model
    assert rspmn.circuit.validity_violations(model.unfold(3)) == []


@pytest.mark.parametrize("seed", seeds(3, 100))
def test_states_without_known_decisions(seed: int) -> None:
    """Factors lead to a state in which no decision is known: it counts as it does otherwise."""
    model = random_factored(np.random.default_rng(seed), 5, 2, frontier=True)
    plain = multiplied_out(model)
    for horizon in (1, 2, 5):
        expected = plain.values(horizon)
        assert model.values(horizon) == pytest.approx(expected, rel=1e-12, nan_ok=True)
    one, other = model.policy(4), plain.policy(4)
    for x in range(5):
        pairs = zip(one.action_values({"x": x}), other.action_values({"x": x}), strict=True)
        for found, expected_one in pairs:
            assert found.utility == pytest.approx(expected_one.utility, nan_ok=True)
            assert found.supported == pytest.approx(expected_one.supported, nan_ok=True)


def test_drawn_successors_have_the_factors_weights() -> None:
    model = random_factored(np.random.default_rng(3), 4, 2)
    episodes = model.sample(4000, 2, rng=0)
    plain = multiplied_out(model).sample(4000, 2, rng=1)
    shares = []
    for drawn in (episodes, plain):
        seen = np.array([drawn.steps(k)[-1]["x"] for k in range(4000)], dtype=float)
        shares.append(np.array([(seen == x).mean() for x in range(4)]))
    # the difference of two shares of 4,000 has a deviation of at most .0112: four of them
    assert np.abs(shares[0] - shares[1]).max() < 4 * 0.0112


def test_what_no_node_can_be_is_refused() -> None:
    factors = random_factors(np.random.default_rng(0), 4, 2)
    with pytest.raises(CircuitError, match="a row of each of tables of"):
        FactoredLatents(factors, (0, 9))
    with pytest.raises(CircuitError, match="expected probabilities"):
        LatentFactors(
            2, np.zeros((2, 1), dtype=np.int64), np.arange(2), np.ones(2), (np.array([[math.nan]]),)
        )
    with pytest.raises(CircuitError, match="of interface nodes 0 to 0"):
        LatentFactors(
            1, np.zeros((2, 1), dtype=np.int64), np.arange(2), np.ones(2), (np.array([[1.0]]),)
        )
    with pytest.raises(CircuitError, match="expected classes 0 to 0, found 0 to 3"):
        LatentFactors(2, np.array([[0], [3]]), np.arange(2), np.ones(2), (np.array([[1.0]]),))
    b = NetworkBuilder()
    found = rspmn.circuit.soundness_violations(
        b.build(b.product([b.utility("u", 1.0), b.factored_latents(factors, [0, 0])]))
    )
    assert "FactoredLatents of 4 interface nodes, but the template has 1" in str(found[0])


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    random_factored(np.random.default_rng(1)).save(tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    assert '"factored latents"' in text
    for old, new, message in (
        ('"factors": 0', '"factors": 7', "there are no factors 7"),
        ('"rows": [', '"rows": [99, ', "a row of each of tables"),
        ('"share": [1.0', '"share": [-1.0', "expected shares above 0, at most 1"),
        ('"share": [1.0', '"share": [1.7e308', "expected shares above 0, at most 1"),
    ):
        (tmp_path / "bad.json").write_text(text.replace(old, new, 1))
        with pytest.raises(ModelFileError, match=message):
            rspmn.load(tmp_path / "bad.json")
