"""Latent trees: passes over arrays against the circuit and against enumeration."""

import numpy as np
import pytest

from rspmn.circuit import NetworkBuilder
from rspmn.infer import log_likelihoods
from rspmn.learn.density.latent_tree import LatentTree, first_tree, spanning_tree
from rspmn.learn.density.learn_density import add_tree, fit_tree
from rspmn.learn.density.symbols import Symbols, split
from rspmn.learn.structure.leaves import SmoothedLeaves
from rspmn.learn.structure.rows import Rows, read_columns
from rspmn.types import Array, Ints

NAMES = ("a", "b", "c", "d")


def table(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return four columns, each a noisy copy of one before; every tenth c is missing."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, rows)
    b = np.where(rng.random(rows) < 0.8, a, rng.integers(0, 3, rows))
    c = np.where(rng.random(rows) < 0.8, b > 0, rng.random(rows) < 0.5).astype(object)
    c[::10] = None
    d = a + rng.normal(size=rows) * 0.3
    return dict(zip(NAMES, (a, b, c, d), strict=True))


def start(rows: Rows, states: int = 4) -> tuple[LatentTree, Symbols]:
    symbols = Symbols.of(rows, NAMES)
    strength = np.array([[0, 9, 1, 8], [9, 0, 5, 1], [1, 5, 0, 1], [8, 1, 1, 0]], dtype=float)
    return first_tree(symbols, strength, states, False, np.random.default_rng(0)), symbols


def by_enumeration(tree: LatentTree, codes: Ints) -> tuple[float, Array]:
    """Return the likelihood of one row of symbols, and the expected counts on all edges."""
    states, size = len(tree.start), len(tree.order)
    total, edges = 0.0, np.zeros_like(tree.edges, dtype=np.float64)
    for joint in np.ndindex(*[states] * size):
        p = float(tree.start[joint[tree.order[0]]])
        for i in range(size):
            p *= float(tree.emissions[joint[i], codes[i]])
            if tree.parent[i] >= 0:
                p *= float(tree.edges[i, joint[tree.parent[i]], joint[i]])
        total += p
        for i in range(size):
            if tree.parent[i] >= 0:
                edges[i, joint[tree.parent[i]], joint[i]] += p
    return total, edges / total


def test_passes_against_enumeration() -> None:
    tree, symbols = start(read_columns(table(60), None, 4), states=3)
    few = symbols.take(np.arange(5))
    found = [by_enumeration(tree, few.all[:, k]) for k in range(5)]
    assert tree.log_likelihoods(few) == pytest.approx([np.log(p) for p, _ in found], abs=1e-5)
    counts = tree.expected_counts(few)
    expected = sum(w * edges for w, (_, edges) in zip(few.weights, found, strict=True))
    assert counts.edges == pytest.approx(expected, abs=1e-5)
    assert counts.start.sum() == pytest.approx(few.weights.sum(), rel=1e-5)
    assert counts.symbols.sum() == pytest.approx(few.weights @ (few.codes >= 0).sum(axis=0))


@pytest.mark.parametrize("seed", range(5))
def test_trees_that_vary_keep_what_is_clear(seed: int) -> None:
    """Each variable depends on the next 100 times as much as on others.

    The logarithms of strengths have a standard deviation of NOISE / √2 = .21: log 100 is 22 of it.
    Of alternatives that are as strong as each other, either may be taken.
    """
    size = 20
    symbols = Symbols.of(read_columns({f"v{i}": [0, 1] for i in range(size)}, None, 4),
                         [f"v{i}" for i in range(size)])  # fmt: skip
    strength = np.ones((size, size)) + 99.0 * (np.eye(size, k=1) + np.eye(size, k=-1))
    tree = first_tree(symbols, strength, 2, True, np.random.default_rng(seed))
    assert {abs(i - p) for i, p in enumerate(tree.parent.tolist()) if p >= 0} == {1}
    found = {
        tuple(first_tree(symbols, np.ones((size, size)), 2, True, rng).parent.tolist())
        for rng in map(np.random.default_rng, range(3))
    }
    assert len(found) == 3


def test_the_circuit_is_the_tree() -> None:
    data = table(300)
    del data["d"]
    names = NAMES[:3]
    rows = read_columns(data, None, 10)
    symbols = Symbols.of(rows, names)
    strength = np.array([[0, 9, 1], [9, 0, 5], [1, 5, 0]], dtype=float)
    rng = np.random.default_rng(0)
    tree = first_tree(symbols, strength, 4, False, rng)
    tree, run = fit_tree(tree, symbols, symbols, (0.5,), rng)
    builder = NetworkBuilder()
    leaves = [SmoothedLeaves(rows, name, {}) for name in names]
    root = add_tree(builder, tree, run.counts, leaves, symbols.starts, run.pseudo_rows)
    network = builder.build(root)
    one_each = {name: rows.column(name).decode() for name in names}
    # a thousandth of a nat is left to values that were never seen
    assert log_likelihoods(network, one_each) == pytest.approx(
        tree.log_likelihoods(symbols), abs=2e-3
    )


def test_em_raises_the_likelihood() -> None:
    tree, symbols = start(read_columns(table(2000), None, 8))
    rows, held_out = split(symbols, 0.1, np.random.default_rng(1))
    assert rows.weights.sum() + held_out.weights.sum() == symbols.weights.sum()
    before = tree.mean_log_likelihood(held_out)
    fitted, run = fit_tree(tree, rows, held_out, (0.1, 1.0), np.random.default_rng(2))
    assert fitted.mean_log_likelihood(held_out) == run.held_out > before + 0.1
    assert run.pseudo_rows in (0.1, 1.0)


def test_equal_rows_are_divided_too() -> None:
    symbols = Symbols.of(read_columns({"x": [0] * 500 + [1] * 500}, None, 4), ["x"])
    rows, held_out = split(symbols, 0.2, np.random.default_rng(0))
    assert len(rows) == len(held_out) == 2
    assert held_out.weights == pytest.approx([100, 100], abs=45)  # 5 standard deviations


def test_the_strongest_tree() -> None:
    rng = np.random.default_rng(0)
    strength = rng.random((6, 6))
    strength = strength + strength.T
    order, parent = spanning_tree(strength)
    assert sorted(order.tolist()) == list(range(6))
    place = {variable: k for k, variable in enumerate(order.tolist())}
    assert all(place[p] < place[i] for i, p in enumerate(parent.tolist()) if p >= 0)
    found = sum(strength[i, p] for i, p in enumerate(parent.tolist()) if p >= 0)
    best = max(
        sum(strength[i + 1, p] for i, p in enumerate(parents))
        for parents in np.ndindex(*[6] * 5)
        if _is_tree(parents)
    )
    assert found == pytest.approx(best)


def _is_tree(parents: tuple[int, ...]) -> bool:
    """Return whether all of 1, 2, ... lead up to 0."""
    for i in range(len(parents)):
        at, steps = i + 1, 0
        while at and steps <= len(parents):
            at, steps = parents[at - 1], steps + 1
        if at:
            return False
    return True
