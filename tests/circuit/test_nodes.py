"""Nodes and networks refuse to be built wrong, and say what was expected and what was found."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from rspmn.circuit import (
    Categorical,
    IntegerHistogram,
    Latent,
    Leaf,
    Max,
    Network,
    NetworkBuilder,
    Node,
    PiecewiseLinear,
    Product,
    Sum,
    Utility,
    fold_up,
    walk_down,
)
from rspmn.errors import CircuitError

WRONG: dict[str, Callable[[], object]] = {
    "Sum: expected at least one child, found none": lambda: Sum((), ()),
    "Sum: 2 children but 1 weights": lambda: Sum((0, 1), (1.0,)),
    "Sum weights: expected probabilities that sum to 1, found 0.9": lambda: Sum((0, 1), (0.5, 0.4)),
    "Sum weights: expected probabilities from 0 to 1, found 1.5": lambda: Sum((0, 1), (1.5, -0.5)),
    "Max('treat'): 3 values but 2 children": lambda: Max("treat", (0, 1, 2), (0, 1)),
    "Max('treat'): duplicate value 1": lambda: Max("treat", (1, 1), (0, 1)),
    "Max('treat'): expected at least one child, found none": lambda: Max("treat", (), ()),
    "Max: expected the name of a decision, found ''": lambda: Max("", (0,), (0,)),
    "Leaf: expected the name of a variable, found ''": lambda: Leaf("", Categorical.certain(1)),
    "Utility: expected the name of the utility, found ''": lambda: Utility("", 0.0),
    "Utility('u'): expected a mean from -1e+100 to 1e+100, found nan": lambda: Utility(
        "u", math.nan
    ),
    "Utility('u'): expected a variance from 0 to 1e+200, found -1.0": lambda: Utility(
        "u", 0.0, 1, -1
    ),
    "Latent: expected an index of at least 0, found -1": lambda: Latent(-1),
    "Latent: expected an index of at least 0, found 1.5": lambda: Latent(1.5),  # type: ignore[arg-type]
    "Sum: expected children by their index, found 'a'": lambda: Sum("a", (1.0,)),  # type: ignore[arg-type]
    "Product: expected children by their index, found (0.0,)": lambda: Product((0.0,)),  # type: ignore[arg-type]
    "Max('d'): expected a string, int, float, bool or END, found [1]": lambda: Max(
        "d",
        ([1],),  # type: ignore[arg-type]
        (0,),
    ),
    "Leaf('x'): expected a distribution such as Categorical.certain(1), found 'red'": lambda: Leaf(
        "x",
        "red",  # type: ignore[arg-type]
    ),
    "build: root 77, but 0 nodes were added": lambda: NetworkBuilder().build(77),
    "Categorical(): expected at least one value, found none": lambda: Categorical((), ()),
    "Categorical(a, b): 2 values but 1 probabilities": lambda: Categorical(("a", "b"), (1.0,)),
    "Categorical(a, a): duplicate value a": lambda: Categorical(("a", "a"), (0.5, 0.5)),
    "expected 64-bit integer edges, found 0.5": lambda: IntegerHistogram((0.5, 1), (1.0,)),  # type: ignore[arg-type]
    "expected one more edge than masses, found 2 edges and 2": lambda: IntegerHistogram(
        (0, 1), (0.5, 0.5)
    ),
    "expected increasing edges, found (0, 0)": lambda: IntegerHistogram((0, 0), (1.0,)),
    "expected increasing knots, found (1.0, 0.0)": lambda: PiecewiseLinear((1.0, 0.0), (1.0, 1.0)),
    "expected two or more knots and as many densities": lambda: PiecewiseLinear((1.0,), (1.0,)),
    "expected densities of at least 0": lambda: PiecewiseLinear((0.0, 1.0), (3.0, -1.0)),
    "PiecewiseLinear(2 knots): expected probabilities that sum to 1": lambda: PiecewiseLinear(
        (0.0, 1.0), (1.0, 0.5)
    ),
    "expected an area above 0, found 0.0": lambda: PiecewiseLinear.scaled((0.0, 1.0), (0.0, 0.0)),
    "Network: expected at least one root, found none": lambda: Network((Latent(0),), ()),
    "Network: root 3, but there are 1 nodes": lambda: Network((Latent(0),), (3,)),
    "Network: node 0 (Latent) is not reached from any root": lambda: Network(
        (Latent(0), Latent(1)), (1,)
    ),
    "Network: node 0 (Product) has child 1, but children must come before": lambda: Network(
        (Product((1,)), Latent(0)), (0, 1)
    ),
    "Network: expected a single root, found 2": lambda: (
        Network((Latent(0), Latent(1)), (0, 1)).root
    ),
    "Product: child 0, but 0 nodes were added": lambda: NetworkBuilder().product([0]),
}


@pytest.mark.parametrize("message", WRONG)
def test_refused_at_birth(message: str) -> None:
    with pytest.raises(CircuitError) as caught:
        WRONG[message]()
    assert message in str(caught.value)


def test_equal_nodes_are_made_once() -> None:
    b = NetworkBuilder()
    one = b.product([b.latent(0), b.leaf("x", Categorical.certain(1))])
    two = b.product([b.latent(0), b.leaf("x", Categorical.certain(1))])
    assert one == two
    assert len(b) == 3
    # True == 1 == 1.0 in Python, but these leaves hold different values
    leaves = {b.leaf("x", Categorical.certain(v)) for v in (1, True, 1.0)}
    assert len(leaves) == 3


def test_numpy_scalars_become_plain_values() -> None:
    leaf = Categorical((np.int64(3), np.int64(4)), (np.float64(0.5), 0.5))  # type: ignore[arg-type]
    assert [type(value) for value in leaf.values] == [int, int]
    assert [type(p) for p in leaf.probabilities] == [float, float]
    assert type(Max("d", (np.bool_(True),), (0,)).values[0]) is bool  # type: ignore[arg-type]


def test_build_drops_what_no_root_reaches() -> None:
    b = NetworkBuilder()
    b.leaf("forgotten", Categorical.certain(1))
    kept = b.product([b.latent(0), b.utility("u", 1.0)])
    network = b.build(kept)
    assert len(network) == 3
    assert network.num_edges == 2


def test_fold_up_visits_shared_nodes_once() -> None:
    b = NetworkBuilder()
    node = b.latent(0)
    for _ in range(60):  # 2^60 paths
        node = b.sum([node, b.product([node])], [0.5, 0.5])
    visits: list[object] = []

    def paths(here: Node, below: list[int]) -> int:
        visits.append(here)
        return sum(below) or 1

    assert fold_up(b.build(node), paths)[-1] == 2**60
    assert len(visits) == 121


def test_walk_down_waits_for_all_parents() -> None:
    b = NetworkBuilder()
    shared = b.latent(0)
    left, right = b.product([shared]), b.sum([shared], [1.0])
    root = b.product([left, right])
    network = b.build(root)
    flows = walk_down(
        network, {network.root: 1.0}, lambda _, n, m: [(c, sum(m) / 2) for c in n.children]
    )
    assert sorted(flows[0]) == [0.25, 0.25]
