"""What is recommended from logs of experts: plans near practice, and lower ends that hold."""

import math
from typing import NamedTuple, cast

import numpy as np
import pytest

import rspmn
from number_worlds import corridor
from rspmn import RSPMN, learn_rspmn
from rspmn.envs.domains import DOMAINS
from rspmn.envs.mdp import MDP
from rspmn.evaluate import true_value
from rspmn.infer.branches import Branches
from rspmn.trust import honest
from rspmn.trust.practice import practice_of
from rspmn.trust.safe_choice import Gain, SafeChoice, Supported
from rspmn.types import Array, Ints

HORIZON = 20


class Nodes(NamedTuple):
    """Branches as far as the criterion looks at them."""

    node: Ints
    starts: Ints
    steps: Array


def expert_log(world: MDP, share: float, episodes: int, seed: int) -> rspmn.Episodes:
    """Return a log of optimal actions but for a share of random ones."""
    best = np.eye(len(world.actions))[world.value_iteration(HORIZON)[1]]
    logger = (1 - share) * best + share / len(world.actions)
    return world.generate(episodes, HORIZON, seed, "final", logger)


@pytest.fixture(scope="module")
def lake() -> MDP:
    return DOMAINS["FrozenLake"]()


@pytest.fixture(scope="module")
def experts(lake: MDP) -> RSPMN:
    return learn_rspmn(expert_log(lake, 0.02, 1000, 0))[0]


def test_an_expert_who_rarely_errs_is_followed(lake: MDP, experts: RSPMN) -> None:
    """Actions tried once that went well are no reason to leave what earns more."""
    safe, plain = (experts.policy(HORIZON, safe=each) for each in (True, False))
    now = experts_value(lake)
    assert true_value(lake, plain, HORIZON) < 0.9 * now
    assert true_value(lake, safe, HORIZON) >= now
    assert safe.choice is not None
    assert not safe.choice.is_plain
    assert "practice earns 0.206, this" in safe.choice.text
    assert plain.choice is None


def experts_value(lake: MDP) -> float:
    best = np.eye(4)[lake.value_iteration(HORIZON)[1]]
    return lake.evaluate(0.98 * best + 0.005, HORIZON)


def test_a_random_log_is_improved_on(lake: MDP) -> None:
    model, _ = learn_rspmn(lake.generate(1000, HORIZON, 0))
    safe, plain = (model.policy(HORIZON, safe=each) for each in (True, False))
    assert safe.choice is not None
    assert safe.choice.is_plain
    assert safe.table() == plain.table()
    assert safe.choice.gains[0].point > 0


def test_the_plain_plan_is_left_if_that_raises_the_lower_end_by_enough() -> None:
    """It gains 10: another must raise the lower end by more than a twentieth of that, .5."""
    plans = None, Supported(3), Supported(share=0.3)

    def chosen(*gains: tuple[float, float]) -> int:
        return SafeChoice(0.0, tuple(Gain(*each) for each in gains), plans).chosen

    plain = 10.0, 2.0
    for low, is_plain in ((1.0, True), (2.5, True), (2.6, False)):
        assert (chosen(plain, (4.0, 0.0), (3.0, low)) == 0) == is_plain
    assert chosen((-1.0, 2.0), (0.0, 2.1), (0.0, 2.0)) == 1
    assert chosen(plain) == 0
    assert chosen((10.0, -math.inf), (5.0, -3.0), (4.0, -math.inf)) == 1
    assert chosen(*[(1.0, -math.inf)] * 3) == 2  # nothing is known: nearest to practice
    assert chosen((-3.0, -5.0), (-1.0, -1.5), (-2.0, -3.0)) == 2


def test_a_plan_that_is_sure_is_not_compared_with_another() -> None:
    """In 100 steps each, "x" earned 1 and "y" nothing: more cannot be gained."""
    log = {
        "episode": list(range(200)), "time": [0] * 200, "s": ["s"] * 200,
        "d": ["x", "y"] * 100, "u": [1.0, 0.0] * 100, "over": [True] * 200,
    }  # fmt: skip
    schema = rspmn.Schema([["s"], ["d"]], ["d"], "u")
    model, _ = learn_rspmn(rspmn.windows(log, schema, terminated="over"))
    choice = model.policy(1).choice
    assert choice is not None
    assert choice.is_plain
    assert len(choice.gains) == 1
    assert choice.gains[0] == pytest.approx((0.5, 0.5), abs=0.05)


def test_a_second_policy_is_not_compared_anew(experts: RSPMN) -> None:
    first, second = experts.policy(8), experts.policy(8)
    assert first.choice is second.choice
    assert experts.policy(8, forbid=["up"]).choice is not first.choice


def test_practice_is_the_mean_return_of_the_log() -> None:
    """Two states, two episodes: 1 + 2 and 1 + 4, so 4 on average."""
    log = {
        "episode": [0, 0, 1, 1], "time": [0, 1, 0, 1], "s": ["a", "b", "a", "b"],
        "d": ["x", "x", "x", "y"], "u": [1.0, 2.0, 1.0, 4.0], "over": [False, True, False, True],
    }  # fmt: skip
    schema = rspmn.Schema([["s"], ["d"]], ["d"], "u")
    model, _ = learn_rspmn(rspmn.windows(log, schema, terminated="over"))
    assert practice_of(model, 2, 1.0) == pytest.approx(4)
    assert practice_of(model, 2, 0.5) == pytest.approx(1 + 0.5 * 3)
    assert practice_of(model, 1, 1.0) == pytest.approx(1)


def test_usual_actions_have_a_share_of_the_steps_of_the_most_frequent_one() -> None:
    steps, worth = np.array([5.0, 1.0, 40.0, 12.0, 11.0]), np.array([1.0, 9.0, 1.0, 2.0, 3.0])
    branches = cast("Branches", Nodes(np.array([0, 0, 1, 1, 1]), np.array([0, 2]), steps))
    kept = ~np.isnan(Supported(share=0.3).scores(worth, branches))
    assert kept.tolist() == [True, False, True, True, False]
    kept = ~np.isnan(Supported().scores(worth, branches))
    assert kept.tolist() == [True, False, True, False, False]
    kept = ~np.isnan(Supported(12).scores(worth, branches))
    assert kept.tolist() == [True, False, True, True, False]
    worth[2] = math.nan  # forbidden: the most frequent of the others is practice
    kept = ~np.isnan(Supported().scores(worth, branches))
    assert kept.tolist() == [True, False, False, True, False]


def test_a_branch_of_one_lucky_step_is_not_certain() -> None:
    """In state s "safe" earned 1 in 40 of 50 steps; "risky" 1 in its only one.

    The share Beta(.3, 1) of "risky" that leads to the worst node, END with nothing earned, has the
    mean .3 / 1.3, and lowers the lower end of the plan that takes it.
    """
    log = {
        "episode": list(range(51)), "time": [0] * 51, "s": ["s"] * 51,
        "d": ["safe"] * 50 + ["risky"], "u": [1.0] * 40 + [0.0] * 10 + [1.0], "over": [True] * 51,
    }  # fmt: skip
    schema = rspmn.Schema([["s"], ["d"]], ["d"], "u")
    model, _ = learn_rspmn(rspmn.windows(log, schema, terminated="over"))
    plain = model.policy(1, safe=False)
    assert plain.act({"s": "s"}) == "risky"
    assert plain.honest_value().low < model.policy(1, forbid=["risky"]).honest_value().low
    assert model.policy(1).act({"s": "s"}) == "safe"


@pytest.fixture(scope="module")
def walks() -> RSPMN:
    log, schema = corridor(60, seed=0)
    return learn_rspmn(rspmn.windows(log, schema, terminated="over"))[0]


def test_where_states_are_numbers_an_action_needs_a_few_steps(walks: RSPMN) -> None:
    """The first plan is that of 3 logged steps; without `safe` none are needed."""
    choice = walks.policy(5).choice
    assert choice is not None
    assert choice.plans[0] == Supported(3)
    assert choice.chosen == 0
    assert not choice.is_plain


def test_a_plan_that_leaves_the_log_is_not_recommended(
    walks: RSPMN, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If all are said to, it is that of usual actions."""
    monkeypatch.setattr(honest, "FAR", -1.0)
    policy = walks.policy(4)
    assert policy.honest_value().leaves_log
    assert policy.choice is not None
    assert policy.choice.plan == Supported(share=0.3)
    assert "no lower end is known" in policy.choice.text


def test_that_no_plan_earns_what_practice_does_is_said() -> None:
    """Whoever decided may have known more than the log says."""
    plans = None, Supported(3)
    choice = SafeChoice(0.9, (Gain(-0.4, -0.5), Gain(-0.35, -0.5)), plans)
    assert "decisions may depend on what the log does not have" in choice.text
    for gain in (0.0, -0.005):  # a hundredth of .9 is less than noise
        assert "decisions may" not in SafeChoice(0.9, (Gain(gain, -0.1),)).text
