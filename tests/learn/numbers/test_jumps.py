"""Numbers that move on or jump back: what follows lies where steps led to, not between."""

from dataclasses import replace

import numpy as np
import pytest

import rspmn
from number_worlds import corridor
from rspmn import Schema
from rspmn.learn.description import description
from rspmn.learn.learn_rspmn import learn_rspmn
from rspmn.learn.numbers.axes import NumberLine
from rspmn.learn.numbers.displacements import Logged, fit_displacements, half_of
from rspmn.learn.numbers.follows import expected_next
from rspmn.learn.numbers.grid import fit_grid
from rspmn.learn.numbers.held_out import misses
from rspmn.learn.numbers.learn_on_grid import Chosen, _logged, _solve
from rspmn.learn.numbers.steps import steps_of
from rspmn.learn.numbers.successors import transitions
from rspmn.types import Array, Bools, Ints

ROWS = 4_000


def logged(here: Array, after: Array, action: Ints) -> Logged:
    """Return steps of one number."""
    none, rows = np.zeros((len(here), 0), dtype=np.int64), len(here)
    return Logged(
        here[:, None], after[:, None], none, none, action, 2, np.zeros(rows, dtype=bool),
        np.zeros(rows), np.zeros(rows), np.ones(rows),
    )  # fmt: skip


def days(seed: int, rows: int = ROWS) -> tuple[Logged, Bools]:
    """Return days that grow by 7 or fall back to 0 to 7, by chances of .3 and .6 of two actions."""
    rng = np.random.default_rng(seed)
    here, action = rng.uniform(0, 60, rows), rng.integers(0, 2, rows)
    back = rng.random(rows) < np.where(action == 1, 0.6, 0.3)
    return logged(here, np.where(back, rng.uniform(0, 7, rows), here + 7), action), back


def test_no_successor_is_where_no_step_led() -> None:
    """Fault: of the successors of 40 most lay between 10 and 44, where none of the log's was."""
    log, back = days(0)
    grid, membership, _ = fit_grid(
        log.codes, (), log.numbers, (NumberLine(np.arange(0.0, 69.0, 2.0)),), log.counts
    )
    found = fit_displacements(log, ())
    same = (found.kind == found.kind[np.flatnonzero(back)[0]]) == back
    assert found.kinds == 2
    assert same.mean() > 0.99
    follows = expected_next(grid, membership, log, found)
    led = transitions(grid, follows, []).matrix(grid.size)
    at, node = grid.points[:, 0], int(np.flatnonzero(grid.points[:, 0] == 40)[0])
    for action, chance in ((0, 0.3), (1, 0.6)):
        weights = led.toarray()[2 * node + action]
        assert weights[(at > 10) & (at < 44)].sum() < 0.01
        assert weights[at <= 10].sum() == pytest.approx(chance, abs=0.06)


@pytest.mark.parametrize("noise", ["normal", "uniform", "none", "kink"])
def test_noise_that_has_one_middle_is_one_kind(noise: str) -> None:
    rng = np.random.default_rng(1)
    here, action = rng.uniform(0, 60, ROWS), rng.integers(0, 2, ROWS)
    moved = {"normal": rng.normal(0, 9, ROWS), "uniform": rng.uniform(-9, 9, ROWS),
             "none": np.ones(ROWS), "kink": np.abs(here - 30)}[noise]  # fmt: skip
    assert fit_displacements(logged(here, here + moved, action), ()).kinds == 1


def test_halves_are_of_steps() -> None:
    """Fault: rows that stand for many steps were in one half, all of them."""
    half = half_of(np.full(100, 50.0))
    assert 10 < half.min() < half.max() < 40
    assert half_of(np.array([0.5])).tolist() == [0.5]


def test_held_out_steps_are_predicted_and_a_planted_fault_is_found() -> None:
    """The reward of one action is said to be 1 more, or what follows it to be what the other does.

    Nothing is found in the model as it is.
    """
    rng, x = np.random.default_rng(0), np.zeros((10, 600))
    action = rng.integers(0, 2, (10, 600))
    x[0] = rng.uniform(0, 1, 600)
    for t in range(9):
        moved = x[t] + 0.1 * (2 * action[t] - 1) + rng.normal(0, 0.02, 600)
        x[t + 1] = np.clip(moved, 0, 1)
    log = {
        "episode": np.repeat(np.arange(600), 10).tolist(), "time": [*range(10)] * 600,
        "x": x.T.ravel().tolist(), "a": action.T.ravel().tolist(),
        "u": (x + action / 2 + rng.normal(0, 0.1, x.shape)).T.ravel().tolist(),
    }  # fmt: skip
    windows = rspmn.windows(log, Schema([["x"], ["a"]], ["a"], "u"), ending="cut")
    steps = steps_of(windows, frozenset({"x"}))
    chosen, axes = Chosen([("x",)], []), (NumberLine(np.linspace(0, 1, 11)),)
    half = half_of(steps.counts)
    one, other = (replace(steps, counts=c).take(np.flatnonzero(c > 0))
                  for c in (half, steps.counts - half))  # fmt: skip
    solved = _solve(one, chosen, axes)
    fitted, test = (_logged(each, chosen)[0] for each in (one, other))
    names = [str(action[0]) for action in steps.actions]

    def found(**changes: object) -> list[tuple[str, str]]:
        other_world = replace(solved, **changes)  # type: ignore[arg-type]
        return [(m.what, m.action) for m in misses(other_world, fitted, test, names, ["x"], [])]

    assert found() == []
    wrong = replace(solved.follows, mean=solved.follows.mean + np.array([1.0, 0.0]))
    assert found(follows=wrong) == [("reward", names[0])]
    led = replace(solved.led, site=solved.led.site ^ 1)
    assert {action for what, action in found(led=led) if "next x" in what} == {*names}


def test_the_description_says_what_is_mispredicted() -> None:
    _, info = learn_rspmn(rspmn.windows(*corridor(60, seed=0), terminated="over"))
    info.numbers.misses = ("reward after a left: 2 predicted, 1",) * 7
    lines = [line for line in description(info) if line.startswith("mispredicted")]
    assert lines[0] == "mispredicted: reward after a left: 2 predicted, 1 on held-out steps"
    assert lines[5] == "mispredicted: 2 more, see info.numbers.misses"
