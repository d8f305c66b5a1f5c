"""The branches of max nodes, as a criterion gets them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.availability import as_column
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
from rspmn.circuit.node_arrays import NodeArrays
from rspmn.errors import EvidenceError, did_you_mean
from rspmn.types import Array, Bools, Ints, Objects, objects
from rspmn.values import Mark, Value

#: The states of a max node are listed if they are so many at most, else this many are drawn.
MOST_STATES, DRAWN_STATES = 10_000, 1_000


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
        edges: Callable[[], tuple[Ints, Ints]],
        steps: Array | None = None,
    ) -> None:
        self.starts = starts  # [nodes], the first branch of each
        counts = np.diff(np.append(starts, size))
        self.node: Ints = np.repeat(np.arange(len(starts)), counts)  # [branches], which node's
        self._context = context
        self._find_edges = edges
        self._steps = steps  # given where they are no sums over edges
        self._found: dict[tuple[str, type, Value], Bools] = {}

    def __getstate__(self) -> dict[str, Any]:  # edges are copied, not the function that finds them
        return {**self.__dict__, "_edges": self._edges, "_find_edges": None}

    @cached_property
    def _edges(self) -> tuple[Ints, Ints]:  # [edges], [branches]
        """The edges of the network that branches are, and the first of each.

        It is one each, but for a question on partial evidence: there an action is the branches of
        all max nodes that it may be taken in.
        """
        return self._find_edges()

    @property
    def _first(self) -> Ints:  # [branches]
        edges, first = self._edges
        return edges[first]

    @property
    def _arrays(self) -> NodeArrays:
        return self._context.network.arrays

    @cached_property
    def decisions(self) -> Objects:  # [branches]
        """The name of the decision that each branch belongs to."""
        arrays = self._arrays
        return objects(arrays.decisions)[arrays.item[arrays.parents[self._first]]]

    @cached_property
    def values(self) -> Objects:  # [branches]
        """The value of the decision, the action, of each branch."""
        return objects(self._arrays.values)[self._arrays.choice[self._first]]

    @cached_property
    def steps(self) -> Array:  # [branches]
        """How many logged steps took each branch; 0 in models written by hand."""
        if self._steps is not None:
            return self._steps
        edges, first = self._edges
        found = np.add.reduceat(self._context.steps[self._arrays.children[edges]], first)
        return np.where(np.isinf(found), 0.0, found)

    @cached_property
    def places(self) -> Ints:  # [branches]
        """The place of each branch's value among all of its decision: see `Context.values`."""
        return self._context.places_of_edges[self._first]

    @cached_property
    def marked(self) -> Bools:  # [branches]
        """Which branches are END or UNKNOWN: those are no choices, and scores do not matter."""
        return np.array([isinstance(value, Mark) for value in self.values], dtype=bool)

    def may_be(self, name: str, value: Value) -> Bools:  # [branches]
        """Return where a variable that is known before the decision can have a value.

        States that behave alike share a max node: there it may have several. Where it is not known
        before the decision, the answer is False.
        """
        key = name, type(value), value
        if key not in self._found:
            edges, first = self._edges
            nodes, of_edge = np.unique(self._arrays.parents[edges], return_inverse=True)
            may_be = [self._context.may_be(node, name, value) for node in nodes.tolist()]
            self._found[key] = np.logical_or.reduceat(np.array(may_be)[of_edge], first)
        return self._found[key]

    def chances(
        self, names: Sequence[str], tests: Callable[[Mapping[str, NDArray[Any]]], Sequence[Bools]]
    ) -> dict[tuple[bool, ...], Array]:  # [nodes] each
        """Return how probable each outcome of some tests is in each max node.

        `names`: variables that are known before the decision. Listed values are enumerated, others
        drawn. `tests`: returns the outcomes of the tests for columns of values.
        """
        found: dict[tuple[bool, ...], Array] = {}
        size = len(self.starts)
        nodes = self._arrays.parents[self._first[self.starts]]
        for number, node in enumerate(nodes.tolist()):
            columns, weights = self._context.states_above(node, names)
            if not len(weights):
                continue
            held = np.stack([np.asarray(test, dtype=bool) for test in tests(columns)])
            outcomes, which = np.unique(held, axis=1, return_inverse=True)
            shares = np.bincount(which.ravel(), weights)
            for outcome, share in zip(outcomes.T.tolist(), shares.tolist(), strict=True):
                found.setdefault(tuple(outcome), np.zeros(size))[number] += share
        return found


class Context:
    """What is above and below the max nodes of a network."""

    def __init__(self, network: Network) -> None:
        self.network = network

    def branches_of(self, nodes: Ints, starts: Ints) -> Branches:
        """Return the branches of some max nodes; `starts` is where those of each start."""
        edges, _ = self.network.arrays.edges_of(nodes)
        return Branches(self, starts, len(edges), lambda: (edges, np.arange(len(edges))))

    @cached_property
    def steps(self) -> Array:  # [nodes]
        """The logged steps below each node, all branches of max nodes added up."""
        return logged_steps(self.network.arrays)

    def values(self, decision: str) -> list[Value]:
        """Return all values of a decision that are offered anywhere, in the order they appear."""
        return list(self._offered.get(decision, ()))

    def places(self, node: Max) -> list[int]:
        """Return the place of each value of a max node among all of its decision.

        Nodes may list the same values in different orders. By these places ties are broken alike
        everywhere.
        """
        offered = self._offered.get(node.decision, {})
        return [offered.get(value, len(offered)) for value in node.values]

    @cached_property
    def places_of_edges(self) -> Ints:  # [edges]
        """The same of each edge below a max node."""
        arrays, found = (
            self.network.arrays,
            np.zeros(len(self.network.arrays.children), dtype=np.int64),
        )
        maxes = arrays.of_kind(Max)
        for number, decision in enumerate(arrays.decisions):
            offered = self._offered[decision]
            place = np.array([offered.get(value, len(offered)) for value in arrays.values])
            edges, _ = arrays.edges_of(maxes[arrays.item[maxes] == number])
            found[edges] = place[arrays.choice[edges]]
        return found

    @cached_property
    def _offered(self) -> dict[str, dict[Value, int]]:
        arrays, found = self.network.arrays, dict[str, dict[Value, int]]()
        for number, decision in enumerate(arrays.decisions):
            maxes = arrays.of_kind(Max)
            edges, _ = arrays.edges_of(maxes[arrays.item[maxes] == number])
            codes, first = np.unique(arrays.choice[edges], return_index=True)
            values = [arrays.values[k] for k in codes[np.argsort(first)].tolist()]
            offered = dict.fromkeys(value for value in values if not isinstance(value, Mark))
            found[decision] = {value: k for k, value in enumerate(offered)}
        return found

    def may_be(self, index: int, name: str, value: Value) -> bool:
        """Tell whether a variable above a max node can have a value."""
        if name not in self._known_somewhere:
            raise EvidenceError(
                f"{name!r} is not known before any decision: "
                f"{did_you_mean(name, sorted(self._known_somewhere))}"
            )
        held = self._above[index].get(name, frozenset())
        return any(distribution.log_prob(value) > -math.inf for distribution in held)

    def states_above(
        self, index: int, names: Sequence[str]
    ) -> tuple[dict[str, NDArray[Any]], Array]:
        """Return values of some variables above a max node, as columns, and their probabilities.

        There are none for END and UNKNOWN, or where a variable is not known before the decision.
        """
        held = [self._above[index].get(name, frozenset()) for name in names]
        atoms = [_pooled(distributions) for distributions in held]
        if not all(held) or any(a is not None and not a for a in atoms):
            return {}, np.zeros(0)
        listed = [a for a in atoms if a is not None]
        if len(listed) == len(atoms) and math.prod(map(len, listed)) <= MOST_STATES:
            states = list(product(*(a.items() for a in listed)))
            weights = np.array([math.prod(p for _, p in state) for state in states])
            columns = [[value for value, _ in column] for column in zip(*states, strict=True)]
        else:
            rng, weights = np.random.default_rng(index), np.full(DRAWN_STATES, 1 / DRAWN_STATES)
            columns = [_drawn(distributions, rng) for distributions in held]
        return {
            n: as_column(c) for n, c in zip(names, columns, strict=True)
        }, weights / weights.sum()

    @cached_property
    def _known_somewhere(self) -> frozenset[str]:
        nodes = self.network.nodes
        above = (self._above.get(i, {}) for i, n in enumerate(nodes) if isinstance(n, Max))
        return frozenset().union(*above)

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


def _pooled(distributions: Iterable[Distribution]) -> dict[Value, float] | None:
    """Return the probabilities of listed values, without marks; None if they are not listed."""
    found: dict[Value, float] = {}
    for distribution in distributions:
        atoms = distribution.atoms()
        if atoms is None:
            return None
        for value, probability in atoms.items():
            if not isinstance(value, Mark):
                found[value] = found.get(value, 0.0) + probability
    return found


def _drawn(distributions: Iterable[Distribution], rng: np.random.Generator) -> list[Value]:
    """Return values that are drawn from distributions, each as often as the others."""
    parts = sorted(distributions, key=repr)
    counts = np.bincount(np.arange(DRAWN_STATES) % len(parts))
    drawn = [part.samples(rng, count) for part, count in zip(parts, counts.tolist(), strict=True)]
    values = [value for part in drawn for value in np.asarray(part).tolist()]
    return [values[k] for k in rng.permutation(len(values)).tolist()]


def logged_steps(arrays: NodeArrays, taken: Bools | None = None) -> Array:  # [nodes]
    """Return the logged steps behind each node: of what is added the fewest, else all.

    They are infinite where no utility is below. `taken` [edges] are the branches that count; all by
    default.
    """
    found = np.full(len(arrays), np.inf)
    utilities = arrays.of_kind(Utility)
    found[utilities] = arrays.utilities[arrays.item[utilities], 2]
    return arrays.fold_up(found, {Product: np.minimum, Sum: np.add, Max: np.add}, taken)
