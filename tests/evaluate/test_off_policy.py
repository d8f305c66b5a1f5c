"""Off-policy evaluation: exact in the model, and defined in odd cases."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from off_policy_definitions import Step, doubly_robust
from rspmn import RSPMN, Episodes, Followed, Schema, learn_rspmn
from rspmn.envs.domains import DOMAINS
from rspmn.envs.mdp import MDP
from rspmn.errors import DataError, EvidenceError
from rspmn.evaluate import Mixture, Planned, Uniform, off_policy
from rspmn.evaluate.logged import logged_steps
from rspmn.evaluate.model_value import ModelValue, draws_of
from rspmn.evaluate.paths import Paths
from rspmn.evaluate.target_on_log import TargetOnLog
from rspmn.evaluate.target_policies import as_target
from rspmn.types import Array
from small_models import SCHEMA, chain


@cache
def lake(layout: str = "final") -> tuple[MDP, RSPMN, Episodes]:
    world = DOMAINS["FrozenLake"]()
    log = world.generate(2000, 8, 0, layout=layout)  # type: ignore[arg-type]
    return world, learn_rspmn(log)[0], log


def steps(*rows: tuple[int, str, float]) -> list[dict[str, object]]:
    return [dict(zip(("x", "a", "u"), row, strict=True)) for row in rows]


def episodes(*each: list[dict[str, object]], ending: Followed = Followed.END) -> Episodes:
    return Episodes.from_steps(each, SCHEMA, [ending] * len(each))


# ---- in the model -------------------------------------------------------------------------


def toy() -> RSPMN:
    """The toy of test_importance, as a model."""
    half = {0: 0.5, 1: 0.5}
    return chain(
        [{"l": (1.0, {0: 1.0}), "r": (0.0, half)}, {"l": (0.0, {1: 1.0}), "r": (2.0, {1: 1.0})}]
    )


def test_the_toy_is_worth_what_it_is_by_hand() -> None:
    """31/32: see test_importance. The last reward is counted."""
    model = toy()
    log = episodes(steps((0, "l", 1.0), (0, "r", 0.0)), steps((0, "r", 0.0), (1, "r", 2.0)),
                   ending=Followed.UNKNOWN)  # fmt: skip
    found = off_policy(model, log, lambda _: {"l": 0.25, "r": 0.75}, 2)
    assert found["model"].value == pytest.approx(31 / 32)
    assert np.isnan(found["model"].low), "a model without counts has no interval"
    assert any("no counts" in note for note in found.notes)
    found = off_policy(model, log, lambda _: {"l": 0.25, "r": 0.75}, 2, discount=0.5)
    # 1/4 (1 + 1/2 · 1/4) + 3/4 · 1/2 · 7/8
    assert found["model"].value == pytest.approx(9 / 32 + 21 / 64)


def test_the_recommended_policy_is_worth_its_value() -> None:
    _, model, log = lake()
    found = off_policy(model, log, "recommended", 8, draws=50)
    assert found["model"].value == pytest.approx(model.policy(8).value())
    assert any("its value is biased" in note for note in found.notes)


def test_draws_are_those_of_the_honest_value() -> None:
    _, model, log = lake()
    target = TargetOnLog(model, logged_steps(model, log), Planned(model.policy(8)), 8, 1.0, None)
    found = draws_of(model, [target.observed.rules], 1.0, 50, np.random.default_rng(3))[0]
    honest = model.honest_value(8, draws=50, rng=3)
    assert found.mean() - honest.optimism / 2 == pytest.approx(honest.point)


def test_several_decisions_of_a_step() -> None:
    """a of two values, then b of two; the policy takes (0, 1) and (1, 0) equally often."""
    schema = Schema([["x"], ["a"], ["b"]], ["a", "b"], "u")
    earns = {(0, 0): 1.0, (0, 1): 2.0, (1, 0): 4.0, (1, 1): 8.0}
    each = [[{"x": 0, "a": a, "b": b, "u": u}] for (a, b), u in earns.items()] * 3
    log = Episodes.from_steps(each, schema, [Followed.END] * 12)
    model, _ = learn_rspmn(log)
    answers: list[tuple[object, float]] = [
        ({(0, 1): 0.5, (1, 0): 0.5}, 3.0), ({"a": 1, "b": 0}, 4.0), ((1, 1), 8.0)
    ]  # fmt: skip
    for answer, value in answers:
        found = off_policy(model, log, lambda _, answer=answer: answer, 1, draws=20)
        assert [e.value for e in found.estimates] == pytest.approx([value] * 6)
    assert off_policy(model, log, "uniform", 1, draws=20)["model"].value == pytest.approx(15 / 4)


def test_states_that_share_a_node_are_averaged() -> None:
    """x does not matter, so its values are one interface node; the policy acts by it."""
    rng = np.random.default_rng(0)
    each = [steps((x, a, float(a == "r"))) for x in (0, 0, 0, 1) for a in "lr" for _ in range(9)]
    log = episodes(*[each[k] for k in rng.permutation(len(each))])
    model, _ = learn_rspmn(log)
    assert model.num_state_interfaces == 1
    found = off_policy(model, log, {0: "l", 1: "r"}, 1, draws=20)
    for estimate in found.estimates:
        assert estimate.value == pytest.approx(1 / 4)


# ---- the log ------------------------------------------------------------------------------


def test_practice_is_worth_the_mean_return() -> None:
    """All ratios are 1, so that importance sampling is the mean of the log's returns."""
    _, model, log = lake()
    returns = np.add.reduceat(log.columns["reward"].data, log.offsets[:-1])
    found = off_policy(model, log, "practice", 8, draws=50)
    for method in ("importance sampling", "weighted importance sampling"):
        assert found[method].value == pytest.approx(returns.mean())
        assert found[method].effective == pytest.approx(2000)
        assert found[method].high - found[method].value == pytest.approx(
            1.644854 * returns.std(ddof=1) / np.sqrt(2000)
        )
    assert found.coverage == 1
    assert found["model"].low <= found["model"].value <= found["model"].high


def test_probabilities_of_the_log_are_used() -> None:
    world, model, log = lake()
    given = off_policy(model, log, "uniform", 8, behaviour=np.full(log.num_steps, 0.25), draws=20)
    returns = np.add.reduceat(log.columns["reward"].data, log.offsets[:-1])
    assert given["importance sampling"].value == pytest.approx(returns.mean())
    assert given.behaviour_given
    estimated = off_policy(model, log, "uniform", 8, draws=20)
    assert not estimated.behaviour_given
    assert abs(estimated["doubly robust"].value - world.evaluate(None, 8)) < 0.005


def test_what_estimators_see_is_what_the_model_says() -> None:
    """q and v of each step are the model's; v is the mean of q over the policy's decisions."""
    _, model, log = lake()
    logged = logged_steps(model, log)
    target = Mixture(Planned(model.policy(8)), Uniform(), 0.3)
    found = TargetOnLog(model, logged, target, 8, 1.0, None)
    log_of = found.weighable
    by_node = found.value.worths.nodes
    for t in (0, 3, 7):
        rows = slice(int(log_of.first[t]), int(log_of.first[t + 1]))
        values = logged.situations.places.at_states(by_node[t], np.nan)  # one state in each node
        assert np.allclose(log_of.v[rows], values[logged.state[found.order[rows]]])
    each = [[] for _ in range(log_of.episodes)]  # type: ignore[var-annotated]
    for e, ratio, r, q, v in zip(log_of.episode, log_of.ratio, log_of.reward, log_of.q, log_of.v,
                                 strict=True):  # fmt: skip
        each[e].append(Step(ratio, r, q, v))
    plain = doubly_robust(each, 8, 1.0)
    assert off_policy(model, log, target, 8, draws=20)["doubly robust"].value == pytest.approx(
        plain
    )


@pytest.mark.parametrize("layout", ["flags", "final"])
def test_beyond_the_log_the_model_answers(layout: str) -> None:
    """Of the practice, 20 steps from episodes of 8: the tail is the model's, and flagged."""
    world, model, log = lake(layout)
    found = off_policy(model, log, "practice", 20, draws=50)
    assert any("no episode has more than 8 of 20 steps" in note for note in found.notes)
    assert any("% of the episodes were truncated before step 20" in note for note in found.notes)
    truth = world.evaluate(None, 20)
    for estimate in found.estimates:
        assert abs(estimate.value - truth) < 0.01
    assert not any("cut" in note for note in off_policy(model, log, "practice", 8, draws=20).notes)


def test_tails_by_hand() -> None:
    """In the toy, r was taken in state 0, then the log was cut; two steps under always-r.

    r leads to 0 or 1, worth 0 and 2: the tail is 1. Where the final state is known, it is its own.
    """
    model = toy()
    cut = episodes(steps((0, "r", 0.0)), ending=Followed.UNKNOWN)
    assert off_policy(model, cut, lambda _: "r", 2)["importance sampling"].value == 1.0
    for after, value in ((0, 0.0), (1, 2.0)):
        each = steps((0, "r", 0.0))
        seen = Episodes.from_steps([[*each, {"x": after}]], SCHEMA, [Followed.STATE])
        assert off_policy(model, seen, lambda _: "r", 2)["importance sampling"].value == value
    ended = episodes(steps((0, "r", 0.0)))
    assert off_policy(model, ended, lambda _: "r", 2)["importance sampling"].value == 0.0


# ---- odd cases ----------------------------------------------------------------------------


def test_one_episode() -> None:
    log = episodes(steps((0, "l", 1.0), (1, "r", 2.0)))
    model, _ = learn_rspmn(log)
    found = off_policy(model, log, "practice", draws=20)
    assert (found.horizon, found.episodes) == (2, 1)
    assert [e.value for e in found.estimates] == pytest.approx([3.0] * 6)
    assert all(np.isnan(e.low) for e in found.estimates[1:])
    assert any("one episode" in note for note in found.notes)


def test_another_decision_stands_in_for_one_that_was_never_logged() -> None:
    """In 0, "l" earns 0 and "r" 1; "m" was taken in 1 only. All ten times."""
    each = [(0, "l", 0.0), (0, "r", 1.0), (1, "m", 5.0), (1, "l", 3.0)]
    log = episodes(*[steps(row) for row in each * 10])
    model, _ = learn_rspmn(log)
    target = as_target({0: "m", 1: "m"}, lambda: model.policy(1))
    found = TargetOnLog(model, logged_steps(model, log), target, 1, 1.0, None)
    # "m" in 0 is worth what "l" and "r" are, 1/2 on average; in 1, where half of them start, 5.
    assert found.observed.value == pytest.approx((1 / 2 + 5) / 2)
    rng = np.random.default_rng(0)
    worlds, _ = model.posterior.draw_worlds(200, rng)
    values = worlds.values(found.drawn_rules(rng)(200), 1.0, 200)
    node = int(np.argmax(model.policy(1).nodes({"x": 0})))
    assert set(values[:, node].round()) == {0.0, 1.0}  # but for what was never seen
    # The number of draws of "r" is binomial: within 5 deviations of 1/2.
    assert values[:, node].mean() == pytest.approx(0.5, abs=5 * 0.5 / 200**0.5)


def test_a_decision_that_was_never_logged() -> None:
    """The target goes l in state 1, where only r was logged: flagged, and no weight is left."""
    each = [steps((0, "l", 1.0), (1, "r", 2.0)), steps((0, "r", 1.0), (1, "r", 2.0))] * 5
    log = episodes(*each)
    model, _ = learn_rspmn(log)
    found = off_policy(model, log, {0: "l", 1: "l"}, 2, draws=20)
    assert found.coverage == pytest.approx(0.5)
    assert np.isfinite(found["model"].value)
    assert np.isnan(found["weighted importance sampling"].value)
    assert found["importance sampling"].value == pytest.approx(1.0)
    said = " ".join(found.notes)
    assert "50 % of the policy's decisions were never logged" in said
    assert "no logged episode follows the policy" in said


def test_a_decision_that_nobody_knows() -> None:
    _, model, log = lake()
    found = off_policy(model, log, lambda s: "fly" if s["cell"] == 0 else "down", 8, draws=20)
    said = " ".join(found.notes)
    assert "neither in the log nor in the model, such as in cell=0" in said
    assert found.coverage < 1
    assert np.isfinite(found["model"].value)


def test_a_policy_that_says_nothing_of_most_states_does_what_the_log_does() -> None:
    _, model, log = lake()
    found = off_policy(model, log, {99: "down"}, 8, draws=20)
    practice = off_policy(model, log, "practice", 8, draws=20)
    assert "is not defined in 100 % of the logged steps" in " ".join(found.notes)
    assert found["doubly robust"].value == pytest.approx(practice["doubly robust"].value)


def test_states_that_the_model_lacks() -> None:
    _, model, log = lake()
    cells = log.columns["cell"]
    strange = replace(cells, domain=(-1, *cells.domain[1:]))
    finals = {"cell": replace(log.finals["cell"], domain=strange.domain)}
    moved = replace(log, columns={**log.columns, "cell": strange}, finals=finals)
    found = off_policy(model, moved, "uniform", 8, draws=20)
    assert "of the logged steps are in states that are not in the model" in " ".join(found.notes)
    assert all(np.isfinite(e.value) for e in found.estimates)


def test_rare_rewards_are_noted() -> None:
    each = [steps((0, "lr"[e % 2], float(e == 3))) for e in range(60)]
    log = episodes(*each)
    found = off_policy(learn_rspmn(log)[0], log, "uniform", 1, draws=20)
    assert "all but 1 of the logged rewards are equal" in " ".join(found.notes)


def test_a_model_that_cannot_be_right_is_noted() -> None:
    """All episodes have five steps. The model thinks that each step ends one of five of them."""
    each = [steps(*((0, "lr"[(e + t) % 2], 1.0) for t in range(5))) for e in range(200)]
    log = episodes(*each)
    found = off_policy(learn_rspmn(log)[0], log, "practice", 5, draws=50)
    assert found["weighted importance sampling"].value == pytest.approx(5.0)
    assert found["model"].high < 4.0
    assert "200 effective episodes, disagree" in " ".join(found.notes)


def test_probabilities_that_cannot_be_right_are_noted() -> None:
    _, model, log = lake()
    wrong = np.full(log.num_steps, 0.1)  # it is 0.25
    found = off_policy(model, log, "uniform", 8, behaviour=wrong, draws=20)
    assert "expected 1" in " ".join(found.notes)
    right = off_policy(model, log, "uniform", 8, behaviour=np.full(log.num_steps, 0.25), draws=20)
    assert "should be 1" not in " ".join(right.notes)


def test_a_log_without_states() -> None:
    schema = Schema([["a"]], ["a"], "u")
    each = [[{"a": a, "u": u}] for a, u in (("l", 1.0), ("r", 2.0), ("r", 4.0))]
    log = Episodes.from_steps(each, schema, [Followed.END] * 3)
    model, _ = learn_rspmn(log)
    for policy, value in (("recommended", 3.0), (lambda _: "l", 1.0), ("practice", 7 / 3)):
        found = off_policy(model, log, policy, draws=20)
        assert [e.value for e in found.estimates] == pytest.approx([value] * 6)


def test_what_cannot_be_evaluated_is_refused() -> None:
    _, model, log = lake()
    with pytest.raises(EvidenceError, match="draws: expected 2 or more, found 1"):
        off_policy(model, log, "uniform", 8, draws=1)
    with pytest.raises(EvidenceError, match="horizon"):
        off_policy(model, log, "uniform", 0)
    other = episodes(steps((0, "l", 1.0)))
    with pytest.raises(DataError, match="the model's variables are"):
        off_policy(model, other, "uniform", 8)
    with pytest.raises(EvidenceError, match="t: expected 0 to 7"):
        off_policy(model, log, model.policy(8), 9)
    wrong: Array = np.zeros(log.num_steps)
    with pytest.raises(DataError, match="expected probabilities above 0 and at most 1"):
        off_policy(model, log, "uniform", 8, behaviour=wrong)
    with pytest.raises(KeyError, match="expected one of"):
        off_policy(model, log, "uniform", 8, draws=2)["fqe"]


def test_a_policy_in_the_model_by_itself() -> None:
    """A mixture of the branches of one level, as a check of how branches are numbered."""
    _, model, log = lake()
    paths = Paths(model, logged_steps(model, log).situations)
    down = paths.situations.number[("down",)]
    chances = np.zeros((paths.situations.count, 4))
    chances[:, down] = 1.0
    found = ModelValue(model, [paths.taken_by(chances)], 3, 1.0)

    class OnlyDown:
        def scores(self, worth: Array, branches: object) -> Array:
            return np.where(branches.values == "down", worth, np.nan)  # type: ignore[attr-defined]

    assert found.value == pytest.approx(model.meu(horizon=3, criterion=OnlyDown()))
    assert np.allclose(found.worths.nodes[0][:-1], model.values(3, criterion=OnlyDown())[:-1])
