"""Classes of contexts: soft clusters within which each decision has one mean utility.

A context x belongs to class z with probability w_z · Π_j p_zj(x_j), normalised, and the utility of
decision a in it is the mean over its classes: E[u | x, a] = Σ_z P(z | x) · m_za. As a network that
is a sum over the classes, of products of leaves and a max node. Borders between classes are soft,
every variable has a say but none a veto, and the same classes serve all decisions, so that what one
of them earned also says which contexts are alike for the others.

They are fitted by expectation maximisation to contexts, decisions and utilities together, so that
contexts are alike if the same decisions are good in them, and if the same ones were made: whoever
decided was mostly right, so what a decision earned where it was usual does not tell what it would
earn where it was avoided. The means m_za are then estimated again with classes that are told by x
alone, as they are when a decision is made: by regression of u on P(z | x), shrunk towards the mean
of the decision over all contexts, by empirical Bayes. Where expectation maximisation ends depends
on where it starts, so the classes of several starts are mixed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.circuit import Leaf
from rspmn.learn.structure.class_factors import Categories, Earned, Numbers
from rspmn.learn.structure.rows import Rows
from rspmn.schema import Kind
from rspmn.types import Array, Ints

#: How often expectation maximisation starts.
STARTS = 3
#: It ends when the mean log-likelihood of a value rises by less than this, or after so many passes.
CONVERGED = 1e-3
MOST_PASSES = 40
#: Classes are fitted to a sample of at most this many rows; all rows are then counted in them.
MOST_ROWS = 3000
#: Rows that belong to a class less than this still name the decisions that are offered in it.
LEAST_SHARE = 1e-9


@dataclass(frozen=True, eq=False)
class Classes:
    """Soft clusters of rows."""

    weights: Array  # [classes], sums to 1
    leaves: list[tuple[Leaf, ...]]  # of each class, one for each variable
    parts: list[Rows]  # the rows of each class, weighted by P(z | x)


def is_number(rows: Rows, name: str) -> bool:
    """Tell whether a variable is a number for classes: continuous, or an integer of many values."""
    column = rows.table.columns[name]
    many = column.kind is Kind.INTEGER and len(column.domain) > rows.table.bins
    return column.kind is Kind.CONTINUOUS or many


def fit_classes(
    rows: Rows,
    names: Sequence[str],
    strata: Ints,
    utility: str,
    count: int,
    rng: np.random.Generator,
) -> Classes:
    """Divide rows softly into classes.

    `names`: the variables of the context. `strata`: the joint value of the decisions that follow
    [n]. `utility`: the utility. `count`: the number of classes of each start. `rng`: for where
    expectation maximisation starts.
    """
    runs = [_start(rows, names, strata, utility, count, rng) for _ in range(STARTS)]
    earned = Earned(rows, strata, utility)
    fits = [earned.regressed(normalised(logs)[0], rows.weights) for logs, _, _ in runs]
    priors = [earned.prior(mean, noise) for means, noise in fits for mean in means]
    shares, _ = normalised(np.hstack([logs for logs, _, _ in runs]))
    parts = [rows.weighted(np.maximum(share, LEAST_SHARE)) for share in shares.T]
    return Classes(
        np.concatenate([weights for _, weights, _ in runs]) / STARTS,
        [leaves for _, _, several in runs for leaves in several],
        [part.with_prior(prior) for part, prior in zip(parts, priors, strict=True)],
    )


def _start(
    rows: Rows,
    names: Sequence[str],
    strata: Ints,
    utility: str,
    count: int,
    rng: np.random.Generator,
) -> tuple[Array, Array, list[tuple[Leaf, ...]]]:
    """Return log w_z · p_z(x) of each row, the weights of the classes, and their leaves."""
    some = np.arange(len(rows))
    if len(rows) > MOST_ROWS:
        some = np.sort(rng.choice(len(rows), MOST_ROWS, replace=False))
    seen, numbers = rows.where(some), [name for name in names if is_number(rows, name)]
    factors: list[Numbers | Categories] = [Numbers(numbers, seen, rows)] if numbers else []
    factors += [Categories(name, seen) for name in names if name not in numbers]
    weights, logs = _fitted(factors, Earned(seen, strata[some], utility), seen, count, rng)
    if len(seen) < len(rows):
        logs = np.log(weights) + sum(factor.log_probs(factor.points_of(rows)) for factor in factors)
    leaves = zip(*(leaf for factor in factors for leaf in factor.leaves()), strict=True)
    return logs, weights, list(leaves)


def _fitted(
    factors: Sequence[Numbers | Categories],
    earned: Earned,
    rows: Rows,
    count: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:  # [classes], [n, classes]
    """Fit factors and utilities; return the weights of the classes and log w_z · p_z(x)."""
    points = np.hstack([np.nan_to_num(factor.points) for factor in factors])
    shares, before = _first_shares(points, rows.weights, count, rng), -np.inf
    variables = sum(len(factor.names) for factor in factors)
    for _ in range(MOST_PASSES):
        weighted = shares * rows.weights[:, None]
        for factor in factors:
            factor.fit(weighted)
        earned.fit(weighted)
        mass = np.maximum(weighted.sum(axis=0), 1e-300)
        weights = mass / mass.sum()
        logs = np.log(weights) + sum(factor.log_probs(factor.points) for factor in factors)
        shares, total = normalised(logs + earned.log_probs())
        now = float(rows.weights @ total / rows.weights.sum())
        if now - before < CONVERGED * variables:
            break
        before = now
    return weights, logs


def _first_shares(
    points: Array, weights: Array, count: int, rng: np.random.Generator
) -> Array:  # [n, classes]
    """Return each row as a member of the nearest of some rows, which are drawn far apart."""
    chosen = [int(rng.choice(len(points), p=weights / weights.sum()))]
    distance = _squared(points, points[chosen[0]])
    nearest = np.zeros(len(points), dtype=np.int64)
    while len(chosen) < count and (weights @ distance) > 0:
        mass = weights * distance
        chosen.append(int(rng.choice(len(points), p=mass / mass.sum())))
        found = _squared(points, points[chosen[-1]])
        nearest[found < distance] = len(chosen) - 1
        distance = np.minimum(distance, found)
    for _ in range(10):  # of Lloyd's passes; expectation maximisation goes on from there
        member = np.eye(len(chosen))[nearest] * weights[:, None]
        centres = (member.T @ points) / np.maximum(member.sum(axis=0), 1e-300)[:, None]
        nearest = ((centres**2).sum(axis=1) - 2 * points @ centres.T).argmin(axis=1)
    shares = np.eye(len(chosen))[nearest]
    return np.asarray(shares[:, shares.any(axis=0)])


def _squared(points: Array, centre: Array) -> Array:  # [n]
    return np.asarray(((points - centre) ** 2).sum(axis=1))


def normalised(logs: Array) -> tuple[Array, Array]:  # [n, classes], [n]
    """Return shares of each row that sum to 1, and the logarithm of what they summed to."""
    highest = logs.max(axis=1, keepdims=True)
    shares = np.exp(logs - highest)
    total = shares.sum(axis=1, keepdims=True)
    return np.asarray(shares / total), np.asarray(highest + np.log(total)).ravel()
