"""Codes of variables as a matrix that tables share."""

import numpy as np
from numpy.typing import NDArray

from rspmn.learn.structure.code_table import CodeTable


def codes(*numbers: int) -> NDArray[np.int32]:
    return np.array(numbers, np.int32)


def test_a_variable_that_is_replaced_has_its_new_codes() -> None:
    one = CodeTable({"x": codes(0, 1), "y": codes(2, 3)})
    rows = np.array([1, 0, 1])
    assert one.take(rows, ["x", "y"]).tolist() == [[1, 3], [0, 2], [1, 3]]
    other = one.with_more({"y": codes(4, 5)})
    assert other.take(rows, ["x", "y"]).tolist() == [[1, 5], [0, 4], [1, 5]]
    more = other.with_more({"z": codes(6, 7)})
    assert more.take(rows, ["z", "y"]).tolist() == [[7, 5], [6, 4], [7, 5]]
    assert one.take(rows, ["y"]).tolist() == [[3], [2], [3]]
