"""Draws of products of factors: those of the model with its factors multiplied out."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rspmn import RSPMN, learn_rspmn, load
from rspmn.circuit import FactoredLatents, Latent
from rspmn.envs.sys_admin import sys_admin
from rspmn.evaluate import true_value
from rspmn.infer.compiled.outcomes import outcomes_of
from rspmn.learn.successors import products
from rspmn.trust.branch_counts import BranchEvidence
from rspmn.trust.drawn_worlds import OwnWorld
from rspmn.trust.factors import FactorDraws
from rspmn.trust.product_draws import ProductDraws, TemplateProducts
from rspmn.trust.rules import Best

WORLD, STEPS = sys_admin(4), 10


@pytest.fixture(scope="module")
def models() -> tuple[RSPMN, RSPMN]:
    """A model with products of factors, and the same multiplied out."""
    log = WORLD.generate(60, STEPS, 3)
    plain, _ = learn_rspmn(log)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "FEW_PRODUCTS", 0)
        patch.setattr(products, "MOST_MULTIPLIED", 0)
        spread, info = learn_rspmn(log)
    assert info.future.spread > 0
    return spread, plain


def test_counts_are_those_of_the_model_multiplied_out(models: tuple[RSPMN, RSPMN]) -> None:
    (one, other) = (model.counts for model in models)
    assert one is not None
    assert other is not None
    assert sum(one.steps) == 60 * 9  # the successors of last steps are not known
    assert one.factors is not None
    assert other.factors is not None
    assert one.factors.steps == other.factors.steps
    assert max(one.factors.left_out) == pytest.approx(max(other.factors.left_out))


@pytest.mark.parametrize("joined", [False, True])
def test_drawn_expectations_are_those_of_weights(
    models: tuple[RSPMN, RSPMN], joined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same leaves, products are worth Σ weight · value over the edges of an outcome."""
    counts, size = models[0].counts, models[0].num_interfaces
    assert counts is not None
    assert counts.factors is not None
    outcomes = max(counts.factors.outcome) + 1
    if joined:
        monkeypatch.setattr("rspmn.infer.compiled.expectation.SPARSE", 0.0)
    edges = np.arange(outcomes * size)
    multiplied = FactorDraws(counts.factors, edges, size, outcomes)
    sure = np.full(outcomes, np.inf)
    product = ProductDraws(counts.factors, np.arange(outcomes + 1), size, outcomes, sure)
    weights = multiplied.draw(5, np.random.default_rng(1))
    drawn = product.draw(5, np.random.default_rng(1))
    assert drawn.products is not None
    values = np.random.default_rng(2).normal(size=(5, size))
    by_weights = (weights.expected.reshape(5, outcomes, size) * values[:, None, :]).sum(axis=2)
    used = product.counts.used
    assert drawn.products(values)[:, used] == pytest.approx(by_weights[:, used], abs=1e-9)
    assert drawn.outside == pytest.approx(weights.outside, abs=1e-9)
    for two in (np.flatnonzero(used)[:2], np.flatnonzero(~used)[:2]):  # these have no products
        some = product.only(np.array([0, *(two + 1)]))
        assert some.means(values)[:, two] == pytest.approx(product.means(values)[:, two])


def test_honest_values_are_those_of_the_model_multiplied_out(
    models: tuple[RSPMN, RSPMN],
) -> None:
    """The means of 100 and of 300 draws differ by less than 4 standard errors: 4 · .115."""
    one, other = (model.honest_value(STEPS) for model in models)
    apart = 4 * np.hypot(one.deviation / 10, other.deviation / 300**0.5)
    assert abs(one.point - other.point) < apart
    assert one.high - one.low == pytest.approx(other.high - other.low, rel=0.35)
    assert one.promise == pytest.approx(other.promise)
    truth = true_value(WORLD, models[0].policy(STEPS), STEPS)
    assert one.low < truth < one.high


def test_without_a_horizon_and_in_a_state(models: tuple[RSPMN, RSPMN]) -> None:
    state = dict.fromkeys(("m0", "m1", "m2", "m3"), True)
    found = models[0].policy(discount=0.8).honest_value(state, draws=40)
    assert found.low < found.promise < found.high


def test_all_questions_of_trust_are_answered(models: tuple[RSPMN, RSPMN]) -> None:
    state = dict.fromkeys(("m0", "m1", "m2", "m3"), True) | {"m1": False}
    one, other = (model.policy(STEPS).how_sure(state) for model in models)
    for mine, theirs in zip(one.actions, other.actions, strict=True):
        width = theirs.high - theirs.low
        assert mine.mean == pytest.approx(theirs.mean, abs=0.5 * width)
        assert mine.high - mine.low == pytest.approx(width, rel=0.5)


def test_the_world_of_a_model_has_its_values(models: tuple[RSPMN, RSPMN]) -> None:
    after = np.random.default_rng(0).normal(size=models[0].num_interfaces)
    found = OwnWorld(models[0]).update(after[None, :], 1.0, False, Best())
    expected = models[0].bellman.update(after)
    known = np.isfinite(expected)
    assert found[0][known] == pytest.approx(expected[known])


def test_counts_are_kept_in_a_file(models: tuple[RSPMN, RSPMN], tmp_path: Path) -> None:
    models[0].save(tmp_path / "model.json")
    found = load(tmp_path / "model.json")
    assert isinstance(found, RSPMN)
    assert found.counts == models[0].counts


def test_products_of_a_template_are_worth_what_they_multiply_out_to(
    models: tuple[RSPMN, RSPMN],
) -> None:
    model = models[0]
    sites = outcomes_of(model.template).sites
    site, node, weight = sites.latents(FactoredLatents)
    assert len(site)
    found = TemplateProducts(model.template, site, node, weight, len(sites.nodes))
    after = np.random.default_rng(0).normal(size=(3, model.num_interfaces))
    # Of all weights of a site, those that are not of single latents are of its products.
    whole, single = np.zeros((2, len(sites.nodes), model.num_interfaces))
    whole[np.repeat(np.arange(len(sites.nodes)), np.diff(sites.starts)), sites.interfaces] = (
        sites.weights
    )
    at, latent, share = sites.latents(Latent)
    for row, index, part in zip(at, latent, share, strict=True):
        single[row, model.template.nodes[index].interface] += part
    rest = whole - single
    total = rest.sum(axis=1, keepdims=True)
    expected = after @ np.where(total > 1e-12, rest / np.maximum(total, 1e-12), 0.0).T
    # Sums of at most 16 products of 4 factors, each rounded to 1e-16, over weights above 1e-3.
    np.testing.assert_allclose(found(after), expected, atol=1e-10)


def test_outcomes_without_a_logged_step_are_worth_their_products(
    models: tuple[RSPMN, RSPMN],
) -> None:
    """An outcome that no logged step uses was worth nothing in draws."""
    model = models[0]
    counts = model.counts
    assert counts is not None
    assert counts.factors is not None
    dropped = counts.factors.outcome[0]
    kept = [k for k, outcome in enumerate(counts.factors.outcome) if outcome != dropped]
    names = ("outcome", "combination", "share")
    fields: Any = {name: tuple(getattr(counts.factors, name)[k] for k in kept) for name in names}
    factors = replace(counts.factors, **fields)
    fewer = replace(model, counts=replace(counts, factors=factors))
    evidence = BranchEvidence(fewer)
    assert isinstance(evidence.factors, ProductDraws)
    drawn = evidence.factors.draw(4, np.random.default_rng(0)).products
    assert drawn is not None
    ones = drawn(np.ones((4, model.num_interfaces)))
    np.testing.assert_allclose(ones[:, dropped], 1.0, atol=1e-9)


def test_the_mean_of_draws_has_the_products_of_what_was_never_tried(
    models: tuple[RSPMN, RSPMN],
) -> None:
    """Fault: in the mean they led nowhere, so that plans with them seemed far too optimistic."""
    model = models[0].offering()
    posterior, own = model.posterior, OwnWorld(model)
    untried = posterior.evidence.extrapolated
    assert untried.any()
    values = np.random.default_rng(0).uniform(1, 2, (1, model.num_interfaces))
    mean, known = (world.expect(values)[0][untried] for world in (posterior.mean_world(), own))
    new = posterior.novelty.shares[:, untried].sum(axis=0)
    assert (np.abs(mean - known) <= 2 * new + 1e-9).all()  # values are between 1 and 2
