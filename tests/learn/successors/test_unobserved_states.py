"""States beyond the log: which are added, and what is done in them."""

import tracemalloc
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import rspmn
from rspmn import Windows, load, refit
from rspmn.data.episodes import Episodes
from rspmn.envs.domains import DOMAINS
from rspmn.envs.mdp import MDP
from rspmn.envs.sys_admin import sys_admin
from rspmn.evaluate import Tabular, true_value
from rspmn.learn import LearnConfig, learn_rspmn
from rspmn.learn.info import RSPMNInfo
from rspmn.learn.structure import each_state
from rspmn.learn.successors import extrapolate
from rspmn.learn.successors import unobserved_states as beyond
from rspmn.learn.successors.seen_together import SeenTogether
from rspmn.model import RSPMN
from rspmn.schema import Schema

HORIZON = 10
Learned = tuple[MDP, Episodes, RSPMN, RSPMNInfo]


@pytest.fixture(scope="module")
def few_steps() -> Learned:
    """A ring of five machines of which a third of the states were never seen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(each_state, "MANY_STATES", 5)
        world = sys_admin(5)
        log = world.generate(20, HORIZON, 1, "final")
        return world, log, *learn_rspmn(log)


def test_each_state_is_a_node_and_all_that_may_follow_are_added(few_steps: Learned) -> None:
    world, log, model, info = few_steps
    assert "steps for each state and decision" in info.each_state
    seen = Tabular.fit(log).states.count
    assert seen < len(world.states)
    assert info.all_beyond
    assert seen + info.beyond == len(world.states)
    assert model.num_state_interfaces == len(world.states)
    assert info.future.outside == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("most", "for_each", "pairs", "added"),
    [(3, 0, 1000, 3), (3, 1, 1000, 11), (3, 1, 150, 4), (30, 0, 1000, 11)],
)
def test_states_are_added_up_to_a_bound(
    few_steps: Learned, monkeypatch: pytest.MonkeyPatch, most: int, for_each: int, pairs: int,
    added: int,
) -> None:  # fmt: skip
    """Of 32 states the log has 21; 150 pairs are 25 states of 6 decisions each."""
    monkeypatch.setattr(each_state, "MANY_STATES", 5)
    bounds = {"MOST_STATES": most, "FOR_EACH": for_each, "MOST_PAIRS": pairs}
    for name, value in bounds.items():
        monkeypatch.setattr(beyond, name, value)
    _, info = learn_rspmn(few_steps[1])
    assert info.beyond == added
    assert info.all_beyond == (added == 11)


def test_a_policy_decides_in_states_that_the_log_never_had(few_steps: Learned) -> None:
    world, log, model, _ = few_steps
    policy = model.policy(HORIZON)
    table = Tabular.fit(log)
    by_table = world.evaluate(table.policy_for(world, HORIZON), HORIZON)
    assert true_value(world, policy, HORIZON) > by_table
    names = world.schema.state_variables
    seen = set(zip(*(table.states.columns[name].decode() for name in names), strict=True))
    never = next(state for state in world.states if state not in seen)
    answers = policy.action_values(dict(zip(names, never, strict=True)))
    assert {answer.tried for answer in answers if answer.available} == {False}
    known = next(iter(seen))
    answers = policy.action_values(dict(zip(names, known, strict=True)))
    assert any(answer.tried and answer.steps > 0 for answer in answers if answer.available)


def test_such_a_model_is_kept_in_a_file(few_steps: Learned, tmp_path: Path) -> None:
    *_, model, _ = few_steps
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert isinstance(again, RSPMN)
    assert again.beyond == model.beyond
    assert again == model


@pytest.mark.parametrize("work", [extrapolate.MOST_WORK, 0])
def test_decisions_that_are_never_best_change_nothing(
    work: int, few_steps: Learned, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or hardly anything, if plans end after a few steps, as they would take too long."""
    world, log, model, info = few_steps
    assert extrapolate.LEAST_STEPS < HORIZON
    monkeypatch.setattr(extrapolate, "MOST_WORK", work)
    assert info.never_best == 0
    monkeypatch.setattr(each_state, "MANY_STATES", 5)
    monkeypatch.setattr(extrapolate, "MOST_BRANCHES", 0)
    fewer, pruned = learn_rspmn(log)
    assert pruned.never_best > 0
    assert pruned.untried_branches < info.untried_branches
    for untried in (False, True):
        values = [
            true_value(world, m.policy(HORIZON, offer="all" if untried else "tried"), HORIZON)
            for m in (model, fewer)
        ]
        assert values[0] == pytest.approx(values[1], rel=0.05)


NOT_SO: dict[str, Callable[[], LearnConfig]] = {
    "counts": lambda: LearnConfig(successors="counts"),
    "paper": LearnConfig.paper,
    "budget": lambda: LearnConfig(max_nodes=10_000),
}


@pytest.mark.parametrize("name", NOT_SO)
def test_tests_find_nodes_where_states_may_not_be_added(
    name: str, few_steps: Learned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(each_state, "MANY_STATES", 5)
    _, info = learn_rspmn(few_steps[1], NOT_SO[name]())
    assert info.each_state == ""
    assert info.beyond == 0


def test_states_that_were_seen_often_are_found_by_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(each_state, "MANY_STATES", 5)
    log = sys_admin(3).generate(300, HORIZON, 0, "final")
    assert learn_rspmn(log)[1].each_state == ""


def test_draws_from_the_posterior_know_states_beyond_the_log(few_steps: Learned) -> None:
    model = few_steps[2]
    found = model.policy(HORIZON).honest_value(draws=20)
    assert np.isfinite([found.point, found.low, found.high]).all()


@pytest.mark.parametrize("most", [0, 20_000])
def test_refit_of_the_same_log_changes_nothing(
    most: int, few_steps: Learned, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where only the best of untried decisions are kept, too."""
    monkeypatch.setattr(each_state, "MANY_STATES", 5)
    monkeypatch.setattr(extrapolate, "MOST_BRANCHES", most)
    model, info = learn_rspmn(few_steps[1])
    again, _ = refit(model, Windows.from_episodes(few_steps[1]))
    assert info.beyond
    assert again.beyond == model.beyond
    assert [*again.visits] == [*model.visits]
    for untried in (False, True):
        found, expected = (
            m.values(HORIZON, offer="all" if untried else "tried") for m in (again, model)
        )
        assert found == pytest.approx(expected, abs=1e-12)


def test_refit_counts_what_new_episodes_did_beyond_the_log(few_steps: Learned) -> None:
    world, _, model, _ = few_steps
    more = world.generate(40, HORIZON, 5, "final")
    again, _ = refit(model, Windows.from_episodes(more))
    assert again.num_interfaces == model.num_interfaces
    visited = np.array(again.visits)[list(model.beyond)]
    assert visited.max() >= 1  # some of them are known now
    assert np.isfinite(true_value(world, again.policy(HORIZON), HORIZON))


@pytest.mark.parametrize("episodes", [1, 2, 3, 5])
def test_refit_of_a_few_new_episodes(episodes: int, few_steps: Learned) -> None:
    """Steps with decisions that no branch has are left out: what follows is learned with them."""
    world, _, model, _ = few_steps
    for seed in range(6):
        log = world.generate(episodes, HORIZON, seed, "final")
        again, _ = refit(model, Windows.from_episodes(log))
        assert again.num_interfaces == model.num_interfaces
        assert np.isfinite(again.meu(horizon=HORIZON))


def test_no_state_is_added_with_values_that_exclude_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A token is in one of five places; a lamp beside it is on or off, by chance."""
    monkeypatch.setattr(each_state, "MANY_STATES", 3)
    rng = np.random.default_rng(0)
    places = [f"at_{k}" for k in range(5)]
    schema = Schema([[*places, "lamp_1", "lamp_2"], ["a"]], ["a"], "u")
    rows = []
    for episode in range(6):
        at = 0
        for time in range(8):
            lamps = (rng.random(2) < 0.3).tolist()
            moved = bool(rng.integers(2))
            rows.append((episode, time, *(at == k for k in range(5)), *lamps, moved, float(at)))
            at = (at + (moved and rng.random() < 0.7)) % 5
    names = ["episode", "time", *places, "lamp_1", "lamp_2", "a", "u"]
    log = Episodes.from_long(dict(zip(names, zip(*rows, strict=True), strict=True)), schema,
                             ending="cut")  # fmt: skip
    model, info = learn_rspmn(log)
    assert info.beyond > 0
    known = [model.state_index.belief({one: True, other: True}).nodes
             for one, other in combinations(places, 2)]  # fmt: skip
    assert not any(map(len, known))


@pytest.mark.parametrize("most", [0, 10**6])
def test_values_that_were_seen_together(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pairs of all states of the log say, by tables and by lists."""
    monkeypatch.setattr("rspmn.learn.successors.seen_together.MOST_PAIRS", most)
    rng, sizes = np.random.default_rng(0), [3, 4, 2, 5]
    seen, asked = (np.stack([rng.integers(0, n, k) for n in sizes], axis=1) for k in (12, 200))
    pairs = {(a, b, row[a], row[b]) for row in seen.tolist() for a in range(4) for b in range(4)}
    expected = [all((a, b, row[a], row[b]) in pairs for a in range(4) for b in range(4))
                for row in asked.tolist()]  # fmt: skip
    assert SeenTogether(seen, sizes)(asked).tolist() == expected
    assert 0 < sum(expected) < 200


def test_many_values_take_memory_in_proportion() -> None:
    """Each state its own: a table of two values that were never seen together had n² entries."""
    rng, n = np.random.default_rng(0), 12_000
    log = {"episode": np.arange(n) // 4, "time": np.arange(n) % 4,
           "x": [f"text {k}" for k in range(n)], "a": rng.choice(["l", "r"], n),
           "u": rng.random(n)}  # fmt: skip
    windows = rspmn.windows(log, rspmn.Schema([["x"], ["a"]], ["a"], "u"), ending="end")
    tracemalloc.start()
    learn_rspmn(windows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * n * n  # bytes; it was more than a float32 for each two values


@pytest.fixture(scope="module")
def careful() -> Learned:
    """A ring of machines whose operator errs in 2 % of the steps: 80 of 256 states are logged."""
    world = sys_admin()
    best = np.eye(len(world.actions))[world.value_iteration(world.horizon)[1]]
    logger = 0.98 * best + 0.02 / len(world.actions)
    log = world.generate(100, world.horizon, 0, "final", logger)
    return world, log, *learn_rspmn(log)


def test_states_are_added_where_tests_tell_those_of_the_log_apart(careful: Learned) -> None:
    world, log, model, info = careful
    assert info.each_state == ""
    assert info.all_beyond
    assert Tabular.fit(log).states.count + info.beyond == len(world.states)
    assert info.frontier_extrapolated == info.frontier_states > 0
    assert info.future.outside == pytest.approx(0, abs=1e-12)
    again, check = refit(model, log)
    assert check.fits
    assert again == model


def test_who_never_got_somewhere_is_not_worse_there(careful: Learned) -> None:
    """Without an answer in new states, 1 step in 14, the plan earned .89 of what practice does."""
    world, _, model, _ = careful
    horizon, size = world.horizon, len(world.states)
    policy = model.policy(horizon)
    true, honest = true_value(world, policy, horizon), policy.honest_value()
    least = world.evaluate(np.full((size, len(world.actions)), 1 / len(world.actions)), horizon)
    assert (true - least) / (world.optimum(horizon) - least) > 0.95
    assert honest.low < true < honest.high


def test_where_nobody_ever_was_the_likeliest_decisions_are_offered(careful: Learned) -> None:
    """Of nine, fewer than three: an operator who hardly errs compared nothing there.

    Nothing is offered where the likely ones were never made with some value of the state.
    """
    world, log, model, _ = careful
    names, policy = world.schema.state_variables, model.policy(world.horizon)
    known = {*zip(*(Tabular.fit(log).states.columns[n].decode() for n in names), strict=True)}
    new = [dict(zip(names, state, strict=True)) for state in world.states if state not in known]
    offered = [sum(a.available for a in policy.action_values(state)) for state in new]
    assert np.mean(np.array(offered) > 0) > 0.9
    assert np.mean(offered) < 3


def test_a_state_is_in_one_node_where_nodes_have_several() -> None:
    world = DOMAINS["SkillTeaching"]()
    log = world.generate(100, world.horizon, 7, "final")
    model, info = learn_rspmn(log)
    seen, policy = Tabular.fit(log).states, model.policy(world.horizon)
    assert info.beyond > 0
    assert model.num_state_interfaces < seen.count + info.beyond
    names = world.schema.state_variables
    for state in world.states:
        assert policy.nodes(dict(zip(names, state, strict=True))).max() in (0, pytest.approx(1))
