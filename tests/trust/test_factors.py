"""Draws of factors: outcomes that use one leaf err together."""

import numpy as np
import pytest

from rspmn.envs.domains import DOMAINS
from rspmn.learn import learn_rspmn
from rspmn.successor_counts import SharedFactors
from rspmn.trust.factors import FactorDraws

DRAWS = 2000


def coins() -> FactorDraws:
    """Return the draws of two outcomes, each with the next state of two coins.

    Leaf 0 is the first coin, 3 heads and 1 tails, in both outcomes. Leaf 1 and leaf 2 are the
    second coin: 1 and 1 in outcome 0, 9 heads in outcome 1. Interface nodes are the four states,
    but nobody was ever in tails, tails.
    """
    factors = SharedFactors(
        strength=10.0, least_strength=3.0, components=2,
        leaf=(0, 0, 1, 1, 2), value=(0, 1, 2, 3, 2), steps=(3.0, 1.0, 1.0, 1.0, 9.0),
        leaves=(0, 1, 0, 2),
        member=(0, 2, 0, 3, 1, 2), member_of=(0, 0, 1, 1, 2, 2),
        box=(0, 1, 2), interface=(0, 1, 2), box_share=(1.0, 1.0, 1.0),
        outcome=(0, 1), combination=(0, 1), share=(1.0, 1.0), left_out=(),
    )  # fmt: skip
    return FactorDraws(factors, np.array([0, 1, 2, 3, 4, 5]), interfaces=3, outcomes=2)


def test_two_coins_by_hand() -> None:
    found = coins()
    drawn = found.draw(DRAWS, np.random.default_rng(0))
    expected, outside = drawn.expected, drawn.outside
    assert expected[:, :3].sum(axis=1) == pytest.approx(1)
    assert expected[:, 3:].sum(axis=1) == pytest.approx(1)
    assert (expected[:, 4] == 0).all()  # outcome 1 never has tails second
    assert (outside[:, 1] == 0).all()
    # Beta(3, 1) has mean 3/4 and variance 3/80. Outcome 1 is heads, heads if the first coin is.
    first = expected[:, 3]
    assert abs(first.mean() - 0.75) < 6 * (3 / 80 / DRAWS) ** 0.5
    assert first.var() == pytest.approx(3 / 80, rel=0.2)
    # Outcome 0 shares the first coin: the odds of heads, heads to tails, heads are the same.
    assert expected[:, 0] / expected[:, 2] == pytest.approx(first / expected[:, 5])
    # Tails, tails is 1/4 · 1/2 on average; independent, so the variance is below 1/12 · 3/80 + ...
    assert abs(outside[:, 0].mean() - 0.125) < 6 * (0.03 / DRAWS) ** 0.5
    assert found.counts.pooled().tolist() == [2.0, 4.0]  # of the least known leaf


def test_draws_of_a_learned_model_are_about_its_weights() -> None:
    model, _ = learn_rspmn(DOMAINS["Elevators"]().generate(300, 10, 0))
    evidence = model.posterior.evidence
    assert evidence.factors is not None
    drawn = evidence.factors.draw(400, np.random.default_rng(0))
    pi, outside = drawn.expected[:, evidence.factor_edge], drawn.outside
    cells = evidence.cells
    # (count + κ · π) / (n + κ) is the weight; END is not shared.
    strength = evidence.factors.counts.factors.strength
    shared = ~cells.over[cells.of_edges] & (cells.steps > 0)[cells.of_edges]
    total = cells.steps[cells.of_edges] + strength
    mean = (cells.logged + strength * pi.mean(axis=0)) / total
    error = 6 * pi.std(axis=0) * strength / total / 400**0.5
    assert (np.abs(mean - cells.mean)[shared] <= error[shared] + 2e-3).all()
    assert ((outside >= 0) & (outside <= 1)).all()
