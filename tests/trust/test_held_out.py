"""Policies of single decisions: what they are worth by rows held out, and which is recommended."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rspmn import SPMN, Schema, learn_rspmn, learn_spmn
from rspmn.cli import main
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.single_decisions import single_decisions
from rspmn.errors import CircuitError, DataError, EvidenceError
from rspmn.evaluate import compare, off_policy
from rspmn.infer.branches import Branches
from rspmn.learn import LearnConfig
from rspmn.model_file import load
from rspmn.successor_counts import HeldOutRows
from rspmn.trust.held_out import value_of
from rspmn.types import Array, Ints

SCHEMA = Schema([["x", "y"], ["a"]], ["a"], "u", {"x": "continuous", "y": "continuous"})
#: What three actions are worth: each is right in another direction.
ANGLES = 2 * np.pi * np.arange(3) / 3


def worths(points: Array) -> Array:  # [n, actions]
    """Return the probability that each action earns 1."""
    directions = np.stack([np.cos(ANGLES), np.sin(ANGLES)])
    return np.asarray(1 / (1 + np.exp(-points @ directions)), dtype=np.float64)


def logged(rows: int, noise: float, seed: int) -> dict[str, Any]:
    """Return a table of the best actions but for a share of random ones."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(rows, 2))
    worth = worths(points)
    a = np.where(rng.random(rows) < noise, rng.integers(0, 3, rows), worth.argmax(axis=1))
    u = (rng.random(rows) < worth[np.arange(rows), a]).astype(float)
    return {"x": points[:, 0], "y": points[:, 1], "a": a, "u": u}


def true_worth(model: SPMN) -> float:
    """Return what the recommended decisions are worth."""
    points = np.random.default_rng(99).normal(size=(5000, 2))
    made = model.decide({"x": points[:, 0], "y": points[:, 1]})["a"].astype(int)
    return float(worths(points)[np.arange(5000), made].mean())


def practice(noise: float) -> float:
    worth = worths(np.random.default_rng(99).normal(size=(5000, 2)))
    return float((1 - noise) * worth.max(axis=1).mean() + noise * worth.mean())


@pytest.fixture(scope="module")
def of_experts() -> SPMN:
    return learn_spmn(logged(500, 0.02, 1), SCHEMA)[0]


@pytest.fixture(scope="module")
def of_random() -> SPMN:
    return learn_spmn(logged(500, 1.0, 1), SCHEMA)[0]


# ---- the estimate ---------------------------------------------------------------------


def rows_of(made: list[int], utility: list[float], steps: tuple[float, ...]) -> HeldOutRows:
    """Return rows of which the second of two actions is expected to be worth .5 more."""
    size = len(made)
    worth, offered = (0.0, 0.5) * size, (1, 1) * size
    return HeldOutRows(2, tuple(made), tuple(utility), (1.0,) * size, worth, steps * size, offered)


def test_what_was_always_done_is_worth_what_it_earned(of_random: SPMN) -> None:
    found = value_of(rows_of([1] * 400, [0.0, 1.0] * 200, (0.0, 10.0)), of_random.policy().planned)
    assert found.point == pytest.approx(0.5)
    assert found.error == pytest.approx(0.5 / 20, rel=0.02)


def test_what_was_never_done_is_not_known(of_random: SPMN) -> None:
    """Nothing but what rows earn on average is expected, give or take all of their deviation."""
    found = value_of(rows_of([0] * 400, [0.0, 1.0] * 200, (10.0, 0.1)), of_random.policy().planned)
    assert found.point == pytest.approx(0.5)
    assert found.error == pytest.approx(0.5)


def test_where_decisions_depend_on_contexts_less_may_be_earned(of_random: SPMN) -> None:
    """Half of the rows did the same, and models can tell which half."""
    planned, made = of_random.policy().planned, [0, 1] * 200
    blind = value_of(rows_of(made, [0.0, 1.0, 1.0, 0.0] * 100, (5.0, 5.0)), planned)
    rows = rows_of(made, [0.0, 1.0, 1.0, 0.0] * 100, (5.0, 5.0))
    steps = (9.0, 1.0, 1.0, 9.0) * 200
    told = value_of(HeldOutRows(**{**rows.__dict__, "steps": steps}), planned)
    assert blind.point == pytest.approx(0.5, abs=0.01)
    assert told.point < blind.point - 0.05
    assert told.error > 2 * blind.error


def test_rare_rewards_that_were_not_seen_may_be_there(of_random: SPMN) -> None:
    """No click among 150 rows of one action, 15 among 1,350 of the other: Wilson ends at .025."""
    rows = rows_of([1] * 150 + [0] * 1350, [0.0] * 1485 + [1.0] * 15, (9.0, 1.0))
    found = value_of(rows, of_random.policy().planned)
    low, high = found.interval(1.96)
    assert low <= 0 < found.point < 0.001
    assert high == pytest.approx(1.96**2 / (150 + 1.96**2), rel=0.1)


def test_rare_losses_lower_the_lower_end(of_random: SPMN) -> None:
    rows = rows_of([1] * 400, [0.0] * 396 + [1.0] * 4, (0.0, 9.0))
    planned = of_random.policy().planned
    gains = value_of(rows, planned)
    losses = value_of(replace(rows, utility=tuple(-u for u in rows.utility)), planned)
    low, high = gains.interval(1.96)
    assert high - gains.point > 1.2 * (gains.point - low)
    assert losses.interval(1.96) == pytest.approx((-high, -low), abs=1e-4)


def test_intervals_of_symmetric_rewards_are_the_usual(of_random: SPMN) -> None:
    rows = rows_of([1] * 400, [0.0, 1.0] * 200, (0.0, 10.0))
    found = value_of(rows, of_random.policy().planned)
    assert found.growth == pytest.approx(0)
    usual = found.point - 1.96 * found.error, found.point + 1.96 * found.error
    assert found.interval(1.96) == pytest.approx(usual)


@pytest.mark.parametrize("seed", range(4))
def test_clicks_are_rare_and_honest_values_hold(seed: int) -> None:
    """Twenty actions, clicks with .01 and, of one action, .02."""
    rng = np.random.default_rng(seed)
    a, rate = rng.integers(20, size=3000), np.where(np.arange(20) == 1, 0.02, 0.01)
    points = rng.normal(size=(3000, 2))
    u = (rng.random(3000) < rate[a]).astype(float)
    table = {"x": points[:, 0], "y": points[:, 1], "a": a, "u": u}
    model, _ = learn_spmn(table, SCHEMA)
    made = model.policy().act_many({"x": points[:, 0], "y": points[:, 1]})
    honest = model.policy().honest_value()
    assert honest.low <= rate[np.asarray(made).astype(int)].mean() <= honest.high


def test_a_criterion_that_looks_at_values_is_refused(of_random: SPMN) -> None:
    class Named:
        def scores(self, worth: Array, branches: Branches) -> Array:
            return np.where(branches.values == 0, worth, worth - 1)

    with pytest.raises(EvidenceError, match="looks at worth and steps"):
        of_random.policy(criterion=Named()).honest_value()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("made", (2,), "made: expected numbers from 0 to 1, found 2"),
        ("actions", 3, "2 values for 1 rows of 3 actions"),
        ("weight", (0.0,), "weight: expected numbers above 0"),
        ("worth", (0.0, float("nan")), "worth: expected finite numbers"),
        ("offered", (0, 2), "offered: expected numbers from 0 to 1"),
        ("utility", (), "1 of 'made', but 0 of 'utility'"),
    ],
)
def test_odd_rows_are_refused(field: str, value: Any, message: str) -> None:
    fields = rows_of([0], [1.0], (1.0, 1.0)).__dict__ | {field: value}
    with pytest.raises(CircuitError, match=message):
        HeldOutRows(**fields)


# ---- what is recommended --------------------------------------------------------------


def test_a_logger_who_is_mostly_right_is_followed(of_experts: SPMN) -> None:
    """What an action earned where it is right does not tell what it earns elsewhere."""
    found = of_experts.policy()
    assert found.choice is not None
    assert not found.choice.is_plain
    assert true_worth(of_experts) >= practice(0.02) - 0.02
    honest = found.honest_value()
    assert 0 <= honest.low <= true_worth(of_experts) <= honest.high <= 1


def test_from_a_random_log_the_best_is_recommended(of_random: SPMN) -> None:
    found = of_random.policy()
    assert found.choice is not None
    assert found.choice.is_plain
    assert true_worth(of_random) > practice(1.0) + 0.15
    honest = found.honest_value()
    assert honest.low <= true_worth(of_random) <= honest.high
    assert honest.high - honest.low < 0.25


def test_all_answers_recommend_the_same(of_experts: SPMN) -> None:
    points = np.random.default_rng(3).normal(size=(40, 2))
    table = {"x": points[:, 0], "y": points[:, 1]}
    decided = of_experts.decide(table)["a"].tolist()
    states = [{"x": x, "y": y} for x, y in points.tolist()]
    assert [of_experts.act(state) for state in states] == decided
    assert [of_experts.best_decisions(state)[0].value for state in states] == decided
    plain = of_experts.policy(safe=False).act_many(table).tolist()
    assert plain != decided


def test_the_value_of_a_context(of_random: SPMN) -> None:
    state = {"x": 1.0, "y": 0.0}
    found, sure = of_random.policy().honest_value(state), of_random.policy().how_sure(state)
    assert sure.recommended is not None
    assert (found.point, found.low) == (sure.recommended.mean, sure.recommended.low)
    assert "the context is between classes" in found.caveats[0]


def test_many_categories_follow_practice_too() -> None:
    """In 81 contexts of categories, splits by utilities forget what the logger looked at."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, (600, 4))
    weights, best = rng.normal(0, 0.8, (3, 4)), np.zeros(600, dtype=int)
    worth = 1 / (1 + np.exp(-(x - 1) @ weights.T))
    best = np.where(rng.random(600) < 0.02, rng.integers(0, 3, 600), worth.argmax(axis=1))
    u = (rng.random(600) < worth[np.arange(600), best]).astype(float)
    names = list("wxyz")
    table = {n: np.array(["p", "q", "r"])[x[:, k]] for k, n in enumerate(names)}
    model, info = learn_spmn(table | {"a": best, "u": u}, Schema([names, ["a"]], ["a"], "u"))
    assert info.classes
    made = model.decide(table)["a"].astype(int)
    logged_worth = worth[np.arange(600), best].mean()
    assert worth[np.arange(600), made].mean() >= logged_worth - 0.02


def test_few_categories_have_honest_values_by_counts() -> None:
    rows = {"x": ["p", "q"] * 100, "a": [0, 0, 1, 1] * 50, "u": [1.0, 0.0, 0.0, 2.0] * 50}
    model, _ = learn_spmn(rows, Schema([["x"], ["a"]], ["a"], "u"))
    assert model.held_out is None
    assert model.earned == (0.0, 2.0)
    found = model.policy().honest_value()
    assert found.promise == 1.5
    assert 1.3 < found.low < found.high <= 2.0


def test_the_papers_models_have_none() -> None:
    """Clusters of k-means overlap: a plan for each would be worth more than any for contexts."""
    rows = {"x": ["p", "q"] * 100, "a": [0, 0, 1, 1] * 50, "u": [1.0, 0.0, 0.0, 2.0] * 50}
    model, _ = learn_spmn(rows, Schema([["x"], ["a"]], ["a"], "u"), LearnConfig.paper())
    assert not model.earned
    assert not model.as_recurrent.is_counted


def test_constants_beside_classes_hide_none_of_them(of_random: SPMN) -> None:
    table = logged(500, 1.0, 1) | {"c": ["same"] * 500}
    schema = Schema([["x", "y", "c"], ["a"]], ["a"], "u", SCHEMA.kinds)
    model, _ = learn_spmn(table, schema)
    interfaces = of_random.as_recurrent.num_state_interfaces
    assert model.as_recurrent.num_state_interfaces == interfaces > 1


def test_laws_keep_to_what_is_allowed() -> None:
    table = logged(500, 1.0, 1)
    allowed = ~((table["x"] > 0) & (table["a"] == 0))
    table = {name: column[allowed] for name, column in table.items()}
    schema = Schema(
        SCHEMA.order, ["a"], "u", SCHEMA.kinds, available={"a": {"0": "x <= 0"}}
    )  # fmt: skip
    model, _ = learn_spmn(table, schema)
    assert model.held_out is not None
    offered = np.array(model.held_out.offered).reshape(-1, 3)
    assert 0 < (offered[:, 0] == 0).mean() < 1
    assert (offered[:, 1:] == 1).all()


def test_files_keep_what_policies_are_valued_by(of_random: SPMN, tmp_path: Path) -> None:
    of_random.save(tmp_path / "single.json")
    assert load(tmp_path / "single.json") == of_random
    of_random.as_recurrent.save(tmp_path / "recurrent.json")
    again = load(tmp_path / "recurrent.json")
    assert again == of_random.as_recurrent


# ---- evaluation on tables, and episodes of one step -----------------------------------


def test_a_table_is_a_log_of_episodes_of_one_step(of_random: SPMN) -> None:
    table = logged(500, 1.0, 1)
    for policy in ("recommended", "practice", "uniform"):
        found = off_policy(of_random, table, policy, draws=50)
        episodes = single_decisions(table, of_random.schema)
        assert found == off_policy(of_random.as_recurrent, episodes, policy, draws=50)
        assert found.episodes == 500
        assert found.horizon == 1
    uniform = off_policy(of_random, table, "uniform", draws=50)
    true = practice(1.0)
    for method in ("doubly robust", "weighted importance sampling"):
        assert uniform[method].low < true < uniform[method].high


def test_the_recommended_policy_beside_practice(of_random: SPMN) -> None:
    found = compare(of_random, logged(500, 1.0, 1), draws=50)
    assert found.logged is not None
    assert found.logged.value == pytest.approx(float(logged(500, 1.0, 1)["u"].mean()))
    assert found.policy == of_random.policy().honest_value()
    assert found.better > 0.95
    assert found.difference.low > 0


def test_weights_count_rows() -> None:
    rows = {"x": ["p", "q"], "a": [0, 1], "u": [1.0, 2.0], "n": [3, 1]}
    schema = Schema([["x"], ["a"]], ["a"], "u")
    log = single_decisions(rows, schema, "n")
    assert log.columns["u"].data.tolist() == [1.0, 1.0, 1.0, 2.0]
    assert set(log.endings.tolist()) == {Followed.END}
    with pytest.raises(DataError, match="'n': expected whole numbers, found 0.5"):
        single_decisions(rows | {"n": [0.5, 1]}, schema, "n")


def test_episodes_of_one_step_are_learned_as_single_decisions() -> None:
    table = logged(400, 1.0, 2)
    log = Episodes.from_log(
        table | {"episode": np.arange(400), "time": np.zeros(400, int), "over": np.ones(400, bool)},
        SCHEMA.with_log(terminated="over"),
    )
    recurrent, info = learn_rspmn(log)
    single, _ = learn_spmn(table, SCHEMA)
    assert recurrent == single.as_recurrent
    assert info.structure.classes
    made = made_by(single)
    assert (recurrent.policy(1).act_many(CONTEXTS) == made).all()


CONTEXTS = {"x": np.linspace(-2, 2, 30), "y": np.linspace(1, -1, 30)}


def made_by(model: SPMN) -> Ints:
    """Return what is decided in some contexts."""
    return np.asarray(model.decide(CONTEXTS)["a"])


# ---- the command line -----------------------------------------------------------------


def test_the_command_line_evaluates_a_table(
    of_random: SPMN, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, path = tmp_path / "model.json", tmp_path / "log.csv"
    of_random.save(model)
    table = logged(500, 1.0, 1) | {"n": [1] * 500, "p": [1 / 3] * 500}
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([[*table], *zip(*table.values(), strict=True)])
    asked = ["evaluate", str(model), "--log", str(path), "--draws", "50"]
    assert main(asked) == 0
    said = capsys.readouterr().out
    assert "1 steps, 500 logged episodes" in said
    assert "recommended: the plan of maximum expected utility" in said
    policy = [*asked, "--policy", "uniform", "--weights", "n", "--probability", "p"]
    assert main(policy) == 0
    assert "probabilities of logged decisions: from the column p" in capsys.readouterr().out
    assert main([*asked, "--episode", "n"]) == 2
    assert "a model of single decisions: omit episode" in capsys.readouterr().err
    assert main(["policy", str(model)]) == 0
    assert "honest value 0." in capsys.readouterr().out
    assert main(["act", str(model), "--state", "x=1", "y=0"]) == 0
    assert "warning: the context is between classes" in capsys.readouterr().out


def test_weights_are_of_single_decisions(
    of_random: SPMN, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, path = tmp_path / "model.json", tmp_path / "log.csv"
    of_random.as_recurrent.save(model)
    path.write_text("n\n1\n")
    assert main(["evaluate", str(model), "--log", str(path), "--weights", "n"]) == 2
    assert "a model of episodes: omit --weights" in capsys.readouterr().err
