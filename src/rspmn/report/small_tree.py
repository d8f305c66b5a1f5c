"""A policy as a small tree of questions, for reading: what is decided where, in words.

The tree is grown greedily, on states weighed by how often the log visited them, and kept small. It
is an abridgement: the share of logged steps in which it says what the policy says stands beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rspmn.types import Array, Bools, Ints
from rspmn.values import Value, show

#: The most leaves that are read at a glance.
LEAVES = 12
#: A question must make so much of the steps agree more, or it is not asked.
LEAST_GAIN = 0.004


@dataclass(frozen=True)
class DecidedStates:
    """States with what is decided in them."""

    columns: Mapping[
        str, Sequence[Value | None]
    ]  # by variable; None where a row has several values
    decided: Sequence[str]
    weights: Array  # [rows], logged steps


@dataclass(frozen=True)
class TreeQuestion:
    """Whether a variable is at most a number, or is some value."""

    variable: str
    at: Value
    is_number: bool

    def __str__(self) -> str:
        return f"{self.variable} {'≤' if self.is_number else 'is'} {show(self.at)}"


def small_tree(rows: DecidedStates) -> dict[str, Any]:
    """Return a tree of questions as nested mappings, and how often it agrees with the rows.

    >>> rows = DecidedStates({"x": [1, 2, 8, 9]}, ["a", "a", "b", "b"], np.ones(4))
    >>> tree = small_tree(rows)
    >>> tree["question"], tree["yes"]["decision"], tree["no"]["decision"], tree["agrees"]
    ('x ≤ 2', 'a', 'b', 1.0)
    """
    grown = _Grown(rows)
    while len(grown.leaves) < LEAVES and grown.split_best():
        pass
    tree = grown.as_dict()
    return {**tree, "agrees": grown.agreement(), "leaves": len(grown.leaves)}


class _Grown:
    """A tree while it grows."""

    def __init__(self, rows: DecidedStates) -> None:
        self.rows = rows
        self.names, code = np.unique(np.array(rows.decided, dtype=object), return_inverse=True)
        self.code: Ints = code
        self.votes = np.zeros((len(code), len(self.names)))  # [rows, decisions]
        self.votes[np.arange(len(code)), code] = rows.weights
        self.leaves: dict[str, Ints] = {"": np.arange(len(code))}  # rows by path of y and n
        self.questions: dict[str, TreeQuestion] = {}
        self._best: dict[str, tuple[float, TreeQuestion, Bools] | None] = {}
        self._answers = [*_answers(rows)]

    def split_best(self) -> bool:
        """Ask the question that makes most steps agree; tell whether there is one."""
        found = [(split[0], path) for path in self.leaves if (split := self._split(path))]
        if not found:
            return False
        gain, path = max(found, key=lambda pair: (pair[0], -len(pair[1])))
        if gain < LEAST_GAIN * self.rows.weights.sum():
            return False
        split, here = self._split(path), self.leaves.pop(path)
        assert split is not None
        _, self.questions[path], yes = split
        self.leaves[path + "y"], self.leaves[path + "n"] = here[yes[here]], here[~yes[here]]
        return True

    def _split(self, path: str) -> tuple[float, TreeQuestion, Bools] | None:
        if path not in self._best:
            self._best[path] = self._find(self.leaves[path])
        return self._best[path]

    def _find(self, here: Ints) -> tuple[float, TreeQuestion, Bools] | None:
        votes = self.votes[here]
        total = votes.sum(axis=0)
        best: tuple[float, float, TreeQuestion, Bools] | None = None
        for question, yes in self._answers:
            part = yes[here]
            if not 0 < part.sum() < len(here):
                continue
            left = votes[part].sum(axis=0)
            right = total - left
            gain = float(left.max() + right.max() - total.max())
            purer = _purity(left) + _purity(right) - _purity(total)
            if purer > 1e-9 and (best is None or (purer, gain) > (best[1], best[0])):
                best = gain, purer, question, yes
        if best is None:
            return None
        # A question that only prepares the next one counts by how much purer it makes the parts.
        return max(best[0], best[1] / 2), best[2], best[3]

    def agreement(self) -> float:
        """Return the share of steps in which the tree says what the policy says."""
        right = sum(self.votes[here].sum(axis=0).max() for here in self.leaves.values())
        return float(right / self.rows.weights.sum())

    def as_dict(self, path: str = "") -> dict[str, Any]:
        """Return a part of the tree; parts that say the same are one."""
        if path in self.leaves:
            votes = self.votes[self.leaves[path]].sum(axis=0)
            share = float(votes.max() / votes.sum())
            decision = self.names[int(votes.argmax())]
            return {"decision": decision, "share": share, "steps": float(votes.sum())}
        yes, no = self.as_dict(path + "y"), self.as_dict(path + "n")
        if yes.get("decision", 0) == no.get("decision", 1):
            steps = yes["steps"] + no["steps"]
            right = yes["share"] * yes["steps"] + no["share"] * no["steps"]
            return {"decision": yes["decision"], "share": right / steps, "steps": steps}
        return {"question": str(self.questions[path]), "yes": yes, "no": no}


def _purity(votes: Array) -> float:
    """Return the steps that agree if decisions are drawn by their shares."""
    total = float(votes.sum())
    return float((votes**2).sum() / total) if total else 0.0


def _answers(rows: DecidedStates) -> list[tuple[TreeQuestion, Bools]]:
    """Return all questions, and which rows answer them with yes."""
    found = []
    for name, column in rows.columns.items():
        values = {value for value in column if value is not None}
        numbers = sorted(float(v) for v in values if isinstance(v, int | float))
        if len(numbers) == len(values) and not any(isinstance(v, bool) for v in values):
            line = np.array([np.inf if v is None else v for v in column], dtype=float)
            pairs = [(TreeQuestion(name, _short(v), True), line <= v) for v in numbers[:-1]]
            found += pairs[:: max(1, len(pairs) // 64)]
            continue
        for value in sorted(values, key=show):
            is_value = np.array([each == value for each in column])
            found.append((TreeQuestion(name, value, False), is_value))
    return found


def _short(number: float) -> Value:
    return int(number) if number.is_integer() else number
