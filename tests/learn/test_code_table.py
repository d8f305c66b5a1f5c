"""Codes of variables as a matrix that tables share."""

import numpy as np
from numpy.typing import NDArray

from rspmn.data.columns import Column
from rspmn.learn.structure.code_table import CodeTable
from rspmn.learn.structure.rows import TakenColumns
from rspmn.schema import Kind


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


def test_new_codes_of_some_rows_may_need_wider_integers() -> None:
    one = CodeTable({"x": codes(0, 1, 2), "y": codes(3, 4, 5)})
    rows = np.array([2, 0])
    other = one.recoded(rows, {"y": codes(300, 7)})
    assert other["x"].tolist() == [2, 0]
    assert other["y"].tolist() == [300, 7]
    more = one.with_more({"z": codes(6, 7, 8)}).recoded(rows, {"y": codes(0, 1)})
    assert more.take(np.array([1, 0]), ["z", "y"]).tolist() == [[6, 1], [8, 0]]
    assert [*more] == ["x", "y", "z"]
    assert one["y"].tolist() == [3, 4, 5]


def test_columns_of_rows_of_rows() -> None:
    column = Column(Kind.CATEGORICAL, codes(0, 1, 2, 0), ("a", "b", "c"))
    some = TakenColumns({"x": column}, np.array([3, 2, 1]))
    fewer = TakenColumns(some, np.array([1, 2]))
    assert some["x"].decode() == ["a", "c", "b"]
    assert fewer["x"].decode() == ["c", "b"]
    assert [*fewer] == ["x"]
