"""Decision trees: tests of one variable each, which lead to what is decided."""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Literal, NamedTuple

import numpy as np

from rspmn.export.state_tables import OTHER, Cell, Stage
from rspmn.types import Bools, Ints
from rspmn.values import Mark, Value

#: How a value is tested: it is equal to another, at most another, or missing.
How = Literal["is", "at most", "missing"]


class CellTest(NamedTuple):
    """A test; a missing value passes none but that for missing values."""

    variable: str
    how: How
    value: Value | None = None

    def passes(self, cell: Cell) -> bool:
        """Tell whether a cell passes."""
        if cell is None or self.how == "missing":
            return cell is None and self.how == "missing"
        if self.how == "is":
            return cell == self.value
        return _is_number(cell) and cell <= self.value  # type: ignore[operator]


@dataclass(eq=False)
class Node:
    """A test and where it leads to, or a choice."""

    choice: int  # that of most states
    states: Ints  # those that come here
    test: CellTest | None = None
    yes: "Node | None" = None
    no: "Node | None" = None


def grown(stage: Stage, leaves: int | None = None, among: Bools | None = None) -> Node:
    """Return a tree for a stage: with all leaves, its choices are those of the stage.

    Parameters
    ----------
    stage
        The states and the choices in them.
    leaves
        At most so many leaves; those that help most come first.
    among
        States that count; the choice in others is not looked at. [states]
    """
    states = np.arange(len(stage.codes)) if among is None else np.flatnonzero(among)
    tests = _tests(stage)
    root = _leaf(stage, states)
    waiting: list[tuple[float, int, Node, int]] = []
    order = count()

    def wait(node: Node) -> None:
        found = _best(stage, tests, node)
        if found is not None:
            heapq.heappush(waiting, (-found[1], next(order), node, found[0]))

    wait(root)
    number = 1
    while waiting and (leaves is None or number < leaves):
        _, _, node, k = heapq.heappop(waiting)
        test, place, mask = tests[k]
        passed = mask[stage.codes[node.states, place]]
        node.test = test
        node.yes, node.no = (
            _leaf(stage, node.states[passed]), _leaf(stage, node.states[~passed])
        )  # fmt: skip
        wait(node.yes)
        wait(node.no)
        number += 1
    _prune(root)
    return root


def _prune(node: Node) -> None:
    """Drop tests that lead to the same choice either way."""
    if node.yes is None or node.no is None:
        return
    _prune(node.yes)
    _prune(node.no)
    if node.yes.test is None and node.no.test is None and node.yes.choice == node.no.choice:
        node.choice, node.test, node.yes, node.no = node.yes.choice, None, None, None


def agreement(stage: Stage, root: Node) -> float:
    """Return the share of a tree's states in which it chooses as the stage does."""
    waiting, right = [root], 0
    for node in waiting:
        if node.yes is not None and node.no is not None:
            waiting += [node.yes, node.no]
        else:
            right += int((stage.chosen[node.states] == node.choice).sum())
    return right / max(1, len(root.states))


def _leaf(stage: Stage, states: Ints) -> Node:
    counts = np.bincount(stage.chosen[states], minlength=len(stage.choices))
    return Node(int(np.argmax(counts)), states)


def _tests(stage: Stage) -> list[tuple[CellTest, int, Bools]]:
    """Return all tests of single variables, the variable's place, and which cells pass."""
    found = []
    for place, (name, cells) in enumerate(stage.cells.items()):
        for test in _tests_of(name, cells):
            mask = np.array([test.passes(cell) for cell in cells])
            if mask.any() and not mask.all():
                found.append((test, place, mask))
    return found


def _tests_of(name: str, cells: tuple[Cell, ...]) -> list[CellTest]:
    values = [cell for cell in cells if cell is not None and cell is not OTHER]
    found = [CellTest(name, "missing")]
    if all(map(_is_number, values)) and OTHER not in cells:
        return found + [CellTest(name, "at most", value) for value in values]  # type: ignore[arg-type]
    return found + [CellTest(name, "is", value) for value in values]  # type: ignore[arg-type]


def _best(
    stage: Stage, tests: list[tuple[CellTest, int, Bools]], node: Node
) -> tuple[int, float] | None:
    """Return the test that separates the choices best, and how much it gains; None of a leaf."""
    chosen, codes = stage.chosen[node.states], stage.codes[node.states]
    kinds = len(stage.choices)
    if len(chosen) == 0 or (chosen == chosen[0]).all():
        return None
    joint: Mapping[int, Ints] = {
        place: np.zeros((len(cells), kinds), dtype=np.int64)
        for place, cells in enumerate(stage.cells.values())
    }
    for place, table in joint.items():
        np.add.at(table, (codes[:, place], chosen), 1)
    before, best = _entropy(np.bincount(chosen, minlength=kinds)), None
    for k, (_, place, mask) in enumerate(tests):
        yes, no = joint[place][mask].sum(axis=0), joint[place][~mask].sum(axis=0)
        if yes.any() and no.any():
            gain = before - _entropy(yes) - _entropy(no)
            if best is None or gain > best[1] + 1e-12:
                best = (k, gain)
    return best


def _entropy(counts: Ints) -> float:
    """Return the entropy of counts, times their sum."""
    some = counts[counts > 0].astype(np.float64)
    return float(-(some * np.log(some / some.sum())).sum())


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool | Mark)
