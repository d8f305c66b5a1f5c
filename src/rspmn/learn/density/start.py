"""Where EM starts: clusters of rows, in each of which all variables are independent.

EM over a latent tree finds a local optimum. From random parameters it is poor and far away. From a
mixture of products, where all hidden variables are in one state together, the cluster, it is good
and near.
"""

import numpy as np

from rspmn.learn.density.latent_tree import LatentTree, spanning_tree
from rspmn.learn.density.symbols import Symbols
from rspmn.types import Array

#: Clusters are made of at most so many rows, and indicators.
MOST_ROWS, MOST_CELLS = 5000, 20_000_000
#: Passes of EM over these rows.
PASSES = 20
#: Rows of the whole table that each cluster is smoothed by.
PSEUDO_ROWS = 2.0
#: The probability with which a hidden variable starts in another state than its parent.
LOOSE = 0.3
#: The standard deviation of the noise in the logarithm of strengths, which makes trees differ.
NOISE = 0.3


def first_tree(
    rows: Symbols, strength: Array, states: int, vary: bool, rng: np.random.Generator
) -> LatentTree:
    """Return a latent tree that EM can start from.

    `strength` [variables, variables] says how much each depends on each other. With `vary`, the
    tree is that of strengths with noise, so that several trees differ.
    """
    if vary:
        noise = np.exp(NOISE * rng.normal(size=strength.shape))
        strength = strength * np.sqrt(noise * noise.T)
    order, parent = spanning_tree(strength)
    shares, emissions = _clusters(rows, states, rng)
    states = len(shares)
    elsewhere = rng.dirichlet(np.full(states, 0.5), size=(len(order), states))
    edges = (1 - LOOSE) * np.eye(states) + LOOSE * elsewhere
    return LatentTree(
        order, parent, shares.astype(np.float32), edges.astype(np.float32),
        np.hstack([emissions, np.ones((states, 1))]).astype(np.float32),
    )  # fmt: skip


def _clusters(rows: Symbols, states: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the shares of clusters and the probability of each symbol in each."""
    total = rows.weights.sum()
    most = min(MOST_ROWS, max(states, MOST_CELLS // rows.size), max(states, round(total)))
    drawn = rng.choice(len(rows), most, p=rows.weights / total)
    sample = rows.take(drawn)
    seen = np.hstack([sample.indicators(i) for i in range(len(rows.codes))])  # [n, symbols]
    variables = np.repeat(np.arange(len(rows.codes)), np.diff(rows.starts))

    def probabilities(counts: Array) -> Array:
        counts = counts + PSEUDO_ROWS * rows.shares + 1e-6
        totals = np.add.reduceat(counts, rows.starts[:-1], axis=1)
        return np.asarray(counts / totals[:, variables])

    weights = np.full(states, 1 / states)
    emissions = probabilities(PSEUDO_ROWS * seen[rng.choice(len(seen), states)])
    for _ in range(PASSES):
        logs = seen @ np.log(emissions).T.astype(np.float32) + np.log(weights)
        passed = np.exp(logs - logs.max(axis=1, keepdims=True))
        passed /= passed.sum(axis=1, keepdims=True)
        totals = passed.sum(axis=0)
        weights = (totals + 1) / (totals + 1).sum()
        emissions = probabilities(passed.astype(np.float32).T @ seen)
    return weights, emissions
