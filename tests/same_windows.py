"""The same log from everywhere: what engines are compared by."""

import numpy as np

from rspmn import Windows


def assert_same(one: Windows, other: Windows) -> None:
    """Assert that windows are the same to the last bit."""
    assert one.schema == other.schema
    for a, b in ((one.columns, other.columns), (one.next_columns, other.next_columns)):
        assert list(a) == list(b)
        for name in a:
            assert a[name].kind == b[name].kind
            assert a[name].domain == b[name].domain, name
            assert a[name].data.dtype == b[name].data.dtype, name
            assert a[name].data.tobytes() == b[name].data.tobytes(), name
    for field in ("followed", "counts", "starts"):
        assert np.array_equal(getattr(one, field), getattr(other, field)), field
