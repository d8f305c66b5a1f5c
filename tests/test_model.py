"""The model: what it refuses, END, and the networks it is asked through."""

import re
import tracemalloc
from contextlib import nullcontext

import numpy as np
import pytest

from random_models import random_rspmn, random_setting
from rspmn import END, RSPMN, NetworkBuilder, Schema
from rspmn.circuit import (
    Categorical,
    Distribution,
    IntegerHistogram,
    PiecewiseLinear,
    validity_violations,
)
from rspmn.end_nodes import end_root, uniform_top, weighted_top
from rspmn.envs.paper_grid import paper_grid
from rspmn.errors import CircuitError

SCHEMA = Schema([["x"], ["a"]], ["a"], "u", {"x": "categorical"})


def one_root(b: NetworkBuilder, x: int, decision: str = "a", utility: str = "u") -> int:
    branch = b.product([b.utility(utility, 1.0), b.latent(0)])
    return b.product([x, b.max(decision, {0: branch})])


@pytest.mark.parametrize(
    ("leaf", "decision", "message"),
    [
        (("y", Categorical.certain("p")), "a", "{y} is known after 'a', not before"),
        (("a", Categorical.certain("p")), "x", ": a Categorical node, but 'a' is a decision"),
        (("x", Categorical.certain("p")), "a", ""),
        (("x", PiecewiseLinear((0.0, 1.0), (1.0, 1.0))), "a", ": a PiecewiseLinear node, but 'x'"),
        (("x", IntegerHistogram((0, 1), (1.0,))), "a", "but 'x' is a state variable (categorical)"),
    ],
)
def test_the_template_must_fit_the_schema(
    leaf: tuple[str, Distribution], decision: str, message: str
) -> None:
    b = NetworkBuilder()
    template = b.build(one_root(b, b.leaf(*leaf), decision))
    with pytest.raises(CircuitError, match=re.escape(message)) if message else nullcontext():
        RSPMN(SCHEMA, uniform_top(1), template)


def test_visits_must_fit_the_template() -> None:
    b = NetworkBuilder()
    template = b.build(one_root(b, b.leaf("x", Categorical.certain("p"))))
    with pytest.raises(CircuitError, match="2 visits, but the template has 1 roots"):
        RSPMN(SCHEMA, uniform_top(1), template, visits=(1.0, 2.0))
    for wrong in (-1.0, float("inf"), float("nan")):
        with pytest.raises(CircuitError, match="expected visits from 0 to"):
            RSPMN(SCHEMA, uniform_top(1), template, visits=(wrong,))
    with pytest.raises(CircuitError, match="expected an interface node that is a state and was"):
        RSPMN(SCHEMA, uniform_top(1), template, visits=(0.0,))
    b = NetworkBuilder()
    with pytest.raises(CircuitError, match="expected an interface node that is a state and was"):
        RSPMN(SCHEMA, uniform_top(1), b.build(end_root(b, SCHEMA, 0)))


def test_a_top_network_must_fit_the_template() -> None:
    b = NetworkBuilder()
    template = b.build(one_root(b, b.leaf("x", Categorical.certain("p"))))
    with pytest.raises(CircuitError, match="top: node 1 .* is not mapped to a root"):
        RSPMN(SCHEMA, uniform_top(2), template)


def test_decisions_must_be_in_order() -> None:
    schema = Schema([["first"], ["second"]], ["first", "second"], "u")
    b = NetworkBuilder()
    below = b.product([b.utility("u", 1.0), b.latent(0)])
    wrong = b.build(b.max("second", {0: b.max("first", {0: below})}))
    with pytest.raises(CircuitError, match="{first} is known before 'second', not after"):
        RSPMN(schema, uniform_top(1), wrong)


def test_end_is_an_interface_node_like_any_other() -> None:
    b = NetworkBuilder()
    root = one_root(b, b.leaf("x", Categorical.certain("p")))
    model = RSPMN(SCHEMA, weighted_top([1.0, 0.0]), b.build(root, end_root(b, SCHEMA, 1)))
    assert model.end == 1
    assert model.values(5)[1] == 0.0
    assert validity_violations(model.unfold(3)) == []
    # it offers no action: END is not a choice
    assert [a.value for a in model.action_values({"x": "p"}, 1)] == [0]
    assert model.meu({"x": END}, 5).supported == 0  # it is never a state one asks from
    without_state = Schema([["a"]], ["a"], "u")
    b = NetworkBuilder()
    act = b.max("a", {0: b.product([b.utility("u", 1.0), b.latent(1)])})
    bandit = RSPMN(
        without_state, weighted_top([1.0, 0.0]), b.build(act, end_root(b, without_state, 1))
    )
    assert bandit.end == 1
    assert bandit.meu(horizon=9) == 1.0


def test_unfolding() -> None:
    model = paper_grid()
    assert model.end is None
    with pytest.raises(CircuitError, match="expected at least 1 step, found 0"):
        model.unfold(0)
    # growth is linear: each further step adds the same nodes
    sizes = [len(model.unfold(t)) for t in range(4, 8)]
    assert len(set(np.diff(sizes))) == 1


def test_single_steps_are_valid_networks() -> None:
    rng = np.random.default_rng(5)
    model = random_rspmn(rng, random_setting(rng, 2), 3, told_apart=False, end=True)
    for network in (model.from_start, model.from_anywhere):
        assert validity_violations(network) == []
    assert len(model.bottom.roots) == model.num_interfaces


def test_the_start_distribution_takes_memory_in_proportion() -> None:
    """Of 300 interface nodes, each in a pair below the root: no table of all by all."""
    b = NetworkBuilder()
    size = 300
    state = (b.leaf("x", Categorical.certain(str(i))) for i in range(size))
    template = b.build(*[one_root(b, leaf) for leaf in state])
    b = NetworkBuilder()
    pairs = [b.sum([b.latent(i), b.latent(i + 1)], [0.25, 0.75]) for i in range(0, size, 2)]
    model = RSPMN(SCHEMA, b.build(b.sum(pairs, [2 / size] * (size // 2))), template)
    tracemalloc.start()
    starts = model.starts
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert starts == pytest.approx([0.5 / size, 1.5 / size] * (size // 2))
    assert peak < 1_000_000  # 300 rows of 300 x 300 numbers would be 216 MB
