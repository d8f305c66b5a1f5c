"""Outcomes divided by what they earned when they led to different successors.

An outcome has one utility. Where its single rewards vary, they often depend on where it led, as at
a goal: a learned model counts them by successor. Then the parts of the outcome that earned the same
are outcomes of their own.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rspmn.model import RSPMN
from rspmn.successor_counts import SuccessorCounts
from rspmn.types import Array, Ints

#: A deviation of less than this share of the largest reward is rounding.
NO_DEVIATION = 1e-6


@dataclass(frozen=True, eq=False)
class Parts:
    """Parts of outcomes."""

    of: Any  # sparse [outcomes, parts], rows sum to 1
    earned: Array  # [parts]
    variance: Array  # [parts]
    leads: Any  # sparse [parts, interfaces], rows sum to 1


def parts_of_outcomes(model: RSPMN, earned: Array, variance: Array, leads: Any) -> Parts:
    """Return outcomes divided by what they earned; whole where nothing was counted.

    Parameters
    ----------
    model
        The model; its counts are of the first outcomes.
    earned, variance
        The utility of each outcome. [outcomes]
    leads
        Where each leads. Sparse [outcomes, interfaces]
    """
    from scipy.sparse import csr_array

    least = (NO_DEVIATION * max(1.0, float(np.abs(earned).max(initial=0.0)))) ** 2
    variance = np.where(variance <= least, 0.0, variance)
    edges = leads.tocoo()
    outcome, to = (axis.astype(np.int64) for axis in edges.coords)
    numbers = np.array([earned[outcome], variance[outcome]])  # [2, edges]
    varies = np.flatnonzero(variance[outcome] > 0)
    if model.counts is not None and len(varies):
        found = _counted(model.counts, outcome[varies], to[varies], model.num_interfaces)
        numbers[:, varies] = np.where(np.isnan(found), numbers[:, varies], found)
        numbers[1, numbers[1] <= least] = 0.0
    keys = np.column_stack([outcome, numbers.T.round(12)])
    distinct, part = np.unique(keys, axis=0, return_inverse=True)
    part = part.reshape(-1)
    shape = len(distinct), leads.shape[1]
    by_part = csr_array((edges.data, (part, to)), shape=shape)
    total = np.asarray(by_part.sum(axis=1))
    by_part.data /= np.repeat(np.maximum(total, 1e-300), np.diff(by_part.indptr))
    place = distinct[:, 0].astype(np.int64), np.arange(len(distinct))
    of = csr_array((total, place), shape=(len(earned), len(distinct)))
    return Parts(of, distinct[:, 1], distinct[:, 2], by_part)


def _counted(counts: SuccessorCounts, outcome: Ints, to: Ints, interfaces: int) -> Array:
    """Return mean and variance of what outcomes earned when they led somewhere, [2, edges].

    Where that was never counted, it is what the outcome earned most often; NaN if it has no counts.
    """
    table = np.array([counts.mean, counts.variance]).reshape(2, -1)
    logged, steps = np.array(counts.outcome, np.int64), np.array(counts.steps)
    place = {
        key: k for k, key in enumerate((logged * interfaces + np.array(counts.to, int)).tolist())
    }
    order = np.argsort(steps, kind="stable")
    commonest = dict(zip(logged[order].tolist(), order.tolist(), strict=True))  # the last one stays
    asked = zip((outcome * interfaces + to).tolist(), outcome.tolist(), strict=True)
    found = np.array([place.get(key, commonest.get(o, -1)) for key, o in asked], dtype=np.int64)
    return np.where(found >= 0, table[:, np.maximum(found, 0)] if table.size else np.nan, np.nan)
