"""Values of plans by logged steps alone: right where they can be, flagged where they cannot."""

from dataclasses import replace
from typing import Any

import pytest

import rspmn
from number_worlds import corridor
from rspmn import RSPMN, load
from rspmn.errors import CircuitError
from rspmn.learn import learn_rspmn
from rspmn.successor_counts import StepSample
from rspmn.trust.honest import FAR
from rspmn.trust.step_kernel import StepKernel


def walks(episodes: int, **more: float) -> RSPMN:
    log, schema = corridor(episodes, 1, **more)  # type: ignore[arg-type]
    return learn_rspmn(rspmn.windows(log, schema, terminated="over"))[0]


@pytest.fixture(scope="module")
def model() -> RSPMN:
    return walks(200)


def test_a_walk_that_is_known_is_valued_by_its_steps(model: RSPMN) -> None:
    """From 0.57 the right end is reached with the fifth step: 0.9^4.

    A step more would lose a tenth of that; the estimate misses by less than a third of it.
    """
    policy = model.policy(30, 0.9)
    assert policy.kernel is not None
    nodes = policy.nodes({"x": 0.57})
    found = policy.kernel.value(nodes, {"x": 0.57})
    assert abs(found.point - 0.9**4) < 0.1 * 0.9**4 / 3
    assert found.error < 0.1
    assert found.far < FAR


def test_a_plan_that_leaves_the_log_is_flagged(model: RSPMN) -> None:
    """Nobody went right below 0.8: steps from elsewhere stand for what the plan does there."""
    logged = walks(200, right_from=0.8)
    assert logged.soft_counts is not None
    assert logged.soft_counts.sample is not None
    left = StepKernel(model, logged.soft_counts.sample, model.policy(30, 0.9, safe=False).planned)
    assert left.value(None, {}).far > FAR


def test_a_sample_is_kept_in_the_file(model: RSPMN, tmp_path: object) -> None:
    assert model.soft_counts is not None
    sample = model.soft_counts.sample
    assert sample is not None
    assert len(sample.utility) > 500
    path = f"{tmp_path}/m.json"
    model.save(path)
    again = load(path)
    assert isinstance(again, RSPMN)
    assert again.soft_counts == model.soft_counts
    without = replace(model, soft_counts=replace(model.soft_counts, sample=None))
    assert without.policy(30, 0.9).kernel is None


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("here", (0.0,), "do not make points of 2 columns"),
        ("made", (0,), "1 decisions for 2 steps"),
        ("weight", (1.0, -1.0), "weight"),
        ("ended", (0, 2), "ended"),
        ("utility", (0.0, float("nan")), "utility"),
    ],
)
def test_odd_samples_are_refused(field: str, value: Any, said: str) -> None:
    good = StepSample(2, (0.0,) * 4, (0.0,) * 4, (0, 1), (0, 1), (1.0, 2.0), (1.0, 1.0),
                      (0.0, 0.0), (1.0,))  # fmt: skip
    with pytest.raises(CircuitError, match=said):
        replace(good, **{field: value})
