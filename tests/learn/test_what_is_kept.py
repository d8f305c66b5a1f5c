"""What tests of independence keep with the rows: enough to be fast, not more than memory holds."""

import gc
import weakref

import numpy as np
import pytest

from rspmn.learn.structure.independence import pair_statistics
from rspmn.learn.structure.rows import Rows, read_columns, with_joint_variable

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


def test_codes_of_a_table_with_one_more_variable_are_those_of_the_first(rows: Rows) -> None:
    more, name = with_joint_variable(rows, NAMES[:2])
    some = more.where(np.arange(0, len(more), 3))
    for names in (NAMES[1:4], [NAMES[4], NAMES[1]], [name, NAMES[2]], []):
        found = some.codes_of(names)
        assert found.codes.shape == (len(some), len(names))
        for k, each in enumerate(names):
            assert np.array_equal(found.codes[:, k], some.codes(each))
            assert found.sizes[k] == some.table.sizes[each]


def test_statistics_of_more_variables_serve_fewer(rows: Rows) -> None:
    strata = rows.joint_codes(NAMES[:1])
    alone = pair_statistics(Rows(rows.table, rows.index, rows.weights), ["x3"], ["x4"], strata)
    everything = pair_statistics(rows, NAMES[1:], NAMES[1:], strata)
    part = pair_statistics(rows, ["x3"], ["x4"], strata)
    assert part.g[0, 0] == everything.g[2, 3]
    for field in ("g", "x2", "freedom", "weight"):
        np.testing.assert_allclose(getattr(part, field), getattr(alone, field), rtol=1e-12)
