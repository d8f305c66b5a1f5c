"""Outcomes that branches share: by hand, against the definition, and better policies from less."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from effort import seeds
from rspmn import RSPMN, Episodes, Schema, load
from rspmn.data.episodes import Followed
from rspmn.envs.domains import DOMAINS
from rspmn.envs.explore import explore
from rspmn.envs.lessons import lessons
from rspmn.envs.mdp import MDP
from rspmn.errors import RspmnError
from rspmn.evaluate import true_value
from rspmn.learn import FutureInfo, LearnConfig, learn_rspmn, refit
from rspmn.learn.successors import Counts, SuccessorWeights, Transitions
from rspmn.learn.successors.factored import Factored, Learned
from rspmn.learn.successors.products import FactorProducts
from rspmn.learn.successors.strength import best_strength

#: Successes of the four tries in each place, if ready: ten of twenty.
SUCCESSES = (3, 2, 2, 1, 2)


def tries(*seen: str) -> Episodes:
    """Return episodes of one step in five places: to try earns 1 or 0, to wait 2 in the last.

    Whoever is not ready never succeeds. What is `seen` after a decision is 0 or 1 in turn.
    """
    schema = Schema([["place", "ready"], ["do"], *([seen] if seen else [])], ["do"], "u")
    steps: list[list[dict[str, object]]] = []
    for place, successes in enumerate(SUCCESSES):
        after = {"place": (place + 1) % 5}
        for ready in (0, 1):
            for k in range(4):
                here = {"place": place, "ready": ready, **dict.fromkeys(seen, k % 2)}
                tried = {**here, "do": "try", "u": float(ready and k < successes)}
                steps.append([tried, {**after, "ready": ready}])
                waited = {**here, "do": "wait", "u": 2.0 * (place == 4)}
                steps.append([waited, {**after, "ready": ready}])
    return Episodes.from_steps(steps, schema, [Followed.STATE] * len(steps))


def test_shared_outcomes_by_hand() -> None:
    model, info = learn_rspmn(tries())
    assert isinstance(info.future, FutureInfo)
    strength = info.future.outcomes
    assert strength > 0
    for place, successes in enumerate(SUCCESSES):
        found = {a.value: a.utility for a in model.action_values({"place": place, "ready": 1}, 1)}
        # successes of 4 logged steps, and κ steps of which 10 in 20 succeed
        assert found["try"] == pytest.approx((successes + strength * 10 / 20) / (4 + strength))
        assert found["wait"] == 2.0 * (place == 4)
        found = {a.value: a.utility for a in model.action_values({"place": place, "ready": 0}, 1)}
        assert found["try"] == 0


def test_nothing_is_shared_where_something_is_seen_after_the_decision() -> None:
    """Then a branch is worth what was counted in it: successes of 4 steps."""
    model, info = learn_rspmn(tries("seen"))
    assert isinstance(info.future, FutureInfo)
    assert info.future.outcomes == 0
    for place, successes in enumerate(SUCCESSES):
        found = {a.value: a.utility for a in model.action_values({"place": place, "ready": 1}, 1)}
        assert found["try"] == pytest.approx(successes / 4)


def test_the_strength_by_hand() -> None:
    """Two branches of two steps: one led to a and b, one to a and a; the prior says a with .75."""
    group, value = np.array([0, 0, 1]), np.array([0, 1, 0])
    weights, prior = np.array([1.0, 1.0, 2.0]), np.array([0.75, 0.25, 0.75])
    found = best_strength(group, value, 2, weights, np.ones(3), prior)

    def log_likelihood(k: float) -> float:
        def given(others: float, expected: float) -> float:
            return float(np.log((others + k * expected + 1e-3 / 2) / (1 + k + 1e-3)))

        return given(0, 0.75) + given(0, 0.25) + 2 * given(1, 0.75)

    tried = [0.0, *(k * 10.0**e for e in range(-2, 7) for k in (1, 3))]
    best = max(tried, key=log_likelihood)
    assert found.best == pytest.approx(best)
    assert found.gained == pytest.approx((log_likelihood(best) - log_likelihood(0)) / 4)
    assert log_likelihood(found.least) >= log_likelihood(best) - 1.92


def transitions_and_weights(world: MDP, episodes: int) -> tuple[Transitions, SuccessorWeights]:
    """Return what a log of a world is weighed by, and how."""
    seen = []

    def keep(transitions: Transitions) -> tuple[SuccessorWeights, None]:
        seen.append(transitions)
        return Counts()(transitions)

    learn_rspmn(world.generate(episodes, 12, 0, "final"), LearnConfig(successors=keep))
    return seen[0], Factored()(seen[0])[0]


def test_a_branch_gets_as_many_steps_as_the_prediction_is_worth() -> None:
    transitions, weights = transitions_and_weights(lessons(2, 4), 300)
    added = weights.outcomes
    assert added is not None
    node = transitions.of_states[transitions.states.of_steps[transitions.window]]
    made = transitions.table.codes["teach"][transitions.window]
    branch = np.unique(np.stack([node, made]), axis=1, return_inverse=True)[1].ravel()
    pairs = np.unique(np.stack([branch, transitions.site]), axis=1)
    total = np.bincount(pairs[0], added.steps[pairs[1]])
    assert total == pytest.approx(added.strength.best)
    going = np.bincount(added.site, added.going, transitions.sites)
    assert going == pytest.approx(added.steps - added.ended)
    assert np.bincount(weights.site, weights.weights) == pytest.approx(1)


@pytest.mark.parametrize("seed", seeds(2, 20))
def test_lessons_are_taught_better(seed: int) -> None:
    """By counts of each branch, success seems certain where it was seen twice."""
    world, horizon = lessons(), 12
    log, best = world.generate(300, horizon, seed, "final"), world.optimum(horizon)
    practice = world.evaluate(None, horizon)
    shared, counted = (
        learn_rspmn(log, config)[0].policy(horizon)
        for config in (LearnConfig(), LearnConfig(successors="counts"))
    )
    worth, alone = (true_value(world, policy, horizon) for policy in (shared, counted))
    assert worth > practice + 0.75 * (best - practice)
    assert alone < worth - 1.0
    assert abs(shared.value() - worth) < (counted.value() - alone) / 3


def machines() -> MDP:
    """Return a world in which a failure costs 20, and ends the episode."""
    schema = Schema(
        [["wear", "load", "heat"], ["do"]], ["do"], "reward",
        dict.fromkeys(["wear", "load", "heat"], "integer")
        | {"do": "categorical", "reward": "continuous"},
    )  # fmt: skip
    over = (9, 0, 0)

    def outcomes(
        state: tuple[int, ...], action: tuple[str]
    ) -> Iterator[tuple[float, tuple[int, ...], float]]:
        wear, load, heat = state
        is_service = action[0] == "service"
        chance = 0.0 if is_service else 0.04 * wear + 0.03 * heat
        worn = max(0, wear - 2) if is_service else min(4, wear + 1)
        earned = -3.0 if is_service else 1.0 + load
        if chance:
            yield chance, over, earned - 20.0
        for more, warmer in product((-1, 0, 1), (-1, 1)):
            cooled = heat - 2 if is_service else heat + warmer
            after = worn, min(5, max(0, load + more)), min(5, max(0, cooled))
            yield (1 - chance) / 6, after, earned

    start = dict.fromkeys(product(range(3), repeat=3), 1 / 27)
    return explore(
        "Machines", schema, start, [("run",), ("service",)], outcomes,
        lambda state: state == over, episodes=300, horizon=10,
    )  # fmt: skip


def test_an_end_that_comes_with_a_cost_is_shared_with_it() -> None:
    world, errors, worth = machines(), [], []
    for seed in seeds(3, 20):
        log = world.generate(1000, 10, seed, "flags")
        for config in (LearnConfig(), LearnConfig(successors="counts")):
            model, info = learn_rspmn(log, config)
            policy = model.policy(10)
            worth.append(true_value(world, policy, 10))
            errors.append(policy.value() - worth[-1])
            assert getattr(info.future, "outcomes", 0) > 0 or config.successors == "counts"
    shared, counted = np.abs(errors).reshape(-1, 2).mean(axis=0)
    assert shared < 0.7 * counted
    assert np.diff(np.reshape(worth, (-1, 2)).mean(axis=0)) < 0


@pytest.mark.parametrize("name", [n for n in DOMAINS if n != "FrozenLake"])
def test_nothing_is_added_where_rewards_do_not_vary(name: str) -> None:
    _, info = learn_rspmn(DOMAINS[name]().generate(60, 10, 0))
    assert isinstance(info.future, FutureInfo)
    assert info.future.outcomes == 0


@pytest.fixture(scope="module")
def taught() -> tuple[RSPMN, Episodes]:
    log = lessons(2, 4).generate(100, 12, 0, "final")
    return learn_rspmn(log)[0], log


def test_refit_changes_nothing(taught: tuple[RSPMN, Episodes]) -> None:
    model, log = taught
    again, _ = refit(model, log)
    assert again.template == model.template
    assert again.counts == model.counts


def test_the_file_has_what_is_shared(taught: tuple[RSPMN, Episodes], tmp_path: Path) -> None:
    model, _ = taught
    assert model.counts is not None
    assert model.counts.utilities is not None
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert isinstance(again, RSPMN)
    assert again.counts == model.counts
    assert again.honest_value(5).low == model.honest_value(5).low


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": ()}, "of 'outcome', but 0 of 'mean'"),
        ({"leaf_steps": ()}, "0 of 'leaf_steps'"),
        ({"strength": -1.0}, "expected numbers from 0"),
    ],
)
def test_bad_predictions_are_refused(
    taught: tuple[RSPMN, Episodes], change: dict[str, object], message: str
) -> None:
    counts = taught[0].counts
    assert counts is not None
    assert counts.utilities is not None
    with pytest.raises(RspmnError, match=message):
        replace(counts.utilities, **change)  # type: ignore[arg-type]
    with pytest.raises(RspmnError, match="only where factors are"):
        replace(counts, factors=None)


def test_draws_of_shared_outcomes_have_the_mean_of_the_model(
    taught: tuple[RSPMN, Episodes],
) -> None:
    """What is new apart, branches earn in draws what they earn in the model, within four errors."""
    model, _ = taught
    posterior = model.posterior
    posterior.novelty.responsibility[:, 1:] = 0.0
    posterior.novelty.responsibility[:, 0] = 1.0  # the weakest: hardly anything is new
    earned = posterior.draw(2000, np.random.default_rng(0)).earned
    expected = posterior.mean_earned
    error = earned.std(axis=0) / np.sqrt(len(earned)) + 1e-3
    assert (np.abs(earned.mean(axis=0) - expected) < 4.5 * error + 0.005 * np.abs(expected)).all()


def test_what_contexts_are_worth_adds_up_to_what_priors_are_worth() -> None:
    """The uses of each S_L, of its own steps and of shared outcomes, sum to its strength."""
    kept: list[Transitions] = []

    def weighing(transitions: Transitions) -> tuple[SuccessorWeights, object]:
        kept.append(transitions)
        return Factored()(transitions)

    learn_rspmn(tries(), LearnConfig(successors=weighing))
    learned = Learned(kept[-1], ~kept[-1].over)
    assert learned.outcomes is not None
    priors = learned.priors(FactorProducts(learned.factors, learned.leaves))
    for strength in (0.0, 2.5):
        site, _, worth = learned.uses(strength)
        total = np.bincount(site, worth, minlength=kept[-1].sites)
        assert total == pytest.approx(learned.weighed(priors.weights, strength)[1])
