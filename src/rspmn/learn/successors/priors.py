"""Factors of the next state, and the priors of S_L that they give.

P(x' | context) = Π over components c of P(x'_c | the leaf of c's tree that the context is in).
Contexts in one leaf share its parameters, whatever interface nodes they belong to. The prior of an
S_L is the mixture of its contexts. Priors are computed in chunks, so that memory stays small.

Where rows were divided by values, the states of an interface node are all states with certain
values of each variable: a box. The mass that a product of factors puts on a box is a product over
components. No single state has to be looked at, seen or not.
"""

import math
import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rspmn.circuit import LatentFactors
from rspmn.infer.compiled.joined import Joined, mean_edges
from rspmn.learn.successors.transitions import Component, Contexts, Transitions
from rspmn.learn.successors.trees import Sparse, Tied
from rspmn.successor_counts import SharedFactors
from rspmn.types import Array, Ints

#: At most this many floats are held per chunk.
CHUNK = 4_000_000
#: With more products than this, weights are by counts alone.
MOST_WORK = 500_000_000
#: At most this many edges are kept: the lightest are pruned.
MOST_EDGES = 4_000_000
#: With more boxes than this, factors are joined if they lead to few of them.
FEW = 500
#: Few are less than one in so many.
SPARSE = 20.0
#: But at least this many of each S_L.
LEAST_EDGES = 64
#: Edges of less weight are pruned.
LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class Boxes:
    """Sets of states that do not overlap, each with a set of values of each component."""

    count: int
    of_states: Ints  # [num_states], the box of each, -1 if none
    members: list[Sparse]  # of each component, [values, boxes], 1 where the box has the value
    interfaces: Sparse  # [boxes, interfaces], the shares of a box; rows sum to 1


def boxes_of(transitions: Transitions, components: list[Component], arrivals: Array) -> Boxes:
    """Return the boxes of all interface nodes.

    States at the edge of the log, states that lack values, and all states where clusters may
    overlap are boxes of their own. Such a box may hold numbers of several interface nodes; its mass
    is divided among them by `arrivals` [num_states].
    """
    from scipy.sparse import csr_array

    known = np.flatnonzero(transitions.of_states >= 0)
    to = transitions.of_states[known]
    values = np.stack([part.values[known] for part in components], axis=1)
    alone = np.unique(values, axis=0, return_inverse=True)[1].ravel()
    lacking = np.any([codes[known] == 0 for codes in transitions.state_codes.values()], axis=0)
    key = np.where(transitions.boxes[to] & ~lacking, to, transitions.interfaces + alone)
    boxes, box = np.unique(key, return_inverse=True)
    of_states = np.full(transitions.states.count, -1)
    of_states[known] = box
    shape = len(boxes), transitions.interfaces
    share = csr_array((arrivals[known] + 1e-9, (box, to)), shape=shape)
    share.sum_duplicates()
    share.data /= np.repeat(share.sum(axis=1), np.diff(share.indptr))
    members = []
    for k, part in enumerate(components):
        pairs = np.unique(values[:, k] * len(boxes) + box)
        place = pairs // len(boxes), pairs % len(boxes)
        members.append(csr_array((np.ones(len(pairs)), place), shape=(part.size, len(boxes))))
    return Boxes(len(boxes), of_states, members, share)


@dataclass(frozen=True, eq=False)
class Factors:
    """The factors of the next state; component k has tree k."""

    contexts: Contexts  # those that were seen
    components: list[Component]
    tied: Tied
    boxes: Boxes
    #: Boxes that have the same values of a component are of one class of it.
    classes: list[Ints]  # of each component, [boxes]
    #: Of each component, how often its nodes were followed by the values of each class.
    counts: list[Sparse]  # [nodes, classes] each

    @classmethod
    def of(
        cls, contexts: Contexts, components: list[Component], tied: Tied, boxes: Boxes
    ) -> "Factors":
        """Count the classes of boxes."""
        from scipy.sparse import csr_array

        owner = tied.trees.owners()
        node, value, weight = tied.trees.cells
        classes, counts = [], []
        for k, (part, member) in enumerate(zip(components, boxes.members, strict=True)):
            own = owner[node] == k
            shape = (len(owner), part.size)
            cells = csr_array((weight[own], (node[own], value[own])), shape=shape)
            of_boxes, first = _classes(member)
            classes.append(of_boxes)
            counts.append(csr_array(cells @ member[:, first]))
            counts[-1].sort_indices()  # or to look up a number would take the length of a row
        return cls(contexts, components, tied, boxes, classes, counts)

    def leaves(self, contexts: Contexts) -> Ints:  # [components, contexts]
        """Return the leaf of each component's tree that each context is in."""
        trees = self.tied.trees
        return np.stack([trees.find(contexts, k) for k in range(len(self.components))])

    def masses(self, leaves: Ints) -> Array:  # [contexts, boxes]
        """Return the mass that the product of factors puts on each box.

        Rows sum to 1, or to less where some of it is on states of no box.
        """
        mass = np.ones((leaves.shape[1], self.boxes.count))
        for counts, classes, leaf in zip(self.counts, self.classes, leaves, strict=True):
            distinct, which = np.unique(leaf, return_inverse=True)
            table = counts[distinct].toarray() / self.tied.totals[distinct][:, None]
            mass *= table[:, classes][which]
        return mass

    def mass_on(self, leaves: Ints, box: Ints, without: Array | float = 0.0) -> Array:  # [contexts]
        """Return the mass on one box each, `without` steps of those that led there."""
        mass = np.ones(len(box))
        for counts, classes, leaf in zip(self.counts, self.classes, leaves, strict=True):
            seen = np.asarray(counts[leaf, classes[box]]).ravel()
            total = self.tied.totals[leaf]
            mass *= np.maximum(seen - without, 0) / np.maximum(total - without, 1)
        return mass

    @cached_property
    def rows(self) -> list[Ints]:
        """Of each component, the nodes of its tree: their places are rows of its table."""
        owner = self.tied.trees.owners()
        return [np.flatnonzero(owner == k) for k in range(len(self.components))]

    @cached_property
    def latents(self) -> LatentFactors:
        """The factors of interface nodes: a row of a table for each node of a component's tree."""
        boxes = self.boxes.interfaces.tocoo()
        classes = np.stack(self.classes, axis=1)[boxes.row]
        tables = [
            np.minimum(counts[nodes].toarray() / self.tied.totals[nodes][:, None], 1.0)
            for counts, nodes in zip(self.counts, self.rows, strict=True)
        ]
        return LatentFactors(
            self.boxes.interfaces.shape[1], classes, boxes.col, boxes.data, tuple(tables)
        )

    def rows_of(self, leaves: Ints) -> Ints:  # [combinations, components]
        """Return the rows of tables that combinations of leaves [components, …] are."""
        pairs = zip(self.rows, leaves, strict=True)
        return np.stack([np.searchsorted(nodes, leaf) for nodes, leaf in pairs], axis=1)

    def shared(self, leaves: Ints, strength: float, least: float) -> SharedFactors:
        """Return the factors as plain numbers, for combinations of leaves.

        Parameters
        ----------
        leaves
            Of each combination, the leaf of each component. [components, combinations]
        strength, least
            The number of steps that the factors are worth, and that they are worth at least.
        """
        offsets = np.concatenate([[0], np.cumsum([part.size for part in self.components])])
        used, leaf_of = np.unique(leaves, return_inverse=True)
        node, value, steps = self.tied.trees.cells
        kept = np.isin(node, used)
        owner = self.tied.trees.owners()[node[kept]]
        members = [(value + offsets[k], box) for k, m in enumerate(self.boxes.members)
                   for value, box in [m.nonzero()]]  # fmt: skip
        member, box = (np.concatenate(part) for part in zip(*members, strict=True))
        divided = self.boxes.interfaces.tocoo()
        parameter = np.unique(self.tied.trees.parameter[kept], return_inverse=True)[1]
        return SharedFactors(
            strength=strength, least_strength=least, components=len(self.components),
            leaf=_integers(np.searchsorted(used, node[kept])),
            value=_integers(value[kept] + offsets[owner]), steps=tuple(steps[kept].tolist()),
            leaves=_integers(leaf_of.reshape(leaves.shape).T.ravel()),
            member=_integers(member), member_of=_integers(box),
            box=_integers(divided.row), interface=_integers(divided.col),
            box_share=tuple(divided.data.tolist()),
            parameter=_integers(parameter) if self.tied.trees.moved else (),
        )  # fmt: skip


def _integers(numbers: Ints) -> tuple[int, ...]:
    return tuple(map(int, numbers.tolist()))


@dataclass(frozen=True, eq=False)
class Priors:
    """The distribution of the next interface node in each mixture."""

    weights: Sparse  # [mixtures, interfaces]; rows sum to 1, or to 0 if nothing known follows
    kept: Array  # [contexts], mass of the factors' product on states of any box
    pruned: float  # mean mass of edges that were too light to be kept


def _classes(members: Sparse) -> tuple[Ints, Ints]:  # [boxes], [classes]
    """Return a number for the set of values that each box has, and a box of each number."""
    columns = members.tocsc()
    columns.sort_indices()
    if (np.diff(columns.indptr) == 1).all():
        keys = columns.indices
    else:
        seen: dict[bytes, int] = {}
        parts = np.split(columns.indices, columns.indptr[1:-1])
        keys = np.array([seen.setdefault(part.tobytes(), len(seen)) for part in parts])
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return which.ravel(), first


def too_much(factors: Factors, contexts: int) -> bool:
    """Say whether there are too many products to make."""
    return contexts * factors.boxes.count * len(factors.components) > MOST_WORK


def mixed_priors(
    factors: Factors, leaves: Ints, mixtures: Sparse, deadline: float = math.inf
) -> Priors | None:
    """Return the masses of mixtures of contexts; None if that takes too long.

    Parameters
    ----------
    factors
        Of the next state.
    leaves
        Of each context, the leaf of each component. [components, contexts]
    mixtures
        The share of each context in each mixture; rows sum to 1. [mixtures, contexts]
    deadline
        The `time.monotonic()` to be done at.
    """
    from scipy.sparse import csr_array, vstack

    count, boxes = mixtures.shape[0], factors.boxes.count
    most = max(LEAST_EDGES, MOST_EDGES // max(1, count))
    rows = factors.rows_of(leaves)
    if boxes > FEW and SPARSE * mean_edges(factors.latents, rows) < min(boxes, most):
        return _joined_priors(factors, rows, mixtures)
    kept = np.ones(leaves.shape[1])
    parts, pruned = [], 0.0
    for start, stop in _chunks(mixtures, boxes):
        if time.monotonic() >= deadline:
            return None
        part = mixtures[start:stop]
        used, local = np.unique(part.indices, return_inverse=True)
        masses = factors.masses(leaves[:, used])  # [used, boxes]
        total = masses.sum(axis=1)
        kept[used] = total
        masses /= np.where(total > 0, total, 1.0)[:, None]
        inner = csr_array((part.data, local, part.indptr), shape=(stop - start, len(used)))
        mass = inner @ masses  # [mixtures here, boxes]
        weights = mass @ factors.boxes.interfaces
        pruned += _prune(weights, most)
        parts.append(csr_array(weights))
    return Priors(csr_array(vstack(parts)), kept, pruned / max(1, count))


def _joined_priors(factors: Factors, rows: Ints, mixtures: Sparse) -> Priors:
    """Return the masses of mixtures where factors lead to few boxes: only these are looked at."""
    from scipy.sparse import csr_array, diags_array

    joined = Joined(factors.latents, rows)
    weights = csr_array(mixtures @ joined.matrix(joined.kept[joined.of_rows] > 0))
    weights.data[weights.data < LEAST] = 0.0
    weights.eliminate_zeros()
    before = np.minimum(weights.sum(axis=1), 1.0)
    scale = np.divide(1.0, before, out=np.zeros(len(before)), where=before > 0)
    return Priors(csr_array(diags_array(scale) @ weights), joined.kept[joined.of_rows], 0.0)


def _chunks(mixtures: Sparse, boxes: int) -> list[tuple[int, int]]:
    """Divide the mixtures into chunks that hold few contexts; one alone may hold many."""
    most = max(1, CHUNK // max(1, boxes))
    ends, start = [], 0
    while start < mixtures.shape[0]:
        last = int(mixtures.indptr[start]) + most
        stop = int(np.searchsorted(mixtures.indptr, last, side="right")) - 1
        stop = min(max(stop, start + 1), start + most, mixtures.shape[0])
        ends.append((start, stop))
        start = stop
    return ends


def _prune(weights: Array, most: int) -> float:
    """Prune the lightest edges of each row, in place; return how much they weighed."""
    weights[weights < LEAST] = 0.0
    before = weights.sum(axis=1)
    heavy = np.count_nonzero(weights, axis=1) > most
    if heavy.any():
        rows = weights[heavy]
        least = np.partition(rows, rows.shape[1] - most, axis=1)[:, rows.shape[1] - most]
        weights[heavy] = np.where(rows >= least[:, None], rows, 0.0)
    after = weights.sum(axis=1)
    weights /= np.where(after > 0, after, 1.0)[:, None]
    return float((before - after).sum())
