"""Explicit MDPs: values worked by hand, and what is refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rspmn import Schema
from rspmn.envs.mdp import MDP
from rspmn.errors import CircuitError, DataError


def tiny() -> MDP:
    """In a, stay earns 1 and go 4 half of the time, for the end, or 0, for b; in b, go earns 10."""
    kinds = {"x": "categorical", "d": "categorical", "u": "continuous"}
    return MDP(
        "tiny",
        Schema([["x"], ["d"]], ["d"], "u", kinds),
        states=(("a",), ("b",), ("end",)),
        actions=(("go",), ("stay",)),
        indptr=np.array([0, 2, 3, 4, 5, 6, 7]),
        successors=np.array([1, 2, 0, 2, 1, 2, 2]),
        probabilities=np.array([0.5, 0.5, 1, 1, 1, 1, 1]),
        rewards=np.array([0.0, 4, 1, 10, 0, 0, 0]),
        start=np.array([1.0, 0, 0]),
        terminal=np.array([False, False, True]),
        episodes=10,
        horizon=3,
    )


def test_value_iteration_by_hand() -> None:
    # 1 to go: a: go .5·0 + .5·4 = 2, stay 1; b: go 10
    # 2 to go: a: go 2 + .5·10 = 7, stay 1 + 2 = 3; b: go 10, and stay 0 + 10, a tie
    # 3 to go: a: go 2 + .5·10 = 7, stay 1 + 7 = 8
    values, policy = tiny().value_iteration(3)
    assert values.tolist() == [8, 10, 0]
    assert policy[:, 0].tolist() == [1, 0, 0]
    assert policy[:, 1].tolist() == [0, 0, 0]
    assert tiny().optimum(2, discount=0.5) == 4.5  # go: 2 + .5·.5·10
    assert tiny().optimum(0) == 0


def test_evaluation_by_hand() -> None:
    # at random with 1 to go: a 1.5, b 5; with 2: ½(2 + ½·5) + ½(1 + 1.5) = 3.5
    mdp = tiny()
    assert mdp.evaluate(None, 2) == 3.5
    assert mdp.evaluate(np.full((2, 3, 2), 0.5), 2) == 3.5
    assert mdp.evaluate(np.array([[1, 1, 1], [0, 0, 0]]), 2) == 3  # stay, then go: 1 + 2
    assert mdp.evaluate(np.array([[0.0, 1], [1, 0], [1, 0]]), 4) == 4  # always stay in a


# ---- what is refused -----------------------------------------------------------------

BAD: list[tuple[dict[str, Any], str]] = [
    (
        {"probabilities": [0.5, 0.4, 1, 1, 1, 1, 1]},
        r"tiny: .*'go'.* state \('a',\) sums to 0.9, not 1",
    ),
    ({"probabilities": [1.5, -0.5, 1, 1, 1, 1, 1]}, "positive probabilities"),
    ({"rewards": [0, 4, 1, 10, 0, 0, 1]}, r"terminal state \('end',\) must stay"),
    ({"successors": [1, 2, 0, 2, 1, 2, 1]}, r"terminal state \('end',\) must stay"),
    ({"successors": [1, 2, 0, 2, 1, 2, 3]}, "none of the 3 states"),
    ({"start": [0.5, 0, 0.5]}, "start must sum to 1"),
    ({"start": [1.0, 0]}, r"start has shape \(2,\), expected \(3,\)"),
    ({"indptr": [0, 2, 3, 3, 5, 6, 7]}, r"nothing follows action \('go',\) in state \('b',\)"),
    ({"behaviour": np.full((3, 2), 0.4)}, "behaviour must sum to 1"),
    ({"states": (("a",), ("a",), ("end",))}, r"state \('a',\) is a duplicate"),
    ({"actions": (("go", 1), ("stay", 2))}, r"does not give values to \['d'\]"),
    ({"schema": Schema([["x"], ["d"]], ["d"], "u")}, "no kind for 'x'"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_tables_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(CircuitError, match=message):
        replace(tiny(), **change)


def test_bad_questions_are_refused() -> None:
    mdp = tiny()
    for policy in (np.zeros((2, 3)), np.zeros((1, 3), int), np.full((2, 3), 2), np.ones((3, 2))):
        with pytest.raises(DataError, match="tiny: a policy is"):
            mdp.evaluate(policy, 2)
    with pytest.raises(DataError, match="horizon: expected 0 or more, found -1"):
        mdp.optimum(-1)
    with pytest.raises(DataError, match="episodes: expected 1 or more, found 0"):
        mdp.generate(0, 3, 0)
    with pytest.raises(DataError, match="did you mean 'flags'"):
        mdp.generate(1, 3, 0, "flag")  # type: ignore[arg-type]
