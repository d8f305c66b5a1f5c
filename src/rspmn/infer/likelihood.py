"""Likelihood of what was observed, given the decisions (Sec. 4, Step 4).

Decisions are not random variables: a known decision selects its branch. If a decision is not
known, its max node passes up the largest likelihood of its branches, as in the paper's bottom-up
pass. Utilities have likelihood 1.
"""

import math
from collections.abc import Callable, Sequence

from rspmn.circuit import (
    Categorical,
    Distribution,
    FactoredLatents,
    Latent,
    Leaf,
    Max,
    Network,
    NetworkBuilder,
    Node,
    Product,
    Sum,
    Utility,
    fold_up,
)
from rspmn.circuit.network import with_children
from rspmn.data.tables import as_table
from rspmn.errors import EvidenceError
from rspmn.infer.evidence import Known, check_columns, known_values
from rspmn.model import RSPMN, Evidence
from rspmn.types import Array
from rspmn.values import Value


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
    return node_log_likelihoods(network, known_values(evidence, network))[network.root]


def log_likelihoods(network: Network, table: object) -> Array:  # [rows]
    """Return the log-likelihood of each row of a table under a network with one root.

    Variables without a column are missing in all rows; a column of utilities is ignored. All rows
    are evaluated at once.

    >>> from rspmn.circuit import Categorical, NetworkBuilder
    >>> b = NetworkBuilder()
    >>> coin = b.build(b.leaf("x", Categorical(("head", "tail"), (0.25, 0.75))))
    >>> log_likelihoods(coin, {"x": ["head", "tail", None]}).round(2).tolist()
    [-1.39, -0.29, 0.0]
    """
    from rspmn.infer.compiled.layers import compile_likelihood
    from rspmn.infer.compiled.leaf_tables import distinct_columns

    network.root  # noqa: B018  (refuses networks with several)
    rows = as_table(table)
    columns = distinct_columns(rows, check_columns(rows.names, network))
    found: Array = compile_likelihood(network)(columns, rows.rows)[0]
    return found


def episode_log_likelihood(model: RSPMN, steps: Sequence[Evidence]) -> float:
    """Return the log-likelihood of an episode from its start, without unfolding the model.

    A step in which all variables are END means that the episode ended before it.
    """
    future: list[float] = [0.0] * model.num_interfaces
    for step in reversed(steps):
        known = known_values(step, model.template)
        logs = node_log_likelihoods(model.template, known, future)
        future = [logs[root] for root in model.template.roots]
    return node_log_likelihoods(model.top, {}, future)[model.top.root]


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


def node_log_likelihoods(
    network: Network,
    known: Known,
    future: Sequence[float] = (),
    missing: Callable[[Distribution], float] = lambda _: 0.0,
    mixture: Callable[[Sequence[float], Sequence[float]], float] = log_weighted_sum,
) -> list[float]:
    """Return the log-likelihood of every node.

    `network`, `known`: the network, and the values that are known. `future`: the log-likelihood of
    each interface node of the next step; 0 by default. `missing`: what a leaf passes up whose
    variable is not known. `mixture`: what a sum passes up, given its weights and what its children
    do.
    """

    def combine(node: Node, below: list[float]) -> float:
        match node:
            case Leaf():
                if node.variable not in known:
                    return missing(node.distribution)
                return node.distribution.log_prob(known[node.variable])
            case Utility():
                return 0.0
            case Product():
                return sum(below)
            case Sum():
                return mixture(node.weights, below)
            case Max():
                if node.decision not in known:
                    return max(below)
                value = known[node.decision]
                return below[node.values.index(value)] if value in node.values else -math.inf
            case Latent():
                return future[node.interface] if future else 0.0
            case FactoredLatents():
                return mixture(node.latent_weights(), future) if future else 0.0

    return fold_up(network, combine)


def conditioned(network: Network, evidence: Evidence) -> Network:
    """Return the network given evidence: P(all others | evidence), as a network.

    Known variables and decisions keep only their known value. Weights below sums become
    weight · likelihood of the child, normalised; branches of likelihood 0 are removed.

    >>> from rspmn.circuit import Categorical, NetworkBuilder
    >>> b = NetworkBuilder()
    >>> coin = b.leaf("x", Categorical(("head", "tail"), (0.25, 0.75)))
    >>> conditioned(b.build(coin), {"x": "tail"}).nodes[0].distribution
    Categorical(values=('tail',), probabilities=(1.0,))
    """
    known = known_values(evidence, network)
    if not known:
        return network
    logs = node_log_likelihoods(network, known)
    if logs[network.root] == -math.inf:
        raise EvidenceError(f"the evidence {known} is impossible under the network")
    builder = NetworkBuilder()
    placed: list[int] = []  # [nodes], -1 for those of likelihood 0
    for node, log in zip(network.nodes, logs, strict=True):
        below = [placed[child] for child in node.children]
        if log == -math.inf:
            placed.append(-1)
        elif isinstance(node, Leaf) and node.variable in known:
            placed.append(builder.leaf(node.variable, Categorical.certain(known[node.variable])))
        elif isinstance(node, Max):
            placed.append(builder.max(node.decision, _open_branches(node, below, known)))
        elif isinstance(node, Sum):
            shares = _posterior(node, below, [logs[child] - log for child in node.children])
            placed.append(builder.sum(list(shares), list(shares.values())))
        else:
            placed.append(builder.add(with_children(node, tuple(below))))
    return builder.build(placed[network.root])


def _open_branches(node: Max, below: list[int], known: Known) -> dict[Value, int]:
    """Return the possible branches of a max node; of a known decision, only its own."""
    branches = {v: child for v, child in zip(node.values, below, strict=True) if child >= 0}
    made = known.get(node.decision)
    return branches if made is None else {made: branches[made]}


def _posterior(node: Sum, below: list[int], logs: list[float]) -> dict[int, float]:
    """Return the weight of each child given the evidence; `logs` are relative to the sum's own."""
    shares: dict[int, float] = {}
    for child, weight, log in zip(below, node.weights, logs, strict=True):
        if weight > 0 and child >= 0:
            shares[child] = shares.get(child, 0.0) + weight * math.exp(log)
    total = math.fsum(shares.values())
    return {child: share / total for child, share in shares.items()}
