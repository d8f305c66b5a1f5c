"""Brute force: every assignment enumerated, and the sum-max-sum rule applied to the table.

Nothing here is shared with `rspmn.infer`: a network is only asked for P(x | d) and E[u | x, d]
of complete assignments, in linear space, for all of them at once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from random_models import Domains
from rspmn.circuit import Categorical, Latent, Leaf, Max, Network, Product, Sum, Utility
from rspmn.schema import Schema
from rspmn.values import Value

Array = NDArray[Any]


def tabulate(network: Network, domains: Domains) -> tuple[Array, Array]:
    """Return P(x | d) and P(x | d) · E[u | x, d], one axis per variable of `domains`."""
    axes = np.meshgrid(*(np.arange(len(v)) for v in domains.values()), indexing="ij")
    code = dict(zip(domains, axes, strict=True))
    shape = axes[0].shape
    found: list[tuple[Array, Array]] = []  # of each node: (p, p · u)
    p: Array
    w: Array
    for node in network.nodes:
        below = [found[child] for child in node.children]
        match node:
            case Leaf():
                assert isinstance(node.distribution, Categorical)
                table = dict(
                    zip(node.distribution.values, node.distribution.probabilities, strict=True)
                )
                p = np.array([table.get(v, 0.0) for v in domains[node.variable]])
                found.append((p[code[node.variable]], np.zeros(shape)))
            case Utility():
                found.append((np.ones(shape), np.full(shape, node.mean)))
            case Product():
                p, w = np.ones(shape), np.zeros(shape)
                for q, v in below:
                    p, w = p * q, w * q + p * v
                found.append((p, w))
            case Sum():
                weights = np.array(node.weights)
                p = np.tensordot(weights, np.array([q for q, _ in below]), axes=1)
                w = np.tensordot(weights, np.array([v for _, v in below]), axes=1)
                found.append((p, w))
            case Max():
                p, w = np.zeros(shape), np.zeros(shape)
                for value, (q, v) in zip(node.values, below, strict=True):
                    chosen = code[node.decision] == domains[node.decision].index(value)
                    p, w = np.where(chosen, q, p), np.where(chosen, v, w)
                found.append((p, w))
            case Latent():
                raise AssertionError("an unfolded network has no latents")
    return found[network.root]


def sum_max_sum(
    table: tuple[Array, Array],
    domains: Domains,
    decisions: Sequence[str],
    evidence: Mapping[str, Value],
    by_likelihood: bool = False,
) -> tuple[float, float]:
    """Return likelihood and MEU: from the last variable to the first, sum or maximise.

    `by_likelihood` makes decisions for the largest likelihood instead of the largest utility.
    """
    p, w = table
    for name in reversed(list(domains)):
        if name in evidence:
            if evidence[name] not in domains[name]:
                return 0.0, float("nan")
            at = domains[name].index(evidence[name])
            p, w = p[..., at], w[..., at]
        elif name in decisions:
            worth = p if by_likelihood else np.where(p > 0, w / np.where(p > 0, p, 1), -np.inf)
            size = np.where(p > 0, np.abs(worth), 0).max(axis=-1, keepdims=True)
            tied = worth >= worth.max(axis=-1, keepdims=True) - 1e-9 * size
            best = np.expand_dims(np.where(tied, p, -1).argmax(axis=-1), -1)  # the likeliest
            p = np.take_along_axis(p, best, -1)[..., 0]
            w = np.take_along_axis(w, best, -1)[..., 0]
        else:
            p, w = p.sum(axis=-1), w.sum(axis=-1)
    return float(p), float(w) / float(p) if p > 0 else float("nan")


def empirical_meu(table: Mapping[str, Sequence[Value]], schema: Schema) -> float:
    """Return the sum-max-sum rule applied to the empirical distribution of a table.

    From the last variable to the first, N counts the rows with a history and V is its value: over
    chance the average of V by N, over a decision the largest V of those that were tried.
    """
    names = schema.variables[:-1]
    domains = [sorted(set(table[name]), key=str) for name in names]
    places = [{value: i for i, value in enumerate(domain)} for domain in domains]
    index = tuple(
        np.array([place[v] for v in table[name]]) for name, place in zip(names, places, strict=True)
    )
    n = np.zeros([len(domain) for domain in domains])
    total = np.zeros_like(n)
    np.add.at(n, index, 1)
    np.add.at(total, index, np.array(table[schema.utility], dtype=float))
    v = total / np.where(n > 0, n, 1)
    for name in reversed(names):
        tried = n.sum(axis=-1)
        if name in schema.decisions:
            v = np.where(n > 0, v, -np.inf).max(axis=-1)
        else:
            v = (n * v).sum(axis=-1) / np.where(tried > 0, tried, 1)
        v, n = np.where(tried > 0, v, 0.0), tried
    return float(v)
