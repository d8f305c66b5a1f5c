"""Contexts of numbers: new ones are answered, claims are honest, copies are no evidence."""

from typing import Any

import numpy as np
import pytest

from rspmn import Schema
from rspmn.circuit import StudentT, Sum, validity_violations
from rspmn.learn import LearnConfig, learn_spmn
from rspmn.learn.structure import learn_spmn as learn_spmn_module
from rspmn.learn.structure.class_factors import Earned, Numbers
from rspmn.learn.structure.classes import fit_classes, is_number
from rspmn.learn.structure.rows import read_rows
from rspmn.spmn import SPMN


def blobs(rng: np.random.Generator, rows: int, size: int = 6) -> tuple[Any, Any]:
    """Three kinds of contexts, each of which wants its own action; every variable says a little."""
    kind = rng.integers(0, 3, rows)
    return kind, rng.normal(size=(rows, size)) + 1.2 * np.eye(3)[kind][:, np.arange(size) % 3]


def bandit(rng: np.random.Generator, rows: int) -> tuple[dict[str, Any], Schema]:
    kind, points = blobs(rng, rows)
    a = rng.integers(0, 3, rows)
    columns = {f"x{j}": points[:, j] for j in range(points.shape[1])}
    return {**columns, "a": a, "u": 1.0 * (a == kind)}, Schema([list(columns), ["a"]], ["a"], "u")


def earned(model: SPMN, rng: np.random.Generator) -> tuple[float, float]:
    """Return what the model's decisions are worth in new contexts, and what it claims."""
    kind, points = blobs(rng, 2000)
    found = model.decide({f"x{j}": points[:, j] for j in range(points.shape[1])})
    assert np.isfinite(found["utility"]).all()
    return float((found["a"] == kind).mean()), float(found["utility"].mean())


def test_classes_where_many_variables_say_a_little() -> None:
    """A rule that knows the kinds' centres is right in 83 % of contexts."""
    rng = np.random.default_rng(0)
    table, schema = bandit(rng, 260)
    model, info = learn_spmn(table, schema)
    assert info.classes > 0
    assert validity_violations(model.network) == []
    worth, claimed = earned(model, rng)
    assert worth > 0.72
    assert abs(claimed - worth) < 0.1


def test_no_trial_of_classes_takes_more_than_half_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last model is the one that is asked for; without a limit no trial has one."""
    learned, limits = learn_spmn_module._learned, list[float | None]()

    def watched(rows: Any, schema: Any, config: LearnConfig, *more: Any) -> Any:
        limits.append(config.max_seconds)
        return learned(rows, schema, config, *more)

    monkeypatch.setattr(learn_spmn_module, "_learned", watched)
    table, schema = bandit(np.random.default_rng(10), 60)
    learn_spmn(table, schema, LearnConfig(max_seconds=100))
    assert len(limits) > 1
    assert all(limit is not None and 0 < limit <= 50 for limit in limits[:-1])
    limits.clear()
    learn_spmn(table, schema)
    assert set(limits) == {None}


def test_contexts_beyond_all_that_was_seen() -> None:
    table, schema = bandit(np.random.default_rng(1), 200)
    model, _ = learn_spmn(table, schema, LearnConfig(classes=4))
    for far in (1e-6, 10.0, 1e9):
        state = {f"x{j}": float(table[f"x{j}"].max()) + far for j in range(6)}
        best = model.best_decisions(state)
        assert len(best) >= 1
        assert np.isfinite(best[0].utility)
    assert best[0].usual == 0.0
    assert not best[0].supported
    usual = model.best_decisions({f"x{j}": float(np.median(table[f"x{j}"])) for j in range(6)})
    assert usual[0].supported
    assert usual[0].usual > 0.5


def test_logged_contexts_are_as_usual_as_their_share() -> None:
    table, schema = bandit(np.random.default_rng(2), 300)
    model, _ = learn_spmn(table, schema, LearnConfig(classes=4))
    usual = model.decide({name: table[name] for name in table if name.startswith("x")})["usual"]
    assert usual.min() > 0
    assert float(np.median(usual)) == pytest.approx(0.5, abs=0.03)


def test_the_meu_of_a_known_context_is_the_worth_of_its_best_decision() -> None:
    """Parts overlap: with knowledge of the part more could be earned than by the context alone."""
    table, schema = bandit(np.random.default_rng(3), 200)
    model, _ = learn_spmn(table, schema, LearnConfig(classes=4))
    state = {f"x{j}": float(table[f"x{j}"][7]) for j in range(6)}
    best = model.best_decisions(state)[0].utility
    assert float(model.meu(state)) == pytest.approx(best, rel=1e-12)


def test_copies_of_a_context_say_nothing_about_others() -> None:
    """Utilities are one draw for each context and action, logged ten times: new ones earn 0.

    Who takes copies for evidence promises the mean of the better of two draws, .56.
    """
    rng = np.random.default_rng(4)
    x, y = np.repeat(rng.normal(size=(2, 60)), 10, axis=1)
    a = rng.integers(0, 2, 600)
    u = rng.normal(size=(60, 2))[np.repeat(np.arange(60), 10), a]
    schema = Schema([["x", "y"], ["a"]], ["a"], "u")
    model, _ = learn_spmn({"x": x, "y": y, "a": a, "u": u}, schema)
    new = rng.normal(size=(2, 500))
    assert model.decide({"x": new[0], "y": new[1]})["utility"].mean() < 0.3


def test_repeated_contexts_are_not_memorised() -> None:
    """90 contexts logged ten times each: new ones are answered, and nearly all rightly."""
    rng = np.random.default_rng(5)
    points = rng.uniform(-1, 1, (90, 2))
    x, y = np.repeat(points, 10, axis=0).T
    a = rng.integers(0, 2, 900)
    table = {"x": x, "y": y, "a": a, "u": 1.0 * (a == (x + y > 0))}
    model, _ = learn_spmn(table, Schema([["x", "y"], ["a"]], ["a"], "u"))
    new = rng.uniform(-1, 1, (1000, 2))
    found = model.decide({"x": new[:, 0], "y": new[:, 1]})
    right = (found["a"] == (new.sum(axis=1) > 0)).mean()
    assert right > 0.85
    assert abs(found["utility"].mean() - right) < 0.08


def test_missing_numbers_and_categories() -> None:
    rng = np.random.default_rng(6)
    table, schema = bandit(rng, 300)
    table["x0"] = np.where(rng.random(300) < 0.3, np.nan, table["x0"])
    table["x1"] = np.where(table["x1"] > 0, "high", "low")
    model, _ = learn_spmn(table, schema, LearnConfig(classes=4))
    best = model.best_decisions({"x1": "never seen", "x2": 2.0})
    assert len(best) >= 1
    assert "x0" in best[0].averaged_over


def test_classes_are_leaves_of_one_sum() -> None:
    table, schema = bandit(np.random.default_rng(7), 200)
    model, info = learn_spmn(table, schema, LearnConfig(classes=2))
    root = model.network.nodes[model.network.root]
    assert isinstance(root, Sum)
    assert info.classes == 2
    leaves = [n.distribution for n in model.network.nodes if hasattr(n, "distribution")]
    assert all(isinstance(leaf, StudentT) for leaf in leaves)


# ---- shrinkage ------------------------------------------------------------------------


def test_the_best_of_many_equal_actions_is_not_overrated() -> None:
    """80 items, all worth .004: the best mean of 125 rows each is .02 to .03 by chance alone."""
    rng = np.random.default_rng(8)
    a = rng.integers(0, 80, 10_000)
    u = 1.0 * (rng.random(10_000) < 0.004)
    model, _ = learn_spmn({"a": a, "u": u}, Schema([["a"]], ["a"], "u"))
    best = model.best_decisions()[0]
    assert best.utility < 0.008
    assert 0 < best.error < 0.02
    plain, _ = learn_spmn({"a": a, "u": u}, Schema([["a"]], ["a"], "u"), LearnConfig.paper())
    assert plain.best_decisions()[0].utility > 0.015  # which has the plain means


@pytest.mark.parametrize("config", [LearnConfig.exact(), LearnConfig.paper()])
def test_means_are_plain_where_nothing_is_shrunk(config: LearnConfig) -> None:
    """Of 20 actions with 5 rows each, which earn alike, each has the mean of its own rows."""
    u = np.random.default_rng(11).normal(size=(20, 5))
    table, schema = {"a": np.repeat(range(20), 5), "u": u.ravel()}, Schema([["a"]], ["a"], "u")
    found = learn_spmn(table, schema, config)[0].action_values()
    assert {answer.value: answer.utility for answer in found} == pytest.approx(
        dict(enumerate(u.mean(axis=1).tolist()))
    )


def test_a_good_action_among_many_stays_good() -> None:
    rng = np.random.default_rng(9)
    a = rng.integers(0, 20, 10_000)
    u = 1.0 * (rng.random(10_000) < np.where(a == 7, 0.5, 0.1))
    best = learn_spmn({"a": a, "u": u}, Schema([["a"]], ["a"], "u"))[0].best_decisions()[0]
    assert best.value == 7
    assert best.utility == pytest.approx(u[a == 7].mean(), abs=0.02)


def test_means_that_are_clear_are_not_moved() -> None:
    """Ten items worth 0 to 9, give or take 1, in 100 rows each.

    The noise is 1 and means vary by about 9: they would move by 1/9 of a row in 100.
    """
    a = np.repeat(np.arange(10), 100)
    u = a + np.tile([-1.0, 1.0], 500)
    model, _ = learn_spmn({"a": a, "u": u}, Schema([["a"]], ["a"], "u"))
    assert [found.utility for found in model.action_values()] == [*range(10)]


def test_how_far_means_are_shrunk_by_hand() -> None:
    """Utilities 0, 0, 0 and 4; a class has half of the last row, the other all else.

    Counts 3.5 and .5, sums 2 and 2, means 4/7 and 4 around 1: between them are
    3.5 · (3/7)² + .5 · 3² = 36/7. Shrunk by one row they are 2/3 and 2, with a noise of
    (3 · (2/3)² + .5 · (10/3)² + .5 · 2²) / 4 = 20/9. One class has more than half a row:
    (36/7 - 20/9) / (4 - (3.5² + .5²) / 4) is the variance of means.
    """
    table = {"x": range(4), "a": [0] * 4, "u": [0.0, 0.0, 0.0, 4.0]}
    rows, _ = read_rows(table, Schema([["x"], ["a"]], ["a"], "u"), bins=10)
    earned = Earned(rows, np.zeros(4, dtype=np.int64), "u")
    earned.fit(np.array([[1.0, 0.0]] * 3 + [[0.5, 0.5]]))
    varied = (36 / 7 - 20 / 9) / (4 - 12.5 / 4)
    assert earned._noise == pytest.approx(20 / 9)
    assert earned._strength == pytest.approx(20 / 9 / varied)


def test_how_much_a_utility_says_about_its_class_by_hand() -> None:
    """Utilities -1 and 1 in one class, 9 and 11 in the other; all of them around 5.

    Shrunk by one row, the means are (0 + 5) / 3 and (20 + 5) / 3. A row is 8/3 or 2/3 away from the
    mean of its class: the noise is (64/9 + 4/9) / 2 = 34/9. The first row is 28/3 away from the
    other class, where its normal density is lower by the exponent (784/9 - 64/9) / (2 · 34/9).
    """
    table = {"x": range(4), "a": [0] * 4, "u": [-1.0, 1.0, 9.0, 11.0]}
    rows, _ = read_rows(table, Schema([["x"], ["a"]], ["a"], "u"), bins=10)
    earned = Earned(rows, np.zeros(4, dtype=np.int64), "u")
    earned.fit(np.repeat(np.eye(2), 2, axis=0))
    found = earned.log_probs()
    assert found[0, 0] - found[0, 1] == pytest.approx(720 / 68)
    assert found[3, 1] - found[3, 0] == pytest.approx(720 / 68)
    assert found[1, 0] - found[1, 1] == pytest.approx((22**2 - 2**2) / 68)


def test_the_unit_of_utilities_does_not_matter() -> None:
    """In thousandths, means of classes are thousandths of what they were, noise a millionth."""
    rng = np.random.default_rng(10)
    share, a = rng.random(40), rng.integers(0, 2, 40)
    u = 3 * share * (a == 1) + rng.normal(size=40)
    shares = np.column_stack([share, 1 - share])
    found = []
    for unit in (1.0, 1e-3):
        table = {"x": range(40), "a": a, "u": unit * u}
        rows, _ = read_rows(table, Schema([["x"], ["a"]], ["a"], "u"), bins=10)
        earned = Earned(rows, rows.column("a").data.astype(np.int64), "u")
        means, noise = earned.regressed(shares[rows.column("x").data], rows.weights)
        found.append((means / unit, noise / unit**2))
    assert found[1][0] == pytest.approx(found[0][0])
    assert found[1][1] == pytest.approx(found[0][1])


def test_no_mean_is_beyond_what_was_earned() -> None:
    """Rows that are of one class with .6 earned 11, those with .4 earned 10.

    .6 m + .4 n = 11 and .4 m + .6 n = 10 have m = 13 and n = 8: too much, so 11 and 10.
    """
    table = {"x": range(100), "a": [0] * 100, "u": [11.0] * 50 + [10.0] * 50}
    rows, _ = read_rows(table, Schema([["x"], ["a"]], ["a"], "u"), bins=10)
    earned = Earned(rows, np.zeros(100, dtype=np.int64), "u")
    shares = np.array([[0.6, 0.4]] * 50 + [[0.4, 0.6]] * 50)
    means, _ = earned.regressed(shares, rows.weights)
    assert means[:, 0] == pytest.approx([11, 10], abs=1e-6)


def test_a_narrow_class_within_a_wide_one_is_found() -> None:
    """Half of the rows are near 0 in all of five numbers, the others 6 times as far away.

    Who is nearest to which row says little of that at first: passes have to go on until all
    starts find it. Of the others less than 1 in 100 is as near to 0 as 95 in 100 of the near ones.
    """
    rng = np.random.default_rng(10)
    points = rng.normal(size=(600, 5)) * np.repeat([1.0, 6.0], 300)[:, None]
    names = [f"x{j}" for j in range(5)]
    table = {**dict(zip(names, points.T, strict=True)), "a": [0] * 600, "u": [0.0] * 600}
    rows, _ = read_rows(table, Schema([names, ["a"]], ["a"], "u"), bins=10)
    found = fit_classes(rows, names, np.zeros(600, dtype=np.int64), "u", 2, rng)
    # three starts, of two classes each
    assert found.weights * 3 == pytest.approx(np.full(6, 0.5), abs=0.05)


def test_which_variables_are_numbers() -> None:
    """Integers of few values are categories, and so is text, of however many values."""
    size = 40
    table = {
        "few": [k % 3 for k in range(size)],
        "many": range(size),
        "real": [k / 8 for k in range(size)],
        "text": [f"t{k}" for k in range(size)],
        "a": [0] * size,
        "u": [0.0] * size,
    }
    schema = Schema([["few", "many", "real", "text"], ["a"]], ["a"], "u")
    rows, _ = read_rows(table, schema, bins=10)
    assert [name for name in table if is_number(rows, name)] == ["many", "real", "u"]


@pytest.mark.parametrize(("apart", "least"), [(4, 0.375), (100, 50 * 1e-3**0.5)])
def test_integers_have_a_least_scale(apart: int, least: float) -> None:
    """With .375, no integer has a density above 1; a thousandth of the variance of all is more."""
    table = {"x": [0] * 10 + [apart] * 10, "a": [0] * 20, "u": [0.0] * 20}
    rows, _ = read_rows(table, Schema([["x"], ["a"]], ["a"], "u"), bins=10)
    numbers = Numbers(["x"], rows, rows)
    numbers.fit(10 * np.eye(2))
    for leaf in numbers.leaves()[0]:
        assert isinstance(leaf.distribution, StudentT)
        assert leaf.distribution.scale == pytest.approx(least)
