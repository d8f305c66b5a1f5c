"""Honest values: values in draws, optimism, intervals that hold the truth."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rspmn
from effort import seeds
from rspmn import RSPMN, Episodes, Followed, LearnConfig, Schema, learn_rspmn
from rspmn.envs.domains import DOMAINS
from rspmn.envs.random_mdp import random_mdp
from rspmn.errors import EvidenceError
from rspmn.evaluate import practice, true_value
from rspmn.infer.compiled.planned import Plan
from rspmn.infer.criterion import MEU
from rspmn.trust import HonestValue, Posterior, honest
from rspmn.trust.drawn_worlds import Worlds
from rspmn.trust.rules import Best, Fixed
from rspmn.types import Array


@pytest.fixture(scope="module")
def models() -> Mapping[str, RSPMN]:
    worlds = {name: DOMAINS[name]() for name in ("FrozenLake", "Elevators")}
    return {
        name: learn_rspmn(world.generate(300, world.horizon, 1))[0]
        for name, world in worlds.items()
    }


def test_updates_of_a_long_horizon_stop_where_nothing_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake, made = DOMAINS["FrozenLake"](), []
    model, update = learn_rspmn(lake.generate(1000, lake.horizon, 1))[0], Worlds.update

    def counted(self: Worlds, *arguments: Any) -> Array:
        made.append(1)
        return update(self, *arguments)

    monkeypatch.setattr(Worlds, "update", counted)
    found = []
    for settles in (True, False):
        if not settles:
            monkeypatch.setattr(honest, "is_settled", lambda *_: False)
        policy = model.policy(800, 0.9, safe=False)
        value = policy.honest_value(draws=20)
        found.append((len(made), float(value), str(policy.act({"cell": 0}))))
        made.clear()
    (few, stopped, does), (all_of_them, expected, same) = found
    assert stopped == pytest.approx(expected, rel=1e-6)
    assert does == same
    assert few < all_of_them / 2


@pytest.mark.parametrize("name", ["FrozenLake", "Elevators"])
def test_a_world_that_is_the_model_has_its_values(name: str, models: Mapping[str, RSPMN]) -> None:
    model = models[name]
    bellman = model.bellman
    forms = bellman.levels[0].forms
    weights = forms.matrix[:, : model.num_interfaces]
    worlds = Worlds(
        Posterior(model).evidence, forms.earned[None, :], lambda v: np.asarray(weights @ v.T).T
    )
    plan = Plan(model, 5, 0.9, MEU)
    best = fixed = np.zeros((3, model.num_interfaces))
    for after in range(5):
        best = worlds.update(best, 0.9, after == 0, Best())
        fixed = worlds.update(fixed, 0.9, after == 0, Fixed(plan.at(after).choices.chosen))
        expected = bellman.values(after + 1, 0.9)[-1]
        states = np.isfinite(expected)
        for found in (*best, *fixed):
            assert found[states] == pytest.approx(expected[states])


def test_no_plan_is_worth_more_than_the_best(models: Mapping[str, RSPMN]) -> None:
    model = models["FrozenLake"]
    posterior, plan = Posterior(model), Plan(model, 8, 1.0, MEU)
    worlds = posterior.worlds(posterior.draw(20, np.random.default_rng(0)))
    best = fixed = np.zeros((20, model.num_interfaces))
    for after in range(8):
        best = worlds.update(best, 1.0, after == 0, Best())
        fixed = worlds.update(fixed, 1.0, after == 0, Fixed(plan.at(after).choices.chosen))
        assert (fixed <= best + 1e-12).all()
    assert model.end is not None
    assert (best[:, model.end] == 0).all()


@pytest.mark.parametrize("name", ["FrozenLake", "Elevators"])
def test_the_branches_of_a_plan_are_enough_to_value_it(
    name: str, models: Mapping[str, RSPMN]
) -> None:
    model = models[name]
    posterior, plan = model.posterior, Plan(model, 5, 1.0, MEU)
    found = posterior.draw(10, np.random.default_rng(0))
    rules = [Fixed(plan.at(after).choices.chosen) for after in range(5)]
    taken = np.unique(np.concatenate([rule.choice[0] for rule in rules]))
    all_of_them = posterior.worlds(found).values(rules, 1.0, 10)
    assert len(taken) < posterior.evidence.size
    assert posterior.worlds(found, taken).values(rules, 1.0, 10) == pytest.approx(all_of_them)
    # Drawn alone, they have the same distribution.
    alone, count = posterior.only(taken), 400
    for source in (posterior, alone):
        drawn = source.draw(count, np.random.default_rng(1))
        values = source.worlds(drawn, taken).values(rules, 1.0, count)
        sample = (values * drawn.starts).sum(axis=1)
        if source is posterior:
            mean, error = sample.mean(), sample.std() * (2 / count) ** 0.5
    assert abs(sample.mean() - mean) <= 5 * error
    assert drawn.core.shape[1] < found.core.shape[1]


def test_short_logs_promise_too_much() -> None:
    """Over six random MDPs, 10 episodes each: the point errs less, and intervals are kept."""
    promised, honest, covered = [], [], 0
    for seed in range(6):
        world = random_mdp(seed)
        model, _ = learn_rspmn(world.generate(10, 20, seed))
        policy = model.policy(20, safe=False)
        found, truth = policy.honest_value(draws=100), true_value(world, policy, 20)
        promised.append(found.promise - truth)
        honest.append(abs(found.point - truth))
        covered += found.low <= truth <= found.high
        assert found.promise == pytest.approx(float(model.meu(horizon=20)))
        assert found.low <= found.point <= found.high
    assert np.mean(promised) > 1
    assert np.mean(honest) < np.mean(promised) / 1.5
    assert covered >= 4  # of 6 at 90 %: fewer by chance with a probability of 0.016


@pytest.mark.soak
@pytest.mark.parametrize("episodes", [10, 25, 50, 100])
def test_intervals_hold_the_truth(episodes: int) -> None:
    covered = 0
    for seed in range(60):
        world = random_mdp(seed)
        model, _ = learn_rspmn(world.generate(episodes, 20, seed))
        found, truth = model.honest_value(20), true_value(world, model.policy(20), 20)
        covered += found.low <= truth <= found.high
    assert covered >= 48  # of 60: 85 % is 51, less 1.1 standard deviations


def test_much_data_leave_little_doubt() -> None:
    world = DOMAINS["GridUniverse"]()
    model, _ = learn_rspmn(world.generate(2000, 8, 0))
    found = model.honest_value(8)
    assert found.kept
    assert found.low <= 6 <= found.high
    assert found.high - found.low < 0.1
    assert float(found) == found.point
    assert model.honest_value(8) == found
    assert model.honest_value(8, rng=1) != found
    assert model.honest_value(8, discount=0.5).promise == pytest.approx(model.meu(None, 8, 0.5))


def test_one_episode_of_one_step() -> None:
    schema = Schema([["s"], ["a"]], ["a"], "u")
    table = {"e": [0], "t": [0], "s": ["x"], "a": ["go"], "u": [2.0], "end": [True]}
    log = Episodes.from_long(table, schema, episode="e", time="t", terminated="end")
    found = learn_rspmn(log)[0].honest_value(3)
    # A single reward: all that is known is 2, and that it was the end.
    parts = found.point, found.low, found.high, found.promise, found.optimism
    assert parts == pytest.approx((2.0, 2.0, 2.0, 2.0, 0.0))


def test_where_nothing_is_known_nothing_is_promised() -> None:
    schema = Schema([["s"], ["a"]], ["a"], "u")
    table = {"e": [0, 0, 1], "t": [0, 1, 0], "s": ["x", "y", "y"], "a": ["go"] * 3, "u": [2.0] * 3}
    table["end"] = [False, False, False]
    log = Episodes.from_long(table, schema, episode="e", time="t", terminated="end")
    found = learn_rspmn(log)[0].honest_value(2)
    assert math.isfinite(found.point) or math.isnan(found.promise)


def test_values_are_possible() -> None:
    """FrozenLake pays 1 once, at the goal; in every draw it is worth between 0 and 1."""
    model, _ = learn_rspmn(DOMAINS["FrozenLake"]().generate(3000, 8, 1))
    posterior = model.posterior
    assert posterior.bounds(100, 1.0) == (0.0, 1.0)
    found = model.honest_value(100, draws=100)
    assert 0 <= found.low <= found.point <= found.high <= 1
    worlds = posterior.worlds(posterior.draw(50, np.random.default_rng(0)))
    values = worlds.values([Best() for _ in range(100)], 1.0, 50)
    assert values.min() >= 0
    assert values.max() <= 1.1  # not exactly: what was never seen pays what other steps did


def nothing_matters(episodes: int, states: int = 150, actions: int = 4) -> Episodes:
    """Return a log in which a step ends with probability .1, and then pays 1 with probability .8.

    States and actions tell nothing: every policy is worth .8.
    """
    rng = np.random.default_rng(0)
    ahead = rng.integers(states, size=(states, 10))
    rows = []
    for episode in range(episodes):
        state, t, over = int(rng.integers(states)), 0, False
        while not over:
            over = rng.random() < 0.1
            paid = float(over and rng.random() < 0.8)
            rows.append((episode, t, f"s{state}", int(rng.integers(actions)), paid, over))
            state, t = int(rng.choice(ahead[state])), t + 1
    table = dict(
        zip(("e", "t", "s", "a", "u", "end"), map(list, zip(*rows, strict=True)), strict=True)
    )
    schema = Schema([["s"], ["a"]], ["a"], "u")
    return Episodes.from_long(table, schema, episode="e", time="t", terminated="end")


def test_what_is_paid_once_is_worth_no_more_than_once() -> None:
    """Noise of the last reward is no noise of others, which a best policy would collect."""
    model, _ = learn_rspmn(nothing_matters(500))
    assert model.posterior.bounds(100, 1.0) == (0.0, 1.0)
    worlds, _ = model.posterior.draw_worlds(20, np.random.default_rng(0))
    values = worlds.values([Best() for _ in range(100)], 1.0, 20)
    assert 0 <= values.min() <= values.max() <= 1 + 1e-9
    policy = model.policy(100, safe=False)
    found, now = policy.honest_value(draws=100), practice(model, 100, draws=100)
    assert 0 <= found.low < 0.8 < found.high <= 1
    assert abs(found.point - 0.8) < abs(found.promise - 0.8) / 2
    assert 0 <= now.low < now.value < now.high <= 1


@pytest.mark.parametrize("seed", range(3))
def test_no_interval_is_beyond_what_can_be_earned(seed: int) -> None:
    """Few steps of noisy rewards, from -2 to 1 and at the end from 0 to 5."""
    rng, rows = np.random.default_rng(seed), []
    for episode in range(15):
        for t in range(6):
            over = bool(rng.random() < 0.2)
            paid = rng.choice([0.0, 5.0]) if over else rng.choice([-2.0, 0.0, 1.0])
            rows.append(
                (episode, t, f"s{rng.integers(4)}", int(rng.integers(2)), float(paid), over)
            )
            if over:
                break
    table = dict(
        zip(("e", "t", "s", "a", "u", "end"), map(list, zip(*rows, strict=True)), strict=True)
    )
    schema = Schema([["s"], ["a"]], ["a"], "u")
    log = Episodes.from_long(table, schema, episode="e", time="t", terminated="end")
    model, _ = learn_rspmn(log)
    bounds = model.posterior.bounds(5, 1.0)
    assert bounds == (-10.0, 9.0)  # five steps of -2; four of 1, then 5
    for found in (model.honest_value(5, draws=50), practice(model, 5, draws=50)):
        assert bounds[0] <= found.low <= float(getattr(found, "point", found.low)) <= found.high
        assert found.high <= bounds[1]
    worlds, _ = model.posterior.draw_worlds(50, rng)
    values = worlds.values([Best() for _ in range(5)], 1.0, 50)
    assert bounds[0] - 1e-9 <= values.min() <= values.max() <= bounds[1] + 1e-9


def test_a_state_and_a_time(models: Mapping[str, RSPMN]) -> None:
    model = models["Elevators"]
    policy = model.policy(4)
    state = {name: values[0] for name, values in policy.table().items() if name in
             model.schema.information_sets[0]}  # fmt: skip
    found = policy.honest_value(state, t=2, draws=100)
    assert found.promise == pytest.approx(float(policy.value(state, 2)))
    assert found.low <= found.point <= found.high
    # With the start known, the start of an episode is as good as any other state.
    lake = models["FrozenLake"]
    start, there = lake.honest_value(8), lake.honest_value(8, state={"cell": 0})
    assert (start.point, start.high) == pytest.approx((there.point, there.high))


def test_for_ever() -> None:
    """Without a horizon: as with a long one, where episodes end or the future is discounted."""
    world = DOMAINS["GridUniverse"]()
    model, _ = learn_rspmn(world.generate(2000, 8, 0))
    found = model.honest_value(discount=0.9, draws=50)
    long = model.honest_value(100, discount=0.9, draws=50)
    assert found.promise == pytest.approx(long.promise, abs=1e-3)
    assert (found.point, found.low, found.high) == pytest.approx(
        (long.point, long.low, long.high), abs=2e-3
    )
    assert model.posterior.bounds(None, 0.9)[0] > -math.inf


def test_what_is_forbidden_is_not_the_best_of_a_draw(models: Mapping[str, RSPMN]) -> None:
    """The optimism is that of choosing among what may be taken."""

    class Only:
        def scores(self, worth: Any, branches: Any) -> Any:
            return np.where(branches.values == "left", worth, np.nan)

    model, _ = learn_rspmn(DOMAINS["FrozenLake"]().generate(3000, 8, 1))
    found = model.policy(8, criterion=Only()).honest_value(draws=50)
    assert found.optimism == pytest.approx(0, abs=0.01)
    assert found.point < model.honest_value(8, draws=50).point


def test_what_no_interval_can_hold_is_said(models: Mapping[str, RSPMN]) -> None:
    found = models["FrozenLake"].honest_value(8)
    assert found.point == found.high == 0  # nobody ever came to the goal
    assert "all logged utilities with a known successor are 0" in found.caveats[0]
    assert models["Elevators"].honest_value(4, draws=20).caveats == ()


@pytest.mark.parametrize(("ends", "said"), [(False, True), (True, False)])
def test_a_log_in_which_nothing_differs_says_nothing(ends: bool, said: bool) -> None:
    """Each step earns 1: how much an episode earns is then a matter of when it ends."""
    log = {
        "episode": [k // 2 for k in range(40)], "time": [0, 1] * 20, "s": ["a", "b"] * 20,
        "d": ["x", "y", "y", "x"] * 10, "u": [1.0] * 40, "over": [False, ends] * 20,
    }  # fmt: skip
    schema = Schema([["s"], ["d"]], ["d"], "u")
    model, _ = learn_rspmn(rspmn.windows(log, schema, terminated="over"))
    caveats = model.honest_value(5).caveats
    assert any("are 1: the log has no information" in each for each in caveats) == said


def test_steps_that_may_lead_anywhere_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stock of 40 values that falls by a demand of 20: hardly a successor is seen twice.

    What is new is like what was expected, so that it needs to be said of other worlds only.
    """
    rng = np.random.default_rng(0)
    schema = Schema([["stock", "day"], ["order"]], ["order"], "u", {"stock": "integer"})
    episodes = []
    for _ in range(150):
        stock, steps = int(rng.integers(40)), []
        for t in range(10):
            order, demand = int(rng.choice([0, 10])), int(rng.integers(20))
            sold = min(stock, demand)
            row = {"stock": stock, "day": str(t % 7), "order": order, "u": sold - 0.2 * order}
            steps.append(row)
            stock = min(39, stock - sold + order)
        episodes.append([*steps, {"stock": stock, "day": "3"}])
    log = Episodes.from_steps(episodes, schema, [Followed.STATE] * len(episodes))
    model = learn_rspmn(log)[0]
    assert model.honest_value(5, draws=20).caveats == ()
    novelty = Posterior(model).novelty
    monkeypatch.setattr(novelty, "shares", novelty.shares[[0, 2, 1]])  # as if it were anywhere
    found = Posterior(model, novelty=novelty)
    assert "a state that it never led to before" in found.caveats[0]


def test_odd_questions_are_refused(models: Mapping[str, RSPMN]) -> None:
    model = models["FrozenLake"]
    with pytest.raises(EvidenceError, match="horizon: expected 1 or more steps, found 0"):
        model.honest_value(0)
    with pytest.raises(EvidenceError, match="draws: expected 2 or more, found 1"):
        model.honest_value(3, draws=1)
    with pytest.raises(EvidenceError, match="discount"):
        model.honest_value(3, discount=2)


@pytest.mark.parametrize("seed", seeds(3, 8))
def test_small_odd_logs_have_a_value(seed: int) -> None:
    """Missing values, cut episodes, observations between decisions: finite, or nothing known."""
    schema = Schema([["x"], ["a"], ["z"], ["b"]], ["a", "b"], "u")
    rng = np.random.default_rng(seed)
    episodes: list[list[dict[str, Any]]] = [
        [
            {name: int(rng.integers(0, 2)) for name in ("a", "z", "b", "u")}
            | {"x": None if rng.random() < 0.2 else int(rng.integers(0, 3))}
            for _ in range(rng.integers(1, 5))
        ]
        for _ in range(rng.integers(2, 7))
    ]
    endings = [Followed.END if rng.random() < 0.7 else Followed.UNKNOWN for _ in episodes]
    endings[0] = Followed.END
    model, _ = learn_rspmn(Episodes.from_steps(episodes, schema, endings))
    found = model.honest_value(3, draws=20)
    assert math.isfinite(found.point) or math.isnan(found.promise)
    if math.isfinite(found.point):
        assert found.low <= found.point <= found.high
        assert math.isfinite(found.high - found.low)


def test_episodes_that_all_begin_with_an_unknown_state() -> None:
    schema = Schema([["x"], ["a"]], ["a"], "u")
    steps: list[dict[str, Any]] = [
        {"x": None, "a": 0, "u": 0.0}, {"x": 0, "a": 0, "u": 1.0}, {"x": 1, "a": 0, "u": 2.0},
    ]  # fmt: skip
    model, _ = learn_rspmn(Episodes.from_steps([steps] * 30, schema, [Followed.END] * 30))
    counts = model.counts
    assert counts is not None
    none = replace(model, counts=replace(counts, starts=(0.0,) * len(counts.starts)))
    assert math.isfinite(none.honest_value(2).point)


@pytest.mark.parametrize(
    ("promise", "is_kept"), [(3.1225, True), (3.13, False), (3.12, True), (-3.122, False)]
)
def test_a_promise_that_prints_as_the_point_is_kept(promise: float, is_kept: bool) -> None:
    """A tenth of a percent of 3.122 is .0031, however small the deviation."""
    found = HonestValue(3.122, 3.121, 3.123, promise, 0.0, 6e-5)
    assert found.kept == is_kept


@pytest.mark.parametrize("unit", [1.0, 1e-9])
def test_a_promise_is_kept_up_to_rounding(unit: float) -> None:
    """.1 + .2 - .3 is 5.6e-17; draws that are all 0 do not deviate from it."""
    draws, promise = [np.zeros(5)], unit * (0.1 + 0.2 - 0.3)
    found = honest._summary(draws * 4, 0.0, promise, (-unit, unit), (), 0.9)
    assert promise > 0
    assert found.kept
    assert not replace(found, promise=1e-9 * unit).kept


def test_episodes_may_begin_where_none_did() -> None:
    """Of 300 starts of a taxi, many were never logged: what is done there cannot be told."""
    world = DOMAINS["Taxi"]()
    model, _ = learn_rspmn(world.generate(400, 10, 0, "final"), LearnConfig(keep="all"))
    began = np.array(model.posterior.evidence.starts)
    alone = float((began == 1).sum())
    assert alone > 100
    drawn = honest._unseen_starts(model.posterior, 1000, np.random.default_rng(0))
    assert drawn.mean() == pytest.approx(alone / (alone + 400), abs=0.01)  # of Beta(alone, 400)
    lake, _ = learn_rspmn(DOMAINS["FrozenLake"]().generate(400, 8, 0))  # it begins in one cell
    assert not honest._unseen_starts(lake.posterior, 10, np.random.default_rng(0)).any()
