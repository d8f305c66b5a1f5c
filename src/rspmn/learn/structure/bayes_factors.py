"""Bayes factors of splitting on a variable that was observed too rarely for tests."""

import weakref
from collections.abc import Sequence

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.learn.structure.batched_growth import BayesNeed
from rspmn.learn.structure.code_table import Codes
from rspmn.learn.structure.contingency import (
    Contingency,
    ValueCells,
    contingency,
    occurs_again,
    stratum_products,
)
from rspmn.learn.structure.grouped_statistics import Strata
from rspmn.learn.structure.rows import Rows, codes_together
from rspmn.learn.structure.targets import Later
from rspmn.types import Array, Bools, Ints

#: The weight of the prior: that of one row.
STRENGTH = 1.0


def evidence(
    rows: Rows, names: Sequence[str], outcomes: Sequence[Later], least: float
) -> list[float | None]:  # [names]
    """Return the log Bayes factor of each variable; None if it was observed enough for tests."""
    owner, kept = rows.memo.get(("evidence", id(outcomes[-1].strata)), (None, None))
    if kept is not None and owner() is outcomes[-1].strata and set(names) <= kept.keys():
        return [kept[name] for name in names]
    enough = observed_enough(rows, names, outcomes[-1], least).tolist()
    left = [name for name, often in zip(names, enough, strict=True) if not often]
    gains = dict(zip(left, log_bayes_factors(rows, left, outcomes).tolist(), strict=True))
    return [gains.get(name) for name in names]


def evidence_together(needs: Sequence[BayesNeed]) -> None:
    """Compute what `evidence` returns for several sets of rows, and keep it with each.

    All have outcomes of the same names and sizes.
    """
    names = tuple(dict.fromkeys(name for need in needs for name in need.names))
    rows = [need.rows for need in needs]
    group = np.repeat(np.arange(len(rows)), [len(part) for part in rows])
    weights = np.concatenate([part.weights for part in rows])
    left = codes_together(rows, names)
    gains = []
    for k, later in enumerate(needs[0].outcomes):
        strata = np.concatenate([need.outcomes[k].strata for need in needs])
        strata = group * (int(strata.max()) + 1) + strata
        right = codes_together(rows, later.names)
        gains.append(_grouped_gains(left, right, strata, weights, group, len(rows)))
        if k == len(needs[0].outcomes) - 1:
            followed = right.codes[:, 0] >= 0
            least = needs[0].least
            enough = _enough(left, followed, strata, weights, group, len(rows), least)
    best = _best(np.concatenate(gains, axis=2))  # [groups, names]
    for need, gain, often in zip(needs, best.tolist(), enough.tolist(), strict=True):
        of_names = dict(zip(names, zip(gain, often, strict=True), strict=True))
        own = {n: None if of_names[n][1] else of_names[n][0] for n in need.names}
        strata = need.outcomes[-1].strata
        need.rows.memo["evidence", id(strata)] = weakref.ref(strata), own


def _grouped_gains(
    left: Codes, right: Codes, strata: Ints, weights: Array, group: Ints, groups: int
) -> Array:  # [groups, left, right]
    """Return the log Bayes factors of all pairs in several sets of rows."""
    one, other = _cells(left), _cells(right)
    found = np.zeros((groups, len(left.sizes), len(right.sizes)))
    for block in Strata.of(strata, group, None).blocks(one.size * other.size):
        hot = _hot(left, one, block.rows)
        hot *= weights[block.rows][:, None]
        counts = stratum_products(hot, _hot(right, other, block.rows), block.starts)
        gain = _gain(Contingency(one, other, counts, np.empty(0), np.empty(0)))
        first = np.flatnonzero(np.append(True, block.group[1:] != block.group[:-1]))
        found[block.group[first]] += np.add.reduceat(gain, first, axis=0)
    return found


def _cells(of: Codes) -> ValueCells:
    owner = np.repeat(np.arange(len(of.sizes)), of.sizes)
    return ValueCells((), np.cumsum(of.sizes) - of.sizes, owner)


def _hot(of: Codes, cells: ValueCells, rows: Ints) -> Array:  # [rows, cells]
    value = np.arange(cells.size) - cells.starts[cells.owner]
    return np.asarray(of.codes[rows][:, cells.owner] == value, dtype=np.float64)


def _best(gains: Array) -> Array:  # [.., names, later] -> [.., names]
    """Return the factor of the target that gains most; 0 where no two rows can be compared."""
    none = np.abs(gains).max(axis=-1) < 1e-9
    return np.where(none, 0.0, gains.max(axis=-1))


def log_bayes_factors(
    rows: Rows, names: Sequence[str], outcomes: Sequence[Later]
) -> Array:  # [names]
    """Return the log Bayes factor of splitting on each variable, against not splitting.

    It is for variables that were observed too rarely for tests: marginal likelihoods under
    Dirichlet priors that expect few outcomes, those of each value by itself against those of all
    values together.

    It is that of the target that gains most, given the decisions in between; 0 where no two rows
    can be compared.
    """
    if not names:
        return np.zeros(0)
    gains = []
    for later in outcomes:
        several = occurs_again(later.strata)  # one row by itself is as likely either way
        if several.any():
            table = contingency(rows.where(several), names, later.names, later.strata[several])
            gains.append(_gain(table).sum(axis=0))  # [names, later]
        else:
            gains.append(np.zeros((len(names), len(later.names))))
    return _best(np.hstack(gains))


def observed_enough(rows: Rows, names: Sequence[str], target: Later, least: float) -> Bools:
    """Return which variables have every value observed so often with each decision in between."""
    if not target.names:
        return np.ones(len(names), dtype=bool)
    group = np.zeros(len(rows), dtype=np.int64)
    followed = rows.codes(target.names[0]) >= 0
    of_names = rows.codes_of(names)
    found = _enough(of_names, followed, target.strata, rows.weights, group, 1, least)
    return np.asarray(found[0])


def _enough(
    of_names: Codes, followed: Bools, strata: Ints, weights: Array, group: Ints, groups: int,
    least: float,
) -> Bools:  # fmt: skip
    """Return which variables were observed often in each group of rows, [groups, names].

    `followed` says in which rows something that follows is known. A stratum is in one group.
    """
    stratum = np.unique(strata, return_inverse=True)[1]
    first, cells = np.cumsum(of_names.sizes) - of_names.sizes, int(of_names.sizes.sum())
    known = of_names.codes >= 0
    place = of_names.codes + (first + stratum[:, None] * cells)  # [n, names]
    each = np.where(followed, weights, 0.0)
    shape = int(stratum.max(initial=-1)) + 1, cells
    weight = group_weights(
        place[known], np.broadcast_to(each[:, None], known.shape)[known], shape[0] * shape[1]
    ).reshape(shape)
    occurs = np.zeros((groups, cells), dtype=bool)
    occurs[np.broadcast_to(group[:, None], known.shape)[known], place[known] % cells] = True
    rare = np.zeros((groups, cells), dtype=bool)
    of_stratum = np.zeros(shape[0], dtype=np.int64)
    of_stratum[stratum] = group
    low = np.nonzero(weight < least)
    rare[of_stratum[low[0]], low[1]] = True
    return np.asarray(np.logical_and.reduceat(~rare | ~occurs, first, axis=1))


def _gain(table: Contingency) -> Array:  # [strata, left, right]
    """Return the log of the Bayes factor of each pair in each stratum."""
    from scipy.special import gammaln

    left, right, counts = table.left, table.right, table.counts
    prior = STRENGTH / np.bincount(right.owner)[right.owner]  # [right cells]

    def likelihood(cells: Array) -> Array:  # [strata, .., right cells] -> [strata, .., right]
        each = gammaln(cells + prior) - gammaln(prior)
        inside = np.add.reduceat(each, right.starts, axis=2)
        total = np.add.reduceat(cells, right.starts, axis=2)
        return np.asarray(inside + gammaln(STRENGTH) - gammaln(STRENGTH + total))

    apart = np.add.reduceat(likelihood(counts), left.starts, axis=1)
    together = likelihood(np.add.reduceat(counts, left.starts, axis=1))
    return np.asarray(apart - together)
