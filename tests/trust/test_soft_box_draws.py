"""Honest values of models of soft boxes."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rspmn
from number_worlds import corridor
from rspmn import RSPMN, Followed
from rspmn.errors import CircuitError, EvidenceError
from rspmn.learn import learn_rspmn
from rspmn.successor_counts import SoftCounts
from rspmn.trust.followed_states import _without_sampling
from rspmn.trust.soft_box_draws import SoftPosterior


def walk(episodes: int, seed: int = 0) -> RSPMN:
    log, schema = corridor(episodes, seed=seed)
    return learn_rspmn(rspmn.windows(log, schema, terminated="over"))[0]


@pytest.fixture(scope="module")
def model() -> RSPMN:
    return walk(200)


def test_steps_sum_to_those_of_the_log(model: RSPMN) -> None:
    """A step is shared by the nodes it belongs to, so it counts once; if its successor is known."""
    counts = model.soft_counts
    assert counts is not None
    log, schema = corridor(200, seed=0)
    windows = rspmn.windows(log, schema, terminated="over")
    known = windows.counts[windows.followed != Followed.UNKNOWN].sum()
    assert sum(counts.steps) == pytest.approx(known)
    assert sum(counts.starts) == pytest.approx(200)


def test_the_interval_holds_the_value(model: RSPMN) -> None:
    """With a discount of 0.9, the right end from x is worth 0.9^(k - 1), k = ⌈(1 - x) / 0.1⌉.

    Episodes begin at any x from 0.05 to 0.95: half as often with k of 1 and of 10 as with others.
    """
    true = sum((0.5 if k in (1, 10) else 1) / 9 * 0.9 ** (k - 1) for k in range(1, 11))
    found = model.honest_value(30, 0.9)
    assert found.low < true < found.high
    assert found.promise == pytest.approx(model.meu(horizon=30, discount=0.9))
    assert abs(found.point - true) < found.deviation
    assert found.caveats == ()


def test_more_steps_make_it_surer(model: RSPMN) -> None:
    assert walk(50).honest_value(30, 0.9).deviation > model.honest_value(30, 0.9).deviation


def test_without_errors_the_draws_are_the_model(model: RSPMN) -> None:
    counts = model.soft_counts
    assert counts is not None
    sure = SoftCounts(
        tuple(1e12 * n for n in counts.starts), counts.steps, (1e30,) * len(counts.steps), 1e30
    )
    found = replace(model, soft_counts=sure).honest_value(30, 0.9)
    # 200 walks in each of 100 draws; returns of 0 to 1 deviate by at most 1/2. If draws do not
    # differ, their variance is expected to be 0.11 of 1/4/200: it is positive, and known to 14 %.
    assert 0 < found.deviation < 0.5 / 200**0.5 * 0.11**0.5 * 1.5


def test_the_deviation_does_not_depend_on_the_seed() -> None:
    """With few walks in each draw it was 0 for some seeds, as their noise was subtracted."""
    few = walk(100)
    found = [few.honest_value(3, 0.9, rng=seed).deviation for seed in range(5)]
    assert max(found) < 2 * min(found)


@pytest.mark.parametrize("between", [0.0, 0.1, 0.5, 2.0])
def test_the_variance_of_draws_without_that_of_walks(between: float) -> None:
    """Walks have variance 1, and there are 20 in each of 100 draws: s = 1/20.

    Variances of 99 degrees of freedom are known to √(2/99) = 14 %, so σ² to 14 % of σ² + s. Given
    that it is positive, where it is 0 it is expected to be √(2/π) = 0.8 of that, and half of the
    means vary more than s by chance, on average by as much.
    """
    rng, found = np.random.default_rng(0), []
    for _ in range(200):
        means = np.sqrt(between) * rng.standard_normal((100, 1))
        made = _without_sampling(means + rng.standard_normal((100, 20)))
        found.append(float(made.var(ddof=1)))
    error = np.sqrt(2 / 99) * (between + 1 / 20)
    assert min(found) > 0
    assert between - error / 4 < np.mean(found) < between + 1.5 * error


def test_draws_of_one_walk_each_way_stay_as_they_are() -> None:
    sure = np.repeat([[1.0], [2.0], [4.0]], 5, axis=1)  # no walk differs from the others
    assert _without_sampling(sure) == pytest.approx([1.0, 2.0, 4.0])


def test_errors_are_those_of_the_formula(model: RSPMN) -> None:
    posterior = SoftPosterior(model)
    values = np.linspace(0, 1, model.num_interfaces)
    assert model.end is not None
    values[model.end] = 0.0
    branch = int(np.argmax(posterior.end * (1 - posterior.end)))
    row = posterior.leads[[branch]].toarray()[0]
    end = row[model.end]
    share = np.delete(row, model.end) / (1 - end)
    on = np.delete(values, model.end)
    mean = share @ on
    expected = end * (1 - end) * mean**2 / (posterior.known[branch] + 1)
    expected += (1 - end) ** 2 * (share @ (on - mean) ** 2) / (posterior.landing[branch] + 1)
    assert posterior.deviations(values)[branch] == pytest.approx(math.sqrt(expected))


def test_actions_have_intervals_around_their_values(model: RSPMN) -> None:
    """Errors average to 0 over draws: the mean of an action is its value in the model."""
    found = model.policy(20, 0.95).how_sure({"x": 0.57})
    for each in found.actions:
        assert each.mean == pytest.approx(each.action.utility)
        assert each.low < each.mean < each.high
    assert found.recommended is not None
    assert found.recommended.action.value == "right"
    assert found.recommended.best > 0.9
    assert not found.too_close
    assert found.notes == SoftPosterior.caveats


def test_fewer_steps_make_actions_less_sure(model: RSPMN) -> None:
    few, many = (m.policy(20, 0.95).how_sure({"x": 0.57}) for m in (walk(50), model))
    for one, other in zip(few.actions, many.actions, strict=True):
        assert one.high - one.low > other.high - other.low


def test_actions_of_equal_worth_are_too_close_to_call() -> None:
    """The episode ends below 0 whatever is done there: rewards of both actions are the same."""
    log, schema = corridor(60, seed=1)
    log["u"] = [1.0 if over else 0.0 for over in log["over"]]
    model, _ = learn_rspmn(rspmn.windows(log, schema, terminated="over"))
    found = model.policy(20, 0.95).how_sure({"x": 0.5})
    assert found.too_close
    assert len(found.rivals) == 1


def test_counts_are_kept_in_files(model: RSPMN, tmp_path: Path) -> None:
    model.save(tmp_path / "m.json")
    assert rspmn.load(tmp_path / "m.json") == model


def test_bad_counts_are_refused(model: RSPMN) -> None:
    counts = model.soft_counts
    assert counts is not None
    with pytest.raises(CircuitError, match="starts"):
        replace(model, soft_counts=replace(counts, starts=(1.0,)))
    with pytest.raises(CircuitError, match="landing"):
        replace(counts, landing=(1.0,))
    with pytest.raises(EvidenceError, match="soft"):
        SoftPosterior(replace(model, soft_counts=None))
