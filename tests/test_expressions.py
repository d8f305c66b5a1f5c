"""Expressions of columns: what they mean, and what is refused."""

from typing import Any

import numpy as np
import pytest

from rspmn.errors import DataError
from rspmn.expressions import Expression, expression_of, summed
from rspmn.expressions.evaluate import evaluate

NAN = float("nan")
COLUMNS: dict[str, Any] = {
    "cost": np.array([0.0, 2.0, NAN]),
    "reward": np.array([1, 2, 3]),
    "busy": np.array([True, False, True]),
    "status": np.array(["died", None, "sent home"], dtype=object),
    "was": np.array(["died", "died", "cured"], dtype=object),
    "died": np.array([1, 0, 0]),
    "net gain": np.array([1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-cost", [0, -2, NAN]),
        ("reward - 0.1*cost", [1, 1.8, NAN]),
        ("(reward + 1)/2 - +1", [0, 0.5, 1]),
        ("`net gain`*2", [2, 4, 6]),
        ("10*busy", [10, 0, 10]),
        ("1 - (cost or 0)", [1, -1, 1]),
        ("5*(status == 'sent home')", [0, 0, 5]),  # what cannot be decided counts 0
        ("status == was", [1, NAN, 0]),
        ("status != cured", [1, NAN, 1]),
        ("status in (cured, 'sent home')", [0, NAN, 1]),
        ("status in (cured)", [0, NAN, 0]),
        ("status not in (cured, 'died')", [0, NAN, 1]),
        ("not status == 'died'", [0, NAN, 1]),
        ("cost > 1", [0, 1, NAN]),
        ("0 < reward <= 2", [1, 1, 0]),
        ("reward in (1, 3)", [1, 0, 1]),
        ("reward in ('1', '3')", [1, 0, 1]),  # a file of words may hold numbers
        ("cost > 1 and busy", [0, 0, NAN]),
        ("cost > 1 or busy", [1, 1, 1]),
        ("not busy", [0, 1, 0]),
        ("not died", [0, 1, 1]),
        ("busy == true", [1, 0, 1]),
        ("busy != 1", [0, 1, 0]),
        ("died == False", [0, 1, 1]),
        ("cost is missing", [0, 0, 1]),
        ("status is not missing", [1, 0, 1]),
        ("status is missing or cost > 1", [0, 1, NAN]),
    ],
)
def test_values(text: str, expected: list[float]) -> None:
    np.testing.assert_allclose(evaluate(Expression.parse(text), COLUMNS), expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cots*2", "no column 'cots': did you mean 'cost'"),
        ("stats in (died, cured)", "no column 'stats': did you mean 'status'"),
        ("reward > x", "numbers are compared with the text 'x'"),
        ("x == y", "no column 'x'"),
        ("not x", "no column 'x'"),
        ("2*status", "status: expected numbers, found text"),
        ("status and busy", "'status' is not a condition"),
        ("status > 'a'", "text can be compared by == and != only"),
        ("status == 3", "quote the number"),
        ("status == died", "text that is the name of a column"),
        ("reward/cost", "expected division by a constant other than 0"),
        ("reward/0", "expected division by a constant other than 0"),
        ("1 + 2", "no column in it"),
        ("busy and 1", "'1' is not a condition"),
        ("x" * 20_000, "longer than 10000 characters"),
        ("1 in (reward, 2)", "no column on the left of in"),
        ("+".join(["reward"] * 900), "nested too deeply"),
    ],
)
def test_what_columns_do_not_allow(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message.replace("(", r"\(").replace("+", r"\+")):
        evaluate(Expression.parse(text), COLUMNS)


@pytest.mark.parametrize(
    "text",
    ["cost.real", "abs(cost)", "cost**2", "~busy", "[x for x in y]", "lambda: 0", "cost[0]",
     "reward if busy else 0", "cost is None", "f'{cost}'", "1e999*cost", f"{10**400}*cost", "...",
     "(x := 3)", "b'x' == status", "1j*cost", "cost % 2"],
)  # fmt: skip
def test_nothing_else_is_understood(text: str) -> None:
    with pytest.raises(DataError, match="is not supported"):
        Expression.parse(text)


@pytest.mark.parametrize("text", ["cost +", "", "status in (a b)", "class == 3", "a; b", "(" * 900])
def test_what_is_no_expression(text: str) -> None:
    with pytest.raises(DataError, match="is not an expression of columns"):
        Expression.parse(text)


def test_names_are_looked_up_first() -> None:
    assert expression_of("-cost", ["cost"]).columns(["cost", "x"]) == ("cost",)
    with pytest.raises(DataError, match="no column 'csot' in the table: did you mean 'cost'"):
        expression_of("csot", ["cost"])
    with pytest.raises(DataError, match="no column 'gain [(]EUR' in the table: did you mean"):
        expression_of("gain (EUR", ["gain (EUR)"])


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ("anything (EUR)", "anything (EUR)"),
        (["reward"], "reward"),
        (["reward", "-0.1*cost"], "reward - 0.1*cost"),
        (["-cost", "gain (EUR)"], "-cost + `gain (EUR)`"),
        (["-cost", "x > 3"], "-cost + (x > 3)"),
        ({"o k": {"a": 1.5, "it's": -2}}, "1.5*(`o k` == 'a') - 2*(`o k` == \"it's\")"),
        (["-cost", {"status": {"died": -100}}], "-cost - 100*(status == 'died')"),
    ],
)  # fmt: skip
def test_sums(parts: Any, expected: str) -> None:
    assert summed(parts) == expected


@pytest.mark.parametrize(
    "parts", [3, [], {}, {"status": 3}, {"status": {}}, {"status": {"died": "bad"}},
              {"status": {"died": True}}, {"status": {"died": NAN}}, [3]]
)  # fmt: skip
def test_what_is_no_sum(parts: Any) -> None:
    with pytest.raises(DataError, match="utility: "):
        summed(parts)
