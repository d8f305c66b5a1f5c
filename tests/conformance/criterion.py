"""What every criterion at max nodes must satisfy."""

import numpy as np

from rspmn.circuit import Categorical, NetworkBuilder
from rspmn.end_nodes import end_root, weighted_top
from rspmn.infer.act_many import node_table
from rspmn.infer.actions import action_values
from rspmn.infer.bellman import Future, update
from rspmn.infer.branches import Context
from rspmn.infer.compiled.linear_forms import Level
from rspmn.infer.criterion import Criterion
from rspmn.model import RSPMN
from rspmn.schema import Schema
from rspmn.types import Array

AGES = ("young", "old")


def example_model() -> RSPMN:
    """Return the model of the check: an age is seen, a test made or not, then treated or not.

    Its decisions are `test` ("yes", "no") and `treat` ("drug", "rest"), its states `age` ("young",
    "old") and, after the test, `result` ("good", "bad", "none").
    """
    schema = Schema([["age"], ["test"], ["result"], ["treat"]], ["test", "treat"], "health")
    b, rng = NetworkBuilder(), np.random.default_rng(0)

    def treat(offered: tuple[str, ...]) -> int:
        return b.max("treat", {value: outcome() for value in offered})

    def outcome() -> int:
        chance = float(rng.uniform(0.2, 0.8))
        leads = b.sum(
            [b.latent(0), b.latent(1), b.latent(2)], [0.9 * chance, 0.9 - 0.9 * chance, 0.1]
        )
        earned = b.utility("health", float(rng.integers(-2, 3)), float(rng.integers(1, 50)), 1.0)
        return b.product([earned, leads])

    def tested() -> int:
        results = [b.leaf("result", Categorical.certain(value)) for value in ("good", "bad")]
        parts = [b.product([leaf, treat(("drug", "rest"))]) for leaf in results]
        return b.sum(parts, [0.4, 0.6])

    def untested() -> int:
        return b.product([b.leaf("result", Categorical.certain("none")), treat(("drug", "rest"))])

    roots = [
        b.product(
            [
                b.leaf("age", Categorical.certain(age)),
                b.max("test", {"yes": tested(), "no": untested()}),
            ]
        )
        for age in AGES
    ]
    template = b.build(*roots, end_root(b, schema, 2))
    return RSPMN(schema, weighted_top([0.5, 0.5, 0.0]), template, (60.0, 40.0, 0.0))


def check_criterion(criterion: Criterion, model: RSPMN | None = None) -> None:
    """Check that a criterion can be used as `model.policy(criterion=criterion)`.

    Parameters
    ----------
    criterion
        The criterion.
    model
        A model with the decisions and variables that the criterion names; without one,
        `conformance.criterion.example_model`.

    Examples
    --------
    >>> from rspmn.infer import MaximumExpectedUtility
    >>> check_criterion(MaximumExpectedUtility())
    """
    model = model or example_model()
    rng = np.random.default_rng(0)
    for level in model.bellman.levels:
        worth = rng.normal(size=len(level.forms.earned))
        _check_scores(criterion, level, worth)
        worth[rng.random(len(worth)) < 0.3] = -np.inf
        _check_scores(criterion, level, worth)
        _check_single_nodes(criterion, model, level, worth)
    _check_queries(criterion, model)


def _check_scores(criterion: Criterion, level: Level, worth: Array) -> None:
    kept = worth.copy()
    scores = np.array(criterion.scores(worth, level.branches))
    assert np.array_equal(worth, kept), "the criterion changed the worth that it was given"
    assert scores.shape == worth.shape, (
        f"expected a score for each branch, an array of shape {worth.shape}, found {scores.shape}"
    )
    assert scores.dtype.kind == "f", f"expected floating point scores, found {scores.dtype}"
    assert not (scores == np.inf).any(), "expected scores that are finite, -inf or NaN, found inf"
    again = np.array(criterion.scores(worth, level.branches))
    assert np.array_equal(scores, again, equal_nan=True), "asked again, it gave other scores"


def _check_single_nodes(criterion: Criterion, model: RSPMN, level: Level, worth: Array) -> None:
    """Check that a node is scored as if there were no others."""
    scores = np.array(criterion.scores(worth, level.branches))
    context = Context(model.template)
    for k, node in enumerate(level.nodes.tolist()):
        mine = level.branches.node == k
        alone = context.branches_of(np.array([node]), np.zeros(1, np.int64))
        found = np.array(criterion.scores(worth[mine], alone))
        assert np.array_equal(scores[mine], found, equal_nan=True), (
            f"the scores of node {node} depend on other nodes"
        )


def _check_queries(criterion: Criterion, model: RSPMN) -> None:
    """Check that plain and compiled queries agree, and that policies follow the criterion."""
    names, future = model.schema.information_sets[0], Future.nothing(model)
    for horizon in (1, 2, 3):
        policy = model.policy(horizon, criterion=criterion)
        for row in zip(*node_table(policy).states.values(), strict=True):
            state = dict(zip(names, row, strict=True))
            answers = {a.value: a for a in policy.action_values(state)}
            network = model.from_anywhere
            plain = action_values(
                network, state, model.schema.decisions[0], future.discounted(1.0), criterion
            )
            for answer in plain:
                mine = answers[answer.value]
                assert mine.best == answer.best, f"plain and compiled choices differ in {state}"
                pair = mine.utility, answer.utility
                assert np.allclose(*pair, rtol=1e-9, atol=1e-9, equal_nan=True), (
                    f"plain and compiled values differ in {state}"
                )
        future = update(model, future, criterion=criterion)
    values = np.array(model.values(discount=0.9, criterion=criterion))
    updated = model.bellman.update(values, 0.9, criterion=criterion)[np.isfinite(values)]
    assert np.allclose(values[np.isfinite(values)], updated, rtol=1e-6, atol=1e-6), (
        "without a horizon the values do not converge: the scores of a node should grow with its "
        "worth"
    )
