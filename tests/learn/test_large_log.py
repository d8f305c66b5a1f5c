"""Logs of many windows: sampled structure, parameters of all of them, moments of utilities."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import rspmn
from effort import mostly_soak
from rspmn import Episodes, Followed, Schema, Windows
from rspmn.circuit import Leaf, Utility
from rspmn.data.sources.count_windows import sampled
from rspmn.envs.domains import DOMAINS
from rspmn.errors import DataError
from rspmn.infer.compiled.assign import assign
from rspmn.learn import LearnConfig, learn_rspmn
from rspmn.learn.estimate import count
from rspmn.learn.flows import Flows
from rspmn.learn.successors import Counts, SuccessorWeights, Transitions
from same_windows import assert_same

SCHEMA = Schema([["x"], ["a"]], ["a"], "u")


def measured(rows: int, seed: int) -> dict[str, list[Any]]:
    """Draw a log whose utility is a measured number: right earns 1 more than left in x = 1."""
    rng = np.random.default_rng(seed)
    x, a = rng.integers(2, size=rows), rng.integers(2, size=rows)
    u = rng.normal(size=rows) + (x == 1) * (a == 1)
    return {
        "episode": np.repeat(np.arange(rows // 10), 10).tolist(),
        "time": np.tile(np.arange(10), rows // 10).tolist(),
        "x": x.tolist(), "a": a.tolist(), "u": u.tolist(),
    }  # fmt: skip


def test_moments_are_exact() -> None:
    """Counts, sums and sums of squares of what is counted together, by fractions."""
    table = measured(20_000, 0)
    whole = Windows.from_episodes(Episodes.from_long(table, SCHEMA, ending="cut"))
    found = rspmn.windows(table, SCHEMA, ending="cut", max_windows=15_000)
    assert len(found) < 15_000 < len(whole)
    spread = found.columns["u"].spread
    assert spread is not None
    assert found.counts.sum() == whole.counts.sum()
    for x in (0, 1):
        for a in (0, 1):
            sums, squares = [], []
            for w in (whole, found):
                here = (w.columns["x"].data == x) & (w.columns["a"].data == a)
                u, n = w.columns["u"].data[here], w.counts[here]
                within = w.columns["u"].spread
                var = np.zeros(len(u)) if within is None else within[here]
                sums.append(sum(Fraction(v) * int(k) for v, k in zip(u, n, strict=True)))
                squares.append(float(n @ (u**2 + var)))
            # 56 bits of the largest utility, rounded once for each of a few thousand windows
            assert abs(float(sums[0] - sums[1])) < 4000 * 2.0**-52 * 5
            assert squares[0] == pytest.approx(squares[1], rel=1e-6)


def test_moments_are_the_same_on_every_engine_and_add_up() -> None:
    table = measured(20_000, 1)
    options: dict[str, Any] = {"ending": "cut", "max_windows": 15_000}
    found = rspmn.windows(table, SCHEMA, **options)
    assert_same(rspmn.windows(pl.DataFrame(table), SCHEMA, **options), found)
    twice = found + found
    assert np.array_equal(twice.counts, 2 * found.counts)
    one, other = (w.columns["u"].spread for w in (found, twice))
    assert one is not None
    assert other is not None
    assert np.allclose(one, other)


def test_learning_from_moments() -> None:
    table = measured(20_000, 2)
    exact, _ = learn_rspmn(rspmn.windows(table, SCHEMA, ending="cut"))
    found, _ = learn_rspmn(rspmn.windows(table, SCHEMA, ending="cut", max_windows=15_000))
    assert float(found.meu(horizon=3)) == pytest.approx(float(exact.meu(horizon=3)), abs=1e-6)
    assert found.best_decisions({"x": 1}, horizon=1)[0].value == 1


def test_one_window_may_hold_several_utilities() -> None:
    """Its mean is the same for all steps, and still they differ: the deviation is .5."""
    table = {"episode": [*range(80)], "time": [0] * 80, "x": [0] * 80, "a": [0, 1] * 40,
             "u": [1.0, 3.0] * 40}  # fmt: skip
    windows = Windows.from_episodes(Episodes.from_long(table, SCHEMA, ending="end"))
    u = replace(windows.columns["u"], spread=np.where(windows.columns["u"].data == 1, 0.25, 0.0))
    model, _ = learn_rspmn(replace(windows, columns={**windows.columns, "u": u}))
    found = [(n.mean, n.count, n.variance) for n in model.template.nodes if isinstance(n, Utility)]
    assert sorted(found) == [(0.0, 0.0, 0.0), (1.0, 40.0, 0.25), (3.0, 40.0, 0.0)]  # END earns 0


def test_what_is_seen_after_a_decision_tells_utilities_with_a_deviation() -> None:
    """y = 0 earns 1 on average, with a deviation of .5, and y = 1 earns 3."""
    table = {"episode": [*range(80)], "time": [0] * 80, "x": [0] * 80, "a": [0] * 80,
             "y": [0, 1] * 40, "u": [1.0, 3.0] * 40}  # fmt: skip
    schema = Schema([["x"], ["a"], ["y"]], ["a"], "u")
    windows = Windows.from_episodes(Episodes.from_long(table, schema, ending="end"))
    u = replace(windows.columns["u"], spread=np.where(windows.columns["u"].data == 1, 0.25, 0.0))
    model, _ = learn_rspmn(replace(windows, columns={**windows.columns, "u": u}))
    assert [model.meu({"x": 0, "a": 0, "y": y}, horizon=1) for y in (0, 1)] == [1.0, 3.0]


def test_too_many_windows_are_refused() -> None:
    table = measured(2000, 3)
    table["x"] = list(range(2000))
    with pytest.raises(DataError, match="distinct windows, more than 100: increase max_windows"):
        rspmn.windows(table, SCHEMA, ending="cut", max_windows=100)


# ---- samples -------------------------------------------------------------------------


def test_a_sample_hangs_on_the_windows_alone() -> None:
    log = DOMAINS["Taxi"]().generate(2000, 20, 0, "final")
    whole = Windows.from_episodes(log)
    found = sampled(whole, 0.3, 7)
    # each step is taken with probability 0.3: five standard deviations
    steps = whole.counts.sum()
    assert abs(found.counts.sum() - 0.3 * steps) < 5 * np.sqrt(steps * 0.21)
    assert (found.starts <= found.counts).all()
    half = len(whole) // 2
    order = np.random.default_rng(0).permutation(len(whole))
    for part in (np.arange(half), order):
        some = Windows(
            whole.schema,
            {n: c.take(part) for n, c in whole.columns.items()},
            {n: c.take(part) for n, c in whole.next_columns.items()},
            whole.followed[part], whole.counts[part], whole.starts[part],
        )  # fmt: skip
        assert sampled(some, 0.3, 7).counts.sum() == sum_of(whole, found, part)
    assert sampled(whole, 0.3, 8).counts.sum() != found.counts.sum()


def sum_of(whole: Windows, found: Windows, part: np.ndarray[Any, Any]) -> int:
    """Return how many steps of some windows are in a sample of all."""
    keys = [tuple(row) for row in _rows(whole)]
    taken = dict(zip([tuple(row) for row in _rows(found)], found.counts.tolist(), strict=True))
    return sum(taken.get(keys[k], 0) for k in part.tolist())


def _rows(windows: Windows) -> list[tuple[Any, ...]]:
    columns = [c.decode() for c in (*windows.columns.values(), *windows.next_columns.values())]
    return list(zip(*columns, windows.followed.tolist(), strict=True))


def test_flows_of_parts_add_up() -> None:
    log = DOMAINS["Maze"]().generate(400, 8, 0, "final")
    model, _ = learn_rspmn(log)
    whole = Windows.from_episodes(log)
    one, other = (
        Windows.from_episodes(Episodes.from_long(_part(log, keep), log.schema,
                                                 terminated="terminated"))
        for keep in (True, False)
    )  # fmt: skip
    total = count(model, assign(model, whole, leaves=True), whole)
    flows = [count(model, assign(model, w, leaves=True), w) for w in (one, other)]
    added = Flows.from_json(flows[0].to_json()) + flows[1]
    for name in ("passed", "steps", "starts", "visits", "arrived", "led_from", "led_to", "led"):
        assert np.array_equal(getattr(added, name), getattr(total, name)), name
    assert np.allclose(added.mean, total.mean)
    assert np.allclose(added.squares, total.squares)
    assert added.leaves == total.leaves


def test_leaves_see_each_value_as_often_as_it_was_logged() -> None:
    log = DOMAINS["Maze"]().generate(50, 8, 0, "final")
    model, _ = learn_rspmn(log)
    windows = Windows.from_episodes(log)
    assigned = assign(model, windows, leaves=True)
    seen: Counter[tuple[str, Any]] = Counter()
    for position, values in count(model, assigned, windows).leaves.items():
        leaf = model.template.nodes[int(assigned.trees.node[position])]
        assert isinstance(leaf, Leaf)
        seen.update({(leaf.variable, value): round(n) for value, n in values.items()})
    logged: Counter[tuple[str, Any]] = Counter()
    for name in log.schema.state_variables:
        for value, n in zip(windows.columns[name].decode(), windows.counts.tolist(), strict=True):
            logged[name, value] += n
    assert seen == logged


def test_batches_without_a_place_flow_nowhere() -> None:
    log = DOMAINS["Maze"]().generate(400, 8, 0, "final")
    model, _ = learn_rspmn(log)
    whole = Windows.from_episodes(log)
    none = np.zeros(0, dtype=np.int64)
    empty = Windows(
        whole.schema,
        {n: c.take(none) for n, c in whole.columns.items()},
        {n: c.take(none) for n, c in whole.next_columns.items()},
        whole.followed[none], whole.counts[none], whole.starts[none],
    )  # fmt: skip
    step = {"x": 99, "y": 99, "action": "up", "reward": 0.0}
    strange = Episodes.from_steps([[step, step]], log.schema, [Followed.END])
    for windows in (empty, Windows.from_episodes(strange)):
        flows = count(model, assign(model, windows, leaves=True), windows)
        assert flows.steps.sum() == 0
        assert flows.leaves == {}


def _part(log: Episodes, even: bool) -> dict[str, list[Any]]:
    table = log.to_long()
    keep = [(e % 2 == 0) is even for e in table["episode"]]  # type: ignore[operator]
    return {name: [v for v, k in zip(column, keep, strict=True) if k] for name, column in
            table.items()}  # fmt: skip


@pytest.mark.parametrize("make", mostly_soak([dict, pl.DataFrame], [dict]))
def test_parameters_are_those_of_all_windows(make: Any) -> None:
    """The structure of a sample, the numbers of the whole: as if the sample had been all there is.

    Here a tenth of the log shows the whole structure, so both models must be the same, but for
    leaves and weights, which are of the whole.
    """
    log = DOMAINS["FrozenLake"]().generate(4000, 30, 0, "final")
    table = make(log.to_long())
    config = LearnConfig(successors="counts")
    exact, _ = learn_rspmn(log, config)
    with rspmn.store_windows(table, log.schema, terminated="terminated") as stored:
        config = LearnConfig(successors="counts", max_windows=len(stored) * 3 // 4)
        model, info = learn_rspmn(stored, config)
        assert info.sample is not None
        assert info.sample.windows == len(stored)
        assert 0 < info.sample.share < 1
        assert info.sample.sampled_windows < len(stored)
        assert info.sample.steps_placed == log.num_steps
        again, _ = learn_rspmn(stored, config)
    for horizon in (1, 10, 50):
        assert float(model.meu(horizon=horizon)) == pytest.approx(
            float(exact.meu(horizon=horizon)), abs=1e-9
        )
    assert again.template == model.template


def test_leaves_are_those_of_all_windows() -> None:
    """z says nothing, and is 0 to 3 in 3, 2, 1 and 1 of 7 steps; the sample has a few steps."""
    steps = np.arange(420)
    x, a, z = steps % 2, steps // 2 % 2, np.array([0, 0, 0, 1, 1, 2, 3])[steps // 4 % 7]
    table = {"episode": steps, "time": 0 * steps, "x": x, "z": z, "a": a, "u": 1.0 * (a == x)}
    schema = Schema([["x", "z"], ["a"]], ["a"], "u")
    with rspmn.store_windows(table, schema, ending="end") as stored:
        model, info = learn_rspmn(stored, LearnConfig(max_windows=len(stored) // 2))
    assert info.sample is not None
    assert info.sample.share < 0.1
    leaves = [n for n in model.template.nodes if isinstance(n, Leaf) and n.variable == "z"]
    shares = [3 / 7, 2 / 7, 1 / 7, 1 / 7]
    assert np.exp(leaves[0].distribution.log_probs((0, 1, 2, 3))) == pytest.approx(shares)


def test_factors_of_the_sample_stay_beside_the_counts() -> None:
    """They make successors possible that were not counted, and so add edges."""
    log = DOMAINS["Elevators"]().generate(60, 8, 0, "final")
    edges = {}
    with rspmn.store_windows(log.to_long(), log.schema, terminated="terminated") as stored:
        for future in ("factored", "counts"):
            config = LearnConfig(max_windows=len(stored) * 4 // 5, successors=future)
            model, info = learn_rspmn(stored, config)
            edges[future] = model.template.num_edges
            if future == "factored":
                assert info.future is not None
                assert info.future.strength > 0
                assert model.counts is not None
                assert model.counts.factors is not None
                assert len(model.counts.factors.left_out) == len(model.counts.to)
                found = model.honest_value(8, draws=20)
                assert found.low <= found.point <= found.high
    assert edges["factored"] > edges["counts"]


def test_the_time_budget_is_also_that_of_the_second_weighing() -> None:
    """Successors are weighed for the sample, and again when all windows were counted."""
    deadlines = []

    def weighing(transitions: Transitions) -> tuple[SuccessorWeights, object]:
        deadlines.append(transitions.deadline)
        return Counts()(transitions)

    with rspmn.store_windows(measured(2_000, 0), SCHEMA, ending="cut") as stored:
        learn_rspmn(stored, LearnConfig(successors=weighing, max_windows=500, max_seconds=1000))
    assert len(deadlines) == 2
    assert deadlines[0] == pytest.approx(deadlines[1], abs=10)


def test_seeds_of_numpy_are_seeds() -> None:
    """A numpy integer as a seed gives what the same Python integer gives."""
    with rspmn.store_windows(measured(2_000, 0), SCHEMA, ending="cut") as stored:
        config = LearnConfig(max_windows=500)
        one, _ = learn_rspmn(stored, config, 3)
        other, info = learn_rspmn(stored, config, np.int64(3))  # type: ignore[arg-type]
    assert info.sample is not None
    assert one == other
