"""Likelihood: how probable is what was seen, given what was decided (Sec. 4, Step 4).

Decisions are not random variables: a decision that is known selects its branch. For one
that is not known a max node passes up the largest of its branches' likelihoods, as the
paper's bottom-up pass has it. Utilities have likelihood 1.
"""

import math
from collections.abc import Sequence

from rspmn.circuit import (
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
from rspmn.data.episodes import Episodes, Followed
from rspmn.infer.evidence import Known, known_values
from rspmn.model import RSPMN, Evidence
from rspmn.values import END


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
