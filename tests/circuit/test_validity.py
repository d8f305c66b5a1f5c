"""Validity and soundness: nothing is found in what is right, and every way of breaking it is."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from effort import share_of_examples
from random_models import random_rspmn, random_setting, random_spn, random_top
from rspmn.circuit import (
    NEXT_STEPS,
    Categorical,
    Latent,
    Max,
    Network,
    NetworkBuilder,
    Node,
    Product,
    Sum,
    order_violations,
    scopes,
    soundness_violations,
    top_violations,
    validity_violations,
)
from rspmn.circuit.network import with_children
from rspmn.errors import CircuitError
from rspmn.model import RSPMN

seeds = st.integers(0, 2**32 - 1)

Change = Callable[[NetworkBuilder, Node], int]


def random_model(seed: int, decisions: int = 2) -> RSPMN:
    rng = np.random.default_rng(seed)
    setting = random_setting(rng, decisions, most_variables=2, values=3)
    return random_rspmn(rng, setting, 3, told_apart=bool(seed % 2), end=bool(seed % 3))


def changed(network: Network, where: int, change: Change) -> Network:
    """Copy a network with one node made anew."""
    b = NetworkBuilder()
    place: list[int] = []
    for index, node in enumerate(network.nodes):
        moved = with_children(node, tuple(place[c] for c in node.children))
        place.append(change(b, moved) if index == where else b.add(moved))
    return b.build(*(place[root] for root in network.roots))


def with_extra(b: NetworkBuilder, child: int) -> int:
    return b.product([child, b.leaf("extra", Categorical.certain(1))])


def break_sum(b: NetworkBuilder, node: Node) -> int:
    assert isinstance(node, Sum)
    return b.sum([with_extra(b, node.children[0]), *node.children[1:]], node.weights)


def break_product(b: NetworkBuilder, node: Node) -> int:
    assert isinstance(node, Product)
    return b.product([*node.children, node.children[0]])


def break_max(b: NetworkBuilder, node: Node) -> int:
    assert isinstance(node, Max)
    children = [with_extra(b, node.children[0]), *node.children[1:]]
    return b.max(node.decision, dict(zip(node.values, children, strict=True)))


def decide_twice(b: NetworkBuilder, node: Node) -> int:
    assert isinstance(node, Max)
    again = b.max(node.decision, {node.values[0]: node.children[0]})
    children = [again, *node.children[1:]]
    return b.max(node.decision, dict(zip(node.values, children, strict=True)))


def break_root(b: NetworkBuilder, node: Node) -> int:
    return with_extra(b, b.add(node))


def break_latent(b: NetworkBuilder, node: Node) -> int:
    assert isinstance(node, Latent)
    return b.latent(node.interface + 100)


BREAKS: dict[str, tuple[Callable[[Node], bool], Change]] = {
    "sum-complete (Def. 2)": (lambda n: isinstance(n, Sum) and len(n.children) > 1, break_sum),
    "decomposable (Def. 3)": (lambda n: isinstance(n, Product) and bool(n.children), break_product),
    "max-complete (Def. 4)": (lambda n: isinstance(n, Max) and len(n.children) > 1, break_max),
    "max-unique (Def. 5)": (lambda n: isinstance(n, Max), decide_twice),
    "mapped to a root (Defs. 6, 8)": (lambda n: isinstance(n, Latent), break_latent),
}


@given(seeds, st.integers(1, 3), st.integers(1, 5))
def test_theorem_1(seed: int, decisions: int, steps: int) -> None:
    """A sound template under a valid top network unfolds to a valid SPMN, however often."""
    model = random_model(seed, decisions)
    assert soundness_violations(model.template) == []
    assert top_violations(model.top, model.num_interfaces) == []
    unfolded = model.unfold(steps)
    assert validity_violations(unfolded) == []
    # all variables of all steps are there, decisions and utilities too, and no latent is left
    expected = {f"{name}@{t}" for name in model.schema.variables for t in range(steps)}
    assert scopes(unfolded)[unfolded.root] == expected


@pytest.mark.parametrize("definition", BREAKS)
@share_of_examples(0.4)
@given(seeds, st.integers(0, 2**16))
def test_a_broken_template_is_caught(definition: str, seed: int, pick: int) -> None:
    model = random_model(seed)
    fits, change = BREAKS[definition]
    places = [i for i, node in enumerate(model.template.nodes) if fits(node)]
    assume(places)
    broken = changed(model.template, places[pick % len(places)], change)
    found = soundness_violations(broken)
    assert definition in {violation.definition for violation in found}
    for violation in found:
        assert violation.path[0] in broken.roots
        assert violation.path[-1] == violation.node
        for above, below in zip(violation.path, violation.path[1:], strict=False):
            assert below in broken.nodes[above].children
    with pytest.raises(CircuitError, match="RSPMN: template: node"):
        RSPMN(model.schema, model.top, broken)


@given(seeds)
def test_roots_of_different_scopes_are_caught(seed: int) -> None:
    model = random_model(seed)
    broken = changed(model.template, model.template.roots[1], break_root)
    assert {v.definition for v in soundness_violations(broken)} >= {
        "of one scope with the other roots (Def. 8)"
    }


@given(seeds, st.integers(1, 5))
def test_random_spns_are_valid(seed: int, variables: int) -> None:
    rng = np.random.default_rng(seed)
    network = random_spn(rng, {f"x{k}": (0, 1) for k in range(variables)})
    assert validity_violations(network) == []


def test_a_decision_is_in_scope() -> None:
    """Two factors that make the same decision apart from each other are not decomposable."""
    b = NetworkBuilder()
    one = b.max("d", {0: b.utility("u", 1.0), 1: b.utility("u", 2.0)})
    other = b.max("d", {0: b.utility("v", 2.0), 1: b.utility("v", 1.0)})
    network = b.build(b.product([one, other]))
    (violation,) = validity_violations(network)
    assert violation.definition == "decomposable (Def. 3)"
    assert "{d}" in violation.message


def test_scopes_by_hand() -> None:
    b = NetworkBuilder()
    x, u, latent = b.leaf("x", Categorical.certain(1)), b.utility("u", 1.0), b.latent(0)
    network = b.build(b.product([x, b.max("d", {0: b.product([u, latent])})]))
    assert scopes(network)[network.root] == {"x", "u", "d", NEXT_STEPS}


def test_violations_say_what_and_where() -> None:
    b = NetworkBuilder()
    x, y = b.leaf("x", Categorical.certain(1)), b.leaf("y", Categorical.certain(1))
    network = b.build(b.product([b.sum([x, y], [0.5, 0.5])]))
    (violation,) = validity_violations(network)
    assert str(violation) == (
        "node 2 (path 3 → 2) is not sum-complete (Def. 2): node 0 has scope {x}, but node 1 has {y}"
    )


def test_top_networks() -> None:
    rng = np.random.default_rng(0)
    assert top_violations(random_top(rng, 3), 3) == []
    b = NetworkBuilder()
    stray = b.build(b.sum([b.latent(0), b.leaf("x", Categorical.certain(1))], [0.5, 0.5]))
    found = {v.definition for v in top_violations(stray, 1)}
    assert found == {"part of a top network (Def. 7)", "sum-complete (Def. 2)"}
    hollow = b.build(b.product([]))
    assert {v.definition for v in top_violations(hollow, 1)} == {"part of a top network (Def. 7)"}
    both = b.build(b.product([b.latent(0), b.latent(1)]))
    assert {v.definition for v in top_violations(both, 2)} == {"decomposable (Def. 3)"}
    two = b.build(b.latent(0), b.latent(5))
    assert {v.definition for v in top_violations(two, 2)} == {
        "part of a top network (Def. 7)",
        "mapped to a root (Defs. 6, 8)",
    }


def test_decisions_out_of_order() -> None:
    b = NetworkBuilder()
    inner = b.max("first", {0: b.utility("u", 1.0)})
    network = b.build(b.max("second", {0: inner}))
    assert order_violations(network, {"second": (), "first": ("second",)}) == []
    (violation,) = order_violations(network, {"first": (), "second": ("first",)})
    assert violation.message == "{first} is known before 'second', not after"


def test_information_out_of_order() -> None:
    """A decision must be able to look at what comes before it, and not at what comes after."""
    b = NetworkBuilder()
    leaves = [b.leaf("x", Categorical.certain(v)) for v in (0, 1)]
    pays = [b.utility("u", 1.0), b.utility("u", 0.0)]

    def gamble(first: int) -> int:
        outcomes = [b.product([leaves[0], pays[first]]), b.product([leaves[1], pays[1 - first]])]
        return b.sum(outcomes, [0.5, 0.5])

    blind = b.build(b.max("d", {0: gamble(0), 1: gamble(1)}))
    assert order_violations(blind, {"d": ()}) == []
    (violation,) = order_violations(blind, {"d": ("x",)})
    assert violation.message == "{x} is known before 'd', not after"

    seeing = [b.max("d", {0: pays[k], 1: pays[1 - k]}) for k in (0, 1)]
    parts = [b.product([leaf, choice]) for leaf, choice in zip(leaves, seeing, strict=True)]
    clairvoyant = b.build(b.sum(parts, [0.5, 0.5]))
    assert order_violations(clairvoyant, {"d": ("x",)}) == []
    found = order_violations(clairvoyant, {"d": ()})
    assert [v.message for v in found] == ["{x} is known after 'd', not before"] * 2


def test_the_bottom_keeps_decisions_that_lead_only_onwards() -> None:
    """A max over latents alone: in the last step its branches become the constant 1."""
    from rspmn.schema import Schema

    b = NetworkBuilder()
    roots = [
        b.product(
            [
                b.leaf("x", Categorical.certain(i)),
                b.utility("u", float(i)),
                b.max("d", {"stay": b.latent(i), "go": b.latent(1 - i)}),
            ]
        )
        for i in range(2)
    ]
    top = NetworkBuilder()
    model = RSPMN(Schema([["x"], ["d"]], ["d"], "u"), top.build(top.latent(0)), b.build(*roots))
    network = model.unfold(3)
    assert validity_violations(network) == []
    assert "d@2" in scopes(network)[network.root]
    assert model.meu(horizon=3) == 2.0  # 0, go, 1, stay, 1
