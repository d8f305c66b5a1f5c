"""How sure decisions are: intervals by hand, unseen states, untried actions, short logs."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from conformance.criterion import example_model
from rspmn import RSPMN, Episodes, Followed, Schema, learn_rspmn
from rspmn.envs.domains import DOMAINS
from rspmn.envs.random_mdp import random_mdp
from rspmn.evaluate.exact import policy_array
from rspmn.trust.rules import Fixed, Recorded
from rspmn.trust.unseen import LoggedValues

SCHEMA = Schema([["s"], ["a"]], ["a"], "u")


def learned(steps: Sequence[tuple[str, str, float]]) -> RSPMN:
    """Return the model of episodes of one step each."""
    episodes = [[{"s": s, "a": a, "u": u}] for s, a, u in steps]
    return learn_rspmn(Episodes.from_steps(episodes, SCHEMA, [Followed.END] * len(episodes)))[0]


@pytest.fixture(scope="module")
def lake() -> RSPMN:
    return learn_rspmn(DOMAINS["FrozenLake"]().generate(1000, 8, 0))[0]


def test_clear_and_close_decisions() -> None:
    """In x "go" earns 1 to 3 and "stay" 0 to 1; in y both earn ±1, "stay" .02 more."""
    rng = np.random.default_rng(0)
    steps = [("x", "go", 1.0 + rng.random() * 2) for _ in range(60)]
    steps += [("x", "stay", rng.random()) for _ in range(60)]
    steps += [("y", "go", sign) for sign in (1.0, -1.0) * 30]
    steps += [("y", "stay", sign + 0.02) for sign in (1.0, -1.0) * 30]
    policy = learned(steps).policy(1)
    clear = policy.how_sure({"s": "x"})
    go, stay = sorted(clear.actions, key=lambda each: str(each.action.value))
    assert (go.action.value, stay.action.value) == ("go", "stay")
    assert go.best == 1
    assert stay.best == 0
    assert clear.recommended is go
    assert not clear.too_close
    assert clear.rivals == ()
    # Uniform rewards of variance 1/3, 60 of them: the mean is known to about ±2 · .075.
    assert go.low < 2 < go.high
    assert 0.15 < go.high - go.low < 0.45
    assert go.mean == pytest.approx(go.action.utility, abs=0.05)
    close = policy.how_sure({"s": "y"})
    assert close.too_close
    assert close.recommended is not None
    assert close.recommended.action.value == "stay"
    assert [each.action.value for each in close.rivals] == ["go"]
    assert sum(each.best for each in close.actions) == pytest.approx(1)


def test_equal_actions_are_not_too_close_to_call() -> None:
    found = learned([("x", a, 1.0) for a in ("go", "stay") for _ in range(20)]).policy(1).how_sure()
    assert [each.best for each in found.actions] == [1, 1]
    assert not found.too_close


def test_values_in_draws_are_those_of_a_plain_loop(lake: RSPMN) -> None:
    """The cached lookup against backward induction written out, for one state and time."""
    policy, draws, horizon, t = lake.policy(6), 200, 6, 2
    worlds = lake.posterior.worlds(lake.posterior.draw(draws, np.random.default_rng(0)))
    values = np.zeros((draws, lake.num_interfaces))
    for after in range(horizon - 1 - t):
        rule = Fixed(policy._planned.at(after).choices.chosen)
        values = worlds.update(values, 1.0, after == 0, rule)
    after = horizon - 1 - t
    kept = Recorded(Fixed(policy._planned.at(after).choices.chosen))
    worlds.update(values, 1.0, False, kept)
    table = policy.table(t)
    node = table["node"][table["cell"].index(4)]
    at = policy._planned.first(node)
    assert at is not None
    level = lake.bellman.levels[0]
    start = int(level.starts[level.nodes.tolist().index(at)])
    for each in policy.how_sure({"cell": 4}, t).actions:
        place = start + lake.template.nodes[at].values.index(each.action.value)  # type: ignore[union-attr]
        drawn = kept.worth[0][:, place]
        assert each.mean == pytest.approx(drawn.mean())
        assert (each.low, each.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])))


def test_states_and_actions_that_were_never_logged(lake: RSPMN) -> None:
    policy = lake.policy(8)
    found = policy.how_sure({"cell": 99})
    assert found.notes == ("cell=99 was never logged: 0, 1, 2, 3, 4, 6, 8, 9, 10, 13, 14",)
    assert found.recommended is None
    assert not found.too_close
    assert all(math.isnan(each.mean) and each.notes for each in found.actions)
    model = learned([("x", "go", 1.0)] * 9 + [("y", "stay", 1.0)] * 9 + [("y", "go", 0.0)] * 9)
    go, stay = model.policy(1).how_sure({"s": "x"}).actions
    assert (go.best, stay.best) == (1, 0)
    assert math.isnan(stay.high)
    assert stay.notes == ("not available",)


def test_extrapolated_actions_have_intervals() -> None:
    """What was never tried is as sure as the factors that it shares."""
    model, _ = learn_rspmn(DOMAINS["Elevators"]().generate(30, 10, 0))
    assert model.untried is not None
    policy = model.policy(8, offer="all")
    names = model.schema.information_sets[0]
    states = [dict(zip(names, s, strict=True)) for s in DOMAINS["Elevators"]().states]
    found = (a for s in states for a in policy.how_sure(s).actions if not a.action.tried)
    untried = [a for a in found if not math.isnan(a.mean)]
    assert untried
    assert all(each.low <= each.mean <= each.high for each in untried)


def test_one_episode_of_one_step_cut_or_not() -> None:
    whole = learned([("x", "go", 2.0)]).policy(3).how_sure({"s": "x"})
    (go,) = whole.actions
    assert (go.mean, go.low, go.high, go.best) == pytest.approx((2, 2, 2, 1))
    assert not whole.too_close
    steps = [[{"s": s, "a": "go", "u": 2.0} for s in path] for path in ("x", "x", "yy", "y")]
    endings = [Followed.UNKNOWN, Followed.UNKNOWN, Followed.END, Followed.END]
    model, _ = learn_rspmn(Episodes.from_steps(steps, SCHEMA, endings))
    assert model.policy(1).how_sure({"s": "x"}).actions[0].mean == 2
    (go,) = model.policy(2).how_sure({"s": "x"}).actions
    assert math.isnan(go.mean)
    assert go.notes == ("unsupported: the successors are unknown",)


def test_later_decisions_and_models_without_counts() -> None:
    """The second decision of a step, given the first; a model written by hand has no counts."""
    schema = Schema([["x"], ["a"], ["z"], ["b"]], ["a", "b"], "u")
    rng = np.random.default_rng(3)
    episodes: list[list[dict[str, Any]]] = []
    for _ in range(300):
        x, a, b = (int(k) for k in rng.integers(0, 2, 3))
        z = a if rng.random() < 0.9 else 1 - a
        episodes.append([{"x": x, "a": a, "z": z, "b": b, "u": float(b == z) + x + 0.1 * a}])
    model, _ = learn_rspmn(Episodes.from_steps(episodes, schema, [Followed.END] * 300))
    policy = model.policy(1)
    first = policy.how_sure({"x": 1})
    assert all(math.isfinite(each.mean) for each in first.actions)
    for z in (0, 1):
        found = policy.how_sure({"x": 1, "a": 0, "z": z})
        assert found.recommended is not None
        assert found.recommended.action.value == z
        assert found.recommended.best == 1
        for each in found.actions:
            assert each.low - 1e-9 <= each.action.utility <= each.high + 1e-9
    by_hand = example_model().policy(2).how_sure({"age": "old"})
    assert by_hand.notes == ("the model has no counts of logged steps: no intervals",)
    assert all(math.isnan(each.mean) and math.isnan(each.best) for each in by_hand.actions)


def test_without_a_horizon(lake: RSPMN) -> None:
    """Values for ever are those of many steps."""
    forever = lake.policy(discount=0.5).how_sure({"cell": 14})
    long = lake.policy(60, discount=0.5).how_sure({"cell": 14})
    for one, other in zip(forever.actions, long.actions, strict=True):
        assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=1e-4, nan_ok=True)


def test_numbers_outside_the_log() -> None:
    rng = np.random.default_rng(0)
    rows = [(float(x), int(a)) for x, a in zip(rng.uniform(30, 98, 200), [0, 1] * 100, strict=True)]
    rows += [(29.5, 0), (98.3, 1)]
    steps = [[{"temp_c": x, "a": a, "u": float((x > 60) == a)}] * 2 for x, a in rows]
    schema = Schema([["temp_c"], ["a"]], ["a"], "u", kinds={"temp_c": "continuous"})
    model, _ = learn_rspmn(Episodes.from_steps(steps, schema, [Followed.END] * len(steps)))
    outside = ("temp_c=120 is outside the log, 29.5 to 98.3",)
    assert LoggedValues(model).never({"temp_c": 120.0}) == outside
    assert (
        LoggedValues(model).never({"temp_c": 29.5})
        == LoggedValues(model).never({"temp_c": 70.0})
        == ()
    )
    assert model.policy(1).how_sure({"temp_c": 120.0}).notes[:1] == outside


def test_combinations_that_were_never_logged() -> None:
    schema = Schema([["x", "y"], ["a"]], ["a"], "u")
    steps = [[{"x": k, "y": k, "a": 0, "u": float(k)}] for k in (0, 1)] * 50
    model, _ = learn_rspmn(Episodes.from_steps(steps, schema, [Followed.END] * 100))
    assert LoggedValues(model).never({"x": 0, "y": 1}) == (
        "x=0 with y=1 was never logged together",
    )
    assert LoggedValues(model).never({"x": 0, "y": 0}) == ()


@pytest.mark.soak
def test_intervals_hold_what_actions_are_worth() -> None:
    """Of all states and actions of random MDPs, 25 episodes each: 85 % or more."""
    inside = []
    for seed in range(20):
        world = random_mdp(seed)
        model, _ = learn_rspmn(world.generate(25, 20, seed))
        policy = model.policy(20)
        chosen, values = policy_array(world, policy, 20), np.zeros(len(world.states))
        for t in range(19, 0, -1):
            values = world._worth(values, 1.0)[np.arange(len(values)), chosen[t]]
        worth = world._worth(values, 1.0)
        for k, state in enumerate(world.states):
            for each in policy.how_sure({"s": state[0]}).actions:
                truth = worth[k, world.actions.index((each.action.value,))]
                inside.append(each.low <= truth <= each.high)
    assert np.mean(inside) >= 0.85
