"""Current practice: max nodes as sums, and the recommendation beside it."""

from collections.abc import Callable, Sequence
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


def glucose(patients: int, numbers: Sequence[str] = ("sugar", "insulin", "meal")) -> Episodes:
    """Return days of patients whose controller is noisy: 48 steps, 1 or less for each."""
    rng, rows = np.random.default_rng(0), []
    for patient in range(patients):
        sugar, insulin, carbs = float(rng.normal(140, 30)), 0.0, 0.0
        for t in range(48):
            meal = float(rng.choice([30.0, 60.0])) if rng.random() < 0.08 else 0.0
            wanted = np.searchsorted([0.7, 2, 4], (sugar - 140) / 40 + meal / 15 - insulin)
            dose = int(wanted) if rng.random() > 0.25 else int(rng.integers(4))
            known = sugar, insulin, meal, carbs, t / 2, f"d{dose}"
            insulin, carbs = insulin * 0.75 + (0, 1, 3, 5)[dose], carbs * 0.6 + meal
            sugar += carbs * 0.9 - insulin * 3 + float(rng.normal(0, 6)) + (110 - sugar) * 0.08
            over = sugar < 20
            reward = 1.0 if 70 < sugar < 180 else -4.0 if sugar < 70 or sugar > 250 else -1.0
            rows.append((patient, t, *known, reward, over))
            if over:
                break
            sugar = min(max(sugar, 40.0), 400.0)
    names = ("e", "t", "sugar", "insulin", "meal", "carbs", "hour", "dose", "u", "over")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    table = {name: columns[name] for name in ("e", "t", *numbers, "dose", "u", "over")}
    schema = Schema([numbers, ["dose"]], ["dose"], "u", dict.fromkeys(numbers, "continuous"))
    return Episodes.from_long(table, schema, episode="e", time="t", terminated="over")


def test_a_difference_is_within_its_interval() -> None:
    """The draws have the mean of the honest value, which follows states between interface nodes.

    They had that of values interpolated between nodes, and the interval ended at the difference.
    """
    log = glucose(20)
    model, _ = learn_rspmn(log)
    assert model.source.bounds(48, 1.0) == (-192.0, 48.0)
    found = compare(model, log, 48, draws=100)
    assert found.policy.low < found.policy.point < found.policy.high
    for each in (found.practice, found.difference):
        assert each.value - each.low > (each.high - each.low) / 10
        assert each.high - each.value > (each.high - each.low) / 10
    assert -192 <= found.practice.low < found.practice.high <= 48


def test_practice_where_nothing_was_done() -> None:
    """A node in which no step was logged is worth the mean of its actions.

    It was worth the worst of all nodes: in draws, errors of the worst added up step by step.
    """
    model, _ = learn_rspmn(glucose(100, ("sugar", "insulin", "carbs", "hour")))
    assert any(
        (np.add.reduceat(level.branches.steps, level.starts) == 0).any()
        for level in model.bellman.levels
    )
    value = practice_value(model, 48)
    for level, taken in zip(model.bellman.levels, value.by_time[0], strict=True):
        assert (np.add.reduceat(taken, level.starts) > 0).all()
    assert np.isfinite(value.worths.branches[0][0]).all()


def test_a_policy_is_compared_with_what_the_log_earned() -> None:
    """Practice by the plan for each number of steps left is worth more than its mean over time."""
    lake = DOMAINS["FrozenLake"]()
    best = np.eye(4)[lake.value_iteration(20)[1]]
    log = lake.generate(1000, 20, 0, "final", 0.98 * best + 0.005)
    found = compare(learn_rspmn(log)[0], log)
    assert any("the mean logged return is 0.206" in note for note in found.notes)
    assert found.logged is not None
    assert found.practice.value == found.logged.value == pytest.approx(0.206)
    assert found.difference.value == pytest.approx(found.policy.point - 0.206)
    assert found.difference.low < 0 < found.difference.high
    assert found.better < 0.95
