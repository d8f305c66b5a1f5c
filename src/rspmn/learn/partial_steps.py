"""Steps whose states lack values, shared among the interface nodes that agree with what is known.

A state that lacks values may be in several interface nodes, and so may be what followed. Such a
step counts in each, by the posterior of the pair (node, next node) given all that is known, which
`node_pairs` returns. To share by x alone would make nodes more similar than they are.
"""

from dataclasses import dataclass, replace

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.data.windows import States, Windows
from rspmn.infer.compiled.assign import SEVERAL, Assigned, Located
from rspmn.learn.node_pairs import PairPosterior
from rspmn.model import RSPMN
from rspmn.types import Array, Ints

#: Smaller shares are not kept.
LEAST = 1e-3


@dataclass(frozen=True, eq=False)
class Shares:
    """The windows of a log, several times where they are shared."""

    windows: Windows  # [rows]
    located: Located  # their states; those that are shared, once for each node
    share: Array  # [rows], how much of its window each row is; they sum to 1 for each window


def shares_of(model: RSPMN, assigned: Assigned, windows: Windows) -> Shares:
    """Return the steps of a log with those shared that may be in several interface nodes.

    `model`: what is known of the states in each interface node. `assigned`: the steps in interface
    nodes that are certain.
    """
    of, windows = _first_steps_apart(windows)
    states, node = assigned.located.states, assigned.located.node
    states = replace(states, of_steps=states.of_steps[of], of_successors=states.of_successors[of])
    located, here, after = Located(states, node), assigned.here[of], assigned.after[of]
    sure = np.isin(of, assigned.window) & (after >= 0)
    pairs, share = PairPosterior(model, located, windows, here, after, sure).shares()
    kept = share >= LEAST
    pairs, share = pairs.where(kept), share[kept]
    share /= group_weights(pairs.window, share, len(windows))[pairs.window]
    others = np.setdiff1d(np.arange(len(windows)), pairs.window)
    row = np.concatenate([others, pairs.window])
    order = np.argsort(row, kind="stable")
    here = np.concatenate([here[others], pairs.here])[order]
    after = np.concatenate([after[others], pairs.after])[order]
    share = np.concatenate([np.ones(len(others)), share])[order]
    located = _located(located, row[order], here, after)
    return Shares(windows.take(row[order]), located, share)


def _first_steps_apart(windows: Windows) -> tuple[Ints, Windows]:
    """Return windows that hold first steps of episodes or others, and which window each was."""
    both = np.flatnonzero((windows.starts > 0) & (windows.starts < windows.counts))
    of = np.append(np.arange(len(windows)), both)
    counts, starts = windows.counts[of], windows.starts[of]
    counts[both], starts[len(windows) :] = starts[both], 0
    counts[len(windows) :] -= windows.starts[both]
    return of, replace(windows.take(of), counts=counts, starts=starts)


def _located(located: Located, row: Ints, here: Ints, after: Ints) -> Located:
    """Return the states of shared windows: one that lacks values, once for each of its nodes.

    Where all states of a node have the same value, it is filled in.
    """
    states, size = located.states, int(located.node.max()) + 1 - SEVERAL
    steps, successors = states.of_steps[row], states.of_successors[row]
    split = located.node[steps] == SEVERAL
    then = (successors >= 0) & (located.node[successors] == SEVERAL)
    of_steps, of_successors = (
        steps[split] * size + here[split],
        successors[then] * size + after[then],
    )
    keys, which = np.unique(np.append(of_steps, of_successors) - SEVERAL, return_inverse=True)
    state, node = keys // size, keys % size + SEVERAL
    steps[split] = states.count + which[: len(of_steps)]
    successors[then] = states.count + which[len(of_steps) :]
    columns = {}
    for name, column in states.columns.items():
        filled = column.take(state)
        known = (located.node >= 0) & ~column.missing
        low, high = np.full(size, np.inf), np.full(size, -np.inf)
        np.minimum.at(low, located.node[known], column.data[known])
        np.maximum.at(high, located.node[known], column.data[known])
        fill = filled.missing & (node >= 0) & (low[node] == high[node])
        data = np.where(fill, np.where(fill, low[node], 0), filled.data).astype(column.data.dtype)
        columns[name] = column.append(replace(filled, data=data))
    found = States(columns, states.count + len(keys), steps, successors)
    return Located(found, np.concatenate([located.node, node]))
