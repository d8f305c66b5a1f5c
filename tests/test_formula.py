"""Expressions have the values of a table of cases, which is that of what is written out, too."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rspmn.expressions import Expression
from rspmn.expressions.evaluate import evaluate

TABLE = json.loads((Path(__file__).parent / "formulas.json").read_text(encoding="utf-8"))


def cases() -> Iterator[tuple[str, dict[str, Any], dict[str, Any], Any]]:
    for row in TABLE:
        for state, expected in row["cases"]:
            yield row["expression"], row["columns"], state, expected


def array(value: Any, holds: str) -> Any:
    if holds == "text":
        return np.array([value], dtype=object)
    # A condition that is missing has no array of booleans: it is a number, as in tables.
    return np.array([np.nan if value is None else value])


@pytest.mark.parametrize(("text", "columns", "state", "expected"), [*cases()])
def test_expressions_have_these_values(
    text: str, columns: dict[str, Any], state: dict[str, Any], expected: Any
) -> None:
    expression = Expression.parse(text)
    arrays = {name: array(value, columns[name]) for name, value in state.items()}
    found = evaluate(expression, arrays)[0]
    assert (None if np.isnan(found) else found) == expected
