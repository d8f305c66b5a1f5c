"""How well a model predicts next states: on a log that it was not learned from."""

import math
from dataclasses import dataclass

import numpy as np

from rspmn.data.distinct import find_sorted
from rspmn.data.episodes import Episodes
from rspmn.data.keys import group_weights
from rspmn.data.windows import Windows
from rspmn.infer.compiled.assign import assign, known_columns
from rspmn.infer.compiled.forward_backward import entries_of
from rspmn.infer.compiled.sites import Sites
from rspmn.infer.compiled.smoothing import mixed, visits_and_end
from rspmn.infer.compiled.template_trees import Ways, steps_behind
from rspmn.model import RSPMN
from rspmn.types import Array, Ints

#: Amounts of smoothing that are tried: constant shares, and weights in steps.
SHARES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3)
STEPS = (1e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


@dataclass(frozen=True, eq=False)
class Predictions:
    """The probability of each observed next interface node, given state and decisions.

    Only steps and next states that the model knows are predicted.
    """

    probability: Array  # [n]
    share: Array  # [n], share of that interface node in all visits of the model's own log
    behind: Array  # [n], logged steps behind the S_L
    counts: Array  # [n], how often it was observed
    left_out: float  # share of the steps that are not predicted

    def log_likelihood(self, share: float = 0.0, steps: float = 0.0) -> float:
        """Return the mean log-probability of a step, NaN if none is predicted.

        It is smoothed by the shares of all visits, with a constant weight `share` or with the
        weight of so many `steps`. Without either it may be -∞.
        """
        if not self.counts.sum():
            return math.nan
        weight = np.maximum(share, steps / (self.behind + steps) if steps else 0.0)
        with np.errstate(divide="ignore"):
            log_p, log_q = np.log(self.probability), np.log(self.share)
            each = mixed(log_p, log_q, (1 - weight) / weight) if weight.any() else log_p
        return float(self.counts @ each / self.counts.sum())

    def best_log_likelihood(self) -> float:
        """Return the highest log-likelihood of all amounts of smoothing in `SHARES` and `STEPS`."""
        return max(
            *(self.log_likelihood(share=share) for share in SHARES),
            *(self.log_likelihood(steps=steps) for steps in STEPS),
        )


def predictions(model: RSPMN, log: Episodes | Windows) -> Predictions:
    """Return the predictions of every next state of a log, from state and decisions before it.

    >>> from rspmn.envs.frozen_lake import frozen_lake
    >>> from rspmn.learn import learn_rspmn
    >>> logs = [frozen_lake().generate(4000, 20, seed) for seed in (1, 2)]
    >>> model, _ = learn_rspmn(logs[0])
    >>> likely = predictions(model, logs[1]).best_log_likelihood()
    >>> -1.1 < likely < -0.9  # one of three neighbours, or less where there are walls
    True
    """
    windows = log if isinstance(log, Windows) else Windows.from_episodes(log)
    assigned = assign(model, windows)
    row = assigned.window[assigned.after[assigned.window] >= 0]
    ways = Ways(assigned.trees, known_columns(windows), row, assigned.here[row])
    way, _, site, logs, _ = entries_of(ways)
    sites = assigned.trees.sites
    window, which = np.unique(way, return_inverse=True)
    # ways are weighed by their likelihood; the utility is not used
    highest = np.full(len(window), -np.inf)
    np.maximum.at(highest, which, logs)
    share = np.exp(logs - highest[which])
    share /= group_weights(which, share, len(window))[which]
    chance = _weights(sites, model.num_interfaces, site, assigned.after[way])
    behind = steps_behind(model.template, sites)[site]
    visits = visits_and_end(model)
    counts = windows.counts[window].astype(np.float64)
    return Predictions(
        group_weights(which, share * chance, len(window)),
        (visits / visits.sum())[assigned.after[window]],
        group_weights(which, share * behind, len(window)),
        counts,
        1 - float(counts.sum() / max(1, windows.counts.sum())),
    )


def _weights(sites: Sites, size: int, site: Ints, interface: Ints) -> Array:  # [n]
    """Return the weight of an interface node at each of some S_L; 0 without an edge."""
    owner = np.repeat(np.arange(len(sites.starts) - 1), np.diff(sites.starts))
    key = owner * size + sites.interfaces
    order = np.argsort(key)
    at = find_sorted(key[order], site * size + interface)
    return np.append(sites.weights[order], 0.0)[at]
