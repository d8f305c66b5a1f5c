"""Branches added to all roots at once are those that are added one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from effort import share_of_examples
from network_order import in_one_order
from random_models import random_rspmn, random_setting
from rspmn.circuit import Categorical, Leaf, Max, Network, NetworkBuilder, Product
from rspmn.circuit.more_branches import with_branches
from rspmn.circuit.rewrite import graft


def one_by_one(network: Network, at: list[int], extra: Network) -> Network:
    """Return what `with_branches` does, node by node."""
    builder = NetworkBuilder()
    own, other = (graft(builder, each, rename=None) for each in (network, extra))
    roots = [own[root] for root in network.roots]
    for here, root in zip(at, extra.roots, strict=True):
        place, more = roots[here], other[root]
        assert place is not None
        assert more is not None
        roots[here] = wider(builder, place, more)
    return builder.build(*(root for root in roots if root is not None))


def wider(builder: NetworkBuilder, index: int, extra: int) -> int:
    """Add branches of the decisions of node `extra` that node `index` lacks."""
    here, other = builder[index], builder[extra]
    if isinstance(here, Max) and isinstance(other, Max):
        branches = dict(zip(here.values, here.children, strict=True))
        for value, child in zip(other.values, other.children, strict=True):
            known = branches.get(value)
            branches[value] = child if known is None else wider_below(builder, known, child)
        return builder.max(here.decision, branches)
    if isinstance(here, Product):
        below, over = next_decision(builder, index), next_decision(builder, extra)
        if below is not None and over is not None:
            found = wider(builder, below, over)
            return builder.product([found if c == below else c for c in here.children])
    return index


def wider_below(builder: NetworkBuilder, index: int, extra: int) -> int:
    if any(isinstance(builder[child], Leaf) for child in builder[index].children):
        return index
    return wider(builder, index, extra)


def next_decision(builder: NetworkBuilder, index: int) -> int | None:
    node = builder[index]
    if isinstance(node, Max):
        return index
    if not isinstance(node, Product):
        return None
    return next((c for c in node.children if next_decision(builder, c) is not None), None)


@share_of_examples(0.4)
@given(st.integers(0, 2**32 - 1))
def test_all_at_once_as_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    setting = random_setting(rng, 2, most_variables=2, values=4)
    one, other = (
        random_rspmn(rng, setting, 3, told_apart=bool(rng.integers(2))).template for _ in range(2)
    )
    at = rng.permutation(len(one.roots))[: len(other.roots)]
    maxes = [i for i, node in enumerate(other.nodes) if isinstance(node, Max)]
    chosen = rng.choice([*maxes, *other.roots], len(at)).tolist()
    extra = other.part(chosen)
    found, _ = with_branches(one, at, extra)
    assert in_one_order(found) == in_one_order(one_by_one(one, at.tolist(), extra))


def test_edges_of_products_are_not_taken_for_branches() -> None:
    """They have no value: they must not be found as the last value of the node before them."""

    def x(builder: NetworkBuilder) -> int:
        return builder.leaf("x", Categorical.certain(0))

    own, more = NetworkBuilder(), NetworkBuilder()
    left = own.max("a", {"left": own.utility("u", 1.0)})
    network = own.build(left, own.product([x(own), own.max("a", {"left": own.utility("u", 2.0)})]))
    below = more.product([x(more), more.max("a", {"left": more.utility("u", 3.0)})])
    last = more.max("a", {"right": more.utility("u", 4.0)})
    extra = more.build(last, below)
    found, _ = with_branches(network, np.array([0, 1]), extra)
    assert in_one_order(found) == in_one_order(one_by_one(network, [0, 1], extra))
    root = found.nodes[found.roots[0]]
    assert isinstance(root, Max)
    assert root.values == ("left", "right")
