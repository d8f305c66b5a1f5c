"""Priors: where mixtures of contexts lead, part by part, so that memory stays small."""

from dataclasses import dataclass

import numpy as np

from rspmn.learn.successors.factors import Factors
from rspmn.learn.successors.tied import Sparse
from rspmn.types import Array, Ints

#: So many numbers are held at once.
CHUNK = 4_000_000
#: More products than this are not made: counts have to do.
MOST_WORK = 500_000_000
#: More edges than this are not kept: the lightest are left out.
MOST_EDGES = 4_000_000
#: But of each S_L so many are.
LEAST_EDGES = 64
#: Edges of less weight are left out.
LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class Priors:
    """Where each mixture leads."""

    weights: Sparse  # [mixtures, interfaces]; rows sum to 1, or to 0 if nothing known follows
    kept: Array  # [contexts], mass of the factors' product on states of any box
    pruned: float  # mean mass of edges that were too light to be kept


def too_much(factors: Factors, contexts: int) -> bool:
    """Say whether it takes too many products."""
    return contexts * factors.boxes.count * len(factors.components) > MOST_WORK


def mixed_priors(factors: Factors, leaves: Ints, mixtures: Sparse) -> Priors:
    """Return the masses of mixtures of contexts.

    Parameters
    ----------
    factors
        Of the next state.
    leaves
        Of each context, the leaf of each component. [components, contexts]
    mixtures
        The share of each context in each mixture; rows sum to 1. [mixtures, contexts]
    """
    from scipy.sparse import csr_array, vstack

    count, boxes = mixtures.shape[0], factors.boxes.count
    kept = np.ones(leaves.shape[1])
    most = max(LEAST_EDGES, MOST_EDGES // max(1, count))
    parts, pruned = [], 0.0
    for start, stop in _chunks(mixtures, boxes):
        part = mixtures[start:stop]
        used, local = np.unique(part.indices, return_inverse=True)
        masses = factors.masses(leaves[:, used])  # [used, boxes]
        total = masses.sum(axis=1)
        kept[used] = total
        masses /= np.where(total > 0, total, 1.0)[:, None]
        inner = csr_array((part.data, local, part.indptr), shape=(stop - start, len(used)))
        mass = inner @ masses  # [mixtures here, boxes]
        weights = mass @ factors.boxes.interfaces
        pruned += _prune(weights, most)
        parts.append(csr_array(weights))
    return Priors(csr_array(vstack(parts)), kept, pruned / max(1, count))


def _chunks(mixtures: Sparse, boxes: int) -> list[tuple[int, int]]:
    """Divide mixtures so that none has too many contexts; one alone may have as many as it has."""
    most = max(1, CHUNK // max(1, boxes))
    ends, start = [], 0
    while start < mixtures.shape[0]:
        last = int(mixtures.indptr[start]) + most
        stop = int(np.searchsorted(mixtures.indptr, last, side="right")) - 1
        stop = min(max(stop, start + 1), start + most, mixtures.shape[0])
        ends.append((start, stop))
        start = stop
    return ends


def _prune(weights: Array, most: int) -> float:
    """Leave out the lightest edges of each row, in place; return how much they weighed."""
    weights[weights < LEAST] = 0.0
    before = weights.sum(axis=1)
    heavy = np.count_nonzero(weights, axis=1) > most
    if heavy.any():
        rows = weights[heavy]
        least = np.partition(rows, rows.shape[1] - most, axis=1)[:, rows.shape[1] - most]
        weights[heavy] = np.where(rows >= least[:, None], rows, 0.0)
    after = weights.sum(axis=1)
    weights /= np.where(after > 0, after, 1.0)[:, None]
    return float((before - after).sum())
