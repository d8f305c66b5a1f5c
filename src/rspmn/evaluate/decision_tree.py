"""A tree of states by what is decided in them, for states that are visited too rarely to count."""

import numpy as np

from rspmn.types import Array, Bools, Ints


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
