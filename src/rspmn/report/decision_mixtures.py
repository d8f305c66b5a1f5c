"""How states lead to decisions: the mixture of products of leaves above each max node.

With it, and with what the branches of max nodes are worth, a page can answer for any state without
the model: the weight of a way is its share of the log times the probability of the state in it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from rspmn.circuit import Categorical, Distribution, Leaf, Max, Network, Node, fold_up
from rspmn.circuit import Product as ProductNode
from rspmn.circuit import Sum as SumNode
from rspmn.infer.compiled.offers import Offers
from rspmn.infer.compiled.state_part import products_below
from rspmn.model import RSPMN
from rspmn.values import Mark

#: Models with more ways than this have no states answered in the page.
MOST_WAYS = 100_000


@dataclass(frozen=True)
class Way:
    """One product of leaves above a max node."""

    node: int  # the interface node
    point: int  # the max node, as `Offers` numbers them
    weight: float  # within the interface node
    leaves: dict[str, Distribution]  # of variables, and of the decisions made before


class TooManyWaysError(ValueError):
    """A model has more ways to its decisions than are written out."""


def ways_to_decisions(model: RSPMN, offers: Offers) -> list[Way]:
    """Return all ways to the decisions of a template; END and UNKNOWN are left out.

    None are returned if what is earned beside a decision could not be told from the max node.

    >>> from rspmn.envs.paper_grid import paper_grid
    >>> ways = ways_to_decisions(paper_grid(), Offers(paper_grid().template))
    >>> len(ways), sorted(ways[0].leaves)
    (4, ['x', 'y'])
    """
    walk = _Walk(model.template, offers)
    found: list[Way] = []
    for node, root in enumerate(model.template.roots):
        if node in (model.end, model.unknown):
            continue
        for point, weight, leaves in walk.below(root, 1.0, {}):
            if not offers.whole[point]:
                return []
            found.append(Way(node, point, weight, leaves))
            if len(found) > MOST_WAYS:
                raise TooManyWaysError(f"more than {MOST_WAYS} products of leaves")
    return found


Found = tuple[int, float, dict[str, Distribution]]


class _Walk:
    """Walks down a template to its max nodes."""

    def __init__(self, template: Network, offers: Offers) -> None:
        self.template, self.offers = template, offers
        self.decides = fold_up(template, _decides)
        beside = (
            child
            for node in template.nodes
            if isinstance(node, ProductNode) and any(self.decides[c] for c in node.children)
            for child in node.children
            if self.decides[child] is False
        )
        factors = list(dict.fromkeys(beside))
        leaves = (leaf for leaf in template.arrays.objects if isinstance(leaf, Leaf))
        names = list(dict.fromkeys(leaf.variable for leaf in leaves))
        parts = products_below(template, np.array(factors, dtype=np.int64), names)
        if parts is None:
            raise TooManyWaysError("more products of leaves than are expanded")
        rows = list(zip(parts.weight.tolist(), parts.leaf.tolist(), strict=True))
        ends = zip(factors, pairwise(parts.starts.tolist()), strict=True)
        self.products = {factor: rows[start:stop] for factor, (start, stop) in ends}

    def below(self, index: int, weight: float, leaves: dict[str, Distribution]) -> Iterator[Found]:
        """Return the max nodes below a node, those below their branches too."""
        node = self.template.nodes[index]
        match node:
            case Max():
                yield int(self.offers.number[index]), weight, leaves
                for value, child in zip(node.values, node.children, strict=True):
                    if self.decides[child] and not isinstance(value, Mark):
                        made = {**leaves, node.decision: Categorical.certain(value)}
                        yield from self.below(child, weight, made)
            case SumNode():
                for share, child in zip(node.weights, node.children, strict=True):
                    if share > 0:
                        yield from self.below(child, weight * share, leaves)
            case ProductNode():
                yield from self._product(node, weight, leaves)
            case _:
                return

    def _product(
        self, node: ProductNode, weight: float, leaves: dict[str, Distribution]
    ) -> Iterator[Found]:
        further = [child for child in node.children if self.decides[child]]
        factors = [child for child in node.children if self.decides[child] is False]
        beside: list[tuple[float, dict[str, Distribution]]] = [(weight, leaves)]
        for factor in factors:
            parts = self.products[factor]
            if len(beside) * len(parts) > MOST_WAYS:
                raise TooManyWaysError(f"more than {MOST_WAYS} products of leaves")
            beside = [
                (w * share, {**known, **self._named(part)})
                for w, known in beside
                for share, part in parts
            ]
        for child in further:
            for w, known in beside:
                yield from self.below(child, w, known)

    def _named(self, part: Sequence[int]) -> dict[str, Distribution]:
        found = {}
        for index in part:
            leaf = self.template.nodes[index]
            if index >= 0 and isinstance(leaf, Leaf):
                found[leaf.variable] = leaf.distribution
        return found


def _decides(node: Node, below: list[Any]) -> bool | None:
    """Return whether a decision is below a node; None if it is an end of the step."""
    match node:
        case Max():
            return True
        case Leaf() | SumNode() | ProductNode():
            if any(each is True for each in below):
                return True
            return None if any(each is None for each in below) else False
        case _:
            return None
