"""How often a log takes each decision in each state: the probabilities of the policy behind it."""

import numpy as np

from rspmn.data.columns import Column
from rspmn.errors import DataError
from rspmn.evaluate.logged import LoggedSteps
from rspmn.learn.behaviour import tree_of
from rspmn.schema import Kind
from rspmn.types import Array
from rspmn.values import unused


def estimated_behaviour(log: LoggedSteps) -> Array:  # [S, J]
    """Return the probability of each decision in each state, estimated from the log.

    They are the shares of a tree that may be divided by all states at once, too: so each has shares
    of its own where it has steps enough. Shares that were shrunk towards those of others would err
    in the same direction in all states, and in the value of a policy such errors add up.
    """
    counts, columns = log.counts, dict(log.situations.columns)
    again = counts.sum(axis=1) > 1  # of a single step, no share can be told
    number = np.where(again, np.arange(len(counts)), -1)
    states, codes = np.unique(number, return_inverse=True)
    columns[unused("state", columns)] = Column(Kind.CATEGORICAL, codes, (*states.tolist(),))
    state, made = np.nonzero(counts)
    known = {name: column.take(state) for name, column in columns.items()}
    tree = tree_of("decisions", (*range(counts.shape[1]),), known, made, counts[state, made])
    found = tree.counts(tree.find(columns, len(counts)))
    return np.asarray(found / found.sum(axis=1, keepdims=True))


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
            f"behaviour: expected probabilities above 0 and at most 1 for logged decisions, found "
            f"{found[first]:g} in episode {log.episode[first]}, step {log.time[first]} ({len(odd)} "
            "such decisions); omit the probabilities to have them estimated"
        )
    return found
