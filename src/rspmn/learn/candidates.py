"""The interface nodes that each state of a log may be in, given what is known of it."""

import numpy as np

from rspmn.infer.compiled.assign import SEVERAL, Located, possible_roots
from rspmn.infer.compiled.layers import ranges
from rspmn.model import RSPMN
from rspmn.types import Ints


class Candidates:
    """The interface nodes that each state may be in; the last state is END."""

    def __init__(self, model: RSPMN, located: Located) -> None:
        states, node = located.states, located.node
        one = np.flatnonzero(node >= 0)
        open_ = np.flatnonzero(node == SEVERAL)
        found = possible_roots(model, states, open_)
        ends = [] if model.end is None else [model.end]
        state = np.concatenate([one, open_[found.row], np.full(len(ends), states.count)])
        order = np.argsort(state, kind="stable")
        self.node = np.concatenate([node[one], found.node, ends]).astype(np.int64)[order]
        self.log = np.concatenate([np.zeros(len(one)), found.logs, np.zeros(len(ends))])[order]
        self.starts = np.searchsorted(state[order], np.arange(states.count + 2))
        self.size = model.num_interfaces
        key = state[order] * self.size + self.node
        self._order = np.argsort(key)
        self._keys = key[self._order]

    def count(self, state: Ints) -> Ints:
        """Return how many nodes each state may be in; 0 for state -1."""
        return np.where(state < 0, 0, self.starts[state + 1] - self.starts[state])

    def of(self, state: Ints) -> tuple[Ints, Ints]:
        """Return the places of the candidates of some states, and which state each is for."""
        place, first = ranges(self.starts[state], self.starts[state + 1])
        return place, np.repeat(np.arange(len(state)), np.diff(first))

    def find(self, state: Ints, node: Ints) -> Ints:
        """Return the place of a candidate, -1 if a state cannot be in the node."""
        key = state * self.size + node
        at = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        return np.where(self._keys[at] == key, self._order[at], -1)
