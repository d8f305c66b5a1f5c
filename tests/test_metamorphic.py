"""Changes of a log whose effect on what is learned from it is known, and have that effect."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rspmn
from effort import share_of_examples
from rspmn import RSPMN, SPMN, Schema
from rspmn.learn import LearnConfig, learn_rspmn, learn_spmn

Log = dict[str, list[Any]]
SEEDS = st.integers(0, 2**32 - 1)
SCHEMA = Schema([["x", "y"], ["a"]], ["a"], "u")
STATES: list[dict[str, Any]] = [{"x": x, "y": y} for x in range(3) for y in "pq"]
ACTIONS = ("left", "right", "wait")
HORIZON = 5


def random_log(seed: int, episodes: int = 200) -> Log:
    """Return a log of a random world of six states and three actions; no episode terminates.

    Utilities are multiples of 1/4 from 0 to 2, so that sums of them are exact.
    """
    rng = np.random.default_rng(seed)
    follows = rng.dirichlet(np.full(6, 0.3), (6, 3))
    earned = rng.integers(0, 9, (6, 3)) / 4
    log: Log = {name: [] for name in ("episode", "time", "x", "y", "a", "u")}
    for episode in range(episodes):
        state = int(rng.integers(6))
        for t in range(4):
            action = int(rng.integers(3))
            row = (episode, t, *STATES[state].values(), ACTIONS[action],
                   float(earned[state, action]))  # fmt: skip
            for name, value in zip(log, row, strict=True):
                log[name].append(value)
            state = int(rng.choice(6, p=follows[state, action]))
    return log


def learned(log: Log, schema: Schema = SCHEMA, **settings: Any) -> RSPMN:
    windows = rspmn.windows(log, schema, ending="cut")
    return learn_rspmn(windows, config=LearnConfig(**settings))[0]


def single(log: Log, schema: Schema = SCHEMA) -> SPMN:
    return learn_spmn({name: log[name] for name in schema.variables}, schema)[0]


def values(
    model: RSPMN, horizon: int = HORIZON, states: list[dict[str, Any]] = STATES
) -> np.ndarray:
    """Return what states are worth, the start first."""
    return np.array([float(model.meu(state, horizon)) for state in (None, *states)])


def mapped(log: Log, name: str, function: Callable[[Any], Any]) -> Log:
    return {**log, name: [function(value) for value in log[name]]}


def decisions(model: RSPMN) -> list[set[Any]]:
    """Return the best actions in each state, all that tie."""
    return [{a.value for a in model.best_decisions(state, HORIZON)} for state in STATES]


@share_of_examples(0.05)
@given(SEEDS, st.sampled_from([2.0**-20, 0.1, 3.0, 1024.0]))
def test_utilities_scaled(seed: int, scale: float) -> None:
    log = random_log(seed)
    one, other = learned(log), learned(mapped(log, "u", lambda u: scale * u))
    # sums of fewer than 1e3 rounded terms
    assert values(other) == pytest.approx(scale * values(one), rel=1e-12)
    assert decisions(other) == decisions(one)
    assert float(single(mapped(log, "u", lambda u: scale * u)).meu()) == pytest.approx(
        scale * float(single(log).meu()), rel=1e-12
    )


@share_of_examples(0.05)
@given(SEEDS, st.sampled_from([-7.0, 0.25, 1000.0]))
def test_utilities_shifted(seed: int, shift: float) -> None:
    """What is added in each step is added once for each step of the horizon."""
    log = random_log(seed)
    one, other = learned(log), learned(mapped(log, "u", lambda u: shift + u))
    assert values(other) == pytest.approx(values(one) + HORIZON * shift, abs=1e-12 * 5000)
    assert decisions(other) == decisions(one)
    assert float(single(mapped(log, "u", lambda u: shift + u)).meu()) == pytest.approx(
        shift + float(single(log).meu()), rel=1e-12
    )


@share_of_examples(0.05)
@given(SEEDS)
def test_variables_renamed(seed: int) -> None:
    """Names in another alphabetical order, the order of the schema being the same."""
    log, names = random_log(seed), {"x": "z", "y": "b", "a": "y", "u": "a"}
    renamed = {names.get(name, name): column for name, column in log.items()}
    other = learned(renamed, Schema([["z", "b"], ["y"]], ["y"], "a"))
    states = [{names[name]: value for name, value in state.items()} for state in STATES]
    assert values(other, states=states).tolist() == values(learned(log)).tolist()


@share_of_examples(0.05)
@given(SEEDS)
def test_values_renamed(seed: int) -> None:
    """Names of actions and of a category, in another alphabetical order."""
    log, text = random_log(seed), {"left": "z", "right": "m", "wait": "b"}
    renamed = mapped(mapped(log, "a", text.__getitem__), "y", {"p": "Z", "q": "A"}.__getitem__)
    other, one = learned(renamed), learned(log)
    states = [{"x": s["x"], "y": "Z" if s["y"] == "p" else "A"} for s in STATES]
    assert values(other, states=states) == pytest.approx(values(one), rel=1e-12)
    best = [{a.value for a in other.best_decisions(state, HORIZON)} for state in states]
    assert best == [{text[value] for value in found} for found in decisions(one)]


@share_of_examples(0.05)
@given(SEEDS)
def test_episodes_renamed_and_rows_shuffled(seed: int) -> None:
    log = random_log(seed)
    order = np.random.default_rng(seed).permutation(len(log["u"])).tolist()
    named = mapped(log, "episode", lambda episode: f"{997 * episode % 1009:04d}")
    shuffled = {name: [column[k] for k in order] for name, column in named.items()}
    assert learned(shuffled) == learned(log)


@share_of_examples(0.05)
@given(SEEDS)
def test_the_log_twice(seed: int) -> None:
    """Shares are the same, and their errors smaller.

    Factors weigh as much as some steps, so with them a log is trusted more if it is longer.
    """
    log = random_log(seed)
    again = mapped(log, "episode", lambda episode: 1000 + episode)
    twice = {name: [*log[name], *again[name]] for name in log}
    one, other = (learned(each, successors="counts") for each in (log, twice))
    assert values(other) == pytest.approx(values(one), rel=1e-12)
    wide, narrow = (model.policy(HORIZON).honest_value() for model in (one, other))
    # √2 times as wide for what was seen, more for what never was; quantiles are off by a tenth
    assert wide.high - wide.low > 1.2 * (narrow.high - narrow.low)


@share_of_examples(0.05)
@given(SEEDS)
def test_a_dominated_action(seed: int) -> None:
    """To fall is to wait, but costs 3 more."""
    log = random_log(seed)
    waits = [k for k, action in enumerate(log["a"]) if action == "wait"]
    falls = mapped(log, "episode", lambda episode: 1000 + episode)
    falls = mapped(mapped(falls, "a", lambda a: "fall" if a == "wait" else a), "u", lambda u: u)
    for k in waits:
        falls["u"][k] -= 3.0
    both = {name: [*log[name], *falls[name]] for name in log}
    model, plain = (learned(each, successors="counts") for each in (both, log))
    assert values(model) == pytest.approx(values(plain), rel=1e-12)
    assert not any("fall" in best for best in decisions(model))


@share_of_examples(0.05)
@given(SEEDS, st.booleans())
def test_a_longer_horizon_is_worth_no_less(seed: int, ends: bool) -> None:
    """Utilities are 0 or more."""
    log = random_log(seed, 30)
    windows = rspmn.windows(log, SCHEMA, ending="end" if ends else "cut")
    model = learn_rspmn(windows)[0]
    found = [values(model, horizon) for horizon in (1, 2, 3, 5, 10, 100)]
    for shorter, longer in pairwise(found):
        known = ~np.isnan(shorter) & ~np.isnan(longer)
        assert (longer[known] >= shorter[known] - 1e-9).all()


@share_of_examples(0.05)
@given(SEEDS)
def test_a_certain_fact_is_observed(seed: int) -> None:
    """A variable that never changes, and one that says again what another says."""
    log = random_log(seed)
    told = {**log, "season": ["dry"] * len(log["u"]), "again": [10 * x for x in log["x"]]}
    schema = Schema([["x", "y", "season", "again"], ["a"]], ["a"], "u")
    model, plain = learned(told, schema), learned(log)
    states = [{**state, "season": "dry", "again": 10 * state["x"]} for state in STATES]
    expected = values(plain)
    assert values(model, states=states) == pytest.approx(expected, rel=1e-12)
    assert values(model) == pytest.approx(expected, rel=1e-12)


def answers(model: RSPMN, unit: float) -> dict[str, list[float]]:
    """Return what a model answers about utilities, in its unit."""
    found: dict[str, list[float]] = {}
    for name, horizon, discount in (("short", 5, 1.0), ("for ever", None, 0.9)):
        policy = model.policy(horizon, discount)
        honest, sure = policy.honest_value(draws=50), policy.how_sure(STATES[0])
        found[name] = [float(policy.value()), honest.point, honest.low, honest.high]
        found[name] += [x for each in sure.actions for x in (each.mean, each.low, each.high)]
        found[name] += [float(model.policy(horizon, discount, safe=False).value())]
    policy = model.policy(5)
    returns, tail = policy.returns(), policy.tail(0.2)
    found["returns"] = [returns.mean, returns.deviation, returns.quantile(0.1), returns.cvar(0.2)]
    found["tail"] = [tail.value, tail.error]
    drawn = model.sample(50, 5, 0, policy)
    found["sample"] = drawn.columns["u"].numbers().tolist()
    found = {name: [x / unit for x in numbers] for name, numbers in found.items()}
    found["shares"] = [returns.prob_below(unit), float(len(model.template))]
    found["kept"] = [float(model.policy(5).honest_value(draws=50).kept)]
    return found


@share_of_examples(0.02)
@given(SEEDS, st.sampled_from([2.0**-40, 2.0**-20, 2.0**30]))
def test_no_answer_depends_on_the_unit_of_utilities(seed: int, unit: float) -> None:
    """Powers of two change no digit: all that is compared with 1 would show."""
    log = random_log(seed, 100)
    one = answers(learned(log), 1.0)
    other = answers(learned(mapped(log, "u", lambda u: unit * u)), unit)
    for name in one:
        assert other[name] == pytest.approx(one[name], rel=1e-9, abs=1e-9, nan_ok=True), name
