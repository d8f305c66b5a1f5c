"""Likelihood of tables and logs, smoothed so that nothing is impossible.

A learned model gives probability 0 to what it never saw, and on new data this happens all the time.
So each estimate p of n observations is mixed with a more general one, q, that has the weight of w
observations, one by default: (n · p + w · q)/(n + w).

- Rows of a single-shot model: q is the background, in which variables are independent.
- Steps of an episode: each S_L is mixed with the shares of all visits, and these with a background.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rspmn.circuit import Distribution, Leaf, Network
from rspmn.circuit.distributions import as_numbers
from rspmn.data.episodes import Episodes, Followed, check_episodes
from rspmn.data.tables import as_table
from rspmn.errors import EvidenceError
from rspmn.infer.compiled.forward_backward import Abreast, Kernel, kernel_of
from rspmn.infer.compiled.layers import compile_likelihood
from rspmn.infer.compiled.leaf_tables import Distinct, distinct_columns
from rspmn.infer.compiled.template_trees import steps_behind
from rspmn.model import RSPMN
from rspmn.spmn import SPMN
from rspmn.types import Array, Ints
from rspmn.values import Mark, Value

#: The least scale of the Cauchy density in a background.
NARROWEST = 1e-9


def mixed(log_p: Array, log_q: Array, odds: Array | float) -> Array:
    """Return log((n · p + w · q)/(n + w)), given log p, log q and `odds` = n/w.

    >>> np.exp(mixed(np.log([0.5]), np.log([0.1]), 3.0))  # (3 · .5 + .1)/4
    array([0.4])
    """
    with np.errstate(divide="ignore"):
        return np.asarray(np.logaddexp(np.log(odds) + log_p, log_q) - np.log1p(odds))


def visits_and_end(model: RSPMN) -> Array:  # [interfaces]
    """Return the visits of each interface node; END, which none counts, has the mean of all."""
    visits = np.array(model.visits or (1.0,) * model.num_interfaces)
    if model.end is not None:
        visits[model.end] = max(1.0, visits.sum() / len(visits))
    return visits


@dataclass(frozen=True, eq=False)
class Background:
    """Independent variables, in which values that were never seen have some probability.

    Each listed value, and one that stands for all others, counts as seen once more than it was. For
    numbers, a Cauchy density has the weight of one row. Its centre and scale are mean and standard
    deviation or, if nothing but the range is known, the middle and half the width of that.
    """

    leaves: Mapping[str, Sequence[Distribution]]  # by variable
    rows: float = 0.0  # the observations that the leaves, then one for each variable, represent

    @classmethod
    def of(cls, network: Network, rows: float = 0.0) -> "Background":
        """Return the background of all leaves in a network; without rows, values are equal."""
        leaves: dict[str, list[Distribution]] = {}
        for node in network.nodes:
            if isinstance(node, Leaf):
                leaves.setdefault(node.variable, []).append(node.distribution)
        return cls(leaves, rows)

    def log_likelihoods(self, columns: Mapping[str, Distinct], rows: int) -> Array:  # [rows]
        """Return the log-likelihood of rows; variables without leaves have likelihood 1."""
        found = np.zeros(rows)
        for name in self.leaves.keys() & columns.keys():
            found += columns[name].each(self.log_probs(name, columns[name].values))
        return found

    def log_probs(self, name: str, values: Sequence[Value]) -> Array:  # [values]
        """Return the log-probability of each value of a variable."""
        leaves = self.leaves[name]
        logs = leaves[0].log_probs(values)
        seen = self.rows * np.exp(logs)
        ranges = [leaf for leaf in leaves if leaf.atoms() is None]
        if not ranges:
            listed = {v for leaf in leaves for v in leaf.support() if not isinstance(v, Mark)}
            return np.asarray(np.log((seen + 1) / (self.rows + len(listed) + 1)))
        centre, scale = self._location(ranges)
        away = np.abs(as_numbers(values) - centre) / scale
        beside = -math.log(math.pi * scale) - 2 * np.log(np.hypot(1.0, away))  # Cauchy
        with np.errstate(divide="ignore"):
            seen_logs = np.log(seen)
        return np.asarray(np.logaddexp(seen_logs, beside) - math.log(self.rows + 1))

    def _location(self, leaves: Sequence[Distribution]) -> tuple[float, float]:
        """Return centre and scale of the Cauchy density; without rows, those of the range."""
        if self.rows:
            centre, scale = leaves[0].mean(), math.sqrt(leaves[0].variance())
        else:
            ends = np.concatenate([as_numbers(leaf.span()) for leaf in leaves])
            centre, scale = float(ends.min() + ends.max()) / 2, float(np.ptp(ends)) / 2
        return centre, max(scale, NARROWEST)


def row_log_likelihoods(
    model: SPMN, source: object, smoothed: bool | float = True
) -> Array:  # [rows]
    """Return the log-likelihood of each row of a table, given its decisions.

    `smoothed` is the weight of the background in rows; True is one. A model without a background
    is not smoothed. The model itself takes values that were never seen as missing ones, which then
    have their probability in the background.
    """
    weight = _weight(smoothed)
    table = as_table(source)
    names = [name for name in model.schema.variables if name != model.schema.utility]
    columns = distinct_columns(table, names, model.schema.kinds)
    network = compile_likelihood(model.network)
    if not weight or model.background is None:
        return np.asarray(network(columns, table.rows)[0])
    background = Background.of(model.background, model.rows)
    general = background.log_likelihoods(columns, table.rows)
    unseen = np.zeros(table.rows)
    for name, (leaf,) in background.leaves.items():
        column = columns[name]
        is_new = np.isneginf(leaf.log_probs(column.values))
        logs = background.log_probs(name, column.values)
        unseen += column.each(np.where(is_new, logs, 0.0))
        codes = np.where(np.append(is_new, True)[column.codes], -1, column.codes)
        columns[name] = replace(column, codes=codes)
    own = network(columns, table.rows)[0] + unseen
    return mixed(own, general, model.rows / weight)


def episode_log_likelihoods(
    model: RSPMN, episodes: Episodes, smoothed: bool | float = True
) -> Array:  # [num_episodes]
    """Return the log-likelihood of each episode, including what followed its last step.

    `smoothed` is the weight of more general estimates in steps; True is one. A model without
    visits, such as one written by hand, is not smoothed.
    """
    check_episodes(episodes)
    weight = _weight(smoothed)
    kernel = kernel_of(model, episodes)
    smoothing = _Smoothing(model, kernel, episodes, weight) if weight and model.visits else None
    found, starts = np.empty(len(episodes)), np.array(model.starts)
    for log in kernel.chunks(episodes, times=False):
        if smoothing is None:
            future = kernel.after_last(log)
            for step in kernel.steps_back(log, future):
                future = step.here
            found[log.which] = future.summed(starts)
        else:
            found[log.which] = smoothing.log_likelihoods(log)
    return found


def _weight(smoothed: bool | float) -> float:
    if not 0 <= smoothed < math.inf:
        raise EvidenceError(f"smoothed: expected a number of at least 0, found {smoothed}")
    return float(smoothed)


class _Smoothing:
    """Mixes each S_L with the shares of all visits, and these with a background."""

    def __init__(self, model: RSPMN, kernel: Kernel, episodes: Episodes, weight: float) -> None:
        self.model, self.kernel = model, kernel
        visits = visits_and_end(model)
        self.odds = steps_behind(model.template, kernel.sites) / weight  # [sites]
        self.total = visits.sum() / weight
        self.shares = visits / visits.sum()
        background = Background.of(model.template)
        self.steps = background.log_likelihoods(kernel.columns, len(kernel.starts) - 1)
        finals = {name: Distinct.of(column) for name, column in episodes.finals.items()}
        self.finals = background.log_likelihoods(finals, len(episodes))

    def log_likelihoods(self, log: Abreast) -> Array:  # [episodes]
        """Return the smoothed log-likelihood of each episode.

        In the background an episode ends after each step with probability 1/2.
        """
        half = math.log(0.5)
        ending = np.where(log.endings == Followed.STATE, half + self.finals[log.which], 0.0)
        ending[log.endings == Followed.END] = half
        future = self.kernel.after_last(log)
        general = mixed(future.summed(self.shares), ending, self.total)

        def mix(ahead: Array, row: Ints, entry: Ints) -> Array:
            return mixed(ahead, general[row], self.odds[self.kernel.site[entry]])

        for step in self.kernel.steps_back(log, future, mix):
            future, running = step.here, len(step.kinds)
            alone = half + self.steps[step.kinds] + general[:running]
            by_visits = future.summed(self.shares)[:running]
            general[:running] = mixed(by_visits, alone, self.total)
        return mixed(future.summed(np.array(self.model.starts)), general, self.total)
