"""Plots hold the numbers of the model, and nothing lies outside its frame."""

from typing import Any

import numpy as np
import pytest

from rspmn import Policy, learn_rspmn, true_value
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.errors import DataError, EvidenceError
from rspmn.plot import (
    plot_calibration,
    plot_coverage,
    plot_learning_curve,
    plot_meu,
    plot_policy,
    plot_states,
)
from soft_models import soft_model

LAKE = frozen_lake()
LOG = LAKE.generate(300, 8, 0, "final")


@pytest.fixture(scope="module")
def policy() -> Policy:
    return learn_rspmn(LOG)[0].policy(8, otherwise="up")


def test_values_by_horizon(policy: Policy) -> None:
    axes: Any = plot_meu(policy.model, [1, 4, 8])
    promise = axes.lines[0].get_ydata()
    assert promise == pytest.approx([float(policy.model.meu(horizon=h)) for h in (1, 4, 8)])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "promise (MEU)", "90 % interval", "honest value",
    ]  # fmt: skip
    for wrong in (8, "8"):
        with pytest.raises(EvidenceError, match="horizons: expected several numbers of steps"):
            plot_meu(policy.model, wrong)  # type: ignore[arg-type]


def test_a_policy_over_one_and_two_variables(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rspmn.plot.worth.POINTS", 12)
    axes: Any = plot_policy(policy, "cell")
    points = dict(axes.collections[0].get_offsets().tolist())
    assert points[14] == pytest.approx(float(policy.value({"cell": 14})))
    soft = soft_model(np.random.default_rng(0), 3, 2, actions=3).policy(3)
    axes = plot_policy(soft, "x0", "x1")
    assert axes.images[0].get_array().shape == (12, 12, 3)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x0", "x1")
    with pytest.raises(EvidenceError, match="'action' is not a state variable"):
        plot_policy(policy, "action")


def test_the_graph_of_states(policy: Policy) -> None:
    axes: Any = plot_states(policy)
    assert axes.get_title(loc="left").startswith("11 states")
    texts = [text.get_text() for text in axes.texts]
    assert f"cell=14\n{policy.act({'cell': 14})}" in texts
    assert plot_states(policy, most=3).get_title(loc="left").startswith("3 of 11 states")
    figure = axes.get_figure()
    figure.draw_without_rendering()
    frame = figure.bbox
    for text in axes.texts:
        box = text.get_window_extent()
        assert frame.x0 <= box.x0, text
        assert box.x1 <= frame.x1, text


@pytest.mark.parametrize("plot", [plot_states, plot_coverage, plot_policy, plot_meu])
def test_only_policies_and_models_are_plotted(policy: Policy, plot: Any) -> None:
    is_of_models = plot is plot_meu
    wanted = "a recurrent model" if is_of_models else "a Policy, model.policy"
    for wrong in (policy if is_of_models else policy.model, LOG, None, "model.json"):
        with pytest.raises(
            EvidenceError, match=f"expected {wanted}.*, found {type(wrong).__name__}"
        ):
            plot(wrong, *["cell"] * (plot is plot_policy))


def test_coverage_counts_logged_steps(policy: Policy) -> None:
    axes: Any = plot_coverage(policy)
    counts = [float(text.get_text()) for text in axes.texts]
    assert sum(counts) == sum(policy.model.visits)


def test_learning_curves_and_calibration(policy: Policy) -> None:
    axes: Any = plot_learning_curve(LOG, 8, [50, 300])
    assert axes.lines[0].get_ydata()[1] == pytest.approx(policy.honest_value().point)
    again: Any = plot_learning_curve(LOG, 8, np.array([300, 50]))
    assert again.lines[0].get_ydata() == pytest.approx(axes.lines[0].get_ydata())
    wrong: Any
    for wrong in ([50, 301], [0, 50], [], 20, "20", [50.5], ["50"], [[50]]):
        with pytest.raises(DataError, match="sizes: expected numbers of episodes, 1 to 300, found"):
            plot_learning_curve(LOG, 8, wrong)
    table: Any = LOG.to_long()
    with pytest.raises(DataError, match="expected Episodes, found dict: for a table or a file"):
        plot_learning_curve(table, 8)
    found = [policy.honest_value()] * 2
    axes = plot_calibration(found, [true_value(LAKE, policy, 8), found[0].high + 1])
    assert axes.get_title(loc="left").endswith("of 2 intervals contain the true value")
    with pytest.raises(DataError, match="as many truths"):
        plot_calibration(found, [1.0])
