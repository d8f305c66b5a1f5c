"""Logs that once broke learning, small enough to know the answers."""

import time
from typing import Any

import numpy as np
import pytest

from effort import seeds
from rspmn import RSPMN, Episodes, Followed, Schema, Windows
from rspmn.errors import DataError, EvidenceError, SchemaError
from rspmn.evaluate.baselines import Tabular
from rspmn.learn import LearnConfig, em, learn_rspmn, refit

PLAIN = Schema([["x"], ["a"]], ["a"], "u")
Steps = list[dict[str, Any]]


def log_of(episodes: list[Steps], schema: Schema = PLAIN, end: Followed = Followed.END) -> Episodes:
    return Episodes.from_steps(episodes, schema, [end] * len(episodes))


def test_a_log_without_states() -> None:
    schema = Schema([["a"]], ["a"], "u")
    steps: Steps = [{"a": 0, "u": 1.0}, {"a": 1, "u": 0.0}]
    model, info = learn_rspmn(log_of([steps] * 20, schema))
    assert info.interfaces == 1
    assert float(model.meu(horizon=1)) == 1.0
    assert model.policy(1).act({}) == 0


def test_a_schema_without_decisions_is_refused() -> None:
    schema = Schema([["x"]], [], "u")
    with pytest.raises(SchemaError, match="no decisions: expected"):
        learn_rspmn(log_of([[{"x": 0, "u": 1.0}] * 3], schema))


def coins(rng: np.random.Generator, episodes: int) -> list[Steps]:
    """One state; each step ends all with 1/4, and then earns 1."""
    found = []
    for _ in range(episodes):
        length = int(rng.geometric(0.25))
        found.append([{"x": 0, "a": "go", "u": float(t == length - 1)} for t in range(length)])
    return found


@pytest.mark.parametrize("passes", [1, 3])
def test_hard_em_changes_nothing_where_nothing_is_hidden(passes: int) -> None:
    log = log_of(coins(np.random.default_rng(0), 300))
    model, _ = learn_rspmn(log)
    again, info = em(model, log, passes)
    assert again.values(10) == pytest.approx(model.values(10), abs=1e-12)
    assert again.values(10)[0] == pytest.approx(1 - 0.75**10, abs=0.06)  # 300 ends: 4 errors
    assert info.log_likelihoods[-1] == pytest.approx(info.log_likelihoods[0])


@pytest.mark.parametrize("soft", [False, True])
def test_em_keeps_to_the_time_limit(soft: bool) -> None:
    """Cut after three steps: those that did not end in the third went on, in every pass.

    So the probability of an end is the number of ends over that of all steps.
    """
    rng = np.random.default_rng(1)
    cut = [(steps[:3], len(steps) <= 3) for steps in coins(rng, 2000)]
    log = Episodes.from_steps(
        [steps for steps, _ in cut], PLAIN,
        [Followed.END if over else Followed.UNKNOWN for _, over in cut],
    )  # fmt: skip
    model, _ = learn_rspmn(log)
    ends = sum(over for _, over in cut) / log.num_steps
    assert model.values(5)[0] == pytest.approx(1 - (1 - ends) ** 5, abs=1e-9)
    table = Tabular.fit(log)
    assert table.meu(5) == pytest.approx(1 - (1 - ends) ** 5, abs=1e-9)
    again, _ = em(model, log, 2, soft)
    assert again.values(5)[0] == pytest.approx(model.values(5)[0], abs=1e-9)


def test_logs_of_one_step_in_which_some_went_on_say_nothing_about_what_follows() -> None:
    log = [([{"x": 0, "a": "go", "u": 1.0}], end) for end in (Followed.END, Followed.UNKNOWN)]
    steps, ends = zip(*log, strict=True)
    with pytest.raises(DataError, match="every episode has one step, and 1 of them were"):
        learn_rspmn(Episodes.from_steps(steps, PLAIN, ends))


def test_what_went_on_is_no_state_where_each_state_is_an_interface_node() -> None:
    """In a tenth of the steps an episode ends and earns 1; others are cut after 8."""
    rng, episodes, ends = np.random.default_rng(0), [], []
    for _ in range(400):
        x, y = rng.integers(30, size=2).tolist()
        steps: Steps = []
        while len(steps) < 8 and not (steps and steps[-1]["u"]):
            a = int(rng.integers(4))
            steps.append({"x": f"x{x}", "y": f"y{y}", "a": a, "u": float(rng.random() < 0.1)})
            x, y = (x + (a == 0) - (a == 1)) % 30, (y + (a == 2) - (a == 3)) % 30
        episodes.append(steps)
        ends.append(Followed.END if steps[-1]["u"] else Followed.UNKNOWN)
    log = Episodes.from_steps(episodes, Schema([["x", "y"], ["a"]], ["a"], "u"), ends)
    model, info = learn_rspmn(log)
    assert info.each_state
    assert Windows.from_episodes(log).went_on.any()
    assert info.frontier_states == 0  # all that states lead to was acted in, or is unknown
    again, check = refit(model, log)
    assert check.fits
    assert again.values(8) == pytest.approx(model.values(8), abs=1e-12, nan_ok=True)
    # 230 ends: their share is known to 7 %, and six steps that went on after nothing known
    assert model.meu(horizon=8) == pytest.approx(1 - 0.9**8, abs=0.1)


def test_without_a_horizon_what_is_unknown_is_not_free() -> None:
    """Both actions cost 1 in state 0; after "r" nobody knows."""
    steps: Steps = [{"x": 0, "a": "l", "u": -1.0}] * 20 + [{"x": 0, "a": "r", "u": -1.0}]
    model, _ = learn_rspmn(log_of([steps] * 30, end=Followed.UNKNOWN))
    for horizon in (500, None):
        assert model.meu({"x": 0}, horizon, 0.9) == pytest.approx(-10, abs=1e-6)
        assert model.best_decisions({"x": 0}, horizon, 0.9)[0].value == "l"
        assert model.policy(horizon, 0.9).act({"x": 0}) == "l"
    assert np.isnan(model.values(None, 0.9)[-1])


@pytest.mark.parametrize("seed", seeds(2, 60))
def test_the_limit_with_a_frontier_is_where_horizons_lead(seed: int) -> None:
    rng = np.random.default_rng(seed)
    episodes: list[Steps] = [
        [
            {"x": int(rng.integers(5)), "a": int(rng.integers(2)), "u": float(rng.integers(-2, 3))}
            for _ in range(int(rng.integers(1, 6)))
        ]
        for _ in range(12)
    ]
    model, _ = learn_rspmn(log_of(episodes, end=Followed.UNKNOWN), LearnConfig.exact())
    long = np.array(model.values(3000, 0.99))
    found = model.values(None, 0.99)
    assert found == pytest.approx(long.tolist(), rel=1e-6, abs=1e-6, nan_ok=True)


def test_a_result_that_is_missing_because_all_was_over() -> None:
    """Half of all steps end, and then o is not observed: two steps of 1 each on average."""
    schema = Schema([["x"], ["a"], ["o"]], ["a"], "u")
    rng = np.random.default_rng(2)
    episodes: list[Steps] = []
    for _ in range(500):
        steps: Steps = []
        x, over = 0, False
        while not over:
            over, o = bool(rng.random() < 0.5), int(rng.integers(2))
            steps.append({"x": x, "a": "go", "o": None if over else o, "u": 1.0})
            x = o
        episodes.append(steps)
    for config in (LearnConfig(), LearnConfig.exact()):
        model, info = learn_rspmn(log_of(episodes, schema), config)
        assert info.steps_left_out == 0
        # 500 episodes of a mean of 2 and a deviation of √2: three errors are .19
        assert model.meu(horizon=30) == pytest.approx(2.0, abs=0.19)


def test_a_result_between_decisions_that_is_missing() -> None:
    """o is missing half the time, and then the second decision costs 10, else it earns 1."""
    schema = Schema([["x"], ["a"], ["o"], ["b"]], ["a", "b"], "u")
    rng = np.random.default_rng(3)
    episodes: list[Steps] = []
    for _ in range(400):
        o = None if rng.random() < 0.5 else int(rng.integers(2))
        b = int(rng.integers(2))
        earned = -10.0 if o is None else float(b == o)
        episodes.append([{"x": 0, "a": 0, "o": o, "b": b, "u": earned}])
    model, _ = learn_rspmn(log_of(episodes, schema))
    gone = np.mean([steps[0]["o"] is None for steps in episodes])
    assert model.meu(horizon=1) == pytest.approx(-10 * gone + 1 * (1 - gone), abs=1e-9)


def chain(rng: np.random.Generator, missing: float) -> Episodes:
    """Three states in a row, and back; being in state 2 earns 2, any other 1."""
    episodes: list[Steps] = []
    for _ in range(1000):
        x, steps = 0, []
        for _ in range(20):
            seen = None if rng.random() < missing else x
            steps.append({"x": seen, "a": "go", "u": 1.0 + (x == 2)})
            x = (x + 1) % 3 if rng.random() < 0.9 else x
        episodes.append(steps)
    schema = PLAIN.with_kinds({"x": "integer"})
    return log_of(episodes, schema, Followed.UNKNOWN)


def test_states_missing_at_random_do_not_change_the_world() -> None:
    whole, _ = learn_rspmn(chain(np.random.default_rng(4), 0.0))
    holes, info = learn_rspmn(chain(np.random.default_rng(4), 0.3))
    assert info.steps_shared > 0
    assert info.steps_left_out == info.steps_doubtful == 0
    # a step is .9 or .1 from 6,000 of them: two hundredths of a step over five
    assert holes.values(5)[:3] == pytest.approx(whole.values(5)[:3], abs=0.1)
    windows = info.windows_used
    assert windows is not None
    again, check = refit(holes, windows)
    assert check.fits, check.reasons
    assert again.values(5)[:3] == pytest.approx(holes.values(5)[:3], abs=1e-9)


def test_a_smooth_utility_is_not_cut_to_pieces() -> None:
    rng = np.random.default_rng(5)
    x = rng.random(2000)
    episodes: list[Steps] = [
        [{"x": float(v), "a": int(a), "u": float(a * v)}, {"x": float(w)}]
        for v, a, w in zip(x, rng.integers(0, 2, 2000), rng.random(2000), strict=True)
    ]
    schema = PLAIN.with_kinds({"x": "continuous"})
    model, info = learn_rspmn(log_of(episodes, schema, Followed.STATE))
    assert info.interfaces <= 2000 / 20  # ten of each decision
    policy = model.policy(1, otherwise=0)
    fresh = rng.random(200)
    acts = np.array([policy.act({"x": float(v)}) for v in fresh])
    assert (acts * fresh).sum() >= 0.9 * fresh.sum()


def test_drawing_from_a_model_that_knows_one_step() -> None:
    steps: Steps = [{"x": 0, "a": 0, "u": 1.0}, {"x": 1}]
    model, _ = learn_rspmn(log_of([steps], end=Followed.STATE))
    drawn = model.sample(3, 2, 0)
    assert [Followed(ending).name for ending in drawn.endings] == ["STATE"] * 3
    assert drawn.final_state(0) == {"x": 1}


def test_one_branch_without_a_place_does_not_hide_others() -> None:
    """ "r" is tried in cut steps only, and so is b = 2 after "l", below what was seen there."""
    schema = Schema([["x"], ["a"], ["o"], ["b"]], ["a", "b"], "u")
    rng = np.random.default_rng(6)

    def step(a: str, b: int, u: float) -> dict[str, Any]:
        return {"x": 0, "a": a, "o": int(rng.integers(2)), "b": b, "u": u}

    episodes: list[Steps] = []
    for k in range(60):
        steps = [step("l", int(rng.integers(2)), 0.0) for _ in range(20)]
        for s in steps:
            s["u"] = float(s["b"] == s["o"])
        last = step("r", 0, 5.0) if k % 2 else step("l", 2, 0.0)
        episodes.append([*steps, last])
    model, info = learn_rspmn(log_of(episodes, schema, Followed.UNKNOWN))
    assert info.unsupported_branches == 2
    assert model.meu(horizon=1) == pytest.approx(5.0)


def test_names_like_our_own() -> None:
    """A state variable called END, and one with a prime, are variables like any other."""
    schema = Schema([["END", "END'"], ["a"]], ["a"], "u")
    rng = np.random.default_rng(7)
    episodes: list[Steps] = []
    for _ in range(300):
        s, t = int(rng.integers(2)), int(rng.integers(2))
        first = {"END": s, "END'": t, "a": int(rng.integers(2)), "u": 0.0}
        then = {"END": s + 2, "END'": t, "a": int(rng.integers(2)), "u": 10.0 * (s == 0)}
        episodes.append([first, then])
    model, _ = learn_rspmn(log_of(episodes, schema))
    assert model.meu({"END": 0}, 2) == pytest.approx(10.0)
    assert model.meu({"END": 1}, 2) == pytest.approx(0.0)


def test_refitting_the_same_windows_fits() -> None:
    rng = np.random.default_rng(8)
    episodes: list[Steps] = [
        [{"x": int(rng.integers(4)), "a": int(rng.integers(2)), "u": 1.0} for _ in range(6)]
        for _ in range(300)
    ]
    windows = Windows.from_episodes(log_of(episodes, end=Followed.UNKNOWN))
    model, _ = learn_rspmn(windows, LearnConfig(keep=["x"]))
    _, check = refit(model, windows)
    assert check.fits, check.reasons
    odd: Steps = [
        {"x": 9, "a": 0, "u": 1.0},
        {"x": 0, "a": 7, "u": 1.0},
        {"x": 0, "a": 0, "u": 0.0},
    ]
    more = Windows.from_episodes(log_of([odd] * 5))
    _, check = refit(model, windows + more)
    assert not check.fits
    assert check.new_states == 5
    assert check.new_decisions == 5
    assert check.new_ends == 5


def test_refit_sees_states_that_part_ways() -> None:
    """States 0 and 1 earned the same, and were one; in the new batch 1 earns less."""
    rng = np.random.default_rng(9)

    def batch(less: float) -> Windows:
        return Windows.from_episodes(log_of(
            [[{"x": x, "a": 0, "u": 1.0 - less * (x == 1)} for x in rng.integers(0, 2, 20).tolist()]
             for _ in range(200)]
        ), time_limit=0)  # fmt: skip

    old = batch(0.0)
    model, info = learn_rspmn(old)
    assert info.interfaces == 1
    assert refit(model, old + batch(0.0))[1].fits
    check = refit(model, old + batch(0.5))[1]
    assert check.apart == [0]
    assert "no longer behave alike" in check.reasons[0]


def test_questions_that_make_no_sense() -> None:
    steps: Steps = [{"x": 0, "a": 0, "u": 1.0}, {"x": 1, "a": 1, "u": 0.0}]
    model, _ = learn_rspmn(log_of([steps] * 20))
    policy = model.policy(3)
    with pytest.raises(EvidenceError, match="t: expected 0 to 2, found 1.5"):
        policy.act({"x": 0}, t=1.5)  # type: ignore[arg-type]
    with pytest.raises(EvidenceError, match="no decision is left"):
        policy.act({"x": 0, "a": 0})
    with pytest.raises(EvidenceError, match="states only"):
        policy.act_many({"x": [0], "a": [0]})
    with pytest.raises(EvidenceError, match="horizon"):
        model.policy(True)
    with pytest.raises(EvidenceError, match="unknown variable 'y'"):
        policy.act({"y": 0})
    with pytest.raises(EvidenceError, match="expected values by variable"):
        policy.act(0)


def test_learned_models_are_files(tmp_path: Any) -> None:
    """With a frontier and unknown successors in them."""
    steps: Steps = [{"x": 0, "a": 0, "u": 1.0}] * 5 + [{"x": 0, "a": 1, "u": 2.0}]
    cut = log_of([steps] * 20, end=Followed.UNKNOWN)
    ends: Steps = [{"x": 0, "a": 0, "u": 1.0}, {"x": 3}]
    both = Windows.from_episodes(cut) + Windows.from_episodes(
        log_of([ends] * 20, end=Followed.STATE)
    )
    model, info = learn_rspmn(both)
    assert info.frontier_states == 1
    assert model.unknown is not None
    model.save(tmp_path / "model.json.gz")
    assert RSPMN.load(tmp_path / "model.json.gz") == model


@pytest.mark.parametrize("kind", ["continuous", "integer"])
def test_no_gaps_between_intervals(kind: str) -> None:
    """Whatever number lies between two that were seen, there is an answer for it."""
    rng = np.random.default_rng(10)
    scale = 1.0 if kind == "continuous" else 10_000.0
    places = rng.random(4000) * scale
    drawn = places if kind == "continuous" else np.floor(places)
    episodes: list[Steps] = [
        [{"x": v, "a": a, "u": float((v > scale / 2) == a)}, {"x": w}]
        for v, a, w in zip(
            drawn[:2000].tolist(), rng.integers(0, 2, 2000).tolist(), drawn[2000:].tolist(),
            strict=True,
        )
    ]  # fmt: skip
    model, info = learn_rspmn(
        log_of(episodes, PLAIN.with_kinds({"x": kind, "a": "integer"}), Followed.STATE)
    )
    assert info.interfaces >= 2
    policy = model.policy(1)
    for place in np.linspace(drawn[:2000].min(), drawn[:2000].max(), 997):
        x = float(place) if kind == "continuous" else int(place)
        assert policy.act({"x": x}) == int(x > scale / 2) or abs(x - scale / 2) < 0.02 * scale


def test_a_result_that_is_seen_is_not_one_that_is_missing() -> None:
    """Where o is missing b = 1 earns 10; where it is seen, to match it earns 1."""
    schema = Schema([["x"], ["a"], ["o"], ["b"]], ["a", "b"], "u", {"o": "integer"})
    rng = np.random.default_rng(11)
    episodes: list[Steps] = []
    for _ in range(2000):
        o = None if rng.random() < 0.5 else int(rng.integers(2))
        b = int(rng.integers(2))
        earned = 10.0 * b if o is None else float(b == o)
        episodes.append([{"x": 0, "a": 0, "o": o, "b": b, "u": earned}])
    model, _ = learn_rspmn(log_of(episodes, schema))
    found = {a.value: a.utility for a in model.action_values({"x": 0, "a": 0, "o": 0}, 1)}
    assert found == {0: pytest.approx(1.0), 1: pytest.approx(0.0)}
    policy = model.policy(1)
    assert policy.act({"x": 0, "a": 0, "o": 0}) == {"b": 0}
    drawn = model.sample(20_000, 1, 0, policy)
    assert drawn.columns["o"].missing.mean() == pytest.approx(0.5, abs=0.03)
    earned_mean = drawn.columns["u"].data.mean()
    assert earned_mean == pytest.approx(float(model.meu(horizon=1)), abs=0.15)  # 4.5 / √20,000 · 5


def test_a_frontier_weighs_what_it_weighs() -> None:
    rng = np.random.default_rng(12)
    schema = Schema([["x", "y"], ["a"]], ["a"], "u")
    episodes: list[Steps] = []
    for _ in range(1000):
        steps: Steps = []
        for _ in range(4):
            x, y, a = (int(rng.integers(k)) for k in (3, 2, 2))
            earned = 10.0 * (x == a) - 20.0 * (x == 2) * (y == 1)
            steps.append({"x": x, "y": y, "a": a, "u": earned})
        episodes.append([*steps, {"x": int(rng.integers(3)), "y": int(rng.integers(2))}])
    whole, _ = learn_rspmn(log_of(episodes, schema, Followed.STATE))
    episodes[0][-1] = {"x": 9, "y": 0}
    edge, info = learn_rspmn(log_of(episodes, schema, Followed.STATE))
    assert info.frontier_states == 1
    answer = edge.meu({"y": 0}, 1)
    assert answer == pytest.approx(float(whole.meu({"y": 0}, 1)), abs=0.1)
    assert 0.999 < answer.supported < 1


def test_steps_that_are_left_out_are_no_frontier() -> None:
    order = [["x", "y"], ["a"], ["z"]]  # nothing is drawn where something is seen after decisions
    schema = Schema(order, ["a"], "u", {"x": "integer", "y": "integer"})
    rng = np.random.default_rng(13)
    episodes: list[Steps] = []
    for k in range(600):
        x, y, a = (int(rng.integers(n)) for n in (3, 2, 2))
        odd = k % 20 == 0
        step = {"x": None if odd else x, "y": 7 if odd else y, "a": a, "z": 0, "u": 3.0 * x + a * y}
        episodes.append([step])
    model, info = learn_rspmn(log_of(episodes, schema))
    assert info.steps_left_out == 30
    assert info.frontier_states == 0
    drawn = model.sample(100, 2, 0)
    assert drawn.lengths.min() == 1
    assert Episodes.from_long(drawn.to_long(), schema, terminated="terminated").num_steps == 100


def test_what_was_tried_after_another_observation_is_not_offered() -> None:
    schema = Schema([["x"], ["a"], ["o"], ["b"]], ["a", "b"], "u")
    seen = {"x": 0, "a": 0, "o": 0, "b": 0, "u": 0.0}
    steps: Steps = [seen] * 20 + [{"x": 0, "a": 0, "o": 1, "b": 1, "u": 100.0}]
    model, _ = learn_rspmn(log_of([steps] * 5, schema, Followed.UNKNOWN))
    offered = model.action_values({"x": 0, "a": 0, "o": 0}, 1)
    assert [a.value for a in offered if a.supported] == [0]


def test_em_keeps_the_frontier() -> None:
    steps: Steps = [{"x": 0, "a": 0, "u": 1.0}, {"x": 1, "a": 1, "u": 2.0}, {"x": 9}]
    back: Steps = [{"x": 0, "a": 1, "u": 0.0}, {"x": 0}]
    log = log_of([steps] * 10 + [back] * 10, end=Followed.STATE)
    model, _ = learn_rspmn(log)
    again, _ = em(model, log, 1)
    assert again.visits == model.visits
    assert again.values(3) == model.values(3)
    assert again.meu({"x": 9}, 3).supported == model.meu({"x": 9}, 3).supported == 0


def test_many_states_with_one_way_home() -> None:
    """All of 200 states lead home by one action: they are told apart by the other."""
    rng = np.random.default_rng(14)
    episodes: list[Steps] = []
    for state in range(200):
        for _ in range(12):
            for a, after in ((0, 0), (1, (state + 1) % 200)):
                step = {"x": f"s{state}", "a": a, "u": float(rng.integers(2))}
                episodes.append([step, {"x": f"s{after}"}])
    began = time.process_time()
    _, info = learn_rspmn(log_of(episodes, end=Followed.STATE))
    assert info.interfaces == 200
    assert time.process_time() - began < 20


def test_decisions_of_many_numbers_are_not_binned() -> None:
    """A hundred prices: each is a choice of its own."""
    rng = np.random.default_rng(0)
    size = 3000
    x, a = rng.integers(3, size=size), rng.integers(100, size=size)
    table = {
        "episode": np.arange(size),
        "time": np.zeros(size, int),
        "x": x,
        "a": a,
        "u": 1.0 * a,
    }
    log = Episodes.from_long(table, Schema([["x"], ["a"]], ["a"], "u"), ending="end")
    model, _ = learn_rspmn(log)
    assert [model.policy(1).act({"x": k}) for k in range(3)] == [99, 99, 99]


def test_states_of_which_nothing_is_known() -> None:
    steps = [{"x": None, "a": "go", "u": 1.0}] * 3
    with pytest.raises(DataError, match="all values of 'x' are missing"):
        learn_rspmn(Episodes.from_steps([steps] * 2, PLAIN, [Followed.END] * 2))
