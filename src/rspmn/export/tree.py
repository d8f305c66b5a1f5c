"""Decision trees: tests of one variable each, which lead to what is decided; a policy as one."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, pairwise, product
from typing import Literal, NamedTuple

import numpy as np

from rspmn.circuit import Leaf
from rspmn.data.keys import group_weights
from rspmn.errors import EvidenceError
from rspmn.export.scores import variables_of
from rspmn.export.state_tables import (
    OTHER,
    Cell,
    Stage,
    decided,
    described,
    is_finite,
    stages_of,
)
from rspmn.infer.base_policy import BasePolicy
from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints
from rspmn.values import Mark, Value, show

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
        return is_number(cell) and cell <= self.value  # type: ignore[operator]

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.variable} is missing"
        words = "is" if self.how == "is" else "is at most"
        return f"{self.variable} {words} {show(self.value)}"


@dataclass(eq=False)
class Node:
    """A test and where it leads to, or a choice."""

    states: Ints  # those that come here
    counts: Array  # [choices], how many of them have each, or their weight
    test: CellTest | None = None
    yes: "Node | None" = None
    no: "Node | None" = None

    @property
    def choice(self) -> int:
        """That of most states."""
        return int(np.argmax(self.counts))

    def leaves(self) -> "Iterator[Node]":
        """Return the nodes that are choices."""
        if self.yes is None or self.no is None:
            yield self
        else:
            yield from self.yes.leaves()
            yield from self.no.leaves()

    def agreement(self) -> float:
        """Return the share of the states in which the tree chooses as the stage does."""
        right = sum(float(leaf.counts.max()) for leaf in self.leaves())
        total = float(self.counts.sum())
        return right / total if total > 0 else 0.0


def grown(
    stage: Stage,
    leaves: int | None = None,
    among: Bools | None = None,
    weights: Array | None = None,
) -> Node:
    """Return a tree for a stage: with all leaves, its choices are those of the stage.

    `stage`: the states and the choices in them. `leaves`: at most so many leaves; those that help
    most come first. `among`: states that count; the choice in others is not looked at [states].
    `weights`: how much each state counts; 1 by default [states].
    """
    states = np.arange(len(stage.codes)) if among is None else np.flatnonzero(among)
    weight = np.ones(len(stage.codes)) if weights is None else weights
    tests = _tests(stage)

    def leaf(states: Ints) -> Node:
        chosen = stage.chosen[states]
        return Node(states, group_weights(chosen, weight[states], len(stage.choices)))

    root = leaf(states)
    waiting: list[tuple[float, int, Node, int]] = []
    order = count()

    def wait(node: Node) -> None:
        found = _best(stage, tests, node, weight)
        if found is not None:
            heapq.heappush(waiting, (-found[1], next(order), node, found[0]))

    wait(root)
    number = 1
    while waiting and (leaves is None or number < leaves):
        _, _, node, k = heapq.heappop(waiting)
        node.test, place, mask = tests[k]
        passed = mask[stage.codes[node.states, place]]
        node.yes, node.no = leaf(node.states[passed]), leaf(node.states[~passed])
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
        node.test = node.yes = node.no = None


def abridge(root: Node, leaves: int, least: float) -> None:
    """Drop tests, those first by which least agrees more, until a tree has so many leaves.

    Then also those by which less than `least` of the weight agrees more.
    """
    while (last := _last_tests(root)) and (
        last[0][0] < least or sum(1 for _ in root.leaves()) > leaves
    ):
        node = last[0][1]
        node.test = node.yes = node.no = None


def _last_tests(node: Node) -> list[tuple[float, Node]]:
    """Return tests that lead to choices only, and by how much more agrees; the least first."""
    if node.yes is None or node.no is None:
        return []
    below = [*_last_tests(node.yes), *_last_tests(node.no)]
    if not below:
        apart = node.yes.counts.max() + node.no.counts.max()
        return [(float(apart - node.counts.max()), node)]
    return sorted(below, key=lambda pair: pair[0])


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
    if all(map(is_number, values)) and OTHER not in cells:
        return found + [CellTest(name, "at most", value) for value in values]  # type: ignore[arg-type]
    return found + [CellTest(name, "is", value) for value in values]  # type: ignore[arg-type]


def _best(
    stage: Stage, tests: list[tuple[CellTest, int, Bools]], node: Node, weight: Array
) -> tuple[int, float] | None:
    """Return the test that separates the choices best, and how much it gains; None of a leaf."""
    chosen, codes = stage.chosen[node.states], stage.codes[node.states]
    kinds = len(stage.choices)
    if len(chosen) == 0 or (chosen == chosen[0]).all():
        return None
    joint = []
    for place, cells in enumerate(stage.cells.values()):
        cell = codes[:, place] * kinds + chosen
        table = np.bincount(cell, weight[node.states], len(cells) * kinds)
        joint.append(table.reshape(len(cells), kinds))
    before, best = _entropy(node.counts), None
    for k, (_, place, mask) in enumerate(tests):
        yes, no = joint[place][mask].sum(axis=0), joint[place][~mask].sum(axis=0)
        if yes.any() and no.any():
            gain = before - _entropy(yes) - _entropy(no)
            if best is None or gain > best[1] + 1e-12:
                best = (k, gain)
    return best


def _entropy(counts: Array) -> float:
    """Return the entropy of counts, times their sum."""
    some = counts[counts > 0]
    share = some / some.sum()
    known = share > 0  # that of a very small count may be 0
    return float(-(some[known] * np.log(share[known])).sum())


def is_number(value: object) -> bool:
    """Tell whether a value is a number, which can be at most another."""
    return isinstance(value, int | float) and not isinstance(value, bool | Mark)


#: Leaves of the tree of a policy over numbers, and states that it is fitted to.
LEAVES, POINTS = 32, 20_000


def to_tree(policy: BasePolicy, t: int = 0, leaves: int | None = None) -> str:
    """Return what a policy decides at time t as a decision tree, in words.

    It is about states that the model knows, with nothing missing.

    Parameters
    ----------
    policy, t
        The policy, and the time step.
    leaves
        At most so many leaves; then the head says in how many states the tree is right. By default
        all that are needed or, where states are numbers, 32.

    Examples
    --------
    >>> from rspmn.envs.paper_grid import paper_grid
    >>> print(to_tree(paper_grid().policy(horizon=4)))
    The decisions of a policy at step 0 of 4.
    <BLANKLINE>
    action, by x, y:
    x is at most 0?
      yes: y is at most 0?
           yes: down
           no:  right
      no:  down
    <BLANKLINE>
    """
    finite = is_finite(policy)
    stages = stages_of(policy, t) if finite else [_grid(policy, t)]
    most = leaves if finite or leaves is not None else LEAVES
    lines = [described(policy, t)]
    for stage in stages:
        known = np.array([choice is not None for choice in stage.choices])[stage.chosen]
        root = grown(stage, most, known & stage.is_complete)
        share = root.agreement()
        lines += ["", f"{', '.join(stage.decisions)}, by {', '.join(stage.cells)}:"]
        if share < 1:
            lines.append(f"(agrees with the policy in {share:.1%} of {len(root.states)} states)")
        lines += _lines(stage, root)
    return "\n".join(lines) + "\n"


def _lines(stage: Stage, node: Node) -> list[str]:
    if node.test is None or node.yes is None or node.no is None:
        choice = stage.choices[node.choice]
        return [", ".join(map(show, choice or ()))]
    found = [f"{node.test}?"]
    for word, below in (("yes: ", node.yes), ("no:  ", node.no)):
        first, *rest = _lines(stage, below)
        found += [f"  {word}{first}", *(f"     {line}" for line in rest)]
    return found


def _grid(policy: BasePolicy, t: int) -> Stage:
    """Return the decisions on a grid of numbers, as fine as the limit of states allows."""
    points = {name: _points(policy, name) for name in variables_of(policy)}
    while np.prod([len(each) for each in points.values()]) > POINTS:
        widest = max(points, key=lambda name: len(points[name]))
        if len(points[widest]) <= 2:
            raise EvidenceError(f"{len(points)} variables are too many for a tree")
        points[widest] = points[widest][::2]
    codes = np.array([*product(*(range(len(own)) for own in points.values()))], dtype=np.int64)
    decisions = tuple(policy.planned.together)
    return decided(policy, t, points, decisions, codes, 0)


def _points(policy: BasePolicy, name: str) -> tuple[Cell, ...]:
    """Return values of a variable: all that are listed, or numbers on and between knots."""
    listed: dict[Cell, None] = {}
    knots: set[float] = set()
    for node in policy.index.network.nodes:
        if isinstance(node, Leaf) and node.variable == name:
            atoms, pieces = node.distribution.atoms(), node.distribution.pieces()
            if atoms is not None:
                listed |= dict.fromkeys(value for value in atoms if not isinstance(value, Mark))
            else:
                span = node.distribution.span() if pieces is None else pieces[0]
                knots |= {float(value) for value in span}  # type: ignore[arg-type]
    if not knots:
        return tuple(listed) or (OTHER,)
    ordered = sorted(knots)
    between = [a + (b - a) * k / 4 for a, b in pairwise(ordered) for k in range(4)]
    if policy.model.schema.kinds.get(name) is Kind.INTEGER:
        return tuple(sorted({round(value) for value in [*between, ordered[-1]]}))
    return tuple(float(f"{value:.6g}") for value in [*between, ordered[-1]])
