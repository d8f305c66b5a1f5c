"""Likelihood of whole logs, smoothed so that no episode is impossible.

A learned model gives probability 0 to every successor that it never saw. On fresh episodes that
says little more than that something was new. So each S_L backs off, with the weight of one step or
of as many as are asked for, to the interface nodes as they are visited in the log as a whole, and
these, with the same weight, to a background in which all values that the model knows are alike.
"""

import math

import numpy as np

from rspmn.circuit import Leaf
from rspmn.circuit.distributions import as_numbers
from rspmn.data.episodes import Episodes, Followed
from rspmn.errors import EvidenceError
from rspmn.infer.compiled.forward_backward import Abreast, Kernel, kernel_of
from rspmn.infer.compiled.layers import CompiledLikelihood, compile_likelihood
from rspmn.infer.compiled.leaf_tables import Distinct
from rspmn.infer.compiled.subtrees import steps_behind
from rspmn.model import RSPMN
from rspmn.types import Array
from rspmn.values import Mark


def log_likelihood_of_episodes(
    model: RSPMN, episodes: Episodes, smoothed: bool | float = True
) -> Array:  # [num_episodes]
    """Return the log-likelihood of each episode, what followed its last step included.

    `smoothed` may be the weight of what is backed off to, in steps; True is one. A model without
    visits, as one written by hand, is not smoothed.
    """
    if not 0 <= smoothed < math.inf:
        raise EvidenceError(f"smoothed: expected a number of steps, found {smoothed}")
    kernel = kernel_of(model, episodes)
    top = compile_likelihood(model.top)
    found = np.empty(len(episodes))
    smoothing = (
        _Smoothing(model, kernel, episodes, float(smoothed)) if smoothed and model.visits else None
    )
    for log in Abreast.chunks(episodes, model.num_interfaces, times=smoothing is None):
        if smoothing is None:
            found[log.which] = top({}, len(log), kernel.backward(log)[0])[0]
        else:
            found[log.which] = smoothing.likelihood(log, top)
    return found


class _Smoothing:
    """Backing off from each S_L to the log as a whole, and from there to a background."""

    def __init__(self, model: RSPMN, kernel: Kernel, episodes: Episodes, weight: float) -> None:
        self.model, self.kernel = model, kernel
        self.counts = steps_behind(model.template, kernel.sites) / weight  # [sites]
        visits = np.array(model.visits)
        if model.end is not None:
            visits[model.end] = max(1.0, visits.sum() / len(visits))
        self.total = visits.sum() / weight
        with np.errstate(divide="ignore"):
            self.shares: Array = np.log(visits / visits.sum())
        background = _Background(model)
        self.steps = background.of_steps(kernel.columns, len(kernel.starts) - 1)  # by kind
        finals = {name: Distinct.of(column) for name, column in episodes.finals.items()}
        self.finals = background.of_steps(finals, len(episodes))

    def likelihood(self, log: Abreast, top: CompiledLikelihood) -> Array:  # [episodes]
        """Return the smoothed log-likelihood of each episode."""
        kernel, model = self.kernel, self.model
        future = kernel.after_last(log)
        ending = np.where(log.endings == Followed.STATE, self.finals[log.which], 0.0)
        ending[log.endings == Followed.END] = math.log(0.5)
        whole = np.logaddexp.reduce(self.shares[:, None] + future, axis=0)
        anew = _mixed(whole, ending, self.total)
        for t in reversed(range(log.longest)):
            running = log.running(t)
            kinds = kernel.step[log.first[:running] + t]
            row, entry, ahead, _ = kernel.reach(kinds, future)
            counts = self.counts[kernel.site[entry]]
            logs = kernel.logs[entry] + _mixed(ahead, anew[row], counts)
            reached = kernel.by_root(row, entry, logs)
            future[:, :running] = reached.dense(model.num_interfaces, running)
            whole = np.logaddexp.reduce(self.shares[:, None] + future[:, :running], axis=0)
            anew[:running] = _mixed(whole, self.steps[kinds] + anew[:running], self.total)
        starts = top({}, len(log), future)[0]
        return _mixed(starts, anew, self.total)


def _mixed(one: Array, other: Array, weight: Array | float) -> Array:
    """Return log((weight · e^one + e^other)/(weight + 1))."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.logaddexp(np.log(weight) + one, other) - np.log1p(weight))


class _Background:
    """All values that the model knows are alike, and one more stands for those it does not."""

    def __init__(self, model: RSPMN) -> None:
        self.values: dict[str, set[object]] = {}
        self.numbers: dict[str, list[float]] = {}
        for node in model.template.nodes:
            if not isinstance(node, Leaf):
                continue
            span = node.distribution.span()
            if node.distribution.atoms() is None:
                self.numbers.setdefault(node.variable, []).extend(map(float, span))  # type: ignore[arg-type]
            else:
                known = self.values.setdefault(node.variable, set())
                known |= {value for value in span if not isinstance(value, Mark)}

    def of_steps(self, columns: dict[str, Distinct], rows: int) -> Array:  # [rows]
        """Return the log-probability of some steps, not being the end."""
        found = np.full(rows, math.log(0.5))
        for name, column in columns.items():
            if name in self.numbers:
                found += column.each(self._densities(name, as_numbers(column.values)))
            elif name in self.values:
                each = -math.log(len(self.values[name]) + 1)
                found += np.where(column.codes >= 0, each, 0.0)
        return found

    def _densities(self, name: str, values: Array) -> Array:  # [values]
        low, high = min(self.numbers[name]), max(self.numbers[name])
        spread = max((high - low) / 2, 1e-9)
        away = (values - (low + high) / 2) / spread
        return -np.log(math.pi * spread * (1 + away * away))
