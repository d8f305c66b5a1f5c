"""How often a log takes each decision in each state: the probabilities of the policy behind it.

They are shares of counts: of each state or, where states are visited too rarely to tell, of groups
of states. Shares that are shrunk towards a common mean would predict single decisions better, but
they err in the same direction in all states, and in the value of a policy such errors add up.
"""

import numpy as np

from rspmn.data.columns import Column
from rspmn.data.keys import group_weights
from rspmn.errors import DataError
from rspmn.evaluate.decision_tree import leaves
from rspmn.evaluate.logged import LoggedSteps
from rspmn.schema import Kind
from rspmn.types import Array, Ints


def estimated_behaviour(log: LoggedSteps) -> Array:  # [S, J]
    """Return the probability of each decision in each state, estimated from the log.

    States have shares of their own if these predict each logged decision from all others better
    than those of interface nodes do. Else the shares are those of interface nodes or of the leaves
    of a tree, whichever predict better. Where nothing was logged, they are those of the interface
    node, or of the whole log.
    """
    counts, group = log.counts, log.situations.group
    whole = np.broadcast_to(counts.sum(axis=0), counts.shape)
    of_nodes = _by_group(counts, group)
    found = _shares(of_nodes, _shares(whole, whole))
    row, made = np.nonzero(counts)
    fits = [_fit(level, row, made, counts[row, made]) for level in (counts, of_nodes)]
    if fits[0] >= fits[1]:
        return _shares(counts, found)
    states = [_numbers(column) for column in log.situations.columns.values()]
    of_leaves = _by_group(counts, leaves(np.array(states), counts))
    better = _fit(of_leaves, row, made, counts[row, made]) > fits[1]
    return _shares(of_leaves, found) if better else found


def _numbers(column: Column) -> Array:  # [n]
    """Return values as numbers: of names, their places in the alphabet; NaN if missing."""
    if column.kind is Kind.CATEGORICAL:
        return np.where(column.missing, np.nan, column.data)
    return column.numbers()


def _shares(counts: Array, otherwise: Array) -> Array:  # [S, J]
    total = counts.sum(axis=1, keepdims=True)
    return np.where(total > 0, counts / np.maximum(total, 1e-300), otherwise)


def _fit(counts: Array, row: Ints, made: Ints, times: Array) -> float:
    """Return the log-likelihood of all decisions, each given the others and one of each kind."""
    total = counts.sum(axis=1)[row] - 1 + counts.shape[1]
    return float(times @ np.log(counts[row, made] / total))


def given_behaviour(log: LoggedSteps, probabilities: Array) -> Array:  # [steps]
    """Return the probabilities of the logged decisions that a log says, if they can be true."""
    found = np.asarray(probabilities, dtype=np.float64)
    if found.shape != log.state.shape:
        raise DataError(
            f"behaviour: expected a probability for each of {len(log.state)} steps, found an "
            f"array of shape {found.shape}"
        )
    odd = np.flatnonzero(~((found > 0) & (found <= 1 + 1e-9)))
    if len(odd):
        first = int(odd[0])
        raise DataError(
            f"behaviour: {len(odd)} logged decisions have a probability that is not above 0 and "
            f"at most 1, the first of them {found[first]:g} in episode {log.episode[first]}, step "
            f"{log.time[first]}: a decision that was taken was possible. Leave the probabilities "
            "out to have them estimated"
        )
    return found


def _by_group(counts: Array, group: Ints) -> Array:  # [S, J]
    """Return the counts of each state's group."""
    columns = [group_weights(group, column)[group] for column in counts.T]
    return np.stack(columns, axis=1) if columns else counts
