"""Factors of the next state, and the priors of S_L that they give.

P(x' | context) = Π over components c of P(x'_c | the leaf of c's tree that the context is in).
Contexts in one leaf share its parameters, whatever interface nodes they belong to. The prior of an
S_L is the mixture of its contexts.

Where rows were divided by values, the states of an interface node are all states with certain
values of each variable: a box. The mass that a product of factors puts on a box is a product over
components. No single state has to be looked at, seen or not.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rspmn.circuit import LatentFactors
from rspmn.context_trees import Contexts, Sparse, Tied
from rspmn.learn.successors.transitions import Component, Transitions
from rspmn.successor_counts import SharedFactors
from rspmn.types import Array, Bools, Ints

#: Tables of more numbers than this in all are kept sparse.
MOST_NUMBERS = 20_000_000
#: About so many pairs of a state and a box are looked at at once.
CHUNK = 10_000_000


@dataclass(frozen=True, eq=False)
class Boxes:
    """Sets of states that do not overlap, each with a set of values of each component."""

    count: int
    of_states: Ints  # [num_states], the box of each, -1 if none
    members: list[Sparse]  # of each component, [values, boxes], 1 where the box has the value
    interfaces: Sparse  # [boxes, interfaces], the shares of a box; rows sum to 1

    def have(self, values: Ints) -> Bools:  # [states]
        """Return which states are in boxes of several, given the values of components."""
        known = self.of_states[self.of_states >= 0]
        several = np.flatnonzero(np.bincount(known, minlength=self.count) > 1)
        members = [member[:, several] for member in self.members]
        found, step = np.zeros(len(values), dtype=bool), max(1, CHUNK // max(1, len(several)))
        for start in range(0, len(values), step):
            here = np.ones((len(values[start : start + step]), len(several)), dtype=bool)
            for member, value in zip(members, values[start : start + step].T, strict=True):
                here &= member[value].toarray() > 0
            found[start : start + step] = here.any(axis=1)
        return found


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

    @property
    def fit_in_tables(self) -> bool:
        """Whether the tables are not too large to be arrays."""
        pairs = zip(self.rows, self.counts, strict=True)
        sizes = [len(nodes) * int(counts.shape[1]) for nodes, counts in pairs]
        return sum(sizes) <= MOST_NUMBERS

    @cached_property
    def latents(self) -> LatentFactors:
        """The factors of interface nodes: a row of a table for each node of a component's tree."""
        given = self.sparse
        tables = tuple(np.minimum(table.toarray(), 1.0) for table in given.tables)
        return LatentFactors(given.interfaces, given.classes, given.to, given.share, tables)

    @cached_property
    def sparse(self) -> "SparseFactors":
        """The same with sparse tables."""
        boxes = self.boxes.interfaces.tocoo()
        classes = np.stack(self.classes, axis=1)[boxes.row]
        tables = []
        for counts, nodes in zip(self.counts, self.rows, strict=True):
            tables.append(counts[nodes])
            tables[-1].data /= np.repeat(self.tied.totals[nodes], np.diff(tables[-1].indptr))
        return SparseFactors(
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
class SparseFactors:
    """`LatentFactors` with sparse tables."""

    interfaces: int
    classes: Ints  # [cells, components]
    to: Ints  # [cells]
    share: Array  # [cells]
    tables: tuple[Sparse, ...]  # of each component, [rows, classes]


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
