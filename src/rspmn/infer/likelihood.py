"""Likelihood: how probable is what was seen, given what was decided (Sec. 4, Step 4).

Decisions are not random variables: a decision that is known selects its branch. For one
that is not known a max node passes up the largest of its branches' likelihoods, as the
paper's bottom-up pass has it. Utilities have likelihood 1.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rspmn.circuit import (
    Categorical,
    Latent,
    Leaf,
    Max,
    Network,
    Node,
    Product,
    Sum,
    Utility,
    fold_up,
)
from rspmn.data.coding import encode, one_key
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.tables import as_table
from rspmn.infer.evidence import Evidence, Known, known_values
from rspmn.model import RSPMN
from rspmn.spmn import SPMN
from rspmn.values import END, Value

__all__ = [
    "episode_log_likelihood",
    "evidence_of",
    "log_likelihood",
    "log_likelihood_of_episodes",
    "log_likelihood_of_rows",
    "log_likelihoods",
]


def log_likelihood(network: Network, evidence: Evidence) -> float:
    """Return the log-likelihood of evidence under a network with one root.

    >>> from rspmn.circuit import Categorical, NetworkBuilder
    >>> b = NetworkBuilder()
    >>> coin = b.build(b.leaf("x", Categorical(("head", "tail"), (0.25, 0.75))))
    >>> log_likelihood(coin, {"x": "head"}) == math.log(0.25)
    True
    >>> log_likelihood(coin, {})
    0.0
    """
    return log_likelihoods(network, known_values(evidence, network))[network.root]


def episode_log_likelihood(model: RSPMN, steps: Sequence[Evidence]) -> float:
    """Return the log-likelihood of an episode from its start, never unfolding.

    A step that is END in all its variables says that the episode ended before it.
    """
    future: list[float] = [0.0] * model.num_interfaces
    for step in reversed(steps):
        values = log_likelihoods(model.template, known_values(step, model.template), future)
        future = [values[root] for root in model.template.roots]
    return log_likelihoods(model.top, {}, future)[model.top.root]


def log_likelihood_of_episodes(model: RSPMN, episodes: Episodes) -> NDArray[np.float64]:
    """Return the log-likelihood of each episode, what followed its last step included."""
    return np.array(
        [episode_log_likelihood(model, evidence_of(episodes, e)) for e in range(len(episodes))]
    )


def log_likelihood_of_rows(model: SPMN, source: object) -> NDArray[np.float64]:
    """Return the log-likelihood of each row of a table, given its decisions.

    Smoothing, so that no row is impossible for a learned model: its background, in which variables
    have nothing to do with each other and values that were never seen have a little probability,
    is mixed in with the weight of one row, P = (n · P_model + P_background)/(n + 1). Of a value
    that was never seen in any row the model itself knows as little as of a missing one; such a
    value counts with its probability in the background.
    """
    names = [n for n in model.schema.variables if n != model.schema.utility]
    table = as_table(source)
    columns = []
    for name in names:
        cells = table.cells(name)
        columns.append(encode(cells.present, cells.missing, model.schema.kinds.get(name), name))
    _, first, inverse = np.unique(
        one_key([column.keys() for column in columns]), return_index=True, return_inverse=True
    )
    decoded = [column.take(first).decode() for column in columns]
    rows = [dict(zip(names, values, strict=True)) for values in zip(*decoded, strict=True)]
    return np.array([_row_log_likelihood(model, row) for row in rows])[inverse]


def _row_log_likelihood(model: SPMN, row: Evidence) -> float:
    if model.background is None:
        return log_likelihood(model.network, row)
    known = known_values(row, model.network)
    leaves = [leaf for leaf in model.background.nodes if isinstance(leaf, Leaf)]
    apart = {
        n.variable: _smoothed(n, known[n.variable], model.rows)
        for n in leaves
        if n.variable in known
    }
    new = [n.variable for n in leaves if n.variable in apart and _is_new(n, known[n.variable])]
    own = log_likelihood(model.network, {k: v for k, v in known.items() if k not in new})
    share = 1 / (model.rows + 1)
    return log_weighted_sum(
        [1 - share, share], [own + sum(apart[name] for name in new), sum(apart.values())]
    )


def _is_new(leaf: Leaf, value: Value) -> bool:
    """Say whether a value was never seen in any row."""
    return leaf.distribution.log_prob(value) == -math.inf


def _smoothed(leaf: Leaf, value: Value, rows: float) -> float:
    """Return the log-probability of a value, thinking values possible that were never seen.

    Of a category each value, and a new one, counts as seen once more than it was. Of a number, a
    Cauchy density of the same centre and spread has the weight of one row.
    """
    distribution = leaf.distribution
    seen = math.exp(distribution.log_prob(value)) * rows
    if isinstance(distribution, Categorical):
        return math.log((seen + 1) / (rows + len(distribution.values) + 1))
    spread = math.sqrt(distribution.variance())
    away = (float(value) - distribution.mean()) / spread  # type: ignore[arg-type]
    return math.log((seen + 1 / (math.pi * spread * (1 + away * away))) / (rows + 1))


def evidence_of(episodes: Episodes, episode: int) -> list[Evidence]:
    """Return an episode as evidence: its steps without utilities, then what followed."""
    names = [name for name in episodes.schema.variables if name != episodes.schema.utility]
    steps: list[Evidence] = [
        {name: step[name] for name in names} for step in episodes.steps(episode)
    ]
    final = episodes.final_state(episode)
    if final is not None:
        steps.append(final)
    elif episodes.endings[episode] == Followed.END:
        steps.append(dict.fromkeys(names, END))
    return steps


def log_likelihoods(network: Network, known: Known, future: Sequence[float] = ()) -> list[float]:
    """Return the log-likelihood of every node; `future[i]` stands for interface node i."""

    def combine(node: Node, below: list[float]) -> float:
        match node:
            case Leaf():
                if node.variable not in known:
                    return 0.0
                return node.distribution.log_prob(known[node.variable])
            case Utility():
                return 0.0
            case Product():
                return sum(below)
            case Sum():
                return log_weighted_sum(node.weights, below)
            case Max():
                if node.decision not in known:
                    return max(below)
                value = known[node.decision]
                return below[node.values.index(value)] if value in node.values else -math.inf
            case Latent():
                return future[node.interface] if future else 0.0

    return fold_up(network, combine)


def log_weighted_sum(weights: Sequence[float], logs: Sequence[float]) -> float:
    """Return log Σ weight · exp(log), without underflow.

    >>> log_weighted_sum([0.25, 0.75], [-5000.0, -5000.0])
    -5000.0
    """
    pairs = list(zip(weights, logs, strict=True))
    highest = max((log for weight, log in pairs if weight > 0), default=-math.inf)
    if highest == -math.inf:
        return highest
    return highest + math.log(math.fsum(w * math.exp(log - highest) for w, log in pairs if w > 0))
