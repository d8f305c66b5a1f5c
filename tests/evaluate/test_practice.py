"""Current practice: max nodes as sums, and the recommendation beside it."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rspmn import RSPMN, Episodes, Followed, Schema, Windows, learn_rspmn
from rspmn.circuit import Max, Sum
from rspmn.envs.domains import DOMAINS
from rspmn.errors import DataError, EvidenceError
from rspmn.evaluate import Cloned, compare, practice, practice_network
from rspmn.evaluate.practice import practice_value
from rspmn.infer.bellman import Future, pessimistic
from rspmn.infer.evaluation import evaluate
from rspmn.learn.em import em

SCHEMA = Schema([["x"], ["a"]], ["a"], "u")


@cache
def lake() -> tuple[RSPMN, Episodes]:
    log = DOMAINS["FrozenLake"]().generate(1500, 8, 0, layout="final")
    return learn_rspmn(log)[0], log


def two_steps() -> Episodes:
    """Return episodes of two steps: l earns 1 in state 0, r earns 2 in state 1, all else 0.

    Of eight episodes, l is taken in six and r in two, in both states.
    """
    made = "llllllrr"
    each = [[{"x": 0, "a": a, "u": float(a == "l")}, {"x": 1, "a": b, "u": 2.0 * (b == "r")}]
            for a, b in zip(made, reversed(made), strict=True)]  # fmt: skip
    return Episodes.from_steps(each, SCHEMA, [Followed.END] * 8)


def test_practice_by_hand() -> None:
    """3/4 · 1 in the first step, 1/4 · 2 in the second; the best is 1 + 2."""
    log = two_steps()
    model, _ = learn_rspmn(log)
    found = practice(model, 2, draws=100)
    assert found.value == pytest.approx(3 / 4 + 2 / 4)
    assert found.low < found.value < found.high
    both = compare(model, log, draws=100)
    assert (both.horizon, both.episodes) == (2, 8)
    assert both.policy.promise == pytest.approx(3.0)
    assert both.logged is not None
    assert both.logged.value == pytest.approx(3 / 4 + 2 / 4)
    assert both.notes == ()
    # l is right in state 0 (6 of 8), r in state 1 (2 of 8)
    assert both.agreement == pytest.approx(8 / 16)
    gains = {node.state["x"]: node for node in both.nodes}
    # practice loses 1/4 · 1 in state 0, and 3/4 · 2 in state 1: the whole difference
    assert (gains[0].gain, gains[1].gain) == pytest.approx((1 / 4, 3 / 2))
    assert gains[1].gain_per_visit(8) == pytest.approx(3 / 2)
    assert [node.state["x"] for node in both.nodes] == [1, 0], "the largest gain first"
    assert (gains[1].practice, gains[1].recommended) == ("l", "r")
    assert (gains[1].practice_share, gains[1].agreement) == (0.75, 0.25)


def test_the_circuit_of_practice_by_a_fold() -> None:
    """Max nodes are sums: evaluated node by node, step by step, it is worth the same."""
    model, _ = lake()
    network = practice_network(model)
    assert not any(isinstance(node, Max) for node in network.nodes)
    assert sum(isinstance(node, Sum) for node in network.nodes) > model.num_state_interfaces
    future = Future.nothing(model)
    for _ in range(6):
        evaluated = evaluate(network, {}, future.discounted(0.9))
        future = Future(pessimistic([evaluated[root] for root in network.roots], model.unknown))
    expected = [root.utility for root in future.roots]
    found = practice_value(model, 6, 0.9)
    assert np.allclose(found.worths.nodes[0], expected, rtol=1e-12)


def test_practice_is_what_cloning_is_worth() -> None:
    """In the world itself, the shares of the log are worth about what the model says."""
    world = DOMAINS["GridUniverse"]()
    log = world.generate(1000, 8, 0)
    model, _ = learn_rspmn(log)
    found = practice(model, 8, draws=100)
    truth = world.evaluate(Cloned.fit(log).policy_for(world), 8)
    assert found.low < truth < found.high
    assert abs(found.value - truth) < 0.1


def test_practice_with_something_observed_between_decisions() -> None:
    """A test, its result, a treatment: practice is worth the mean of the log."""
    rng = np.random.default_rng(0)
    schema = Schema([["test"], ["result"], ["treat"]], ["test", "treat"], "u")
    each = []
    for tested, ill, treat in zip(*rng.integers(0, 2, (3, 200)).tolist(), strict=True):
        result = ("positive" if ill else "negative") if tested else "none"
        u = float(treat == ill) - 0.1 * tested
        each.append([{"test": tested, "result": result, "treat": treat, "u": u}])
    model, _ = learn_rspmn(Episodes.from_steps(each, schema, [Followed.END] * 200))
    mean = np.mean([float(steps[0]["u"]) for steps in each])
    assert practice(model, 1, draws=20).value == pytest.approx(mean)


def test_gains_add_up_to_the_difference() -> None:
    """By the performance difference lemma, up to how far the log is from the model's practice."""
    model, log = lake()
    found = compare(model, log, 8, draws=20)
    total = sum(node.gain for node in found.nodes)
    assert total == pytest.approx(found.policy.promise - found.practice.value, rel=0.15)
    assert found.better > 0.5
    assert found.difference.low <= found.difference.value <= found.difference.high


def test_a_log_that_does_what_is_recommended() -> None:
    each = [[{"x": 0, "a": "l", "u": 1.0}]] * 5
    log = Episodes.from_steps(each, SCHEMA, [Followed.END] * 5)
    found = compare(learn_rspmn(log)[0], log, draws=20)
    assert (found.agreement, found.better) == (1.0, 0.5)
    assert abs(found.difference.value) < 1e-9


def test_tables_are_no_episodes() -> None:
    model, log = lake()
    table: Any = pd.DataFrame(log.to_long())
    asked: list[Callable[[], Any]] = [
        lambda: compare(model, table, 8), lambda: model.log_likelihood(table),
        lambda: Windows.from_episodes(table), lambda: em(model, table, 1),
    ]  # fmt: skip
    for ask in asked:
        with pytest.raises(DataError, match="expected Episodes, found DataFrame: for a table or a"):
            ask()


def test_what_cannot_be_compared_is_refused() -> None:
    model, log = lake()
    with pytest.raises(EvidenceError, match="draws"):
        compare(model, log, 8, draws=0)
    with pytest.raises(EvidenceError, match="horizon"):
        practice(model, 0)
    with pytest.raises(EvidenceError, match="discount"):
        practice(model, 8, discount=2)
