"""Networks as arrays: the same nodes, the same networks, the same faults as one by one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import share_of_examples
from factored_models import random_factored
from random_models import random_rspmn, random_setting
from rspmn.circuit import NEXT_STEPS, Latent, Network, NetworkBuilder, Product, Sum, Utility, blocks
from rspmn.circuit.blocks import BlockBuilder
from rspmn.circuit.node_arrays import KINDS, NodeViews, arrays_of
from rspmn.circuit.scope import ArrayScopes
from rspmn.circuit.validity import schema_violations, soundness_violations
from rspmn.errors import CircuitError
from rspmn.model import RSPMN

seeds = st.integers(0, 2**32 - 1)


def random_model(seed: int) -> RSPMN:
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        return random_factored(rng, frontier=bool(seed % 2))
    setting = random_setting(rng, 2, most_variables=2, values=3)
    return random_rspmn(rng, setting, 3, told_apart=bool(seed % 2), end=bool(seed % 5))


def in_arrays(network: Network) -> Network:
    return Network(NodeViews(arrays_of(network.nodes)), network.roots)


@share_of_examples(0.4)
@given(seeds)
def test_nodes_are_the_same(seed: int) -> None:
    template = random_model(seed).template
    views = in_arrays(template).nodes
    one_by_one = [views[index] for index in range(len(views))]  # before all are made
    assert one_by_one == [*views] == [*template.nodes]
    assert views == template.nodes
    assert (views[-1], views[1:3]) == (template.nodes[-1], template.nodes[1:3])
    assert hash(in_arrays(template)) == hash(template)


@share_of_examples(0.4)
@given(seeds)
def test_equal_nodes_are_stored_once(seed: int) -> None:
    """Of a template twice, and one node that no root reaches, the template is left."""
    template = random_model(seed).template
    builder = BlockBuilder()
    builder.latents(np.array([10_000]))
    copies = [builder.network(template)[list(template.roots)] for _ in range(2)]
    network, place = builder.build(np.concatenate(copies))
    assert network == Network(template.nodes, template.roots * 2)
    assert place[0] == -1
    assert place[1:].tolist() == [*range(len(template))] * 2


@share_of_examples(0.2)
@given(seeds)
def test_equal_hashes_merge_nothing_that_differs(seed: int) -> None:
    template = random_model(seed).template
    builder = BlockBuilder()
    roots = builder.network(template)[np.array(template.roots)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_hashes", lambda _, nodes, __: np.zeros(len(nodes), np.uint64))
        assert builder.build(roots)[0] == template


def test_the_order_is_asked_for() -> None:
    builder = BlockBuilder()
    latents = builder.latents(np.array([3, 1, 3]))
    roots = builder.products(np.array([1, 1, 1]), latents)
    network, place = builder.build(roots, np.array([5, 1, 3, 6, 2, 4]))
    assert network.nodes == (Latent(1), Product((0,)), Latent(3), Product((2,)))
    assert network.roots == (3, 1, 3)
    assert place.tolist() == [2, 0, 2, 3, 1, 3]


def test_utilities_that_are_equal_are_one() -> None:
    builder = BlockBuilder()
    mean, none = np.array([0.0, -0.0, 1.0]), np.zeros(3)
    network, _ = builder.build(builder.utilities("u", mean, none, none))
    assert [*network.nodes] == [Utility("u", 0.0), Utility("u", 1.0)]
    assert network.roots == (0, 0, 1)


@share_of_examples(0.4)
@given(seeds)
def test_valid_models_are_shown_to_be_at_once(seed: int) -> None:
    model = random_model(seed)
    scopes = ArrayScopes(model.template.arrays)
    expected = {*model.schema.variables, NEXT_STEPS}
    assert scopes.is_valid
    assert scopes.is_sound(model.template.roots)
    assert scopes.fits(model.schema, model.template.roots, expected)
    assert replace(model, template=in_arrays(model.template)) == model


@share_of_examples(0.4)
@given(seeds, st.integers(0, 2**16))
def test_faults_are_those_of_nodes(seed: int, pick: int) -> None:
    """Change a child, an item or a root at random: what is found is what is found of nodes."""
    model = random_model(seed)
    rng, arrays = np.random.default_rng(pick), model.template.arrays
    children, item = arrays.children.copy(), arrays.item.copy()
    edge = int(rng.integers(len(children)))
    children[edge] = rng.integers(0, arrays.parents[edge])
    node = int(rng.choice(np.flatnonzero(np.isin(arrays.kind, [KINDS[Latent], KINDS[Sum]]))))
    if arrays.kind[node] == KINDS[Latent]:
        item[node] += 1
    views = NodeViews(replace(arrays, children=children, item=item))
    try:
        plain = Network(tuple(views), model.template.roots)
    except CircuitError:
        with pytest.raises(CircuitError, match="is not reached from any root"):
            Network(views, model.template.roots)
        return
    fast = Network(views, model.template.roots)
    assert soundness_violations(fast) == soundness_violations(plain)
    assert schema_violations(fast, model.schema, recurrent=True) == schema_violations(
        plain, model.schema, recurrent=True
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"children": np.array([1, 2])}, "node 2 has a child that does not come before it"),
        ({"children": np.array([0, 0])}, "node 1 is not reached"),
        ({"weights": np.array([0.5, 0.6])}, "node 2 has weights that do not sum to 1"),
        ({"weights": np.array([-0.5, 1.5])}, "node 2 has a weight that is no probability"),
        ({"utilities": np.array([[0, np.nan, 0, 0]])}, "expected a mean from"),
        ({"utilities": np.array([[0, 1.0, -1, 0]])}, "expected a count from"),
    ],
)
def test_what_no_network_is_is_refused(changes: dict[str, Any], message: str) -> None:
    b = NetworkBuilder()
    network = b.build(b.sum([b.latent(0), b.utility("u", 1.0)], [0.5, 0.5]))
    with pytest.raises(CircuitError, match=message):
        Network(NodeViews(replace(network.arrays, **changes)), network.roots)
