"""Boxes: the states of interface nodes, as sets of values of each component.

Where rows were divided by values, the states of an interface node are all states with certain
values of each variable: a box. The mass that a product of factors puts on a box is a product over
components. No single state has to be looked at, seen or not.
"""

from dataclasses import dataclass

import numpy as np

from rspmn.learn.successors.components import Component
from rspmn.learn.successors.transitions import Transitions
from rspmn.learn.successors.trees import Sparse
from rspmn.types import Array, Ints


@dataclass(frozen=True, eq=False)
class Boxes:
    """Sets of states that do not overlap."""

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
