"""What states lack is drawn: from what, how often, and what learning gains by it."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from missing import masked

from effort import seeds, share_of_examples
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.windows import Windows
from rspmn.envs.sys_admin import sys_admin
from rspmn.evaluate import true_value
from rspmn.infer.compiled.groups import drawn_columns
from rspmn.learn import learn_rspmn
from rspmn.learn.missing import whole_states
from rspmn.learn.missing.complete import completed, drawn_one_by_one
from rspmn.learn.missing.lacking_steps import CodedSteps
from rspmn.schema import Schema

STATES = Schema([["x", "y"], ["a"]], ["a"], "u")


def windows_of(rows: dict[str, list[object]], schema: Schema = STATES) -> Windows:
    """Return the windows of episodes of one step each."""
    size = len(rows["x"])
    table = {"episode": list(range(size)), "time": [0] * size, **rows}
    return Windows.from_episodes(Episodes.from_long(table, schema, ending="end"))


def values_of(windows: Windows) -> Counter[tuple[object, ...]]:
    """Return how often each joint value of x and y is in a log."""
    columns = [windows.columns[name] for name in ("x", "y")]
    found: Counter[tuple[object, ...]] = Counter()
    for k, count in enumerate(windows.counts.tolist()):
        codes = [int(column.data[k]) for column in columns]
        domains = (column.domain for column in columns)
        found[tuple(d[c] if c >= 0 else None for d, c in zip(domains, codes, strict=True))] += count
    return found


def test_what_the_rest_of_a_step_tells_is_drawn() -> None:
    """y = x in 40 steps, and is missing in 10: 5 of each x. It is drawn as x is."""
    x: list[object] = [0, 1] * 25
    y: list[object] = [*x[:40], *[None] * 10]
    windows = windows_of({"x": x, "y": y, "a": [0] * 50, "u": [0.0] * 50})
    assert values_of(completed(windows)) == {(0, 0): 25, (1, 1): 25}


def test_what_followed_tells_is_drawn() -> None:
    """u = x + y tells y where x is known, and x where y is."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(2, size=(2, 400))
    hidden = rng.integers(4, size=400)  # 0: x is missing, 1: y is
    windows = windows_of(
        {
            "x": [None if h == 0 else int(v) for h, v in zip(hidden, x, strict=True)],
            "y": [None if h == 1 else int(v) for h, v in zip(hidden, y, strict=True)],
            "a": [0] * 400,
            "u": [float(v) for v in x + y],
        }
    )
    assert values_of(completed(windows)) == Counter(zip(x.tolist(), y.tolist(), strict=True))


def test_where_nothing_is_known_any_value_of_the_variable_is_drawn() -> None:
    """x is known in first steps only, so what follows a step says nothing of it: 0 or 1."""
    size = 60
    table = {
        "episode": [e for e in range(size) for _ in (0, 1)], "time": [0, 1] * size,
        "x": [value for e in range(size) for value in (e % 2, None)],
        "y": [k // 2 % 2 for k in range(2 * size)], "a": [0] * 2 * size, "u": [0.0] * 2 * size,
    }  # fmt: skip
    log = Windows.from_episodes(Episodes.from_long(table, STATES, ending="end"))
    found = completed(log)
    assert set(found.columns["x"].decode()) == {0, 1}
    following = found.next_columns["x"].take(np.flatnonzero(found.followed <= Followed.STATE))
    assert set(following.data.tolist()) == {0, 1}  # codes of the two values


def test_draws_are_as_frequent_as_their_weights() -> None:
    """40,000 draws by 1 to 3: a standard error of sqrt(.25 · .75 / 40,000) = .0022."""
    weights = np.array([[0.0, 2.0, 6.0], [1.0, 0.0, 0.0]])
    of = np.repeat([0, 1], 40_000)
    found = drawn_columns(weights[of], np.random.default_rng(1))
    assert (found[of == 1] == 0).all()
    assert (found[of == 0] > 0).all()
    assert (found[of == 0] == 1).mean() == pytest.approx(0.25, abs=0.0022 * 4)


def known_part(windows: Windows) -> Counter[tuple[object, ...]]:
    """Return the number of steps by all that is not a value of a state."""
    rest = [windows.columns[n].data for n in (*windows.schema.decisions, windows.schema.utility)]
    found: Counter[tuple[object, ...]] = Counter()
    for k in range(len(windows)):
        key = tuple(float(data[k]) for data in rest), int(windows.followed[k])
        found[key, "steps"] += int(windows.counts[k])
        found[key, "starts"] += int(windows.starts[k])
    return found


@share_of_examples(0.5)
@given(seed=st.integers(0, 2**32), share=st.sampled_from([0.05, 0.5]))
def test_no_step_is_lost_and_none_lacks_anything(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    log = sys_admin(3).generate(int(rng.integers(1, 20)), int(rng.integers(1, 6)), seed, "final")
    windows = Windows.from_episodes(masked(log, share, rng))
    found = completed(windows)
    if any(windows.columns[name].missing.all() for name in windows.next_columns):
        assert found is windows  # of one variable nothing is known
        return
    assert known_part(found) == known_part(windows)
    followed = found.followed <= Followed.STATE
    for name, column in found.next_columns.items():
        assert not found.columns[name].missing.any()
        assert not column.missing[followed].any()


def test_what_is_known_stays() -> None:
    rows: dict[str, list[object]] = {
        "x": [0, 1, None, 1], "y": [5, None, 5, 7], "a": [0, 1, 2, 3], "u": [0.0] * 4,
    }  # fmt: skip
    windows = windows_of(rows)
    found = completed(windows)
    made = found.columns["a"].data.tolist()
    for name in ("x", "y"):
        column = found.columns[name]
        drawn_values = [column.domain[column.data[made.index(k)]] for k in range(4)]
        known = [value for value in rows[name] if value is not None]
        assert [v for v, r in zip(drawn_values, rows[name], strict=True) if r is not None] == known


def test_few_states_are_looked_at_if_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    windows = Windows.from_episodes(
        masked(sys_admin(4).generate(40, 5, 0, "final"), 0.3, np.random.default_rng(0))
    )
    monkeypatch.setattr(whole_states, "MOST_PAIRS", 600)
    monkeypatch.setattr(whole_states, "CHUNK", 50)
    found = completed(windows)
    assert int(found.counts.sum()) == int(windows.counts.sum())
    assert not any(column.missing.any() for column in found.columns.values())


@pytest.mark.parametrize("reason", ["one variable", "numbers", "results", "absence tells"])
def test_some_logs_are_left_as_they_are(reason: str) -> None:
    x: list[object] = [0, 1, None, 1]
    rows: dict[str, list[object]] = {
        "x": x, "y": [*x], "z": [0] * 4, "a": [0] * 4, "u": [0.0] * 4,
    }  # fmt: skip
    schema = {
        "one variable": Schema([["x"], ["a"]], ["a"], "u"),
        "numbers": Schema([["x", "y"], ["a"]], ["a"], "u", {"x": "continuous"}),
        "results": Schema([["x", "y"], ["a"], ["z"]], ["a"], "u"),
        "absence tells": Schema([["x", "y"], ["a"]], ["a"], "u", missing={"x": "informative"}),
    }[reason]
    windows = windows_of({n: v for n, v in rows.items() if n in schema.variables}, schema)
    assert completed(windows) is windows


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_a_third_of_all_values_may_be_missing(seed: int) -> None:
    """Five machines: steps that lack nothing are .65 ** 10 = 1.3 % of all."""
    world = sys_admin(5)
    log = world.generate(300, world.horizon, seed, "final")
    model, info = learn_rspmn(masked(log, 0.35, np.random.default_rng(seed)))
    assert info.steps_completed > 0.95 * info.steps
    assert info.steps_left_out == info.steps_doubtful == 0
    random = world.evaluate(None, world.horizon)
    best = world.optimum(world.horizon)
    value = true_value(world, model.policy(world.horizon), world.horizon)
    assert (value - random) / (best - random) > 0.97
    promise = float(model.meu(horizon=world.horizon))
    assert (promise - best) / (best - random) == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("code", [1, 3])
def test_a_value_that_is_the_only_one_known_is_drawn(code: int) -> None:
    """Any other of the four would be as probable if nothing were known."""
    known, rows = 40, 60
    state = np.ones((rows, 2), dtype=np.int64)
    state[:, 0] = np.where(np.arange(rows) < known, code, 0)
    none = np.zeros(rows, dtype=np.int64)
    steps = CodedSteps(
        ("x", "y"), np.array([5, 2]), state, np.zeros_like(state), state == 0,
        np.zeros(state.shape, dtype=bool), none, 1, none, 1, none == 0, np.ones(rows),
    )  # fmt: skip
    drawn = drawn_one_by_one(steps, np.random.default_rng(0), math.inf)
    assert (drawn.state == [code, 1]).all()


def test_a_log_that_lacks_nothing_is_left_as_it_is() -> None:
    windows = windows_of({"x": [0, 1, 0, 1], "y": [1, 1, 0, 0], "a": [0] * 4, "u": [0.0] * 4})
    assert completed(windows) is windows
