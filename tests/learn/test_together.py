"""Growths that run together: what is counted at once is what each would count by itself."""

import numpy as np
import pytest

from effort import mostly_soak, seeds
from rspmn.envs.domains import DOMAINS
from rspmn.learn import learn_rspmn
from rspmn.learn.structure import grow
from rspmn.learn.structure.batched_growth import (
    Fork,
    Growth,
    MeanNeed,
    Need,
    run_alone,
    run_together,
)
from rspmn.learn.structure.contingency import contingency
from rspmn.learn.structure.count_ahead import count_ahead, kept_means
from rspmn.learn.structure.grouped_statistics import grouped_statistics
from rspmn.learn.structure.independence import PairStatistics, _pair_by_pair, pair_statistics
from rspmn.learn.structure.relevance import mean_p_values
from rspmn.learn.structure.rows import Rows, read_columns

LEFT, RIGHT = ("x0", "x1", "x2", "x4"), ("x3", "x4", "x5", "x6")
FIELDS = ("g", "x2", "freedom", "weight")


def rows_of(seed: int) -> tuple[Rows, np.ndarray]:
    """Return rows of seven variables, some of which are missing together, and strata."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 300))
    lacking = rng.random(size) < rng.choice([0.0, 0.2])
    columns = {}
    for k in range(7):
        column = rng.integers(0, rng.integers(1, 6), size).astype(object)
        if k >= 4:
            column[lacking] = None
        columns[f"x{k}"] = column
    rows = read_columns(columns, None, 10)
    weights = rng.integers(1, 6, len(rows)) if seed % 3 else rng.random(len(rows)) * 3 + 0.01
    strata = rng.integers(0, rng.integers(1, 60), len(rows))
    return Rows(rows.table, rows.index, weights.astype(np.float64)), strata


@pytest.mark.parametrize("seed", seeds(15, 40))
def test_statistics_are_those_of_tables_and_of_single_pairs(seed: int) -> None:
    rows, strata = rows_of(seed)
    one, other = rows.codes_of(LEFT), rows.codes_of(RIGHT)
    group = np.zeros(len(rows), dtype=np.int64)
    found = grouped_statistics(one, other, strata, rows.weights, group, 1)
    assert found is not None
    tables = contingency(rows, LEFT, RIGHT, strata).statistics()
    single = _pair_by_pair(rows, LEFT, RIGHT, strata)
    for field, by_stratum in zip(FIELDS, tables, strict=True):
        mine = getattr(found, field)[0]
        # sums of at most 300 rounded terms
        np.testing.assert_allclose(mine, by_stratum.sum(axis=0), rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(mine, getattr(single, field), rtol=1e-11, atol=1e-11)


def test_what_is_counted_ahead_is_what_each_would_count() -> None:
    """Rows of different tables, with different variables on the left."""
    drawn = [rows_of(seed) for seed in (3, 4, 5, 6, 7)]
    sides = [LEFT, LEFT[1:], LEFT[:2], LEFT, LEFT[2:]]
    needs = [Need(r, left, RIGHT, s) for (r, s), left in zip(drawn, sides, strict=True)]
    count_ahead(needs)
    for need in needs:
        kept = pair_statistics(need.rows, need.left, RIGHT, need.strata)
        fresh = Rows(need.rows.table, need.rows.index, need.rows.weights)
        alone = pair_statistics(fresh, need.left, RIGHT, need.strata)
        for field in FIELDS:
            one, other = getattr(kept, field), getattr(alone, field)
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)
        assert np.array_equal(kept.significant(0.01), alone.p_values() < 0.01)


def test_means_that_are_tested_ahead_are_those_of_each() -> None:
    rng = np.random.default_rng(1)
    parts = []
    for size in (5, 40, 200):
        columns = {f"x{k}": rng.integers(0, 3, size) for k in range(3)}
        rows = read_columns({**columns, "u": rng.normal(size=size)}, None, 10)
        parts.append((rows, rng.integers(0, 4, len(rows))))
    count_ahead([MeanNeed(rows, ("x0", "x2"), "u", strata) for rows, strata in parts])
    for rows, strata in parts:
        kept = mean_p_values(rows, ("x0", "x2"), "u", strata)
        fresh = Rows(rows.table, rows.index, rows.weights)
        alone = mean_p_values(fresh, ("x0", "x2"), "u", strata)
        np.testing.assert_allclose(kept, alone, rtol=1e-9)
        assert kept_means(rows, strata) is not None
        assert kept_means(fresh, strata) is None


def test_only_statistics_above_their_mean_are_significant() -> None:
    rng = np.random.default_rng(0)
    freedom = rng.integers(0, 30, (50, 40)).astype(float)
    g, x2 = rng.gamma(np.maximum(freedom, 1) / 2, 3.0, (2, 50, 40))
    found = PairStatistics(g, x2, freedom, np.full((50, 40), 20.0))
    for level in (1e-4, 0.01, 0.3, 0.9):
        assert np.array_equal(found.significant(level), found.p_values() < level)


def test_children_answer_in_order_however_they_run() -> None:
    """A tree of growths of different depths: 1 for a leaf, else the children's sum in a tuple."""
    asked: list[int] = []

    def tree(depth: int) -> Growth[tuple[object, ...]]:
        yield []
        below = yield Fork([tree(k) for k in range(depth)])
        return (depth, *below)

    together = run_together(tree(5), lambda needs: asked.append(len(needs)))
    assert together == run_alone(tree(5))
    assert len(asked) == 6  # as often as the tree is deep


@pytest.mark.parametrize("name", mostly_soak(["Elevators", "SkillTeaching"], ["Elevators"]))
def test_a_model_is_the_same_if_growths_run_one_by_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mdp = DOMAINS[name]()
    log = mdp.generate(40, mdp.horizon, 3, "final")
    together = learn_rspmn(log)[0]
    monkeypatch.setattr(grow, "run_together", lambda growth, _: run_alone(growth))
    alone = learn_rspmn(log)[0]
    assert together.template == alone.template
    assert together.top == alone.top
