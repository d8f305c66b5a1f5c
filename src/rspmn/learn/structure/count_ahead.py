"""Statistics that many growths need, counted at once and kept with the rows of each."""

import math
import weakref
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeVar

import numpy as np

from rspmn.learn.structure.batched_growth import (
    BayesNeed,
    MeanNeed,
    Need,
    Needs,
)
from rspmn.learn.structure.bayes_factors import evidence_together
from rspmn.learn.structure.code_table import Codes
from rspmn.learn.structure.f_test import f_tests
from rspmn.learn.structure.grouped_statistics import grouped_statistics
from rspmn.learn.structure.independence import PairStatistics, keep_statistics
from rspmn.learn.structure.rows import Rows, codes_together
from rspmn.types import Ints

N = TypeVar("N", Need, MeanNeed, BayesNeed)

#: What has more rows, or more cells, is counted by itself.
FEW_ROWS, FEW_CELLS = 4_000, 10_000
#: Indicators of the rows that are counted at once, at most.
MOST = 1_000_000


def count_ahead(needs: Needs) -> None:
    """Count what several growths need, where one count of all is faster than many."""
    for means in _batches([n for n in needs if isinstance(n, MeanNeed) and _has_means(n)]):
        _test_means(means)
    rare = [need for need in needs if isinstance(need, BayesNeed) and _is_comparable(need)]
    rare.sort(key=_outcome_sizes)
    for _, alike in groupby(rare, key=_outcome_sizes):
        for rows in _batches([*alike]):
            evidence_together(rows)
    small = [need for need in needs if isinstance(need, Need) and _is_small(need)]
    small.sort(key=lambda need: (_sizes(need), need.right, len(need.left), need.left))
    for _, several in groupby(small, key=_sizes):
        for batch in _batches([*several]):
            if len(batch) > 1:
                _count(batch)


def _sizes(need: Need) -> tuple[int, ...]:
    """Return what has to be the same in needs that are counted together: cells on the right."""
    return tuple(need.rows.table.sizes[name] for name in need.right)


def _is_small(need: Need) -> bool:
    if not need.left or not need.right or not 1 < len(need.rows) <= FEW_ROWS:
        return False
    sizes = need.rows.table.sizes
    cells = [sum(sizes[name] for name in side) for side in (need.left, need.right)]
    return math.prod(cells) <= FEW_CELLS


def _batches(needs: Sequence[N]) -> Iterator[list[N]]:
    """Divide needs so that the indicators of all variables of a batch fit into memory."""
    batch: list[N] = []
    rows, names = 0, 0
    for need in needs:
        size = len(need.left) + len(need.right) if isinstance(need, Need) else len(need.names)
        if batch and (rows + len(need.rows)) * 2 * max(names, size) > MOST:
            yield batch
            batch, rows, names = [], 0, 0
        batch.append(need)
        rows, names = rows + len(need.rows), max(names, size)
    if batch:
        yield batch


def _count(needs: Sequence[Need]) -> None:
    """Count all pairs of all variables of some needs, and keep them with the rows of each."""
    left = tuple(dict.fromkeys(name for need in needs for name in need.left))
    rows = [need.rows for need in needs]
    sizes = [len(part) for part in rows]
    group = np.repeat(np.arange(len(needs)), sizes)
    strata = np.concatenate([need.strata for need in needs])
    strata += group * (int(strata.max()) + 1)
    found = grouped_statistics(
        codes_together(rows, left), _rights(needs), strata,
        np.concatenate([part.weights for part in rows]), group, len(needs),
    )  # fmt: skip
    if found is None:
        return
    every = PairStatistics(found.g, found.x2, found.freedom, found.weight).screened()
    for k, need in enumerate(needs):
        keep_statistics(need.rows, left, need.right, need.strata, every.at(k))


def _rights(needs: Sequence[Need]) -> Codes:
    """Return the codes of the right of all needs; a column may be another variable in each."""
    parts = []
    for right, several in groupby(needs, key=lambda need: need.right):
        parts.append(codes_together([need.rows for need in several], right))
    return Codes(np.concatenate([part.codes for part in parts]), parts[0].sizes)


def _is_comparable(need: BayesNeed) -> bool:
    """Say whether Bayes factors are computed with those of other rows."""
    names = [name for outcome in need.outcomes for name in outcome.names]
    if not need.names or not names or not need.outcomes[-1].names:
        return False
    return all(_is_small(Need(need.rows, need.names, t.names, t.strata)) for t in need.outcomes)


def _outcome_sizes(need: BayesNeed) -> tuple[tuple[str, int], ...]:
    """Return what has to be the same in Bayes factors that are computed together."""
    sizes = need.rows.table.sizes
    return tuple((name, sizes[name]) for outcome in need.outcomes for name in outcome.names)


def _has_means(need: MeanNeed) -> bool:
    """Say whether means can be tested with those of other rows: nothing is missing."""
    rows = need.rows
    if not need.names or not 0 < len(rows) <= FEW_ROWS:
        return False
    return bool((rows.codes_of(need.names).codes >= 0).all())


def _test_means(needs: Sequence[MeanNeed]) -> None:
    """Test the means of the utility in several sets of rows, and keep p-values with each."""
    names = tuple(dict.fromkeys(name for need in needs for name in need.names))
    rows = [need.rows for need in needs]
    codes = np.maximum(codes_together(rows, names).codes, 0).astype(np.int64)  # others are not read
    group = np.repeat(np.arange(len(rows)), [len(part) for part in rows])
    strata = np.concatenate([need.strata for need in needs])
    earned = [need.rows.column(need.utility) for need in needs]
    within = [
        0.0 if column.spread is None else float(part.weights @ column.spread)
        for part, column in zip(rows, earned, strict=True)
    ]
    found = f_tests(
        codes, group * (int(strata.max()) + 1) + strata,
        np.concatenate([column.data for column in earned]),
        np.concatenate([part.weights for part in rows]), np.array(within), group,
    )  # fmt: skip
    for need, p_values in zip(needs, found.p_value.tolist(), strict=True):
        of_names = dict(zip(names, p_values, strict=True))
        own = {name: of_names[name] for name in need.names}
        need.rows.memo["means", id(need.strata)] = weakref.ref(need.strata), own


def kept_means(rows: Rows, strata: Ints) -> dict[str, float] | None:
    """Return p-values of means by variable, if they were tested ahead."""
    owner, found = rows.memo.get(("means", id(strata)), (None, None))
    return found if owner is not None and owner() is strata else None
