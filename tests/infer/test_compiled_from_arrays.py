"""What planning compiles from arrays is what a walk over the nodes finds."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import share_of_examples
from factored_models import random_factored
from network_order import in_one_order
from random_models import random_rspmn, random_setting
from rspmn.circuit import (
    Categorical,
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
    walk_down,
)
from rspmn.circuit.node_arrays import KINDS
from rspmn.infer.branches import logged_steps
from rspmn.infer.compiled import state_part as compiled
from rspmn.infer.compiled.offers import Offers
from rspmn.infer.compiled.state_part import products_below, state_part
from rspmn.values import UNKNOWN, Mark, Value

seeds = st.integers(0, 2**32 - 1)
Part = tuple[float, dict[str, int]]


def random_template(seed: int) -> Network:
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        return random_factored(rng, frontier=bool(seed % 2)).template
    setting = random_setting(rng, 2, most_variables=3, values=3)
    return random_rspmn(rng, setting, 3, told_apart=bool(seed % 2), end=bool(seed % 5)).template


def random_graph(seed: int) -> Network:
    """Return nodes of all kinds above each other as it comes, whether that is valid or not."""
    rng, b = np.random.default_rng(seed), NetworkBuilder()
    values: list[Value] = ["k", UNKNOWN, "l"]
    for variable in "xy":
        for value in range(2):
            b.leaf(variable, Categorical.certain(value))
    for count in (1.0, 4.0):
        b.utility("u", 1.0, count)
    b.latent(0)
    for _ in range(14):
        below = rng.choice(len(b), int(rng.integers(1, 4)), replace=False).tolist()
        match int(rng.integers(4)):
            case 0:
                b.max("ab"[rng.integers(2)], dict(zip(values, below, strict=False)))
            case 1:
                b.sum(below, [1 / len(below)] * len(below))
            case _:
                b.product(below)
    return b.build(*rng.choice(len(b), 4).tolist(), len(b) - 1)


# ---- offers --------------------------------------------------------------------------


def factors(template: Network) -> list[bool]:
    """Return whether nothing is below each node but random variables."""

    def combine(node: Node, below: list[bool]) -> bool:
        return not isinstance(node, Max | Utility | Latent | FactoredLatents) and all(below)

    return fold_up(template, combine)


def first_decision(template: Network, index: int, is_factor: list[bool]) -> int | None:
    """Return the max node below a node if there is nothing but factors beside it."""
    node = template.nodes[index]
    if isinstance(node, Max):
        return index
    if not isinstance(node, Product):
        return None
    others = [child for child in node.children if not is_factor[child]]
    return first_decision(template, others[0], is_factor) if len(others) == 1 else None


def whole(template: Network, is_factor: list[bool]) -> list[int]:
    """Return the max nodes with nothing but factors beside all ways to them."""

    def send(_: int, node: Node, arrived: list[bool]) -> list[tuple[int, bool]]:
        if isinstance(node, Product):
            others = [child for child in node.children if not is_factor[child]]
            return [(child, all(arrived) and len(others) == 1) for child in others]
        return [(child, all(arrived)) for child in node.children]

    found = walk_down(template, dict.fromkeys(template.roots, True), send)
    maxes = [i for i, node in enumerate(template.nodes) if isinstance(node, Max)]
    return [i for i in maxes if all(found.get(i, [False]))]


@share_of_examples(0.4)
@given(seeds)
@pytest.mark.parametrize("made", [random_template, random_graph])
def test_offers(made: Callable[[int], Network], seed: int) -> None:
    template = made(seed)
    offers, is_factor = Offers(template), factors(template)
    maxes = [(i, node) for i, node in enumerate(template.nodes) if isinstance(node, Max)]
    number = {i: k for k, (i, _) in enumerate(maxes)}

    def first(index: int) -> int:
        found = first_decision(template, index, is_factor)
        return -1 if found is None else number[found]

    assert offers.maxes.tolist() == [i for i, _ in maxes]
    assert offers.first.tolist() == [first(root) for root in template.roots]
    assert offers.next.tolist() == [first(child) for _, node in maxes for child in node.children]
    assert offers.maxes[offers.whole].tolist() == whole(template, is_factor)
    for decision in {node.decision for _, node in maxes}:
        mine = [node for _, node in maxes if node.decision == decision]
        values = dict.fromkeys(v for n in mine for v in n.values if not isinstance(v, Mark))
        assert offers.values(decision) == [*values]
        for row, (index, node) in zip(offers.branches(decision).tolist(), maxes, strict=True):
            offered = node.decision == decision
            for value, branch in zip(values, row, strict=True):
                assert (branch >= 0) == (offered and value in node.values)
                if branch >= 0:
                    edge = template.arrays.starts[index] + node.values.index(value)
                    assert offers.edges[branch] == edge


# ---- states --------------------------------------------------------------------------


def state_part_one_by_one(template: Network) -> Network:
    """Return what `state_part` does."""
    builder = NetworkBuilder()
    one = builder.product([])

    def made(node: Node, below: list[int]) -> int:
        match node:
            case Max() | Utility() | Latent() | FactoredLatents():
                return one
            case Leaf():
                return builder.add(node)
            case Product():
                return builder.product([child for child in below if child != one])
            case Sum():
                return below[0] if len(set(below)) == 1 else builder.sum(below, node.weights)

    placed = fold_up(template, made)
    return builder.build(*(placed[root] for root in template.roots))


def expanded(network: Network, index: int) -> list[Part]:
    """Return the products that a node is a mixture of."""
    node = network.nodes[index]
    match node:
        case Leaf():
            return [(1.0, {node.variable: index})]
        case Sum():
            pairs = [pair for pair in zip(node.weights, node.children, strict=True) if pair[0] > 0]
            return [(w * share, part) for w, c in pairs for share, part in expanded(network, c)]
        case _:
            found: list[Part] = [(1.0, {})]
            for child in node.children:
                more = expanded(network, child)
                found = [(a * b, one | other) for a, one in found for b, other in more]
            return found


@share_of_examples(0.4)
@given(seeds)
def test_the_state_part(seed: int) -> None:
    template = random_graph(seed)
    plain, found = state_part_one_by_one(template), state_part(template)
    assert in_one_order(found) == in_one_order(plain)
    children = [template.nodes[root].children for root in template.roots]
    of_children = state_part(template, children)
    assert len(of_children.roots) == len(children)
    if all(isinstance(template.nodes[root], Product) for root in template.roots):
        assert in_one_order(of_children) == in_one_order(plain)


@share_of_examples(0.4)
@given(seeds)
def test_products_of_states(seed: int) -> None:
    found = state_part(random_template(seed))
    names = sorted({node.variable for node in found.nodes if isinstance(node, Leaf)})
    parts = products_below(found, np.array(found.roots), names)
    assert parts is not None
    for k, root in enumerate(found.roots):
        here = slice(*parts.starts[k : k + 2].tolist())
        rows = zip(parts.weight[here].tolist(), parts.leaf[here].tolist(), strict=True)
        assert expanded(found, root) == [
            (w, {n: i for n, i in zip(names, row, strict=True) if i >= 0}) for w, row in rows
        ]
    assert math.isclose(parts.weight.sum(), len(found.roots))


def test_too_many_products_are_not_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    found = state_part(random_template(1))
    monkeypatch.setattr(compiled, "MOST_PRODUCTS", 0)
    assert products_below(found, np.array(found.roots), ["s"]) is None


@given(seeds, st.booleans())
def test_logged_steps_are_the_fewest_of_what_is_added(seed: int, decided: bool) -> None:
    network, rng = random_graph(seed), np.random.default_rng(seed)
    arrays = network.arrays
    taken = (arrays.kind != KINDS[Max])[arrays.parents]  # [edges]
    for index in arrays.of_kind(Max).tolist():
        if rng.random() < 0.8:
            taken[rng.integers(*arrays.starts[index : index + 2])] = True

    def below(index: int) -> float:
        node = network.nodes[index]
        if isinstance(node, Utility):
            return node.count
        if isinstance(node, Max) and decided:
            chosen = np.flatnonzero(taken[slice(*arrays.starts[index : index + 2])])
            return below(node.children[chosen[0]]) if len(chosen) else 0.0
        if isinstance(node, Sum | Max):
            return sum(map(below, node.children))
        return min(map(below, node.children), default=math.inf)

    found = logged_steps(arrays, taken if decided else None).tolist()
    assert found == pytest.approx([below(index) for index in range(len(network))], rel=1e-12)
