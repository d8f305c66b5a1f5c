"""The rule at max nodes: which branch of a decision is best.

A `Criterion` scores the branches of many max nodes at once. Of each node the branch of highest
score is taken, and what the node passes up is that branch's worth, its expected utility. Plain and
compiled queries use the same object, so a constrained or cautious maximum is one class with one
method:

>>> class Only:
...     '''Nothing but some actions.'''
...     def __init__(self, *actions):
...         self.actions = actions
...     def scores(self, worth, branches):
...         return np.where(np.isin(branches.values, self.actions), worth, np.nan)
>>> from rspmn.envs.paper_grid import paper_grid
>>> paper_grid().meu({"x": 0, "y": 0}, horizon=4, criterion=Only("right", "down", "noop"))
16.0
>>> paper_grid().meu({"x": 0, "y": 0}, horizon=4, criterion=Only("right", "noop"))
-4.0

Scores that differ by rounding only are ties. Of tied branches the likeliest is taken, given what is
known of later variables; of those the one that earns soonest (`Evaluation.delay`); of those the
first.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from rspmn.circuit import (
    Categorical,
    Distribution,
    Leaf,
    Max,
    Network,
    Node,
    Product,
    Sum,
    Utility,
    fold_up,
    walk_down,
)
from rspmn.errors import EvidenceError, did_you_mean
from rspmn.types import Array, Bools, Ints
from rspmn.values import Mark, Value

#: Scores that differ by no more than this, relative to the largest of the node, are a tie. A value
#: of h steps is a sum of about h · k rounded terms, k the successors of a step, so its relative
#: rounding error is at most h · k · 2⁻⁵³: less than this for h · k up to 4 million.
TIE = 1e-9

#: A branch: a max node of a network, and which of its children.
Edge = tuple[int, int]


class Criterion(Protocol):
    """Scores the branches of max nodes.

    A criterion must score the branches of one node independently of other nodes, must give the
    same scores when it is asked again, and must not change `worth`. `rspmn.testing.check_criterion`
    checks this.
    """

    def scores(self, worth: Array, branches: "Branches") -> Array:  # [branches]
        """Return a number for each branch; the highest of a node wins, NaN is never taken.

        Parameters
        ----------
        worth
            The expected utility of each branch, the best decisions made after it. NaN where the
            evidence rules the branch out, -∞ where it is not known what follows it. [branches]
        branches
            What the branches are.
        """
        ...


class MaximumExpectedUtility:
    """The default: what is worth most is best."""

    def scores(self, worth: Array, branches: "Branches") -> Array:  # noqa: ARG002
        """Return the expected utilities themselves."""
        return worth

    def __repr__(self) -> str:
        return "MaximumExpectedUtility()"


MEU = MaximumExpectedUtility()


class Branches:
    """The branches of some max nodes, those of one node next to each other.

    All arrays have one entry for each branch, so that conditions are combined as arrays. They are
    computed when they are first used.
    """

    def __init__(
        self,
        context: "Context",
        starts: Ints,
        size: int,
        edges: Callable[[], Sequence[Sequence[Edge]]],
    ) -> None:
        self.starts = starts  # [nodes], the first branch of each
        counts = np.diff(np.append(starts, size))
        self.node: Ints = np.repeat(np.arange(len(starts)), counts)  # [branches], which node's
        self._context = context
        self._find_edges = edges
        self._found: dict[tuple[str, type, Value], Bools] = {}

    @cached_property
    def _edges(self) -> Sequence[Sequence[Edge]]:  # [branches]
        # One edge each, but for a question on partial evidence: there an action stands for the
        # branches of all max nodes that it may be taken in.
        return self._find_edges()

    @cached_property
    def decisions(self) -> Array:  # [branches], of objects
        """The name of the decision that each branch belongs to."""
        return _objects([self._max(edges[0][0]).decision for edges in self._edges])

    @cached_property
    def values(self) -> Array:  # [branches], of objects
        """The value of the decision, the action, that each branch stands for."""
        return _objects([self._max(node).values[k] for ((node, k), *_) in self._edges])

    @cached_property
    def steps(self) -> Array:  # [branches]
        """How many logged steps took each branch; 0 in models written by hand."""
        found = [
            sum(self._context.steps[self._max(node).children[k]] for node, k in edges)
            for edges in self._edges
        ]
        return np.array([0.0 if math.isinf(steps) else steps for steps in found])

    @cached_property
    def marked(self) -> Bools:  # [branches]
        """Which branches are END or UNKNOWN: those are no choices, and scores do not matter."""
        return np.array([isinstance(value, Mark) for value in self.values], dtype=bool)

    def may_be(self, name: str, value: Value) -> Bools:  # [branches]
        """Return where a variable that is known before the decision can have a value.

        States that behave alike share a max node: there it may have several.
        """
        key = name, type(value), value
        if key not in self._found:
            self._found[key] = np.array(
                [
                    any(self._context.may_be(node, name, value) for node, _ in edges)
                    for edges in self._edges
                ],
                dtype=bool,
            )
        return self._found[key]

    def _max(self, index: int) -> Max:
        node = self._context.network.nodes[index]
        assert isinstance(node, Max)
        return node


class Context:
    """What stands above and below the max nodes of a network."""

    def __init__(self, network: Network) -> None:
        self.network = network

    def branches_of(self, nodes: Ints, starts: Ints) -> Branches:
        """Return the branches of some max nodes; `starts` is where those of each start."""
        sizes = [(i, len(self.network.nodes[i].children)) for i in nodes.tolist()]
        return Branches(
            self, starts, sum(size for _, size in sizes),
            lambda: [[(i, k)] for i, size in sizes for k in range(size)],
        )  # fmt: skip

    @cached_property
    def steps(self) -> list[float]:  # [nodes]
        """The logged steps below each node: of what is added the fewest, else all."""

        def combine(node: Node, below: list[float]) -> float:
            match node:
                case Utility():
                    return node.count
                case Product():
                    return min(below, default=math.inf)
                case Sum() | Max():
                    return sum(below)
                case _:
                    return math.inf

        return fold_up(self.network, combine)

    def may_be(self, index: int, name: str, value: Value) -> bool:
        """Tell whether a variable above a max node can have a value."""
        above = self._above[index]
        if name not in above:
            decision = getattr(self.network.nodes[index], "decision", "")
            raise EvidenceError(
                f"{name!r} is not known before {decision!r}: {did_you_mean(name, sorted(above))}"
            )
        return any(held.log_prob(value) > -math.inf for held in above[name])

    @cached_property
    def _above(self) -> dict[int, "Above"]:
        """Of each node, the distributions and decisions on the ways to it from the roots."""
        leaves = fold_up(self.network, _leaves_below)

        def send(_: int, node: Node, arrived: list[Above]) -> list[tuple[int, Above]]:
            above = _union(arrived)
            match node:
                case Product():
                    beside = _union([leaves[c] or {} for c in node.children])
                    return [(c, {**above, **beside}) for c in node.children if leaves[c] is None]
                case Max():
                    made = zip(node.values, node.children, strict=True)
                    return [(c, {**above, node.decision: _certain(v)}) for v, c in made]
                case _:
                    return [(c, above) for c in node.children if leaves[c] is None]

        nothing: Above = {}
        found = walk_down(self.network, dict.fromkeys(self.network.roots, nothing), send)
        return {index: _union(arrived) for index, arrived in found.items()}


Above = Mapping[str, frozenset[Distribution]]


def _leaves_below(node: Node, below: list["Above | None"]) -> "Above | None":
    """Return the distributions below a node by variable; None if a decision is among them."""
    if isinstance(node, Leaf):
        return {node.variable: frozenset([node.distribution])}
    if isinstance(node, Max) or any(part is None for part in below):
        return None
    return _union([part for part in below if part is not None])


def _certain(value: Value) -> frozenset[Distribution]:
    return frozenset([Categorical.certain(value)])


def _union(parts: Sequence["Above"]) -> "Above":
    if len(parts) == 1:
        return parts[0]
    found: dict[str, frozenset[Distribution]] = {}
    for part in parts:
        for name, held in part.items():
            found[name] = found.get(name, frozenset()) | held
    return found


# ---- the rule: for one node, and for many ------------------------------------------------


def scored(criterion: Criterion, worth: Array, branches: Branches) -> Array:  # [branches]
    """Return the scores of branches; END and UNKNOWN are not the criterion's to refuse."""
    scores = criterion.scores(worth, branches)
    if scores is worth:
        return worth
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != worth.shape:
        raise EvidenceError(
            f"{criterion!r}: expected a score for each of {len(worth)} branches, "
            f"found an array of shape {scores.shape}"
        )
    return np.where(branches.marked, worth, scores)


def tied_branches(worth: Sequence[float], scores: Sequence[float]) -> list[int]:
    """Return the best branches of one node, by number: none if none may be taken.

    Of what it is not known what follows, with a worth of -∞, is best only where nothing else is.
    """
    allowed = [k for k, s in enumerate(scores) if not (math.isnan(s) or math.isnan(worth[k]))]
    for numbers in (scores, worth) if scores is not worth else (worth,):
        if len(allowed) < 2:
            break
        allowed = [k for k in allowed if worth[k] > -math.inf] or allowed
        found = [numbers[k] for k in allowed]
        size = max([abs(number) for number in found if math.isfinite(number)], default=0.0)
        least = max(found) - TIE * size
        allowed = [k for k in allowed if numbers[k] >= least]
    return allowed


def soonest(tied: Sequence[int], delays: Sequence[float]) -> int:
    """Return which of tied branches earns soonest, the first of those that do."""
    least = min(delays[k] for k in tied)
    size = max(abs(delays[k]) for k in tied)
    return next(k for k in tied if delays[k] <= least + TIE * size)


def best_worths(criterion: Criterion, worth: Array, branches: Branches) -> Array:  # [nodes]
    """Return what each of many max nodes passes up: -∞ where nothing may be taken."""
    scores = scored(criterion, worth, branches)
    if scores is worth:
        return np.asarray(np.maximum.reduceat(worth, branches.starts))
    return best_branches(worth, scores, branches)[1]


def best_branches(
    worth: Array, scores: Array, branches: Branches, tie: float = TIE, within: float = 0.0
) -> tuple[Bools, Array]:  # [branches], [nodes]
    """Return which branches of many max nodes are best, and what the nodes pass up.

    The rule is that of `tied_branches`. No worth may be NaN. Numbers that are no further apart
    than `within` are ties, too.
    """
    if scores is worth:
        return _highest(worth, branches, tie, within)
    allowed, closed = ~np.isnan(scores), np.isneginf(worth)
    known = np.logical_or.reduceat(allowed & ~closed, branches.starts)
    allowed &= ~(closed & known[branches.node])
    for numbers in (scores, worth):
        among, best = _highest(np.where(allowed, numbers, -np.inf), branches, tie, within)
        allowed &= among
    return allowed, best


def _highest(
    numbers: Array, branches: Branches, tie: float, within: float
) -> tuple[Bools, Array]:  # [branches], [nodes]
    sizes = np.abs(numbers)
    sizes[sizes == np.inf] = 0.0
    apart = tie * np.maximum.reduceat(sizes, branches.starts)
    if within:
        apart = np.maximum(apart, within)
    best = np.maximum.reduceat(numbers, branches.starts)
    return np.asarray(numbers >= (best - apart)[branches.node]), best


def soonest_of_each(tied: Bools, delays: Array, branches: Branches) -> Ints:  # [nodes]
    """Return, of many max nodes, which tied branch earns soonest: see `soonest`.

    Where no branch is tied, as none may be taken, it is the first.
    """
    starts = branches.starts
    if np.count_nonzero(tied) > len(starts):
        least = np.minimum.reduceat(np.where(tied, delays, np.inf), starts)
        size = np.maximum.reduceat(np.where(tied, np.abs(delays), 0.0), starts)
        tied = tied & (delays <= (least + TIE * size)[branches.node])
    places = np.where(tied, np.arange(len(tied)), len(tied))
    found = np.minimum.reduceat(places, starts)
    return np.where(found < len(tied), found, starts)


def _objects(values: Sequence[object]) -> Array:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
