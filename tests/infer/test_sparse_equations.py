"""Equations of chains: the same solutions as by a complete factorisation, without its fill."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg
from scipy.sparse import csr_array, csr_matrix, identity

from rspmn.infer.compiled import sparse_equations
from rspmn.infer.compiled.bellman import Chain
from rspmn.infer.compiled.infinite_horizon import settle
from rspmn.infer.compiled.sparse_equations import FEW, solved
from rspmn.types import Array, Ints

NODES = 2 * FEW


def chain_of(successors: Ints, rewards: Array) -> Chain:
    """Return the chain in which each node is followed by some others, equally often."""
    size, many = successors.shape
    place = np.repeat(np.arange(size), many), successors.ravel()
    shares = np.full(successors.size, 1 / many)
    return Chain(rewards, csr_array((shares, place), shape=(size, size)))


def random_chain(rng: np.random.Generator) -> Chain:
    """Return a chain in which each node is followed by three others."""
    return chain_of(rng.integers(0, NODES, (NODES, 3)), rng.normal(size=NODES))


@pytest.mark.parametrize("discount", [0.9, 0.9999])
def test_no_complete_factorisation_of_a_random_chain(
    discount: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = random_chain(np.random.default_rng(0))
    system = (identity(NODES, format="csc") - discount * chain.follows).tocsc()
    expected = scipy.sparse.linalg.spsolve(system, chain.rewards)

    def refuse(*_: Any) -> None:
        raise AssertionError("a complete factorisation")

    monkeypatch.setattr(scipy.sparse.linalg, "splu", refuse)
    found = solved(system, chain.rewards)
    assert found == pytest.approx(expected, rel=0, abs=1e-11 * np.abs(expected).max())


def test_equations_that_iterations_do_not_solve_are_factorised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chain = random_chain(np.random.default_rng(1))
    system = identity(NODES, format="csc") - 0.9 * chain.follows
    monkeypatch.setattr(sparse_equations, "NEAR", -1.0)  # nothing is near enough
    found = solved(system, chain.rewards)
    assert (found == scipy.sparse.linalg.splu(system.tocsc()).solve(chain.rewards)).all()


@pytest.mark.parametrize("size", [3, NODES])
def test_equations_stay_as_they_are(size: int) -> None:
    """Fault: a matrix was sorted through its transpose: its numbers, not their places."""
    around = np.arange(size)
    places = np.stack([(around + 1) % size, around], axis=1).ravel()  # not in order
    numbers = np.tile([-0.5, 1.0], size)
    system = csr_matrix((numbers, places, 2 * np.arange(size + 1)), shape=(size, size))
    system.indices = system.indices.astype(np.int64)  # of its transpose they have 32 bits
    system.indptr = system.indptr.astype(np.int64)
    before = system.copy()
    assert solved(system.T, np.ones(size)) == pytest.approx(np.full(size, 2.0))
    assert abs(before - system).max() == 0


def test_singular_equations_are_refused() -> None:
    for size in (2, NODES):
        with pytest.raises(np.linalg.LinAlgError, match=f"{size} equations"):
            solved(csr_array((np.ones(size - 1), (np.arange(size - 1),) * 2), (size, size)),
                   np.ones(size))  # fmt: skip


def test_a_large_part_that_is_never_left_settles_without_a_table_of_pairs() -> None:
    rng = np.random.default_rng(0)
    around = np.arange(NODES)
    steps = np.stack([around, around + 1, around - 1], axis=1) % NODES  # a walk on a circle
    rewards = rng.normal(size=NODES)
    chain = chain_of(steps, rewards - rewards.mean())  # its stationary distribution is uniform
    values = rng.normal(size=NODES)
    tracemalloc.start()
    try:
        settled, _, reason = settle(chain, values)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert settled is not None, reason
    assert peak < 8 * NODES**2
    assert settled.mean() == pytest.approx(values.mean(), abs=1e-6)
    off = chain.rewards + chain.follows @ settled - settled
    assert np.abs(off).max() <= 1e-11 * np.abs(settled).max()
