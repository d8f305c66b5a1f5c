"""Sparse relations against sets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rspmn.infer.compiled.relations import Relation, common

SIZE = 9
LISTS = st.lists(st.sets(st.integers(0, SIZE - 1)), min_size=1, max_size=6)


def relation(rows: list[set[int]]) -> Relation:
    """Return a relation of sets."""
    keys = [row * SIZE + item for row, items in enumerate(rows) for item in sorted(items)]
    return Relation.of_keys(np.array(keys, dtype=np.int64), len(rows), SIZE)


@given(LISTS, LISTS, st.data())
def test_common_items(one: list[set[int]], other: list[set[int]], data: st.DataObject) -> None:
    pairs = data.draw(
        st.lists(st.tuples(st.integers(0, len(one) - 1), st.integers(0, len(other) - 1)))
    )
    i, j = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    mine, theirs = relation(one), relation(other)
    k, entry, found = common(mine, i, theirs, j)
    assert (mine.items[entry] == theirs.items[found]).all()
    expected = [(n, x) for n, (a, b) in enumerate(pairs) for x in sorted(one[a] & other[b])]
    assert list(zip(k.tolist(), mine.items[entry].tolist(), strict=True)) == expected
    assert (mine.starts[i[k]] <= entry).all()
    assert (entry < mine.starts[i[k] + 1]).all()
    assert (theirs.starts[j[k]] <= found).all()


@given(LISTS)
def test_found_where_they_are(rows: list[set[int]]) -> None:
    found = relation(rows)
    row, item = np.divmod(np.arange(len(rows) * SIZE), SIZE)
    entry = found.find(row, item)
    for r, x, e in zip(row.tolist(), item.tolist(), entry.tolist(), strict=True):
        assert (e >= 0) == (x in rows[r])
        assert e < 0 or found.items[e] == x
    turned, order = found.transposed()
    for x in range(SIZE):
        here = slice(turned.starts[x], turned.starts[x + 1])
        assert turned.items[here].tolist() == [r for r, items in enumerate(rows) if x in items]
        assert (found.items[order[here]] == x).all()


@pytest.mark.parametrize(("low", "high"), [(0, 8), (2, 5), (4, 3), (6, 2)])
def test_items_between(low: int, high: int) -> None:
    rows = [{1, 2, 7}, set(), {5, 6}]
    found = relation(rows)
    starts, stops = found.between(np.arange(3), np.full(3, low), np.full(3, high))
    for r, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
        assert found.items[start:stop].tolist() == sorted(x for x in rows[r] if low <= x <= high)
