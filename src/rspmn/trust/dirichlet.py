"""Draws of several Dirichlet distributions at once."""

import numpy as np

from rspmn.types import Array, Ints


def draw_dirichlet(alpha: Array, starts: Ints, draws: int, rng: np.random.Generator) -> Array:
    """Return draws of several Dirichlet distributions, [draws, parameters].

    Parameters
    ----------
    alpha
        The parameters of all distributions, one after the other: [parameters], or
        [draws, parameters]. What has 0 has no probability, unless all of a distribution have.
    starts
        The first parameter of each distribution.
    draws
        How many.
    rng
        The generator.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draw_dirichlet(np.array([3.0, 0.0, 5.0]), np.array([0, 2]), 2, rng).tolist()
    [[1.0, 0.0, 1.0], [1.0, 0.0, 1.0]]
    """
    nothing = np.add.reduceat(alpha, starts, axis=-1) <= 0
    if nothing.any():  # then all are as probable
        counts = np.diff(np.append(starts, alpha.shape[-1]))
        alpha = np.where(np.repeat(nothing, counts, axis=-1), 1.0, alpha)
    size = draws, alpha.shape[-1]
    sizes = rng.standard_gamma(np.maximum(np.broadcast_to(alpha, size), 1e-12))
    sizes = np.where(alpha > 0, np.maximum(sizes, 1e-300), 0.0)
    return normalised(sizes, starts)


def normalised(sizes: Array, starts: Ints) -> Array:  # [draws, parameters]
    """Return sizes divided by their sum in each of some groups, given the first of each."""
    total = np.add.reduceat(sizes, starts, axis=1)
    counts = np.diff(np.append(starts, sizes.shape[1]))
    return np.asarray(sizes / np.repeat(total, counts, axis=1))
