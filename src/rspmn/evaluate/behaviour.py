"""How often a log takes each decision in each state: the probabilities of the policy behind it.

They are shares of counts: of each state or, where states are visited too rarely to tell, of groups
of states. Shares that are shrunk towards a common mean would predict single decisions better, but
they err in the same direction in all states, and in the value of a policy such errors add up.
"""

from typing import Any

import numpy as np

from rspmn.data.columns import Column
from rspmn.data.keys import group_weights
from rspmn.errors import DataError
from rspmn.evaluate.logged import LoggedSteps
from rspmn.infer.compiled.node_membership import certain
from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints


def estimated_behaviour(log: LoggedSteps) -> Array:  # [S, J]
    """Return the probability of each decision in each state, estimated from the log.

    States have shares of their own if these predict each logged decision from all others better
    than those of interface nodes do. Else the shares are those of interface nodes, averaged where a
    state belongs to several, or of the leaves of a tree, whichever predict better. Where nothing
    was logged, they are those of the interface node, or of the whole log.
    """
    counts, nodes = log.counts, log.situations.places.shares
    whole = np.broadcast_to(counts.sum(axis=0) / max(counts.sum(), 1e-300), counts.shape)
    found = _shares(nodes, counts, whole)
    row, made = np.nonzero(counts)
    times, by_node = counts[row, made], _predicted(nodes, counts)
    fit = float(times @ np.log(by_node))
    states = certain(np.arange(len(counts)), len(counts))
    again = counts.sum(axis=1)[row] > 1  # else there are no other steps to predict from
    by_state = np.where(again, _predicted(states, counts), by_node)
    if again.any() and float(times @ np.log(by_state)) >= fit:
        return _shares(states, counts, found)
    numbers = [_numbers(column) for column in log.situations.columns.values()]
    if not numbers:
        return found
    leaf = leaves(np.array(numbers), counts)
    tree = certain(leaf, int(leaf.max()) + 1)
    better = float(times @ np.log(_predicted(tree, counts))) > fit
    return _shares(tree, counts, found) if better else found


def _numbers(column: Column) -> Array:  # [n]
    """Return values as numbers: of names, their places in the alphabet; NaN if missing."""
    if column.kind is Kind.CATEGORICAL:
        return np.where(column.missing, np.nan, column.data)
    return column.numbers()


def _shares(places: Any, counts: Array, otherwise: Array) -> Array:  # [S, J]
    """Return the shares of decisions in the groups of each state; places are [S, groups]."""
    of_groups = np.asarray(places.T @ counts)
    total = of_groups.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, of_groups / np.maximum(total, 1e-300), 0.0)
    known = np.asarray(places @ (total > 0).astype(np.float64))  # [S, 1]
    return np.where(known > 0, (places @ shares) / np.maximum(known, 1e-300), otherwise)


def _predicted(places: Any, counts: Array) -> Array:
    """Return the probability of each logged decision, given the others and one of each kind.

    They are in the order of `np.nonzero(counts)`. A step counts in the groups of its state as far
    as the state belongs to them.
    """
    of_groups = np.asarray(places.T @ counts)
    total = of_groups.sum(axis=1)
    state, made = np.nonzero(counts)
    own = places[state]
    entry, group = np.repeat(np.arange(len(state)), np.diff(own.indptr)), own.indices
    others = of_groups[group, made[entry]] - own.data
    chance = own.data * (others + 1) / (total[group] - own.data + counts.shape[1])
    return group_weights(entry, chance, len(state))


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


# ---- a tree of states, where they are visited too rarely to count ----------------------


def leaves(states: Array, counts: Array) -> Ints:  # [S]
    """Return groups of states in which decisions have the same shares, as far as can be told.

    A group is divided at a threshold of a variable if that makes its decisions likelier by more
    than it costs: half the logarithm of the steps for each parameter that it adds (the Bayesian
    information criterion), and the logarithm of the number of thresholds that were tried.

    Parameters
    ----------
    states
        Numbers of states; NaN where they are missing. [variables, S]
    counts
        How often each decision was made in each state. [S, J]

    Examples
    --------
    >>> x = np.arange(40.0)[None, :]
    >>> leaves(x, np.where(x.T < 15, [1, 0], [0, 1])).tolist() == [0] * 15 + [1] * 25
    True
    """
    known = np.where(np.isnan(states), -np.inf, states)
    group = np.zeros(len(counts), dtype=np.int64)
    waiting = [np.arange(len(counts))]
    while waiting:
        rows = waiting.pop()
        below = _split(known[:, rows], counts[rows])
        if below is not None:
            group[rows[~below]] = group.max() + 1
            waiting += [rows[below], rows[~below]]
    return group


def _split(states: Array, counts: Array) -> Bools | None:
    """Return which states are below the best threshold; None if it is not worth it."""
    total = counts.sum(axis=0)
    best, found = 0.0, None
    tried = 0
    for numbers in states:
        order = np.argsort(numbers, kind="stable")
        ends = np.flatnonzero(numbers[order[1:]] > numbers[order[:-1]])  # a threshold after each
        if not len(ends):
            continue
        tried += len(ends)
        left = np.cumsum(counts[order], axis=0)[ends]
        gain = _log_likelihood(left) + _log_likelihood(total - left) - _log_likelihood(total[None])
        if gain.max() > best:
            best = float(gain.max())
            found = numbers <= numbers[order[ends[int(gain.argmax())]]]
    parameters = max(1, int((total > 0).sum()) - 1)
    price = parameters / 2 * np.log(max(total.sum(), 1.0)) + np.log(max(tried, 1))
    return found if best > price else None


def _log_likelihood(counts: Array) -> Array:  # [rows]
    """Return the log-likelihood of decisions by their own shares."""
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray((counts * np.log(np.maximum(share, 1e-300))).sum(axis=1))
