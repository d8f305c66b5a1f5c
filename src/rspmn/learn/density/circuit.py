"""Latent trees as circuits."""

from collections.abc import Sequence

import numpy as np

from rspmn.circuit import NetworkBuilder
from rspmn.learn.density.latent_tree import ExpectedCounts, LatentTree, Singles
from rspmn.learn.structure.smoothed_leaves import SmoothedLeaves
from rspmn.types import Ints


def add_tree(
    builder: NetworkBuilder,
    tree: LatentTree,
    counts: ExpectedCounts,
    leaves: Sequence[SmoothedLeaves],
    starts: Ints,
    pseudo_rows: float,
) -> int:
    """Add a latent tree: a product for each state, a sum for each state of the parent.

    `leaves` are those of each variable, and `starts` its first symbol.
    """
    sums: dict[int, list[int]] = {}
    states: list[int] = []
    for i in tree.order[::-1].tolist():
        here = counts.symbols[:, starts[i] : starts[i + 1]]
        states = [leaves[i].add(builder, row, pseudo_rows) for row in here.astype(np.float64)]
        if tree.children[i]:
            below = zip(states, *(sums[child] for child in tree.children[i]), strict=True)
            states = [builder.product(parts) for parts in below]
        if tree.parent[i] >= 0:
            sums[i] = [builder.sum(states, row) for row in _normalised(tree.edges[i])]
    return builder.sum(states, _normalised(tree.start[None])[0])


def _normalised(weights: Singles) -> list[list[float]]:
    """Return rows of weights that sum to 1 in double precision."""
    exact = weights.astype(np.float64)
    found: list[list[float]] = (exact / exact.sum(axis=1, keepdims=True)).tolist()
    return found
