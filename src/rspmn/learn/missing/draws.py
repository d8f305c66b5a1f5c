"""Draws from many distributions at once."""

import numpy as np

from rspmn.types import Array, Ints


def drawn(weights: Array, of: Ints, rng: np.random.Generator) -> Ints:  # [draws]
    """Return draws, each from a row of weights.

    Parameters
    ----------
    weights
        Of each outcome; rows need not sum to 1. [rows, outcomes]
    of
        The row of each draw. [draws]
    rng
        Where chance comes from.
    """
    upto = weights.cumsum(axis=1)
    upto /= upto[:, -1:]
    place = (upto + np.arange(len(upto))[:, None]).ravel()
    found = np.searchsorted(place, of + rng.random(len(of)), side="right")
    return np.asarray(np.minimum(found - of * weights.shape[1], weights.shape[1] - 1))
