"""Statistics that many growths need, counted at once and kept with the rows of each."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from rspmn.learn.structure.code_table import Codes
from rspmn.learn.structure.grouped_statistics import grouped_statistics
from rspmn.learn.structure.independence import PairStatistics, keep_statistics
from rspmn.learn.structure.rows import Rows
from rspmn.learn.structure.together import Need

#: What has more rows, or more cells, is counted by itself.
FEW_ROWS, FEW_CELLS = 4_000, 10_000
#: Indicators of the rows that are counted at once, at most.
MOST = 1_000_000


def count_ahead(needs: Sequence[Need]) -> None:
    """Count what several growths need, where one count of all is faster than many."""
    small = [need for need in needs if _is_small(need)]
    small.sort(key=lambda need: (need.right, len(need.left), need.left))
    for right, several in groupby(small, key=lambda need: need.right):
        for batch in _batches([*several]):
            if len(batch) > 1:
                _count(batch, right)


def _is_small(need: Need) -> bool:
    if not need.left or not need.right or not 1 < len(need.rows) <= FEW_ROWS:
        return False
    sizes = need.rows.table.sizes
    cells = [sum(sizes[name] for name in side) for side in (need.left, need.right)]
    return math.prod(cells) <= FEW_CELLS


def _batches(needs: Sequence[Need]) -> Iterator[list[Need]]:
    """Divide needs so that the indicators of all variables of a batch fit into memory."""
    batch: list[Need] = []
    rows, names = 0, 0
    for need in needs:
        size = len(need.left) + len(need.right)
        if batch and (rows + len(need.rows)) * 2 * max(names, size) > MOST:
            yield batch
            batch, rows, names = [], 0, 0
        batch.append(need)
        rows, names = rows + len(need.rows), max(names, size)
    if batch:
        yield batch


def _count(needs: Sequence[Need], right: tuple[str, ...]) -> None:
    """Count all pairs of all variables of some needs, and keep them with the rows of each."""
    left = tuple(dict.fromkeys(name for need in needs for name in need.left))
    rows = [need.rows for need in needs]
    sizes = [len(part) for part in rows]
    group = np.repeat(np.arange(len(needs)), sizes)
    strata = np.concatenate([need.strata for need in needs])
    found = grouped_statistics(
        _codes(rows, left), _codes(rows, right), group * (int(strata.max()) + 1) + strata,
        np.concatenate([part.weights for part in rows]), group, len(needs),
    )  # fmt: skip
    if found is None:
        return
    for k, need in enumerate(needs):
        own = PairStatistics(found.g[k], found.x2[k], found.freedom[k], found.weight[k])
        keep_statistics(need.rows, left, right, need.strata, own)


def _codes(rows: Sequence[Rows], names: tuple[str, ...]) -> Codes:
    """Return the codes of rows that may be of different tables, one after the other."""
    tables, parts = [], []
    for _, several in groupby(rows, key=lambda part: id(part.table.codes)):
        same = [*several]
        tables.append(same[0].table)
        index = np.concatenate([part.index for part in same])
        parts.append(same[0].table.codes.take(index, names))
    sizes = [max(table.sizes[name] for table in tables) for name in names]
    return Codes(np.concatenate(parts), np.array(sizes, dtype=np.int64))
