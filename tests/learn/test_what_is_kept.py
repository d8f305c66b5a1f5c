"""What tests of independence keep with the rows: enough to be fast, not more than memory holds."""

import gc
import weakref

import numpy as np
import pytest

from rspmn.learn.structure import contingency
from rspmn.learn.structure.independence import pair_statistics
from rspmn.learn.structure.rows import Rows, read_columns

NAMES = [f"x{k}" for k in range(6)]


@pytest.fixture
def rows() -> Rows:
    rng = np.random.default_rng(0)
    return read_columns({name: rng.integers(0, 3, 500) for name in NAMES}, None, 10)


def test_statistics_are_kept_as_long_as_their_strata(rows: Rows) -> None:
    strata = rows.joint_codes(NAMES[:2])
    found = pair_statistics(rows, NAMES[2:4], NAMES[4:], strata)
    assert pair_statistics(rows, NAMES[2:4], NAMES[4:], strata) is found
    gone = weakref.ref(strata)
    del strata
    gc.collect()
    assert gone() is None  # rows do not hold on to them
    for name in NAMES[:2] * 5:  # whatever memory they get, they are other strata
        other = rows.codes(name).astype(np.int64)
        anew = Rows(rows.table, rows.index, rows.weights)
        fresh = pair_statistics(anew, NAMES[2:4], NAMES[4:], other)
        same = pair_statistics(rows, NAMES[2:4], NAMES[4:], other)
        np.testing.assert_allclose(same.freedom, fresh.freedom)
        np.testing.assert_allclose(same.g, fresh.g, atol=1e-9)
        del other


def test_joint_values_of_few_are_not_kept(rows: Rows) -> None:
    before = len(rows.table.memo)
    codes = rows.joint_codes(NAMES[:3])
    assert len(rows.table.memo) == before
    many = rows.joint_codes(NAMES)  # 4^6 and more would be too many to count with
    for found, names in ((codes, NAMES[:3]), (many, NAMES)):
        cells = np.stack([rows.codes(name) for name in names], axis=1)
        assert len(np.unique(found)) == len(np.unique(cells, axis=0))


def test_indicators_are_kept_within_bounds(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contingency, "KEPT_IN_ALL", 2 * 9 * len(rows.table.origin))
    strata = np.zeros(len(rows), dtype=np.int64)
    for k in range(4):
        pair_statistics(rows, NAMES[: k + 3], NAMES[k:], strata)
        kept = sum(a.size for a in rows.table.memo.values() if isinstance(a, np.ndarray))
        assert kept <= 2 * 9 * len(rows.table.origin)
