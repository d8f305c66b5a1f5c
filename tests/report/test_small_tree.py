"""Small trees say what rows say, as far as they can."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rspmn.report.small_tree import LEAVES, small_tree


def said(tree: dict[str, object], row: dict[str, object]) -> object:
    """Ask a tree of questions "x is at most 3" and "y is b"."""
    while "question" in tree:
        name, _, *most, value = str(tree["question"]).split()
        yes = float(str(row[name])) <= float(value) if most else str(row[name]) == value
        tree = tree["yes" if yes else "no"]  # type: ignore[assignment]
    return tree["decision"]


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from("abc"), st.sampled_from("LR")), min_size=1
    )
)
def test_its_agreement_is_what_it_says(rows: list[tuple[int, str, str]]) -> None:
    weights = np.arange(1.0, len(rows) + 1)
    columns: dict[str, list[int | str]] = {
        "x": [x for x, _, _ in rows], "y": [y for _, y, _ in rows],
    }  # fmt: skip
    tree = small_tree(columns, [made for _, _, made in rows], weights)
    right = [said(tree, {"x": x, "y": y}) == made for x, y, made in rows]
    assert np.isclose(tree["agrees"], weights[right].sum() / weights.sum())
    assert tree["leaves"] <= LEAVES


def test_questions_that_only_work_together() -> None:
    rows = [(x, y, "same" if x == y else "other") for x in (0, 1) for y in (0, 1)]
    weights = np.array([1.0, 1.1, 1.2, 1.3])  # ties would hide the first question
    columns = {"x": [x for x, _, _ in rows], "y": [y for _, y, _ in rows]}
    tree = small_tree(columns, [made for _, _, made in rows], weights)
    assert np.isclose(tree["agrees"], 1)


def test_rows_of_no_weight_agree_on_nothing() -> None:
    tree = small_tree({"x": [0, 1]}, ["L", "R"], np.zeros(2))
    assert tree["agrees"] == 0
