"""What a grid holds in memory is known before it is made, and bounded."""

import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pytest

import rspmn
from effort import seeds
from rspmn import Schema
from rspmn.data.windows import Windows
from rspmn.infer.compiled.assign import assign, is_frontier
from rspmn.learn import LearnConfig, learn_rspmn
from rspmn.learn.irrelevant import Reason
from rspmn.learn.numbers.size import GridSize
from rspmn.learn.numbers.steps import steps_of
from rspmn.schema import Kind
from rspmn.types import Array


def wards(steps: int, seed: int, gaps: float = 0.2) -> Windows:
    """Return a log of a pressure, a rate and a place that matter, with gaps, and a badge.

    The pressure is a number, the rate an integer of some 300 values, and the place one of 40. The
    badge is an integer, too, but of no matter.
    """
    rng = np.random.default_rng(seed)
    pressure, rate = (np.cumsum(rng.normal(0, s, steps)) % (10 * s) for s in (0.3, 30.0))
    place, action = rng.integers(0, 40, steps), rng.integers(0, 2, steps)
    earned = 2 * pressure + rate / 100 + place / 20 * action + rng.normal(0, 0.1, steps)

    def with_gaps(values: list[Any]) -> list[Any]:
        return [
            None if gone else x for x, gone in zip(values, rng.random(steps) < gaps, strict=True)
        ]

    log = {
        "episode": (np.arange(steps) // 10).tolist(), "time": list(range(steps)),
        "pressure": with_gaps(pressure.tolist()), "rate": with_gaps(rate.round().tolist()),
        "badge": rng.integers(0, 500, steps).tolist(),  # of no matter
        "place": with_gaps([f"p{k}" for k in place.tolist()]), "a": action.tolist(),
        "u": earned.tolist(),
    }  # fmt: skip
    schema = Schema([["pressure", "rate", "badge", "place"], ["a"]], ["a"], "u")
    return rspmn.windows(log, schema, ending="cut")


#: How columns show the hidden state: what is missing, and how it is written, differ too.
SHOWN: dict[str, Callable[[Array], list[Any]]] = {
    "number": lambda x: x.tolist(),
    "skewed": lambda x: np.exp(2 * x).tolist(),
    "integer": lambda x: np.round(30 * x).astype(int).tolist(),
    "few": lambda x: np.clip(np.round(2 * x), -4, 4).astype(int).tolist(),
    "text": lambda x: [f"t{k}" for k in np.floor(x * 1.5).astype(int).tolist()],
    "names": lambda x: [f"n{k}" for k in np.floor(200 / (1 + np.exp(-x))).astype(int).tolist()],
    "flag": lambda x: (x > 0).tolist(),
}


#: Those that are no numbers.
CATEGORIES = "text", "names", "flag"


def odd_table(
    seed: int, steps: int, ending: Literal["cut", "end"] = "cut", kinds: Sequence[str] = ()
) -> Windows:
    """Return a log of 2 to 12 columns with missing values.

    They are of all kinds, one of them a number, or of some `kinds` only.
    """
    rng = np.random.default_rng(seed)
    others = rng.choice([*(kinds or SHOWN)], int(rng.integers(1, 12))).tolist()
    kinds = [kinds[0] if kinds else "number", *others]
    action = rng.integers(0, 3, steps)
    log: dict[str, list[Any]] = {
        "episode": (np.arange(steps) // 10).tolist(), "time": list(range(steps)),
        "a": action.tolist(), "u": np.zeros(steps).tolist(),
    }  # fmt: skip
    earned = rng.normal(0, 0.1, steps)
    for k, kind in enumerate(kinds):
        x = np.cumsum(rng.normal(0, 0.3, steps) + 0.2 * (action - 1))
        x = 2 * np.sin(x)
        earned += (rng.random() < 0.7) * x * (1 + (rng.random() < 0.5) * action)
        gaps = rng.random(steps) < rng.choice([0.0, 0.03, 0.2, 0.35])
        log[f"x{k}"] = [
            None if gap else v for v, gap in zip(SHOWN[kind](x), gaps.tolist(), strict=True)
        ]
    log["u"] = earned.tolist()
    state = [f"x{k}" for k in range(len(kinds))]
    return rspmn.windows(log, Schema([state, ["a"]], ["a"], "u"), ending=ending)


@pytest.mark.parametrize("seed", seeds(few=1, many=20))
def test_memory_of_odd_tables_is_bounded(seed: int) -> None:
    """Of 2,000 rows; `make soak` has 50,000, in a process each."""
    windows = odd_table(seed, 2_000)
    tracemalloc.start()
    try:
        learn_rspmn(windows)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200e6


@pytest.mark.parametrize("seed", seeds(few=1, many=20))
def test_memory_is_bounded(seed: int) -> None:
    """Fault: 2,000 steps took gigabytes, as each of some 300 rates was a node beside each place.

    Of what is kept or held in passing, nothing is larger than 8 · KEPT = 62 MB (`rspmn.memory`).
    """
    windows = wards(2_000, seed)
    tracemalloc.start()
    try:
        model, _ = learn_rspmn(windows)
        model.policy(10).value()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100e6


def test_integers_of_many_values_are_numbers() -> None:
    """Where numbers matter: 300 rates would be as many nodes for each of the others."""
    model, info = learn_rspmn(wards(2_000, 0, gaps=0.0))
    assert {"pressure", "rate"} <= {*info.numbers.relevant}
    assert info.numbers.integers == ("rate", "badge")
    assert {*info.numbers.knots} == {"pressure", "rate"}
    assert model.schema.kinds["rate"] is Kind.CONTINUOUS
    policy = model.policy(5)
    assert len(model.sample(3, 5, 0, policy)) == 3
    assert policy.act({"pressure": 0.5, "rate": 150, "place": "p3"}) in (0, 1)


def test_the_size_of_a_grid() -> None:
    """A grid of 9 knots and 40 places has 360 nodes; it fits until branches or edges do not."""
    windows = wards(2_000, 0, gaps=0.0)
    size = GridSize(steps_of(windows, frozenset({"pressure"})), ["pressure", "place"])
    assert size.numbers == 1
    assert size.fits(9)
    # 2 · 40 · 10⁴ branches of 3,000 bytes are 2.4 GB.
    assert not size.fits(10_000)


def test_what_does_not_fit_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable of the most values gives way, and `info` says so."""
    monkeypatch.setattr("rspmn.learn.numbers.size.LIMIT", 8_000_000)
    _, info = learn_rspmn(wards(2_000, 0, gaps=0.0))
    assert info.numbers.large == ("place",)
    assert info.aside["place"] is Reason.LARGE
    assert "place" in str(info)
    assert {*info.numbers.relevant} == {"pressure", "rate"}


def whole(steps: int, most: int, seed: int = 0) -> Windows:
    """Return a log of two integers, one of up to `most` values, with gaps; the other matters."""
    rng = np.random.default_rng(seed)
    action = rng.integers(0, 2, steps)
    x = np.cumsum(rng.normal(0, 0.3, steps) + 0.2 * (2 * action - 1))
    y = np.sin(x) + rng.normal(0, 0.1, steps)
    codes = [np.round((1 + np.sin(x)) * most / 2), np.round(3 * y)]
    log: dict[str, list[Any]] = {
        "episode": (np.arange(steps) // 10).tolist(), "time": list(range(steps)),
        "a": action.tolist(), "u": (np.sin(x) * (1 + action)).round(1).tolist(),
    }  # fmt: skip
    for name, values in zip("xy", codes, strict=True):
        gaps = (rng.random(steps) < 0.3).tolist()
        log[name] = [None if g else int(v) for v, g in zip(values.tolist(), gaps, strict=True)]
    return rspmn.windows(log, Schema([["x", "y"], ["a"]], ["a"], "u"), ending="cut")


@pytest.mark.parametrize(("most", "integers"), [(200, ("x",)), (20, ())])
def test_integers_that_are_not_drawn_are_numbers(most: int, integers: tuple[str, ...]) -> None:
    """Fault: a log without other numbers had a state for each value, and steps agreed with none."""
    _, info = learn_rspmn(whole(2_000, most))
    assert info.numbers.integers == integers
    assert info.numbers.grid == bool(integers)


def test_unknown_may_be_new_where_products_are_not_multiplied_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fault: factors did not know of an interface node UNKNOWN that was added after them."""
    monkeypatch.setattr("rspmn.learn.successors.products.FEW_PRODUCTS", 0)
    monkeypatch.setattr("rspmn.learn.successors.products.MOST_MULTIPLIED", 1)
    model, info = learn_rspmn(odd_table(11, 100, "end"), LearnConfig(numbers="intervals"))
    assert info.future.spread > 0
    assert model.unknown is not None


def test_assigned_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any size, with the same result; no step walks down the frontier.

    Fault: each step at the frontier looked at all of its states, which took gigabytes.
    """
    windows = odd_table(6, 300)
    model, _ = learn_rspmn(windows, LearnConfig(numbers="intervals"))
    found = assign(model, windows)
    monkeypatch.setattr("rspmn.infer.compiled.assign.IN_PASSING", 100)
    parts = assign(model, windows)
    for one, other in ((found.window, parts.window), (found.site, parts.site)):
        np.testing.assert_array_equal(one, other)
    frontier = is_frontier(model)
    assert frontier[found.here[found.here >= 0]].any()
    assert not frontier[found.here[found.passed_by]].any()


#: Learns from a log of 50,000 steps, and prints the most memory that the process had, in MB.
LARGE = """
import resource, sys
from functools import partial
from test_size import CATEGORIES, odd_table, wards
from rspmn.learn import learn_rspmn
categories = partial(odd_table, kinds=CATEGORIES)
worlds = {"wards": wards, "odd table": odd_table, "categories": categories}
log = worlds[sys.argv[2]](seed=int(sys.argv[1]), steps=50_000)
model, _ = learn_rspmn(log)
model.policy(10).honest_value()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6)
"""


@pytest.mark.soak
@pytest.mark.parametrize("world", ["wards", "odd table", "categories"])
@pytest.mark.parametrize("seed", range(5))
def test_memory_of_large_logs(world: str, seed: int, pytestconfig: pytest.Config) -> None:
    """In a process of its own, Python and the log included."""
    path = [str(pytestconfig.rootpath / "tests" / part) for part in ("learn/numbers", "")]
    code = f"import sys; sys.path[:0] = {path}\n" + LARGE
    done = subprocess.run(
        [sys.executable, "-c", code, str(seed), world], check=True, capture_output=True, text=True
    )
    assert float(done.stdout) < 1000
