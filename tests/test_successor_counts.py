"""Counts behind the weights of S_L: counted by hand, kept in files, refused if they do not fit."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rspmn import RSPMN, LearnConfig, Schema, learn_rspmn, refit, windows
from rspmn.circuit import Utility
from rspmn.data.windows import Windows
from rspmn.envs.domains import DOMAINS
from rspmn.errors import CircuitError
from rspmn.infer.compiled.outcomes import outcomes_of
from rspmn.successor_counts import SuccessorCounts

SCHEMA = Schema([["s"], ["a"]], ["a"], "u")


def two_states(path: Path) -> Windows:
    """Return a log in which "go" leads from x to y 3 times of 4, and "stay" never does."""
    rows = ["episode,time,s,a,u,end"]
    for episode in range(40):
        after = "x" if episode % 4 == 0 else "y"
        for time, (s, a, u) in enumerate([("x", "stay", 0), ("x", "go", 1), (after, "stay", 2)]):
            rows.append(f"{episode},{time},{s},{a},{u if s == 'x' else 5},{time == 2}")
    (path / "log.csv").write_text("\n".join(rows))
    log = windows(path / "log.csv", SCHEMA, episode="episode", time="time", terminated="end")
    assert isinstance(log, Windows)
    return log


def test_counts_by_hand(tmp_path: Path) -> None:
    model, _ = learn_rspmn(two_states(tmp_path), LearnConfig(successors="counts"))
    counts = model.counts
    assert counts is not None
    nodes = outcomes_of(model.template)
    means = [model.template.nodes[k].mean for k in nodes.utility]
    assert model.end is not None
    x, y = (model.starts.index(1.0), next(i for i in (0, 1) if not model.starts[i]))
    found = {
        (round(means[o], 9), to): steps
        for o, to, steps in zip(counts.outcome, counts.to, counts.steps, strict=True)
    }
    # "go" earns 1, 40 times. "stay" in x earns 0 40 times, then 2 in the 10 that are still there,
    # which end the episode; in y it earns 5, 30 times, and ends it.
    assert found.pop((1.0, x)) == 10
    assert found.pop((1.0, y)) == 30
    assert found.pop((5.0, model.end)) == 30
    assert sum(found.values()) == 50
    # "stay" in x: 0 where it stays, 2 where it is the last step. Each is certain.
    paid = {to: u for o, to, u in zip(counts.outcome, counts.to, counts.mean, strict=True) if
            round(means[o], 9) not in (1.0, 5.0)}  # fmt: skip
    assert paid == {x: 0.0, model.end: 2.0}
    assert not any(counts.variance)
    assert counts.starts[x] == 40
    assert sum(counts.starts) == 40


@pytest.mark.parametrize("name", ["FrozenLake", "Elevators"])
def test_counts_fit_weights_and_utilities(name: str, tmp_path: Path) -> None:
    world = DOMAINS[name]()
    log = Windows.from_episodes(world.generate(300, world.horizon, 1))
    model, _ = learn_rspmn(log)
    counts, found = model.counts, outcomes_of(model.template)
    assert counts is not None
    assert (counts.factors is not None) == (name == "Elevators")  # FrozenLake has one variable
    steps = np.bincount(counts.outcome, counts.steps, len(found.nodes))
    for outcome, node in enumerate(found.utility):
        utility = model.template.nodes[node]
        assert isinstance(utility, Utility)
        # 0: followed by nothing known; steps that went on at a time limit are shares of others
        assert steps[outcome] == 0 or steps[outcome] == pytest.approx(utility.count, rel=1e-12)
    assert refit(model, log)[0].counts == model.counts
    model.save(tmp_path / "model.json")
    assert RSPMN.load(tmp_path / "model.json") == model


def test_counts_that_do_not_fit_are_refused() -> None:
    def counts(to: int = 0, steps: float = 1.0, mean: float = 0.0) -> SuccessorCounts:
        return SuccessorCounts((1.0,), (0,), (to,), (steps,), (mean,), (0.0,))

    with pytest.raises(CircuitError, match="counts: 2 of 'outcome', but 1 of 'to'"):
        replace(counts(), outcome=(0, 1))
    with pytest.raises(CircuitError, match="counts: steps: expected numbers above 0.* found -1"):
        counts(steps=-1.0)
    with pytest.raises(CircuitError, match="counts: mean: expected finite numbers, found nan"):
        counts(mean=math.nan)
    world = DOMAINS["FrozenLake"]()
    model, _ = learn_rspmn(world.generate(300, 8, 1))
    with pytest.raises(CircuitError, match=r"counts of 1 starts, but the template has \d+ roots"):
        replace(model, counts=counts())
    starts = (1.0,) * model.num_interfaces
    with pytest.raises(CircuitError, match="counts name interface node 99"):
        replace(model, counts=replace(counts(to=99), starts=starts))


def test_factors_that_do_not_fit_are_refused() -> None:
    model, _ = learn_rspmn(DOMAINS["Elevators"]().generate(100, 10, 1))
    assert model.counts is not None
    factors = model.counts.factors
    assert factors is not None
    with pytest.raises(CircuitError, match="factors: .* of 'leaf', but 1 of 'value'"):
        replace(factors, value=(0,))
    with pytest.raises(CircuitError, match="leaves do not make combinations of 7 components"):
        replace(factors, components=7, leaves=factors.leaves[:10])
    with pytest.raises(CircuitError, match="names a leaf in which nothing was seen"):
        replace(factors, leaves=(99_999,) * factors.components)
    with pytest.raises(CircuitError, match=r"expected one of \d+ combinations, found 99999"):
        replace(factors, combination=(99_999,) * len(factors.combination))
    with pytest.raises(CircuitError, match="but 1 left out by the factors"):
        replace(model.counts, factors=replace(factors, left_out=(1.0,)))
