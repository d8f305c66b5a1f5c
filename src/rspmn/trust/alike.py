"""States that differ from an expected one in one component: most of what is new is of this kind.

A branch that leads somewhere new rarely leads just anywhere. Of a shop the day is known, and the
stock is another number than it ever was after this decision. So what is new is an expected
successor of which one component, each with the same chance, has any value that it had in the log,
by how often.
"""

import numpy as np

from rspmn.data.distinct import distinct_rows, find_sorted
from rspmn.data.keys import group_weights
from rspmn.successor_counts import SharedFactors
from rspmn.types import Array, Ints


class Alike:
    """Groups of interface nodes that differ in one component at most, for each component.

    Parameters
    ----------
    factors
        Which values of its components each interface node has.
    arrived
        How many steps led to each interface node. [interfaces]
    """

    def __init__(self, factors: SharedFactors, arrived: Array) -> None:
        values = _values(factors, len(arrived))  # [interfaces, components]
        self.groups, self.shares = [], []  # [interfaces] of each component
        for k in range(values.shape[1]):
            mine = np.unique(values[:, k], return_inverse=True)[1]
            often = group_weights(mine, arrived)[mine] + 1e-9  # how often its value was seen
            group = distinct_rows(np.delete(values, k, axis=1))[1]
            self.groups.append(group)
            self.shares.append(often / group_weights(group, often)[group])

    def means(self, numbers: Array) -> Array:  # [interfaces, …]
        """Return the mean of numbers of interface nodes over those that are like each."""
        found = np.zeros_like(numbers)
        for group, share in zip(self.groups, self.shares, strict=True):
            total = np.zeros((int(group.max()) + 1, *numbers.shape[1:]))
            np.add.at(total, group, share.reshape(-1, *(1,) * (numbers.ndim - 1)) * numbers)
            found += total[group] / len(self.groups)
        return found

    def chances(self, edges: tuple[Ints, Ints, Array], branch: Ints, to: Ints) -> Array:  # [pairs]
        """Return how likely branches are to lead to nodes that are like others they lead to.

        Parameters
        ----------
        edges
            Where branches lead: branches, interface nodes, and shares.
        branch, to
            Pairs of a branch and an interface node. What leads to it itself does not count.
        """
        of, at, weight = edges
        size = len(self.groups[0])
        own = _weights_of(branch * size + to, of * size + at, weight)
        found = np.zeros(len(branch))
        for group, share in zip(self.groups, self.shares, strict=True):
            groups = int(group.max()) + 1
            expected = _weights_of(branch * groups + group[to], of * groups + group[at], weight)
            found += share[to] * np.maximum(expected - own, 0.0) / len(self.groups)
        return found

    def draw(self, expected: Ints, rng: np.random.Generator) -> Ints:
        """Return an interface node that is like each of those that were expected."""
        found, component = expected.copy(), rng.integers(len(self.groups), size=len(expected))
        for k, (group, share) in enumerate(zip(self.groups, self.shares, strict=True)):
            mine = np.flatnonzero(component == k)
            order = np.argsort(group, kind="stable")
            starts = np.searchsorted(group[order], np.arange(int(group.max()) + 2))
            total = np.concatenate([[0.0], np.cumsum(share[order])])
            asked = group[expected[mine]]
            first, last = starts[asked], starts[asked + 1]
            point = total[first] + rng.random(len(mine)) * (total[last] - total[first])
            place = np.clip(np.searchsorted(total, point, side="right") - 1, first, last - 1)
            found[mine] = order[place]
        return found


def _values(factors: SharedFactors, interfaces: int) -> Ints:  # [interfaces, components]
    """Return a number for the values of each component that an interface node has.

    Nodes that are no states, such as END, have a number of their own for each.
    """
    member, box = np.array(factors.member), np.array(factors.member_of)
    component = _components(factors, member, box)  # [members]
    boxes = int(box.max()) + 1
    key = component * boxes + box
    # Sets of values are told apart by sums of random numbers.
    known, which = np.unique(member, return_inverse=True)
    marks = np.random.default_rng(0).integers(2**62, size=len(known), dtype=np.uint64)
    sums = np.zeros(factors.components * boxes, dtype=np.uint64)
    np.add.at(sums, key, marks[which])
    of_boxes = sums.reshape(factors.components, boxes).T
    found = np.tile(np.arange(interfaces, dtype=np.uint64)[:, None], factors.components)
    order = np.argsort(factors.box_share, kind="stable")  # the largest share last
    found[np.array(factors.interface)[order]] = of_boxes[np.array(factors.box)[order]]
    return np.unique(found, return_inverse=True)[1].reshape(found.shape).astype(np.int64)


def _components(factors: SharedFactors, member: Ints, box: Ints) -> Ints:  # [members]
    """Return the component of each member of a box; values are numbered component by component."""
    order = np.lexsort((member, box))
    per_box = np.bincount(box)
    found = np.empty(len(member), dtype=np.int64)
    if (per_box == factors.components).all():  # one value of each: in the order of components
        found[order] = np.tile(np.arange(factors.components), len(per_box))
        return found
    of_leaf = np.zeros(max(factors.leaf) + 1, dtype=np.int64)
    for k, leaf in enumerate(np.array(factors.leaves).reshape(-1, factors.components).T):
        of_leaf[leaf] = k
    known, first = np.unique(np.array(factors.value), return_index=True)
    component = of_leaf[np.array(factors.leaf)[first]]
    # A value that never followed is between others.
    place = np.searchsorted(known, member, side="right") - 1
    return np.asarray(component[np.maximum(place, 0)])


def _weights_of(asked: Ints, keys: Ints, weights: Array) -> Array:
    """Return the sum of weights of each key that was asked for, 0 where there is none."""
    known, which = np.unique(keys, return_inverse=True)
    return np.append(group_weights(which, weights), 0.0)[find_sorted(known, asked)]
