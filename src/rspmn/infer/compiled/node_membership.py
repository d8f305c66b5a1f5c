"""How far states belong to interface nodes.

Most states belong to one node. One between soft boxes, or one that lacks values, belongs to
several, by how probable each is: what is known of nodes is averaged for the state, and what is
logged in the state is shared by the nodes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rspmn.circuit import Leaf, Sum
from rspmn.data.columns import Column
from rspmn.data.windows import States
from rspmn.infer.compiled.assign import possible_roots
from rspmn.infer.compiled.beliefs import Beliefs
from rspmn.infer.compiled.state_part import state_part
from rspmn.model import RSPMN
from rspmn.types import Array, Ints, Objects
from rspmn.values import Value


@dataclass(frozen=True, eq=False)
class Places:
    """The shares of states in groups: interface nodes, and a last one for states of no node."""

    shares: Any  # sparse [states, groups]; rows sum to 1

    @property
    def nodes(self) -> int:
        """The number of interface nodes."""
        return int(self.shares.shape[1]) - 1

    @property
    def nowhere(self) -> Array:  # [states]
        """The share of each state that is in no interface node: 0 or 1."""
        return np.asarray(self.shares[:, [self.nodes]].toarray()[:, 0])

    def at_states(self, of_nodes: Array, otherwise: float) -> Array:  # [states, ...]
        """Return the mean of numbers of interface nodes; `otherwise` for states of no node."""
        nowhere = np.full((1, *of_nodes.shape[1:]), otherwise)
        return np.asarray(self.shares @ np.concatenate([of_nodes, nowhere]))

    def in_groups(self, of_states: Array) -> Array:  # [groups, ...]
        """Return the sum of numbers of states, each shared by the groups it belongs to."""
        return np.asarray(self.shares.T @ of_states)

    def with_states(self, nodes: Ints) -> "Places":
        """Return the same with more states, each in one interface node."""
        from scipy.sparse import csr_array, vstack

        more = certain(nodes, self.nodes + 1)
        return Places(csr_array(vstack([self.shares, more], format="csr")))


def places_of(model: RSPMN, columns: dict[str, Column], count: int) -> Places:
    """Return which interface nodes states belong to, by their columns.

    A node is the more probable the more often the log visited it. What a state lacks is
    marginalised.
    """
    from scipy.sparse import csr_array

    nothing = np.zeros(0, dtype=np.int64)
    states = States(columns, count, nothing, nothing)
    pairs = possible_roots(model, states, np.arange(count))
    prior = model.state_index.prior
    size = np.bincount(pairs.row, minlength=count)
    found = Beliefs.of_logs(size, pairs.node, pairs.logs + prior[pairs.node])
    row = np.repeat(np.arange(count), np.diff(found.starts))
    total = np.bincount(row, found.weights, count)
    nowhere = np.flatnonzero(total == 0)
    place = np.append(row, nowhere), np.append(found.nodes, np.full(len(nowhere), len(prior)))
    shares = np.append(found.weights / total[row], np.ones(len(nowhere)))
    return Places(csr_array((shares, place), shape=(count, len(prior) + 1)))


def knots(model: RSPMN) -> dict[str, Array]:  # [interfaces] each
    """Return the point of each soft box that belongs to no other: where its densities peak.

    There is a point for each number that boxes differ by; NaN for END.
    """
    found: dict[str, Array] = {}
    for node, leaf in _leaves_of_nodes(model):
        if leaf.distribution.atoms() is None:
            peak = leaf.distribution.mode()
            assert isinstance(peak, float | int)
            found.setdefault(leaf.variable, np.full(model.num_interfaces, np.nan))[node] = peak
    return found


def categories(model: RSPMN) -> dict[str, Objects]:  # [interfaces] each
    """Return the value of each category that soft boxes differ by; None for END."""
    found: dict[str, Objects] = {}
    for node, leaf in _leaves_of_nodes(model):
        if leaf.distribution.atoms() is not None and node != model.end:
            unknown = np.full(model.num_interfaces, None, dtype=object)
            found.setdefault(leaf.variable, unknown)[node] = leaf.distribution.mode()
    return found


def values_of_categories(model: RSPMN) -> dict[str, list[Value]]:
    """Return the values of each category that soft boxes differ by, in order of interface nodes."""
    return {
        name: [v for v in dict.fromkeys(found.tolist()) if v is not None]
        for name, found in categories(model).items()
    }


def _leaves_of_nodes(model: RSPMN) -> Iterator[tuple[int, Leaf]]:
    """Return the leaves of one cell of each interface node, but for what is set aside."""
    states = state_part(model.template)
    for node, root in enumerate(states.roots):
        waiting = [root]
        for here in waiting:
            part = states.nodes[here]
            # The densities of all cells around a knot peak at it.
            waiting.extend(part.children[:1] if isinstance(part, Sum) else part.children)
            if isinstance(part, Leaf) and part.variable not in model.set_aside:
                yield node, part


def certain(groups: Ints, size: int) -> Any:  # sparse [rows, size]
    """Return shares of 1 in one group each.

    >>> certain(np.array([1, 0]), 3).toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    from scipy.sparse import csr_array

    rows = len(groups)
    return csr_array((np.ones(rows), groups, np.arange(rows + 1)), shape=(rows, size))
